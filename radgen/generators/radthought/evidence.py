"""From the sections of a report to its evidence: findings, numbered once each, and relations between them.

What the impression repeats is one finding with that of the findings section: it is left out where it says
less, and completes the finding where it says more and there is one finding alone that it can mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from radgen.generators.radthought.grammar import Ref
from radgen.generators.radthought.predicates import Predicate, predicates_of
from radgen.generators.radthought.settings import RelationCues
from radgen.ontology.finding import FIELDS
from radgen.ontology.load import Ontology

State = dict[str, Any]
Placed = tuple[State, tuple[int, int]]
#: A relation of two findings: its name and the indices of both (from 0).
Related = tuple[str, int, int]
_ORDER = {name: place for place, name in enumerate(FIELDS)}
_BOTH = {"left", "right"}
_NAMED = ("finding", "presence")


@dataclass
class Evidence:
    """The findings of one report, f1 first, and the relations that its text states.

    Attributes:
        states: canonical findings (§1).
        relations: names and indices, each once.
    """

    states: list[State] = field(default_factory=list)
    relations: list[Related] = field(default_factory=list)

    def predicates(self, ontology: Ontology) -> list[Predicate]:
        """Return every predicate: those of f1, of f2, …, then relations."""
        out: list[Predicate] = []
        for number, state in enumerate(self.states, 1):
            entry = ontology.findings.get(state["finding"])
            out += predicates_of(state, number, device=entry is not None and entry.kind == "device")
        for name, first, second in self.relations:
            out.append(Predicate(name, (Ref(first + 1), Ref(second + 1))))
        return out


def gather(
    sections: Mapping[str, str], placed: Mapping[str, Sequence[Placed]], cues: RelationCues
) -> Evidence:
    """Return the evidence of a report.

    Args:
        sections: text by name; the findings come first, whatever their order here.
        placed: states of each section with their spans in its text; (0, 0) where the span is not known.
    """
    evidence = Evidence()
    for name in sorted(placed, key=lambda section: section != "findings"):
        again = name != "findings"
        numbers = [_take(evidence.states, dict(state), again=again) for state, _ in placed[name]]
        spans = [span for _, span in placed[name]]
        for relation, first, second in find_relations(sections.get(name, ""), placed[name], spans, cues):
            pair = (relation, numbers[first], numbers[second])
            turned = (relation, numbers[second], numbers[first])
            known = {pair, turned} if relation in ("adjacent_to", "differential") else {pair}
            if pair[1] != pair[2] and known.isdisjoint(evidence.relations):
                evidence.relations.append(pair)
    return evidence


def _take(states: list[State], state: State, *, again: bool) -> int:
    """Add a state, or find the one that it repeats; return its index.

    Args:
        again: the section repeats what another one has said.
    """
    near = [index for index, known in enumerate(states) if _alike(known, state)]
    for index in near:
        if state == states[index]:
            return index
    if not again or state.get("presence") != "present":
        states.append(state)
        return len(states) - 1
    for index in near:
        if state.items() <= states[index].items():
            return index
    if len(near) == 1:
        merged = {**states[near[0]], **state}
        states[near[0]] = {name: merged[name] for name in sorted(merged, key=_ORDER.__getitem__)}
        return near[0]
    if state.get("laterality") == "bilateral":
        rest = {name: value for name, value in state.items() if name != "laterality"}
        sides = [index for index, known in enumerate(states) if rest.items() <= known.items()]
        if {states[index].get("laterality") for index in sides} >= _BOTH:
            return sides[0]
    states.append(state)
    return len(states) - 1


def _alike(known: State, state: State) -> bool:
    """Whether two states can be the same finding: of one name and presence, with no field that differs."""
    return all(known[name] == state[name] for name in _NAMED) and all(
        known.get(name, value) == value for name, value in state.items()
    )


def find_relations(
    text: str, placed: Sequence[Placed], spans: Sequence[tuple[int, int]], cues: RelationCues
) -> list[Related]:
    """Return the relations that a section states between findings of one sentence, in order.

    The words between two findings that follow each other decide; nothing is inferred from what they are.
    Nothing relates to a finding that is denied; a cause that is hedged is an interpretation.
    """
    found: list[Related] = []
    order = sorted(range(len(spans)), key=lambda index: (spans[index], index))
    order = [index for index in order if spans[index][1] > 0]
    for first, second in pairwise(order):
        if "absent" in (placed[first][0].get("presence"), placed[second][0].get("presence")):
            continue
        relation = _between(text, spans[first], spans[second], cues)
        if relation is not None:
            name, turned = relation
            if name == "secondary_to" and _hedged(text, spans[first], spans[second], placed[second], cues):
                name, turned = "suggestive_of", False
            pair = (second, first) if turned else (first, second)
            found.append((name, *pair))
    suggested = {(a, b) for name, a, b in found if name == "suggestive_of"}
    for name, a, b in list(found):  # "an opacity may represent a or b" suggests both
        if name == "differential":
            found += [("suggestive_of", of, b) for of, what in sorted(suggested) if what == a]
    return found


def _hedged(
    text: str, first: tuple[int, int], second: tuple[int, int], of: Placed, cues: RelationCues
) -> bool:
    """Whether a cause is only considered: "possibly related to"."""
    words = text[first[1] : max(first[1], second[1])].lower().split()
    return "certainty" in of[0] or not set(words).isdisjoint(cues.hedges)


def _between(
    text: str, first: tuple[int, int], second: tuple[int, int], cues: RelationCues
) -> tuple[str, bool] | None:
    """Return the relation that the words between two spans state, and whether it is turned round."""
    if second[0] >= first[1]:
        zone, where = text[first[1] : second[1]], "in"
    elif second[1] > first[1]:
        zone, where = text[first[1] : second[1]], "start"
    else:
        zone, where = text[first[0] : second[0]], "end"
    if len(zone) > cues.longest or any(mark in zone for mark in (". ", ".\n", ";", "\n\n", ":")):
        return None
    words = tuple(zone.lower().replace(",", " , ").split())
    for cue in cues.ordered:
        if where != "in" and cue.name != "differential":
            continue
        at = _find(words, cue.words, where)
        if at is None or (at > 0 and words[at - 1] in cues.negations):
            continue
        after = at + len(cue.words)
        if after >= len(words) or words[after].rstrip(".") not in cues.not_before:
            return cue.name, cue.turned
    return None


def _find(words: tuple[str, ...], wanted: tuple[str, ...], where: str) -> int | None:
    size = len(wanted)
    if where == "start":
        return 0 if words[:size] == wanted else None
    if where == "end":
        return len(words) - size if words[-size:] == wanted else None
    for at in range(len(words) - size + 1):
        if words[at : at + size] == wanted:
            return at
    return None
