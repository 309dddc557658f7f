"""Suites over reports: retrieval of paired sections, short queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.errors import RadgenError
from radgen.generators.splits import normalise
from radgen.train import measures as m
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.reports import ABSENT, PRESENT, Pool, State, status_of
from radgen.train.evaluate.settings import EvaluateFile, SideQuery
from radgen.train.measures.ordering import Vectors

Show = Callable[[int], None]
Ints = NDArray[np.int64]
_OTHER = {"left": "right", "right": "left"}


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints, Ints]:
    """Return the distinct texts, the number of each text among them, and how often each occurs."""
    place: dict[str, int] = {}
    numbers = np.array([place.setdefault(text, len(place)) for text in texts], np.int64)
    return list(place), numbers, np.bincount(numbers, minlength=len(place))


def retrieval(
    pool: Pool | None,
    records: Path | None,
    encoder: Encoder,
    settings: EvaluateFile,
    sure: Sure,
    show: Show,
) -> Outcome:
    """Judge retrieval of paired sections, in both directions (paper tables 1 and 2), and of levels.

    Args:
        records: output of ``radgen radthought``: does a level of a report find the next one (appendix A).
    """
    if pool is None and records is None:
        raise SkippedError("needs --reports or --radthought")
    out = Outcome()
    if pool is not None:
        _sections(out, pool, encoder, settings, sure, show)
    if records is not None:
        levels = read_levels(records, {name for pair in settings.retrieval.levels for name in pair})
        for source, target in settings.retrieval.levels:
            both = [row for row in levels if row[source] and row[target]]
            group = f"{source}→{target}".replace("_", " ")
            asked, wanted = [row[source] for row in both], [row[target] for row in both]
            _both_ways(out, group, asked, wanted, settings.tokens.radthought, encoder, settings, sure, show)
        out.notes.append(f"levels of {len(levels):,} records of RadThought")
    return out


def read_levels(path: Path, names: set[str]) -> list[dict[str, str]]:
    """Read levels of ``records.jsonl`` (or of the folder that has it), each as one text.

    Raises:
        RadgenError: it is not there, or a row lacks a level.
    """
    path = path / "records.jsonl" if path.is_dir() else path
    if not path.is_file():
        raise RadgenError(f"{path}: no such file (expected records.jsonl of 'radgen radthought')")
    out = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = orjson.loads(line)
                texts = {name: row[name] for name in names}
            except (orjson.JSONDecodeError, KeyError, TypeError):
                levels = ", ".join(sorted(names))
                raise RadgenError(f"{path}:{number}: no record of RadThought (expected {levels})") from None
            out.append({name: _joined(text) for name, text in texts.items()})
    return out


def _joined(text: str | list[str] | None) -> str:
    return " ".join(text) if isinstance(text, list) else text or ""


def _sections(
    out: Outcome, pool: Pool, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show
) -> None:
    pairs = pool.pairs
    if len(pairs) < 2:
        raise SkippedError(f"{pool.path.name}: fewer than two reports have both findings and impression")
    out.notes.append(f"{len(pairs):,} pairs, {encoder.limit(pool.tokens)} tokens")
    if rest := len(pool.ids) - len(pairs):
        out.notes.append(f"{rest:,} reports without findings or impression left out")
    sections = {
        "findings": [pool.findings[i] for i in pairs],
        "impression": [pool.impressions[i] for i in pairs],
    }
    labels = pool.findings_present()
    labelled = labels.known[pairs]
    if not labelled.all():
        out.notes.append(f"nDCG: {int((~labelled).sum()):,} pairs without labels in {labels.source} left out")
    for source, target in (("findings", "impression"), ("impression", "findings")):
        group = f"{source}→{target}"
        queries, gallery, own = _both_ways(
            out, group, sections[source], sections[target], pool.tokens, encoder, settings, sure, show
        )
        rows = np.flatnonzero(labelled)
        if not len(rows):
            continue
        mine = labels.present[pairs][rows]
        scores = m.label_jaccard_ndcg(queries[rows], gallery, own[rows], mine, mine, settings.retrieval.k)
        out.add(f"retrieval.ndcg@{settings.retrieval.k}", group, sure.mean(scores))
        abnormal = scores[mine.any(axis=1)]
        out.add(f"retrieval.ndcg_abnormal@{settings.retrieval.k}", group, sure.mean(abnormal))
    out.notes.append(f"labels: {labels.source}")
    if figure := tsne(pool, pairs, encoder, settings, show):
        out.figures["tsne"] = figure


def _both_ways(
    out: Outcome,
    group: str,
    asked: list[str],
    wanted: list[str],
    tokens: int,
    encoder: Encoder,
    settings: EvaluateFile,
    sure: Sure,
    show: Show,
) -> tuple[Vectors, Vectors, Ints]:
    """Add recall and MRR, strict and with equal texts as hits.

    Returns:
        The queries' vectors, those of the distinct wanted texts, and the number of each query's own text.
    """
    texts, own, counts = distinct(wanted)
    queries = encoder.vectors(asked, tokens, show)
    gallery = encoder.vectors(texts, tokens, show)
    # Equal: the same but for case, white space or a closing full stop, as in radgen's splits.
    _, equal, _ = distinct([normalise(text) for text in texts])
    for name, groups in (("", None), ("_equal", equal)):
        found = m.ranks(queries, gallery, own, counts, equal=groups)
        for k in settings.retrieval.recall:
            out.add(f"retrieval.recall{name}@{k}", group, sure.mean(found.hits(k)))
        k = settings.retrieval.k
        out.add(f"retrieval.mrr{name}@{k}", group, sure.mean(found.reciprocal(k)))
    return queries, gallery, own


def tsne(
    pool: Pool, pairs: Ints, encoder: Encoder, settings: EvaluateFile, show: Show
) -> dict[str, Any] | None:
    """Return the map of findings sections with one of the settings' labels alone (figure 9)."""
    from sklearn.manifold import TSNE

    labels = pool.colours()
    columns = [labels.names.index(name) for name in settings.tsne.labels if name in labels.names]
    present = labels.present[pairs][:, columns]
    chosen = np.flatnonzero(present.sum(axis=1) == 1)
    if len(chosen) > settings.sample.tsne:
        rng = np.random.default_rng(settings.seed)
        chosen = np.sort(rng.choice(chosen, settings.sample.tsne, replace=False))
    if len(chosen) <= 3 * settings.tsne.perplexity:
        return None
    vectors = encoder.vectors([pool.findings[pairs[i]] for i in chosen], pool.tokens, show)
    made = TSNE(perplexity=settings.tsne.perplexity, metric="cosine", init="pca", random_state=settings.seed)
    points = made.fit_transform(vectors)
    names = [labels.names[column] for column in columns]
    return {
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "label": [names[int(row.argmax())] for row in present[chosen]],
    }


