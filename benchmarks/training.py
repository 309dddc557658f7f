"""What a processor second teaches: batches of contexts against the stock trainer on independent rows.

    python benchmarks/training.py DATA                 # DATA of 'radgen collection'
    python benchmarks/training.py DATA --steps 60 --times 4 --stock-lr 2e-4 5e-5

The same encoder (packaged MiniLM, no dropout), the same datasets in the same proportions, the same loss,
margins and weights (those of stage 2 of the laptop preset, contrasts alone), one thread, one process:

- radgen: a step takes whole contexts of several datasets, encodes each text once, and learns from every valid
  triplet among the texts of a context;
- stock: SentenceTransformerTrainer with its own sampler and collator on the rows as written, one dataset a
  batch, as many rows a step, fused AdamW. It may use TIMES as many processor seconds; its schedule is laid
  out for all of them; --stock-lr gives it learning rates of its own (the best one counts).

Printed: accuracy on validation rows (mean of ten axes) against processor seconds of training (evaluation
is not counted), the contrasts (triplets) that were learned from in a second, and how many times the processor
seconds the stock trainer took to where radgen's stood at its end, or that it did not get there.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from rich.console import Console
from rich.table import Table
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import TripletLoss
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric
from transformers import PrinterCallback, TrainerCallback

from radgen.train import measures, sources
from radgen.train.encoder import encode
from radgen.train.mixture import Mixture
from radgen.train.parts import Part
from radgen.train.rows import Rows
from radgen.train.session import load_model, prepared, read_parts
from radgen.train.settings import Stage, load_stage
from radgen.train.trainer import StageTrainer
from radgen.train.validation import Validation

TRIPLET = ("anchor", "positive", "negative")
#: Not among the ten axes of the paper.
FURTHER = {"laterality_controlled", "presence", "finding"}


@dataclass
class Curve:
    """Accuracy against processor seconds of training.

    Attributes:
        points: (processor seconds, accuracy).
        contrasts: triplets that were learned from.
        spent, began: the clock, in processor seconds.
    """

    points: list[tuple[float, float]] = field(default_factory=list)
    contrasts: int = 0
    spent: float = 0.0
    began: float = 0.0

    def start(self) -> None:
        """Let the clock run."""
        self.began = time.process_time()

    def stop(self) -> None:
        """Stop the clock."""
        self.spent += time.process_time() - self.began

    def to(self, accuracy: float) -> float:
        """Return the processor seconds to an accuracy (linear between points), infinite if never reached."""
        before = (0.0, 0.0)
        for point in self.points:
            if point[1] >= accuracy:
                share = (accuracy - before[1]) / (point[1] - before[1])
                return before[0] + share * (point[0] - before[0])
            before = point
        return math.inf


class Accuracy:
    """Mean accuracy of the ten axes on validation rows."""

    def __init__(self, parts: Sequence[Part], data: Path, rows: int) -> None:
        self.columns: dict[str, list[list[str]]] = {}
        for part in parts:
            if part.name.partition("/")[2] in FURTHER:
                continue
            found = Rows(data / part.name / sources.VALIDATION)
            numbers = np.unique(np.linspace(0, len(found) - 1, min(rows, len(found))).astype(int))
            taken = [found[int(number)] for number in numbers]
            self.columns[part.name] = [[row[column] for row in taken] for column in TRIPLET]

    def __call__(self, model: Any) -> float:
        """Return it."""
        training = model.training
        model.eval()
        vectors = encode(model, [t for columns in self.columns.values() for c in columns for t in c], 32)
        model.train(training)
        at, found = 0, []
        for columns in self.columns.values():
            size = len(columns[0])
            three = [vectors[at + size * i : at + size * (i + 1)] for i in range(3)]
            found.append(measures.ordering_accuracy(*three))
            at += 3 * size
        return sum(found) / len(found)


def contexts(stage: Stage, parts: list[Part], accuracy: Accuracy, evaluations: int) -> Curve:
    """Train with radgen's own trainer."""
    curve, mixture = Curve(), Mixture(parts, stage.settings)
    model = prepared(load_model(stage, stage.settings.model), stage.settings.dropout)
    due = _due(len(mixture), evaluations)

    def record(figures: Mapping[str, Any]) -> None:
        if "metrics" in figures:
            return
        if int(figures["step"]) in due:
            curve.stop()
            curve.points.append((curve.spent, accuracy(model)))
            curve.start()

    with tempfile.TemporaryDirectory() as folder:
        nothing = Validation([], [], 32)
        trainer = _Quiet(model, mixture, nothing, Path(folder), "cpu", record, [])
        curve.start()
        trainer.train()
    steps = range(len(mixture))
    curve.contrasts = sum(len(part.rows) for step in steps for part in mixture.batch(step).segments)
    return curve


class _Quiet(StageTrainer):
    """radgen's trainer without its own evaluations and checkpoints: neither trainer is charged for any."""

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        return {}

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        return None


class _Weighted(TripletLoss):  # type: ignore[misc]  # the library is not followed
    """The library's triplet loss times the weight of its dataset."""

    def __init__(self, model: Any, margin: float, weight: float) -> None:
        super().__init__(model, TripletDistanceMetric.COSINE, margin)
        self.weight = weight

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) * self.weight


