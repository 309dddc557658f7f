"""Rows formed within a context: every valid triplet or pair among its texts (beyond those written).

The texts of a context state the same but for the varied axis. The target of two of them is read from the
file: its rows give the target of so many pairs of states that nearly every pair among a context's states has
one. So it holds for any axis, and no ontology has to be loaded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
State = Mapping[str, Any]
_NEAR = 1e-9


def difference(a: State, b: State) -> tuple[bytes, bytes]:
    """Return what two states do not share, in an order of its own: the same for (a, b) and (b, a).

    A target depends on nothing else (spec §2, §3): what is equal adds no distance.

    >>> difference({"finding": "nodule", "size_mm": 8}, {"finding": "nodule", "size_mm": 4})
    (b'{"size_mm":4}', b'{"size_mm":8}')
    """
    left = {name: value for name, value in a.items() if b.get(name) != value}
    right = {name: value for name, value in b.items() if a.get(name) != value}
    first, second = sorted(orjson.dumps(side, option=orjson.OPT_SORT_KEYS) for side in (left, right))
    return first, second


class Targets:
    """Targets of pairs of states, as the rows of one file give them."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], float] = {}
        self._number: dict[bytes, int] = {}
        self._states: list[State] = []
        self._between: dict[tuple[int, int], float] = {}

    def number(self, state: State) -> int:
        """Return a number for a state; equal states have the same."""
        key = orjson.dumps(state, option=orjson.OPT_SORT_KEYS)
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._states)
            self._states.append(state)
        return found

    def learn(self, a: int, b: int, value: float) -> None:
        """Take the target that a row gives; two rows that contradict each other leave none."""
        key = difference(self._states[a], self._states[b])
        before = self._known.setdefault(key, value)
        if not abs(before - value) <= _NEAR:
            self._known[key] = math.nan

    def between(self, a: int, b: int) -> float:
        """Return the target of two states, NaN where no row tells it."""
        key = (a, b) if a <= b else (b, a)
        found = self._between.get(key)
        if found is None:
            found = self._known.get(difference(self._states[a], self._states[b]), math.nan)
            self._between[key] = found
        return found

    def table(self, states: Ints) -> Floats:
        """Return the targets among texts with these states, shape (n, n)."""
        distinct, place = np.unique(states, return_inverse=True)
        small = np.array([[self.between(int(a), int(b)) for b in distinct] for a in distinct])
        return np.asarray(small[np.ix_(place, place)], np.float64)


def triplets(targets: Floats, min_gap: float) -> Ints:
    """Return all (a, p, n), three different texts, with target(a, p) − target(a, n) ≥ ``min_gap``.

    Args:
        targets: shape (n, n), NaN where unknown.

    Returns:
        Shape (rows, 3).
    """
    with np.errstate(invalid="ignore"):
        valid = targets[:, :, None] - targets[:, None, :] >= min_gap - _NEAR
    own = np.arange(len(targets))
    valid[own, own, :] = False
    valid[own, :, own] = False
    return np.argwhere(valid)


def pairs(targets: Floats) -> tuple[Ints, Floats]:
    """Return all pairs of different texts that have a target, shape (rows, 2), and the targets."""
    first, second = np.triu_indices(len(targets), 1)
    scores = targets[first, second]
    known = ~np.isnan(scores)
    return np.stack([first, second], axis=1)[known], scores[known]
