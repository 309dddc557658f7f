"""Losses by hand: eq. 4 and eq. 5 on fixed vectors, and the same with every distinct text encoded once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import train_runs
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, TripletLoss
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric

from radgen.errors import RadgenError
from radgen.train.collator import Collator
from radgen.train.encoder import load_encoder
from radgen.train.losses import KINDS, Given, MixtureLoss, Term, kind_of
from radgen.train.mixture import Batch
from radgen.train.parts import Segment

GIVEN = Given(2, [], 42)


def at(*cosines: float) -> torch.Tensor:
    """Unit vectors in the plane with these cosines to (1, 0)."""
    return torch.tensor([[c, math.sqrt(1 - c * c)] for c in cosines])


def loss(name: str, **options: float) -> Term:
    return Term(KINDS[name].build(options, GIVEN), 1.0)


def value(
    term: Term, vectors: torch.Tensor, rows: list[list[int]], scores: list[float] | None = None
) -> float:
    labels = {"rows": torch.tensor(rows), "score": None if scores is None else torch.tensor(scores)}
    return float(term(vectors, labels))


@pytest.mark.parametrize("margin", [0.30, 0.35, 0.45])
def test_triplet_is_equation_5(margin: float) -> None:
    """max(0, cos(a, n) − cos(a, p) + m): 0.8 against 0.6, 0.9 against 0.1, and the mean of the two."""
    vectors = at(1.0, 0.6, 0.8, 0.9, 0.1)
    part = loss("triplet", margin=margin)
    wrong, right = 0.8 - 0.6 + margin, 0.0
    assert value(part, vectors, [[0, 1, 2]]) == pytest.approx(wrong, abs=1e-6)
    assert value(part, vectors, [[0, 3, 4]]) == pytest.approx(right, abs=1e-6)
    assert value(part, vectors, [[0, 1, 2], [0, 3, 4]]) == pytest.approx((wrong + right) / 2, abs=1e-6)


def test_cosent_is_equation_4() -> None:
    """Targets 1.0, 0.2, 0.2 with cosines 0.9, 0.5, 0.7: two pairs are ordered, the equal ones are not."""
    vectors = at(1.0, 0.9, 0.5, 0.7)
    rows, scores = [[0, 1], [0, 2], [0, 3]], [1.0, 0.2, 0.2]
    expected = math.log(1 + math.exp(20 * (0.5 - 0.9)) + math.exp(20 * (0.7 - 0.9)))
    assert value(loss("cosent", scale=20), vectors, rows, scores) == pytest.approx(expected, abs=1e-6)
    worse = math.log(1 + math.exp(20 * (0.9 - 0.5)) + math.exp(20 * (0.9 - 0.7)))
    assert value(loss("cosent", scale=20), vectors, rows, [0.1, 0.6, 0.6]) == pytest.approx(worse, rel=1e-6)


def test_an_unknown_loss_names_the_nearest() -> None:
    expected = "stage2: contrasts/size: unknown loss 'triplets'; did you mean 'triplet'"
    with pytest.raises(RadgenError, match=expected):
        kind_of("triplets", "stage2: contrasts/size")


@pytest.fixture(scope="module", params=["bert", "qwen"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("encoder") / request.param
    return load_encoder(str(getattr(train_runs, request.param)(folder)), max_tokens=64, device="cpu")


TEXTS = ["A 4 mm left nodule is seen.", "A 9 mm right mass measures 9 mm.", "A cyst.", "A left cyst is seen."]
TRIPLETS = [[0, 1, 2], [0, 3, 2], [1, 3, 2], [1, 0, 2]]
PAIRS = [[0, 1], [0, 2], [1, 2], [3, 0], [3, 1]]
SCORES = [0.9, -0.2, 0.4, 0.4, 0.1]


def own_loss(model: Any, names: list[str], chunk_tokens: int, weight: float = 1.0) -> Any:
    """Return the loss module, with the loss of the fixed rows computed as training computes it.

    Distinct texts are encoded once, in chunks of like length; one segment a name.
    """
    rows = {"triplet": (np.array(TRIPLETS), None), "cosent": (np.array(PAIRS), np.array(SCORES))}
    options = {"margin": 0.35, "scale": 20}
    loss = MixtureLoss(model, {name: Term(KINDS[name].build(options, GIVEN), weight) for name in names})
    segments = [Segment(name, *rows[name], {}) for name in names]
    inputs = Collator(model, chunk_tokens)([Batch(TEXTS, segments, 64)])
    chunks: dict[str, dict[str, object]] = {}
    for key, tensor in inputs.items():
        if key.startswith("chunk"):
            number, _, rest = key.partition("_")
            chunks.setdefault(number, {})[rest] = tensor
    loss.total = loss(list(chunks.values()), inputs["label"])
    return loss


def stock_loss(model: Any, name: str) -> torch.Tensor:
    """The loss of sentence-transformers, each row's texts encoded again."""
    rows = TRIPLETS if name == "triplet" else PAIRS
    columns = [model.preprocess([TEXTS[row[i]] for row in rows]) for i in range(len(rows[0]))]
    if name == "triplet":
        return TripletLoss(model, TripletDistanceMetric.COSINE, 0.35)(columns, None)
    return CoSENTLoss(model, scale=20)(columns, torch.tensor(SCORES))


