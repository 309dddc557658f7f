"""Losses by name, as stage files give them, and the module that computes one over a batch's distinct texts.

A further loss is a :class:`Kind` in :data:`KINDS`: which columns hold texts and scores, and the module, any
with ``compute_loss_from_embeddings(embeddings, labels)`` as the losses of sentence-transformers have it. Its
own parameters are trained, and kept with the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from sentence_transformers.sentence_transformer.losses import (
    CoSENTLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from torch import Tensor, nn

from radgen.errors import RadgenError, unknown

Options = Mapping[str, float]


@dataclass(frozen=True)
class Given:
    """What a loss with parameters of its own has to know.

    Attributes:
        dimensions: of the vectors.
        rows: the training rows of the dataset.
        seed: of the stage.
    """

    dimensions: int
    rows: Sequence[Mapping[str, Any]]
    seed: int


@dataclass(frozen=True)
class Kind:
    """What a loss needs of a dataset.

    Attributes:
        texts: the columns with texts, in the order of the embeddings.
        score: the column with the label of a row, None where there is none.
        states: the columns with the states of the texts, for forming further rows; empty: none are formed.
        targets: (text, text, column) for each target that a row gives, by position of the texts.
        forms: what is formed among the texts of a context.
        build: makes the module from the options of the stage and the dataset, and what ``Given`` says.
        columns: further columns; with them the module's ``labels`` are a mapping of each column's values, as
            they stand in the rows, and of ``score``.
    """

    texts: tuple[str, ...]
    score: str | None
    states: tuple[str, ...]
    targets: tuple[tuple[int, int, str], ...]
    forms: Literal["triplets", "pairs"] | None
    build: Callable[[Options, Given], nn.Module]
    columns: tuple[str, ...] = ()


def _triplet(options: Options, _: Given) -> nn.Module:
    """Eq. 5: max(0, cos(a, n) − cos(a, p) + m); the library's default distance is Euclidean."""
    loss: nn.Module = TripletLoss(None, TripletDistanceMetric.COSINE, options["margin"])
    return loss


def _cosent(options: Options, _: Given) -> nn.Module:
    """Eq. 4: log(1 + Σ_{s_i > s_j} exp(λ (cos_j − cos_i)))."""
    loss: nn.Module = CoSENTLoss(None, scale=options["scale"])
    return loss


def _ranking(options: Options, _: Given) -> nn.Module:
    """Own text among all of the batch: −log softmax(λ cos(a_i, ·))_i and −log softmax(λ cos(p_i, ·))_i.

    For texts of one report, where those of any other report are negatives (ours). ``ranking`` has the rows'
    own negatives among them, ``ranking_pairs`` leaves these out.
    """
    loss: nn.Module = MultipleNegativesRankingLoss(
        None,
        scale=options["scale"],
        directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction",
    )
    return loss


def _states(options: Options, given: Given) -> nn.Module:
    from radgen.train.state_loss import StateLoss

    findings = sorted({row["finding"] for row in given.rows})
    return StateLoss(findings, given.dimensions, options, given.seed)


def _apart(options: Options, given: Given) -> nn.Module:
    from radgen.train.state_loss import ApartLoss

    return ApartLoss()


KINDS: dict[str, Kind] = {
    "triplet": Kind(
        texts=("anchor", "positive", "negative"),
        score=None,
        states=("anchor_state", "positive_state", "negative_state"),
        targets=((0, 1, "positive_target"), (0, 2, "negative_target")),
        forms="triplets",
        build=_triplet,
    ),
    "cosent": Kind(
        texts=("sentence1", "sentence2"),
        score="score",
        states=("state1", "state2"),
        targets=((0, 1, "score"),),
        forms="pairs",
        build=_cosent,
    ),
    "ranking": Kind(
        texts=("anchor", "positive", "negative"),
        score=None,
        states=(),
        targets=(),
        forms=None,
        build=_ranking,
    ),
    # The third text of a row is a third of what is encoded, and one negative more among the batch's.
    "ranking_pairs": Kind(
        texts=("anchor", "positive"),
        score=None,
        states=(),
        targets=(),
        forms=None,
        build=_ranking,
    ),
    "states": Kind(
        texts=("sentence1", "sentence2"),
        score="score",
        states=(),
        targets=(),
        forms=None,
        build=_states,
        columns=("finding", "presence1", "presence2", "state1", "state2"),
    ),
    "apart": Kind(
        texts=("sentence1", "sentence2"), score="score", states=(), targets=(), forms=None, build=_apart
    ),
}


