"""What the documents say is so: set-up commands, commands, columns, links, the explained row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dataset_runs import ROOT, dataset, radgen, rows_of

from radgen.generators.explain import explain
from radgen.ontology.load import load_ontology

README = (ROOT / "README.md").read_text()
FORMATS = (ROOT / "docs" / "formats.md").read_text()


def test_two_set_up_commands() -> None:
    block = README.split("## Set up")[1].split("```")[1]
    commands = [line.split("#")[0].strip() for line in block.strip().splitlines()]
    assert commands == ["make run", "make test"]
    rules = (ROOT / "Makefile").read_text()
    assert re.search(r"^run:", rules, re.MULTILINE)
    assert re.search(r"^test:", rules, re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/formats.md"])
def test_every_command_and_file_that_is_named_exists(document: str, tmp_path: Path) -> None:
    text = (ROOT / document).read_text()
    known = set(re.findall(r"^│ (\w+) ", radgen("--help", cwd=tmp_path, COLUMNS="160").stdout, re.MULTILINE))
    assert set(re.findall(r"(?:`|\$ )radgen (\w+)", text)) <= known
    for path in re.findall(r"\]\(([^)]+)\)|`((?:radgen|tests|docs)/[\w/.]+)`", text):
        name = next(filter(None, path))
        if name != "docs/measured.md":  # figures are added when they are measured
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize(
    ("family", "name", "heading"),
    [
        ("contrasts", "severity", "Triplets ("),
        ("pairs", "size_pairs", "Scored pairs ("),
        ("crossaxis", "size_laterality", "Scored pairs ("),
    ],
)
def test_every_column_is_described(tmp_path: Path, family: str, name: str, heading: str) -> None:
    rows = FORMATS.split(heading)[1].split("\n\n")[1].splitlines()
    described = {column for row in rows for column in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(rows_of(dataset(tmp_path, family, name, 40))[0]) <= described


def test_the_explained_row_is_right() -> None:
    shown = README.split("## One row, explained")[1].split("```")[1]
    cells = {
        line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:4]]
        for line in shown.splitlines()
        if line.count("│") == 4
    }
    fields = ("finding", "presence", "laterality")
    states = [
        {**{name: cells[name][n] for name in fields}, "size_mm": float(cells["size_mm"][n])} for n in (0, 1)
    ]
    row = {"combination": "size_laterality", "state1": states[0], "state2": states[1], "score": 0.0}
    found = explain({**row, "sentence1": "", "sentence2": ""}, load_ontology())["comparisons"][0]
    # 10 against 5 mm, left against right: exp(-1/12.5) - 0.9
    assert found["target"] == pytest.approx(0.023116, abs=1e-6)
    assert all(step in shown for step in found["steps"])