@pytest.mark.parametrize("name", ["triplet", "cosent"])
@pytest.mark.parametrize("chunk_tokens", [1, 20, 4096])
def test_each_distinct_text_once_changes_no_loss_and_no_gradient(
    encoder: Any, name: str, chunk_tokens: int
) -> None:
    encoder.train()
    found = []
    for make in (lambda: stock_loss(encoder, name), lambda: own_loss(encoder, [name], chunk_tokens).total):
        encoder.zero_grad()
        total = make()
        total.backward()
        gradients = {n: p.grad.clone() for n, p in encoder.named_parameters() if p.grad is not None}
        found.append((float(total.detach()), gradients))
    (stock, before), (own, after) = found
    assert own == pytest.approx(stock, rel=1e-6, abs=1e-6)
    assert set(before) == set(after)
    together = [torch.cat([some[key].flatten() for key in sorted(before)]) for some in (before, after)]
    assert float((together[0] - together[1]).norm()) <= 1e-5 * float(together[0].norm())


def test_a_step_of_two_datasets_is_the_mean_of_their_weighted_losses(encoder: Any) -> None:
    """w · L each, weight 3; what is recorded is L without the weight."""
    triplet, pairs = (float(stock_loss(encoder, name).detach()) for name in ("triplet", "cosent"))
    loss = own_loss(encoder, ["triplet", "cosent"], 64, weight=3.0)
    assert float(loss.total.detach()) == pytest.approx(3 * (triplet + pairs) / 2, rel=1e-5)
    assert dict(loss.last) == pytest.approx({"triplet": triplet, "cosent": pairs}, rel=1e-5)


def test_texts_come_in_chunks_of_like_length(encoder: Any) -> None:
    texts = [train_runs.corpus()[0][:n] for n in (26, 3, 14, 5, 24, 4)]
    collator = Collator(encoder, 24)
    lengths = collator.lengths(texts, 64)
    inputs = collator([Batch(texts, [], 64)])
    shapes = [tensor.shape for key, tensor in inputs.items() if key.endswith("input_ids")]
    assert sum(rows for rows, _ in shapes) == len(texts)
    assert all(rows * width <= 24 or rows == 1 for rows, width in shapes)
    assert [width for _, width in shapes] == sorted(width for _, width in shapes)
    assert inputs["tokens"] == sum(lengths)


def test_texts_are_cut_at_the_length_of_the_step(encoder: Any) -> None:
    inputs = Collator(encoder, 64)([Batch(["A 4 mm left nodule is seen.", "A"], [], 5)])
    widths = [tensor.shape[1] for key, tensor in inputs.items() if key.endswith("input_ids")]
    assert max(widths) == 5
