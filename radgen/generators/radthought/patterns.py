"""Conditions of rules over the predicates of a report, compiled once and matched many times.

A condition is a predicate whose terms may be a variable for a finding (``E``), choices (``mild|severe``,
``@group``) or a comparison (``>=8``). Besides the predicates of a record there are *(ours)*:

======================  ==============================================================================
``same_side(A,B)``      both state a side and they can be the same one (bilateral goes with each)
``same_lobe(A,B)``      both state the same lobe or zone, and ``same_side``
``near(A,B)``           ``adjacent_to`` is stated, or ``same_side`` holds
``same_system(A,B)``    of one organ system
``opposite_side(A,B)``  one is left, the other right
``other_place(A,B)``    of one finding, with sides, lobes or zones that differ
``rank(A,1)``           the finding that matters most; ``rank(A,<=3)`` one of three
======================  ==============================================================================

A variable without a condition on ``assertion`` stands for what is present. What is denied may be used only
where nothing that is present contradicts it, and different variables stand for different findings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.generators.radthought.grammar import Bound, Choice, PredicateError, Term, Variable, parse_terms
from radgen.generators.radthought.predicates import RELATIONS, SYMMETRIC, VOCABULARY, Predicate
from radgen.generators.radthought.settings import RadThoughtFile
from radgen.ontology.load import Ontology

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPPOSITE = {"left", "right"}
_PRESENT = frozenset(("present",))
_ASSERTIONS = frozenset(("present", "absent", "indeterminate"))
_BUILT_IN = ("same_side", "same_lobe", "near", "same_system", "opposite_side", "other_place", "rank")


@dataclass(slots=True, eq=False)
class Item:
    """One finding of a report while its hierarchy is made.

    Attributes:
        number: from 1.
        values: terms of its predicates by name; ``tag``, ``presence``: two of them.
        points: how much it matters; ``rank``: its place by that among what is there, from 1.
        deniable: it is denied, and nothing that is present contradicts that.
    """

    number: int
    state: Mapping[str, Any]
    system: str
    values: dict[str, list[Any]]
    tag: str = ""
    presence: str = ""
    points: float = 0.0
    level: str = "incidental"
    rank: int = 0
    deniable: bool = False

    def __post_init__(self) -> None:
        self.tag, self.presence = str(self.state["finding"]), str(self.state["presence"])


@dataclass(slots=True)
class Scene:
    """The findings of a report, and its stated relations as (name, number, number)."""

    items: list[Item]
    relations: frozenset[tuple[str, int, int]]
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.tags = frozenset(item.tag for item in self.items)


def values_of(predicates: Iterable[Predicate]) -> dict[str, list[Any]]:
    """Return the terms of the predicates of one finding by name."""
    out: dict[str, list[Any]] = {}
    for item in predicates:
        out.setdefault(item.name, []).extend(item.terms[1:])
    return out


Test = Callable[[Item], bool]
Link = Callable[[Scene, Item, Item], bool]


@dataclass(slots=True)
class Slot:
    """What one variable must be.

    Attributes:
        tags: findings that it may be, None for any.
        presences: assertions that it may have.
        tests: on its other predicates.
        asserted, changes: there is a condition on its assertion, on its change.
        resolved: the condition is that it has resolved, or a denial need not be free of contradiction.
    """

    name: str
    tags: frozenset[str] | None = None
    presences: frozenset[str] = _ASSERTIONS
    tests: list[Test] = field(default_factory=list)
    asserted: bool = False
    resolved: bool = False
    changes: bool = False

    def fits(self, item: Item) -> bool:
        """Whether a finding satisfies all that is asked of it alone."""
        if (self.tags is not None and item.tag not in self.tags) or item.presence not in self.presences:
            return False
        if item.presence == "absent" and not (item.deniable or self.resolved):
            return False
        return all(test(item) for test in self.tests)


class Conditions:
    """A conjunction of conditions.

    Args:
        bound: variables that have their finding already.
        repeats: what is denied is said again, so that nothing may contradict it; else the denial is enough.
    """

    def __init__(
        self,
        sources: Sequence[str],
        rules: RadThoughtFile,
        ontology: Ontology,
        bound: Sequence[str] = (),
        repeats: bool = True,
    ) -> None:
        self._rules, self._ontology = rules, ontology
        self.bound = tuple(bound)
        self.slots: dict[str, Slot] = {}
        self.links: list[tuple[str, str, Link]] = []
        for source in sources:
            self._add(source)
        for slot in self.slots.values():
            slot.resolved |= not repeats or slot.name in self.bound
        self.free = [name for name in self.slots if name not in self.bound]
        for name in self.free:
            if not self.slots[name].asserted:
                self.slots[name].presences = _PRESENT
        #: Links by the free variable that makes them complete; the first are those of bound variables alone.
        known = set(self.bound)
        self._steps: list[list[tuple[str, str, Link]]] = [self._complete(known)]
        for name in self.free:
            before = set(known)
            known.add(name)
            self._steps.append([link for link in self._complete(known) if link not in self._complete(before)])

    def _complete(self, known: set[str]) -> list[tuple[str, str, Link]]:
        return [link for link in self.links if {link[0], link[1]} <= known]

    # --- compiling ---

    def _add(self, source: str) -> None:
        name, terms = parse_terms(source, pattern=True)
        first = terms[0]
        if not isinstance(first, Variable):
            raise PredicateError(f"condition '{source}': expected a variable as the first term")
        slot = self.slots.setdefault(first.name, Slot(first.name))
        if name in RELATIONS or (name in _BUILT_IN and name != "rank"):
            if len(terms) != 2 or not isinstance(terms[1], Variable):
                raise PredicateError(f"condition '{source}': expected two variables")
            self.slots.setdefault(terms[1].name, Slot(terms[1].name))
            self.links.append((first.name, terms[1].name, _link(name)))
            return
        if name not in VOCABULARY and name not in _BUILT_IN:
            what = unknown("predicate", name, [*VOCABULARY, *_BUILT_IN])
            raise PredicateError(f"condition '{source}': {what}")
        if len(terms) != 2:
            raise PredicateError(f"condition '{source}': expected a variable and one value")
        if name == "finding":
            tags = self._tags(terms[1], source)
            slot.tags = tags if slot.tags is None else slot.tags & tags
        else:
            self._check_values(name, terms[1], source)
            slot.changes |= name == "change"
            slot.resolved |= terms[1] == Choice(("resolved",))
            if name == "assertion" and isinstance(terms[1], Choice):
                slot.asserted = True
                slot.presences &= frozenset(terms[1].values)
            else:
                slot.tests.append(_test(name, terms[1]))

    def _check_values(self, name: str, term: Term, source: str) -> None:
        signature = VOCABULARY.get(name)
        if isinstance(term, Variable) or (
            signature and signature.kind == "value" and isinstance(term, Bound)
        ):
            raise PredicateError(f"condition '{source}': expected a value")
        if signature and signature.values and isinstance(term, Choice):
            for value in term.values:
                if value not in signature.values:
                    raise PredicateError(f"condition '{source}': {unknown('value', value, signature.values)}")

    def _tags(self, term: Term, source: str) -> frozenset[str]:
        if not isinstance(term, Choice):
            raise PredicateError(f"condition '{source}': expected findings, families, systems or @groups")
        out: set[str] = set()
        for value in term.values:
            if value.startswith("@"):
                group = self._rules.groups.get(value[1:])
                if group is None:
                    raise PredicateError(
                        f"condition '{source}': {unknown('group', value[1:], self._rules.groups)}"
                    )
                for member in group:
                    out |= self._members(member, source)
            else:
                out |= self._members(value, source)
        return frozenset(out)

    def _members(self, name: str, source: str) -> set[str]:
        findings = self._ontology.findings
        if name in findings:
            return {name}
        found = {tag for tag, entry in findings.items() if name in (entry.family, entry.system)}
        if not found:
            known = [*findings, *self._ontology.families.families, *self._ontology.anatomy.systems]
            raise PredicateError(f"condition '{source}': {unknown('finding, family or system', name, known)}")
        return found

    # --- matching ---

    def may_match(self, scene: Scene) -> bool:
        """Whether every free variable has a finding with one of its tags (quick, not exact)."""
        for name in self.free:
            tags = self.slots[name].tags
            if tags is not None and tags.isdisjoint(scene.tags):
                return False
        return True

    def matches(self, scene: Scene, given: Mapping[str, Item] | None = None) -> Iterator[dict[str, Item]]:
        """Yield the assignments that satisfy all conditions, in the order of ``scene.items``."""
        bound = dict(given or {})
        for name in self.bound:
            slot = self.slots.get(name)
            if slot is not None and not slot.fits(bound[name]):
                return
        if self._hold(scene, bound, 0):
            yield from self._extend(scene, bound, 0)

    def any_match(self, scene: Scene, given: Mapping[str, Item] | None = None) -> bool:
        """Whether there is an assignment."""
        return self.may_match(scene) and next(self.matches(scene, given), None) is not None

    def _extend(self, scene: Scene, given: dict[str, Item], at: int) -> Iterator[dict[str, Item]]:
        if at == len(self.free):
            yield dict(given)
            return
        name = self.free[at]
        slot = self.slots[name]
        for item in scene.items:
            if slot.fits(item) and not any(item is other for other in given.values()):
                given[name] = item
                if self._hold(scene, given, at + 1):
                    yield from self._extend(scene, given, at + 1)
                del given[name]

    def _hold(self, scene: Scene, given: Mapping[str, Item], step: int) -> bool:
        return all(link(scene, given[first], given[second]) for first, second, link in self._steps[step])


def _test(name: str, term: Term) -> Test:
    if name == "rank":
        if isinstance(term, Bound):
            sign, limit = _SIGNS[term.sign], term.value
            return lambda item: item.rank > 0 and sign(item.rank, limit)
        return lambda item: item.rank == term
    if isinstance(term, Bound):
        compare, bound = _SIGNS[term.sign], term.value
        return lambda item: any(
            isinstance(value, float) and compare(value, bound) for value in item.values.get(name, ())
        )
    wanted = frozenset(term.values) if isinstance(term, Choice) else frozenset((term,))
    return lambda item: not wanted.isdisjoint(item.values.get(name, ()))


def _same_side(scene: Scene, a: Item, b: Item) -> bool:
    sides = {a.state.get("laterality"), b.state.get("laterality")}
    return None not in sides and (len(sides) == 1 or "bilateral" in sides)


def _opposite_side(scene: Scene, a: Item, b: Item) -> bool:
    return {a.state.get("laterality"), b.state.get("laterality")} == _OPPOSITE


def _same_lobe(scene: Scene, a: Item, b: Item) -> bool:
    pairs = ((a.state.get(name), b.state.get(name)) for name in ("lobe", "zone"))
    return _same_side(scene, a, b) and any(first is not None and first == second for first, second in pairs)


def _near(scene: Scene, a: Item, b: Item) -> bool:
    return _stated(scene, "adjacent_to", a, b) or _same_side(scene, a, b)


def _other_place(scene: Scene, a: Item, b: Item) -> bool:
    places = [tuple(item.state.get(name) for name in ("laterality", "lobe", "zone")) for item in (a, b)]
    return a.tag == b.tag and places[0] != places[1] and all(map(any, places))


def _stated(scene: Scene, name: str, a: Item, b: Item) -> bool:
    return (name, a.number, b.number) in scene.relations or (
        name in SYMMETRIC and (name, b.number, a.number) in scene.relations
    )


def _link(name: str) -> Link:
    if name in RELATIONS:
        return lambda scene, a, b: _stated(scene, name, a, b)
    links: dict[str, Link] = {
        "same_side": _same_side,
        "same_lobe": _same_lobe,
        "near": _near,
        "same_system": lambda scene, a, b: a.system == b.system,
        "opposite_side": _opposite_side,
        "other_place": _other_place,
    }
    return links[name]


def compile_conditions(
    sources: Sequence[str],
    rules: RadThoughtFile,
    ontology: Ontology,
    where: str,
    bound: Sequence[str] = (),
    repeats: bool = True,
) -> Conditions:
    """Compile conditions; mistakes name the place in the rule base.

    Raises:
        RadgenError: a condition is not of the language, or names something unknown.
    """
    try:
        return Conditions(sources, rules, ontology, bound, repeats)
    except PredicateError as error:
        raise RadgenError(f"radthought.{where}: {error}") from None
