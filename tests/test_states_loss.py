"""The losses of stage states, against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from radgen.train.losses import KINDS, Given
from radgen.train.settings import load_stage
from radgen.train.state_loss import ApartLoss, StateLoss

OPTIONS = {"within": 1.0, "across": 1.0, "other": 0.0, "heads": 0.0, "head_scale": 10.0}


def state(tag: str, presence: str, **more: Any) -> dict[str, Any]:
    return {"finding": tag, "presence": presence, **more}


def labels(*rows: tuple[str, list[dict[str, Any]], list[dict[str, Any]]]) -> dict[str, Any]:
    def presence(tag: str, states: list[dict[str, Any]]) -> str:
        return next(str(found["presence"]) for found in states if found["finding"] == tag)

    return {
        "finding": [tag for tag, _, _ in rows],
        "presence1": [presence(tag, first) for tag, first, _ in rows],
        "presence2": [presence(tag, second) for tag, _, second in rows],
        "state1": [first for _, first, _ in rows],
        "state2": [second for _, _, second in rows],
    }


def loss_of(vectors: list[list[float]], given: dict[str, Any], **options: float) -> float:
    made = StateLoss(("effusion", "nodule"), len(vectors[0]), {**OPTIONS, **options}, seed=1)
    if options.get("heads"):
        made.heads.data = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    half = len(vectors) // 2
    tensors = [torch.tensor(vectors[:half]), torch.tensor(vectors[half:])]
    return made.compute_loss_from_embeddings(tensors, given).item()


PRESENT, ABSENT = state("effusion", "present"), state("effusion", "absent")
NODULE, NO_NODULE = state("nodule", "present"), state("nodule", "absent")


def test_one_state_is_pulled_together_and_two_states_apart() -> None:
    given = labels(("effusion", [PRESENT], [PRESENT]), ("effusion", [PRESENT], [ABSENT]))
    # present (1, 0), (0, 1), (0.6, 0.8); absent (-1, 0): within 0, 0.6, 0.8, across -1, 0, -0.6
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]]
    within = (1.0 + 0.4 + 0.2) / 3
    across = (0.0 + 1.0 + 0.4) / 3
    assert loss_of(vectors, given) == pytest.approx(within + across, abs=1e-6)
    doubled = loss_of([[2 * x for x in row] for row in vectors], given)
    assert doubled == pytest.approx(within + across, abs=1e-6)  # lengths do not matter


def test_different_findings_are_kept_at_right_angles() -> None:
    given = labels(("effusion", [PRESENT], [ABSENT]), ("nodule", [NODULE], [NO_NODULE]))
    vectors = [[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0], [0.0, 1.0]]
    across = ((1 - 1.0) + (1 + 0.8)) / 2
    other = (0.6**2 + 0.0**2 + 0.6**2 + 0.0**2) / 4  # each effusion text with each nodule text
    assert loss_of(vectors, given, other=2.0) == pytest.approx(across + 2 * other, abs=1e-6)


def test_a_text_about_two_findings_counts_for_both() -> None:
    both = [PRESENT, NO_NODULE]
    given = labels(("effusion", both, [PRESENT]), ("nodule", [NODULE], [NO_NODULE]))
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]]
    # `both` agrees with the effusion (0.6) and with the denied nodule (0.8), and not with the nodule (0)
    within = ((1 - 0.6) + (1 - 0.8)) / 2
    across = ((1 + 0.0) + (1 + 0.6)) / 2  # `both` and nodule; nodule and the denied one
    assert loss_of(vectors, given) == pytest.approx(within + across, abs=1e-6)


def test_a_restricted_denial_names_a_finding_and_has_no_sign() -> None:
    restricted = [PRESENT, state("nodule", "absent", temporal_change="new")]
    made = StateLoss(("effusion", "nodule"), 2, OPTIONS, seed=1)
    signs, named = made.signs(labels(("effusion", restricted, [ABSENT])))
    assert signs.tolist() == [[1.0, 0.0], [-1.0, 0.0]]
    assert named.tolist() == [[1.0, 1.0], [1.0, 0.0]]


def test_heads_classify_the_state_of_their_finding() -> None:
    given = labels(("effusion", [PRESENT], [ABSENT]))
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    # The first row of a head is the absent state: logits (10, 0) for the present text, (0, 10) else.
    wrong = math.log(1 + math.exp(10))
    assert loss_of(vectors, given, across=0.0, heads=1.0) == pytest.approx(wrong, rel=1e-5)
    assert loss_of(vectors[::-1], given, across=0.0, heads=1.0) == pytest.approx(
        math.log(1 + math.exp(-10)), abs=1e-6
    )


def test_what_has_nothing_in_common_goes_to_right_angles() -> None:
    first, second = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])
    expected = (0.6**2 + 1.0**2 + 0.8**2 + 0.0**2) / 4
    assert float(ApartLoss().compute_loss_from_embeddings([first, second], None)) == pytest.approx(expected)


def test_the_stage_names_losses_that_exist_and_have_parameters_to_train() -> None:
    settings = load_stage("states", "laptop").settings
    assert {entry.loss for entry in settings.datasets.values()} == {"states", "apart"}
    rows = [{"finding": "nodule"}, {"finding": "effusion"}]
    made = KINDS["states"].build(settings.losses["states"], Given(8, rows, 42))
    assert [tuple(part.shape) for part in made.parameters()] == [(2, 2, 8)]
    assert isinstance(made, StateLoss)
    assert made.place == {"effusion": 0, "nodule": 1}
    assert list(KINDS["apart"].build({}, Given(8, rows, 42)).parameters()) == []
