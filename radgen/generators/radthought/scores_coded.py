"""Scores of scene graphs and of conclusions for many pairs at once; equal to ``scores.py`` to 1e-9.

A record's predicates without ids and its conclusions are numbers, kept once however often they are said; a
level of all records is one array of numbers with offsets. Attributes agree by small tables that the plain
functions fill.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coded import within
from radgen.generators.radthought.pair_settings import COMPARED, Compared, ConclusionSettings
from radgen.generators.radthought.scores import (
    TOLD,
    Told,
    alone_agreement,
    attribute_agreement,
    content_number,
    own_weight,
)
from radgen.ontology.radsim import Policy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CHUNK = 8192
#: Attributes whose agreements are looked up.
_TABLES: tuple[Compared, ...] = tuple(name for name in COMPARED if name != "evidence")


@dataclass
class Rows:
    """Lists of numbers, one a record, end to end."""

    _numbers: array[int] = field(default_factory=lambda: array("i"))
    _offsets: array[int] = field(default_factory=lambda: array("q", [0]))

    def add(self, numbers: Iterable[int]) -> None:
        """Append the list of the next record."""
        self._numbers.extend(numbers)
        self._offsets.append(len(self._numbers))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> array[int]:
        return self._numbers[self._offsets[row] : self._offsets[row + 1]]

    @property
    def numbers(self) -> NDArray[np.int32]:
        """All lists, one after another."""
        return np.frombuffer(self._numbers, np.int32) if len(self._numbers) else np.zeros(0, np.int32)

    @property
    def offsets(self) -> Ints:
        """Where each list begins; one more than there are records."""
        return np.frombuffer(self._offsets, np.int64)

    def expand(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of some records one after another, and the place in ``rows`` of each."""
        low = self.offsets[rows]
        width = self.offsets[rows + 1] - low
        owner = np.repeat(np.arange(len(rows)), width)
        return self.numbers[np.repeat(low, width) + within(width)].astype(np.int64), owner