class _Watch(TrainerCallback):  # type: ignore[misc]  # not followed
    """Evaluates a stock run, with the clock stopped."""

    def __init__(self, curve: Curve, due: set[int], model: Any, accuracy: Accuracy) -> None:
        self.curve, self.due, self.model, self.accuracy = curve, due, model, accuracy

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step in self.due:
            self.curve.stop()
            self.curve.points.append((self.curve.spent, self.accuracy(self.model)))
            self.curve.start()


def stock(
    stage: Stage, parts: list[Part], accuracy: Accuracy, evaluations: int, *, rows: int, seconds: float,
    lr: float,
) -> Curve:  # fmt: skip
    """Train with the library's trainer on independent rows for so many processor seconds."""
    trial = _stock_run(stage, parts, rows, 6, lr, None, Curve())
    steps = max(evaluations, round(6 * seconds / trial))
    curve = Curve()
    _stock_run(stage, parts, rows, steps, lr, (accuracy, _due(steps, evaluations)), curve)
    return curve


def _stock_run(
    stage: Stage, parts: list[Part], rows: int, steps: int, lr: float, judge: Any, curve: Curve
) -> float:
    settings = stage.settings
    mixture = Mixture(parts, settings)
    rng = np.random.default_rng(settings.seed)
    model = prepared(load_model(stage, settings.model), settings.dropout)
    data, losses = {}, {}
    for part, probability in zip(parts, mixture.probabilities, strict=True):
        # The library samples datasets in proportion to their batches: as many rows as the mixture would take.
        count = min(len(part.used), max(rows, rows * round(steps * float(probability))))
        taken = [part.rows[int(number)] for number in rng.choice(part.used, count, replace=False)]
        name = part.name.replace("/", "_")
        data[name] = Dataset.from_dict({column: [row[column] for row in taken] for column in TRIPLET})
        default = settings.losses["triplet"]["margin"]
        margin = default if part.settings.margin is None else part.settings.margin
        losses[name] = _Weighted(model, margin, part.settings.weight)
    with tempfile.TemporaryDirectory() as folder:
        args = SentenceTransformerTrainingArguments(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=rows, learning_rate=lr,
            lr_scheduler_type="cosine", warmup_steps=math.ceil(settings.warmup * steps),
            weight_decay=settings.weight_decay, seed=settings.seed, use_cpu=True, save_strategy="no",
            eval_strategy="no", logging_strategy="no", disable_tqdm=True, report_to="none",
            optim="adamw_torch_fused", dataloader_drop_last=True,
        )  # fmt: skip
        watch = [_Watch(curve, judge[1], model, judge[0])] if judge else []
        trainer = SentenceTransformerTrainer(
            model=model, args=args, train_dataset=data, loss=losses, callbacks=watch
        )
        trainer.remove_callback(PrinterCallback)
        curve.start()
        trainer.train()
        curve.stop()
    curve.contrasts = rows * steps
    return curve.spent


def _due(steps: int, evaluations: int) -> set[int]:
    return {round(steps * n / evaluations) for n in range(1, evaluations + 1)}


def show(curves: Mapping[str, Curve], reached: float) -> None:
    """Print the curves and the ratios."""
    table = Table("", "processor seconds: accuracy", "triplets/s", f"seconds to {reached:.3f}")
    for name, curve in curves.items():
        points = "  ".join(f"{seconds:.0f}: {value:.3f}" for seconds, value in curve.points)
        table.add_row(name, points, f"{curve.contrasts / curve.spent:,.0f}", f"{curve.to(reached):,.0f}")
    Console(width=140).print(table)


def main() -> None:
    """Run both."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("data", type=Path, help="folder of 'radgen collection'")
    parser.add_argument("--steps", type=int, default=80, help="of radgen's trainer")
    parser.add_argument(
        "--times", type=float, default=3.0, help="processor seconds of the stock trainer, relative"
    )
    parser.add_argument(
        "--stock-lr", type=float, nargs="+", help="learning rates of the stock trainer; the preset's"
    )
    parser.add_argument("--rows", type=int, default=100, help="validation rows an axis")
    parser.add_argument("--evaluations", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stage = load_stage("2", "laptop", steps=options.steps)
    for name in list(stage.settings.datasets):
        if not name.startswith("contrasts/"):
            del stage.settings.datasets[name]
    parts = read_parts(stage, options.data)
    accuracy = Accuracy(parts, options.data, options.rows)
    curves = {"radgen": contexts(stage, parts, accuracy, options.evaluations)}
    own = curves["radgen"]
    reached = own.points[-1][1]
    show(curves, reached)
    for lr in options.stock_lr or [stage.settings.lr]:
        curves[f"stock, lr {lr:g}"] = stock(
            stage, parts, accuracy, round(options.evaluations * options.times), rows=stage.settings.batch,
            seconds=options.times * own.spent, lr=lr,
        )  # fmt: skip
        show(curves, reached)
    best = min(curve.to(reached) for name, curve in curves.items() if name != "radgen")
    if math.isinf(best):
        most = max(curve.spent for name, curve in curves.items() if name != "radgen")
        spent = f"{most:.0f} processor seconds, {most / own.spent:.1f} times radgen's"
        print(f"stock did not reach {reached:.3f} in {spent}")
    else:
        print(f"stock took {best / own.spent:.2f} times the processor seconds to {reached:.3f}")


if __name__ == "__main__":
    main()
