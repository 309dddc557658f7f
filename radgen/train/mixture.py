"""The mixture: which datasets a step takes, and which of their rows (spec §7: Σ p·w·L).

Every draw is a function of seed, dataset and number alone: the same on every rank, and after a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from radgen.train.parts import Floats, Ints, Part, Segment, segment
from radgen.train.settings import StageSettings


class Batch(NamedTuple):
    """What one step learns from.

    Attributes:
        texts: distinct, over all segments.
        segments: rows of one dataset each; one of them unless the stage says otherwise.
        tokens: texts are cut after so many.
    """

    texts: list[str]
    segments: list[Segment]
    tokens: int


class Mixture:
    """All parts, and the order in which steps take them.

    Attributes:
        probabilities: p of each part, in proportion to its capped rows (times its share).
        order: parts of each step, shape (steps, datasets a step).
    """

    def __init__(self, parts: Sequence[Part], settings: StageSettings) -> None:
        self.parts = list(parts)
        self.settings = settings
        sizes = np.array([part.size * part.settings.share for part in self.parts], np.float64)
        self.probabilities: Floats = sizes / sizes.sum()
        rows = sum(part.size for part in self.parts)
        self.steps = settings.steps or max(1, round(rows / settings.batch))
        self.order = self._order()
        self._turns = self._count_turns()

    def _order(self) -> Ints:
        """Return the parts of each step.

        Systematic sampling: points at even distances over the stacked probabilities, those of one step 1/k
        apart. So each part gets its share of the stage, rounded up or down, and none stands twice in a step
        unless its share asks for it; in expectation exactly p.
        """
        rng = np.random.default_rng([self.settings.seed, 7])
        each = self.settings.datasets_per_step
        within = (rng.permutation(self.steps) + rng.random()) / self.steps
        points = (np.arange(each)[None, :] + within[:, None]) / each
        mixed = rng.permutation(len(self.parts))  # rounding favours none
        edges = np.cumsum(self.probabilities[mixed])
        drawn = np.minimum(np.searchsorted(edges, points, side="right"), len(self.parts) - 1)
        return np.asarray(mixed[drawn], np.int64)

    def _count_turns(self) -> Ints:
        """Return for each place in the order how often its part came before."""
        turns = np.empty_like(self.order)
        seen = np.zeros(len(self.parts), np.int64)
        for at in np.ndindex(*self.order.shape):
            turns[at] = seen[self.order[at]]
            seen[self.order[at]] += 1
        return turns

    def __len__(self) -> int:
        return self.steps

    def batch(self, step: int) -> Batch:
        """Return what a step (from 0) learns from."""
        place: dict[str, int] = {}
        rows = max(1, self.settings.batch // self.settings.datasets_per_step)
        segments = []
        for number, turn in zip(self.order[step], self._turns[step], strict=True):
            part = self.parts[number]
            taken = part.take(int(turn), part.settings.rows or rows)
            segments.append(segment(part, taken, place, part.rng(2, step)))
        return Batch(list(place), segments, self.settings.tokens_at(step / self.steps))
