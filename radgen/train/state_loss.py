"""The losses of stage ``states``: one state together, the states of a finding apart (spec §11; MApLe, 3.1).

The paper gives the aim (cosine 1 within a state, -1 across the states of a finding) and a classification head
for each finding. With nothing more, all that is present would gather at one point and all that is absent at
its opposite, whatever the finding: so sentences about different findings are kept at right angles (ours), and
a codebook tells findings apart, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from radgen.train.losses import Options

SIGNS = {"present": 1.0, "absent": -1.0}


class StateLoss(nn.Module):
    """Over all pairs of texts of a batch, not only those of its rows:

        L = mean(1 - cos | one state) + mean(1 + cos | two states of one finding)
            + w_other · mean(cos² | no finding in common) + w_heads · mean cross-entropy of the finding's head

    Args:
        findings: each has a head, a linear map of unit vectors to two states.
        dimensions: of the vectors.
        options: ``within``, ``across``, ``other`` and ``heads`` (weights), ``head_scale`` (of the logits).
        seed: of the heads.
    """

    def __init__(self, findings: Sequence[str], dimensions: int, options: Options, seed: int) -> None:
        super().__init__()
        self.place = {tag: number for number, tag in enumerate(findings)}
        self.options = dict(options)
        draws = torch.Generator().manual_seed(seed)
        start = torch.randn(len(self.place), 2, dimensions, generator=draws) / dimensions**0.5
        self.heads = nn.Parameter(start)

    def compute_loss_from_embeddings(self, embeddings: Sequence[Tensor], labels: Mapping[str, Any]) -> Tensor:
        """Return the loss of a batch of pairs.

        Args:
            embeddings: vectors of the first and of the second texts, each (R, d).
            labels: ``finding``, ``presence1``, ``presence2`` (R names each), ``state1``, ``state2`` (R lists
                of canonical findings).
        """
        vectors = functional.normalize(torch.cat(list(embeddings)), dim=1)
        signs, named = (part.to(vectors.device) for part in self.signs(labels))
        cosine = vectors @ vectors.T
        # Where two texts state the same of every finding that both state, the product of their signs adds up
        # to the number of these findings; where they differ in all, to minus that.
        agreement, shared = signs @ signs.T, signs.abs() @ signs.abs().T
        apart = ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        within = apart & (shared > 0) & (agreement == shared)
        across = apart & (shared > 0) & (agreement == -shared)
        other = apart & (named @ named.T == 0)
        weight = self.options
        loss = weight["within"] * _mean(1 - cosine, within) + weight["across"] * _mean(1 + cosine, across)
        loss = loss + weight["other"] * _mean(cosine.square(), other)
        return loss + weight["heads"] * self._classification(vectors, signs)

    def signs(self, labels: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Return what each text states: 1 present, -1 absent, else 0; and 1 for each finding that it names.

        Returns:
            Two tensors of shape (2R, findings), first texts first.
        """
        count = len(labels["finding"])
        signs = torch.zeros(2 * count, len(self.place))
        named = torch.zeros_like(signs)
        for side in (0, 1):
            for row in range(count):
                at = side * count + row
                for state in labels[f"state{side + 1}"][row]:
                    place = self.place.get(state["finding"])
                    if place is not None:
                        named[at, place] = 1.0
                        signs[at, place] = _sign(state)
                place = self.place[labels["finding"][row]]
                named[at, place] = 1.0
                signs[at, place] = SIGNS[labels[f"presence{side + 1}"][row]]
        return signs, named

    def _classification(self, vectors: Tensor, signs: Tensor) -> Tensor:
        text, finding = signs.nonzero(as_tuple=True)
        logits = (self.heads[finding] * vectors[text].unsqueeze(1)).sum(-1) * self.options["head_scale"]
        return functional.cross_entropy(logits, (signs[text, finding] > 0).long())


def _sign(state: Mapping[str, Any]) -> float:
    """Return the sign of a state; an absence with further fields denies only a variant, so it has none."""
    presence = state.get("presence", "present")
    if presence == "absent" and len(state) > 2:
        return 0.0
    return SIGNS.get(presence, 0.0)


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean of the chosen values, 0 where there is none."""
    return (values * chosen).sum() / chosen.sum().clamp(min=1)


class ApartLoss(nn.Module):
    """Mean squared cosine of every first text and every second text: those that have nothing in common."""

    def compute_loss_from_embeddings(self, embeddings: Sequence[Tensor], labels: Any) -> Tensor:
        """Return the loss of vectors of the first and of the second texts, each (R, d)."""
        first, second = (functional.normalize(part, dim=1) for part in embeddings)
        return (first @ second.T).square().mean()
