"""Every attempt on disk before anything is made of it: one SQLite file, one writing thread (spec §8).

WAL, an ordinary rowid table. Each group of attempts that has gathered is committed at once, so that a killed
process loses next to nothing, and is synchronised with the disk (``synchronous=FULL``) each 100 rows or
0.25 s, so that a power cut loses no more than that.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import Kind
from radgen.extract.endpoint.settings import StoreNumbers

#: Format of the file; a newer radgen that changes it counts up.
FORMAT = 1
OPEN, GOOD, DEAD, RETIRED = 0, 1, 2, -1

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL,            -- sha256 of prompt version and canonical body
    step TEXT NOT NULL,           -- first, longer, repair
    kind TEXT NOT NULL,           -- what it came to
    final INTEGER NOT NULL,       -- 0 the row goes on, 1 result, 2 dead letter, -1 set aside (--retry-failed)
    status INTEGER,               -- of HTTP
    detail TEXT,
    raw BLOB,                     -- the body that came back
    input_tokens INTEGER,
    output_tokens INTEGER,
    seconds REAL,
    source TEXT NOT NULL          -- live, or batch
);
CREATE INDEX attempts_key ON attempts (key);
"""
_COLUMNS = "key, step, kind, final, status, detail, raw, input_tokens, output_tokens, seconds, source"
_INSERT = f"INSERT INTO attempts ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"


