"""Records of RadThought (spec §6, §9): their columns, and what must hold of each, whoever made it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from radgen.errors import RadgenError, did_you_mean
from radgen.generators.radthought.grammar import PredicateError
from radgen.generators.radthought.predicates import Predicate, parse, states_of
from radgen.ontology import finding as canonical_finding

#: Columns of ``records.jsonl``, in order.
COLUMNS = (
    "id", "predicates", "first_order", "second_order", "third_order", "synthesis", "conclusions", "backend",
)  # fmt: skip
Level = Literal["second", "third", "synthesis"]
LEVELS: tuple[Level, ...] = ("second", "third", "synthesis")
#: Attributes of a conclusion, in order.
ATTRIBUTES = ("assertion", "certainty", "severity", "acuity", "temporal", "mechanism", "significance")

CERTAINTY = ("cannot_exclude", "possible", "probable", "definite")
SEVERITY = ("trace", "mild", "moderate", "severe")
#: Low to high.
SIGNIFICANCE = ("incidental", "minor", "significant", "critical")
#: §1's changes, and what a process does whose findings change in different directions.
TEMPORAL = ("resolved", "decreased", "stable", "increased", "new", "mixed")
#: How firmly a mechanism is stated; a record has ``possible(compression)`` or ``stated(compression)``.
FIRMNESS = ("possible", "stated")
_WORDS: dict[str, tuple[str, ...]] = {
    "assertion": ("present", "absent", "indeterminate"),
    "certainty": CERTAINTY,
    "severity": SEVERITY,
    "acuity": ("acute", "subacute", "chronic"),
    "temporal": TEMPORAL,
    "significance": SIGNIFICANCE,
}


class RecordError(RadgenError):
    """Why a record is rejected; holds no text of the report."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What one sentence of a level concludes.

    Attributes:
        text: the sentence; several conclusions may stand in one.
        rule: of ``radthought.yaml``, None for an endpoint.
        derived: ids of the findings that it rests on, never empty.
        about: the process concluded, a name of ``radthought.yaml``.
        mechanism: ``possible(NAME)``, or ``stated(NAME)`` where the report states it.
    """

    level: Level
    text: str
    rule: str | None
    derived: tuple[str, ...]
    about: str
    assertion: str | None = None
    certainty: str | None = None
    severity: str | None = None
    acuity: str | None = None
    temporal: str | None = None
    mechanism: str | None = None
    significance: str | None = None

    def row(self) -> dict[str, Any]:
        """Return the conclusion as a record has it; the keys are always the same."""
        return {name: getattr(self, name) for name in CONCLUSION} | {"derived": list(self.derived)}


#: Keys of a conclusion, in order.
CONCLUSION = tuple(field.name for field in fields(Conclusion))


@dataclass(frozen=True, slots=True)
class Record:
    """One report's predicates, levels and conclusions; sentence ``i`` of the first order is about f``i``."""

    id: str
    predicates: tuple[Predicate, ...]
    first_order: tuple[str, ...]
    second_order: tuple[str, ...]
    third_order: tuple[str, ...]
    synthesis: str
    conclusions: tuple[Conclusion, ...]
    backend: str

    def row(self) -> dict[str, Any]:
        """Return the record as ``records.jsonl`` has it."""
        return {
            "id": self.id,
            "predicates": [str(predicate) for predicate in self.predicates],
            "first_order": list(self.first_order),
            "second_order": list(self.second_order),
            "third_order": list(self.third_order),
            "synthesis": self.synthesis,
            "conclusions": [conclusion.row() for conclusion in self.conclusions],
            "backend": self.backend,
        }

    def states(self) -> dict[int, dict[str, Any]]:
        """Return the canonical finding (§1) of each number, from 1."""
        return states_of(self.predicates)

    def of(self, level: Level) -> list[Conclusion]:
        """Return the conclusions of one level."""
        return [conclusion for conclusion in self.conclusions if conclusion.level == level]


