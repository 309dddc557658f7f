"""The store: what is on disk when, and what is said when it cannot be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from endpoint_runs import extract, options, task, write_reports
from endpoint_server import FaultServer

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import Kind
from radgen.extract.endpoint.command import extract_with_endpoint
from radgen.extract.endpoint.settings import load_settings
from radgen.extract.endpoint.store import DEAD, GOOD, OPEN, Attempt, Store

NUMBERS = load_settings(store__reserve_mb=0, store__busy_s=0.2).store


def attempt(number: int, final: int = GOOD, raw: bytes = b"{}") -> Attempt:
    return Attempt(number.to_bytes(32, "big"), "first", Kind.ok, final, 200, None, raw, 10, 5, 0.1)


def outside(path: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute(query).fetchall()


def test_what_is_added_is_committed_without_closing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path, NUMBERS) as store:
        for number in range(250):
            store.add(attempt(number))
        store.flush()
        assert outside(path, "SELECT COUNT(*), COUNT(DISTINCT key) FROM attempts") == [(250, 250)]
        assert sorted(store.saved()) == sorted(number.to_bytes(32, "big") for number in range(250))
        assert list(store.saved()) == []
    assert outside(path, "PRAGMA journal_mode") == [("wal",)]
    assert outside(
        path, "SELECT sql NOT LIKE '%WITHOUT ROWID%' FROM sqlite_master WHERE name = 'attempts'"
    ) == [(1,)]


def test_a_commit_is_synchronised_each_hundred_rows_and_each_quarter_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Watches the real commits: which were made with synchronous=FULL, after how many rows."""
    commits: list[tuple[float, int, bool]] = []
    write = Store._write_group

    def watched(self: Store, batch: Any, full: bool) -> None:
        write(self, batch, full)
        level = self._write.execute("PRAGMA synchronous").fetchone()[0]
        commits.append((time.monotonic(), len(batch), level == 2))

    monkeypatch.setattr(Store, "_write_group", watched)
    with Store(tmp_path / "s.sqlite", NUMBERS) as store:
        for number in range(1000):
            store.add(attempt(number))
            if number % 20 == 0:
                time.sleep(0.002)
        store.flush()
        waiting = 0
        for _, rows, full in commits:
            waiting += rows
            assert full or waiting < 100
            waiting = 0 if full else waiting
        began = time.monotonic()
        store.add(attempt(1000))
        while not commits[-1][2] or commits[-1][0] < began:
            assert time.monotonic() - began < 2
            time.sleep(0.01)
        assert commits[-1][0] - began < 0.4
    assert commits[-1][2]


def test_states_attempts_and_finals(tmp_path: Path) -> None:
    keys = [number.to_bytes(32, "big") for number in range(5)]
    with Store(tmp_path / "s.sqlite", NUMBERS) as store:
        for one in (attempt(0), attempt(1, OPEN, b"a"), attempt(1, DEAD, b"b"), attempt(2, OPEN)):
            store.add(one)
        store.flush()
        assert store.states(keys) == {keys[0]: GOOD, keys[1]: DEAD, keys[2]: OPEN}
        assert [one.raw for one in store.attempts(keys)[keys[1]]] == [b"a", b"b"]
        assert sorted(store.finals(keys)) == keys[:2]
        assert store.usage() == (40, 20, 4)
        assert store.retire_dead([keys[1]]) == 1
        assert store.states(keys) == {keys[0]: GOOD, keys[2]: OPEN}
        assert store.attempts(keys[1:2]) == {}
        assert store.usage() == (40, 20, 4)


def test_a_store_of_a_newer_radgen_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path, NUMBERS) as store:
        store.add(attempt(1))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '7' WHERE key = 'format'")
    before = path.read_bytes()
    with pytest.raises(RadgenError, match=r"format 7, this radgen reads format 1.*nothing was changed"):
        Store(path, NUMBERS)
    assert path.read_bytes() == before


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_text("id,findings\n" * 100)
    with pytest.raises(RadgenError, match="no SQLite file"):
        Store(path, NUMBERS)
    assert path.read_text() == "id,findings\n" * 100
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE patients (id)")
    with pytest.raises(RadgenError, match="no radgen store"):
        Store(other, NUMBERS)
    assert outside(other, "SELECT name FROM sqlite_master") == [("patients",)]


def test_a_second_run_on_the_same_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store(path, NUMBERS), pytest.raises(RadgenError, match="another radgen is using this store"):
        Store(path, NUMBERS)
    with Store(path, NUMBERS):
        pass
    script = f"""
import sys
from pathlib import Path
from radgen.extract.endpoint.settings import load_settings
from radgen.extract.endpoint.store import Store
Store(Path({str(path)!r}), load_settings().store)
"""
    with Store(path, NUMBERS):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "another radgen is using this store" in done.stderr