class Words:
    """Numbers of things by their key, in the order in which they are first seen."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def __call__(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def bag(self, keys: Sequence[Any]) -> list[int]:
        """Return numbers of a multiset: the second of two equal keys is another number."""
        seen: dict[Any, int] = {}
        out = []
        for key in keys:
            seen[key] = seen.get(key, 0) + 1
            out.append(self((key, seen[key])))
        return sorted(out)


def scene_scores(scenes: Rows, first: Ints, second: Ints) -> Floats:
    """Return the scene score of pairs of records whose predicates were numbered by ``Words.bag``."""
    out = np.empty(len(first))
    sizes = np.diff(scenes.offsets)
    for at in range(0, len(first), _CHUNK):
        x, y = first[at : at + _CHUNK], second[at : at + _CHUNK]
        (a, pair_a), (b, pair_b) = scenes.expand(x), scenes.expand(y)
        key_a, key_b = (pair_a << 32) | a, (pair_b << 32) | b  # sorted: by pair, then by number
        place = np.searchsorted(key_b, key_a)
        shared = place < len(key_b)
        shared[shared] = key_b[place[shared]] == key_a[shared]
        both = np.bincount(pair_a[shared], minlength=len(x))
        either = sizes[x] + sizes[y] - both
        out[at : at + _CHUNK] = np.where(either > 0, 2.0 * both / np.maximum(either, 1) - 1.0, 1.0)
    return out


class Conclusions:
    """Distinct conclusions as numbers; the numbers of a level are added to a ``Rows`` by the caller."""

    def __init__(self, options: ConclusionSettings, policy: Policy) -> None:
        self.options, self.policy = options, policy
        self.words = Words()
        self.told: list[Told] = []

    def number(self, conclusion: Told) -> int:
        """Return the number of a conclusion."""
        key = tuple(tuple(value) if isinstance(value := conclusion[name], list) else value for name in TOLD)
        number = self.words(key)
        if number == len(self.told):
            self.told.append(dict(conclusion))
        return number

    def scorer(self) -> ConclusionScorer:
        """Return what scores the conclusions numbered so far."""
        return ConclusionScorer(self.told, self.options, self.policy)


class ConclusionScorer:
    """Scores lists of numbered conclusions."""

    def __init__(self, told: Sequence[Told], options: ConclusionSettings, policy: Policy) -> None:
        self.options = options
        about = Words()
        self.about: Ints = np.array([about(item["about"]) for item in told], np.int64)
        self.content = np.array([content_number(item) for item in told], np.uint64)
        self.own: Floats = np.array([own_weight(item, options) for item in told])
        self.alone: Floats = np.array([alone_agreement(item, options) for item in told])
        self.denied = np.array([item["assertion"] == "absent" for item in told], bool)
        self.generic = np.array([item["about"] in options.generic for item in told], bool)
        self.evidence = _padded([item["evidence"] for item in told])
        self.counts: Ints = np.count_nonzero(self.evidence >= 0, axis=1)
        self.codes: dict[str, Ints] = {}
        self.tables: dict[str, Floats] = {}
        for name in _TABLES:
            values: list[str | None] = [None, *sorted({value for item in told if (value := item[name])})]
            place = {value: index for index, value in enumerate(values)}
            self.codes[name] = np.array([place[item[name]] for item in told], np.int64)
            table = np.zeros((len(values), len(values)))
            for i, a in enumerate(values):
                for j, b in enumerate(values):
                    if name == "assertion" or i or j:
                        table[i, j] = attribute_agreement(name, a, b, options, policy)
            self.tables[name] = table

    def score(self, level: Rows, first: Ints, second: Ints) -> Floats:
        """Return the scores of pairs of records at one level."""
        parts = [
            self._chunk(level, first[at : at + _CHUNK], second[at : at + _CHUNK])
            for at in range(0, len(first), _CHUNK)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _chunk(self, level: Rows, first: Ints, second: Ints) -> Floats:
        (a, pair_a), (b, pair_b) = level.expand(first), level.expand(second)
        # Sorted by pair and process, so that those of one process stand together.
        order_a, order_b = (np.lexsort((self.about[x], pair)) for x, pair in ((a, pair_a), (b, pair_b)))
        a, pair_a, b, pair_b = a[order_a], pair_a[order_a], b[order_b], pair_b[order_b]
        key_a, key_b = (pair_a << 32) | self.about[a], (pair_b << 32) | self.about[b]
        low = np.searchsorted(key_b, key_a, "left")
        width = np.searchsorted(key_b, key_a, "right") - low
        at_a = np.repeat(np.arange(len(a)), width)
        at_b = np.repeat(low, width) + within(width)
        shared = self._shared(a[at_a], b[at_b])
        same = (shared > 0) | ~self.generic[a[at_a]]
        at_a, at_b, shared = at_a[same], at_b[same], shared[same]
        weight, total = self._compare(a[at_a], b[at_b], shared)
        kept = self._best(at_a, at_b, a, b, weight, total)
        pairs = len(first)
        # Floats from the start: of no items at all, bincount makes whole numbers.
        weights = np.zeros(pairs) + np.bincount(pair_a[at_a[kept]], weight[kept], pairs)
        totals = np.zeros(pairs) + np.bincount(pair_a[at_a[kept]], total[kept], pairs)
        for items, owner, used in ((a, pair_a, at_a[kept]), (b, pair_b, at_b[kept])):
            free = np.ones(len(items), bool)
            free[used] = False
            own = self.own[items[free]]
            weights = weights + np.bincount(owner[free], own, pairs)
            totals = totals + np.bincount(owner[free], own * self.alone[items[free]], pairs)
        empty = weights <= 0
        return np.where(empty, self.options.nothing_concluded, totals / np.where(empty, 1.0, weights))

    def _shared(self, a: Ints, b: Ints) -> Ints:
        """Return how many tags of evidence conclusions share."""
        x, y = self.evidence[a][:, :, None], self.evidence[b][:, None, :]
        return np.asarray(np.count_nonzero((x == y) & (x >= 0), axis=(1, 2)))

    def _compare(self, a: Ints, b: Ints, shared: Ints) -> tuple[Floats, Floats]:
        """Return the sums of weights and of weighted agreements of conclusions about one process."""
        weight, total = np.zeros(len(a)), np.zeros(len(a))
        denied = self.denied[a] != self.denied[b]
        against = self.tables["assertion"][self.codes["assertion"][a], self.codes["assertion"][b]]
        for name in _TABLES:
            x, y = self.codes[name][a], self.codes[name][b]
            counts = np.ones(len(a), bool) if name == "assertion" else (x > 0) | (y > 0)
            each = self.options.weights[name] * counts
            weight += each
            total += each * np.where(denied, against, self.tables[name][x, y])
        either = np.maximum(self.counts[a] + self.counts[b] - shared, 1)
        each = self.options.weights["evidence"] * ~(self.denied[a] & self.denied[b])
        weight += each
        total += each * np.where(denied, against, 2.0 * shared / either - 1.0)
        return weight, total

    def _best(self, at_a: Ints, at_b: Ints, a: Ints, b: Ints, weight: Floats, total: Floats) -> Ints:
        """Choose the matches: the best agreement first, each conclusion once (as ``conclusion_score``)."""
        with np.errstate(over="ignore"):
            content = self.content[a[at_a]] + self.content[b[at_b]]
        agreement = np.rint(total / weight * 1e9)
        left = np.lexsort((at_b, at_a, content, -np.rint(weight * 1e6), -agreement))
        chosen: list[Ints] = []
        while len(left):
            _, first_a = np.unique(at_a[left], return_index=True)
            _, first_b = np.unique(at_b[left], return_index=True)
            taken = left[np.intersect1d(first_a, first_b, assume_unique=True)]
            chosen.append(taken)
            gone = np.isin(at_a[left], at_a[taken]) | np.isin(at_b[left], at_b[taken])
            left = left[~gone]
        return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)


def _padded(lists: Sequence[Sequence[str]]) -> Ints:
    """Return the numbers of the tags of each list, a row each, with -1 where a list is shorter."""
    words = Words()
    out = np.full((len(lists), max(map(len, lists), default=0)), -1, np.int64)
    for row, tags in enumerate(lists):
        out[row, : len(tags)] = [words(tag) for tag in tags]
    return out
