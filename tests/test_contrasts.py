"""``radgen contrasts``: exact rows, splits, filters worked out anew, balance, the same bytes every time."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dataset_runs import (
    FIELDS,
    LEVELS,
    SPLITS,
    TEXTS,
    dataset,
    one_line,
    radgen,
    rows_of,
    split_of,
    target,
    texts_of,
)

from radgen.generators.contrasts import schedule
from radgen.generators.stream import Order
from radgen.generators.verify import verify_folder
from radgen.ontology.load import load_ontology
from radgen.templates.realiser import Realiser

ONTOLOGY = load_ontology()
REALISER = Realiser(ONTOLOGY)
AXES = sorted(FIELDS)
ROWS = 400


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("contrasts")
    return {name: dataset(out, "contrasts", name, ROWS) for name in [*AXES, "laterality_controlled"]}


def words(text: str) -> set[str]:
    """The words of a text as a reader separates them: an own reading of "word Jaccard"."""
    return {word.strip(".,;:()") for word in text.lower().split()} - {""}


def jaccard(a: str, b: str) -> float:
    return len(words(a) & words(b)) / len(words(a) | words(b))


@pytest.mark.parametrize("axis", [*AXES, "laterality_controlled"])
def test_exactly_the_rows_asked_for(made: dict[str, Path], axis: str) -> None:
    counts = {split: len(rows_of(made[axis], split)) for split in SPLITS}
    assert counts == {"train": 360, "validation": 20, "test": 20}
    assert verify_folder(made[axis], ONTOLOGY).problems == []


@pytest.mark.parametrize("axis", [*AXES, "laterality_controlled"])
def test_every_text_stands_in_its_split(made: dict[str, Path], axis: str) -> None:
    for split in SPLITS:
        assert {split_of(text) for text in texts_of(made[axis], split)} == {split}


def test_no_string_of_one_split_in_another_over_all_axes(made: dict[str, Path]) -> None:
    found = {
        split: {text for folder in made.values() for text in texts_of(folder, split)} for split in SPLITS
    }
    assert not found["train"] & (found["validation"] | found["test"])
    assert not found["validation"] & found["test"]


@pytest.mark.parametrize("axis", AXES)
def test_filters_worked_out_anew(made: dict[str, Path], axis: str) -> None:
    rows = rows_of(made[axis])
    seen = set()
    for row in rows:
        anchor, positive, negative = (row[f"{name}_state"] for name in TEXTS[:3])
        expected = target(axis, anchor, positive), target(axis, anchor, negative)
        assert (row["positive_target"], row["negative_target"]) == pytest.approx(expected, abs=1e-9)
        assert expected[0] - expected[1] >= 0.20 - 1e-9
        # Every field but those of the axis is the same in all three.
        rest = [{k: v for k, v in s.items() if k not in FIELDS[axis]} for s in (anchor, positive, negative)]
        assert rest[0] == rest[1] == rest[2]
        assert jaccard(row["anchor"], row["positive"]) < 0.8
        texts = tuple(row[name] for name in TEXTS[:3])
        assert len(set(texts)) == 3
        seen.add(texts)
    assert len(seen) == len(rows)
    assert len({row["id"] for row in rows}) == len(rows)


@pytest.mark.parametrize("axis", AXES)
def test_texts_are_mostly_distinct(made: dict[str, Path], axis: str) -> None:
    texts = texts_of(made[axis])
    assert len(set(texts)) / len(texts) >= 0.85


@pytest.mark.parametrize("axis", AXES)
def test_words_alone_do_not_tell_the_negative(made: dict[str, Path], axis: str) -> None:
    rows = rows_of(made[axis], "train")
    traps = sum(
        jaccard(row["anchor"], row["negative"]) > jaccard(row["anchor"], row["positive"]) for row in rows
    )
    assert traps / len(rows) >= 0.25


@pytest.mark.parametrize("axis", sorted(LEVELS))
def test_no_pair_of_levels_is_rare(made: dict[str, Path], axis: str) -> None:
    rows = rows_of(made[axis])
    levels = LEVELS[axis]
    pairs = Counter(
        tuple(sorted((row["anchor_state"][axis], row["negative_state"][axis]), key=levels.index))
        for row in rows
    )
    expected = {(a, b) for i, a in enumerate(levels) for b in levels[i + 1 :]}
    assert set(pairs) == expected
    assert min(pairs.values()) >= 0.01 * len(rows)


def test_left_right_and_both_on_the_laterality_axis(made: dict[str, Path]) -> None:
    pairs = Counter(
        frozenset((row["anchor_state"]["laterality"], row["negative_state"]["laterality"]))
        for row in rows_of(made["laterality"])
    )
    assert set(pairs) == {
        frozenset(p) for p in (("left", "right"), ("left", "bilateral"), ("right", "bilateral"))
    }
    assert min(pairs.values()) >= 4


def test_controlled_laterality_fixes_the_place_and_keeps_the_mixture(made: dict[str, Path]) -> None:
    rows = rows_of(made["laterality_controlled"])
    both = 0
    for row in rows:
        states = [row[f"{name}_state"] for name in TEXTS[:3]]
        places = {(state.get("zone"), state.get("lobe")) for state in states}
        assert len(places) == 1
        assert places != {(None, None)}
        assert states[0]["laterality"] == states[1]["laterality"] != states[2]["laterality"]
        both += "bilateral" in (states[0]["laterality"], states[2]["laterality"])
    # 15 % of 400 is 60; four standard deviations are 29
    assert 31 <= both <= 89


@pytest.mark.parametrize("axis", ["margin", "laterality", "severity"])
def test_every_finding_of_an_axis_comes_first(axis: str) -> None:
    recipe = Order("contrasts", axis, 100).recipe(REALISER)
    findings = ONTOLOGY.on_axis(axis)
    first = [job.finding for job in itertools.islice(schedule(recipe), len(findings))]
    assert sorted(first) == findings


SAID = {
    "left": r"\b(?:[Ll]eft|LUL\b|LLL\b|[Ll]ingula)",
    "right": r"\b(?:[Rr]ight|RUL\b|RML\b|RLL\b)",
    "bilateral": r"\b(?:[Bb]oth|[Bb]ilateral|[Bb]i(?:api|basi|basa))",
}  # fmt: skip
BOTH_SIDES = re.compile(r"\b(?:left and right|right and left)\b", re.IGNORECASE)


def test_a_text_says_the_side_of_its_state_and_no_other(made: dict[str, Path]) -> None:
    for axis in ("laterality", "laterality_controlled", "severity"):
        for row in rows_of(made[axis]):
            for name in TEXTS[:3]:
                text = BOTH_SIDES.sub("both", row[name])
                found = {side for side, words in SAID.items() if re.search(words, text)}
                side = row[f"{name}_state"].get("laterality")
                assert found == ({side} if side else set()), row[name]


def test_a_text_says_the_size_of_its_state(made: dict[str, Path]) -> None:
    for row in rows_of(made["size"]):
        for name in TEXTS[:3]:
            number, unit = re.search(
                r"(\d+(?:\.\d+)?)[ -]?(?:x [\d.]+ )?(?:by [\d.]+ )?(mm|cm|millimeter)", row[name]
            ).groups()  # type: ignore[union-attr]
            assert float(number) * (10 if unit == "cm" else 1) == pytest.approx(
                row[f"{name}_state"]["size_mm"]
            )


def digest(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_bytes_for_any_workers_runs_and_hash_seeds(tmp_path: Path) -> None:
    runs: list[tuple[str, int, str]] = [("a", 1, "0"), ("b", 2, "0"), ("c", 1, "1"), ("d", 2, "77")]
    found: list[Any] = []
    for name, workers, seed in runs:
        result = radgen(
            "contrasts", "--axis", "severity", "--n", 300, "--seed", 5, "--workers", workers, "--out", name,
            cwd=tmp_path, PYTHONHASHSEED=seed,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        found.append(digest(tmp_path / name / "contrasts" / "severity"))
    assert sorted(found[0]) == ["README.md", "manifest.json", "test.jsonl", "train.jsonl", "validation.jsonl"]
    assert all(other == found[0] for other in found[1:])


def test_another_seed_gives_other_rows(made: dict[str, Path], tmp_path: Path) -> None:
    other = dataset(tmp_path, "contrasts", "severity", 100, seed=43)
    shared = set(texts_of(other)) & set(texts_of(made["severity"]))
    assert len(shared) < 0.5 * len(texts_of(other))


def test_again_says_so_and_another_needs_force(tmp_path: Path) -> None:
    command = ["contrasts", "--axis", "distribution", "--out", "d", "--workers", "1", "--n"]
    folder = tmp_path / "d" / "contrasts" / "distribution"
    assert radgen(*command, 100, cwd=tmp_path).returncode == 0
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = radgen(*command, 100, cwd=tmp_path)
    assert again.returncode == 0
    assert "stands already" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    refused = one_line(radgen(*command, 120, cwd=tmp_path))
    assert "--force" in refused
    assert "--n 100" in refused
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert radgen(*command, 120, "--force", cwd=tmp_path).returncode == 0
    assert len(rows_of(folder)) == 120
    assert [path.name for path in folder.parent.iterdir()] == ["distribution"]


def test_a_damaged_dataset_is_no_finished_one(tmp_path: Path) -> None:
    folder = dataset(tmp_path, "contrasts", "distribution", 100)
    path = folder / "test.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    refused = one_line(radgen("contrasts", "--axis", "distribution", "--n", 100, "--out", ".", cwd=tmp_path))
    assert "--force" in refused


def test_preview_writes_nothing(tmp_path: Path) -> None:
    result = radgen(
        "contrasts", "--axis", "severity", "--preview", 3, "--out", "d", cwd=tmp_path, COLUMNS="200"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("severity: ") == 3
    assert list(tmp_path.iterdir()) == []


def test_what_a_new_user_is_told_to_do_next_works(tmp_path: Path) -> None:
    told = radgen("contrasts", "--axis", "laterality", "--n", "60", cwd=tmp_path).stdout
    commands = re.findall(r"radgen ((?:explain|verify) \S+(?: \d+)?)", told.splitlines()[-1])
    assert [command.split()[0] for command in commands] == ["explain", "verify"]
    for command in commands:
        assert radgen(*command.split(), cwd=tmp_path).returncode == 0
