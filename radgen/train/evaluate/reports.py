"""The reports that an encoder is judged on, and what each states: by the rules, or by a CSV of labels."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.errors import RadgenError, unknown
from radgen.extract.readers import Report, open_reports
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.ontology.load import Ontology
from radgen.train.evaluate.outcome import SkippedError
from radgen.train.evaluate.settings import EvaluateFile, LabelSettings

State = Mapping[str, Any]
#: Statuses of a label in a report.
NOT_NAMED, ABSENT, UNCERTAIN, PRESENT = range(4)


@dataclass
class Labels:
    """Labels of reports.

    Attributes:
        names: of the labels.
        status: 0 not named, 1 absent, 2 uncertain, 3 present; -1 where the source knows nothing of the
            report; shape (reports, labels).
        told_apart: whether absent and not named are told apart.
        source: "rules", or the name of the CSV.
    """

    names: list[str]
    status: NDArray[np.int8]
    told_apart: bool
    source: str

    @property
    def known(self) -> NDArray[np.bool_]:
        """Reports that the source knows, shape (reports,)."""
        found: NDArray[np.bool_] = np.all(self.status >= 0, axis=1)
        return found

    @property
    def present(self) -> NDArray[np.bool_]:
        """Labels that are present, shape (reports, labels)."""
        found: NDArray[np.bool_] = np.equal(self.status, PRESENT)
        return found


@dataclass
class Pool:
    """Reports of one source, with what they state.

    Attributes:
        ids, findings, impressions: one entry a report; an empty text where a section is missing.
        tokens: after which a section is cut.
        left_out: rows that are no report, or have no text.
    """

    path: Path
    ids: list[str]
    findings: list[str]
    impressions: list[str]
    kind: str
    tokens: int
    ontology: Ontology
    settings: EvaluateFile
    ontology_files: tuple[str, ...] = ()
    csv: Path | None = None
    left_out: int = 0
    _labels: dict[str, Labels] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Numbers of the reports with both sections."""
        both = [bool(a and b) for a, b in zip(self.findings, self.impressions, strict=True)]
        return np.flatnonzero(both)

    @cached_property
    def whole(self) -> list[str]:
        """Findings and impression of each report as one text."""
        return [
            "\n".join(part for part in parts if part)
            for parts in zip(self.findings, self.impressions, strict=True)
        ]

    @cached_property
    def extractor(self) -> RulesExtractor:
        """What reads the reports."""
        return RulesExtractor(self.ontology) if self.ontology.user_sources else default_extractor()

    @cached_property
    def states(self) -> list[tuple[list[State], list[State]]]:
        """What the findings and the impression of each report state, by the rules."""
        read = self.extractor.states
        return [
            (
                [state for state, _ in read(findings, "findings")] if findings else [],
                [state for state, _ in read(impression, "impression")] if impression else [],
            )
            for findings, impression in zip(self.findings, self.impressions, strict=True)
        ]

    @property
    def sha256(self) -> str:
        """Hash of ids and texts: the same whatever file they came in."""
        digest = hashlib.sha256()
        for parts in zip(self.ids, self.findings, self.impressions, strict=True):
            digest.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\1")
        return digest.hexdigest()

    def labels(self) -> Labels:
        """Return the labels that probes learn: those of the CSV where there is one, else the rules'."""
        return self._kept("probes", lambda: self._human() if self.csv else self._rules())

    def findings_present(self) -> Labels:
        """Return the labels of label-Jaccard: those of the CSV, else every disease the rules read."""
        return self._kept("findings", lambda: self._human() if self.csv else self._diseases())

    def colours(self) -> Labels:
        """Return the rules' labels, whatever CSV there is: they tell what each section itself states."""
        return self._kept("rules", self._rules)

    def _kept(self, name: str, make: Any) -> Labels:
        if name not in self._labels:
            self._labels[name] = make()
        return self._labels[name]

    def _rules(self) -> Labels:
        settings = self.settings.labels
        names = [settings.no_finding, *settings.findings]
        status = np.zeros((len(self.ids), len(names)), np.int8)
        for number, (findings, impression) in enumerate(self.states):
            states = [*findings, *impression]
            for column, tags in enumerate(settings.findings.values(), 1):
                status[number, column] = status_of(states, tags, settings)
            if not (status[number] >= UNCERTAIN).any():
                status[number, 0] = PRESENT
        return Labels(names, status, True, "rules")

    def _diseases(self) -> Labels:
        kinds = set(self.settings.labels.kinds)
        found = [
            {tag for tag in present_tags(states, self.settings.labels) if self._kind(tag) in kinds}
            for states in ([*a, *b] for a, b in self.states)
        ]
        names = sorted(set().union(*found))
        place = {name: column for column, name in enumerate(names)}
        status = np.zeros((len(found), len(names)), np.int8)
        for number, tags in enumerate(found):
            status[number, [place[tag] for tag in tags]] = PRESENT
        return Labels(names, status, False, "rules")

    def _kind(self, tag: str) -> str:
        entry = self.ontology.findings.get(tag)
        return entry.kind if entry else ""

    def _human(self) -> Labels:
        assert self.csv is not None
        return read_labels(self.csv, self.ids, self.settings.labels)


