"""A process that ends in the middle: SIGKILL, Ctrl-C, SIGTERM. Nothing that is on disk is paid for again."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from endpoint_runs import options, read, task, write_reports
from endpoint_server import FaultServer, report, truth

from radgen.extract.endpoint.request import Requests
from radgen.extract.endpoint.settings import load_settings

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def command(folder: Path, server: FaultServer, concurrency: int) -> list[str]:
    given = ["--backend", "openai", "--base-url", server.url, "--model", "test-model"]
    files = [
        str(folder / "reports.jsonl"),
        "--out",
        str(folder / "out.jsonl"),
        "--config",
        str(folder / "quick.yaml"),
    ]
    return [sys.executable, "-m", "radgen", "extract", *files, *given, "--concurrency", str(concurrency)]


def start(folder: Path, server: FaultServer, concurrency: int = 32) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.Popen(
        command(folder, server, concurrency), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def query(folder: Path, text: str) -> list[tuple[Any, ...]]:
    """Ask the store from outside, as a user could while the run goes on."""
    store = folder / "out.store.sqlite"
    if not store.exists():
        return []
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5) as connection:
        if not connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'attempts'").fetchone()[0]:
            return []
        return connection.execute(text).fetchall()


def finished(folder: Path, keys: dict[bytes, int]) -> set[int]:
    """The cases whose last answer is on disk."""
    return {keys[key] for (key,) in query(folder, "SELECT key FROM attempts WHERE final > 0")}


def keys_of(folder: Path, count: int) -> dict[bytes, int]:
    requests = Requests(task(), "test-model", load_settings(folder / "quick.yaml"))
    return {requests.key(task().user(report(case)) or ""): case for case in range(count)}


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


def plan(case: int, turn: int) -> str | None:
    """Some rows need two requests: one that is killed between them must not pay for the first again."""
    if case % 97 == 5:
        return "refusal"
    return {0: "schema", 1: "length"}.get(case % 10) if turn == 0 else None


def needed(case: int) -> int:
    return 1 if case % 97 == 5 or case % 10 > 1 else 2


def check_kills(folder: Path, reports: int, kills: int, seed: int) -> None:
    """Kill a run at random moments, let it finish, and compare its file with an undisturbed run's."""
    rng = random.Random(seed)
    calm, rough = folder / "calm", folder / "rough"
    for place in (calm, rough):
        place.mkdir()
        write_reports(place, range(reports))
        options(place)
    with FaultServer(plan) as server:
        assert start(calm, server).wait(120) == 1  # refusals are dead letters
    keys = keys_of(rough, reports)
    paid: dict[int, int] = {}
    lost: list[int] = []
    before = 0
    with FaultServer(plan) as server:
        server.delay = 0.02
        for number in range(kills):
            process = start(rough, server)
            base = len(server.answered)
            goal = base + rng.randint(1, max(1, 2 * (reports - len(paid)) // (kills - number + 1)))
            wait_for(lambda: len(server.answered) >= goal or process.poll() is not None)  # noqa: B023
            time.sleep(rng.uniform(0, 0.03))
            answered = len(server.answered)
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            time.sleep(0.1)  # what it had sent arrives at the server
            stored = query(rough, "SELECT COUNT(*) FROM attempts")
            lost.append(answered - base - (stored[0][0] if stored else 0) + before)
            before = stored[0][0] if stored else 0
            for case in finished(rough, keys) - set(paid):
                paid[case] = server.cases[case]
            assert all(server.cases[case] == count for case, count in paid.items()), "paid twice"
        assert 0 < len(paid) < reports
        assert start(rough, server).wait(120) == 1
        assert all(server.cases[case] == count for case, count in paid.items()), "paid twice"
    twice = query(rough, "SELECT key, step FROM attempts GROUP BY key, step HAVING COUNT(*) > 1")
    assert twice == []
    assert (rough / "out.jsonl").read_bytes() == (calm / "out.jsonl").read_bytes()
    assert (rough / "out.dead-letters.jsonl").read_bytes() == (calm / "out.dead-letters.jsonl").read_bytes()
    rows = read(rough / "out.jsonl")
    assert [row["id"] for row in rows] == [f"r{case}" for case in range(reports)]
    assert [row["extracted"] for row in rows] == [
        [] if case % 97 == 5 else truth(case) for case in range(reports)
    ]
    # A kill loses what was under way or had not yet been committed, and no more.
    again = sum(server.cases.values()) - sum(map(needed, range(reports)))
    print(
        f"{kills} kills, {again} requests sent again (32 under way at each), answered but not stored: {lost}"
    )
    assert again <= kills * 3 * 32
    assert max(lost) <= 2 * 32


def test_two_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, 400, 2, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_ten_kills_of_two_thousand_reports(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, 2000, 10, seed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_within_two_seconds_with_everything_stored(tmp_path: Path, number: int) -> None:
    write_reports(tmp_path, range(600))
    options(tmp_path)
    with FaultServer(lambda case, turn: "slow" if case % 150 == 3 and turn == 0 else None) as server:
        server.delay = 0.02
        process = start(tmp_path, server)
        wait_for(lambda: len(server.answered) > 100)
        process.send_signal(number)
        began = time.monotonic()
        assert process.wait(10) == 130
        assert time.monotonic() - began < 2.0
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert "the same command goes on" in said
        assert "Traceback" not in said
        # What the server answered in time (it may stand still, too) came back: every one is on disk.
        at = dict(zip(server.answered, server.answered_at, strict=True))
        in_time = {case for case, when in at.items() if when < began + 0.3}
        stored = finished(tmp_path, keys_of(tmp_path, 600))
        assert len(in_time) > 100
        assert in_time <= stored <= set(server.answered)
        assert not (tmp_path / "out.jsonl").exists()
        assert start(tmp_path, server).wait(60) == 0
        assert all(server.cases[case] == 1 for case in stored)
    assert len(read(tmp_path / "out.jsonl")) == 600


def test_a_process_that_stood_still_keeps_what_came_meanwhile(tmp_path: Path) -> None:
    """Stopped for longer than the grace with every request under way: the answers are read, not dropped."""
    write_reports(tmp_path, range(200))
    options(tmp_path)
    with FaultServer() as server:
        server.delay = 0.3
        process = start(tmp_path, server)
        wait_for(lambda: server.under_way == 32)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)  # it waits for the 32
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: server.under_way == 0)
        time.sleep(1.0)  # the grace is 0.5 s, a request's timeout 2 s
        process.send_signal(signal.SIGCONT)
        assert process.wait(5) == 130
        assert finished(tmp_path, keys_of(tmp_path, 200)) == set(server.answered)
        assert len(server.answered) >= 32


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    write_reports(tmp_path, range(200))
    options(tmp_path, config="grace_s: 1.5\n")
    with FaultServer(lambda case, turn: "slow" if case >= 50 else None) as server:
        process = start(tmp_path, server)
        wait_for(lambda: len(server.answered) >= 50 and server.under_way == 32)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None  # 32 requests are under way, and have 1.5 s
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(5) in (130, -signal.SIGINT)  # a shell shows 130 for both
        assert time.monotonic() - began < 1.0
        assert len(finished(tmp_path, keys_of(tmp_path, 200))) == 50


def test_ctrl_c_while_everything_waits(tmp_path: Path) -> None:
    """Rows that wait for a Retry-After of an hour do not hold the process up."""
    write_reports(tmp_path, range(50))
    options(tmp_path)
    with FaultServer(lambda case, turn: "429 wait") as server:
        server.retry_after = "3600"
        process = start(tmp_path, server)
        wait_for(lambda: len(server.log) >= 30)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(5) == 130
        assert time.monotonic() - began < 2.0


def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    import pty

    write_reports(tmp_path, range(300))
    options(tmp_path)
    with FaultServer(lambda case, turn: "refusal" if case < 3 else None) as server:
        server.delay = 0.1
        ours, theirs = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "TERM": "xterm", "COLUMNS": "200"}
        process = subprocess.Popen(
            command(tmp_path, server, 8), stdout=subprocess.DEVNULL, stderr=theirs, env=environment
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(ours)
        assert process.wait(30) == 1
    text = shown.decode()
    assert re.search(r"\d+ of 300", text)
    assert re.search(r"[\d.]+ rows/s, [\d,]+ \+ [\d,]+ tokens, 3 failed, \d+ of 8 under way", text)
    assert re.search(r"\d\d:\d\d", text), "time left"
    assert "effusion" not in text
