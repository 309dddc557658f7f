"""Retrieval without a square matrix: ranks, recall, MRR, nDCG, in blocks of queries.

Equal texts stand once in a gallery, with a count, so that they are tied exactly. Where texts tie, every
measure is its mean over all orders of the tied ones: no order of files or threads changes a figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from radgen.train.measures.ordering import Floats, Vectors

Ints = NDArray[np.int64]
#: Cosines nearer than this are tied: float32 rounds differently with the batch that a text was encoded in.
TIE = 1e-6
#: Numbers in one block of cosines: 64 MiB of float32.
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Ranks:
    """Where the right texts stand, for each query; shape (n,) each.

    Attributes:
        above: gallery entries that are nearer to the query than the right text.
        tied: entries that are as near, the right one among them.
        right: those of the tied that count as hits.
    """

    above: Ints
    tied: Ints
    right: Ints

    def hits(self, k: int) -> Floats:
        """Return for each query the chance that a hit stands among the first k.

        With t tied entries, h of them hits, and j = k − above free places:
        P = 1 − C(t − h, j) / C(t, j), which is 1 or 0 where nothing ties.
        """
        return self._chances(k)[:, k - 1]

    def recall(self, k: int) -> float:
        """Return Recall@k: the mean of ``hits`` (paper §3.1)."""
        return float(self.hits(k).mean()) if len(self.above) else float("nan")

    def reciprocal(self, k: int = 10) -> Floats:
        """Return for each query 1 / (rank of the first hit), 0 where it is beyond k."""
        chances = self._chances(k)
        steps = np.diff(chances, axis=1, prepend=0.0)
        values: Floats = steps @ (1.0 / np.arange(1, k + 1))
        return values

    def mrr(self, k: int = 10) -> float:
        """Return MRR@k: the mean of ``reciprocal`` (paper table 1)."""
        return float(self.reciprocal(k).mean()) if len(self.above) else float("nan")

    def _chances(self, k: int) -> Floats:
        """Return P(first hit at rank ≤ r) for r = 1 … k, shape (n, k)."""
        chances = (self.above[:, None] < np.arange(1, k + 1)).astype(np.float64)
        for i in np.flatnonzero((self.tied > self.right) & (self.above < k)):
            tied, right = int(self.tied[i]), int(self.right[i])
            for rank in range(int(self.above[i]) + 1, k + 1):
                free = min(rank - int(self.above[i]), tied)
                chances[i, rank - 1] = 1.0 - comb(tied - right, free) / comb(tied, free)
        return chances


def ranks(
    queries: Vectors,
    gallery: Vectors,
    target: Ints,
    counts: Ints | None = None,
    *,
    equal: Ints | None = None,
    block: int | None = None,
) -> Ranks:
    """Find where each query's own text stands in the gallery.

    Args:
        queries: unit vectors, shape (n, d).
        gallery: unit vectors of the distinct texts, shape (m, d).
        target: index in the gallery of each query's own text, shape (n,).
        counts: how many gallery entries have each text, shape (m,); one each if absent.
        equal: number of each gallery text's group, shape (m,): every entry of the own text's group is a hit,
            and the nearest of them counts; only the source study's entry is (the paper) if absent.
        block: queries at a time; as many as make 64 MiB of cosines if absent.
    """
    counts = np.ones(len(gallery), np.int64) if counts is None else counts
    weights = counts.astype(np.float32)  # exact up to 2^24 entries
    above = np.empty(len(queries), np.int64)
    tied = np.empty(len(queries), np.int64)
    right = np.ones(len(queries), np.int64)
    for rows, cosine in _blocks(queries, gallery, block):
        own = cosine[np.arange(len(cosine)), target[rows]][:, None]
        if equal is not None:
            right[rows] = _best_of_group(cosine, own, target[rows], equal, counts)
        above[rows] = (cosine > own + TIE).astype(np.float32) @ weights
        tied[rows] = (cosine >= own - TIE).astype(np.float32) @ weights - above[rows]
    return Ranks(above, tied, right)


def _best_of_group(
    cosine: NDArray[np.float32], own: NDArray[np.float32], target: Ints, equal: Ints, counts: Ints
) -> Ints:
    """Raise ``own`` to the nearest text of each target's group; return how many entries stand there."""
    right = counts[target]
    sizes = np.bincount(equal)
    for i in np.flatnonzero(sizes[equal[target]] > 1):
        members = np.flatnonzero(equal == equal[target[i]])
        near = cosine[i, members]
        own[i] = near.max()
        right[i] = counts[members[near >= own[i] - TIE]].sum()
    return right


