"""``radgen extract`` with rules: the table of --show, rows for reports, mistakes in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[1]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "radgen", "extract", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_show_prints_the_findings_of_a_text() -> None:
    done = run("--show", "No pneumothorax, small [left] effusion.")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["No", "pneumothorax,", "small", "[left]", "effusion."]
    assert rows[1] == ["finding", "presence", "states", "evidence"]
    assert rows[2][:2] == ["pneumothorax", "absent"]
    assert rows[3][:4] == ["pleural_effusion", "present", "severity", "mild"]
    assert "no finding" in run("--show", "Thank you.").stdout


def test_rules_write_a_row_for_each_report(tmp_path: Path) -> None:
    reports, out = tmp_path / "r.jsonl", tmp_path / "e.jsonl"
    rows = [
        {"id": "a", "findings": "Right effusion.", "impression": None},
        {"id": "b", "findings": "Thank you.", "impression": "No mass."},
    ]
    reports.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    done = run(reports, "--out", out)
    assert done.returncode == 0, done.stderr
    written = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert [row["id"] for row in written] == ["a", "b"]
    assert all(row["backend"] == "rules" for row in written)
    assert [[f["finding"] for f in row["extracted"]] for row in written] == [
        ["pleural_effusion"],
        ["lung_mass"],
    ]
    assert written[0]["extracted"][0]["section"] == "findings"
    assert written[0]["extracted"][0]["laterality"] == "right"
    assert written[1]["extracted"][0]["presence"] == "absent"
    assert "effusion" not in done.stdout + done.stderr  # no text of a report


def test_mistakes_end_in_one_line(tmp_path: Path) -> None:
    for arguments, words in (
        ((), "--show"),
        (("--show", "Effusion.", tmp_path / "r.jsonl"), "leave one of them out"),
        ((tmp_path / "absent.jsonl", "--out", tmp_path / "o.jsonl"), "absent.jsonl"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
