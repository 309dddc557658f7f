"""RadSim against values worked out by hand (spec §4), and the vectorised function against the plain one."""

from __future__ import annotations

import random
import subprocess
import sys
from math import exp
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radsim_states import random_description, random_state

from radgen.errors import OntologyError
from radgen.generators.radsim import load_policy, score
from radgen.generators.radsim.coded import Scorer
from radgen.generators.radsim.coding import Coder
from radgen.ontology import Finding, load_ontology

POLICY = load_policy(load_ontology())
MOST = 3 * 0.02  # the jitter's clip


def state(finding: str, presence: str = "present", **fields: object) -> dict[str, object]:
    return {"finding": finding, "presence": presence, **fields}


def agreement(a: dict[str, object], b: dict[str, object]) -> float:
    return score([a], [b], POLICY).agreement


def test_worked_example_of_the_paper() -> None:
    a = state("pleural_effusion", severity="mild", laterality="bilateral")
    b = state("pleural_effusion", severity="moderate", laterality="left")
    made = score([a], [b], POLICY)
    # One severity step: t(1) = 2 exp(-1 / 4.5) - 1 = 0.601; size and morphology are unstated: 6.30 of weight.
    assert made.weight == pytest.approx(2.5 + 1.2 + 1.0 + 1.0 + 0.6)
    assert made.agreement == pytest.approx((2.5 + 1.2 * (2 * exp(-1 / 4.5) - 1) + 0.5 + 1.0 + 0.6) / 6.3)
    assert made.agreement == pytest.approx(5.32 / 6.30, abs=5e-4)
    assert (made.family, made.organ) == (0.0, 0.0)
    assert made.value == pytest.approx(0.84, abs=0.005 + MOST)


@pytest.mark.parametrize(
    ("a", "b", "size"), [(8, 12, 1 / 3), (12, 8, 1 / 3), (10, 10, 1.0), (5, 50, 1 - 2 * 45 / 50)]
)
def test_sizes(a: float, b: float, size: float) -> None:
    made = score([state("pulmonary_nodule", size_mm=a)], [state("pulmonary_nodule", size_mm=b)], POLICY)
    (row,) = made.rows
    assert row.pair is not None
    (term,) = [term for term in row.pair.terms if term.attribute == "size"]
    assert term.agreement == pytest.approx(size)
    assert made.agreement == pytest.approx((6.3 + 2.5 * size) / 8.8)


def test_present_against_absent_is_negative_and_unstated_is_not_absent() -> None:
    there, denied = state("pneumothorax"), state("pneumothorax", "absent")
    assert agreement(there, denied) == -1.0
    assert agreement(state("pneumothorax", laterality="left", severity="mild"), denied) == -1.0
    assert agreement(denied, denied) == 1.0
    # Not mentioned: one finding alone has the first value of `unmatched`, far from a denial.
    other = [state("cardiomegaly")]
    kept = score([there, *other], other, POLICY)
    assert kept.agreement == pytest.approx((6.3 - 0.25 * 6.3) / 12.6)
    lost = score([there, *other], [denied, *other], POLICY)
    assert lost.agreement == pytest.approx((6.3 - 2.5) / 8.8)


def test_missing_against_missing_agrees_and_leaves_size_and_morphology_out() -> None:
    made = score([state("atelectasis")], [state("atelectasis")], POLICY)
    assert made.agreement == 1.0
    assert made.rows[0].pair is not None
    names = [term.attribute for term in made.rows[0].pair.terms]
    assert names == ["presence", "severity", "laterality", "spatial", "certainty"]


def test_stated_on_one_side_is_between_agreement_and_contradiction() -> None:
    bare, left, right = (
        state("pleural_effusion", **f) for f in ({}, {"laterality": "left"}, {"laterality": "right"})
    )
    assert agreement(bare, left) == pytest.approx((5.3 + 0.6) / 6.3)
    assert agreement(right, left) == pytest.approx((5.3 - 1.0) / 6.3)
    assert agreement(left, left) == 1.0


