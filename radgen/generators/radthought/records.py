"""``radgen radthought``: records of reports by rules, written as one folder (spec §6, §9).

The same reports and rule base give the same bytes with any number of workers; memory does not grow with the
number of reports.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.errors import DatasetError, RadgenError
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.generators.folders import MANIFEST, dump, finished, read_manifest, replacing, write_file
from radgen.generators.pools import pool
from radgen.generators.radthought.evidence import Evidence, gather
from radgen.generators.radthought.hierarchy import BACKEND, Hierarchy
from radgen.generators.radthought.record import COLUMNS, Record, RecordError, check_record
from radgen.generators.radthought.settings import rules_fingerprint
from radgen.generators.radthought.source import Job, Source, check_source
from radgen.generators.reports import SyntheticReports
from radgen.generators.similarity.folder import source_digest
from radgen.ontology.load import Ontology, load_ontology

#: Raised when the same reports and rule base give other records.
RADTHOUGHT_VERSION = 1
RECORDS, REJECTS = "records.jsonl", "rejects.jsonl"
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


@dataclass
class MadeRecords:
    """What came of an order.

    Attributes:
        rejected: reports without a record, by reason.
        counts: of the records: reports, findings, sentences of each level, conclusions.
        fresh: made now, rather than found in the place.
    """

    folder: Path
    records: int
    rejected: dict[str, int]
    counts: dict[str, int]
    fresh: bool


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

    def outcome(self, job: Job) -> Outcome:
        """Return the record of a report, checked, or the reason why there is none."""
        if job.problem is not None:
            return Outcome(job.id, reason=job.problem)
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


# --- the folder ---


def make_records(
    order: RecordOrder,
    folder: Path,
    *,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> MadeRecords:
    """Write the records of an order to a folder; the whole folder or nothing.

    Raises:
        DatasetError: something else stands in the place, or no report has a record.
        RadgenError: reports, rule base or ontology have mistakes.
    """
    check_source(order.source)
    ontology = order.ontology()
    fingerprint = order.identity(ontology)
    if found := existing(folder, fingerprint, force):
        return found
    return write_records(
        order, folder, ontology, fingerprint, record_lines(order, workers), progress=progress
    )


def existing(folder: Path, fingerprint: str, force: bool) -> MadeRecords | None:
    """Return the records that stand in a folder, None where they have to be made.

    Raises:
        DatasetError: something else stands there.
    """
    if not finished(folder, fingerprint, force):
        return None
    manifest = read_manifest(folder) or {}
    rows: int = manifest["files"][RECORDS]["rows"]
    return MadeRecords(folder, rows, manifest["rejected"], manifest["counts"], False)


def write_records(
    order: RecordOrder,
    folder: Path,
    ontology: Ontology,
    fingerprint: str,
    lines: Iterable[Line],
    *,
    progress: Callable[[int], None] = lambda _: None,
    more: dict[str, Any] | None = None,
) -> MadeRecords:
    """Write lines, manifest and card; the whole folder or nothing.

    Args:
        more: further keys of the manifest.
    """
    counts: Counter[str] = Counter(dict.fromkeys(("reports", *COUNTED), 0))
    rejected: Counter[str] = Counter()
    with replacing(folder) as partial:
        files = {name: _File(partial / name) for name in (RECORDS, REJECTS)}
        try:
            for identifier, line, reason, numbers in lines:
                counts["reports"] += 1
                if line is None:
                    files[REJECTS].write(orjson.dumps({"id": identifier, "reason": reason}))
                    rejected[_kind(reason)] += 1
                else:
                    files[RECORDS].write(line)
                    for name, number in zip(COUNTED, numbers, strict=True):
                        counts[name] += number
                progress(counts["reports"])
        finally:
            for file in files.values():
                file.close()
        if not files[RECORDS].rows:
            most = "".join(f": {reason}" for reason, _ in rejected.most_common(1))
            raise DatasetError(f"{folder}: no report has a record{most}")
        manifest = {
            "radgen": "records",
            "family": "radthought",
            "name": "records",
            "command": order.command(),
            "version": __version__,
            "recipe_version": RADTHOUGHT_VERSION,
            "fingerprint": fingerprint,
            "ontology": ontology.fingerprint,
            "rules": rules_fingerprint(ontology),
            "states": order.source.states,
            "backend": order.backend,
            "columns": list(COLUMNS),
            "files": {name: file.entry() for name, file in files.items()},
            "rejected": dict(sorted(rejected.items())),
            "counts": dict(counts),
            **(more or {}),
        }
        write_file(partial / "README.md", card(manifest).encode())
        write_file(partial / MANIFEST, dump(manifest))
    return MadeRecords(folder, files[RECORDS].rows, dict(rejected), dict(counts), True)


class _File:
    """A file of rows that counts and hashes them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=1 << 20)
        self._hash = sha256()
        self.rows = self.bytes = 0

    def write(self, line: bytes) -> None:
        data = line + b"\n"
        self._file.write(data)
        self._hash.update(data)
        self.rows += 1
        self.bytes += len(data)

    def close(self) -> None:
        self._file.close()

    def entry(self) -> dict[str, Any]:
        return {"rows": self.rows, "bytes": self.bytes, "sha256": self._hash.hexdigest()}


def _kind(reason: str) -> str:
    """Return a reason without what differs from report to report, so that reasons can be counted.

    >>> _kind("conclusion 2 (free_air): acuity: not stated by its evidence")
    'conclusion: acuity: not stated by its evidence'
    """
    head, _, rest = reason.partition("': " if reason.startswith("predicate '") else ": ")
    for start in (
        "conclusion ",
        "predicate ",
        "relation ",
        "first order, ",
        "second order, ",
        "third order, ",
    ):
        if head.startswith(start) and rest:
            return f"{start.rstrip(' ,')}: {rest}"
    return reason


def card(manifest: dict[str, Any]) -> str:
    """Return the dataset card of a folder of records."""
    counts, rows = manifest["counts"], manifest["files"][RECORDS]["rows"]
    columns = "\n".join(f"- `{name}`: {text}" for name, text in _COLUMNS.items())
    return f"""---
configs:
- config_name: records
  data_files: {RECORDS}
---
# radgen radthought: records

Evidence predicates of reports, first-, second- and third-order descriptions and a synthesis, with what each
sentence concludes and from which findings. Made by `{manifest["command"]}` (radgen {manifest["version"]},
backend `{manifest["backend"]}`).

{rows:,} records of {counts["reports"]:,} reports: {counts["findings"]:,} findings,
{counts["second_order"]:,} sentences of the second order, {counts["third_order"]:,} of the third,
{counts["conclusions"]:,} conclusions. `{REJECTS}` has the id of every report without a record and the reason.

{columns}

Nothing here is for clinical use.
"""


_COLUMNS = {
    "id": "the report's",
    "predicates": "what the report states, as `name(f1,value)`; findings are numbered f1, f2, …",
    "first_order": "a sentence for each finding, in their order",
    "second_order": "sentences on relations and local patterns",
    "third_order": "sentences on processes, change, complications excluded, significance",
    "synthesis": "two or three sentences",
    "conclusions": "level, text, rule, derived findings, about, assertion, certainty, severity, acuity, "
    "temporal, mechanism, significance; null where not stated",
    "backend": "rules, or openai:MODEL",
}


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