def queries(pool: Pool, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show) -> Outcome:
    """Judge short queries over the findings sections (paper §3.1, §3.2.2)."""
    chosen = np.flatnonzero([bool(text) for text in pool.findings])
    options = settings.queries
    if len(chosen) < options.k:
        raise SkippedError(f"{pool.path.name}: fewer than {options.k} reports have findings")
    states = [pool.states[i][0] for i in chosen]
    gallery = encoder.vectors([pool.findings[i] for i in chosen], pool.tokens, show)
    out = Outcome(notes=[f"gallery: {len(chosen):,} findings sections; what they state is read by the rules"])
    asked = [query.text for query in (*options.findings, *options.sides)]
    nearest, _ = m.top(encoder.vectors(asked, pool.tokens, show), gallery, options.k)
    precision, contradiction, side = [], [], []
    for query, found in zip(options.findings, nearest, strict=False):
        status = [status_of(state, query.findings, settings.labels) for state in states]
        if PRESENT not in status:
            for name in ("precision", "contradiction"):
                out.missing(f"queries.{name}@{options.k}", query.text, "no report states it")
            continue
        top = np.array([status[i] for i in found])
        precision.append(_one(out, f"queries.precision@{options.k}", query.text, top == PRESENT))
        contradiction.append(_one(out, f"queries.contradiction@{options.k}", query.text, top == ABSENT))
    for query, found in zip(options.sides, nearest[len(options.findings) :], strict=True):
        sides = [sides_of(state, query) for state in states]
        if not any(query.side in given for given in sides):
            out.missing(f"queries.wrong_side@{options.k}", query.text, "no report states it on that side")
            continue
        wrong = np.array([sides[i] == {_OTHER[query.side]} for i in found])
        side.append(_one(out, f"queries.wrong_side@{options.k}", query.text, wrong))
    for name, values in (("precision", precision), ("contradiction", contradiction), ("wrong_side", side)):
        out.add(f"queries.{name}@{options.k}", "", sure.mean(values))
    return out


def _one(out: Outcome, measure: str, group: str, hits: NDArray[Any]) -> float:
    out.add(measure, group, float(hits.mean()), len(hits))
    return float(hits.mean())


def sides_of(states: Sequence[State], query: SideQuery) -> set[str]:
    """Return the sides on which states give a query's findings as present."""
    return {
        str(state["laterality"])
        for state in states
        if state["finding"] in query.findings
        and state.get("presence") == "present"
        and state.get("laterality")
    }
