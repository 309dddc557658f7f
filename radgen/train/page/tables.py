"""Tables of the page: rows are measures or groups, columns are models and the paper's encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radgen.train.page.evaluation import Evaluation
from radgen.train.page.settings import PageSettings

Key = tuple[str, str]


@dataclass(frozen=True)
class Cell:
    """One figure: its text, its 95 % interval, and why there is none."""

    column: str
    text: str = ""
    interval: str = ""
    best: bool = False
    reason: str = ""
    quoted: bool = False


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """A table of figures; ``encoders`` are the columns that are quoted, from ``sources``."""

    title: str
    encoders: list[str]
    rows: list[Row]
    sources: list[str]
    folded: bool = False


def suite_tables(found: Evaluation, suite: str, settings: PageSettings) -> list[Table]:
    """Return the tables of a suite; a long list of details is folded, its overall figures are not."""
    keys = found.keys(suite)
    if not keys:
        return []
    by, overall = settings.suite(suite).by, settings.suite(suite).overall
    measures = list(dict.fromkeys(measure for measure, _ in keys))
    if by == "flat":
        return [_table(found, settings, "", [(key, _flat(found, settings, key, overall)) for key in keys])]
    if by == "group":
        groups = list(dict.fromkeys(group for _, group in keys))
        return [
            _table(
                found,
                settings,
                settings.name(group) if group else overall,
                [(key, _title(found, key[0])) for key in keys if key[1] == group],
            )
            for group in groups
        ]
    out = []
    heads = [key for key in keys if key[1] == ""]
    details = {measure: [key for key in keys if key[0] == measure and key[1]] for measure in measures}
    if len(measures) == 1:
        details = {measures[0]: keys}
    elif heads:
        out.append(
            _table(
                found,
                settings,
                overall,
                [(key, _title(found, key[0])) for key in heads],
            )
        )
    for measure, inner in details.items():
        if inner:
            rows = [(key, _group(settings, key[1], overall)) for key in inner]
            out.append(_table(found, settings, _title(found, measure), rows, fold=True))
    return out


def _table(
    found: Evaluation,
    settings: PageSettings,
    title: str,
    keys: Sequence[tuple[Key, str]],
    *,
    fold: bool = False,
) -> Table:
    """Build one table; with ``fold`` it is folded if it is long."""
    quoted = {key: found.quoted(*key) for key, _ in keys}
    encoders = list(dict.fromkeys(name for entries in quoted.values() for name in entries))
    said = [str(entry["source"]) for entries in quoted.values() for entry in entries.values()]
    sources = list(dict.fromkeys(said))
    rows = []
    for key, label in keys:
        cells = [_cell(found, model, *key) for model in found.models]
        for encoder in encoders:
            entry = quoted[key].get(encoder)
            text = found.say(key[0], entry["value"]) if entry else ""
            cells.append(Cell(encoder, text, quoted=True))
        rows.append(Row(label, cells))
    return Table(title, encoders, rows, sources, fold and len(rows) > settings.limits.open_rows)


def _title(found: Evaluation, measure: str) -> str:
    return f"{found.measures[measure]['title']}\N{NO-BREAK SPACE}{found.arrow(measure)}".rstrip()


def _cell(found: Evaluation, model: str, measure: str, group: str) -> Cell:
    value = found.value(model, measure, group)
    if value is None:
        suite = measure.partition(".")[0]
        return Cell(model, reason="not measured" if found.reason(suite, model) is None else "skipped")
    if value["value"] is None:
        return Cell(model, reason=str(value.get("reason") or "not measured"))
    number = value["value"]
    interval = ""
    if value.get("low") is not None and value.get("high") is not None:
        interval = f"{found.say(measure, value['low'])} to {found.say(measure, value['high'])}"
    best = found.best(measure, group)
    said = found.say(measure, number)
    return Cell(model, said, interval, best is not None and said == found.say(measure, best))


def _group(settings: PageSettings, group: str, overall: str) -> str:
    return settings.name(group) if group else overall


def _flat(found: Evaluation, settings: PageSettings, key: Key, overall: str) -> str:
    measure, group = key
    title, unit = str(found.measures[measure]["title"]), found.unit(measure)
    label = f"{title} ({unit})" if unit else title
    label = f"{label}\N{NO-BREAK SPACE}{found.arrow(measure)}".rstrip()
    return f"{label}: {_group(settings, group, overall)}" if group else label
