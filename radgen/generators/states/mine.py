"""Pairs and triplets of sentences within and across the states of a finding, balanced (spec §11)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.similarity.corpus import words_of
from radgen.generators.similarity.pairs import level_out
from radgen.generators.splits import Split
from radgen.generators.states.corpus import ANY, STATES, UNNAMED, StateCorpus
from radgen.generators.states.settings import StatesSettings

Ints = NDArray[np.int64]
#: Up to so many pairs are listed and chosen from; beyond, they are drawn.
_FEW = 200_000
_ROUNDS = 12


class Group:
    """The sentences of a finding and a state, drawn phrasing by phrasing: common ones do not win."""

    def __init__(self, corpus: StateCorpus, tag: str, state: str, split: Split) -> None:
        numbers = corpus.members(tag, state, split)
        names = [corpus.phrasings[number] for number in numbers]
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        code = np.array([codes[name] for name in names], np.int64)
        order = np.argsort(code, kind="stable")
        self.members = np.array(numbers, np.int64)[order]
        self.code = code[order]
        self.sizes = np.bincount(self.code, minlength=len(codes))
        self.starts = np.cumsum(self.sizes) - self.sizes

    def __len__(self) -> int:
        return len(self.members)

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """Return places of members, each phrasing as often as any other."""
        phrasing = rng.integers(0, len(self.sizes), count)
        return self.starts[phrasing] + (rng.random(count) * self.sizes[phrasing]).astype(np.int64)


@dataclass
class Mined:
    """Rows of one split.

    Attributes:
        columns: numbers of sentences, int64 [rows, 2] for pairs (first, second), [rows, 3] for triplets.
        findings: the finding of each row.
        states: the state of each text of each row.
        wanted: rows that were asked for.
    """

    columns: list[Ints] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    states: list[tuple[str, ...]] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    wanted: int = 0

    def add(self, tag: str, states: tuple[str, ...], rows: Ints) -> None:
        """Add rows of a finding."""
        self.columns.append(rows)
        self.findings += [tag] * len(rows)
        self.states += [states] * len(rows)

    def __len__(self) -> int:
        return len(self.findings)


def generator(*parts: Any) -> np.random.Generator:
    """Return a generator of its own for one part of a dataset."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _even(total: int, parts: int) -> list[int]:
    """Share a number out over parts, as evenly as whole numbers go.

    >>> _even(7, 3)
    [3, 2, 2]
    """
    counts: list[int] = level_out(np.full(parts, total), total).tolist()
    return counts


def mine_pairs(corpus: StateCorpus, split: Split, rows: int, seed: int, options: StatesSettings) -> Mined:
    """Return pairs of a split: the same number of each finding, across its states and within each."""
    mined = Mined(wanted=rows)
    present, absent = STATES
    for tag, quota in zip(corpus.findings, _even(rows, len(corpus.findings)), strict=True):
        groups = {state: Group(corpus, tag, state, split) for state in STATES}
        across = round(quota * options.across_share)
        shares = [(present, absent, across), *_within(quota - across)]
        for first, second, count in shares:
            rng = generator("pairs", tag, first, second, split, seed)
            mined.add(tag, (first, second), _pairs(groups[first], groups[second], count, rng, mined.rejected))
    return mined


