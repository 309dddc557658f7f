"""Splits: a pure function of the normalised text, the same in every process and on every machine."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from dataset_runs import ROOT
from hypothesis import given
from hypothesis import strategies as st

from radgen.generators.blocks import split_plan
from radgen.generators.splits import SPLITS, Splitter, normalise, text_hash

SHARES = {"train": 0.90, "validation": 0.05, "test": 0.05}
SPLITTER = Splitter(SHARES)  # type: ignore[arg-type]
#: By coreutils: printf '%s' "…" | b2sum -l 64
BY_B2SUM = {
    "small left pleural effusion": 0xDFC4D144CAEE2141,
    "8 mm nodule in the rul": 0x44E02C0843BF958F,
}


@pytest.mark.parametrize(("text", "value"), BY_B2SUM.items())
def test_hash_by_another_program(text: str, value: int) -> None:
    assert text_hash(text) == value


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Small left pleural effusion.", "small left pleural effusion"),
        ("  8 mm  nodule\tin the RUL. ", "8 mm nodule in the rul"),
    ],
)
def test_what_counts_as_the_same_string(text: str, same: str) -> None:
    assert normalise(text) == same
    assert text_hash(text) == BY_B2SUM[same]


@pytest.mark.parametrize(
    ("a", "b"), [("0.8 cm nodule.", "8 cm nodule."), ("ground-glass.", "ground glass."), ("a b", "ab")]
)
def test_what_does_not(a: str, b: str) -> None:
    assert text_hash(a) != text_hash(b)


def test_independent_of_pythonhashseed() -> None:
    code = (
        "from radgen.generators.splits import Splitter\n"
        f"s = Splitter({SHARES!r})\n"
        "print([s.of(f'nodule {n} in the left lung') for n in range(300)])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=ROOT, env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    assert found.pop().strip() == str([SPLITTER.of(f"nodule {n} in the left lung") for n in range(300)])


def test_strings_fall_into_splits_by_the_shares() -> None:
    found = Counter(SPLITTER.of(f"{n} mm nodule, image {n * 7}") for n in range(20_000))
    for split, share in SHARES.items():
        # four standard deviations of a binomial
        assert abs(found[split] - 20_000 * share) < 4 * (20_000 * share * (1 - share)) ** 0.5  # type: ignore[index]


@given(st.text(), st.sampled_from([" ", "\n", "\t", "  "]))
def test_space_around_a_text_and_its_case_change_nothing(text: str, space: str) -> None:
    assert text_hash(space + text + space) == text_hash(text)
    assert normalise(normalise(text)) == normalise(text)
    assert 0 <= text_hash(text) < 2**64


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_bounds_are_ordered(a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert SPLITS.index(SPLITTER.of_hash(low)) <= SPLITS.index(SPLITTER.of_hash(high))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1000, (900, 50, 50)),
        (1, (1, 0, 0)),
        (10, (8, 1, 1)),
        (45_000, (40_500, 2_250, 2_250)),
        (12, (10, 1, 1)),
    ],
)
def test_quotas(rows: int, expected: tuple[int, int, int]) -> None:
    assert tuple(SPLITTER.quotas(rows).values()) == expected


@given(st.integers(1, 10**7))
def test_quotas_add_up_and_keep_the_shares(rows: int) -> None:
    found = SPLITTER.quotas(rows)
    assert sum(found.values()) == rows
    assert all(abs(found[split] - rows * SHARES[split]) <= 1 for split in SPLITS)


@given(st.integers(1, 60), st.integers(1, 40))
def test_the_plans_of_many_blocks_keep_the_shares(per_block: int, blocks: int) -> None:
    shares = tuple(SHARES.items())
    plans = [split_plan(per_block, shares, index * per_block) for index in range(blocks)]  # type: ignore[arg-type]
    assert all(len(plan) == per_block for plan in plans)
    found = Counter(split for plan in plans for split in plan)
    for split in ("validation", "test"):
        assert abs(found[split] - 0.05 * per_block * blocks) <= 1  # type: ignore[index]
