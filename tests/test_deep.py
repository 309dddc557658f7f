"""``radgen verify --deep``: texts that do not say what their states say are found, and only those."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from radgen.errors import DatasetError
from radgen.generators.deep import DeepTally, compare, deep_problems, states_its_rows
from radgen.generators.show import print_deep
from radgen.generators.verify import Problem
from radgen.ontology.load import load_ontology

LEFT = {"finding": "pleural_effusion", "presence": "present", "severity": "mild", "laterality": "left"}
RIGHT = {**LEFT, "laterality": "right"}
NODULE = {
    "finding": "pulmonary_nodule",
    "presence": "present",
    "laterality": "right",
    "lobe": "upper",
    "size_mm": 8.0,
}
GOOD = {
    "anchor": "Small left pleural effusion.",
    "positive": "There is a small pleural effusion on the left.",
    "negative": "A small right pleural effusion is seen.",
    "anchor_state": LEFT,
    "positive_state": LEFT,
    "negative_state": RIGHT,
}
NODULES = {
    "sentence1": "8 mm nodule in the right upper lobe.",
    "sentence2": "No pulmonary nodule.",
    "state1": NODULE,
    "state2": {"finding": "pulmonary_nodule", "presence": "absent"},
}


def dataset(folder: Path, rows: list[Any], family: str = "contrasts") -> Path:
    """Write a folder as radgen does, with all rows in train.jsonl."""
    folder.mkdir()
    (folder / "manifest.json").write_bytes(orjson.dumps({"radgen": "dataset", "family": family}))
    lines = [row if isinstance(row, bytes) else orjson.dumps(row) for row in rows]
    (folder / "train.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    for split in ("validation", "test"):
        (folder / f"{split}.jsonl").write_bytes(b"")
    return folder


def deep(folder: Path, workers: int = 1) -> tuple[list[Problem], DeepTally]:
    tally = DeepTally()
    return list(deep_problems(folder, load_ontology(), workers=workers, tally=tally)), tally


def test_texts_that_say_their_state_are_no_problem(tmp_path: Path) -> None:
    problems, tally = deep(dataset(tmp_path / "d", [GOOD, NODULES]))
    assert problems == []
    # 3 texts of 4 fields, one of 5, one of 2
    assert tally == DeepTally(texts=5, wrong=0, fields=19, agreeing=19)
    assert tally.share == 1.0


@pytest.mark.parametrize(
    ("column", "text", "differs", "says", "agreeing"),
    [
        ("anchor", "Small right pleural effusion.", "laterality", "laterality=right", 18),
        ("anchor", "Left pleural effusion.", "severity", "laterality=left", 18),
        ("negative", "No right pleural effusion.", "presence, severity", "presence=absent", 17),
        # one field more than the state has: 19 of 20 agree
        ("positive", "New small left pleural effusion.", "temporal_change", "temporal_change=new", 19),
        # a second finding, of two fields
        (
            "positive",
            "Small left pleural effusion. No pneumothorax.",
            "finding, presence",
            "pneumothorax",
            19,
        ),
        (
            "positive",
            "The weather is fine.",
            "finding, presence, severity, laterality",
            "it says nothing",
            15,
        ),
    ],
)
def test_a_text_that_says_something_else_is_listed_with_both(
    tmp_path: Path, column: str, text: str, differs: str, says: str, agreeing: int
) -> None:
    folder = dataset(tmp_path / "d", [NODULES, {**GOOD, column: text}])
    problems, tally = deep(folder)
    assert len(problems) == 1
    problem = problems[0]
    assert problem[:2] == (str(folder / "train.jsonl"), 2)
    assert problem.reason.startswith(f'{column} "{text}" differs from its state in {differs}: ')
    assert says in problem.reason.split(": ", 1)[1].split(", the state is ")[0]
    assert "finding=pleural_effusion" in problem.reason.split(", the state is ")[1]
    assert (tally.texts, tally.wrong, tally.agreeing) == (5, 1, agreeing)


def test_the_same_from_any_number_of_workers(tmp_path: Path) -> None:
    rows = [{**GOOD, "anchor": "Large left pleural effusion."} if i % 97 == 5 else GOOD for i in range(900)]
    folder = dataset(tmp_path / "d", rows)
    one, two = deep(folder), deep(folder, workers=2)
    assert one == two
    assert [problem.row for problem in one[0]] == [6, 103, 200, 297, 394, 491, 588, 685, 782, 879]
    assert one[1].texts == 2700


def test_texts_of_reports_are_not_shown(tmp_path: Path) -> None:
    row = {**NODULES, "sentence1": "Small left pleural effusion."}
    problems, _ = deep(dataset(tmp_path / "d", [row], family="similarity"))
    assert len(problems) == 1
    assert "Small left" not in problems[0].reason


def test_lists_of_findings(tmp_path: Path) -> None:
    row = {**NODULES, "sentence1": "Small left pleural effusion. 8 mm nodule in the right upper lobe."}
    folder = dataset(tmp_path / "d", [{**row, "state1": [NODULE, LEFT]}, {**row, "state1": [LEFT]}])
    problems, _ = deep(folder)
    assert [problem.row for problem in problems] == [2]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", orjson.dumps({**GOOD, "anchor_state": "left"}), orjson.dumps({**GOOD, "anchor": 3})],
)
def test_a_broken_row_is_a_problem_and_stops_nothing(tmp_path: Path, line: bytes) -> None:
    problems, tally = deep(dataset(tmp_path / "d", [line, GOOD]))
    assert [problem.row for problem in problems] == [1]
    assert tally.texts == 3


@pytest.mark.parametrize(("name", "read"), [("first_order", True), ("scene_graph", False), ("fused", False)])
def test_reasoning_is_not_read_as_a_report(tmp_path: Path, name: str, read: bool) -> None:
    folder = dataset(tmp_path / "d", [NODULES], family="radthought")
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_bytes(orjson.dumps({**manifest, "name": name}))
    assert states_its_rows(folder) is read
    console = Console(record=True, file=io.StringIO())
    assert print_deep(folder, load_ontology(), 1, console) == 0
    assert ("not read" in console.export_text()) is not read


def test_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        deep(tmp_path)


def test_findings_of_one_name_are_paired_for_most_agreement() -> None:
    small, big = {"finding": "nodule", "size_mm": 4.0}, {"finding": "nodule", "size_mm": 9.0, "lobe": "upper"}
    assert compare([small, big], [big, small]) == (5, 5, ())
    assert compare([big], [small, big]).agreeing == 3
    assert compare([], []) == (0, 0, ())