def mine_others(corpus: StateCorpus, split: Split, rows: int, seed: int, options: StatesSettings) -> Mined:
    """Return pairs of a sentence about a finding and one that names none, balanced alike."""
    mined = Mined(wanted=rows)
    others = Group(corpus, ANY, UNNAMED, split)
    for index, quota in enumerate(_even(rows, len(corpus.findings) * len(STATES))):
        tag, state = corpus.findings[index // 2], STATES[index % 2]
        rng = generator("others", tag, state, split, seed)
        group = Group(corpus, tag, state, split)
        mined.add(tag, (state, UNNAMED), _pairs(group, others, quota, rng, mined.rejected))
    return mined


def _within(count: int) -> list[tuple[str, str, int]]:
    return [(state, state, share) for state, share in zip(STATES, _even(count, len(STATES)), strict=True)]


def _pairs(first: Group, second: Group, count: int, rng: np.random.Generator, rejected: Counter[str]) -> Ints:
    """Return up to ``count`` different pairs; within a state, the two phrasings differ."""
    same = first is second
    if not len(first) or not len(second) or count < 1:
        rejected["no sentence of a state"] += count
        return np.zeros((0, 2), np.int64)
    if len(first) * len(second) <= _FEW:
        i, j = (grid.ravel() for grid in np.indices((len(first), len(second))))
        keep = (i < j) & (first.code[i] != first.code[j]) if same else np.ones(len(i), bool)
        i, j = i[keep], j[keep]
        weights = 1.0 / (first.sizes[first.code[i]] * second.sizes[second.code[j]]) if len(i) else i
        take = min(count, len(i))
        chosen = rng.choice(len(i), take, replace=False, p=weights / weights.sum()) if take else i
        i, j = i[chosen], j[chosen]
    else:
        i, j = _drawn(first, second, count, rng)
    if len(i) < count:
        rejected["no further pair of different phrasings"] += count - len(i)
    return np.stack([first.members[i], second.members[j]], axis=1)


def _drawn(first: Group, second: Group, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    keys = np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        i, j = first.draw(rng, count), second.draw(rng, count)
        if first is second:
            apart = first.code[i] != first.code[j]
            i, j = np.minimum(i, j)[apart], np.maximum(i, j)[apart]
        every = np.concatenate([keys, i * len(second) + j])
        keys = every[np.sort(np.unique(every, return_index=True)[1])]
        if len(keys) >= count:
            break
    keys = keys[:count]
    return keys // len(second), keys % len(second)


def mine_triplets(corpus: StateCorpus, split: Split, rows: int, seed: int, options: StatesSettings) -> Mined:
    """Return triplets of a split: anchor and positive of one state, the negative of the other.

    The same number of each finding and each state of the anchor. Of a few sentences of the other state, the
    negative is the one with the most words of the anchor.
    """
    mined = Mined(wanted=rows)
    words: dict[int, frozenset[str]] = {}
    quotas = _even(rows, len(corpus.findings) * len(STATES))
    for index, quota in enumerate(quotas):
        tag, state = corpus.findings[index // 2], STATES[index % 2]
        other = STATES[1 - index % 2]
        own, against = Group(corpus, tag, state, split), Group(corpus, tag, other, split)
        rng = generator("triplets", tag, state, split, seed)
        found: dict[tuple[int, int, int], None] = {}
        for _ in range(_ROUNDS if len(own) and len(against) and quota else 0):
            a, p = own.draw(rng, quota), own.draw(rng, quota)
            n = against.draw(rng, quota * options.negative_candidates).reshape(quota, -1)
            good = own.code[a] != own.code[p]
            for anchor, positive, negatives in zip(a[good], p[good], n[good], strict=True):
                texts = own.members[[anchor, positive]].tolist()
                negative = _nearest(corpus, words, texts[0], against.members[negatives].tolist())
                found.setdefault((texts[0], texts[1], negative))
                if len(found) == quota:
                    break
            if len(found) == quota:
                break
        if len(found) < quota:
            mined.rejected["no further triplet of different phrasings"] += quota - len(found)
        mined.add(tag, (state, state, other), np.array(list(found), np.int64).reshape(-1, 3))
    return mined


def _nearest(
    corpus: StateCorpus, words: dict[int, frozenset[str]], anchor: int, candidates: list[int]
) -> int:
    """Return the candidate with the highest word Jaccard against the anchor; the first of equals."""
    for number in (anchor, *candidates):
        if number not in words:
            words[number] = frozenset(words_of(corpus.texts[number]))
    own = words[anchor]
    return max(candidates, key=lambda number: len(own & words[number]) / max(1, len(own | words[number])))
