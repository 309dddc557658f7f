"""The hierarchy of a report by rules: second order, third order and synthesis with their conclusions.

Everything is a function of the report's evidence, its id and the rule base: the wording is drawn by a hash of
the id. Attributes of a conclusion come from the findings that it rests on, by the rules of ``record``: no
severity, acuity or change that none of them states, no certainty above theirs, and a mechanism that no
``secondary_to`` states is possible at most.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from radgen.errors import RadgenError
from radgen.generators.radthought.evidence import Evidence
from radgen.generators.radthought.grammar import Ref
from radgen.generators.radthought.patterns import (
    Conditions,
    Item,
    Scene,
    Slot,
    compile_conditions,
    values_of,
)
from radgen.generators.radthought.phrases import Phraser
from radgen.generators.radthought.predicates import Predicate
from radgen.generators.radthought.record import CERTAINTY, Conclusion, Level, Record, firmness
from radgen.generators.radthought.settings import Kind, Pattern, RadThoughtFile, load_rules
from radgen.generators.radthought.speech import Filling, Speech, Template, compile_text
from radgen.generators.report_rules import Rules
from radgen.generators.report_settings import load_settings
from radgen.ontology.load import Ontology

BACKEND = "rules"
#: Fields that a noun phrase says whatever its detail.
_ALWAYS = ("presence", "certainty", "acuity")
_POSSIBLE = CERTAINTY.index("possible")
#: The most assignments of one rule that are looked at, and findings that one sentence collects.
_ASSIGNMENTS = 6
_COLLECTED = 3


class Rule:
    """A pattern, compiled."""

    def __init__(self, name: str, pattern: Pattern, rules: RadThoughtFile, ontology: Ontology) -> None:
        where = f"patterns.{name}"
        self.name, self.pattern = name, pattern
        self.when = compile_conditions(pattern.when, rules, ontology, f"{where}.when")
        bound = list(self.when.slots)
        self.unless = [
            compile_conditions(group.split(";"), rules, ontology, f"{where}.unless", bound, repeats=False)
            for group in pattern.unless
        ]
        also = compile_conditions(pattern.also, rules, ontology, f"{where}.also", bound)
        self.also: Conditions | None = also if pattern.also else None
        self.derived = pattern.derived if pattern.derived is not None else bound
        self.texts = [compile_text(text, bound, f"{where}.texts") for text in pattern.texts]
        for text, template in zip(pattern.texts, self.texts, strict=True):
            missing = [name for name in self.derived if name not in template.names]
            if missing and not template.lists:
                raise RadgenError(f"radthought.{where}.texts: '{text}': does not name {', '.join(missing)}")


@dataclass(slots=True)
class Candidate:
    """A rule with the findings that it holds for."""

    rule: Rule
    filling: Filling
    derived: list[Item]
    weight: float

    @property
    def key(self) -> frozenset[int]:
        """Numbers of the findings that it rests on."""
        return frozenset(item.number for item in self.derived)


class Hierarchy:
    """Derives records with one rule base; made once for each process."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.file = load_rules(ontology)
        self.phraser = Phraser(ontology, self.file)
        self.speech = Speech(self.phraser, self.file.systems)
        self.denials = Rules(ontology, load_settings(ontology))
        self.rules = [
            Rule(name, pattern, self.file, ontology) for name, pattern in self.file.patterns.items()
        ]
        significance = self.file.significance
        self.bonus = [(self._bonus(place), bonus.points) for place, bonus in enumerate(significance.bonus)]
        self.base = {
            tag: significance.findings.get(
                tag, significance.families.get(entry.family, significance.kinds.get(entry.kind, 0.0))
            )
            for tag, entry in ontology.findings.items()
        }
        self.critical = frozenset(significance.critical)
        self.levels = sorted(significance.levels.items(), key=lambda pair: pair[1])

    def record(self, identifier: str, evidence: Evidence) -> Record:
        """Return the record of a report; its evidence has at least one finding."""
        digest = hashlib.blake2b(identifier.encode(), digest_size=8, person=b"radthought")
        rng = random.Random(int.from_bytes(digest.digest()))
        predicates = evidence.predicates(self.ontology)
        first = tuple(self.phraser.sentence(rng, state) for state in evidence.states)
        scene = self.scene(evidence, predicates)
        found = list(self._candidates(scene))
        conclusions: list[Conclusion] = []
        said: dict[Level, list[str]] = {"second": [], "third": [], "synthesis": []}
        texts: set[tuple[str, int]] = set()
        for level in said:
            for candidate in self._chosen(level, found):
                template = self._template(rng, candidate, texts)
                text = self.speech.say(rng, template, candidate.filling)
                said[level].append(text)
                conclusions += self._conclusions(candidate, level, text, template)
        return Record(
            identifier, tuple(predicates), first, tuple(said["second"]), tuple(said["third"]),
            " ".join(said["synthesis"]), tuple(conclusions), BACKEND,
        )  # fmt: skip

    def _bonus(self, place: int) -> Slot:
        """Return the one variable of a bonus."""
        where = f"significance.bonus.{place}"
        conditions = compile_conditions(
            self.file.significance.bonus[place].when, self.file, self.ontology, where
        )
        if len(conditions.slots) != 1 or conditions.links:
            raise RadgenError(f"radthought.{where}: expected conditions on one finding")
        return next(iter(conditions.slots.values()))

    # --- the scene ---

    def scene(self, evidence: Evidence, predicates: Sequence[Predicate]) -> Scene:
        """Return the findings with what they matter, those that matter most first."""
        there = [state for state in evidence.states if state["presence"] != "absent"]
        of: dict[int, list[Predicate]] = {}
        for predicate in predicates:
            of.setdefault(predicate.about, []).append(predicate)
        items = []
        for number, state in enumerate(evidence.states, 1):
            entry = self.ontology.findings[state["finding"]]
            item = Item(number, state, entry.system, values_of(of[number]))
            if state["presence"] == "absent":
                item.deniable = state.get("temporal_change") is None and self.denials.may_deny(state, there)
            items.append(item)
        scene = Scene(
            items,
            frozenset((name, first + 1, second + 1) for name, first, second in evidence.relations),
        )
        for item in items:
            item.points = self._points(item)
            item.level = self._level(item)
        items.sort(key=lambda item: (-item.points, item.number))
        rank = 0
        for item in items:
            if item.presence != "absent":
                rank += 1
                item.rank = rank
        return scene

    def _points(self, item: Item) -> float:
        points = self.base[item.tag]
        if item.presence != "absent":
            points += sum(more for slot, more in self.bonus if slot.fits(item))
        certainty = item.state.get("certainty")
        return points * self.file.significance.certainty.get(str(certainty), 1.0)

    def _level(self, item: Item) -> str:
        names = [name for name, points in self.levels if item.points >= points] or [self.levels[0][0]]
        entry = self.ontology.findings[item.tag]
        if names[-1] == "critical" and not self.critical & {item.tag, entry.family, entry.system}:
            names.pop()
        return names[-1]

    # --- candidates ---

    def _candidates(self, scene: Scene) -> Iterator[Candidate]:
        normal = all(item.presence == "absent" for item in scene.items)
        for rule in self.rules:
            if rule.pattern.normal != normal or not rule.when.may_match(scene):
                continue
            seen: set[frozenset[int]] = set()
            for bound in rule.when.matches(scene):
                if any(group.any_match(scene, bound) for group in rule.unless):
                    continue
                candidate = self._candidate(rule, scene, bound)
                if candidate.key in seen:
                    continue
                seen.add(candidate.key)
                yield candidate
                if rule.also is not None or len(seen) == _ASSIGNMENTS:
                    break

    def _candidate(self, rule: Rule, scene: Scene, bound: dict[str, Item]) -> Candidate:
        collected: list[Item] = []
        if rule.also is not None:
            name = rule.also.free[0]
            for found in rule.also.matches(scene, bound):
                item = found[name]
                if item not in collected and len(collected) < _COLLECTED:
                    collected.append(item)
        filling = Filling(bound, rule.derived, collected)
        derived = filling.every()
        return Candidate(rule, filling, derived, max(item.points for item in derived))

    def _chosen(self, level: Level, found: Sequence[Candidate]) -> Iterator[Candidate]:
        """Choose the candidates of a level: kind by kind, those that matter most first."""
        used: set[int] = set()
        kinds: set[str] = set()
        for name, kind in self.file.kinds[level].items():
            if not kinds.isdisjoint(kind.unless):
                continue
            pool = [
                candidate
                for candidate in found
                if (candidate.rule.pattern.level == level and candidate.rule.pattern.kind == name)
                or (candidate.rule.pattern.level != level and candidate.rule.pattern.kind in kind.borrow)
            ]
            # A level goes on to what it has not spoken of; within that, what matters most comes first.
            pool.sort(key=lambda item: (bool(kind.borrow) and not item.key.isdisjoint(used), -item.weight))
            for candidate in self._of_kind(kind, pool, used):
                used |= candidate.key
                kinds.add(name)
                yield candidate

    @staticmethod
    def _of_kind(kind: Kind, pool: Sequence[Candidate], used: set[int]) -> Iterator[Candidate]:
        left = kind.most
        rules: set[str] = set()
        keys: set[frozenset[int]] = set()
        for candidate in pool:
            if not left:
                return
            if candidate.key in keys or (kind.fresh and not candidate.key.isdisjoint(used)):
                continue
            if candidate.rule.name in rules and candidate.key & used:
                continue
            rules.add(candidate.rule.name)
            keys.add(candidate.key)
            left -= 1
            yield candidate

    # --- sentences and conclusions ---

    @staticmethod
    def _template(rng: random.Random, candidate: Candidate, texts: set[tuple[str, int]]) -> Template:
        """Draw a text; a rule that speaks twice in a record does so in other words."""
        every = candidate.rule.texts
        places = [place for place in range(len(every)) if (candidate.rule.name, place) not in texts]
        place = rng.choice(places or range(len(every)))
        texts.add((candidate.rule.name, place))
        return every[place]

    @staticmethod
    def _conclusions(
        candidate: Candidate, level: Level, text: str, template: Template
    ) -> Iterator[Conclusion]:
        """Yield what a sentence concludes, from the findings that it names."""
        pattern = candidate.rule.pattern
        derived = candidate.derived if template.lists else candidate.derived[: len(candidate.rule.derived)]
        groups = [[item] for item in derived] if pattern.each else [derived]
        changes = {variable for variable, slot in candidate.rule.when.slots.items() if slot.changes}
        for place, group in enumerate(groups):
            lead = group[0]
            name = next((name for name, item in candidate.filling.bound.items() if item is lead), "")
            told = template.told(name, place == 0)
            if name in changes or (changes and pattern.kind == "change"):
                told |= {"temporal_change"}
            yield Conclusion(
                level=level,
                text=text,
                rule=candidate.rule.name,
                derived=tuple(str(Ref(item.number)) for item in group),
                about=lead.tag if pattern.about == "tag" else pattern.about,
                **attributes(group, pattern, told),
            )