def status_of(states: Sequence[State], tags: Sequence[str], settings: LabelSettings) -> int:
    """Return what states say of a label: present before uncertain before absent; 0 if they do not name it.

    A denial of a variant alone ("no new nodule") is no denial.
    """
    best = NOT_NAMED
    for state in states:
        if state["finding"] not in tags:
            continue
        if state.get("presence") == "absent":
            changed = state.get("temporal_change")
            restricted = any(
                state.get(name) is not None and not (name == "temporal_change" and changed == "resolved")
                for name in settings.restricting
            )
            best = max(best, NOT_NAMED if restricted else ABSENT)
        elif state.get("presence") == "indeterminate" or state.get("certainty") in settings.uncertain:
            best = max(best, UNCERTAIN)
        else:
            best = PRESENT
    return best


def present_tags(states: Sequence[State], settings: LabelSettings) -> set[str]:
    """Return the findings that states give as present, without hedging."""
    return {
        state["finding"]
        for state in states
        if state.get("presence") == "present" and state.get("certainty") not in settings.uncertain
    }


def read_pool(
    path: Path,
    settings: EvaluateFile,
    ontology: Ontology,
    *,
    kind: str | None = None,
    labels: Path | None = None,
    ontology_files: tuple[str, ...] = (),
) -> Pool:
    """Read reports of any source that ``radgen reports`` reads.

    Args:
        kind: a key of ``tokens.sections``; an archive is Open-I, anything else radiographs, if absent.

    Raises:
        RadgenError: the source cannot be read or holds no report, or the kind is unknown.
    """
    source = open_reports(path)
    known = settings.tokens.sections
    if kind is None:
        archive = source.format == "archive"
        kind = settings.tokens.archive_pool if archive else settings.tokens.default_pool
    if kind not in known:
        raise RadgenError(f"--pool: {unknown('pool', kind, known)}")
    pool = Pool(path, [], [], [], kind, known[kind], ontology, settings, ontology_files, labels)
    seen: set[str] = set()
    for row in source:
        data = row.data if isinstance(row, Report) else {}
        findings = (data.get("findings") or "").strip()
        impression = (data.get("impression") or "").strip()
        if not (findings or impression) or data["id"] in seen:
            pool.left_out += 1
            continue
        seen.add(data["id"])
        pool.ids.append(data["id"])
        pool.findings.append(findings)
        pool.impressions.append(impression)
    if not pool.ids:
        raise RadgenError(f"{path}: holds no report with a text")
    return pool


def read_labels(path: Path, ids: Sequence[str], settings: LabelSettings) -> Labels:
    """Read a CSV of labels: the first column is the report's id, every other one a label.

    1 is present, 0 not present, -1 uncertain, empty not named. Where the file has a -1 or an empty cell, 0 is
    absent (as CheXbert writes it); else 0 may also mean that the finding is not named.

    Raises:
        RadgenError: the file cannot be read, or a cell is none of these.
        SkippedError: it knows none of the reports.
    """
    place = {identifier: number for number, identifier in enumerate(ids)}
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.reader(handle)
            header = next(reader, [])
            columns = [
                (column, name.strip().replace("_", " ").lower())
                for column, name in enumerate(header)
                if column and name.strip() not in settings.normal_columns
            ]
            if not columns:
                raise RadgenError(f"{path}: expected a header: the id, then a column for each label")
            status = np.full((len(ids), len(columns)), -1, np.int8)
            four = False
            for cells in reader:
                number = place.get(cells[0].strip()) if cells else None
                if number is None:
                    continue
                for target, (column, name) in enumerate(columns):
                    cell = cells[column].strip() if column < len(cells) else ""
                    if cell not in _CELLS:
                        where = f"{path}:{reader.line_num}: {name}"
                        raise RadgenError(f"{where}: expected 1, 0, -1 or nothing, found {cell[:20]!r}")
                    status[number, target] = _CELLS[cell]
                    four = four or _CELLS[cell] in (NOT_NAMED, UNCERTAIN)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RadgenError(f"{path}: cannot be read as a CSV of labels: {error}") from None
    if (status < 0).all():
        raise SkippedError(f"{path.name} has labels for none of the reports (its first column is their id)")
    return Labels([name for _, name in columns], status, four, path.name)


_CELLS = {
    "": NOT_NAMED,
    **dict.fromkeys(("1", "1.0", "true", "True"), PRESENT),
    **dict.fromkeys(("0", "0.0", "false", "False"), ABSENT),
    **dict.fromkeys(("-1", "-1.0"), UNCERTAIN),
}
