"""Scored pairs of one level, spread over the whole range of scores (spec §5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coded import Scorer, Scores
from radgen.generators.similarity.corpus import Corpus
from radgen.generators.similarity.index import Index, Ints, mixed, seed_number
from radgen.generators.similarity.settings import PairsSettings
from radgen.generators.splits import Split

#: Up to so many texts every pair is a candidate.
_FEW = 200


@dataclass
class Mined:
    """Pairs of texts of one split and their scores.

    Attributes:
        first, second: numbers of texts.
        scores: their scores.
        rejected: candidates that were not taken, by reason.
        candidates: how many were scored.
    """

    first: Ints
    second: Ints
    scores: Scores
    rejected: Counter[str] = field(default_factory=Counter)
    candidates: int = 0

    def __len__(self) -> int:
        return len(self.first)


def mine(corpus: Corpus, scorer: Scorer, split: Split, rows: int, seed: int, options: PairsSettings) -> Mined:
    """Return up to ``rows`` pairs of a split, as even over the bins of the score as there are pairs.

    Candidates come from the index, a fixed number a row: time and memory are linear in rows and texts.
    """
    rejected: Counter[str] = Counter()
    members = corpus.of(split)
    first, second, candidates = choose(
        members,
        lambda: Index(corpus, scorer, members, seed_number("pairs", corpus.level, split, seed)),
        lambda a, b: scorer.score(a, b).value,
        rows,
        options,
        rejected,
    )
    return Mined(first, second, scorer.score(first, second), rejected, candidates)


class Drawing(Protocol):
    """What candidates are drawn from: ``draw`` gives another text for each place among ``members``, or -1."""

    members: Ints

    def draw(self, source: str, texts: Ints) -> Ints: ...


class Spreading(Protocol):
    """Numbers of how pairs are chosen (see ``PairsSettings``)."""

    @property
    def bins(self) -> int: ...

    @property
    def candidates_per_row(self) -> int: ...

    @property
    def rounds(self) -> int: ...

    @property
    def sources(self) -> Mapping[Any, int]: ...


def choose(
    members: Ints,
    index_of: Callable[[], Drawing],
    score_of: Callable[[Ints, Ints], NDArray[np.float64]],
    rows: int,
    options: Spreading,
    rejected: Counter[str],
) -> tuple[Ints, Ints, int]:
    """Return up to ``rows`` pairs of members, as even over the bins of the score as there are pairs.

    Args:
        index_of: makes what candidates are drawn from; of few members every pair is a candidate.
        score_of: the scores of pairs, in [-1, 1].
        rejected: counts what was not taken.

    Returns:
        The first and second of each pair, and how many candidates were scored.
    """
    keys, values = np.zeros(0, np.uint64), np.zeros(0, np.float32)
    if 2 <= len(members) <= _FEW:
        low, high = np.triu_indices(len(members), 1)
        keys = joined(members[low], members[high])
        values = score_of(*apart(keys)).astype(np.float32)
    elif len(members) > _FEW and rows >= 1:
        index = index_of()
        sources = [name for name, times in options.sources.items() for _ in range(times)]
        for _ in range(options.rounds):
            new, lost = _candidates(index, sources, rows * options.candidates_per_row, keys)
            rejected.update(lost)
            keys = np.concatenate([keys, new])
            values = np.concatenate([values, score_of(*apart(new)).astype(np.float32)])
            if len(keys) >= rows or not len(new):
                break
    kept = spread(values, mixed(keys), rows, options.bins)
    rejected["enough of that score"] += len(keys) - len(kept)
    first, second = apart(keys[kept])
    return first, second, len(keys)


def joined(low: Ints, high: Ints) -> NDArray[np.uint64]:
    """Return one number for each pair of texts, the lower one first."""
    return (low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)


def apart(keys: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Return the two texts of each pair."""
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _candidates(
    index: Drawing, sources: list[str], wanted: int, known: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], Counter[str]]:
    """Return new candidate pairs as keys, and what was lost on the way."""
    lost: Counter[str] = Counter()
    everyone = np.arange(len(index.members))
    found: list[NDArray[np.uint64]] = []
    for turn, (source, share) in enumerate(level_sources(sources, wanted)):
        while share > 0:
            texts = everyone
            if share < len(everyone):  # the last turn draws for some, in the order of their hashes
                texts = np.sort(np.argsort(mixed(everyone + turn + share), kind="stable")[:share])
            share -= len(texts)
            other = index.draw(source, texts)
            mine = index.members[texts]
            good = other >= 0
            lost["no candidate by that key"] += int(np.count_nonzero(~good))
            alike = good & (other == mine)
            lost["a text with itself"] += int(np.count_nonzero(alike))
            good &= ~alike
            low, high = np.minimum(mine, other)[good], np.maximum(mine, other)[good]
            found.append(joined(low, high))
    every = np.concatenate(found)
    unique = np.unique(every)
    if len(known):
        unique = np.setdiff1d(unique, known)
    lost["drawn before"] += len(every) - len(unique)
    return unique, lost


def level_sources(sources: list[str], wanted: int) -> list[tuple[str, int]]:
    """Share candidates out over the sources by how often each is named.

    >>> level_sources(["label", "label", "word"], 30)
    [('label', 20), ('word', 10)]
    """
    counts = Counter(sources)
    return [(name, max(1, wanted * times // len(sources))) for name, times in counts.items()]


def spread(values: NDArray[Any], order: NDArray[Any], rows: int, bins: int) -> Ints:
    """Choose ``rows`` of the values, the same number from every bin as far as it has so many.

    Args:
        values: in [-1, 1].
        order: decides within a bin.

    Returns:
        The chosen places, in rising order.
    """
    which = np.minimum(((values + 1) / 2 * bins).astype(np.int64), bins - 1)
    quotas = level_out(np.bincount(which, minlength=bins), rows)
    ranked = np.lexsort((order, which))
    starts = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=bins))[:-1]])
    rank = np.arange(len(values)) - starts[which[ranked]]
    return np.sort(ranked[rank < quotas[which[ranked]]])


def level_out(counts: NDArray[Any], rows: int) -> Ints:
    """Share ``rows`` out over bins that hold so many: even, and what a bin lacks goes to the others.

    >>> level_out(np.array([1, 10, 10]), 9)
    array([1, 4, 4])
    """
    out = np.zeros(len(counts), np.int64)
    left = min(rows, int(counts.sum()))
    while left > 0:
        room = np.flatnonzero(counts > out)
        share = left // len(room)
        if share == 0:
            out[room[:left]] += 1
            break
        add = np.minimum(counts[room] - out[room], share)
        out[room] += add
        left -= int(add.sum())
    return out
