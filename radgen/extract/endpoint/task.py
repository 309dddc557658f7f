"""The extraction task: a report in, §1's findings out, nothing without evidence."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import AnswerError, Kind
from radgen.extract.endpoint.request import Parsed
from radgen.extract.endpoint.settings import packaged_text
from radgen.extract.endpoint.wire import SECTIONS, WITHOUT_WORDS, answer_type, packaged_schema
from radgen.ontology import Ontology
from radgen.ontology.finding import FIELDS

#: Changes with what is asked; a change of the parser alone keeps it, and asks for nothing again.
PROMPT_VERSION = "extract-1"


class ExtractionTask:
    """Asks for the canonical findings of a report (see :class:`radgen.extract.endpoint.request.Task`)."""

    name = "findings"

    def __init__(self, ontology: Ontology) -> None:
        self.schema: Mapping[str, Any] = packaged_schema()
        tags = ", ".join(sorted(ontology.findings))
        self.system = packaged_text("extract_system.txt").replace("{{tags}}", tags).strip()
        self.repair = packaged_text("repair.txt").strip()
        self._before, self._between, self._after = re.split(
            r"\{\{(?:findings|impression)\}\}", packaged_text("extract_user.txt").strip()
        )
        # The canonical body holds system message and schema; what it does not hold stands here.
        said_later = hashlib.sha256(self.repair.encode()).hexdigest()[:8]
        self.version = f"{PROMPT_VERSION}.{said_later}"
        self._tags = tag_names(ontology)
        self._not_findings = {_snake(tag) for tag in ontology.not_findings}
        self._answer = answer_type().validator

    def user(self, report: Mapping[str, Any]) -> str | None:
        """Return the user message, or ``None`` for a report without text."""
        findings, impression = (section_text(report, name) for name in SECTIONS)
        if not (findings.strip() or impression.strip()):
            return None
        return f"{self._before}{findings}{self._between}{impression}{self._after}"

    def check(self, value: Any) -> Mapping[str, Any]:
        """Check an answer against the schema (see :class:`radgen.extract.endpoint.request.Task`)."""
        try:
            return dict(self._answer.validate_python(value))
        except ValidationError as error:
            raise AnswerError(Kind.schema, _problems(error)) from None

    def parse(self, value: Any, report: Mapping[str, Any]) -> Parsed:
        """Return the findings whose quotes stand in the report, and what was dropped.

        Reasons: ``attribute_without_evidence``, ``finding_without_evidence``, ``unknown_finding``,
        ``not_a_finding`` (a tag that states none), ``repeated``.

        Raises:
            AnswerError: the value does not match the schema.
        """
        value = self.check(value)
        dropped: Counter[str] = Counter()
        items: list[dict[str, Any]] = []
        seen: set[bytes] = set()
        texts = {name: section_text(report, name) for name in SECTIONS}
        for raw in value["findings"]:
            item = self._item(raw, texts, dropped)
            if item is None:
                continue
            mark = orjson.dumps(item)
            if mark in seen:  # a small model may repeat an item until the list is full
                dropped["repeated"] += 1
                continue
            seen.add(mark)
            items.append(item)
        return Parsed(items, dict(sorted(dropped.items())))

    def _item(
        self, raw: Mapping[str, Any], texts: Mapping[str, str], dropped: Counter[str]
    ) -> dict[str, Any] | None:
        name = _snake(raw["finding"])
        known = self._tags.get(name)
        if known is None:
            dropped["not_a_finding" if name in self._not_findings else "unknown_finding"] += 1
            return None
        said = raw.get("section")
        for section in (said, *(name for name in SECTIONS if name != said)) if said else SECTIONS:
            span = locate(raw["quote"], texts[section])
            if span:
                break
        else:
            dropped["finding_without_evidence"] += 1
            return None
        text = texts[section]
        tag, implied = known
        words = raw.get("words") or {}
        item: dict[str, Any] = {"section": section, "finding": tag}
        for attribute in FIELDS[1:]:
            value = raw.get(attribute)
            stated = value is not None and value != []
            quoted = words.get(attribute) if stated else None
            if stated and (attribute in WITHOUT_WORDS or (quoted and locate(quoted, text))):
                item[attribute] = value
                continue
            if attribute in implied:  # the quote that names the finding is its evidence
                item[attribute] = implied[attribute]
            if stated and value != implied.get(attribute):
                dropped["attribute_without_evidence"] += 1
        start, end = span
        item["evidence"] = {"text": text[start:end], "start": start, "end": end}
        return item


def section_text(report: Mapping[str, Any], name: str) -> str:
    """Return a section's text; a missing one is empty.

    Raises:
        RadgenError: it is no text.
    """
    text = report.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise RadgenError(f"'{name}' is {type(text).__name__}, expected text or null")
    return text


def tag_names(ontology: Ontology) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every name that a model may give a finding, in snake case, with the tag and what it implies.

    Tags win over names, and canonical findings over aliases.
    """
    names: dict[str, tuple[str, dict[str, Any]]] = {}
    for tag in ontology.findings:
        names[_snake(tag)] = tag, {}
    for tag, alias in ontology.aliases.items():
        names.setdefault(_snake(tag), (alias.finding, dict(alias.implies)))
    for tag, entry in ontology.findings.items():
        for term in entry.terms:
            for form in (term.text, term.plural):
                if form:
                    names.setdefault(_snake(form), (tag, {}))
    return names


_NOT_A_WORD = re.compile(r"[^a-z0-9]+")


def _snake(text: str) -> str:
    return _NOT_A_WORD.sub("_", text.lower()).strip("_")


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """Return start and end of a quote in a text, as whole words, or ``None``.

    White space and case may differ, and a closing full stop may be missing: models copy words, not layout.

    >>> locate("small LEFT  effusion.", "There is a small left effusion")
    (11, 30)
    >>> locate("left", "cleft palate") is None
    True
    """
    quote = quote.strip()
    words = quote.strip(" .,;:").split()
    if not words:
        return None
    start = text.find(quote)
    if start >= 0 and _whole(text, start, start + len(quote)):
        return start, start + len(quote)
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for match in pattern.finditer(text):
        if _whole(text, *match.span()):
            return match.span()
    return None


def _whole(text: str, start: int, end: int) -> bool:
    return not (
        (start > 0 and text[start - 1].isalnum() and text[start].isalnum())
        or (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
    )


#: The most mistakes that a repair request lists.
_SHOWN = 5


def _problems(error: ValidationError) -> str:
    lines = [
        f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "it does not match the schema: " + "; ".join(lines[:_SHOWN]) + more
