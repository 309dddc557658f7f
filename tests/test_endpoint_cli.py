"""The command itself: what it says, how it exits, and that no traceback is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from endpoint_runs import options, read, write_reports
from endpoint_server import FaultServer, truth

ROOT = Path(__file__).parent.parent


def radgen(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "radgen", "extract", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120)


def asked(server: FaultServer, *more: str) -> list[str]:
    given = ["--backend", "openai", "--base-url", server.url, "--config", "quick.yaml"]
    return ["reports.jsonl", "--out", "out.jsonl", *given, *more]


def test_the_command_of_the_issue(tmp_path: Path) -> None:
    write_reports(tmp_path, range(12))
    options(tmp_path)
    with FaultServer(lambda case, turn: "refusal" if case == 5 else None) as server:
        done = radgen(tmp_path, *asked(server, "--model", "test-model"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "12 reports in out.jsonl: 11 extracted, 1 failed" in done.stderr
    assert "  1 refusal" in done.stderr
    assert "Traceback" not in done.stderr
    rows = read(tmp_path / "out.jsonl")
    assert [row["extracted"] for row in rows] == [[] if case == 5 else truth(case) for case in range(12)]
    assert {tuple(row) for row in rows} == {("id", "extracted", "backend", "error", "salvaged", "dropped")}
    manifest = json.loads((tmp_path / "out.manifest.json").read_text())
    assert (manifest["rows"], manifest["failed"], manifest["model"]) == (12, {"refusal": 1}, "test-model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "openai", "--model", "m"], "radgen: --base-url is missing"),
        (["--backend", "openai", "--base-url", "http://8.8.8.8/v1"], "--allow-remote"),
        (["--backend", "opennai"], "radgen: unknown backend 'opennai'; did you mean 'openai'?"),
        (["--base-url", "http://127.0.0.1:1/v1"], "need --backend openai"),
        (
            ["--backend", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"],
            "nobody answers there",
        ),
        (["--backend", "openai", "--dry-run"], "give --model"),
        (["--backend", "openai", "--max-cost", "3", "--dry-run", "--model", "m"], "--max-cost needs a price"),
    ],
)
def test_mistakes_end_in_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    write_reports(tmp_path, range(2))
    done = radgen(tmp_path, "reports.jsonl", *arguments)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert message in lines[-1]
    assert lines[-1].startswith("radgen: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "extracted.jsonl").exists()


def test_both_backends_write_the_same_columns(tmp_path: Path) -> None:
    write_reports(tmp_path, range(4))
    options(tmp_path)
    with FaultServer() as server:
        assert radgen(tmp_path, *asked(server)).returncode == 0
    assert radgen(tmp_path, "reports.jsonl", "--out", "rules.jsonl").returncode == 0
    ours, theirs = read(tmp_path / "out.jsonl"), read(tmp_path / "rules.jsonl")
    assert [list(row) for row in ours] == [list(row) for row in theirs]
    assert [row["extracted"] for row in ours] == [row["extracted"] for row in theirs]


def test_batch_through_the_command(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    offline = ["reports.jsonl", "--out", "out.jsonl", "--backend", "openai", "--model", "m"]
    done = radgen(tmp_path, *offline, "--export-batch", "batch")
    assert done.returncode == 0
    assert "3 requests in 1 files in batch" in done.stderr
    assert len(read(tmp_path / "batch" / "requests-00001.jsonl")) == 3
    (tmp_path / "results.jsonl").write_text("")
    done = radgen(tmp_path, *offline, "--import-batch", "results.jsonl")
    assert done.returncode == 1
    assert "3 of 3 reports have no answer yet" in done.stderr
