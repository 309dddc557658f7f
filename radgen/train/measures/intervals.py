"""How sure a figure is: percentile bootstrap, seeded, and the interval of a difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.train.measures.ordering import Floats


@dataclass(frozen=True)
class Interval:
    """A figure with the interval that holds it at the given confidence."""

    value: float
    low: float
    high: float
    n: int


def mean_interval(
    values: NDArray[Any], *, repeats: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Return the mean and its percentile bootstrap interval (Efron 1979); NaN without values.

    Drawing n rows with replacement is drawing counts of the distinct values from a multinomial: the same
    distribution, without n × repeats draws.

    Args:
        values: shape (n,); NaN values are left out.
    """
    values = np.asarray(values, np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, 0)
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) <= 256:
        means = rng.multinomial(n, counts / n, repeats) @ distinct / n
    else:
        means = np.array([values[rng.integers(0, n, n)].mean() for _ in range(repeats)])
    return Interval(float(values.mean()), *_percentiles(means, confidence), n)


def interval_of(
    statistic: Callable[[NDArray[np.int64]], float],
    n: int,
    *,
    repeats: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return a statistic and its percentile bootstrap interval.

    Args:
        statistic: takes row numbers, shape (n,), returns the figure for those rows.
        n: rows there are.
    """
    value = statistic(np.arange(n)) if n else math.nan
    if math.isnan(value):
        return Interval(math.nan, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    drawn = np.array([statistic(rng.integers(0, n, n)) for _ in range(repeats)])
    return Interval(value, *_percentiles(drawn[~np.isnan(drawn)], confidence), n)


def difference(a: Interval, b: Interval) -> Interval:
    """Return b − a with the interval that follows from the two intervals.

    low = d − √((b − low_b)² + (high_a − a)²), high = d + √((high_b − b)² + (a − low_a)²). Source: Zou and
    Donner 2008 (MOVER). It takes the two as independent; where both saw the same rows it is too wide, never
    too narrow, as long as the two models' errors go together.
    """
    d = b.value - a.value
    low = d - math.hypot(b.value - b.low, a.high - a.value)
    high = d + math.hypot(b.high - b.value, a.value - a.low)
    return Interval(d, low, high, min(a.n, b.n))


def _percentiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    if not len(drawn):
        return math.nan, math.nan
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return float(low), float(high)
