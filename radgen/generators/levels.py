"""What varies: for each axis, triples (anchor, positive, negative) of values far enough apart."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from radgen.generators.contexts import Fields, count_words, lobes, second_dimension, sizes, zones
from radgen.ontology.distance import axis_target
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Axis

Triple = tuple[int, int, int]
#: Places that one block of the location axis speaks of.
PLACES = 8


def ordinal_values(ontology: Ontology, tag: str, axis: str) -> list[Fields]:
    """Return the values a finding can take on an ordinal axis, with the presence that each implies (§1)."""
    entry = ontology.findings[tag]
    levels: Sequence[str] = ontology.axis(axis).levels
    levels = entry.levels_on(axis, levels)
    if axis == "temporal_change":
        return [
            ((axis, level), ("presence", "absent" if level == "resolved" else "present")) for level in levels
        ]
    if axis == "certainty":
        return [
            ((axis, level), ("presence", "indeterminate" if level == "cannot_exclude" else "present"))
            for level in levels
        ]
    return [((axis, level),) for level in levels]


def values(
    ontology: Ontology,
    tag: str,
    axis: str,
    context: Mapping[str, Any],
    rng: random.Random,
    category_share: float = 0.45,
) -> list[Fields]:
    """Return the values that the target axis takes in one block: all levels, or a draw of sizes and places.

    Args:
        category_share: how often counts are categories ("a few") and not integers, where both will do.
    """
    entry = ontology.findings[tag]
    kind = ontology.axis(axis).kind
    if kind == "ordinal":
        found = ordinal_values(ontology, tag, axis)
        if axis == "temporal_change" and context.get("certainty") == "cannot_exclude":
            # what cannot be excluded is indeterminate (§1), whatever its change
            doubtful = ("presence", "indeterminate")
            found = [(change, doubtful) for change, _ in found if change[1] != "resolved"]
        return found
    if kind == "presence":
        return [(("presence", level),) for level in ontology.axis(axis).levels]
    if kind == "side":
        sides = ["left", "right", "bilateral"]
        if context.get("lobe"):
            sides = [side for side in sides if side in ontology.anatomy.lobes[context["lobe"]].sides]
        return [(("laterality", side),) for side in sides]
    if kind == "location":
        return _place_values(ontology, tag, rng)
    if axis == "count":
        axis_count = ontology.axis("count")
        words = count_words(ontology, entry)
        numbers = [n for n in axis_count.integers if n <= (entry.max_count or 0)]
        if "innumerable" in words:  # only categories reach as far
            category_share = max(category_share, 0.6)
        if len(words) > 1 and (len(numbers) < 3 or rng.random() < category_share):
            return [(("count_category", word),) for word in words]
        return [(("count", n),) for n in numbers]
    return _size_values(entry.size_mm or [3.0, 30.0], bool(context.get("dims")), rng)


def _size_values(bounds: Sequence[float], dims: bool, rng: random.Random) -> list[Fields]:
    """Six whole sizes, spread over the plausible range in log but drawn anew for each block."""
    low, high = bounds
    ratio = (high / low) ** (1 / 6)
    chosen = sorted({max(1, round(low * ratio ** (step + rng.random()))) for step in range(6)})
    out: list[Fields] = []
    for size in chosen:
        fields: Fields = (("size_mm", float(size)),)
        if dims:
            fields += (("size_dims_mm", [float(size), second_dimension(size)]),)
        out.append(fields)
    return out


def _place_values(ontology: Ontology, tag: str, rng: random.Random) -> list[Fields]:
    """Places of one kind (zones, or lobes), on one side mostly, with some on the other and on both."""
    kinds = [
        kind for kind, found in (("zone", zones(ontology, tag)), ("lobe", lobes(ontology, tag))) if found
    ]
    kind = kinds[int(rng.random() * len(kinds))]
    found: list[Fields]
    if kind == "zone":
        found = [
            (("laterality", side), ("zone", zone))
            for zone in zones(ontology, tag)
            for side in ("left", "right", "bilateral")
        ]
    else:
        found = [
            (("laterality", side), ("lobe", lobe))
            for lobe in lobes(ontology, tag)
            for side in ontology.anatomy.lobes[lobe].sides
        ]
    return rng.sample(found, min(PLACES, len(found)))


class TriplePicker:
    """Draws (anchor, positive, negative) over the values of one block.

    Level pairs of anchor and negative are drawn evenly, so that none is rare; the positive has the
    anchor's value (a *match*), or one that is nearer than the negative's (an *ordinal* triplet).
    """

    def __init__(self, ontology: Ontology, axis: str, found: Sequence[Fields]) -> None:
        self.axis = axis
        spec = ontology.axis(axis)
        states = [dict(value) for value in found]
        gap = ontology.axes.min_target_gap
        count = len(states)
        self.targets = _targets(ontology, spec, states)
        mix = ontology.axes.controlled.get(axis)
        self.match_share = ontology.axes.match_share
        groups: dict[Any, list[tuple[int, int, list[int]]]] = {}
        for a, n in itertools.permutations(range(count), 2):
            row = self.targets[a]
            far = row[n] + gap
            if row[a] < far:
                continue
            nearer = [] if mix else [p for p in range(count) if far <= row[p] < row[a] and p != a]
            groups.setdefault(self._group(ontology, states[a], states[n]) or (a, n), []).append(
                (a, n, nearer)
            )
        #: By group: anchor, negative, and the positives that are nearer than the negative.
        self.groups = list(groups.values())
        for level, times in spec.again.items():
            # Few contexts can state such a level: its pairs are drawn more often where they can.
            rare = [
                pairs
                for pairs in groups.values()
                if any(level in states[i].values() for a, n, _ in pairs for i in (a, n))
            ]
            self.groups += rare * (times - 1)
        self.weights: list[float] | None = None
        if spec.kind == "side":
            weights = dict(mix.mix if mix else {"opposite": 0.6, "bilateral": 0.4})
            self.weights = [float(weights[name]) for name in groups]
            self.total = sum(self.weights)

    def _group(self, ontology: Ontology, a: Mapping[str, Any], n: Mapping[str, Any]) -> Any:
        """What the draw is even over: pairs of ranks, or the relation of sides; None for pairs of levels."""
        spec = ontology.axis(self.axis)
        if spec.kind == "side":
            return "bilateral" if "bilateral" in (a["laterality"], n["laterality"]) else "opposite"
        if spec.kind == "location":
            return (a.get("zone") or a.get("lobe"), n.get("zone") or n.get("lobe"))
        return None

    def pick(self, rng: random.Random) -> Triple:
        """Return indices of the anchor's, positive's and negative's value; ``groups`` must not be empty."""
        draw, groups = rng.random, self.groups
        if self.weights is None:
            pairs = groups[int(draw() * len(groups))]
        else:
            ticket, place = draw() * self.total, 0
            while place < len(groups) - 1 and ticket >= self.weights[place]:
                ticket -= self.weights[place]
                place += 1
            pairs = groups[place]
        a, n, nearer = pairs[int(draw() * len(pairs)) if len(pairs) > 1 else 0]
        if not nearer or draw() < self.match_share:
            return a, a, n
        return a, nearer[int(draw() * len(nearer))], n


def _targets(ontology: Ontology, spec: Axis, states: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the target of every state against every other; it is symmetric."""
    out = [[1.0] * len(states) for _ in states]
    for a, b in itertools.combinations(range(len(states)), 2):
        out[a][b] = out[b][a] = axis_target(spec, ontology.anatomy, states[a], states[b])
    return out


__all__ = ["Triple", "TriplePicker", "ordinal_values", "sizes", "values"]
