"""Folders of records: ``records.jsonl``, ``rejects.jsonl``, manifest and card; all of it or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.errors import DatasetError
from radgen.generators.folders import MANIFEST, dump, finished, read_manifest, replacing, write_file
from radgen.generators.radthought.record import COLUMNS
from radgen.generators.radthought.records import COUNTED, RADTHOUGHT_VERSION, Line, RecordOrder, record_lines
from radgen.generators.radthought.settings import rules_fingerprint
from radgen.generators.radthought.source import check_source
from radgen.ontology.load import Ontology

RECORDS, REJECTS = "records.jsonl", "rejects.jsonl"


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
