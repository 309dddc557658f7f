"""Evidence predicates (spec §6): vocabulary, reading and printing, and the form without ids.

=====================  ===================================================================================
predicate              states
=====================  ===================================================================================
``finding(f1,tag)``    what it is; ids count from ``f1`` in the order of the report
``assertion``          present, absent, indeterminate
``certainty``, ``severity``, ``lobe``, ``zone``, ``density``, ``margin``, ``acuity``   values of §1
``side``, ``change``, ``located``   §1's laterality, temporal_change, anatomy
``size_mm(f1,12)``, ``prior_size_mm``   millimetres
``count``              a number, or few, multiple, …
``distribution``       focal, multifocal, diffuse, or §1's axial_distribution
``morphology``         one predicate a word
``device_position``    millimetres from the tip of a device to the carina
relations              ``adjacent_to(f2,f1)``, ``part_of(f2,f1)``, ``secondary_to(f2,f1)`` (only if stated),
                       ``suggestive_of(f1,f2)``, ``differential(f1,f2)``: alternatives of each other
=====================  ===================================================================================

Beyond §6's vocabulary *(ours)*, so that no stated field is lost: ``severity_min``, ``asymmetry``,
``segment``, ``level``, ``size_dims_mm``, ``size_range_mm``, ``size_comparator``, ``distance_mm`` and
``temporality``. What is not stated has no predicate.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from radgen.errors import did_you_mean
from radgen.generators.radthought.grammar import PredicateError, Ref, Value, parse_terms, print_value
from radgen.ontology import finding as canonical_finding

Kind = Literal["tag", "value", "text", "number", "ref"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate: its name and its terms, the first of them the finding that it is about."""

    name: str
    terms: tuple[Value, ...]

    @property
    def about(self) -> int:
        """Number of the finding that it is about, from 1."""
        first = self.terms[0]
        return first.number if isinstance(first, Ref) else 0

    @property
    def refs(self) -> tuple[int, ...]:
        """Numbers of all findings that it names."""
        return tuple(term.number for term in self.terms if isinstance(term, Ref))

    def __str__(self) -> str:
        return format_predicate(self)


@dataclass(frozen=True, slots=True)
class Signature:
    """What may follow the finding's id: kinds of terms, how many, and the values of names."""

    kind: Kind
    least: int = 1
    most: int = 1
    values: frozenset[str] = frozenset()


def _values(*names: str) -> frozenset[str]:
    return frozenset(value for name in names for value in typing.get_args(getattr(canonical_finding, name)))


def _one_of(*names: str) -> Signature:
    return Signature("value", values=_values(*names))


_NUMBER, _TEXT, _RELATION = Signature("number"), Signature("text"), Signature("ref")

#: Every predicate, in the order in which a record has those of one finding; relations come last.
VOCABULARY: dict[str, Signature] = {
    "finding": Signature("tag"),
    "assertion": _one_of("Presence"),
    "certainty": _one_of("Certainty"),
    "severity": _one_of("Severity"),
    "severity_min": _one_of("Severity"),
    "side": _one_of("Laterality"),
    "asymmetry": Signature("value", values=frozenset(("left", "right"))),
    "lobe": _one_of("Lobe"),
    "zone": _one_of("Zone"),
    "located": _TEXT,
    "segment": _TEXT,
    "level": _TEXT,
    "size_mm": _NUMBER,
    "size_dims_mm": Signature("number", 1, 3),
    "size_range_mm": Signature("number", 2, 2),
    "size_comparator": _one_of("SizeComparator"),
    "prior_size_mm": _NUMBER,
    "distance_mm": _NUMBER,
    "device_position": _NUMBER,
    "count": Signature("number", values=_values("CountCategory")),
    "density": _one_of("Density"),
    "margin": _one_of("Margin"),
    "distribution": _one_of("Distribution", "AxialDistribution"),
    "change": _one_of("TemporalChange"),
    "acuity": _one_of("Acuity"),
    "temporality": _one_of("Temporality"),
    "morphology": _TEXT,
    "adjacent_to": _RELATION,
    "suggestive_of": _RELATION,
    "differential": _RELATION,
    "part_of": _RELATION,
    "secondary_to": _RELATION,
}
RELATIONS = frozenset(name for name, signature in VOCABULARY.items() if signature.kind == "ref")
#: Relations that say the same in both directions.
SYMMETRIC = frozenset(("adjacent_to", "differential"))


@functools.lru_cache(maxsize=1 << 16)  # reports say the same again and again
def parse(source: str) -> Predicate:
    """Read one predicate of the vocabulary.

    Raises:
        PredicateError: not of the grammar, or not of the vocabulary; with what was expected.

    >>> parse("side(f1, right)")
    Predicate(name='side', terms=(Ref(number=1), 'right'))
    """
    name, terms = parse_terms(source)
    predicate = Predicate(name, typing.cast(tuple[Value, ...], terms))
    check(predicate, source)
    return predicate


def format_predicate(predicate: Predicate) -> str:
    """Return a predicate as text; ``parse`` reads it back.

    >>> format_predicate(Predicate("size_mm", (Ref(2), 12.0)))
    'size_mm(f2,12)'
    """
    return f"{predicate.name}({','.join(map(print_value, predicate.terms))})"