def attributes(derived: Sequence[Item], pattern: Pattern, told: frozenset[str]) -> dict[str, Any]:
    """Return the attributes of a conclusion; severity, acuity and change are those of its first finding.

    Args:
        told: fields that the sentence says of it; what it does not say is no attribute.
    """
    lead = {name: value for name, value in derived[0].state.items() if name in told or name in _ALWAYS}
    there = [item for item in derived if item.presence != "absent"]
    if pattern.assertion == "absent" or not there:
        return {"assertion": "absent", "temporal": lead.get("temporal_change"), "acuity": lead.get("acuity")}
    firm = min(firmness(item.state) for item in derived)
    if pattern.mechanism is not None and not pattern.stated:
        firm = min(firm, _POSSIBLE)
    sure = any(item.presence == "present" for item in derived)
    levels = ["incidental", "minor", "significant", "critical"]
    level = max((item.level for item in there), key=levels.index)
    return {
        "assertion": "present" if sure else "indeterminate",
        "certainty": CERTAINTY[firm] if firm < len(CERTAINTY) else None,
        "severity": lead.get("severity"),
        "acuity": lead.get("acuity"),
        "temporal": lead.get("temporal_change"),
        "mechanism": f"{'stated' if pattern.stated else 'possible'}({pattern.mechanism})"
        if pattern.mechanism
        else None,
        "significance": pattern.significance or level,
    }
