"""Setting ``merge``: the share of a stage's start in its model (Wortsman et al. 2022)."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import torch
import train_runs
from test_train_command import order, root, run
from torch import nn

from radgen.train.merging import merge, merged, weights

__all__ = ["root"]  # the fixture


def layer(weight: float, bias: float) -> nn.Linear:
    made = nn.Linear(1, 1)
    with torch.no_grad():
        made.weight.fill_(weight)
        made.bias.fill_(bias)
    return made


def test_a_weighted_mean_by_hand() -> None:
    """0.75 · 5 + 0.25 · 1 = 4; 0.75 · -2 + 0.25 · 2 = -1."""
    model = layer(5.0, -2.0)
    merge(model, weights(layer(1.0, 2.0)), 0.25)
    assert (model.weight.item(), model.bias.item()) == (4.0, -1.0)


def test_merged_for_a_while_leaves_every_bit() -> None:
    torch.manual_seed(3)
    model, start = nn.Linear(7, 5), nn.Linear(7, 5)
    before = weights(model)
    with merged(model, weights(start), 0.3):
        assert torch.allclose(model.weight, 0.7 * before["weight"] + 0.3 * start.weight)
    assert all(torch.equal(before[name], own) for name, own in model.named_parameters())


def test_an_evaluation_that_fails_leaves_every_bit() -> None:
    """A start of another shape fails in the middle: the weight is merged by then, the bias is not."""
    model = layer(5.0, -2.0)
    with pytest.raises(RuntimeError), merged(model, {"weight": torch.ones(1, 1), "bias": torch.ones(3)}, 0.5):
        pass
    assert (model.weight.item(), model.bias.item()) == (5.0, -2.0)


def test_parameters_that_are_not_trained_stay() -> None:
    model, start = layer(5.0, -2.0), layer(1.0, 2.0)
    start.bias.requires_grad_(False)
    merge(model, weights(start), 1.0)
    assert (model.weight.item(), model.bias.item()) == (1.0, -2.0)


@pytest.fixture(scope="module")
def stages(root: Path) -> dict[str, Path]:
    sets = ("validation.evaluations=1", "merge=")
    return {
        share: run(order(root, root / f"merge-{share}", steps=6, sets=(sets[0], sets[1] + share)))[0]
        for share in ("0.0", "0.25", "1.0")
    }


def test_a_stage_keeps_its_share_of_the_start(root: Path, stages: dict[str, Path]) -> None:
    trained, mixed = (train_runs.weights(stages[share] / "model") for share in ("0.0", "0.25"))
    start = train_runs.weights(root / "tiny")
    moved = 0
    for name, value in mixed.items():
        expected = 0.75 * trained[name].double() + 0.25 * start[name].double()
        assert torch.allclose(value.double(), expected, rtol=0, atol=1e-7)
        moved += not torch.equal(value, trained[name])
    assert moved > 10


def test_what_is_measured_is_what_is_kept(root: Path, stages: dict[str, Path]) -> None:
    """Nothing but the start is measured, and kept, with a share of one; with none the loss has moved."""
    ends = {}
    for share in ("0.0", "1.0"):
        lines = (stages[share] / "metrics.jsonl").read_bytes().splitlines()
        ends[share] = [one["metrics"] for one in map(orjson.loads, lines) if "metrics" in one][-1]
    assert ends["1.0"]["normalised/mean"] == pytest.approx(1.0, abs=1e-9)
    assert abs(ends["0.0"]["normalised/mean"] - 1.0) > 1e-3
    kept, start = train_runs.weights(stages["1.0"] / "model"), train_runs.weights(root / "tiny")
    assert all(torch.equal(kept[name], start[name]) for name in kept)
    assert "weights 75% trained, 25% of its start" in (stages["0.25"] / "model/README.md").read_text()
