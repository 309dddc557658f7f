"""The shape of the space on single axes: the paper's figures 6 and 7, and the misordered triplets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.errors import RadgenError
from radgen.ontology.distance import rank
from radgen.ontology.load import Ontology
from radgen.train.evaluate.outcome import Sure
from radgen.train.evaluate.settings import ContrastSettings

Row = dict[str, Any]
Floats = NDArray[np.float64]


def _pairs(
    rows: Sequence[Row], axis: str, near: Floats, far: Floats
) -> Iterator[tuple[dict[str, Any], dict[str, Any], float]]:
    """Yield (state, state, cosine) of anchor and positive, and of anchor and negative, of one axis's rows."""
    for number, row in enumerate(rows):
        if row["axis"] == axis and row.get("anchor_state"):
            yield row["anchor_state"], row["positive_state"], float(near[number])
            yield row["anchor_state"], row["negative_state"], float(far[number])


def levels(
    rows: Sequence[Row], near: Floats, far: Floats, settings: ContrastSettings, ontology: Ontology
) -> dict[str, Any]:
    """Return for each axis the mean cosine of descriptions that differ in their level alone (figure 6).

    Args:
        near, far: cosine of anchor and positive, of anchor and negative; shape (rows,).

    Returns:
        By axis: ``levels``, ``matrix`` (null where there is no pair), ``n`` (pairs). Counts are two
        matrices: by word (``count``) and by number (``count_number``).
    """
    out = {}
    for name in settings.matrices:
        axis = ontology.axis(name)
        if axis.kind == "ordinal":
            out[name] = _matrix(_pairs(rows, name, near, far), axis.fields[0], axis.levels)
        elif axis.kind == "log_ratio":
            words = sorted(axis.values, key=lambda word: axis.values[word])
            numbers = [str(number) for number in range(1, settings.most_count + 1)]
            out[name] = _matrix(_pairs(rows, name, near, far), axis.fields[-1], words)
            out[f"{name}_number"] = _matrix(_pairs(rows, name, near, far), axis.fields[0], numbers)
    return {name: found for name, found in out.items() if found}


def _matrix(
    pairs: Iterator[tuple[dict[str, Any], dict[str, Any], float]], column: str, names: Sequence[str]
) -> dict[str, Any] | None:
    place = {name: number for number, name in enumerate(names)}
    total, count = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)), np.int64)
    for a, b, cosine in pairs:
        first, second = place.get(str(a.get(column))), place.get(str(b.get(column)))
        if first is None or second is None:
            continue
        for i, j in {(first, second), (second, first)}:
            total[i, j] += cosine
            count[i, j] += 1
    if not count.any():
        return None
    matrix = [
        [float(total[i, j] / count[i, j]) if count[i, j] else None for j in range(len(names))]
        for i in range(len(names))
    ]
    return {"levels": [name.replace("_", " ") for name in names], "matrix": matrix, "n": count.tolist()}


def zones(rows: Sequence[Row], near: Floats, far: Floats, ontology: Ontology, sure: Sure) -> dict[str, Any]:
    """Return the mean cosine against the zone steps between, same finding and side (figure 7)."""
    by: dict[int, list[float]] = defaultdict(list)
    for a, b, cosine in _pairs(rows, "location", near, far):
        if a.get("laterality") != b.get("laterality"):
            continue
        try:
            by[abs(rank(ontology.anatomy, a) - rank(ontology.anatomy, b))].append(cosine)
        except (RadgenError, KeyError):  # a state without a place, or with one of another ontology
            continue
    found = [(steps, sure.mean(by[steps])) for steps in sorted(by)]
    return {
        "separation": [steps for steps, _ in found],
        "mean": [interval.value for _, interval in found],
        "low": [interval.low for _, interval in found],
        "high": [interval.high for _, interval in found],
        "n": [interval.n for _, interval in found],
    }


def failures(rows: Sequence[Row], near: Floats, far: Floats, most: int) -> list[Row]:
    """Return misordered triplets with their states, at most ``most`` an axis, the widest misses first."""
    out: list[Row] = []
    by: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        by[row["axis"]].append(number)
    kept = ("axis", "id", "anchor", "positive", "negative")
    states = ("anchor_state", "positive_state", "negative_state", "positive_target", "negative_target")
    for numbers in by.values():
        wrong = [number for number in numbers if near[number] <= far[number]]
        wrong.sort(key=lambda number: (round(float(near[number] - far[number]), 6), rows[number]["id"]))
        for number in wrong[:most]:
            row = {key: rows[number][key] for key in kept}
            row |= {key: rows[number].get(key) for key in states}
            out.append(row | {"cos_positive": float(near[number]), "cos_negative": float(far[number])})
    return out