def test_mild_to_moderate_lies_between() -> None:
    between = state("pleural_effusion", severity="moderate", severity_min="mild")
    for other in ("mild", "moderate"):
        half = 2 * exp(-0.25 / 4.5) - 1
        assert agreement(between, state("pleural_effusion", severity=other)) == pytest.approx(
            (5.1 + 1.2 * half) / 6.3
        )


def test_restricted_negation_denies_only_its_variant() -> None:
    no_large = state("pleural_effusion", "absent", severity="severe")
    assert agreement(no_large, state("pleural_effusion", severity="severe")) == -1.0
    assert agreement(no_large, state("pleural_effusion", severity="trace")) == 0.0
    assert agreement(no_large, state("pleural_effusion")) == -0.5
    no_new = state("pulmonary_nodule", "absent", temporal_change="new")
    assert agreement(no_new, state("pulmonary_nodule", temporal_change="stable")) == 0.0
    assert agreement(no_new, state("pulmonary_nodule", temporal_change="new")) == -1.0


def test_family_and_organ() -> None:
    for a, b in (("emphysema", "copd"), ("fibrosis", "interstitial_lung_disease")):
        made = score([state(a)], [state(b)], POLICY)
        # Two findings alone: -0.25 - 0.05; one family 0.6, one organ system 0.20.
        assert made.agreement == pytest.approx(-0.3)
        assert made.family == pytest.approx(0.6)
        assert made.organ == pytest.approx(0.20)
    organ = score([state("pleural_effusion")], [state("pneumothorax")], POLICY)
    assert (organ.family, organ.organ) == (0.0, pytest.approx(0.20))
    apart = score([state("pneumothorax")], [state("cholelithiasis")], POLICY)
    assert (apart.family, apart.organ) == (0.0, 0.0)
    related = score([state("pleural_effusion")], [state("heart_failure")], POLICY)
    assert related.family == pytest.approx(0.4)  # an association of the families' file


def test_bonuses_count_by_the_share_of_the_weight() -> None:
    a = [state("pneumothorax"), state("emphysema")]
    b = [state("pneumothorax"), state("copd")]
    made = score(a, b, POLICY)
    assert made.family == pytest.approx(0.6 * 2 / 3)
    assert made.agreement == pytest.approx((1.0 - 0.3 - 0.3) / 3)


def test_nodule_mass_continuum() -> None:
    nodule = state("pulmonary_nodule", size_mm=28.0, laterality="right")
    mass = state("lung_mass", size_mm=32.0, laterality="right")
    size = 1 - 2 * 4 / 32
    assert agreement(nodule, mass) == pytest.approx((2.5 * 0.75 + 2.5 * size + 3.8) / 8.8)
    assert agreement(state("pulmonary_nodule"), state("lung_mass", "absent")) == pytest.approx(-0.75)


def test_findings_of_one_tag_are_matched_one_to_one_by_best_agreement() -> None:
    small_left = state("pulmonary_nodule", size_mm=4.0, laterality="left")
    large_right = state("pulmonary_nodule", size_mm=20.0, laterality="right")
    made = score([small_left, large_right], [large_right, small_left], POLICY)
    assert made.agreement == 1.0
    assert len(made.rows) == 2
    third = score([small_left, large_right], [large_right], POLICY)
    assert [row.kind for row in third.rows] == ["same", "only_a"]
    assert third.agreement == pytest.approx((8.8 - 0.25 * 8.8) / 17.6)


def test_summaries_deny_and_agree() -> None:
    clear = state("lung_abnormality", "absent")
    denied = score([state("pneumonia")], [clear], POLICY)
    assert denied.agreement == pytest.approx(-0.35)
    both = score([state("consolidation", "absent")], [clear], POLICY)
    assert both.agreement == 1.0


def test_a_denial_that_the_other_side_does_not_mention_counts_nothing() -> None:
    a = [state("lung_opacity", laterality="left")]
    assert score(a, [*a, state("rib_fracture", "absent")], POLICY).agreement == 1.0


def test_history_is_no_part_of_a_description() -> None:
    past = state("pneumonia", temporality="historical")
    assert score([past, state("cardiomegaly")], [state("cardiomegaly")], POLICY).agreement == 1.0


