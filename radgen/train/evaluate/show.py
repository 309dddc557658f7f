"""Results in the terminal: one table a suite, models side by side; and differences of two evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from radgen.train.evaluate.compare import Difference

#: Suites whose groups are many: the table shows the overall figures, results.json has all.
_BRIEF = {"probes": ("probes.auroc", "probes.youden")}


def wide() -> Console:
    """Return a console for tables; into a file or a pipe no line is broken to fit a screen."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 160))


def print_results(results: Mapping[str, Any], console: Console) -> None:
    """Print a table for each suite: measures and groups down, models and the paper's figures across."""
    models = [model["name"] for model in results["models"]]
    for suite in results["suites"]:
        entries = {entry["model"]: entry for entry in results["results"] if entry["suite"] == suite}
        _suite(suite, entries, models, results, console)


def _suite(
    suite: str,
    entries: Mapping[str, Mapping[str, Any]],
    models: Sequence[str],
    results: Mapping[str, Any],
    console: Console,
) -> None:
    shown = [
        (measure, group)
        for measure, group in _keys(entries)
        if not group or not measure.startswith(_BRIEF.get(suite, ("\0",)))
    ]
    by = {
        model: {(value["measure"], value["group"]): value for value in entry["values"]}
        for model, entry in entries.items()
    }
    paper = _quoted(results, shown)
    if shown:
        table = Table(title=suite, title_style="bold", title_justify="left")
        table.add_column("measure")
        table.add_column("of")
        for model in models:
            table.add_column(model, justify="right")
        for encoder in paper:
            table.add_column(f"{encoder} (paper)", justify="right", style="dim")
        last = ""
        for key in shown:
            measure, group = key
            title = results["measures"][measure]["title"]
            cells = [cell(by[model].get(key)) if model in by else "" for model in models]
            quoted = [f"{paper[name][key]:.3f}" if key in paper[name] else "" for name in paper]
            table.add_row("" if title == last else title, group, *cells, *quoted)
            last = title
        console.print(table)
    else:
        console.print(suite, style="bold")
    for model in models:
        entry = entries[model]
        if entry["status"] == "skipped":
            console.print(f"  {model}: skipped: {entry['reason']}", markup=False, soft_wrap=True)
        for note in entry["notes"] if model == models[0] or entry["notes"] != _first(entries, models) else ():
            console.print(f"  {note}", style="dim", markup=False, soft_wrap=True)


def _keys(entries: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return measures and groups: measures as they first come, each with its overall figure first."""
    groups: dict[str, list[str]] = {}
    for entry in entries.values():
        for value in entry["values"]:
            known = groups.setdefault(value["measure"], [])
            if value["group"] not in known:
                known.append(value["group"])
    return [(name, group) for name, known in groups.items() for group in sorted(known, key=bool)]


def _first(entries: Mapping[str, Mapping[str, Any]], models: Sequence[str]) -> Any:
    return entries[models[0]]["notes"]


def _quoted(
    results: Mapping[str, Any], shown: Sequence[tuple[str, str]]
) -> dict[str, dict[tuple[str, str], float]]:
    out: dict[str, dict[tuple[str, str], float]] = {}
    for item in results["quoted"]:
        if (item["measure"], item["group"]) in shown:
            out.setdefault(item["encoder"], {})[item["measure"], item["group"]] = item["value"]
    return out


def cell(value: Mapping[str, Any] | None) -> str:
    """Return a figure with its interval, or why there is none.

    >>> cell({"value": 0.5, "low": 0.41, "high": 0.6, "n": 9})
    '0.500 (0.410–0.600)'
    """
    if value is None:
        return ""
    if value["value"] is None:
        return str(value.get("reason") or "–")
    digits = 3 if abs(value["value"]) < 100 else 0
    text = f"{value['value']:,.{digits}f}"
    if value["low"] is None or value["high"] is None:
        return text
    return f"{text} ({value['low']:.{digits}f}–{value['high']:.{digits}f})"


def print_differences(found: Sequence[Difference], names: tuple[str, str], console: Console) -> None:
    """Print what changed: the first evaluation, the second, the difference with its interval."""
    table = Table()
    for column in ("measure", names[0], names[1], "difference", "95 %", ""):
        table.add_column(column, justify="left" if column in ("measure", "") else "right")
    for item in found:
        interval = "" if item.low is None or item.high is None else f"{item.low:+.3f} to {item.high:+.3f}"
        figures = f"{item.before:.3f}", f"{item.after:.3f}", f"{item.change:+.3f}"
        table.add_row(item.name, *figures, interval, item.verdict)
    console.print(table)