def read_record(
    row: Any, tags: Collection[str] | None = None, abouts: Collection[str] | None = None
) -> Record:
    """Read a row of ``records.jsonl`` and check everything that must hold of it.

    Args:
        tags: findings of the ontology; any tag may stand if absent.
        abouts: names of processes of the rule base; any may stand if absent.

    Raises:
        RecordError: the first thing that does not hold, without report text.
    """
    if not isinstance(row, Mapping) or tuple(row) != COLUMNS:
        found = ", ".join(row) if isinstance(row, Mapping) else type(row).__name__
        raise RecordError(f"expected the columns {', '.join(COLUMNS)}; found {found}")
    for name in ("id", "synthesis", "backend"):
        if not isinstance(row[name], str) or not row[name].strip():
            raise RecordError(f"{name}: expected a text")
    lists = {name: _texts(row[name], name) for name in COLUMNS[1:5]}
    try:
        predicates = tuple(map(parse, lists["predicates"]))
    except PredicateError as error:
        raise RecordError(str(error)) from None
    if not isinstance(row["conclusions"], list):
        raise RecordError("conclusions: expected a list")
    record = Record(
        row["id"], predicates, lists["first_order"], lists["second_order"], lists["third_order"],
        row["synthesis"], tuple(_conclusion(item, place) for place, item in enumerate(row["conclusions"])),
        row["backend"],
    )  # fmt: skip
    check_record(record, tags, abouts)
    return record


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise RecordError(f"{name}: expected a list of texts")
    return tuple(value)


def _conclusion(item: Any, place: int) -> Conclusion:
    shown = f"conclusion {place + 1}"
    if not isinstance(item, Mapping) or set(item) != set(CONCLUSION):
        raise RecordError(f"{shown}: expected the keys {', '.join(CONCLUSION)}")
    if item["level"] not in LEVELS:
        raise RecordError(f"{shown}: level: expected {', '.join(LEVELS)}")
    for name in ("text", "about"):
        if not isinstance(item[name], str) or not item[name].strip():
            raise RecordError(f"{shown}: {name}: expected a text")
    for name in ("rule", *ATTRIBUTES):
        if item[name] is not None and not isinstance(item[name], str):
            raise RecordError(f"{shown}: {name}: expected a text or null")
    return Conclusion(**{**item, "derived": _texts(item["derived"], f"{shown}: derived")})


def check_record(
    record: Record, tags: Collection[str] | None = None, abouts: Collection[str] | None = None
) -> None:
    """Check what must hold of a record.

    - findings are numbered f1, f2, … without a gap; every predicate is about one of them; each has one
      assertion, and no attribute has two values
    - the first order has a sentence a finding; every conclusion stands in a sentence of its level
    - a conclusion rests on findings of the report, contradicts the assertion of none, is no firmer, no more
      severe and no more acute than they are, and its mechanism is possible at most unless a ``secondary_to``
      states it

    Raises:
        RecordError: the first thing that does not hold.
    """
    states = _check_predicates(record.predicates, tags)
    if len(record.first_order) != len(states):
        found = len(record.first_order)
        raise RecordError(
            f"first_order: expected a sentence for each of {len(states)} findings, found {found}"
        )
    sentences: dict[Level, Sequence[str]] = {
        "second": record.second_order,
        "third": record.third_order,
        "synthesis": (record.synthesis,),
    }
    for place, conclusion in enumerate(record.conclusions, 1):
        if abouts is not None and conclusion.about not in abouts:  # free text is not repeated
            hint = did_you_mean(conclusion.about, abouts)
            raise RecordError(f"conclusion {place}: about: not a process of the rule base{hint}")
        shown = f"conclusion {place} ({conclusion.about})"
        if not any(conclusion.text in sentence for sentence in sentences[conclusion.level]):
            raise RecordError(f"{shown}: its text is no sentence of level '{conclusion.level}'")
        _check_conclusion(conclusion, states, record.predicates, shown)


def _check_predicates(
    predicates: Sequence[Predicate], tags: Collection[str] | None
) -> dict[int, dict[str, Any]]:
    known = {item.about for item in predicates if item.name == "finding"}
    if known != set(range(1, len(known) + 1)):
        raise RecordError("predicates: expected findings numbered f1, f2, … without a gap")
    seen: set[tuple[Any, ...]] = set()
    for item in predicates:
        for number in item.refs:
            if number not in known:
                raise RecordError(f"predicate '{item}': the report has no finding f{number}")
        if item.name == "finding" and tags is not None and item.terms[1] not in tags:
            hint = did_you_mean(str(item.terms[1]), tags)
            raise RecordError(f"predicate '{item}': not a finding of the ontology{hint}")
        many = item.name in ("morphology", "count", "distribution") or len(item.refs) > 1
        mark: tuple[Any, ...] = (item.name, item.terms) if many else (item.name, item.about)
        if mark in seen:
            raise RecordError(f"predicate '{item}': stands twice, or with two values")
        seen.add(mark)
    states = states_of(predicates)
    for number in sorted(known):
        if "presence" not in states[number]:
            raise RecordError(f"predicates: f{number} has no assertion")
        try:
            canonical_finding.check_state(states[number])
        except ValueError:
            raise RecordError(f"predicates: f{number} has a value outside the canonical finding") from None
    return states


