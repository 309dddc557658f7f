"""``radgen reports`` as a user runs it: files, summary, one line a mistake, nothing lost or left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
F = "The lungs are clear."


def report(identifier: str, findings: str) -> dict[str, Any]:
    columns = ("id", "findings", "impression", "abnormalities", "prominence", "truth")
    return dict.fromkeys(columns) | {"id": identifier, "findings": findings}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path



def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "radgen", "reports", *map(str, arguments)]
    return subprocess.run(run, capture_output=True, text=True, **options)


SECRET = "Zebra-like lucency"
GOOD = f'{{"id": "a", "findings": "{SECRET}"}}\n'
ROWS = GOOD + GOOD + f'{{"id": "b", {SECRET}\n'


def test_command_writes_reports_and_rejects(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ROWS)
    result = command(source, "--out", tmp_path / "new" / "out.jsonl")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "new" / "out.jsonl").read_text()) == report("a", SECRET)
    rejects = [json.loads(line) for line in (tmp_path / "new" / "rejects.jsonl").read_text().splitlines()]
    assert rejects == [
        {"file": "in.jsonl", "line": 2, "reason": "the same id as in.jsonl:1"},
        {"file": "in.jsonl", "line": 3, "reason": "not valid JSON"},
    ]
    assert "1 reports (1 findings only)" in result.stderr
    assert "2 rejected" in result.stderr
    assert "columns: id = 'id', findings = 'findings'" in result.stderr
    assert "Zebra" not in result.stderr + (tmp_path / "new" / "rejects.jsonl").read_text()
    assert sorted(os.listdir(tmp_path / "new")) == ["out.jsonl", "rejects.jsonl"]


def test_latin1_is_a_warning(tmp_path: Path) -> None:
    source = write(tmp_path / "in.csv", "id,findings\n1,façade\n".encode("latin-1"))
    result = command(source, "--out", tmp_path / "out.jsonl")
    assert result.returncode == 0
    assert "warning: 1 rows or files are not UTF-8 and were read as Latin-1" in result.stderr
    assert not (tmp_path / "rejects.jsonl").exists()


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    source = write(tmp_path / "in.csv", "id,findings\n1,Clear.\n")
    out = write(tmp_path / "out.jsonl", "precious")
    result = command(source, "--out", out)
    assert (result.returncode, out.read_text()) == (2, "precious")
    assert result.stderr == (
        f"radgen: {out}: exists already; name another file or add --force to replace it\n"
    )
    rejects = write(tmp_path / "rejects.jsonl", "precious")
    result = command(source, "--out", tmp_path / "other.jsonl")
    assert (result.returncode, rejects.read_text()) == (2, "precious")
    assert command(source, "--out", out, "--force").returncode == 0
    assert json.loads(out.read_text()) == report("1", "Clear.")
    assert not rejects.exists()  # nothing was rejected this time


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["in.csv", "--out", "in.csv", "--force"], "in.csv: is the file to read; name another one to write"),
        (["in.csv", "--out", "r.jsonl", "--rejects", "r.jsonl"], "need different files"),
        (["in.csv", "--text", "fnding"], "unknown column for --text 'fnding'; did you mean 'finding'?"),
        (["in.csv", "--format", "cvs"], "unknown format 'cvs'; did you mean 'csv'?"),
        (["in.csv", "--format", "folder"], "in.csv: expected a folder for format 'folder'"),
        (["missing.csv"], "missing.csv: no such file or folder"),
        ([".", "--text", "x"], "documents have no columns; leave --text out"),
        (["empty.csv"], "no row is a report: the source is empty"),
        (["bad.csv"], "no row is a report; the first, bad.csv:2: expected 2 columns, found 1"),
        ([], "expected a file, folder or archive of reports"),
        (["in.csv", "--out", "folder"], "folder: is a folder, expected the name of a file"),
        (["in.csv", "--out", "in.csv/x.jsonl"], "is a file, expected a folder"),
        (["in.csv", "--oot", "x"], "no such option '--oot'; did you mean '--out'?"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    write(tmp_path / "in.csv", "id,finding\n1,Clear.\n")
    write(tmp_path / "empty.csv", "id,finding\n")
    write(tmp_path / "bad.csv", "id,finding\n1\n")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = command(*arguments, cwd=tmp_path, env=environment)
    assert result.returncode == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert result.stderr.startswith("radgen: ")
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0
    if Path("/usr/bin/unshare").exists()
    else True,
    reason="no private file system can be mounted here",
)
@pytest.mark.parametrize(
    ("options", "said"), [("size=64k", "the disk is full"), ("ro", "the file system is read-only")]
)
def test_full_or_read_only_disk(tmp_path: Path, options: str, said: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    source = tmp_path / "in.csv"
    source.write_text("id,findings\n" + "".join(f"{n},The lungs are clear.\n" for n in range(5000)))
    out = disk / "out.jsonl"
    radgen = f"{sys.executable} -m radgen reports {source} --out {out}"
    script = f"mount -t tmpfs -o {options} none {disk} && {radgen}; code=$?; ls -A {disk}; exit $code"
    result = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"radgen: {disk}")
    assert said in result.stderr


def test_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    fifo = tmp_path / "in.jsonl"
    os.mkfifo(fifo)
    out = tmp_path / "o" / "out.jsonl"
    run = [sys.executable, "-m", "radgen", "reports", str(fifo), "--out", str(out)]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = json.dumps({"id": "a", "findings": F}) + "\n"
    with fifo.open("w") as handle:
        handle.write(line * 100)
    with fifo.open("w") as handle:  # the second reading, after the columns are known
        handle.write(line)
        handle.flush()
        deadline = time.monotonic() + 20
        while not out.parent.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "radgen: stopped\n")
    assert os.listdir(out.parent) == []
