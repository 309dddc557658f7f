"""Scores of RadThought records (spec §6): worked out by hand, level by level."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from radgen.generators.radsim import load_policy
from radgen.generators.radthought.pair_settings import (
    COMPARED,
    LEVELS,
    ConclusionSettings,
    FusedSettings,
    settings,
)
from radgen.generators.radthought.predicates import canonical, parse
from radgen.generators.radthought.scores import (
    conclusion_score,
    fused_sum,
    jaccard,
    scene_score,
    side_of,
    told,
)
from radgen.generators.radthought.scores_coded import Conclusions, Rows, Words, scene_scores
from radgen.ontology import load_ontology

POLICY = load_policy(load_ontology())
OPTIONS = settings().conclusions


def concluded(about: str, assertion: str | None = "present", **stated: Any) -> dict[str, Any]:
    """A conclusion that rests on an effusion, if nothing else is said."""
    evidence = {"assertion": assertion, "evidence": ["pleural_effusion"]}
    return {"about": about, **dict.fromkeys(COMPARED), **evidence, **stated}


def score(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> float:
    value = conclusion_score(a, b, OPTIONS, POLICY).value
    assert conclusion_score(b, a, OPTIONS, POLICY).value == value  # to the last bit
    assert -1.0 <= value <= 1.0
    return value


# --- scene graph ---------------------------------------------------------------------------------


def test_scene_graphs_are_compared_without_ids() -> None:
    a = ["finding(f1,pleural_effusion)", "assertion(f1,present)", "side(f1,right)", "finding(f2,atelectasis)",
         "assertion(f2,present)", "adjacent_to(f2,f1)"]  # fmt: skip
    b = ["finding(f1,atelectasis)", "assertion(f1,present)", "finding(f2,pleural_effusion)",
         "assertion(f2,present)", "side(f2,left)", "adjacent_to(f2,f1)"]  # fmt: skip
    first, second = (canonical(map(parse, predicates)) for predicates in (a, b))
    # Both have the two findings, their assertions, and that they are adjacent; the sides differ: 5 of 7.
    assert jaccard(first, second) == 5 / 7
    assert scene_score(first, second) == pytest.approx(3 / 7)
    assert scene_score(first, first) == 1.0


def test_a_predicate_of_two_findings_counts_twice() -> None:
    one = canonical(map(parse, ["finding(f1,pulmonary_nodule)", "lobe(f1,upper)"]))
    two = canonical(
        map(parse, ["finding(f1,pulmonary_nodule)", "finding(f2,pulmonary_nodule)", "lobe(f2,upper)"])
    )
    assert jaccard(one, two) == 2 / 3
    assert scene_score((), ()) == 1.0
    assert scene_score(one, ()) == -1.0


# --- conclusions ---------------------------------------------------------------------------------
# Weights: assertion 2.5, certainty 0.6, severity 1.2, acuity 0.8, temporal, mechanism, significance 1.0, side
# 1.5, evidence 2.5.


def test_a_severity_step_and_the_other_side() -> None:
    a = concluded("compressive_atelectasis", certainty="possible", severity="mild", side="left")
    b = concluded("compressive_atelectasis", certainty="possible", severity="moderate", side="right")
    # assertion 2.5, certainty 0.6, severity 1.2 t(1) = 1.2 * 0.601475, side -1.5, evidence 2.5; weights 8.3
    assert score([a], [b]) == pytest.approx((2.5 + 0.6 + 1.2 * 0.601475 - 1.5 + 2.5) / 8.3, abs=1e-6)


def test_present_against_absent_takes_all_attributes_with_it() -> None:
    a = concluded("tension_pneumothorax", severity="severe", significance="critical")
    b = concluded("tension_pneumothorax", "absent")
    assert score([a], [b]) == -1.0
    assert score([b], [b]) == 1.0
    # absent against indeterminate: RadSim's -0.3 for every attribute
    c = concluded("tension_pneumothorax", "indeterminate", certainty="possible")
    assert score([b], [c]) == pytest.approx(-0.3)


def test_every_ordinal_and_mechanisms() -> None:
    a = concluded(
        "edema",
        acuity="acute",
        temporal="new",
        significance="critical",
        mechanism="possible(heart_failure)",
    )
    b = concluded(
        "edema",
        acuity="chronic",
        temporal="stable",
        significance="minor",
        mechanism="stated(heart_failure)",
    )
    # two steps each: t(2) = 2 exp(-4 / 4.5) - 1 = -0.177775; acuity 0.8, temporal 1.0, significance 1.0
    # the same mechanism, but only possible on one side: 0.6
    assert score([a], [b]) == pytest.approx((2.5 + 2.8 * -0.177775 + 0.6 + 2.5) / 8.8, abs=1e-6)
    c = concluded("edema", mechanism="possible(fluid_overload)", temporal="mixed")
    # against a: mechanism -0.5, mixed change 0.0; acuity and significance on one side only: 0.6 and 0.3
    assert score([a], [c]) == pytest.approx((2.5 - 0.5 + 0.0 + 0.8 * 0.6 + 0.3 + 2.5) / 8.8)


def test_hedges_on_one_side() -> None:
    plain, hedged = concluded("pneumonia"), concluded("pneumonia", certainty="cannot_exclude")
    # RadSim's table: cannot_exclude against no hedge is -0.2
    assert score([plain], [hedged]) == pytest.approx((2.5 - 0.6 * 0.2 + 2.5) / 5.6)


def test_what_it_derives_from() -> None:
    a = concluded("lung_infection", evidence=["consolidation", "pleural_effusion"])
    b = concluded("lung_infection", evidence=["consolidation", "ground_glass_opacity"])
    c = concluded("lung_infection", evidence=["ground_glass_opacity"])
    # one finding of three in common: 2/3 - 1; none: -1
    assert score([a], [b]) == pytest.approx((2.5 - 2.5 / 3) / 5.0)
    assert score([a], [c]) == pytest.approx(0.0)
    # of what both deny, what it derives from is no matter
    assert score([{**a, "assertion": "absent"}], [{**c, "assertion": "absent"}]) == 1.0


def test_generic_conclusions_are_about_their_findings() -> None:
    a = concluded("one_organ", evidence=["cardiomegaly", "pericardial_effusion"])
    b = concluded("one_organ", evidence=["cardiomegaly"])
    c = concluded("one_organ", evidence=["rib_fracture"])
    assert score([a], [b]) == pytest.approx((2.5 + 0.0) / 5.0)
    assert score([a], [c]) == pytest.approx(-0.6)  # about different things: each is alone
    # b meets the half of a that it shares; c is alone with its 5.0
    assert score([a], [b, c]) == pytest.approx((2.5 - 0.6 * 5.0) / 10.0)


def test_what_one_side_has_alone_counts_against() -> None:
    shared = concluded("heart_failure")
    denied = concluded("tension_pneumothorax", "absent")
    more = concluded("malignancy", severity="severe")
    # 5.0 agreed; alone: a denial 2.5 * -0.2, a process with a severity and its evidence 6.2 * -0.6
    assert score([shared], [shared, denied, more]) == pytest.approx((5.0 - 0.5 - 3.72) / 13.7)
    assert score([shared], [more]) == pytest.approx(-0.6)
    assert score([shared], []) == pytest.approx(-0.6)
    assert score([], []) == 1.0


def test_of_two_conclusions_about_one_process_the_best_match_counts() -> None:
    left = concluded("compressive_atelectasis", side="left")
    right = concluded("compressive_atelectasis", side="right")
    assert score([left, right], [right, left]) == 1.0
    # left meets left; right is alone: 6.5 * 1 + 6.5 * -0.6
    assert score([left, right], [left]) == pytest.approx((6.5 - 3.9) / 13.0)


def test_the_side_is_that_of_the_evidence() -> None:
    assert side_of([{"laterality": "right"}, {"finding": "edema"}]) == "right"
    assert side_of([{"laterality": "left"}, {"laterality": "right"}]) == "bilateral"
    assert side_of([{"laterality": "midline"}, {"laterality": "left"}]) == "left"
    assert side_of([{"laterality": "midline"}]) == "midline"
    assert side_of([{}]) is None
    states = {
        1: {"finding": "pleural_effusion", "presence": "absent", "laterality": "left"},
        2: {"finding": "atelectasis", "presence": "present", "laterality": "right"},
    }
    row = {"about": "x", "derived": ["f2", "f1"], **dict.fromkeys(COMPARED), "assertion": "present"}
    said = told(row, states)
    assert (said["side"], said["evidence"]) == ("right", ["atelectasis", "pleural_effusion"])


# --- fused ---------------------------------------------------------------------------------------


def test_the_fused_sum_is_the_weighted_sum() -> None:
    levels = dict(zip(LEVELS, (-0.4, 0.8, 0.5, -1.0, 0.25), strict=True))
    # 0.10 * -0.4 + 0.30 * 0.8 + 0.22 * 0.5 + 0.18 * -1.0 + 0.20 * 0.25
    assert fused_sum(levels, settings()) == pytest.approx(0.18, abs=1e-9)
    assert settings().fused.weights == {
        "scene_graph": 0.10,
        "first_order": 0.30,
        "second_order": 0.22,
        "third_order": 0.18,
        "synthesis": 0.20,
    }


def test_settings_are_checked() -> None:
    weights = settings().fused.weights
    with pytest.raises(ValidationError, match="expected a sum of 1"):
        FusedSettings(weights={**weights, "synthesis": 0.3}, order=list(LEVELS))
    with pytest.raises(ValidationError, match="order: expected a value for synthesis"):
        FusedSettings(weights=weights, order=list(LEVELS[:-1]))
    stored = OPTIONS.model_dump()
    with pytest.raises(ValidationError, match="sigma: expected a value for acuity"):
        ConclusionSettings(**{**stored, "sigma": {k: v for k, v in stored["sigma"].items() if k != "acuity"}})


# --- many pairs at once --------------------------------------------------------------------------


def random_conclusion(draw: random.Random) -> dict[str, Any]:
    values: dict[str, tuple[Any, ...]] = {
        "about": ("a", "b", "one_organ"),
        "assertion": ("present", "present", "absent", "indeterminate"),
        "certainty": (None, "cannot_exclude", "possible", "probable", "definite"),
        "severity": (None, None, "trace", "severe"),
        "acuity": (None, None, "acute", "chronic"),
        "temporal": (None, "new", "stable", "mixed"),
        "mechanism": (None, "possible(x)", "stated(x)", "possible(y)"),
        "significance": (None, "incidental", "minor", "critical"),
        "side": (None, "left", "right", "bilateral", "midline"),
        "evidence": (["x"], ["y"], ["x", "y"], ["x", "y", "z"], ["z"]),
    }
    return {name: draw.choice(choices) for name, choices in values.items()}


def test_the_coded_scores_are_the_plain_ones() -> None:
    draw = random.Random(5)
    lists = [[random_conclusion(draw) for _ in range(draw.choice((0, 1, 1, 2, 3, 5)))] for _ in range(150)]
    coder, rows = Conclusions(OPTIONS, POLICY), Rows()
    for items in lists:
        rows.add([coder.number(item) for item in items])
    first, second = np.triu_indices(len(lists))
    found = coder.scorer().score(rows, first, second)
    back = coder.scorer().score(rows, second, first)
    plain = [
        conclusion_score(lists[i], lists[j], OPTIONS, POLICY).value
        for i, j in zip(first, second, strict=True)
    ]
    assert found == pytest.approx(np.array(plain), abs=1e-9)
    assert found == pytest.approx(back, abs=1e-12)
    same = first == second
    assert found[same] == pytest.approx(1.0)


def test_the_coded_scene_scores_are_the_plain_ones() -> None:
    draw = random.Random(6)
    lists: list[list[str]] = [draw.choices("abcdefg", k=draw.randrange(9)) for _ in range(80)]
    words, rows = Words(), Rows()
    for items in lists:
        rows.add(words.bag(items))
    first, second = np.triu_indices(len(lists))
    found = scene_scores(rows, first, second)
    plain = [scene_score(lists[i], lists[j]) for i, j in zip(first, second, strict=True)]
    assert found.tolist() == plain


def test_no_pairs_no_scores() -> None:
    nothing: Any = np.zeros(0, np.int64)
    coder, rows = Conclusions(OPTIONS, POLICY), Rows()
    rows.add([])
    assert len(coder.scorer().score(rows, nothing, nothing)) == 0
    assert len(scene_scores(rows, nothing, nothing)) == 0
    both: Any = np.zeros(1, np.int64)
    assert coder.scorer().score(rows, both, both).tolist() == [1.0]
    assert scene_scores(rows, both, both).tolist() == [1.0]
