"""Reports for records, in order and in flat memory: read from a file, or made.

A job is what a worker needs for one report. Findings are read by the worker, unless they were extracted
before or the reports bring their truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from radgen.errors import DatasetError
from radgen.extract.readers import Report, open_reports
from radgen.generators.radthought.evidence import Placed
from radgen.generators.similarity.source import SECTIONS, ReportStates
from radgen.ontology.load import Ontology


@dataclass(frozen=True, slots=True)
class Job:
    """One report.

    Attributes:
        sections: text by section.
        placed: its findings by section, None where they are still to be read.
        made: number of the synthetic report to make, None for a report of a file.
        problem: why a row is no report.
    """

    id: str
    sections: dict[str, str] = field(default_factory=dict)
    placed: dict[str, list[Placed]] | None = None
    made: int | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Source:
    """Where the reports come from.

    Attributes:
        reports: a file, folder or archive; None for synthetic ones.
        extracted: output of ``radgen extract`` for them.
        truth: take the truth of synthetic reports in a file for their findings.
        synthetic: how many to make where there is no file.
        limit: only the first so many.
    """

    reports: Path | None = None
    extracted: Path | None = None
    truth: bool = False
    synthetic: int = 200
    seed: int = 42
    modality: str = "both"
    limit: int | None = None

    @property
    def states(self) -> str:
        """Where the findings come from: "rules", "extracted" or "truth"."""
        return "truth" if self.truth else "extracted" if self.extracted is not None else "rules"

    def jobs(self, ontology: Ontology) -> Iterator[Job]:
        """Yield the jobs in order.

        Raises:
            RadgenError: a file cannot be read.
            DatasetError: extraction and reports do not go together.
        """
        jobs = self._made() if self.reports is None else self._read(ontology)
        for number, job in enumerate(jobs):
            if self.limit is not None and number >= self.limit:
                return
            yield job

    def _made(self) -> Iterator[Job]:
        for index in range(self.synthetic):
            yield Job(str(index), made=index)

    def _read(self, ontology: Ontology) -> Iterator[Job]:
        if self.reports is None:
            return
        reads = None
        if self.extracted is not None or self.truth:
            reads = _Reads(self.reports, ontology, self.extracted, self.truth)
        for row in open_reports(self.reports):
            if not isinstance(row, Report):
                place = f"{row.file}:{row.line}" if row.line is not None else row.file
                yield Job(place, problem=row.reason)
            elif reads is not None:
                yield reads.job(row.data)
            else:
                data: dict[str, Any] = row.data
                yield Job(data["id"], {name: data[name] for name in SECTIONS if data[name]})


class _Reads(ReportStates):
    """Findings that are given, report by report, with the reason where a report has none."""

    def job(self, data: dict[str, Any]) -> Job:
        before = self.rejected.copy()
        read = self._read(data)
        if read is None:
            reason = next(iter(self.rejected - before), "no findings are given")
            return Job(data["id"], problem=reason)
        return Job(read.id, read.sections, read.states)


def check_source(source: Source) -> None:
    """Check that the options of a source go together.

    Raises:
        DatasetError: they do not.
    """
    if source.extracted is not None and source.truth:
        raise DatasetError("--truth and --extracted: give one of the two")
    if source.reports is None and (source.extracted is not None or source.truth):
        raise DatasetError("--truth and --extracted need a file of reports")
