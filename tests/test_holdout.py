"""``--holdout``: what is held out never occurs in train, the manifest lists it, verify checks it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from dataset_runs import SPLITS, dataset, radgen, rows_of

from radgen.generators.checkers import says
from radgen.generators.verify import verify_folder
from radgen.ontology.load import load_ontology

ONTOLOGY = load_ontology()
SETS = [("contrasts", "severity"), ("crossaxis", "severity_laterality")]


@pytest.mark.parametrize(("family", "name"), SETS)
def test_findings(tmp_path: Path, family: str, name: str) -> None:
    folder = dataset(tmp_path, family, name, 400, holdout="findings")
    held = set(orjson.loads((folder / "manifest.json").read_bytes())["holdout"]["findings"])
    column = "anchor_state" if family == "contrasts" else "state1"
    train, rest = (
        {row[column]["finding"] for row in rows_of(folder, *s)} for s in (["train"], ["validation", "test"])
    )
    assert held
    assert not train & held
    assert rest <= held
    assert len(rows_of(folder)) == 400
    assert verify_folder(folder, ONTOLOGY).problems == []


@pytest.mark.parametrize(("family", "name"), SETS)
def test_states(tmp_path: Path, family: str, name: str) -> None:
    folder = dataset(tmp_path, family, name, 400, holdout="states")
    contexts = {split: {row["context"] for row in rows_of(folder, split)} for split in SPLITS}
    assert not contexts["train"] & (contexts["validation"] | contexts["test"])
    assert verify_folder(folder, ONTOLOGY).problems == []


@pytest.mark.parametrize(("family", "name"), SETS)
def test_phrasings(tmp_path: Path, family: str, name: str) -> None:
    folder = dataset(tmp_path, family, name, 400, holdout="phrasings")
    listed = orjson.loads((folder / "manifest.json").read_bytes())["holdout"]
    frames = {
        split: {name for row in rows_of(folder, split) for name in row["phrasings"]} for split in SPLITS
    }
    assert not frames["train"] & set(listed["frames"])
    assert frames["validation"] | frames["test"] <= set(listed["frames"])
    assert listed["terms"]
    assert verify_folder(folder, ONTOLOGY).problems == []


def test_held_out_things_are_the_same_for_every_seed(tmp_path: Path) -> None:
    found = []
    for seed, axis in ((1, "severity"), (2, "distribution")):
        folder = dataset(tmp_path, "contrasts", axis, 40, seed, holdout="findings")
        found.append(orjson.loads((folder / "manifest.json").read_bytes())["holdout"])
    assert found[0] == found[1]


def test_verify_finds_what_is_held_out_in_train(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "contrasts", "severity", 60, holdout="phrasings")
    frames = orjson.loads((folder / "manifest.json").read_bytes())["holdout"]["frames"]
    path = folder / "train.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    row = orjson.loads(lines[1])
    lines[1] = lines[1].replace(row["phrasings"][0].encode(), frames[0].encode())
    path.write_bytes(b"".join(lines))
    reasons = [problem.reason for problem in verify_folder(folder, ONTOLOGY).problems if problem.row == 2]
    assert f"phrasings: '{frames[0]}' is held out and stands in train" in reasons


def test_a_holdout_is_another_dataset(tmp_path: Path) -> None:
    dataset(tmp_path, "contrasts", "severity", 60)
    command = ["contrasts", "--axis", "severity", "--n", 60, "--out", ".", "--holdout", "states"]
    assert "--force" in radgen(*command, cwd=tmp_path).stderr


def test_a_name_is_held_out_of_its_own_finding_alone(tmp_path: Path) -> None:
    """Where "adenopathy" is held out of lymphadenopathy, "axillary adenopathy" names another finding."""
    folder = dataset(tmp_path, "contrasts", "finding", 10000, holdout="phrasings")
    held = orjson.loads((folder / "manifest.json").read_bytes())["holdout"]["terms"]
    beside = [
        row
        for row in rows_of(folder, "train")
        for term in held.get(row["anchor_state"]["finding"], ())
        if f" {term} " in f" {row['negative'].lower().rstrip('.')} "
    ]
    assert beside  # so the check below is one that can fail
    assert verify_folder(folder, ONTOLOGY).problems == []


@pytest.mark.parametrize(
    ("text", "term", "said"),
    [
        ("A left lung nodule is seen.", "lung nodule", True),
        ("Left lung: nodule with calcific density.", "lung nodule", False),
        ("Left lung: nodule with calcific density.", "nodule", True),
        ("Left lung: lung nodule.", "lung nodule", True),
        ("A left lung nodule is seen.", "nodule", False),  # within a longer name
    ],
)
def test_a_heading_is_no_part_of_a_name(text: str, term: str, said: bool) -> None:
    assert says(text, term, ONTOLOGY, "pulmonary_nodule") is said
