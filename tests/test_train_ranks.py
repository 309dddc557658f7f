"""Several processes: two ranks over gloo give the gradients of one with the same batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
