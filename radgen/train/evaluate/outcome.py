"""What a suite says of a model: values with intervals, figures, remarks, or why there is nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from radgen.errors import RadgenError
from radgen.train.measures import Interval
from radgen.train.measures.intervals import mean_interval


class SkippedError(RadgenError):
    """A suite has nothing to judge; the text is the reason that stands in the table."""


@dataclass(frozen=True)
class Value:
    """One figure: a key of ``evaluate_measures.yaml``, the group it is of ("" is overall), its interval."""

    measure: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


@dataclass
class Outcome:
    """What one suite found for one model."""

    values: list[Value] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, measure: str, group: str, found: Interval | float, n: int | None = None) -> None:
        """Add a figure; one that is not a number is kept with a reason instead of a value."""
        if not isinstance(found, Interval):
            found = Interval(float(found), math.nan, math.nan, n or 0)
        if math.isnan(found.value):
            reason = "nothing to judge" if not found.n else "not defined for these rows"
            self.missing(measure, group, reason, found.n)
            return
        low, high = (None if math.isnan(edge) else edge for edge in (found.low, found.high))
        self.values.append(Value(measure, group, found.value, low, high, found.n if n is None else n))

    def missing(self, measure: str, group: str, reason: str, n: int = 0) -> None:
        """Add a figure that there is none of, with the reason."""
        self.values.append(Value(measure, group, None, None, None, n, reason))


@dataclass(frozen=True)
class Sure:
    """How intervals are drawn: the settings' bootstrap, with the seed."""

    repeats: int
    confidence: float
    seed: int

    def mean(self, values: Any) -> Interval:
        """Return the mean of values with its interval."""
        return mean_interval(values, repeats=self.repeats, confidence=self.confidence, seed=self.seed)