def top(queries: Vectors, gallery: Vectors, k: int, *, block: int | None = None) -> tuple[Ints, Floats]:
    """Return the k nearest gallery rows of each query, nearest first; ties go by row number.

    Returns:
        Row numbers and cosines, shape (n, min(k, m)) each.
    """
    k = min(k, len(gallery))
    found = np.empty((len(queries), k), np.int64)
    values = np.empty((len(queries), k), np.float64)
    for rows, cosine in _blocks(queries, gallery, block):
        for i, row in zip(range(*rows.indices(len(queries))), cosine, strict=True):
            floor = np.partition(row, len(row) - k)[len(row) - k]
            near = np.flatnonzero(row >= floor)
            near = near[np.argsort(-row[near], kind="stable")][:k]
            found[i], values[i] = near, row[near]
    return found, values


def label_jaccard_ndcg(
    queries: Vectors,
    gallery: Vectors,
    entries: Ints,
    query_labels: NDArray[np.bool_],
    entry_labels: NDArray[np.bool_],
    k: int = 10,
    *,
    block: int | None = None,
) -> Floats:
    """Return nDCG@k for each query; the gain of an entry is the Jaccard of its labels and the query's.

    gain = |A ∩ B| / |A ∪ B|, 1 where neither has a label (both are normal).
    DCG@k = Σ_{r=1}^{k} gain_r / log2(r + 1); nDCG = DCG / DCG of the best order. Tied entries share their
    mean gain, as in scikit-learn's ``ndcg_score``. NaN where no entry has any gain. Source: paper §3.1.

    Args:
        queries: unit vectors, shape (n, d).
        gallery: unit vectors of the distinct texts, shape (m, d).
        entries: index in ``gallery`` of the text of each gallery entry, shape (e,).
        query_labels: shape (n, labels).
        entry_labels: shape (e, labels).
    """
    k = min(k, len(entries))
    discount = 1.0 / np.log2(np.arange(k) + 2)
    labels = entry_labels.astype(np.float32)
    sizes = labels.sum(axis=1)
    asked, which = np.unique(query_labels, axis=0, return_inverse=True)
    best = np.array([_ideal(_jaccard(mine, labels, sizes), discount) for mine in asked.astype(np.float32)])
    scores = np.full(len(queries), np.nan)
    for rows, cosine in _blocks(queries, gallery, block):
        for number, row in enumerate(cosine, rows.start):
            ideal = best[which[number]]
            if ideal > 0:
                near, groups = _nearest(row[entries], k)
                gains = _jaccard(query_labels[number].astype(np.float32), labels[near], sizes[near])
                scores[number] = _dcg(gains, groups, discount) / ideal
    return scores


def _jaccard(mine: NDArray[np.float32], labels: NDArray[np.float32], sizes: NDArray[np.float32]) -> Floats:
    """Return the Jaccard of one set of labels with each of many; 1 where both are empty."""
    both = labels @ mine
    either = mine.sum() + sizes - both
    gains: Floats = np.where(either > 0, both / np.maximum(either, 1), 1.0).astype(np.float64)
    return gains


def _ideal(gains: Floats, discount: Floats) -> float:
    k = len(discount)
    return float(-np.sort(-np.partition(gains, len(gains) - k)[-k:]) @ discount)


def _nearest(cosine: NDArray[np.float32], k: int) -> tuple[Ints, list[int]]:
    """Return the entries that may be among the first k, nearest first, and where groups of ties begin."""
    floor = np.partition(cosine, len(cosine) - k)[len(cosine) - k] - TIE
    near = np.flatnonzero(cosine >= floor)
    near = near[np.argsort(-cosine[near], kind="stable")]
    starts = np.flatnonzero(np.diff(cosine[near], prepend=np.float32(np.inf)) < -TIE)
    return near, [*starts.tolist(), len(near)]


def _dcg(gains: Floats, groups: list[int], discount: Floats) -> float:
    """Return DCG over the first ``len(discount)`` places; tied entries share their mean gain."""
    total = 0.0
    for start, end in pairwise(groups):
        if start >= len(discount):
            break
        total += float(gains[start:end].mean()) * float(discount[start:end].sum())
    return total


def _blocks(
    queries: Vectors, gallery: Vectors, block: int | None
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield the cosines of some queries at a time with the whole gallery."""
    size = block or max(1, _BLOCK // max(1, len(gallery)))
    for start in range(0, len(queries), size):
        rows = slice(start, min(start + size, len(queries)))
        yield rows, queries[rows] @ gallery.T
