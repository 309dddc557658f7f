"""Sentences of reports, with radiology's traps; expected splits written by hand."""

from __future__ import annotations

import time

import pytest

from radgen.extract.sentences import sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.No effusion. 2.Stable heart.", ["No effusion.", "Stable heart."]),
        (
            "1. No effusion. 2. Dr. Smith was called. 3. Stable.",
            ["No effusion.", "Dr. Smith was called.", "Stable."],
        ),
        ("A 2.5 cm mass vs. scar. Heart normal.", ["A 2.5 cm mass vs. scar.", "Heart normal."]),
        ("No pneumothorax.Heart is normal.", ["No pneumothorax.", "Heart is normal."]),
        ("The heart is\nnormal. No effusion", ["The heart is\nnormal.", "No effusion"]),
        ("FINDINGS:\nHeart normal\nNo effusion", ["FINDINGS:", "Heart normal", "No effusion"]),
        ("- Nodule 2.5 cm\n\u2022 No effusion\n* Scar", ["Nodule 2.5 cm", "No effusion", "Scar"]),
        ("Cyst in segment 8. No mass.", ["Cyst in segment 8.", "No mass."]),
        ("Small effusion 2. No change 3. Stable", ["Small effusion", "No change", "Stable"]),
        ("1) No mass\r\n2) Stable", ["No mass", "Stable"]),
        ("Heart normal\n\n\nno mass", ["Heart normal", "no mass"]),
        ("? pneumothorax. Clear?", ["? pneumothorax.", "Clear?"]),
        ("Approx. 3 cm, i.e. large, e.g. a mass.", ["Approx. 3 cm, i.e. large, e.g. a mass."]),
        ("Effusion: no. Heart normal.", ["Effusion: no.", "Heart normal."]),
        (">3 cm mass. <6 mm nodule.", [">3 cm mass.", "<6 mm nodule."]),
        ("Status post. Heart normal.", ["Status post.", "Heart normal."]),
        ("", []),
        (" . \n.. ", []),
    ],
)
def test_splits(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize("piece", [". ", "1. ", "\n", "e.g. ", "No effusion. ", "((((- ", "? "])
def test_time_is_linear(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        best = 9.9
        for _ in range(3):
            started = time.process_time()
            sentences(text)
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(50_000), seconds(400_000)
    assert large < 30 * small + 0.2  # eight times the text; a quadratic way takes 64 times as long
