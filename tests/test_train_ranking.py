"""The ranking loss: own text among all of the batch, both ways, against sums worked out by hand."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from radgen.train.losses import KINDS, Given, Term  # noqa: E402  # torch first


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
