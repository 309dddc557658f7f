"""``radgen radthought``: records of reports by rules, written as one folder (spec §6, §9).

The same reports and rule base give the same bytes with any number of workers; memory does not grow with the
number of reports.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.generators.pools import pool
from radgen.generators.radthought.evidence import Evidence, gather
from radgen.generators.radthought.hierarchy import BACKEND, Hierarchy
from radgen.generators.radthought.record import Record, RecordError, check_record
from radgen.generators.radthought.settings import rules_fingerprint
from radgen.generators.radthought.source import Job, Source
from radgen.generators.reports import SyntheticReports
from radgen.generators.similarity.folder import source_digest
from radgen.ontology.finding import check_state
from radgen.ontology.load import Ontology, load_ontology

#: Raised when the same reports and rule base give other records.
RADTHOUGHT_VERSION = 1
NO_FINDING = "no finding was read in it"
_CHUNK = 64


@dataclass(frozen=True)
class RecordOrder:
    """Which records to make: everything that their rows depend on."""

    source: Source
    ontology_files: tuple[str, ...] = ()
    backend: str = BACKEND

    def ontology(self) -> Ontology:
        """Load the ontology that the order names."""
        return load_ontology(self.ontology_files)

    def command(self) -> str:
        """Return the command line, without what does not change the rows."""
        source = self.source
        words = ["radgen radthought"]
        if source.reports is not None:
            words.append(source.reports.name)
        else:
            words.append(f"--synthetic {source.synthetic} --seed {source.seed} --modality {source.modality}")
        words += [f"--extracted {source.extracted.name}"] if source.extracted else []
        words += ["--truth"] if source.truth else []
        words += [f"--limit {source.limit}"] if source.limit is not None else []
        words += [f"--ontology {Path(path).name}" for path in self.ontology_files]
        words += [f"--backend openai --model {self.backend.partition(':')[2]}"] if ":" in self.backend else []
        return " ".join(words)

    def identity(self, ontology: Ontology, **more: Any) -> str:
        """Return the hash of all that the records depend on."""
        source = self.source
        paths = [path for path in (source.reports, source.extracted) if path is not None]
        made = [source.synthetic, source.seed, source.modality] if source.reports is None else None
        parts = {
            "version": RADTHOUGHT_VERSION,
            "ontology": ontology.fingerprint,
            "rules": rules_fingerprint(ontology),
            "sources": [source_digest(path) for path in paths],
            "states": source.states,
            "made": made,
            "limit": source.limit,
            "backend": self.backend,
            **more,
        }
        return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(slots=True)
class Outcome:
    """What came of one report: its record, or why it has none."""

    id: str
    record: Record | None = None
    reason: str = ""


def extractor_of(order: RecordOrder, ontology: Ontology) -> RulesExtractor:
    """Return the extractor over an order's ontology; that of the packaged one is made once."""
    return RulesExtractor(ontology) if order.ontology_files else default_extractor()


class Maker:
    """Makes records; one for each process."""

    def __init__(self, order: RecordOrder) -> None:
        self.order = order
        self.ontology = order.ontology()
        self.hierarchy = Hierarchy(self.ontology)
        self.extractor = extractor_of(order, self.ontology)
        source = order.source
        self.reports = None
        if source.reports is None:
            self.reports = SyntheticReports(self.ontology, source.seed, source.modality)

    def evidence(self, job: Job) -> tuple[str, dict[str, str], Evidence]:
        """Return id, sections and evidence of a report."""
        identifier, sections, placed = job.id, job.sections, job.placed
        if job.made is not None and self.reports is not None:
            row = self.reports.row(job.made)
            identifier = row["id"]
            sections = {name: row[name] for name in ("findings", "impression") if row[name]}
        if placed is None:
            placed = {name: self.extractor.states(text, name) for name, text in sections.items()}
        return identifier, sections, gather(sections, placed, self.hierarchy.file.relations)

    def _given_problem(self, job: Job) -> str | None:
        """Return what is wrong with findings that were read elsewhere: truth, or an extraction."""
        for name, placed in (job.placed or {}).items():
            for place, (state, _) in enumerate(placed, 1):
                try:
                    checked = check_state(state)
                except ValueError:
                    return f"{name}, finding {place}: not a canonical finding"
                if checked.finding not in self.ontology.findings:
                    return f"{name}, finding {place}: not a finding of the ontology"
                if checked.presence is None:
                    return f"{name}, finding {place}: has no presence"
        return None

    def outcome(self, job: Job) -> Outcome:
        """Return the record of a report, checked, or the reason why there is none."""
        if job.problem is not None:
            return Outcome(job.id, reason=job.problem)
        problem = self._given_problem(job)
        if problem:
            return Outcome(job.id, reason=problem)
        identifier, _, evidence = self.evidence(job)
        if not evidence.states:
            return Outcome(identifier, reason=NO_FINDING)
        record = self.hierarchy.record(identifier, evidence)
        try:
            check_record(record, self.ontology.findings)
        except RecordError as error:
            return Outcome(identifier, reason=str(error))
        return Outcome(identifier, record)


# --- workers ---

_worker: dict[str, Maker] = {}
#: A chunk's lines: (id, line of the record or None, reason, counts).
Line = tuple[str, bytes | None, str, tuple[int, ...]]
COUNTED = ("findings", "second_order", "third_order", "conclusions")


def _start(order: RecordOrder) -> None:
    if "maker" not in _worker:  # a forked process has its parent's
        _worker["maker"] = Maker(order)


def _lines(jobs: list[Job]) -> list[Line]:
    maker = _worker["maker"]
    out: list[Line] = []
    for job in jobs:
        outcome = maker.outcome(job)
        record = outcome.record
        if record is None:
            out.append((outcome.id, None, outcome.reason, ()))
            continue
        counts = tuple(
            map(len, (record.first_order, record.second_order, record.third_order, record.conclusions))
        )
        out.append((outcome.id, orjson.dumps(record.row()), "", counts))
    return out


def record_lines(order: RecordOrder, workers: int) -> Iterator[Line]:
    """Yield a line for every report in order, the same whatever the number of workers.

    Raises:
        RadgenError: reports, rule base or ontology have mistakes; raised here, not in a worker.
    """
    _worker["maker"] = maker = Maker(order)
    chunks = _chunks(order.source.jobs(maker.ontology))
    try:
        if workers <= 1:
            for chunk in chunks:
                yield from _lines(chunk)
            return
        gc.freeze()  # what the workers share stays shared
        with pool(workers, _start, (order,)) as running:
            waiting: deque[Any] = deque()
            try:
                for chunk in chunks:
                    waiting.append(running.submit(_lines, chunk))
                    if len(waiting) > 3 * workers:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
    finally:
        _worker.clear()


def _chunks(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    iterator = iter(jobs)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def one_record(text: str, ontology_files: tuple[str, ...] = ()) -> Record:
    """Return the record of one text, for ``radgen radthought --show``.

    Raises:
        RadgenError: no finding is read in it.
    """
    order = RecordOrder(Source(reports=Path("text")), ontology_files)
    outcome = Maker(order).outcome(Job("text", {"findings": text}))
    if outcome.record is None:
        raise RadgenError(f"no record: {outcome.reason}")
    return outcome.record
