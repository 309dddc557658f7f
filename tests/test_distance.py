"""Distances and targets (spec §2, §3): values worked out by hand, and what must hold of all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radgen.errors import RadgenError
from radgen.ontology.distance import axis_target, graded, joint_parts, joint_target, side_relation
from radgen.ontology.load import load_ontology

ONTOLOGY = load_ontology()
AXES, ANATOMY = ONTOLOGY.axes, ONTOLOGY.anatomy


def place(side: str, where: str) -> dict[str, str]:
    """ "left", "zone apical" → the fields of a place."""
    kind, value = where.split()
    return {"laterality": side, kind: value}


def steps(axis: str, levels: str, *targets: float) -> list[tuple[Any, float]]:
    """The targets of levels against the first of them."""
    first, *_ = names = levels.split()
    return [
        ((axis, {axis: first}, {axis: level}), value) for level, value in zip(names, targets, strict=True)
    ]


# exp(-1/4.5) = 0.800737, exp(-4/4.5) = 0.411112, exp(-9/4.5) = 0.135335, exp(-16/4.5) = 0.028565
ONE, TWO, THREE, FOUR = 0.601475, -0.177775, -0.729329, -0.942869
BY_HAND = [
    *steps("severity", "trace mild moderate severe", 1, ONE, TWO, THREE),
    *steps("temporal_change", "resolved decreased stable increased new", 1, ONE, TWO, THREE, FOUR),
    *steps("density", "solid ground_glass calcified part_solid", 1, TWO, ONE, ONE),
    *steps("margin", "smooth lobulated ill_defined spiculated", 1, ONE, TWO, THREE),
    *steps("certainty", "definite probable possible cannot_exclude", 1, ONE, TWO, THREE),
    *steps("distribution", "focal multifocal diffuse", 1, ONE, TWO),
    # size: |log2(8/16)| = 1; log2(1.5) = 0.584963, exp(-0.342182/4.5) = 0.926779
    (("size", {"size_mm": 8.0}, {"size_mm": 16.0}), 0.601475),
    (("size", {"size_mm": 12.0, "size_dims_mm": [12.0, 9.0]}, {"size_mm": 8.0}), 0.853558),
    (("size", {"size_mm": 4.0}, {"size_mm": 16.0}), -0.177775),
    # count: log2(4/1) = 2; "single" is 1, "few" 3, "multiple" 8, "innumerable" 24: log2(3) = 1.584963
    (("count", {"count": 1}, {"count": 4}), -0.177775),
    (("count", {"count": 2}, {"count": 3}), 0.853558),
    (("count", {"count_category": "single"}, {"count_category": "few"}), 0.144424),
    (("count", {"count_category": "multiple"}, {"count_category": "innumerable"}), 0.144424),
    (("count", {"count": 3}, {"count_category": "few"}), 1.0),
    # location, sigma 2: exp(-1/8) = 0.882497, exp(-4/8) = 0.606531, exp(-6.25/8) = 0.457833,
    # exp(-12.25/8) = 0.216265
    (("location", place("left", "zone apical"), place("left", "zone upper")), 0.764994),
    (("location", place("left", "zone upper"), place("left", "zone lower")), 0.213061),
    (("location", place("left", "zone apical"), place("left", "zone basal")), -0.729329),
    (("location", place("left", "zone apical"), place("right", "zone apical")), -0.084333),
    (("location", place("left", "zone apical"), place("right", "zone upper")), -0.567470),
    (("location", place("right", "lobe middle"), place("right", "lobe lower")), 0.764994),
    (("location", place("right", "lobe middle"), place("left", "lobe lingula")), -0.084333),
    (("location", place("bilateral", "lobe upper"), place("left", "lobe upper")), -0.084333),
    (("laterality", {"laterality": "left"}, {"laterality": "left"}), 1.0),
    (("laterality", {"laterality": "left"}, {"laterality": "right"}), -0.6),
    (("laterality", {"laterality": "right"}, {"laterality": "bilateral"}), 0.15),
    (("presence", {"presence": "present"}, {"presence": "present"}), 1.0),
    (("presence", {"presence": "present"}, {"presence": "absent"}), -1.0),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), BY_HAND, ids=str)
def test_target_on_one_axis(given: tuple[str, dict[str, Any], dict[str, Any]], expected: float) -> None:
    axis, a, b = given
    assert axis_target(ONTOLOGY.axis(axis), ANATOMY, a, b) == pytest.approx(expected, abs=2e-6)
    assert axis_target(ONTOLOGY.axis(axis), ANATOMY, b, a) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("a", "b"), [("midline", "left"), (None, "right"), ("midline", "bilateral")])
def test_the_recipe_gives_no_target_for_these_sides(a: str | None, b: str) -> None:
    with pytest.raises(RadgenError, match="no target"):
        side_relation(a, b)


LEFT, RIGHT, BOTH = ({"laterality": side} for side in ("left", "right", "bilateral"))
HIGH, LOW = place("left", "zone upper"), place("left", "zone lower")
OTHER_LOW = place("right", "zone lower")
LOBE, NEXT_LOBE = place("right", "lobe upper"), place("right", "lobe middle")
JOINT = [
    # exp(-1/12.5) = 0.923116, exp(-4/12.5) = 0.726149, exp(-9/12.5) = 0.486752
    ("size_laterality", {"size_mm": 10.0} | LEFT, {"size_mm": 20.0} | LEFT, 0.923116),
    ("size_laterality", {"size_mm": 10.0} | LEFT, {"size_mm": 20.0} | RIGHT, 0.023116),
    ("size_laterality", {"size_mm": 10.0} | BOTH, {"size_mm": 10.0} | LEFT, 0.5),
    ("size_laterality", {"size_mm": 40.0} | RIGHT, {"size_mm": 10.0} | LEFT, -0.173851),
    ("size_location", {"size_mm": 10.0} | HIGH, {"size_mm": 20.0} | LOW, 0.559898),
    ("size_location", {"size_mm": 10.0} | HIGH, {"size_mm": 20.0} | OTHER_LOW, 0.073443),
    ("severity_laterality", {"severity": "mild"} | LEFT, {"severity": "moderate"} | RIGHT, -0.099263),
    ("severity_laterality", {"severity": "trace"} | LEFT, {"severity": "severe"} | LEFT, 0.135335),
    ("severity_location", {"severity": "mild"} | LOBE, {"severity": "moderate"} | NEXT_LOBE, 0.706648),
    ("density_laterality", {"density": "ground_glass"} | LEFT, {"density": "calcified"} | RIGHT, -0.764665),
    ("density_laterality", {"density": "solid"} | BOTH, {"density": "calcified"} | RIGHT, 0.300737),
    ("count_laterality", {"count": 1} | LEFT, {"count": 4} | RIGHT, -0.173851),
    (
        "count_laterality",
        {"count_category": "few"} | BOTH,
        {"count_category": "innumerable"} | LEFT,
        -0.013248,
    ),
    (
        "severity_temporal_change",
        {"severity": "mild", "temporal_change": "decreased"},
        {"severity": "moderate", "temporal_change": "increased"},
        0.329193,
    ),
    (
        "density_margin",
        {"density": "part_solid", "margin": "smooth"},
        {"density": "solid", "margin": "spiculated"},
        0.108368,
    ),
]


@pytest.mark.parametrize(("name", "a", "b", "expected"), JOINT)
def test_target_on_two_axes(name: str, a: dict[str, Any], b: dict[str, Any], expected: float) -> None:
    names = AXES.crossaxis.combinations[name]
    assert joint_target(AXES, ANATOMY, names, a, b) == pytest.approx(expected, abs=2e-6)
    assert joint_target(AXES, ANATOMY, names, b, a) == pytest.approx(expected, abs=2e-6)


def test_every_combination_is_worked_out_by_hand() -> None:
    assert {name for name, *_ in JOINT} == set(AXES.crossaxis.combinations)


def test_what_explains_a_score() -> None:
    parts = joint_parts(
        AXES, ANATOMY, ["size", "laterality"], {"size_mm": 10.0} | LEFT, {"size_mm": 20.0} | RIGHT
    )
    assert parts == ({"size": 1.0}, {"size": 2.5}, "opposite", 0.9)


SIZES = st.floats(1, 200).map(lambda value: {"size_mm": value})
COUNTS = st.integers(1, 24).map(lambda value: {"count": value}) | st.sampled_from(
    ["single", "few", "multiple", "innumerable"]
).map(lambda value: {"count_category": value})
PLACES = st.tuples(
    st.sampled_from(["left", "right", "bilateral"]),
    st.sampled_from(["apical", "upper", "mid", "lower", "basal"]).map(lambda zone: f"zone {zone}")
    | st.sampled_from(["upper", "lower"]).map(lambda lobe: f"lobe {lobe}"),
).map(lambda both: place(*both))
SIDES = st.sampled_from([LEFT, RIGHT, BOTH])


def levels(axis: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(ONTOLOGY.axis(axis).levels).map(lambda level: {axis: level})


STATES = {
    "size": SIZES, "count": COUNTS, "location": PLACES, "laterality": SIDES,
    **{name: levels(name) for name, axis in AXES.axes.items() if axis.kind == "ordinal"},
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(AXES.axes)))
def test_single_targets_are_symmetric_bounded_and_highest_for_equal_states(
    data: st.DataObject, name: str
) -> None:
    a, b = data.draw(STATES[name]), data.draw(STATES[name])
    axis = ONTOLOGY.axis(name)
    found = axis_target(axis, ANATOMY, a, b)
    assert found == axis_target(axis, ANATOMY, b, a)
    assert -1 <= found <= 1
    assert axis_target(axis, ANATOMY, a, a) == 1 >= found


@given(st.data(), st.sampled_from(sorted(AXES.crossaxis.combinations)))
def test_joint_targets_are_symmetric_bounded_and_highest_for_equal_states(
    data: st.DataObject, name: str
) -> None:
    names = AXES.crossaxis.combinations[name]
    a, b = ({k: v for axis in names for k, v in data.draw(STATES[axis]).items()} for _ in range(2))
    found = joint_target(AXES, ANATOMY, names, a, b)
    assert found == joint_target(AXES, ANATOMY, names, b, a)
    assert -1 <= found <= 1
    assert joint_target(AXES, ANATOMY, names, a, a) == 1 >= found


@given(st.floats(0, 20), st.floats(0, 20), st.floats(0.3, 5))
def test_targets_fall_with_distance(one: float, other: float, sigma: float) -> None:
    near, far = sorted((one, other))
    assert graded(near, sigma) >= graded(far, sigma)
    if far - near > 0.01 and far < 4 * sigma:
        assert graded(near, sigma) > graded(far, sigma)


@given(st.floats(1, 100), st.floats(1, 100), st.floats(0.5, 10))
def test_sizes_are_compared_by_their_ratio(a: float, b: float, factor: float) -> None:
    axis = ONTOLOGY.axis("size")
    plain = axis_target(axis, ANATOMY, {"size_mm": a}, {"size_mm": b})
    scaled = axis_target(axis, ANATOMY, {"size_mm": a * factor}, {"size_mm": b * factor})
    assert plain == pytest.approx(scaled, abs=1e-9)
