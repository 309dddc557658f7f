"""What a synthetic report is about: which findings, and what is stated of each."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from radgen.generators.contexts import lobes, possible, second_dimension, zones
from radgen.generators.report_rules import Rules
from radgen.generators.report_settings import Settings, Usual
from radgen.ontology.finding import FIELDS
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Modality

State = dict[str, Any]
_ORDER = {name: index for index, name in enumerate(FIELDS)}
_TRIES = 12


def in_order(state: Mapping[str, Any]) -> State:
    """Return a state with its fields in the order of §1."""
    return dict(sorted(state.items(), key=lambda item: _ORDER[item[0]]))


class Choice:
    """Draws a name by weight."""

    __slots__ = ("names", "sums")

    def __init__(self, weights: Mapping[Any, float]) -> None:
        kept = {name: weight for name, weight in weights.items() if weight > 0}
        self.names = list(kept)
        self.sums = list(itertools.accumulate(kept.values()))

    def __bool__(self) -> bool:
        return bool(self.names)

    def draw(self, rng: random.Random) -> Any:
        """Return one name; there must be one."""
        return self.names[bisect.bisect_right(self.sums, rng.random() * self.sums[-1], 0, len(self.sums) - 1)]


class Describer:
    """Draws what is stated of one finding in one modality."""

    def __init__(self, ontology: Ontology, settings: Settings, tag: str, modality: Modality) -> None:
        entry = ontology.findings[tag]
        self.tag = tag
        self.entry = entry
        self.settings = settings
        self.modality = modality
        layers = [
            settings.values,
            settings.values_by_modality.get(modality),
            settings.prefer.families.get(entry.family),
            settings.prefer.findings.get(tag),
        ]
        usual = [layer for layer in layers if layer is not None]
        chances = {**settings.chances, **settings.chances_by_modality.get(modality, {})}
        for layer in usual:
            chances.update(layer.chance)
        axes = set(entry.axes)
        values = {
            "severity": entry.severities or ontology.axis("severity").levels,
            **{
                name: ontology.axis(name).levels
                for name in ("temporal_change", "certainty", "density", "margin")
            },
            "distribution": ontology.axis("distribution").levels,
        }
        self.groups: list[tuple[str, float]] = []
        self.values: dict[str, Choice] = {}
        for name, levels in values.items():
            if name in axes:
                self.values[name] = Choice(_weights(usual, name, levels))
                if self.values[name]:
                    self.groups.append((name, chances.get(name, 0.0)))
        if "count" in axes and entry.max_count:
            words = ontology.axis("count").levels
            worth = ontology.axis("count").values
            most = entry.max_count
            known = [word for word in words if worth[word] <= most or (word != "innumerable" and most >= 3)]
            self.values["count_category"] = Choice(_weights(usual, "count_category", known))
            numbers = [str(number) for number in ontology.axis("count").integers if number <= most]
            self.values["count"] = Choice(_weights(usual, "count", numbers))
            self.groups.append(("count", chances.get("count", 0.0)))
        self.bounds: tuple[float, float] | None = None
        if "size" in axes and entry.size_mm is not None:
            low = max(entry.size_mm[0], settings.size.smallest_mm[modality])
            if low < entry.size_mm[1]:
                self.bounds = (low, entry.size_mm[1])
                self.groups.append(("size", chances.get("size", 0.0)))
        self.place_chance = chances.get("place", 0.0)
        self.side = Choice(_weights(usual, "side", ["left", "right", "bilateral"]))
        found_lobes = lobes(ontology, tag) if "location" in axes else []
        found_zones = zones(ontology, tag) if "location" in axes else []
        kinds = _weights(usual, "place", ["side", "lobe", "zone"])
        self.lobe = Choice(_weights(usual, "lobe", found_lobes))
        self.zone = Choice(_weights(usual, "zone", found_zones))
        open_kinds = {"side": "laterality" in axes, "lobe": bool(self.lobe), "zone": bool(self.zone)}
        self.place = Choice({kind: weight for kind, weight in kinds.items() if open_kinds[kind]})
        self.never = [frozenset(both) for both in settings.never_together]
        self.lobe_sides = {name: set(lobe.sides) for name, lobe in ontology.anatomy.lobes.items()}

    @property
    def has_sides(self) -> bool:
        """Whether a side can be stated of it."""
        return bool(self.place)

    def describe(self, rng: random.Random, side: str | None = None) -> State:
        """Return a state; ``presence`` is what its certainty and its change imply (§1).

        Args:
            side: the side to take, if one is stated.
        """
        state: State = {"finding": self.tag, "presence": "present"}
        if self.place and (side is not None or rng.random() < self.place_chance):
            self._place(rng, state, side)
        most = self.settings.most_groups[self.modality]
        drawn = [name for name, chance in self.groups if rng.random() < chance]
        rng.shuffle(drawn)
        stated = {"location"} if "lobe" in state or "zone" in state else set()
        for name in drawn[:most]:
            if any(name in both and stated & both for both in self.never):
                continue
            before = dict(state)
            self._state(rng, state, name)
            if possible(state):
                stated.add(name)
            else:
                state = before
        if state.get("temporal_change") == "resolved":
            kept = ("finding", "presence", "laterality", "lobe", "zone", "temporal_change")
            state = {name: value for name, value in state.items() if name in kept}
            state["presence"] = "absent"
        elif state.get("certainty") == "cannot_exclude":
            state["presence"] = "indeterminate"
        return in_order(state)

    def _place(self, rng: random.Random, state: State, side: str | None) -> None:
        kind = self.place.draw(rng)
        side = side or self.side.draw(rng)
        if kind == "lobe":
            for _ in range(_TRIES):
                lobe = self.lobe.draw(rng)
                if side in self.lobe_sides[lobe]:
                    state["lobe"] = lobe
                    break
            else:
                if "side" not in self.place.names:
                    return
        elif kind == "zone":
            state["zone"] = self.zone.draw(rng)
        state["laterality"] = side

    def _state(self, rng: random.Random, state: State, name: str) -> None:
        if name == "size":
            self._size(rng, state)
        elif name == "count":
            numbers, words = self.values["count"], self.values["count_category"]
            if words and (not numbers or rng.random() < 0.6):
                state["count_category"] = words.draw(rng)
            elif numbers:
                state["count"] = int(numbers.draw(rng))
        else:
            state[name] = self.values[name].draw(rng)

    def _size(self, rng: random.Random, state: State) -> None:
        if self.bounds is None:
            return
        low, high = self.bounds
        size = float(round(low * (high / low) ** (rng.random() ** self.settings.size.skew)))
        several = state.get("count", 1) > 1 or state.get("laterality") == "bilateral"
        several = several or state.get("count_category") in ("few", "multiple", "innumerable")
        state["size_mm"] = size
        if several:
            state["size_comparator"] = "up_to"
            return
        ticket = rng.random()
        two = self.settings.size.two_dimensions_share[self.modality]
        if ticket < two and size >= 4:
            state["size_dims_mm"] = [size, second_dimension(size)]
        elif two <= ticket < two + self.settings.size.approx_share:
            state["size_comparator"] = "approx"


def _weights(layers: Iterable[Usual], name: str, allowed: Sequence[str]) -> dict[str, float]:
    """Return the weights of the allowed values; later layers win, what no layer names counts as 1."""
    out = dict.fromkeys(allowed, 1.0)
    for layer in layers:
        out.update({key: weight for key, weight in getattr(layer, name).items() if key in out})
    return out


class Drawer:
    """Draws the findings of a report, with the frequencies of the ontology, and what is stated of each."""

    def __init__(self, ontology: Ontology, settings: Settings, rules: Rules, modality: Modality) -> None:
        self.settings = settings
        self.rules = rules
        self.findings = ontology.findings
        self.modality = modality
        self.frequency = {tag: self._frequency(tag) for tag in ontology.findings}
        self.any = Choice(self.frequency)
        self.numbers = Choice(settings.number_of_findings[modality])
        self._related: dict[str, Choice] = {}
        self._describers: dict[str, Describer] = {}
        self.ontology = ontology

    def _frequency(self, tag: str) -> float:
        entry = self.findings[tag]
        if self.modality not in entry.modalities:
            return 0.0
        factors = self.settings.factors
        factor = factors.findings.get(tag, factors.families.get(entry.family, 1.0))
        if entry.frequency:
            return factor * entry.frequency.get(self.modality, 0)
        return factor * self.settings.unlisted_frequency

    def related(self, tag: str) -> Choice:
        """Return the choice of what belongs to a finding; common findings are preferred."""
        found = self._related.get(tag)
        if found is None:
            weights = {
                other: weight * self.frequency[other] ** 0.5
                for other, weight in self.rules.related(tag, self.modality).items()
            }
            found = self._related[tag] = Choice(weights)
        return found

    def describer(self, tag: str) -> Describer:
        """Return what describes a finding."""
        found = self._describers.get(tag)
        if found is None:
            found = Describer(self.ontology, self.settings, tag, self.modality)
            self._describers[tag] = found
        return found

    def draw(self, rng: random.Random) -> list[State]:
        """Return the states of a report that is not normal, in the order in which they were drawn."""
        wanted = int(self.numbers.draw(rng))
        states: list[State] = []
        for _ in range(_TRIES * wanted):
            if len(states) == wanted:
                break
            partner = None
            if states and rng.random() < self.settings.related_share:
                partner = states[int(rng.random() * len(states))]
                choice = self.related(partner["finding"])
                if not choice:
                    continue
                tag = choice.draw(rng)
            else:
                tag = self.any.draw(rng)
            if not self._fits(tag, states):
                continue
            self._add(rng, tag, states, partner)
        if all(state["presence"] == "absent" for state in states):
            return self.draw(rng)  # a resolved finding alone is no abnormal report
        return states

    def _fits(self, tag: str, states: list[State]) -> bool:
        family = self.findings[tag].family
        excluded = self.rules.excluded[tag]
        same = 0
        for state in states:
            other = state["finding"]
            if other == tag or other in excluded:
                return False
            same += self.findings[other].family == family
        return same < self.settings.most_of_a_family

    def _add(self, rng: random.Random, tag: str, states: list[State], partner: State | None) -> None:
        describer = self.describer(tag)
        side = partner.get("laterality") if partner else None
        if side is not None and not (describer.has_sides and rng.random() < self.settings.same_side_share):
            side = None
        state = describer.describe(rng, side)
        others = [other for other in states if other["presence"] != "absent"]
        if state["presence"] == "absent" and not self.rules.may_deny(state, others):
            return
        if any(other["presence"] == "absent" and not self.rules.may_deny(other, [state]) for other in states):
            return
        states.append(state)
        if describer.bounds and describer.has_sides and state["presence"] == "present":
            single = state.get("laterality") in ("left", "right") and "count" not in state
            if single and "count_category" not in state and rng.random() < self.settings.again_share:
                again = describer.describe(rng)
                where = [(s.get("laterality"), s.get("lobe"), s.get("zone")) for s in (state, again)]
                apart = again.get("laterality") in ("left", "right") and (
                    where[0][0] != where[1][0] or (where[0][1] and where[1][1] and where[0][1] != where[1][1])
                )
                counted = "count" in again or "count_category" in again
                if apart and not counted and again["presence"] == "present":
                    states.append(again)