def test_a_store_locked_by_another_program_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    with FaultServer() as server:
        assert extract(tmp_path, server, limit=1).code == 0
        other = sqlite3.connect(tmp_path / "out.store.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RadgenError, match=r"out\.store\.sqlite: locked by another program"):
            extract(tmp_path, server)
        assert sum(server.cases.values()) == 1
        other.execute("ROLLBACK")
        other.close()
        assert extract(tmp_path, server).code == 0
        assert sum(server.cases.values()) == 3


def test_a_store_that_is_locked_in_the_middle_ends_the_run_and_what_is_stored_counts(tmp_path: Path) -> None:
    write_reports(tmp_path, range(400))
    with FaultServer() as server:
        server.delay = 0.01
        chosen = options(tmp_path, server, concurrency=8)
        locked = threading.Event()

        def lock() -> None:
            while len(server.answered) < 60:
                time.sleep(0.002)
            other = sqlite3.connect(chosen.store_path, isolation_level=None, timeout=5)
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            time.sleep(2)
            other.execute("ROLLBACK")
            other.close()

        thread = threading.Thread(target=lock)
        thread.start()
        with pytest.raises(
            RadgenError, match=r"locked by another program.*every answer is stored; the same command"
        ):
            extract_with_endpoint(chosen, task())
        thread.join()
        stored = outside(chosen.store_path, "SELECT COUNT(*) FROM attempts")[0][0]
        assert stored == len(server.answered) < 400
        assert extract(tmp_path, server, concurrency=8).code == 0
        assert sum(server.cases.values()) == 400


def test_a_full_database_ends_the_run_with_a_clear_error_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own "disk is full", from a page limit on the file."""
    write_reports(tmp_path, range(300))
    connect = Store._connect

    def small(self: Store) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 40")
        return connection

    with FaultServer() as server:
        server.delay = 0.005
        monkeypatch.setattr(Store, "_connect", small)
        with pytest.raises(RadgenError, match=r"out\.store\.sqlite: the disk is full; the run has stopped"):
            extract(tmp_path, server, concurrency=8)
        monkeypatch.undo()
        stored = outside(tmp_path / "out.store.sqlite", "SELECT COUNT(*) FROM attempts")[0][0]
        assert 10 < stored < 300
        assert outside(tmp_path / "out.store.sqlite", "PRAGMA integrity_check") == [("ok",)]
        assert extract(tmp_path, server, concurrency=8).code == 0
        assert sum(server.cases.values()) - 300 <= 300 - stored


def tmpfs_command(folder: Path) -> list[str] | None:
    """How to run a script with a file system of 12 MB at ``folder``, if this machine allows it."""
    mount = f"mount -t tmpfs -o size=12m none {folder}"
    for prefix in (["unshare", "-m"], ["unshare", "-Urm"]):
        try:
            tried = subprocess.run([*prefix, "sh", "-c", mount], capture_output=True)
        except OSError:
            return None
        if tried.returncode == 0:
            return [*prefix, "sh", "-c", f'{mount} && exec "$@"', "sh"]
    return None


def test_a_really_full_disk_loses_no_answer_that_came_back(tmp_path: Path) -> None:
    """A file system of 12 MB, filled by something else in the middle; the reserve takes the rest."""
    place = tmp_path / "small"
    place.mkdir()
    command = tmpfs_command(place)
    if command is None:
        pytest.skip("needs a mount namespace (unshare -m)")
    write_reports(tmp_path, range(400))
    options(tmp_path)
    script = f"""
import os, sqlite3, sys, threading, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from endpoint_runs import options, task
from endpoint_server import FaultServer
from radgen.errors import RadgenError
from radgen.extract.endpoint.command import extract_with_endpoint
folder, place = Path({str(tmp_path)!r}), Path({str(place)!r})
store = place / "s.sqlite"
with FaultServer() as server:
    server.delay = 0.01
    def fill():
        while len(server.answered) < 100:
            time.sleep(0.002)
        file = os.open(place / "filler", os.O_CREAT | os.O_WRONLY)
        try:
            while True:
                os.write(file, bytes(4096))
        except OSError:
            os.close(file)
    thread = threading.Thread(target=fill); thread.start()
    chosen = options(folder, server, concurrency=8, store=store, config="grace_s: 1.5")
    try:
        extract_with_endpoint(chosen, task())
        print("no error")
    except RadgenError as error:
        print(error)
    thread.join()
    came = len(server.answered)
    with sqlite3.connect(f"file:{{store}}?mode=ro", uri=True) as connection:
        stored = connection.execute("SELECT COUNT(*) FROM attempts").fetchone()[0]
    os.unlink(place / "filler")
    code = extract_with_endpoint(chosen, task())
    print(came, stored, code, sum(server.cases.values()), max(server.cases.values()))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [*command, sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60
    )
    lines = done.stdout.splitlines()
    assert (
        "the disk is full; the run has stopped, every answer is stored; the same command goes on" in lines[0]
    )
    assert len(lines) == 2, done.stderr
    came, stored, code, asked, most = map(int, lines[1].split())
    assert came == stored
    assert 100 <= came < 400
    assert (code, asked, most) == (0, 400, 1)


def test_the_store_is_readable_by_its_owner_only_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    numbers = load_settings(store__reserve_mb=1).store
    with Store(path, numbers) as store:
        store.add(attempt(1))
        assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".reserve") == [
            "s.sqlite.reserve"
        ]
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in tmp_path.iterdir()] == ["s.sqlite"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Store(tmp_path / "file" / "s.sqlite", NUMBERS)


def test_a_writer_that_cannot_follow_is_waited_for(tmp_path: Path) -> None:
    """While another program holds the file, answers pile up only as far as the backlog allows."""
    path = tmp_path / "s.sqlite"
    numbers = load_settings(store__reserve_mb=0, store__busy_s=5.0, store__backlog=10).store
    with Store(path, numbers) as store:
        store.add(attempt(0))
        store.flush()
        assert not store.behind
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        store.add(attempt(1))
        time.sleep(0.2)  # the writer has taken this one and waits for the lock
        for number in range(2, 12):
            assert not store.behind
            store.add(attempt(number))
        assert store.behind
        holder.rollback()
        holder.close()
        store.flush()
        assert not store.behind
    assert outside(path, "SELECT COUNT(*) FROM attempts") == [(12,)]
