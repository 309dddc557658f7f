"""Distances and graded targets on one axis (spec §2, §3); the numbers come from ``axes.yaml``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from radgen.errors import RadgenError
from radgen.ontology.schema import AnatomyFile, AxesFile, Axis, AxisName

State = Mapping[str, Any]


def graded(distance: float, sigma: float) -> float:
    """Return ``2 exp(-d^2 / 2 sigma^2) - 1``, in (-1, 1] (spec §2).

    >>> graded(0, 1.5), round(graded(1, 1.5), 3)
    (1.0, 0.601)
    """
    return 2.0 * math.exp(-(distance * distance) / (2.0 * sigma * sigma)) - 1.0


def rank(anatomy: AnatomyFile, state: State) -> int:
    """Return the craniocaudal rank of the zone or lobe that a state gives (0 is the top)."""
    if state.get("zone") is not None:
        return anatomy.zones[state["zone"]].rank
    if state.get("lobe") is not None:
        return anatomy.lobes[state["lobe"]].rank
    raise RadgenError("a state on the location axis gives neither zone nor lobe")


def magnitude(axis: Axis, state: State) -> float:
    """Return the size in millimetres or the count that a state gives (a category by its value)."""
    for name in axis.fields:
        value = state.get(name)
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            return axis.values[value]
    raise RadgenError(f"a state gives none of {', '.join(axis.fields)}")


def side_relation(a: str | None, b: str | None) -> str:
    """Return ``same``, ``opposite`` (left against right) or ``bilateral`` (against one side).

    Raises:
        RadgenError: for a midline or missing side against another: the recipe gives it no target.
    """
    if a == b:
        return "same"
    pair = {a, b}
    if pair == {"left", "right"}:
        return "opposite"
    if pair in ({"bilateral", "left"}, {"bilateral", "right"}):
        return "bilateral"
    raise RadgenError(f"no target is defined for side {a} against {b}")


def axis_distance(axis: Axis, anatomy: AnatomyFile, a: State, b: State) -> float | None:
    """Return the distance of two states on one axis, or None where the axis is a table of sides.

    Ordinal: levels between. Size and count: ``|log2(a/b)|``. Location: craniocaudal steps plus
    ``side_distance`` if the side differs (spec §2).
    """
    if axis.kind == "ordinal":
        name = axis.fields[0]
        return float(abs(axis.levels.index(a[name]) - axis.levels.index(b[name])))
    if axis.kind == "log_ratio":
        low, high = sorted((magnitude(axis, a), magnitude(axis, b)))
        return math.log2(high / low)  # the larger over the smaller: symmetric to the last bit
    if axis.kind == "location":
        steps = abs(rank(anatomy, a) - rank(anatomy, b))
        differs = a.get("laterality") != b.get("laterality")
        return steps + (axis.side_distance or 0.0 if differs else 0.0)
    return None


def axis_target(axis: Axis, anatomy: AnatomyFile, a: State, b: State) -> float:
    """Return the graded target of ``b`` against ``a`` on one axis (spec §2); symmetric.

    The ``finding`` axis needs the ontology's families: see :func:`finding_target`.
    """
    if axis.kind == "presence":
        return axis.targets["same" if a["presence"] == b["presence"] else "opposite"]
    distance = axis_distance(axis, anatomy, a, b)
    if distance is None:
        relation = side_relation(a.get("laterality"), b.get("laterality"))
        return axis.targets[relation]
    assert axis.sigma is not None  # checked when the ontology is loaded
    return graded(distance, axis.sigma)


def joint_parts(
    axes: AxesFile, anatomy: AnatomyFile, names: Sequence[AxisName], a: State, b: State
) -> tuple[dict[str, float], dict[str, float], str | None, float]:
    """Return what eq. (3) is made of: distances and σ by graded axis, the relation of sides, its penalty.

    The relation is None (and the penalty 0) where laterality is not one of the axes; the location axis
    has its side in its distance (spec §2, §3).
    """
    distances: dict[str, float] = {}
    sigmas: dict[str, float] = {}
    relation, penalty = None, 0.0
    for name in names:
        axis = axes.axes[name]
        distance = axis_distance(axis, anatomy, a, b)
        if distance is None:
            relation = side_relation(a.get("laterality"), b.get("laterality"))
            penalty = axes.crossaxis.side_penalty[relation]  # type: ignore[index]  # the three relations
        else:
            distances[name] = distance
            sigmas[name] = axes.crossaxis.sigma.get(name) or axis.sigma or 1.0
    return distances, sigmas, relation, penalty


def joint_target(
    axes: AxesFile, anatomy: AnatomyFile, names: Sequence[AxisName], a: State, b: State
) -> float:
    """Return eq. (3): ``clip(prod exp(-d^2 / 2 sigma^2) - side penalty, -1, 1)``; symmetric."""
    distances, sigmas, _, penalty = joint_parts(axes, anatomy, names, a, b)
    product = math.prod(
        math.exp(-(distances[name] ** 2) / (2.0 * sigmas[name] ** 2)) for name in distances
    )
    return max(-1.0, min(1.0, product - penalty))


def finding_target(axis: Axis, relation: str) -> float:
    """Return the target of one finding against another from how they are related (``axes.yaml``, further)."""
    return axis.targets[relation]
