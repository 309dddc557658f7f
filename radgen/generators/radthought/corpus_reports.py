"""The findings sections of the reports that records are of: from a file, or synthetic ones made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from radgen.errors import DatasetError
from radgen.extract.readers import Report, open_reports
from radgen.generators.folders import read_manifest
from radgen.generators.reports import SyntheticReports
from radgen.generators.similarity.folder import source_digest
from radgen.ontology.load import Ontology


class FindingsSections:
    """Findings sections by the id of their report.

    Args:
        records: the file of records; the manifest beside it says whether their reports were made.
        reports: that the records are of, in any form that ``radgen reports`` reads; None: synthetic ones.
        ontology: that reports are made again with.

    Raises:
        DatasetError: the reports are not given and cannot be made again, or are not there.
    """

    def __init__(self, records: Path, reports: Path | None, ontology: Ontology) -> None:
        self.records, self.reports, self.ontology = records, reports, ontology
        self.modality, self.seed = "", 0
        if reports is not None:
            self.digest = source_digest(reports)
            return
        manifest = read_manifest(records.parent) or {}
        words = str(manifest.get("command")).split()
        if "--synthetic" not in words:
            raise DatasetError(
                f"{records}: findings_alignment needs the reports that the records are of; "
                "give them with --reports"
            )
        if manifest.get("ontology") != ontology.fingerprint:
            raise DatasetError(
                f"{records}: made with another ontology, so that its synthetic reports cannot be made again; "
                "give the same --ontology, or the reports with --reports"
            )
        self.modality = words[words.index("--modality") + 1]
        self.seed = int(words[words.index("--seed") + 1])
        self.digest = f"synthetic {self.modality} {self.seed}"

    def of(self, ids: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the place of an id in ``ids`` and the findings section of its report.

        Raises:
            DatasetError: none of the reports has an id of them.
        """
        found = False
        places = {identifier: place for place, identifier in enumerate(ids)}
        for identifier, text in self._made(ids) if self.reports is None else self._read():
            place = places.get(identifier)
            if place is not None and text:
                found = True
                yield place, " ".join(text.split())
        if not found:
            raise DatasetError(f"{self.reports or self.records}: no report of it has the id of a record")

    def _made(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        reports = SyntheticReports(self.ontology, self.seed, self.modality)
        for identifier in ids:
            number = identifier.rpartition("-")[2]
            if number.isdecimal() and int(number) > 0:
                row = reports.row(int(number) - 1)
                yield row["id"], row["findings"]

    def _read(self) -> Iterator[tuple[str, str]]:
        if self.reports is None:
            return
        for report in open_reports(self.reports):
            if isinstance(report, Report):
                yield report.data["id"], report.data.get("findings") or ""
