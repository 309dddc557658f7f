"""One run of one stage: model, mixture and validation put together, trained, resumed."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from radgen.train import checkpoints, sources
from radgen.train.collator import Collator
from radgen.train.encoder import load_encoder
from radgen.train.losses import kind_of
from radgen.train.merging import merge, weights
from radgen.train.mixture import Mixture
from radgen.train.parts import Part, part_of
from radgen.train.progress import Journal
from radgen.train.rows import Rows
from radgen.train.run import Order, Say, rank
from radgen.train.settings import Stage
from radgen.train.trainer import StageTrainer, loss_of, rank_and_ranks
from radgen.train.validation import Validation, held_rows, read_sections


class Session:
    """One run of one stage.

    Raises:
        RadgenError: a dataset is empty or lacks a column, there is no model, reports cannot be read.
    """

    def __init__(self, stage: Stage, start: str, order: Order, folder: Path, say: Say) -> None:
        self.stage, self.start, self.order, self.folder, self.say = stage, start, order, folder, say
        self.main = rank() == 0
        self.mixture = Mixture(read_parts(stage, order.data), stage.settings)
        names = stage.settings.datasets if self.main else ()
        self.hashes = {name: sources.hashes(order.data / name) for name in names}
        self.evaluations: list[dict[str, Any]] = []
        limit = stage.settings.validation.reports
        self.sections = read_sections(order.reports, limit) if order.reports else []
        self.model = prepared(load_model(stage, start), stage.settings.dropout)

    def run(self) -> None:
        """Train to the end, from the last whole checkpoint if there is one."""
        settings = self.stage.settings
        root = self.folder / "checkpoints"
        done = checkpoints.steps(root)
        last = done[-1] if done else None
        if last is not None:
            self.evaluations = checkpoints.read_evaluations(root, last)
            self.say(f"{self.stage.name}: going on after step {last:,}")
        held = []
        for part in self.mixture.parts:
            path = self.order.data / part.name / sources.VALIDATION
            held.append(held_rows(part, path, settings.validation.rows_for(part.name)))
        validation = Validation([one for one in held if one], self.sections, 32)
        if self.evaluations:
            validation.start = dict(self.evaluations[0]["metrics"])
        device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cpu" and settings.compute.precision == "bf16":
            self.say("no GPU: bf16 is many times slower than fp32 here (--set compute.precision=fp32)")
        path = self.folder / "metrics.jsonl"
        journal = Journal(path, self.stage.name, last or 0, len(self.mixture), main=self.main)
        trainer = StageTrainer(self.model, self.mixture, validation, root, device, journal, self.evaluations)
        if device == "cuda" and torch.cuda.device_count() > 1 and rank_and_ranks()[1] == 1:
            count = torch.cuda.device_count()
            self.say(f"{count} GPUs, one in use: torchrun --nproc-per-node {count} -m radgen train uses all")
        with journal:
            if last is None:
                trainer.evaluate()
                trainer.train()
            else:
                trainer.train(resume_from_checkpoint=str(checkpoints.folder_of(root, last)))

    def merge_start_into(self, folder: Path) -> None:
        """Put the start's share into the weights of a saved model of this stage (setting ``merge``)."""
        model, start = (load_model(self.stage, name) for name in (str(folder), self.start))
        merge(model, weights(start), self.stage.settings.merge)
        model.save_pretrained(str(folder), create_model_card=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return the mixture as a table: one entry a dataset."""
        return mixture_rows(self.mixture)

    def wait(self) -> None:
        """Wait for the other ranks."""
        if rank_and_ranks()[1] > 1:
            dist.barrier()


def read_parts(stage: Stage, data: Path) -> list[Part]:
    """Read the datasets of a stage, capped and grouped.

    Raises:
        RadgenError: one is empty, or a row has not what its loss needs.
    """
    parts = []
    for name, entry in stage.settings.datasets.items():
        kind = kind_of(entry.loss, f"{stage.name}: {name}")
        parts.append(part_of(name, Rows(data / name / sources.TRAIN), kind, entry, stage.settings))
    return parts


def load_model(stage: Stage, name: str) -> Any:
    """Load the encoder that a stage starts from, with fp32 weights: in bf16 small steps are rounded away."""
    compute = stage.settings.compute
    options: dict[str, Any] = {"dtype": torch.float32}
    if compute.flash_attention and torch.cuda.is_available() and importlib.util.find_spec("flash_attn"):
        options["attn_implementation"] = "flash_attention_2"
    return load_encoder(name, max_tokens=stage.settings.max_tokens, device="cpu", model_kwargs=options)


def prepared(model: Any, dropout: float | None) -> Any:
    """Set the dropout, and freeze what no gradient reaches: DDP would wait for it (BERT's unused pooler)."""
    if dropout is not None:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = dropout
    model.train()
    model(model.preprocess(["a"]))["sentence_embedding"].sum().backward()
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.grad is not None)
        parameter.grad = None
    return model


def mixture_rows(mixture: Mixture) -> list[dict[str, Any]]:
    """Return the mixture as a table: one entry a dataset."""
    found: list[dict[str, Any]] = []
    for part, probability in zip(mixture.parts, mixture.probabilities, strict=True):
        entry = part.settings
        default = mixture.settings.losses.get(entry.loss, {}).get("margin")
        margin = default if default is None or entry.margin is None else entry.margin
        found.append(
            {
                "dataset": part.name,
                "loss": entry.loss,
                "rows": part.found,
                "used": part.size,
                "probability": float(probability),
                "weight": entry.weight,
                "margin": margin,
                "steps": int(np.count_nonzero((mixture.order == len(found)).any(axis=1))),
                "formed": part.targets is not None,
            }
        )
    return found


def tokens_a_step(mixture: Mixture, model: Any, sample: int = 24) -> float:
    """Return the mean number of tokens of a step, from a sample of the stage's own steps."""
    collator = Collator(model, mixture.settings.compute.chunk_tokens)
    found = []
    for step in dict.fromkeys(len(mixture) * at // sample for at in range(sample)):
        batch = mixture.batch(step)
        found.append(sum(collator.lengths(batch.texts, min(batch.tokens, model.max_seq_length))))
    return sum(found) / len(found)


def tokens_a_second(mixture: Mixture, model: Any, seconds: float = 8.0) -> float:
    """Return the tokens that are learned a second here: a few real steps forward and backward, no update."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = prepared(model.to(device), mixture.settings.dropout)
    loss = loss_of(model, mixture).to(device)
    collator = Collator(model, mixture.settings.compute.chunk_tokens)
    if mixture.settings.compute.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    bf16 = mixture.settings.compute.precision == "bf16"
    tokens, began = 0, 0.0
    for number in range(50):
        inputs = collator([mixture.batch(number * 7 % len(mixture))])
        count = inputs.pop("tokens")
        labels = _moved(inputs.pop("label"), device)
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            loss(_chunks(inputs, device), labels).backward()
        model.zero_grad()
        if number:  # the first one warms up
            tokens += count
        else:
            began = time.perf_counter()
        if number and time.perf_counter() - began > seconds:
            break
    return tokens / (time.perf_counter() - began)


def _chunks(inputs: dict[str, Any], device: str) -> list[dict[str, Any]]:
    chunks: dict[str, dict[str, Any]] = {}
    for key, value in inputs.items():
        number, _, name = key.partition("_")
        chunks.setdefault(number, {})[name] = _moved(value, device)
    return list(chunks.values())


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, dict):
        return {key: _moved(inner, device) for key, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, device) for inner in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value