def check(predicate: Predicate, source: str | None = None) -> None:
    """Check a predicate against the vocabulary.

    Raises:
        PredicateError: an unknown name, a wrong number of terms, or a value outside §1.
    """
    shown = f"predicate {source if source is not None else format_predicate(predicate)!r}"
    signature = VOCABULARY.get(predicate.name)
    if signature is None:
        hint = did_you_mean(predicate.name, VOCABULARY)
        raise PredicateError(f"{shown}: unknown predicate '{predicate.name}'{hint}")
    if not predicate.terms or not isinstance(predicate.terms[0], Ref):
        raise PredicateError(f"{shown}: expected a finding (f1, f2, …) as the first term")
    rest = predicate.terms[1:]
    if not signature.least <= len(rest) <= signature.most:
        wanted = f"{signature.least}" if signature.least == signature.most else f"up to {signature.most}"
        raise PredicateError(f"{shown}: expected {wanted} after the finding, found {len(rest)}")
    for term in rest:
        _check_term(signature, term, shown)
    if signature.kind == "ref" and rest[0] == predicate.terms[0]:
        raise PredicateError(f"{shown}: expected two different findings")


def _check_term(signature: Signature, term: Value, shown: str) -> None:
    if signature.kind == "ref":
        if not isinstance(term, Ref):
            raise PredicateError(f"{shown}: expected another finding (f1, f2, …), found {print_value(term)}")
    elif isinstance(term, Ref):
        raise PredicateError(f"{shown}: expected a value, found the finding {term}")
    elif isinstance(term, float):
        if signature.kind != "number":
            raise PredicateError(f"{shown}: expected a word, found the number {print_value(term)}")
    elif signature.values:
        if term not in signature.values:
            known = ", ".join(sorted(signature.values))
            hint = did_you_mean(term, signature.values) or f"; known: {known}"
            raise PredicateError(f"{shown}: unknown value '{term}'{hint}")
    elif signature.kind == "number":
        raise PredicateError(f"{shown}: expected a number, found {print_value(term)}")
    elif not term.strip():
        raise PredicateError(f"{shown}: expected a word, found an empty text")


def canonical(predicates: Iterable[Predicate]) -> tuple[str, ...]:
    """Return predicates without ids, sorted: what two reports are compared by (spec §6).

    The tag of a finding takes the place of its id, in relations for both findings, so that numbering and
    the order of sentences change nothing. Terms of a symmetric relation are sorted. A predicate that holds
    for two findings of one tag stands twice.

    >>> canonical([parse("finding(f1,pneumothorax)"), parse("assertion(f1,absent)")])
    ('assertion(pneumothorax,absent)', 'finding(pneumothorax)')
    """
    predicates = list(predicates)
    tags = tags_of(predicates)
    out = []
    for predicate in predicates:
        terms = [tags.get(term.number, "") if isinstance(term, Ref) else term for term in predicate.terms]
        if predicate.name == "finding":
            terms = terms[:1]
        elif predicate.name in SYMMETRIC:
            terms.sort(key=str)
        out.append(f"{predicate.name}({','.join(map(print_value, terms))})")
    return tuple(sorted(out))


def tags_of(predicates: Iterable[Predicate]) -> dict[int, str]:
    """Return the tag of each finding by its number."""
    return {item.about: str(item.terms[1]) for item in predicates if item.name == "finding"}


#: Predicates by the field of §1 that they state, where the names differ or several fields share one.
_FIELDS = {
    "presence": "assertion", "laterality": "side", "anatomy": "located", "count_category": "count",
    "axial_distribution": "distribution", "temporal_change": "change",
}  # fmt: skip
_AXIAL = _values("AxialDistribution")
_LISTS = frozenset(("size_dims_mm", "size_range_mm"))
_ORDER = {name: place for place, name in enumerate(VOCABULARY)}


def predicates_of(state: Mapping[str, Any], number: int, *, device: bool = False) -> list[Predicate]:
    """Return the predicates of a canonical finding, one for each stated field.

    Args:
        state: stated fields of §1.
        number: of the finding in its report, from 1.
        device: the finding is a device, whose distance is that of its tip from the carina.
    """
    ref = Ref(number)
    out = []
    for field, value in state.items():
        name = _FIELDS.get(field, field)
        if field == "distance_mm" and device:
            name = "device_position"
        if field == "morphology":
            out += [Predicate(name, (ref, word)) for word in value]
        elif field in _LISTS:
            out.append(Predicate(name, (ref, *map(float, value))))
        else:
            out.append(Predicate(name, (ref, value if isinstance(value, str) else float(value))))
    out.sort(key=lambda predicate: _ORDER[predicate.name])
    return out


def states_of(predicates: Iterable[Predicate]) -> dict[int, dict[str, Any]]:
    """Return the canonical finding of each number: the way back from ``predicates_of``."""
    fields = {name: field for field, name in _FIELDS.items()} | {"device_position": "distance_mm"}
    raw: dict[int, dict[str, Any]] = {}
    for item in predicates:
        if item.name in RELATIONS:
            continue
        state = raw.setdefault(item.about, {})
        value = item.terms[1]
        if item.name == "morphology":
            state.setdefault("morphology", []).append(value)
        elif item.name in _LISTS:
            state[item.name] = list(item.terms[1:])
        elif item.name == "count":
            if isinstance(value, float):
                state["count"] = int(value)
            else:
                state["count_category"] = value
        elif item.name == "distribution":
            state["axial_distribution" if value in _AXIAL else "distribution"] = value
        else:
            state[fields.get(item.name, item.name)] = value
    order = {name: place for place, name in enumerate(canonical_finding.FIELDS)}
    return {
        number: {name: state[name] for name in sorted(state, key=order.__getitem__)}
        for number, state in sorted(raw.items())
    }


def renumbered(predicates: Sequence[Predicate], numbers: Mapping[int, int]) -> list[Predicate]:
    """Return predicates with other numbers for their findings."""
    return [
        Predicate(
            item.name,
            tuple(Ref(numbers[term.number]) if isinstance(term, Ref) else term for term in item.terms),
        )
        for item in predicates
    ]
