"""Triplets mined by similarity gap, with hard negatives (spec §5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coded import Scorer
from radgen.generators.similarity.corpus import Corpus
from radgen.generators.similarity.index import Index, Ints, mixed, overlap, seed_number
from radgen.generators.similarity.settings import TripletSettings
from radgen.generators.splits import Split

#: Sources whose candidates share a label or a family with the text that they are drawn for.
SHARING = ("signature", "near", "label", "denied", "family")
#: Lost agreement from which a negative counts as different in an attribute.
_LOST = 0.7
_ANCHORS = 4096


@dataclass
class Triplets:
    """Triplets of texts of one split.

    Attributes:
        anchor, positive, negative: numbers of texts.
        positive_score, negative_score: RadSim against the anchor.
        contrast: number of what the negative was chosen for, in the settings' ``contrasts``; -1: the hardest.
        rejected: anchors by the reason why they gave no (or no further) triplet.
    """

    anchor: Ints
    positive: Ints
    negative: Ints
    positive_score: NDArray[np.float64]
    negative_score: NDArray[np.float64]
    contrast: Ints
    rejected: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.anchor)


def mine_triplets(
    corpus: Corpus, scorer: Scorer, split: Split, rows: int, seed: int, options: TripletSettings
) -> Triplets:
    """Return up to ``rows`` triplets of a split.

    Each anchor gets a fixed number of candidates from the index. A positive is a candidate that agrees and is
    no near copy; a negative shares a label, a family or words and agrees less by ``min_gap``. What the
    negatives differ in takes turns over ``contrasts``, so that sides, severities and sizes are not drowned.
    """
    members = corpus.of(split)
    rejected: Counter[str] = Counter()
    parts: list[list[NDArray[Any]]] = []
    if len(members) >= 3 and rows > 0:
        index = Index(corpus, scorer, members, seed_number("triplets", corpus.level, split, seed))
        each = -(-rows // len(members))
        for at in range(0, len(members), _ANCHORS):
            block = np.arange(at, min(at + _ANCHORS, len(members)))
            parts += _block(corpus, scorer, index, block, each, options, rejected)
    empty: list[NDArray[Any]] = [np.zeros(0, np.int64)] * 6
    a, p, n, high, low, contrast = (
        [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else empty
    )
    kept = np.arange(len(a))
    if len(a) > rows:
        rejected["enough triplets"] += len(a) - rows
        kept = np.sort(np.argsort(mixed(a * 3 + p * 5 + n * 7), kind="stable")[:rows])
    return Triplets(a[kept], p[kept], n[kept], high[kept], low[kept], contrast[kept], rejected)


def _block(
    corpus: Corpus,
    scorer: Scorer,
    index: Index,
    block: Ints,
    each: int,
    options: TripletSettings,
    rejected: Counter[str],
) -> list[list[NDArray[Any]]]:
    """Return the triplets of some anchors, as lists of columns."""
    names = [name for name, times in options.sources.items() for _ in range(times)]
    names = (names * -(-options.candidates // len(names)))[: options.candidates]
    anchors = index.members[block]
    found = np.stack([index.draw(name, block) for name in names], axis=1)
    sharing = np.array([name in SHARING for name in names])
    valid = (found >= 0) & (found != anchors[:, None])
    for column in range(1, found.shape[1]):  # a candidate counts once
        valid[:, column] &= ~(found[:, :column] == found[:, column : column + 1]).any(axis=1)
    who, which = np.nonzero(valid)
    first, second = anchors[who], found[who, which]
    shape = found.shape
    scores = np.full(shape, np.nan)
    scores[who, which] = scorer.score(first, second).value
    words = np.zeros(shape)
    words[who, which] = overlap(corpus, first, second)
    losses = scorer.losses(first, second)
    differs = np.zeros((len(options.contrasts), *shape), bool)
    for number, name in enumerate(options.contrasts):
        differs[number, who, which] = losses[name] >= _LOST
    hard = valid & (sharing[None, :] | (words >= options.min_overlap))
    agreeing = valid & (scores >= options.min_positive) & (words < options.max_word_jaccard)
    out: list[list[NDArray[Any]]] = []
    rows = np.arange(len(block))
    first_contrast = (mixed(anchors) % np.uint64(len(options.contrasts))).astype(np.int64)
    seen = np.zeros((len(block), 0), np.int64)
    for turn in range(3 * each):
        if seen.shape[1] and (seen >= 0).sum() >= each * len(block):
            break
        luck = index.dice(scores.size).reshape(shape)
        positive = _argmax(agreeing, np.where(agreeing, scores, 0) + 0.3 * luck)
        top = scores[rows, np.maximum(positive, 0)]
        negative_ok = hard & (scores <= top[:, None] - options.min_gap) & (positive >= 0)[:, None]
        contrast = (first_contrast + turn) % len(options.contrasts)
        wanted = differs[contrast, rows]
        negative = _argmax(negative_ok, 2.0 * wanted + words + 0.2 * luck)
        good = negative >= 0
        if turn == 0:
            rejected["no text agrees enough"] += int(np.count_nonzero(positive < 0))
            rejected["no hard negative with that gap"] += int(np.count_nonzero((positive >= 0) & ~good))
        key = np.where(good, positive * shape[1] + negative, -1)
        fresh = good & ~(seen == key[:, None]).any(axis=1) & ((seen >= 0).sum(axis=1) < each)
        if seen.shape[1]:
            rejected["the same triplet again"] += int(np.count_nonzero(good & ~fresh))
        seen = np.concatenate([seen, np.where(fresh, key, -1)[:, None]], axis=1)
        k = np.flatnonzero(fresh)
        p, n = positive[k], negative[k]
        chosen = np.where(wanted[k, n], contrast[k], -1)
        out.append([anchors[k], found[k, p], found[k, n], scores[k, p], scores[k, n], chosen])
    return out


def _argmax(allowed: NDArray[np.bool_], value: NDArray[np.float64]) -> Ints:
    """Return the column of the largest allowed value in each row, -1 where nothing is allowed."""
    best = np.where(allowed, value, -np.inf).argmax(axis=1)
    return np.where(allowed.any(axis=1), best, -1)