def _check_conclusion(
    conclusion: Conclusion,
    states: Mapping[int, Mapping[str, Any]],
    predicates: Sequence[Predicate],
    shown: str,
) -> None:
    if not conclusion.derived:
        raise RecordError(f"{shown}: derived: expected at least one finding")
    numbers = {f"f{number}": number for number in states}
    for name in conclusion.derived:
        if name not in numbers:
            raise RecordError(f"{shown}: derived: the report has no finding {name}")
    for name, words in _WORDS.items():
        value = getattr(conclusion, name)
        if value is not None and value not in words:
            raise RecordError(f"{shown}: {name}: unknown value; known: {', '.join(words)}")
    evidence = [states[numbers[name]] for name in conclusion.derived]
    check_assertion(conclusion, evidence, shown)
    firmest = min(map(firmness, evidence))
    said = firmness({"presence": conclusion.assertion, "certainty": conclusion.certainty})
    if said > firmest and conclusion.assertion != "absent":
        raise RecordError(f"{shown}: certainty: firmer than its evidence")
    if conclusion.severity is not None:
        stated = [SEVERITY.index(state["severity"]) for state in evidence if state.get("severity")]
        if not stated or SEVERITY.index(conclusion.severity) > max(stated):
            raise RecordError(f"{shown}: severity: not stated by its evidence")
    if conclusion.acuity is not None and conclusion.acuity not in {s.get("acuity") for s in evidence}:
        raise RecordError(f"{shown}: acuity: not stated by its evidence")
    if conclusion.temporal is not None:
        changes = {state["temporal_change"] for state in evidence if state.get("temporal_change")}
        if conclusion.temporal not in changes and not (conclusion.temporal == "mixed" and len(changes) > 1):
            raise RecordError(f"{shown}: temporal: not stated by its evidence")
    if conclusion.mechanism is not None:
        _check_mechanism(conclusion, predicates, shown)


def firmness(state: Mapping[str, Any]) -> int:
    """Return how firmly a state is stated: an index of ``CERTAINTY``; unhedged is the firmest."""
    certainty = state.get("certainty")
    if certainty is not None:
        return CERTAINTY.index(certainty)
    return CERTAINTY.index("cannot_exclude") if state.get("presence") == "indeterminate" else len(CERTAINTY)


def check_assertion(conclusion: Conclusion, evidence: Sequence[Mapping[str, Any]], shown: str) -> None:
    """Check that a conclusion contradicts the assertion of no finding that it rests on.

    What is present rests on nothing that is absent, and not on indeterminate findings alone; what is absent
    rests on absent findings alone.

    Raises:
        RecordError: it does.
    """
    presences = {state.get("presence") for state in evidence}
    if conclusion.assertion == "absent":
        wrong = presences != {"absent"}
    elif conclusion.assertion == "present":
        wrong = "absent" in presences or "present" not in presences
    else:
        wrong = conclusion.assertion == "indeterminate" and presences == {"absent"}
    if wrong:
        raise RecordError(f"{shown}: assertion: contradicts that of its evidence")


def _check_mechanism(conclusion: Conclusion, predicates: Sequence[Predicate], shown: str) -> None:
    firm, _, rest = str(conclusion.mechanism).partition("(")
    if firm not in FIRMNESS or not rest.endswith(")") or not rest[:-1].replace("_", "a").isalnum():
        raise RecordError(f"{shown}: mechanism: expected possible(NAME) or stated(NAME)")
    derived = set(conclusion.derived)
    stated = any(
        item.name == "secondary_to" and {f"f{number}" for number in item.refs} <= derived
        for item in predicates
    )
    if firm == "stated" and not stated:
        raise RecordError(f"{shown}: mechanism: stronger than 'possible', and the report does not state it")
    if firm == "possible" and firmness({"certainty": conclusion.certainty}) > CERTAINTY.index("possible"):
        raise RecordError(f"{shown}: mechanism: only possible, so the conclusion is possible at most")
