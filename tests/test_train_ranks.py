"""Several processes: two ranks over gloo give the gradients of one with the same batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import torch
import train_runs
from dataset_runs import ROOT, dataset
from train_rank_worker import gradients

ENCODERS = ("bert", "qwen")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, encoders, and what two ranks make of them."""
    folder = tmp_path_factory.mktemp("ranks")
    dataset(folder / "data", "contrasts", "size", 300)
    dataset(folder / "data", "pairs", "size_pairs", 200)
    for name in ENCODERS:
        getattr(train_runs, name)(folder / name)
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(here / "train_rank_worker.py"), str(folder), *ENCODERS],
        capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(here)]), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("encoder", ENCODERS)
def test_two_ranks_have_the_gradients_of_one(root: Path, encoder: str) -> None:
    """A mean-pooled BERT with an unused pooler, and a last-token Qwen3; an odd number of texts a step."""
    one, evaluations = gradients(root, encoder, root / f"one-{encoder}")
    ranks = [torch.load(root / f"{encoder}-rank{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert len(one) == 2
    for two, measured in ranks:
        for expected, found in zip(one, two, strict=True):
            assert set(expected) == set(found)
            a, b = (torch.cat([some[n].flatten() for n in sorted(expected)]) for some in (expected, found))
            assert float(a.norm()) > 1e-3
            assert float((a - b).norm()) < 1e-4 * float(a.norm())
        for before, after in zip(evaluations, measured, strict=True):
            assert before["step"] == after["step"]
            assert after["metrics"] == pytest.approx(before["metrics"], abs=1e-3)


def test_ranks_hold_the_same_gradients(root: Path) -> None:
    """Both ranks hold the very same gradients: the model in the loss is the one that DDP wraps."""
    for encoder in ENCODERS:
        (one, _), (two, _) = (torch.load(root / f"{encoder}-rank{r}.pt", weights_only=True) for r in (0, 1))
        for a, b in zip(one, two, strict=True):
            assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.slow
def test_torchrun_trains_and_says_everything_once(root: Path, tmp_path: Path) -> None:
    """The command line on two ranks, verification and merging included; then --force over what stands."""
    stage = tmp_path / "own.yaml"
    stage.write_text("datasets:\n  contrasts/size: {loss: triplet}\n  pairs/size_pairs: {loss: cosent}\n")
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "radgen", "train", "--stage", str(stage), "--preset", "laptop"),
        *("--model", str(root / "bert")),
        *("--data", str(root / "data"), "--out", str(tmp_path / "out"), "--steps", "4", "--force"),
        *("--set", "validation.evaluations=2", "--set", "merge=1.0"),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    environment["HF_HUB_OFFLINE"] = "1"
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("own, step 4 of 4: loss") == 1
        assert done.stderr.count("step 4 chosen") + done.stderr.count("step 2 chosen") == 1
        kept, start = (train_runs.weights(place) for place in (tmp_path / "out/own/model", root / "bert"))
        assert all(torch.equal(kept[name], start[name]) for name in kept)  # merge=1.0: nothing but the start
        lines = (tmp_path / "out" / "own" / "metrics.jsonl").read_bytes().splitlines()
        ends = [one["metrics"]["normalised/mean"] for one in map(orjson.loads, lines) if "metrics" in one]
        assert ends == pytest.approx([1.0] * 3)
