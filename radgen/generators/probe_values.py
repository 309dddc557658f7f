"""Which states the three texts of a Probe-13 row state, and what their targets are."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from radgen.generators.probe_file import Group, ProbeFile
from radgen.ontology.distance import axis_target, finding_target, rank
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Term

State = dict[str, Any]
SIDES = ("left", "right")


@dataclass(frozen=True)
class Option:
    """The states of one row, their targets, and the names that each text may use for its finding."""

    anchor: State
    positive: State
    negative: State
    positive_target: float
    negative_target: float
    names: tuple[Sequence[Term], Sequence[Term], Sequence[Term]]
    varying: tuple[str, ...]


def option_key(name: str, option: Option) -> Any:
    """Return what the rows of a group are spread evenly over."""
    a, p, n = option.anchor, option.positive, option.negative
    if name == "size":
        return round(a["size_mm"] / n["size_mm"] > 1)
    if name == "synonym":
        return a["finding"], n["finding"]
    if name in ("location", "zone"):
        return tuple(
            (a["laterality"] == one["laterality"], a.get("zone"), one.get("zone"), "lobe" in one)
            for one in (p, n)
        )
    fields = option.varying
    return tuple(str([one.get(field) for field in fields]) for one in (a, p, n))


def options(
    ontology: Ontology, probe: ProbeFile, name: str, tag: str, kind: str, rng: random.Random
) -> list[Option]:
    """Return the rows that can be made of one finding in one context, all targets far enough apart."""
    if name == "synonym":
        return list(_synonyms(ontology, probe, tag, rng))
    group: Group = getattr(probe, name)
    base: State = {"finding": tag, "presence": "present", **_context(ontology, group, tag, rng)}
    if name == "zone":
        base["laterality"] = rng.choice(["left", "right", "bilateral"])
    states = [{**base, **value} for value in _values(ontology, group, name, tag, rng)]
    names = probe.names[tag]
    varying = _varying(ontology, name)
    out = []
    gap = ontology.axes.min_target_gap - 1e-9
    targets = [[_target(ontology, name, a, b) for b in states] for a in states]
    for a, p, n in itertools.product(range(len(states)), repeat=3):
        near, far = targets[a][p], targets[a][n]
        if n in (a, p) or (kind == "match") != (a == p) or near - far < gap:
            continue
        anchor, positive, negative = states[a], states[p], states[n]
        if name == "size" and not _sizes_suit(group, kind, anchor, positive, negative):
            continue
        out.append(Option(anchor, positive, negative, near, far, (names, names, names), varying))
    return out


def _varying(ontology: Ontology, name: str) -> tuple[str, ...]:
    return ("zone",) if name == "zone" else tuple(ontology.axis(name).fields)


def _target(ontology: Ontology, name: str, a: State, b: State) -> float:
    axis = ontology.axis("location" if name == "zone" else name)
    return axis_target(axis, ontology.anatomy, a, b)


def _sizes_suit(group: Group, kind: str, a: State, p: State, n: State) -> bool:
    def ratio(other: State) -> float:
        return math.exp(abs(math.log(a["size_mm"] / other["size_mm"])))

    far = group.far[0] <= ratio(n) <= group.far[1]
    return far and (kind == "match" or group.near[0] <= ratio(p) <= group.near[1])


def _context(ontology: Ontology, group: Group, tag: str, rng: random.Random) -> State:
    """Draw a place that the finding can have, of a kind that the group allows."""
    axes = ontology.findings[tag].axes
    kinds = ["none"]
    if "laterality" in axes and "side" in group.places:
        kinds.append("side")
    if "location" in axes and "lobe" in group.places and any(s.lobes for _, s in ontology.sites(tag)):
        kinds.append("lobe")
    kind = rng.choice(kinds)
    if kind == "none":
        return {}
    side = rng.choice(SIDES)
    if kind == "side":
        return {"laterality": side}
    lobes = [lobe for lobe, entry in ontology.anatomy.lobes.items() if side in entry.sides]
    return {"laterality": side, "lobe": rng.choice(lobes)}


def _values(ontology: Ontology, group: Group, name: str, tag: str, rng: random.Random) -> list[State]:
    """Return the values of the axis that the finding is said with."""
    entry = ontology.findings[tag]
    if name == "presence":
        return [{"presence": "present"}, {"presence": "absent"}]
    if name == "size":
        low, high = entry.size_mm or [0.0, 0.0]
        return [{"size_mm": float(size)} for size in group.sizes if low <= size <= high]
    if name == "count":
        if rng.random() < 0.5:
            top = entry.max_count or 0
            return [{"count": number} for number in ontology.axis("count").integers if number <= top]
        words = ontology.axis("count").levels
        return [
            {"count_category": word} for word in words if word != "innumerable" or tag in group.innumerable
        ]
    if name == "laterality":
        return [{"laterality": side} for side in ontology.axis("laterality").levels]
    if name == "zone":
        return [{"zone": zone} for zone in ontology.anatomy.zones]
    if name == "location":
        return _places(ontology, rng)
    levels = list(entry.levels_on(name, ontology.axis(name).levels))
    levels = [level for level in levels if tag not in group.skip.get(level, [])]
    return [{name: level, **_implied(name, level)} for level in levels]


def _implied(name: str, level: str) -> State:
    """Return the presence that a level implies (spec §1)."""
    if name == "temporal_change" and level == "resolved":
        return {"presence": "absent"}
    if name == "certainty" and level == "cannot_exclude":
        return {"presence": "indeterminate"}
    return {}


def _places(ontology: Ontology, rng: random.Random) -> list[State]:
    """Return places of one kind: lobes or zones, on either side and on both."""
    if rng.random() < 0.5:
        places = [
            {"laterality": side, "lobe": lobe}
            for lobe, entry in ontology.anatomy.lobes.items()
            for side in entry.sides
        ]
    else:
        sides = (*SIDES, "bilateral")
        places = [{"laterality": side, "zone": zone} for zone in ontology.anatomy.zones for side in sides]
    rng.shuffle(places)
    return sorted(places[:6], key=lambda place: (rank(ontology.anatomy, place), place["laterality"]))


def _synonyms(ontology: Ontology, probe: ProbeFile, tag: str, rng: random.Random) -> Iterator[Option]:
    """Yield rows that name a finding twice by different names, and another disease."""
    table = probe.synonym.findings
    first, *rest = rng.sample(table[tag].names, len(table[tag].names))
    axis = ontology.axis("finding")
    state = {"finding": tag, "presence": "present"}
    for other in table[tag].others:
        yield Option(
            state,
            dict(state),
            {"finding": other, "presence": "present"},
            finding_target(axis, "same"),
            finding_target(axis, ontology.relation(tag, other)),
            ([first], rest, table[other].names),
            ("finding",),
        )
