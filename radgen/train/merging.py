"""A stage's start kept in its model: a weighted mean of the weights before and after (WiSE-FT).

Wortsman et al. 2022, "Robust fine-tuning of zero-shot models": θ = (1 − α)·θ_start + α·θ_trained; here
``share`` is 1 − α.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]


def weights(model: Any) -> dict[str, Tensor]:
    """Return a copy of a model's trained parameters, on the CPU, by name."""
    return {
        name: parameter.detach().to("cpu", copy=True)
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


@torch.no_grad()
def merge(model: Any, start: Weights, share: float) -> None:
    """Make each trained parameter (1 − share) · its own + share · that of ``start``, in place."""
    for name, parameter in model.named_parameters():
        if name in start:
            parameter.lerp_(start[name].to(parameter), share)


@contextmanager
def merged(model: Any, start: Weights, share: float) -> Iterator[None]:
    """Merge for a while; afterwards the parameters are bit for bit what they were."""
    if not share:
        yield
        return
    own = weights(model)
    try:
        merge(model, start, share)
        yield
    finally:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in own:
                    parameter.copy_(own[name])
