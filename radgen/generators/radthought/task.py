"""Records by a model behind an endpoint: what is asked, and how the answer is checked (spec §6, §8).

The model gets the report and the predicates of its findings, and writes the levels. Its answer becomes a
record only if everything holds that holds of a record by rules (``record.check_record``), no relation is
about a finding that the report does not have, and no sentence says what the findings do not support
(``checks``). An answer that is wrong in itself is shown to the model once more; one that its report
contradicts is rejected with the reason.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from radgen.extract.endpoint.answer import AnswerError, Kind
from radgen.extract.endpoint.request import Parsed
from radgen.extract.endpoint.task import section_text
from radgen.generators.radthought.checks import check_texts
from radgen.generators.radthought.evidence import Evidence, gather
from radgen.generators.radthought.grammar import PredicateError
from radgen.generators.radthought.predicates import RELATIONS, Predicate, parse
from radgen.generators.radthought.record import (
    ATTRIBUTES,
    Conclusion,
    Level,
    Record,
    RecordError,
    check_record,
)
from radgen.generators.radthought.records import RecordOrder, extractor_of
from radgen.generators.radthought.settings import abouts, load_rules
from radgen.ontology.finding import Acuity, Certainty, Severity
from radgen.ontology.schema import Strict
from radgen.yamlfile import read_yaml, validate

_SECTIONS = ("findings", "impression")
_MARK = re.compile(r"\{\{(\w+)\}\}")
#: The most mistakes that a repair request lists.
_SHOWN = 5
Name = Annotated[str, Field(min_length=1, max_length=60)]
Sentence = Annotated[str, Field(min_length=1, max_length=500)]


class AnswerConclusion(Strict):
    """What the model says that one sentence concludes; ``sentence`` is its number in the level, from 1."""

    level: Level
    sentence: Annotated[int, Field(ge=1, le=20)]
    derived: Annotated[list[Annotated[str, Field(max_length=6)]], Field(min_length=1, max_length=24)]
    about: Name
    assertion: Literal["present", "absent", "indeterminate"] | None = None
    certainty: Certainty | None = None
    severity: Severity | None = None
    acuity: Acuity | None = None
    temporal: Literal["resolved", "decreased", "stable", "increased", "new", "mixed"] | None = None
    mechanism: Name | None = None
    mechanism_stated: bool | None = None
    significance: Literal["incidental", "minor", "significant", "critical"] | None = None


class Answer(Strict):
    """The whole answer; every string and list has a maximum, since a grammar without one may never end."""

    relations: Annotated[list[Annotated[str, Field(max_length=120)]], Field(max_length=40)]
    first_order: Annotated[list[Sentence], Field(max_length=150)]
    second_order: Annotated[list[Sentence], Field(min_length=1, max_length=8)]
    third_order: Annotated[list[Sentence], Field(min_length=1, max_length=8)]
    synthesis: Annotated[list[Sentence], Field(min_length=1, max_length=3)]
    conclusions: Annotated[list[AnswerConclusion], Field(max_length=40)]


class Prompt(Strict):
    """``radthought_prompt.yaml``."""

    version: str
    sampling: dict[str, float]
    system: str
    user: str
    repair: str


@functools.cache
def prompt() -> Prompt:
    """Return the packaged prompt and bounds."""
    name = "radthought_prompt.yaml"
    with resources.as_file(resources.files("radgen.generators").joinpath("data", name)) as path:
        source = read_yaml(Path(path), name=f"radgen/generators/data/{name}", careful=False)
    return validate(Prompt, source.data, [source])


class RadThoughtTask:
    """Asks for the levels of a report (see :class:`radgen.extract.endpoint.request.Task`)."""

    name = "radthought"

    def __init__(self, order: RecordOrder, model: str) -> None:
        words = prompt()
        self.ontology = order.ontology()
        self.extractor = extractor_of(order, self.ontology)
        self.relations = load_rules(self.ontology).relations
        self.abouts = abouts(self.ontology)
        self.backend = f"openai:{model}"
        self.words = words
        names = sorted(self.abouts - set(self.ontology.findings))
        self.system = words.system.replace("{{abouts}}", ", ".join(names)).strip()
        self.repair = words.repair.strip()
        self.version = f"{words.version}.{sha256(self.repair.encode()).hexdigest()[:8]}"
        self.schema: Mapping[str, Any] = answer_schema()

    def evidence(self, report: Mapping[str, Any]) -> Evidence:
        """Return the findings of a report and their relations, read by the rules."""
        sections = {name: text for name in _SECTIONS if (text := section_text(report, name)).strip()}
        placed = {name: self.extractor.states(text, name) for name, text in sections.items()}
        return gather(sections, placed, self.relations)

    def user(self, report: Mapping[str, Any]) -> str | None:
        """Return the user message, or ``None`` for a report in which no finding is read."""
        evidence = self.evidence(report)
        if not evidence.states:
            return None
        rows = "\n".join(map(str, evidence.predicates(self.ontology)))
        values = {name: section_text(report, name) for name in _SECTIONS} | {"predicates": rows}
        parts = _MARK.split(self.words.user)  # text and names in turn: a report's own braces are no mark
        return "".join(values[part] if place % 2 else part for place, part in enumerate(parts)).strip()

    def check(self, value: Any) -> Answer:
        """Check an answer as far as that goes without its report."""
        try:
            answer = Answer.model_validate(value)
        except ValidationError as error:
            raise AnswerError(Kind.schema, problems(error)) from None
        try:
            relations_of(answer)
            conclusions_of(answer)
        except RecordError as error:
            raise AnswerError(Kind.schema, str(error)) from None
        return answer

    def parse(self, value: Any, report: Mapping[str, Any]) -> Parsed:
        """Return the record that an answer makes, or ``reason``: why its report does not bear it out.

        Raises:
            AnswerError: the answer is wrong in itself.
        """
        record = self._record(self.check(value), report)
        try:
            for item in record.predicates:
                if item.name == "secondary_to" and item not in self._stated(report):
                    raise RecordError(f"predicate '{item}': the report does not state it")
            check_record(record, self.ontology.findings, self.abouts)
            check_texts(record, self.extractor)
        except RecordError as error:
            return Parsed([{"reason": str(error)}], {})
        return Parsed([record.row()], {})

    def _stated(self, report: Mapping[str, Any]) -> list[Predicate]:
        return self.evidence(report).predicates(self.ontology)

    def _record(self, answer: Answer, report: Mapping[str, Any]) -> Record:
        predicates = self._stated(report)
        predicates += [item for item in relations_of(answer) if item not in predicates]
        return Record(
            str(report.get("id", "report")), tuple(predicates), tuple(answer.first_order),
            tuple(answer.second_order), tuple(answer.third_order), " ".join(answer.synthesis),
            tuple(conclusions_of(answer)), self.backend,
        )  # fmt: skip


def relations_of(answer: Answer) -> list[Predicate]:
    """Return the relations of an answer.

    Raises:
        RecordError: one cannot be read, or is no relation; it is not quoted.
    """
    out = []
    for place, text in enumerate(answer.relations, 1):
        try:
            item = parse(text)
        except PredicateError:
            item = None
        if item is None or item.name not in RELATIONS:
            raise RecordError(f"relation {place}: expected a relation such as adjacent_to(f2,f1)")
        out.append(item)
    return out


def conclusions_of(answer: Answer) -> list[Conclusion]:
    """Return the conclusions of an answer with their sentences.

    Raises:
        RecordError: a level has no sentence of that number.
    """
    levels: dict[Level, list[str]] = {
        "second": answer.second_order, "third": answer.third_order, "synthesis": answer.synthesis,
    }  # fmt: skip
    out = []
    for place, item in enumerate(answer.conclusions, 1):
        sentences = levels[item.level]
        if item.sentence > len(sentences):
            raise RecordError(
                f"conclusion {place}: level '{item.level}' has no sentence {item.sentence}, "
                f"expected 1 to {len(sentences)}"
            )
        out.append(_conclusion(item, sentences[item.sentence - 1]))
    return out


def _conclusion(item: AnswerConclusion, text: str) -> Conclusion:
    mechanism = item.mechanism
    if mechanism is not None:
        mechanism = f"{'stated' if item.mechanism_stated else 'possible'}({mechanism})"
    attributes = {name: getattr(item, name) for name in ATTRIBUTES} | {"mechanism": mechanism}
    return Conclusion(item.level, text, None, tuple(item.derived), item.about, **attributes)


def problems(error: ValidationError) -> str:
    """Return what is wrong with an answer, without a word of it."""
    lines = [
        f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"it does not match the schema: {'; '.join(lines[:_SHOWN])}{more}"


@functools.cache
def answer_schema() -> dict[str, Any]:
    """Return the JSON schema of an answer: no references, titles or defaults, which some servers refuse."""
    schema = Answer.model_json_schema()
    definitions = schema.pop("$defs", {})

    def clean(node: Any, inside_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return clean(definitions[node["$ref"].rsplit("/", 1)[1]])
        dropped = () if inside_properties else ("title", "default", "description")
        return {key: clean(value, key == "properties") for key, value in node.items() if key not in dropped}

    return dict(clean(schema))
