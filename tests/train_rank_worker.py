"""One rank of a training of two steps, whose gradients are kept: run by ``test_train_ranks.py`` and torchrun.

Arguments: the folder with the data and the encoders, then the names of the encoders.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from radgen.train.encoder import load_encoder
from radgen.train.losses import kind_of
from radgen.train.mixture import Mixture
from radgen.train.parts import part_of
from radgen.train.rows import Rows
from radgen.train.run import close_ranks
from radgen.train.session import prepared
from radgen.train.settings import load_stage
from radgen.train.trainer import StageTrainer, rank_and_ranks
from radgen.train.validation import Validation, held_rows

NAMES = ("contrasts/size", "pairs/size_pairs")


class Keep(TrainerCallback):
    """Keeps the gradients as the optimizer would see them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.steps: list[dict[str, torch.Tensor]] = []

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        named = self.model.named_parameters()
        self.steps.append({name: p.grad.clone() for name, p in named if p.grad is not None})


def gradients(
    root: Path, encoder: str, work: Path
) -> tuple[list[dict[str, torch.Tensor]], list[dict[str, Any]]]:
    """Return the gradients of each step and the validation figures."""
    sets = ["batch=13", "steps=2", "datasets_per_step=2", "lr=1e-9", "max_grad_norm=1e9",
            "validation.evaluations=1", "compute.chunk_tokens=60", "grouping.max_rows=300"]  # fmt: skip
    settings = load_stage("2", "laptop", sets=sets).settings
    parts = []
    for name in NAMES:
        entry = settings.datasets[name]
        rows = Rows(root / "data" / name / "train.jsonl")
        parts.append(part_of(name, rows, kind_of(entry.loss, name), entry, settings))
    model = prepared(load_encoder(str(root / encoder), max_tokens=64, device="cpu"), 0.0)
    held = [held_rows(part, root / "data" / part.name / "validation.jsonl", 20) for part in parts]
    evaluations: list[dict[str, Any]] = []
    trainer = StageTrainer(
        model, Mixture(parts, settings), Validation([one for one in held if one], [], 16), work, "cpu",
        lambda _: None, evaluations,
    )  # fmt: skip
    keep = Keep(model)
    trainer.add_callback(keep)
    trainer.evaluate()
    trainer.train()
    return keep.steps, evaluations


if __name__ == "__main__":
    root = Path(sys.argv[1])
    for encoder in sys.argv[2:]:
        found = gradients(root, encoder, root / f"two-{encoder}")
        torch.save(found, root / f"{encoder}-rank{rank_and_ranks()[0]}.pt")
    close_ranks()