def kind_of(loss: str, where: str) -> Kind:
    """Return the kind of a loss by its name.

    Raises:
        RadgenError: there is none; ``where`` says who asked.
    """
    if loss not in KINDS:
        raise RadgenError(f"{where}: {unknown('loss', loss, KINDS)}")
    return KINDS[loss]


class Term(nn.Module):
    """One dataset's term of the mixture: its loss and its weight w."""

    def __init__(self, loss: nn.Module, weight: float) -> None:
        super().__init__()
        self.loss = loss
        self.weight = weight

    def forward(self, vectors: Tensor, labels: Mapping[str, Any]) -> Tensor:
        """Return the loss of rows over vectors, without the weight: a mean (triplets) or eq. 4.

        Args:
            vectors: shape (n, d).
            labels: ``rows`` (R, k) positions, ``score`` (R,) or absent, ``columns`` of the kind or absent.
        """
        rows, columns = labels["rows"], labels.get("columns")
        texts = [vectors[rows[:, column]] for column in range(rows.shape[1])]
        given = {**columns, "score": labels.get("score")} if columns else labels.get("score")
        found: Tensor = self.loss.compute_loss_from_embeddings(texts, given)  # type: ignore[operator]
        return found


class MixtureLoss(nn.Module):
    """The mean of w · L over the segments of a step, each distinct text of the step encoded once.

    ``model`` must have this name: the trainer puts the DDP wrapper there; without it the ranks drift apart
    silently. Each rank encodes its share of the texts; vectors are gathered and every rank computes the loss
    of the whole step, so that n ranks give what one rank gives.
    """

    def __init__(self, model: Any, terms: Mapping[str, Term]) -> None:
        super().__init__()
        self.model = model
        self.terms = nn.ModuleDict(terms)
        self.last: list[tuple[str, float]] = []  # dataset and loss of each segment, without the weight

    def forward(self, sentence_features: Sequence[dict[str, Tensor]], labels: Mapping[str, Any]) -> Tensor:
        """Return the weighted loss of a step.

        Args:
            sentence_features: this rank's texts in chunks of like length.
            labels: ``order`` (n,): where text i of the step stands among the gathered vectors; ``segments``:
                a mapping each, with ``dataset`` and what :class:`Term` takes.
        """
        own = torch.cat([self.model(chunk)["sentence_embedding"] for chunk in sentence_features])
        vectors = gathered(own.float())[labels["order"]]
        found = []
        self.last = []
        for segment in labels["segments"]:
            term = self.terms[segment["dataset"]]
            value = term(vectors, segment)
            self.last.append((segment["dataset"], float(value.detach())))
            found.append(value * term.weight)
        return torch.stack(found).mean()


def gathered(own: Tensor) -> Tensor:
    """Return the vectors of all ranks, this rank's with their gradient.

    The others' carry none, and DDP takes the mean over ranks where the sum is needed: so the gradient into
    this rank's is multiplied by the number of ranks.

    Args:
        own: shape (n, d), the same n on every rank.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return own
    every = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(every, own.detach().contiguous())
    if own.requires_grad:
        own.register_hook(lambda gradient: gradient * len(every))  # type: ignore[no-untyped-call]
    every[dist.get_rank()] = own
    return torch.cat(every)