@dataclass(slots=True)
class Attempt:
    """One row of the store: one request and what came back."""

    key: bytes
    step: str
    kind: Kind
    final: int
    status: int | None = None
    detail: str | None = None
    raw: bytes | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    source: str = "live"

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of the table."""
        return (
            self.key, self.step, self.kind.value, self.final, self.status, self.detail, self.raw,
            self.input_tokens, self.output_tokens, self.seconds, self.source,
        )  # fmt: skip


class StoreError(RadgenError):
    """The store cannot be used or written; the line says why and what is safe."""


class Store:
    """The attempts of one or more runs.

    Args:
        path: the SQLite file; made if it is not there, readable by its owner only (it quotes reports).
        numbers: how often to synchronise, and the reserve for a full disk.

    Raises:
        StoreError: the file is another program's, a newer radgen's, broken, or used by another run.
    """

    def __init__(self, path: Path, numbers: StoreNumbers) -> None:
        self.path, self._numbers = path, numbers
        self._lock_file: Any = None
        self._reserve = path.with_name(path.name + ".reserve")
        self._queue: deque[Attempt] = deque()
        self._wake, self._idle, self._closing = threading.Event(), threading.Event(), False
        self._idle.set()
        self._saved: deque[bytes] = deque()
        self._error: sqlite3.Error | None = None
        self._lost = 0
        self._full = True  # the level of the writing connection, as _connect sets it
        self.on_problem: Callable[[], object] = lambda: None
        with _explained(path):
            self._lock()
            try:
                self._open()
            except BaseException:
                self._unlock()
                raise

    # -- opening and closing ------------------------------------------------------------------------

    def _lock(self) -> None:
        """Keep a second run out: two would ask for the same rows. SQLite's own locks end with a commit."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # Windows: SQLite still keeps the file whole
            return
        name = self.path.with_name(self.path.name + ".lock")
        while True:
            self._lock_file = open(name, "a")  # noqa: SIM115  (kept open as long as the store)
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(self._lock_file.fileno()), os.stat(name)):
                    return
            except BlockingIOError:
                self._lock_file.close()
                raise StoreError(
                    f"{self.path}: another radgen is using this store; wait for it, or give another --store"
                ) from None
            except FileNotFoundError:
                pass
            self._lock_file.close()  # its owner removed the file meanwhile: lock the new one

    def _unlock(self) -> None:
        if self._lock_file is not None and not self._lock_file.closed:
            with contextlib.suppress(OSError):
                os.unlink(self._lock_file.name)
            self._lock_file.close()

    def _open(self) -> None:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._read = self._connect()
        tables = {name for (name,) in self._read.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if not tables:
            note = f"INSERT INTO meta VALUES ('format', '{FORMAT}');"
            self._read.executescript(f"BEGIN; {_SCHEMA} {note} COMMIT;")
        elif not {"meta", "attempts"} <= tables:
            raise StoreError(f"{self.path}: a SQLite file, but no radgen store; give another --store")
        found = self.get("format")
        if found != str(FORMAT):
            raise StoreError(
                f"{self.path}: a store of format {found}, this radgen reads format {FORMAT}; "
                "use the newer radgen that wrote it, or give another --store (nothing was changed)"
            )
        self._write = self._connect()
        # Takes the write lock once, so that another program's long transaction is noticed before any request.
        self._write.execute("BEGIN IMMEDIATE")
        self._write.execute("COMMIT")
        self._fill_reserve()
        self._thread = threading.Thread(target=self._run, name="radgen-store", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._numbers.busy_s, isolation_level=None, check_same_thread=False
        )
        (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise StoreError(f"{self.path}: needs a disk of this machine (SQLite cannot keep a WAL there)")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _fill_reserve(self) -> None:
        size = self._numbers.reserve_mb << 20
        if size and not self._reserve.exists():
            with open(self._reserve, "wb") as file:
                file.write(bytes(size))

    def close(self) -> None:
        """Write and synchronise what is left, and let the file go.

        Raises:
            StoreError: something could not be written.
        """
        self._closing = True
        self._wake.set()
        self._thread.join()
        for connection in (self._read, self._write):
            connection.close()
        with contextlib.suppress(OSError):
            self._reserve.unlink()
        self._unlock()
        self.check()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            with contextlib.suppress(StoreError):  # the first error is the one to show
                self.close()

    # -- writing ------------------------------------------------------------------------------------

    def add(self, attempt: Attempt) -> None:
        """Hand an attempt to the writer; returns at once. What is handed over is stored if it can be at all.

        Raises:
            StoreError: the writer has met a problem; the run has to end.
        """
        self._queue.append(attempt)
        if not self._wake.is_set():
            self._wake.set()
        self.check()

    @property
    def behind(self) -> bool:
        """Whether the writer cannot follow: no more requests should be sent until it has caught up.

        Raises:
            StoreError: the writer has met a problem.
        """
        if len(self._queue) < self._numbers.backlog:
            return False
        self.check()
        return True

    def saved(self) -> Iterator[bytes]:
        """Yield the keys whose final attempt has been committed since the last call."""
        while self._saved:
            yield self._saved.popleft()

    def flush(self) -> None:
        """Wait until everything handed over is committed.

        Raises:
            StoreError: it cannot be.
        """
        while self._queue or not self._idle.is_set():
            self._idle.wait(0.01)
            self.check()
            if not self._thread.is_alive():
                return

    def check(self) -> None:
        """Raise the problem that the writer has met, if any.

        Raises:
            StoreError: with what is stored and what is not.
        """
        if self._error is None:
            return
        lost = self._lost + (0 if self._thread.is_alive() else len(self._queue))
        what = f"{lost} answers could not be stored" if lost else "every answer is stored"
        raise StoreError(
            f"{self.path}: {_reason(self._error)}; the run has stopped, {what}; the same command goes on"
        )

    def _run(self) -> None:
        unsynced, oldest = 0, 0.0
        while True:
            left = self._numbers.seconds - (time.monotonic() - oldest)
            if self._wake.wait(max(0.0, left) if unsynced else None) and not self._closing:
                time.sleep(self._numbers.gather_s)  # a commit for each answer would cost a tenth of the run
            self._idle.clear()
            self._wake.clear()
            closing = self._closing
            batch = list(self._take())
            if batch and not unsynced:
                oldest = time.monotonic()
            due = unsynced + len(batch) >= self._numbers.rows
            full = closing or due or time.monotonic() - oldest >= self._numbers.seconds
            if batch or (unsynced and full):
                if not self._commit(batch, full):
                    return
                unsynced = 0 if full else unsynced + len(batch)
            self._idle.set()
            if closing and not self._queue:
                return

    def _take(self) -> Iterator[Attempt]:
        while self._queue:
            yield self._queue.popleft()

    def _commit(self, batch: Sequence[Attempt], full: bool) -> bool:
        """Commit a group. Returns whether it is stored; if it cannot be at once, the run has to end.

        A full disk gets the reserve; that, and a lock that another program holds, is tried again for
        ``patience_s`` while no new request is sent.
        """
        try:
            self._write_group(batch, full)
        except sqlite3.Error as error:
            self._error = error
            self.on_problem()
            if not self._again(batch):
                self._lost = len(batch)
                return False
        self._saved.extend(attempt.key for attempt in batch if attempt.final > 0)
        return True

    def _again(self, batch: Sequence[Attempt]) -> bool:
        end = time.monotonic() + self._numbers.patience_s
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self._reserve.unlink()
            try:
                self._write_group(batch, full=True)
            except sqlite3.Error:
                time.sleep(0.1)
            else:
                return True
        return False

    def _write_group(self, batch: Sequence[Attempt], full: bool) -> None:
        if full != self._full:
            self._write.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full = full
        try:
            self._write.execute("BEGIN IMMEDIATE")
            self._write.executemany(_INSERT, [attempt.row() for attempt in batch])
            if not batch:  # an empty transaction would synchronise nothing
                self._write.execute(
                    "INSERT OR REPLACE INTO meta VALUES ('synchronised', ?)", (str(time.time_ns()),)
                )
            self._write.execute("COMMIT")
        except sqlite3.Error:
            if self._write.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._write.execute("ROLLBACK")
            raise

    # -- reading ------------------------------------------------------------------------------------

    def get(self, name: str) -> str | None:
        """Return a value of the store's own notes."""
        row = self._read.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def put(self, name: str, value: str) -> None:
        """Set a value of the store's own notes."""
        with _explained(self.path):
            self._read.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def states(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Return for each key that has attempts in force the highest of their ``final``."""
        marks = ", ".join("?" * len(keys))
        query = f"SELECT key, MAX(final) FROM attempts WHERE key IN ({marks}) AND final >= 0 GROUP BY key"
        return dict(self._read.execute(query, keys))

    def attempts(self, keys: Sequence[bytes]) -> dict[bytes, list[Attempt]]:
        """Return the attempts in force of each key, oldest first."""
        marks = ", ".join("?" * len(keys))
        found: dict[bytes, list[Attempt]] = {}
        query = f"SELECT {_COLUMNS} FROM attempts WHERE key IN ({marks}) AND final >= 0 ORDER BY id"
        for key, step, kind, *rest in self._read.execute(query, keys):
            found.setdefault(key, []).append(Attempt(key, step, Kind(kind), *rest))
        return found

    def finals(self, keys: Sequence[bytes]) -> dict[bytes, Attempt]:
        """Return the final attempt of each key that has one."""
        marks = ", ".join("?" * len(keys))
        query = f"SELECT {_COLUMNS} FROM attempts WHERE key IN ({marks}) AND final > 0"
        rows = self._read.execute(query, keys)
        return {key: Attempt(key, step, Kind(kind), *rest) for key, step, kind, *rest in rows}

    def usage(self) -> tuple[int, int, int]:
        """Return input tokens, output tokens and the number of attempts that were counted."""
        query = "SELECT TOTAL(input_tokens), TOTAL(output_tokens), COUNT(output_tokens) FROM attempts"
        row = self._read.execute(query).fetchone()
        return int(row[0]), int(row[1]), int(row[2])

    def retire_dead(self, keys: Iterable[bytes]) -> int:
        """Set the attempts of dead letters aside, so that they are asked again; return their number."""
        with _explained(self.path):
            count = 0
            self._read.execute("BEGIN IMMEDIATE")
            for key in keys:
                self._read.execute(f"UPDATE attempts SET final = {RETIRED} WHERE key = ?", (key,))
                count += 1
            self._read.execute("COMMIT")
        return count


def _reason(error: BaseException) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    reasons = {
        sqlite3.SQLITE_BUSY: "locked by another program; close it, or give another --store",
        sqlite3.SQLITE_NOTADB: "no SQLite file; give another --store",
        sqlite3.SQLITE_CORRUPT: "damaged; `sqlite3 FILE .recover` may save what it holds",
        sqlite3.SQLITE_READONLY: "read-only",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened",
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_IOERR: "the disk reports an error",
    }
    return reasons.get(code) or str(error)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line about the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_reason(error)}") from None
