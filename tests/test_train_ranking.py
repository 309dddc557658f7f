"""The ranking loss: own text among all of the batch, both ways, against sums worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import train_runs  # noqa: E402  # torch first

from radgen.train.encoder import load_encoder  # noqa: E402
from radgen.train.losses import KINDS, Given, MixtureLoss, Term  # noqa: E402
from radgen.train.validation import Held, Validation  # noqa: E402


def test_ranking_is_the_mean_of_both_directions() -> None:
    """Two rows in a plane; a_1 = p_1 = (1, 0), a_2 = p_2 = (0, 1), n_1 = (0, 1), n_2 = (-1, 0); scale 2.

    Row 1: a_1 against p_1, p_2, n_1, n_2 has cosines 1, 0, 0, -1; p_1 against a_1, a_2 has 1, 0.
    Row 2: a_2 against the same has 0, 1, 1, 0; p_2 against a_1, a_2 has 0, 1.
    """
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    rows = torch.tensor([[0, 0, 1], [1, 1, 2]])
    term = Term(KINDS["ranking"].build({"scale": 2.0}, Given(2, [], 0)), 1.0)
    e = math.exp
    asked = [math.log(e(2) + 2 + e(-2)) - 2, math.log(2 + 2 * e(2)) - 2]
    found = [math.log(e(2) + 1) - 2, math.log(1 + e(2)) - 2]
    expected = sum((a + b) / 2 for a, b in zip(asked, found, strict=True)) / 2
    assert float(term(vectors, {"rows": rows})) == pytest.approx(expected, abs=1e-6)


def test_ranking_of_pairs_leaves_the_rows_negatives_out() -> None:
    """a_1 against p_1, p_2 has cosines 1, 0, and so has p_1 against a_1, a_2; row 2 alike; scale 2."""
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    kind = KINDS["ranking_pairs"]
    assert kind.texts == ("anchor", "positive")
    term = Term(kind.build({"scale": 2.0}, Given(2, [], 0)), 1.0)
    rows = torch.tensor([[0, 0], [1, 1]])
    expected = math.log(math.exp(2) + 1) - 2
    assert float(term(vectors, {"rows": rows})) == pytest.approx(expected, abs=1e-6)


def test_contrasts_learned_without_negatives_have_a_loss_and_no_accuracy(tmp_path: Path) -> None:
    """One row, its anchor the positive: both softmaxes are over that text alone, so that the loss is 0."""
    train_runs.bert(tmp_path / "bert")
    model = load_encoder(str(tmp_path / "bert"), max_tokens=32, device="cpu").eval()
    term = Term(KINDS["ranking_pairs"].build({"scale": 20.0}, Given(48, [], 0)), 1.0)
    held = Held("contrasts/finding", [["left nodule"], ["left nodule"]], None, [None], {})
    metrics = Validation([held], [], 8)(model, MixtureLoss(model, {held.name: term}))
    assert metrics["loss/contrasts/finding"] == pytest.approx(0.0, abs=1e-6)
    assert not any(name.startswith("contrast/") for name in metrics)
