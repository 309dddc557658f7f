"""What a person sees of a stage, and what is kept of it: a progress line and ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from rich.progress import BarColumn, Progress, TextColumn

from radgen.console import messages

_NEW = 0.02  # share of a new step in the running mean of the loss
_LINES = 20  # progress lines of a stage, where there is no terminal for a bar


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(75), duration(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def summary(metrics: Mapping[str, float]) -> str:
    """Return an evaluation in one line."""
    said = []
    axes = {n[9:]: v for n, v in metrics.items() if n.startswith("contrast/") and n != "contrast/mean"}
    if axes:
        lowest = min(axes, key=lambda name: axes[name])
        said.append(f"contrasts {metrics['contrast/mean']:.3f} (lowest: {lowest} {axes[lowest]:.3f})")
    if "crossaxis/spearman" in metrics:
        said.append(f"cross-axis ρ {metrics['crossaxis/spearman']:.3f}")
    if "flip/mean" in metrics:
        said.append(f"side-flip {metrics['flip/mean']:+.3f}")
    if "retrieval/recall_at_1" in metrics:
        said.append(f"retrieval R@1 {metrics['retrieval/recall_at_1']:.1%}")
    if "normalised/mean" in metrics:
        said.append(f"loss {metrics['normalised/mean']:.3f} of the start")
    return ", ".join(said)


class Journal:
    """Takes the figures of steps and evaluations; only the main process shows and keeps them.

    Args:
        path: ``metrics.jsonl``; on a resume, what came after ``first`` is dropped.
        first: steps done before.
        steps: of the whole stage.
    """

    def __init__(self, path: Path, stage: str, first: int, steps: int, *, main: bool = True) -> None:
        self.path, self.stage, self.steps, self.main = path, stage, steps, main
        self._first = first
        self._console = messages()
        self._loss = 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task(stage, total=steps, completed=first, said="")
        self._live = main and self._console.is_terminal
        if main:
            before = path.read_bytes().splitlines() if path.is_file() else []
            kept = [line for line in before if orjson.loads(line)["step"] <= first]
            path.write_bytes(b"".join(line + b"\n" for line in kept))

    def __enter__(self) -> Journal:
        if self._live:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._bar.stop()

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Take the figures of one step or evaluation."""
        if not self.main:
            return
        try:
            with self.path.open("ab") as file:
                file.write(orjson.dumps(record) + b"\n")
        except OSError as error:  # a full disk knows no name
            error.filename = error.filename or str(self.path)
            raise
        step = record["step"]
        if "metrics" in record:
            said = summary(record["metrics"])
            self._console.print(f"{self.stage}, step {step:,} of {self.steps:,}: {said}")
            return
        said = self._said(record)
        if self._live:
            self._bar.update(self._task, completed=step, said=said)
        elif step * _LINES // self.steps > (step - 1) * _LINES // self.steps:
            self._console.print(f"{self.stage}, step {step:,} of {self.steps:,}: {said}")

    def _said(self, record: Mapping[str, Any]) -> str:
        step, seconds, tokens = record["step"], record["seconds"], record["tokens"]
        done = max(1, step - self._first)
        left = duration(seconds / done * (self.steps - step))
        self._loss += (record["total"] - self._loss) * max(1 / done, _NEW)
        return f"loss {self._loss:.3f}, {tokens / max(seconds, 1e-9):,.0f} tokens/s, {left} left"
