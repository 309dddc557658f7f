"""Agreement of two states of one finding, attribute by attribute (spec §4), in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from radgen.ontology.distance import graded
from radgen.ontology.finding import Certainty
from radgen.ontology.radsim import PRESENCES, Attribute, Policy

State = Mapping[str, Any]
#: Fields of a place that are either equal or not.
PLACES = ("anatomy", "segment", "level", "axial_distribution")
#: Ordinal fields that are part of morphology.
SHAPES = ("density", "margin", "distribution")
_LEVELS: dict[str, tuple[str, ...]] = {
    "severity": ("trace", "mild", "moderate", "severe"),
    "density": ("ground_glass", "part_solid", "solid", "calcified"),
    "margin": ("smooth", "lobulated", "ill_defined", "spiculated"),
    "distribution": ("focal", "multifocal", "diffuse"),
    "certainty": ("cannot_exclude", "possible", "probable", "definite"),
}


@dataclass(frozen=True)
class Term:
    """One attribute of a score: its weight, its agreement, and how each side says it."""

    attribute: Attribute
    weight: float
    agreement: float
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Pair:
    """Two matched states: the terms of their agreement."""

    terms: tuple[Term, ...]

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return sum(term.weight for term in self.terms)

    @property
    def total(self) -> float:
        """Sum of weight times agreement."""
        return sum(term.weight * term.agreement for term in self.terms)


def level(name: str, value: str) -> float:
    """Return the place of a value on its ordinal axis (spec §1), from 0."""
    return float(_LEVELS[name].index(value))


def size_of(state: State) -> float | None:
    """Return the size in millimetres: the longest current dimension, or the middle of a range."""
    if state.get("size_mm") is not None:
        return float(state["size_mm"])
    if state.get("size_dims_mm"):
        return float(max(state["size_dims_mm"]))
    if state.get("size_range_mm"):
        return float(sum(state["size_range_mm"]) / len(state["size_range_mm"]))
    return None


def severity_of(state: State) -> float | None:
    """Return the severity as a level; "mild to moderate" lies between two."""
    if state.get("severity") is None:
        return None
    top = level("severity", state["severity"])
    least = state.get("severity_min")
    return (top + level("severity", least)) / 2 if least is not None else top


def rank_of(policy: Policy, state: State) -> float | None:
    """Return the craniocaudal rank of zone or lobe, 0 at the top."""
    anatomy = policy.ontology.anatomy
    if state.get("zone") is not None:
        return float(anatomy.zones[state["zone"]].rank)
    if state.get("lobe") is not None:
        return float(anatomy.lobes[state["lobe"]].rank)
    return None


def size_agreement(a: float, b: float) -> float:
    """Return eq. (2): ``1 - 2 |a - b| / max(a, b)``.

    >>> round(size_agreement(8, 12), 6)
    0.333333
    """
    return 1.0 - 2.0 * abs(a - b) / max(a, b)


def side_agreement(policy: Policy, a: str, b: str) -> float:
    """Return the agreement of two sides."""
    table = policy.constants.laterality
    if a == b:
        return table["same"]
    if "midline" in (a, b):
        return table["midline"]
    return table["bilateral"] if "bilateral" in (a, b) else table["opposite"]


def presence_of(state: State) -> str:
    """Return the presence, ``unstated`` if there is none."""
    return state.get("presence") or "unstated"


def presence_agreement(policy: Policy, a: str, b: str) -> float:
    """Return the agreement of two presences, restricted negations aside."""
    first, second = sorted((a, b), key=PRESENCES.index)
    return policy.constants.presence[f"{first}-{second}"]


def compare(policy: Policy, a: State, b: State) -> Pair:
    """Return the terms of two states of one finding, or of two findings of one continuum."""
    constants = policy.constants
    pa, pb = presence_of(a), presence_of(b)
    presence = presence_agreement(policy, pa, pb)
    values: dict[Attribute, float] = {
        name: _agree(policy, name, a, b) for name in constants.weights if name != "presence"
    }
    denied = (pa == "absent") != (pb == "absent")
    if denied and {pa, pb} == {"present", "absent"}:
        presence = _denial(policy, a, b, values, presence)
    if a["finding"] != b["finding"]:
        presence *= constants.continua[policy.continuum[a["finding"]]].agreement
    terms = [Term("presence", constants.weights["presence"], presence, pa, pb)]
    for name, weight in constants.weights.items():
        if name == "presence":
            continue
        stated = (_say(name, a), _say(name, b))
        if stated == (None, None):
            # A denied finding has no size, side or severity: only what one of the two states is compared.
            if "absent" in (pa, pb) or name in constants.leave_when_unstated:
                continue
            agreement = 1.0
        else:
            agreement = presence if denied else values[name]
        terms.append(Term(name, weight, agreement, *stated))
    return Pair(tuple(terms))


def _denial(policy: Policy, a: State, b: State, values: Mapping[Attribute, float], presence: float) -> float:
    """Return the agreement of a denial and what it meets: only the denied variant is contradicted."""
    denial, other = (a, b) if a.get("presence") == "absent" else (b, a)
    known, excluded = True, False
    for name, value in values.items():
        if name == "certainty" or _say(name, denial) is None:
            continue
        if not _comparable(policy, name, a, b):
            known = False
        elif value <= 0:
            excluded = True
    for field in ("acuity", "temporal_change"):
        if denial.get(field) is None or denial[field] == "resolved":
            continue
        if other.get(field) in (None, "resolved"):
            known = False
        elif other[field] != denial[field]:
            excluded = True
    if excluded:
        return policy.constants.restricted.other_variant
    return presence if known else policy.constants.restricted.unknown


def _comparable(policy: Policy, name: Attribute, a: State, b: State) -> bool:
    """Whether both sides state something of an attribute that can be compared."""
    if name == "spatial":
        return bool(_place_parts(policy, a, b))
    if name == "morphology":
        return bool(_shape_parts(policy, a, b))
    return _say(name, a) is not None and _say(name, b) is not None


def _say(name: Attribute, state: State) -> str | None:
    """Return how a state states an attribute, for people; None where it does not."""
    if name == "size":
        size = size_of(state)
        return None if size is None else f"{size:g} mm"
    if name == "severity":
        words = [state.get("severity_min"), state.get("severity")]
        return " to ".join(word for word in words if word) if words[1] else None
    if name == "spatial":
        found = [state.get(field) for field in ("zone", "lobe", *PLACES)]
        return ", ".join(str(value) for value in found if value is not None) or None
    if name == "morphology":
        found = [state.get(field) for field in SHAPES]
        words = [str(value) for value in found if value is not None] + sorted(state.get("morphology") or [])
        return ", ".join(words) or None
    value = state.get(name)
    return None if value is None else str(value)


def _agree(policy: Policy, name: Attribute, a: State, b: State) -> float:
    """Return the agreement of an attribute that at least one side states; 1 where neither does."""
    constants = policy.constants
    if name == "spatial":
        parts = _place_parts(policy, a, b)
        if parts:
            return sum(parts) / len(parts)
    elif name == "morphology":
        parts = _shape_parts(policy, a, b)
        if parts:
            return sum(parts) / len(parts)
    elif name == "size":
        x, y = size_of(a), size_of(b)
        if x is not None and y is not None:
            return size_agreement(x, y)
    elif name == "severity":
        x, y = severity_of(a), severity_of(b)
        if x is not None and y is not None:
            return graded(x - y, constants.sigma["severity"])
    elif name == "laterality":
        if a.get("laterality") is not None and b.get("laterality") is not None:
            return side_agreement(policy, a["laterality"], b["laterality"])
    elif name == "certainty":
        hedges: list[Certainty] = [h for h in (a.get("certainty"), b.get("certainty")) if h is not None]
        if len(hedges) == 2:
            return graded(
                level("certainty", hedges[0]) - level("certainty", hedges[1]), constants.sigma["certainty"]
            )
        if hedges:
            return constants.hedged[hedges[0]]
    if _say(name, a) is None and _say(name, b) is None:
        return 1.0
    return constants.one_sided[name]  # type: ignore[index]  # presence does not come here


def _place_parts(policy: Policy, a: State, b: State) -> list[float]:
    """Return the agreements of the parts of a place that both sides state."""
    constants = policy.constants
    parts = []
    x, y = rank_of(policy, a), rank_of(policy, b)
    if x is not None and y is not None:
        parts.append(graded(x - y, constants.sigma["spatial"]))
    for name in PLACES:
        if a.get(name) is not None and b.get(name) is not None:
            same = str(a[name]).casefold() == str(b[name]).casefold()
            parts.append(1.0 if same else constants.different_place)
    return parts


def _shape_parts(policy: Policy, a: State, b: State) -> list[float]:
    """Return the agreements of the parts of morphology that both sides state."""
    sigma = policy.constants.sigma["morphology"]
    parts = [
        graded(level(name, a[name]) - level(name, b[name]), sigma)
        for name in SHAPES
        if a.get(name) is not None and b.get(name) is not None
    ]
    x, y = set(a.get("morphology") or ()), set(b.get("morphology") or ())
    if x and y:
        parts.append(2.0 * len(x & y) / len(x | y) - 1.0)
    return parts
