"""What a figure of the page is, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from radgen.train.page.canvas import Rows, Spec, distinct


@dataclass(frozen=True)
class Grid:
    """The numbers of a figure as a table."""

    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figure:
    """One plot.

    Attributes:
        key: its name in the page.
        title: what it shows.
        note: how to read it.
        spec: Vega-Lite.
        grid: its numbers, where no table of the suite has them.
        model: the model whose figure it is, where each has one of its own.
        groups: what its colours stand for, where that is not the models.
    """

    key: str
    title: str
    note: str
    spec: Spec
    grid: Grid | None = None
    model: str | None = None
    groups: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Panel:
    """Figures that stand side by side, with what is said of all of them."""

    figures: list[Figure]
    title: str = ""
    note: str = ""
    groups: list[str] = field(default_factory=list)


def square(levels: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> Grid:
    """Return a matrix as a table."""
    rows = [[level, *map(three, line)] for level, line in zip(levels, matrix, strict=True)]
    return Grid(["", *levels], rows)


def pivot(rows: Rows, by: str, corner: str) -> Grid:
    """Return the rows of a line plot with a column for each value of ``by``."""
    names = distinct(rows, by)
    at = {(row[by], row["x"]): row for row in rows}
    lines = []
    for x in sorted(distinct(rows, "x")):
        cells = [at.get((name, x)) for name in names]
        lines.append([f"{x:,}", *(_interval(cell) if cell else "" for cell in cells)])
    return Grid([corner, *names], lines)


def points(x: Iterable[Any], curve: Mapping[str, Sequence[float | None]]) -> list[dict[str, Any]]:
    """Return the points of a curve with ``mean``, ``low`` and ``high``; one without a mean is left out."""
    columns = zip(x, curve["mean"], curve["low"], curve["high"], strict=True)
    return [
        {"x": at, "value": mean, "low": low, "high": high}
        for at, mean, low, high in columns
        if mean is not None
    ]


def share_domain(rows: Rows, low: float) -> list[float]:
    """Return a scale from ``low``, or from the twentieth below the lowest value, to one."""
    values = [row[key] for row in rows for key in ("value", "low") if row.get(key) is not None]
    return [min(low, max(-1.0, math.floor(20 * min(values)) / 20)), 1.0]


def zero_domain(rows: Rows) -> list[float]:
    """Return a scale from zero to the next twentieth above all values."""
    most = max(float(row[key]) for row in rows for key in ("value", "high") if row.get(key) is not None)
    return [0.0, math.ceil(20 * most + 0.1) / 20]


def three(value: float | None) -> str:
    """Return a number with three digits, or nothing."""
    return "" if value is None else f"{value:z.3f}".replace("-", "−")


def key_of(*parts: str) -> str:
    """Return a name that can stand in an HTML id."""
    return "_".join("".join(c if c.isalnum() else "-" for c in part) for part in parts)


def _interval(row: Mapping[str, Any]) -> str:
    text = three(row["value"])
    return text if row.get("low") is None else f"{text} ({three(row['low'])} to {three(row['high'])})"
