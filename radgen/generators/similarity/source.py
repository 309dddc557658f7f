"""Reports with the findings of their sections: extracted before, truth, or read by the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from radgen.errors import DatasetError, unknown
from radgen.extract.readers import Report, open_reports
from radgen.ontology.finding import FIELDS
from radgen.ontology.load import Ontology

SECTIONS = ("findings", "impression")
States = Literal["extracted", "truth", "rules"]
State = dict[str, Any]
#: A state and its span in the section's text; the span is (0, 0) where it is not known.
Placed = tuple[State, tuple[int, int]]
_FIELDS = frozenset(FIELDS)


@dataclass(frozen=True, slots=True)
class Read:
    """One report: sections, the findings of each, labels and their prominence."""

    id: str
    sections: dict[str, str]
    states: dict[str, list[Placed]]
    abnormalities: list[str] | None
    prominence: list[float] | None


@dataclass
class ReportStates:
    """Reads reports and their findings, one at a time.

    Attributes:
        path: reports in any form that ``radgen reports`` reads.
        extracted: output of ``radgen extract`` for them, joined by id.
        truth: take the column ``truth`` of synthetic reports as the findings of their findings sections.
        rejected: rows that were left out, by reason.
    """

    path: Path
    ontology: Ontology
    extracted: Path | None = None
    truth: bool = False
    rejected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._rows = self._extractions()
        if self.extracted is not None and self.truth:
            raise DatasetError("--truth and --extracted: give one of the two")
        if self.extracted is None:
            from radgen.extract.rules import RulesExtractor, default_extractor

            plain = not self.ontology.user_sources
            self._rules = default_extractor() if plain else RulesExtractor(self.ontology)

    @property
    def states(self) -> States:
        """Where the findings come from."""
        return "truth" if self.truth else "rules" if self.extracted is None else "extracted"

    def __iter__(self) -> Iterator[Read]:
        """Yield the reports that have findings.

        Raises:
            DatasetError: no report could be joined with its extraction, or rows are not what was promised.
        """
        joined = 0
        for row in open_reports(self.path):
            if not isinstance(row, Report):
                self.rejected["no report (see radgen reports)"] += 1
                continue
            read = self._read(row.data)
            if read is not None:
                joined += 1
                yield read
        if not joined:
            reason = self.rejected.most_common(1)
            raise DatasetError(f"{self.path}: no report can be used{f': {reason[0][0]}' if reason else ''}")

    def _read(self, data: dict[str, Any]) -> Read | None:
        sections = {name: data[name] for name in SECTIONS if data.get(name)}
        if self.extracted is not None:
            states = self._extracted(data["id"], sections)
        elif self.truth:
            states = self._truth(data, sections)
        else:
            states = {name: self._rules.states(text, name) for name, text in sections.items()}
        if states is None:
            return None
        return Read(data["id"], sections, states, data["abnormalities"], data["prominence"])

    def _truth(self, data: dict[str, Any], sections: dict[str, str]) -> dict[str, list[Placed]] | None:
        if data.get("truth") is None:
            self.rejected["no truth (only synthetic reports have it)"] += 1
            return None
        return {"findings": [(state, (0, 0)) for state in data["truth"]]} if "findings" in sections else {}

    def _extracted(self, identifier: str, sections: dict[str, str]) -> dict[str, list[Placed]] | None:
        rows = self._of(identifier)
        if rows is None:
            self.rejected["not in the extraction file"] += 1
            return None
        states: dict[str, list[Placed]] = {name: [] for name in sections}
        for row in rows:
            section = row.get("section", "findings")
            if section not in sections:
                continue
            evidence = row.get("evidence") or {}
            span = (int(evidence.get("start", 0)), int(evidence.get("end", 0)))
            states[section].append(({name: row[name] for name in row if name in _FIELDS}, span))
        return states

    def _of(self, identifier: str) -> list[dict[str, Any]] | None:
        """Return the extraction of a report; files in the same order are joined in flat memory."""
        while identifier not in self._waiting:
            found = next(self._rows, None)
            if found is None:
                return None
            self._waiting[found[0]] = found[1]
        return self._waiting.pop(identifier)

    def _extractions(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        if self.extracted is None:
            return
        try:
            with self.extracted.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if not line.strip():
                        continue
                    try:
                        row = orjson.loads(line)
                    except orjson.JSONDecodeError:
                        raise DatasetError(f"{self.extracted}:{number}: not JSON") from None
                    found = row.get("extracted") if isinstance(row, dict) else None
                    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                        raise DatasetError(
                            f"{self.extracted}:{number}: expected 'id' and 'extracted' (a list of findings), "
                            "as radgen extract writes them"
                        )
                    for item in found:
                        if item.get("finding") not in self.ontology.findings:
                            what = unknown("finding", str(item.get("finding")), self.ontology.findings)
                            raise DatasetError(f"{self.extracted}:{number}: {what}")
                    yield str(row.get("id")), found
        except FileNotFoundError:
            raise DatasetError(f"{self.extracted}: no such file") from None