def test_evidence_and_section_do_not_change_a_score() -> None:
    found = Finding.model_validate(
        {**state("pneumonia"), "evidence": {"text": "pneumonia", "start": 3, "end": 12}}
    )
    other = [state("consolidation")]
    row = {**state("pneumonia"), "section": "findings"}
    assert score([found], other, POLICY).value == score([row], other, POLICY).value


descriptions = st.integers(0, 10**9).map(lambda seed: random_description(random.Random(seed)))


@given(descriptions, descriptions)
def test_symmetry_range_and_self_similarity(a: list[dict[str, object]], b: list[dict[str, object]]) -> None:
    made, back = score(a, b, POLICY), score(b, a, POLICY)
    assert made.value == pytest.approx(back.value, abs=1e-12)
    assert made.jitter == back.jitter
    assert -1.0 <= made.value <= 1.0
    own = score(a, list(reversed(a)), POLICY)
    assert own.agreement == pytest.approx(1.0)
    assert abs(own.value - 1.0) <= MOST + 1e-9


def test_jitter_is_gaussian_clipped_and_the_same_in_every_process() -> None:
    rng = random.Random(5)
    pairs = [(random_description(rng), random_description(rng)) for _ in range(3000)]
    noise = np.array([score(a, b, POLICY).jitter for a, b in pairs])
    assert np.abs(noise).max() <= MOST + 1e-12
    assert abs(noise.mean()) < 0.0015
    assert 0.018 < noise.std() < 0.022
    code = (
        "import sys, orjson; from radgen.generators.radsim import load_policy, score; "
        "from radgen.ontology import load_ontology; a, b = orjson.loads(sys.argv[1]); "
        "print(repr(score(a, b, load_policy(load_ontology())).jitter))"
    )
    text = orjson.dumps(pairs[0]).decode()
    other = subprocess.run([sys.executable, "-c", code, text], capture_output=True, text=True, check=True)
    assert float(other.stdout) == noise[0]


def test_vectorised_equals_plain_on_100_000_random_pairs() -> None:
    rng = random.Random(11)
    sides = [[random_state(rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5)))] for _ in range(20_000)]
    coder = Coder(POLICY)
    for description in sides:
        coder.add(description)
    first = np.array([rng.randrange(len(sides)) for _ in range(100_000)])
    second = np.array([rng.randrange(len(sides)) for _ in range(100_000)])
    fast = Scorer(coder).score(first, second)
    plain = [score(sides[i], sides[j], POLICY) for i, j in zip(first, second, strict=True)]
    for name in ("value", "agreement", "family", "organ", "jitter"):
        expected = np.array([getattr(made, name) for made in plain])
        assert np.abs(getattr(fast, name) - expected).max() <= 1e-6, name


def test_the_table_adds_up(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "radgen",
        "radsim",
        "Small left pleural effusion.",
        "Large effusion. COPD.",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    made = orjson.loads(done.stdout)
    weight = sum(row["weight"] for row in made["findings"])
    total = sum(row["weight"] * row["agreement"] for row in made["findings"])
    assert made["agreement"] == pytest.approx(total / weight)
    for row in made["findings"]:
        if row["attributes"]:
            assert row["weight"] == pytest.approx(sum(term["weight"] for term in row["attributes"]))
    assert made["score"] == pytest.approx(made["agreement"] + made["family"] + made["organ"] + made["jitter"])


def test_a_users_constants_and_their_mistakes(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("radsim:\n  weights: {severity: 2.0}\n")
    policy = load_policy(load_ontology([own]))
    a, b = state("edema_x", severity="mild"), state("edema_x", severity="severe")
    step = 2 * exp(-4 / 4.5) - 1
    assert score([a], [b], policy).agreement == pytest.approx((5.1 + 2.0 * step) / 7.1)
    own.write_text("radsim:\n  weights: {severty: 2.0}\n  general: {lung_abnormalty: [lung]}\n")
    with pytest.raises(OntologyError, match=r"own.yaml:2.*severty"):
        load_policy(load_ontology([own]))
    from radgen.templates.check import check_file

    problems = check_file(own)
    assert any("own.yaml:2" in line and "severity" in line for line in problems)
    assert any("own.yaml:3" in line and "lung_abnormality" in line for line in problems)
