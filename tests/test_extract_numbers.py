"""Numbers in sentences: sizes, former sizes, distances, levels, segments, ribs, dates, counts."""

from __future__ import annotations

from typing import Any

import pytest

from radgen.extract.rules import default_extractor

#: Fields that a number may state.
NUMBERS = (
    "size_mm", "size_dims_mm", "size_range_mm", "size_comparator", "prior_size_mm", "distance_mm", "count",
    "count_category", "level", "segment",
)  # fmt: skip


def numbers(text: str) -> dict[str, Any]:
    found = [finding.stated() for finding in default_extractor().extract(text)]
    assert len(found) == 1, found
    return {name: value for name, value in found[0].items() if name in NUMBERS}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 mm nodule.", {"size_mm": 8}),
        ("8mm nodule.", {"size_mm": 8}),
        ("An 8-mm nodule.", {"size_mm": 8}),
        ("A 0.8 cm nodule.", {"size_mm": 8}),
        ("Nodule of 1.25 centimeters.", {"size_mm": 12.5}),
        ("Mass, 1.2 x 0.8 cm.", {"size_mm": 12, "size_dims_mm": [12, 8]}),
        ("Mass, 1.2x0.8cm.", {"size_mm": 12, "size_dims_mm": [12, 8]}),
        ("Mass, 12 mm x 8 mm x 30 mm.", {"size_mm": 30, "size_dims_mm": [12, 8, 30]}),
        ("Mass, 9 mm by 14 mm.", {"size_mm": 14, "size_dims_mm": [9, 14]}),
        ("3-5 mm nodules.", {"size_mm": 5, "size_range_mm": [3, 5]}),
        ("Nodules between 3 and 5 mm.", {"size_mm": 5, "size_range_mm": [3, 5]}),
        ("Nodules ranging from 3 mm to 5 mm.", {"size_mm": 5, "size_range_mm": [3, 5]}),
        ("Nodules measuring up to 7 mm.", {"size_mm": 7, "size_comparator": "up_to"}),
        ("Nodule under 6 mm.", {"size_mm": 6, "size_comparator": "lt"}),
        ("<6 mm nodule.", {"size_mm": 6, "size_comparator": "lt"}),
        ("Sub-6 mm nodule.", {"size_mm": 6, "size_comparator": "lt"}),
        ("Subcentimeter nodule.", {"size_mm": 10, "size_comparator": "lt"}),
        (">3 cm mass.", {"size_mm": 30, "size_comparator": "gt"}),
        ("Mass of about 4 cm.", {"size_mm": 40, "size_comparator": "approx"}),
        ("Mass, 4 cm or larger.", {"size_mm": 40, "size_comparator": "gt"}),
        ("Nodule measures 2 cm, previously 1 cm.", {"size_mm": 20, "prior_size_mm": 10}),
        ("Nodule, 12 mm (was 8 mm).", {"size_mm": 12, "prior_size_mm": 8}),
        ("Nodule, 12 mm compared to 8 mm.", {"size_mm": 12, "prior_size_mm": 8}),
        ("Nodule, 12 mm versus 8 mm on the prior study.", {"size_mm": 12, "prior_size_mm": 8}),
        ("Nodule has grown from 8 to 12 mm.", {"size_mm": 12, "prior_size_mm": 8}),
        ("Nodule has grown from 8 mm to 12 mm.", {"size_mm": 12, "prior_size_mm": 8}),
        ("Nodule has decreased to 5 mm from 9 mm.", {"size_mm": 5, "prior_size_mm": 9}),
        ("New from prior, nodule measures 9 mm.", {"size_mm": 9}),
        ("Nodule 2 cm from the pleura.", {"distance_mm": 20}),
        ("Tracheostomy tip 6 cm above the carina.", {"distance_mm": 60}),
        ("PICC tip is 2 cm below the carina.", {"distance_mm": 20}),
    ],
)
def test_sizes_and_distances(text: str, expected: dict[str, Any]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T8 compression fracture.", {"level": "T8"}),
        ("Compression fractures of T8-T9.", {"level": "T8-T9"}),
        ("Compression fracture of T12/L1.", {"level": "T12-L1"}),
        ("Compression fractures at L1 through L3.", {"level": "L1-L3"}),
        ("Compression fractures of T7 and T9.", {"level": "T7 and T9"}),
        ("Fracture of the 8th rib.", {"level": "8th rib"}),
        ("Fracture of the eighth posterior rib.", {"level": "8th rib"}),
        ("Fractures of the 5th, 6th and 7th ribs.", {"level": "5th, 6th and 7th ribs"}),
        ("Cyst in segment 8 of the liver.", {"segment": "8"}),
        ("Cyst in segments 7 and 8 of the liver.", {"segment": "7 and 8"}),
        ("Cyst in segment 4a of the liver.", {"segment": "4a"}),
    ],
)
def test_levels_are_no_sizes(text: str, expected: dict[str, Any]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two nodules.", {"count": 2}),
        ("2 nodules.", {"count": 2}),
        ("Twelve nodules.", {"count": 12}),
        ("Nodules, four in number.", {"count": 4}),
        ("A total of five nodules.", {"count": 5}),
        ("One nodule.", {"count": 1}),
        ("A nodule.", {}),
        ("A single nodule.", {"count_category": "single"}),
        ("A couple of nodules.", {"count_category": "few"}),
        ("Several nodules.", {"count_category": "multiple"}),
        ("Nodules too numerous to count.", {"count_category": "innumerable"}),
        ("2 views show nodules.", {}),
        ("1. Nodule.", {}),
        ("Nodule on image 45 of series 3.", {}),
        ("12/04 comparison: nodule.", {}),
        ("3/4/2019, 10:30: nodule.", {}),
        ("In a 65 year old, a nodule.", {}),
        ("Since 2019, nodules are seen.", {}),
        ("Nodules at 100 kV and 50 %.", {}),
    ],
)
def test_counts_and_numbers_that_are_none(text: str, expected: dict[str, Any]) -> None:
    assert numbers(text) == expected
