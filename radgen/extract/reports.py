"""``radgen reports``: reports of any source into one JSONL file, broken rows into another."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from radgen.atomic import AtomicFile
from radgen.errors import RadgenError
from radgen.extract.readers import Reject, Report, ReportSource, open_reports


@dataclass
class ReportCounts:
    """What was written and what was not.

    Attributes:
        sections: reports by the sections they have: "both", "findings only", "impression only".
        rejected: rows by the reason why they are no report.
    """

    written: int = 0
    sections: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


class _SeenIds:
    """Which ids have been written, and where; in a temporary database, so that memory stays flat."""

    def __init__(self) -> None:
        # An empty name is SQLite's temporary database: a small cache, then a file that is already deleted.
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.execute("PRAGMA journal_mode = OFF")
        self._store.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._store.execute("BEGIN")

    def add(self, identifier: str, place: str) -> str | None:
        """Remember an id; return the place that had it before, if any."""
        key = hashlib.blake2b(identifier.encode(), digest_size=16).digest()
        if self._insert(key, place):
            return None
        return str(self._store.execute("SELECT place FROM seen WHERE id = ?", (key,)).fetchone()[0])

    def _insert(self, key: bytes, place: str) -> bool:
        try:
            cursor = self._store.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, place))
        except sqlite3.OperationalError as error:
            raise RadgenError(f"the folder for temporary files cannot be used: {error}") from None
        return cursor.rowcount == 1

    def close(self) -> None:
        """Drop the database."""
        self._store.close()


class _Rejects:
    """The file of rejected rows; it is made with the first of them."""

    def __init__(self, path: Path, force: bool, stack: ExitStack) -> None:
        self._file = AtomicFile(path, force=force)
        self._stack = stack
        self._handle: BinaryIO | None = None

    def write(self, reject: Reject) -> None:
        if self._handle is None:
            self._handle = self._stack.enter_context(self._file)
        row = {"file": reject.file, "line": reject.line, "reason": reject.reason}
        self._handle.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def write_reports(
    items: Iterable[Report | Reject],
    out: Path,
    rejects: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> ReportCounts:
    """Write reports to ``out`` and rejected rows to ``rejects`` (made only if there are any).

    Both appear under their names only when everything is written. A second report of one id is rejected.

    Raises:
        RadgenError: a file is there already and ``force`` is false, or no row is a report.
        OSError: the files cannot be written.
    """
    if out.resolve() == rejects.resolve():
        raise RadgenError(f"{out}: the reports and the rejects need different files")
    counts = ReportCounts()
    with ExitStack() as stack:
        rejected = _Rejects(rejects, force, stack)
        handle = stack.enter_context(AtomicFile(out, force=force))
        seen = _SeenIds()
        stack.callback(seen.close)
        first: Reject | None = None
        for number, item in enumerate(items, start=1):
            if isinstance(item, Report):
                place = f"{item.file}:{item.line}" if item.line else item.file
                before = seen.add(item.data["id"], place)
                if before is None:
                    handle.write(orjson.dumps(item.data, option=orjson.OPT_APPEND_NEWLINE))
                    _count(counts, item.data)
                else:
                    item = Reject(item.file, item.line, f"the same id as {before}")
            if isinstance(item, Reject):
                first = first or item
                rejected.write(item)
                counts.rejected[_kind(item.reason)] += 1
            if number % 500 == 0:
                progress(number)
        if not counts.written:
            raise RadgenError(_nothing(first))
    if force and not counts.rejected:
        rejects.unlink(missing_ok=True)  # of an earlier run: it would speak of rows that are there now
    return counts


def convert(
    path: Path,
    out: Path,
    rejects: Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    kind: str | None = None,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[ReportSource, ReportCounts]:
    """Read the reports of a file, folder or archive and write them to ``out`` (see ``write_reports``).

    Args:
        rejects: where rejected rows go; ``rejects.jsonl`` beside ``out`` if absent.
        columns: the source's columns that the user named, by role.
        kind: format of the source; guessed from its name if absent.

    Raises:
        RadgenError: as ``open_reports`` and ``write_reports`` do, or ``out`` is the source.
    """
    rejects = rejects or out.with_name("rejects.jsonl")
    for target in (out, rejects):
        if path.is_file() and target.exists() and target.samefile(path):
            raise RadgenError(f"{target}: is the file to read; name another one to write")
    source = open_reports(path, columns, kind)
    return source, write_reports(source, out, rejects, force=force, progress=progress)


def summary(source: ReportSource, counts: ReportCounts, out: Path, rejects: Path) -> list[str]:
    """Say in a few lines what was read as what, what was written, and what was not."""
    lines = []
    if source.format in ("jsonl", "csv", "parquet"):
        chosen = ", ".join(f"{role} = '{name}'" for role, name in source.columns.items())
        lines.append(f"columns: {chosen}")
    parts = ", ".join(f"{number:,} {name}" for name, number in sorted(counts.sections.items()))
    lines.append(f"{counts.written:,} reports ({parts}) -> {out}")
    if counts.rejected:
        lines.append(f"{counts.rejected.total():,} rejected -> {rejects}")
        lines += [f"  {number:,} {reason}" for reason, number in counts.rejected.most_common(5)]
    if source.latin1:
        lines.append(f"warning: {source.latin1:,} rows or files are not UTF-8 and were read as Latin-1")
    if source.skipped:
        lines.append(f"{source.skipped:,} other files left alone")
    return lines


def _nothing(first: Reject | None) -> str:
    if first is None:
        return "no row is a report: the source is empty"
    place = f"{first.file}:{first.line}" if first.line else first.file
    return f"no row is a report; the first, {place}: {first.reason}"


def _kind(reason: str) -> str:
    """Group reasons for the summary: what differs from row to row is left out."""
    if reason.startswith("the same id as"):
        return "an id that another row has"
    return " ".join("…" if word.isdigit() else word for word in reason.split())


def _count(counts: ReportCounts, report: dict[str, Any]) -> None:
    counts.written += 1
    if report["findings"] is None:
        counts.sections["impression only"] += 1
    else:
        counts.sections["findings only" if report["impression"] is None else "both"] += 1
