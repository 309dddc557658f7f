"""Suites over the judging sets: contrasts, crossaxis, probe."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from radgen.ontology.load import Ontology
from radgen.train import measures as m
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.geometry import failures, levels, zones
from radgen.train.evaluate.judging_sets import JudgingSet, Row
from radgen.train.evaluate.outcome import Outcome, Sure
from radgen.train.evaluate.settings import EvaluateFile
from radgen.train.measures import Interval
from radgen.train.measures.ordering import Vectors

Show = Callable[[int], None]


def columns(
    made: JudgingSet, names: tuple[str, ...], encoder: Encoder, tokens: int, show: Show
) -> list[Vectors]:
    """Return the vectors of text columns, shape (rows, d) each."""
    texts = [row[name] for name in names for row in made.rows]
    vectors = encoder.vectors(texts, tokens, show)
    return list(vectors.reshape(len(names), len(made.rows), -1))


def contrasts(
    made: JudgingSet,
    encoder: Encoder,
    settings: EvaluateFile,
    ontology: Ontology,
    sure: Sure,
    show: Show,
) -> Outcome:
    """Judge Contrast-10: ordering accuracy an axis, figures 6 and 7, the misordered triplets."""
    anchor, positive, negative = columns(
        made, ("anchor", "positive", "negative"), encoder, settings.tokens.judging, show
    )
    right = m.ordered(anchor, positive, negative)
    out = Outcome(notes=made.notes)
    axes = made.by("axis")
    out.add("contrasts.accuracy", "", mean_of_groups([right[rows] for rows in axes.values()], sure))
    for axis, rows in axes.items():
        out.add("contrasts.accuracy", axis, sure.mean(right[rows]))
    near, far = m.cosines(anchor, positive), m.cosines(anchor, negative)
    out.figures["levels"] = levels(made.rows, near, far, settings.contrasts, ontology)
    out.figures["zones"] = zones(made.rows, near, far, ontology, sure)
    out.figures["failures"] = failures(made.rows, near, far, settings.contrasts.failures)
    out.figures["failure_counts"] = {axis: int((~right[rows]).sum()) for axis, rows in axes.items()}
    return out


def mean_of_groups(groups: list[Any], sure: Sure) -> Interval:
    """Return the mean of the groups' means, each weighing the same, with its bootstrap interval.

    Args:
        groups: true or false for each row: a bootstrap of these is a binomial draw.
    """
    found = [group for group in groups if len(group)]
    if not found:
        return Interval(float("nan"), float("nan"), float("nan"), 0)
    rng = np.random.default_rng(sure.seed)
    means = [float(np.mean(group)) for group in found]
    sizes = [len(group) for group in found]
    drawn = (rng.binomial(sizes, means, (sure.repeats, len(found))) / sizes).mean(axis=1)
    tail = 100 * (1 - sure.confidence) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Interval(float(np.mean(means)), float(low), float(high), sum(sizes))


def crossaxis(
    made: JudgingSet, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show
) -> Outcome:
    """Judge CrossAxis-8: Spearman of cosine and target, side-flip response (plain and matched), figure 8."""
    first, second = columns(made, ("sentence1", "sentence2"), encoder, settings.tokens.judging, show)
    cosine = m.cosines(first, second)
    target = np.array([float(row["score"]) for row in made.rows])
    relation = np.array([row.get("side_relation") or "" for row in made.rows])
    strata = [_stratum(row) for row in made.rows]
    out = Outcome(notes=made.notes)
    combinations = made.by("combination")
    groups = {"": list(range(len(made.rows))), **combinations}

    def correlation(rows: np.ndarray[Any, Any], of: np.ndarray[Any, Any]) -> float:
        return m.spearman(cosine[of[rows]], target[of[rows]])

    def flip(rows: np.ndarray[Any, Any], of: np.ndarray[Any, Any]) -> float:
        return m.side_flip_response(cosine[of[rows]], relation[of[rows]].tolist())

    def matched(rows: np.ndarray[Any, Any], of: np.ndarray[Any, Any]) -> float:
        at = of[rows]
        return m.matched_side_flip_response(cosine[at], relation[at].tolist(), [strata[i] for i in at])

    for group, numbers in groups.items():
        of = np.array(numbers, np.int64)
        out.add("crossaxis.spearman", group, _interval(correlation, of, sure))
    sides: dict[str, Any] = {}
    for group, numbers in groups.items():
        of = np.array(numbers, np.int64)
        if not (relation[of] != "").any():
            continue
        out.add("crossaxis.side_flip", group, _interval(flip, of, sure))
        out.add("crossaxis.matched_side_flip", group, _interval(matched, of, sure))
        if group:
            sides[group] = _sides(cosine[of], relation[of])
    out.figures["sides"] = sides
    return out


def _stratum(row: Row) -> Hashable:
    """Return how far apart a pair is in the attributes that are not the side, to a whole unit."""
    found = row.get("distances") or {}
    return row.get("combination"), *(round(found[name]) for name in sorted(found))


def _interval(statistic: Callable[..., float], of: np.ndarray[Any, Any], sure: Sure) -> Interval:
    return m.interval_of(
        lambda rows: statistic(rows, of),
        len(of),
        repeats=sure.repeats,
        confidence=sure.confidence,
        seed=sure.seed,
    )


def _sides(cosine: np.ndarray[Any, Any], relation: np.ndarray[Any, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in ("same", "opposite", "bilateral"):
        mine = cosine[relation == name]
        out[name] = float(mine.mean()) if len(mine) else None
        out[f"n_{name}"] = len(mine)
    return out


def probe(made: JudgingSet, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show) -> Outcome:
    """Judge Probe-13: match and ordinal accuracy a group."""
    vectors = columns(made, ("anchor", "positive", "negative"), encoder, settings.tokens.judging, show)
    right = m.ordered(*vectors)
    out = Outcome(notes=made.notes)
    kinds = np.array([row.get("kind") for row in made.rows])
    for kind in ("match", "ordinal"):
        groups = {
            axis: right[[number for number in rows if kinds[number] == kind]]
            for axis, rows in made.by("axis").items()
        }
        groups = {axis: found for axis, found in groups.items() if len(found)}
        out.add(f"probe.{kind}", "", mean_of_groups(list(groups.values()), sure))
        for axis, found in groups.items():
            out.add(f"probe.{kind}", axis, sure.mean(found))
    return out
