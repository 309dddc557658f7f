"""Small judging sets, reports and encoders for the tests of `radgen evaluate`; every sentence is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, Sure, Value

SURE = Sure(repeats=200, confidence=0.95, seed=1)


class Table(Encoder):
    """An encoder whose vectors are given: what a suite makes of them can be worked out by hand."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.name = "table"
        self.rows = {text: np.array(row, np.float32) / np.linalg.norm(row) for text, row in vectors.items()}
        self.dimensions = len(next(iter(self.rows.values())))

    def limit(self, tokens: int) -> int:
        return tokens

    def vectors(self, texts: Sequence[str], tokens: int, show: Callable[[int], None] | None = None) -> Any:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return np.stack([self.rows[text] for text in texts])


def quiet(_: int) -> None:
    """Show nothing."""


def found(outcome: Outcome) -> dict[tuple[str, str], Value]:
    """Return the values of an outcome by measure and group."""
    return {(value.measure, value.group): value for value in outcome.values}


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a JSONL file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def triplet(
    axis: str, number: int, texts: Sequence[str], states: Sequence[Any] = (), **more: Any
) -> dict[str, Any]:
    """Return a row of Contrast-10 or Probe-13."""
    names = ("anchor", "positive", "negative")
    row: dict[str, Any] = dict(zip(names, texts, strict=True))
    row |= {"id": f"{axis}-{number}", "axis": axis, "positive_target": 1.0, "negative_target": 0.1}
    row |= {f"{name}_state": state for name, state in zip(names, states, strict=False)}
    return row | more


def report(identifier: str, findings: str | None, impression: str | None) -> dict[str, Any]:
    """Return a report as `radgen reports` writes it."""
    return {"id": identifier, "findings": findings, "impression": impression}
