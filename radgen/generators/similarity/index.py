"""Candidate pairs through an inverted index on labels, families and words: linear in the number of texts.

Each kind of key has posting lists; a candidate of a text is a random text of a random posting list of it, so
a common key costs no more than a rare one. Random numbers are hashes of counters: the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coded import Scorer, within
from radgen.generators.similarity.corpus import Corpus
from radgen.ontology.radsim import PRESENCES

Ints = NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ABSENT = PRESENCES.index("absent")
_RAREST = 6


def mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return well mixed bits of whole numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        value = values.astype(np.uint64) * _GOLDEN
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def seed_number(*parts: Any) -> np.uint64:
    """Return 64 bits of anything that has a text."""
    return np.uint64(int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "big"))


class Dice:
    """Uniform numbers in [0, 1) by counter: a function of the seed and the order of the calls alone."""

    def __init__(self, seed: np.uint64) -> None:
        self.seed = seed
        self.drawn = 0

    def __call__(self, count: int) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            counters = np.arange(self.drawn, self.drawn + count, dtype=np.uint64) + self.seed
        self.drawn += count
        return (mixed(counters) >> np.uint64(11)).astype(np.float64) / 2**53


@dataclass
class Postings:
    """Texts by key and keys by text, in compressed rows.

    Attributes:
        own, own_offsets: dense keys that a text looks up.
        texts, offsets: texts that have each key.
    """

    own: Ints
    own_offsets: Ints
    texts: Ints
    offsets: Ints

    @classmethod
    def of(cls, count: int, looked: tuple[Ints, Any], holding: tuple[Ints, Any]) -> Postings:
        """Make postings from (text, key) pairs that are looked up and (text, key) pairs that are held."""
        keys, dense = np.unique(holding[1], return_inverse=True)
        order = np.argsort(dense, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(dense, minlength=len(keys)))])
        at = np.searchsorted(keys, looked[1])
        known = at < len(keys)
        known[known] = keys[at[known]] == looked[1][known]
        who, wanted = looked[0][known], at[known]
        # A key that only the text itself holds leads nowhere.
        useful = np.diff(offsets)[wanted] > 1
        who, wanted = who[useful], wanted[useful]
        own_order = np.argsort(who, kind="stable")
        own_offsets = np.concatenate([[0], np.cumsum(np.bincount(who, minlength=count))])
        return cls(wanted[own_order], own_offsets, holding[0][order], offsets)

    def draw(self, texts: Ints, dice: Dice) -> Ints:
        """Return a candidate for each text, -1 where its keys lead nowhere."""
        low = self.own_offsets[texts]
        width = self.own_offsets[texts + 1] - low
        pick = low + (dice(len(texts)) * width).astype(np.int64)
        some = width > 0
        key = self.own[np.where(some, pick, 0)] if len(self.own) else np.zeros(len(texts), np.int64)
        start = self.offsets[key]
        length = self.offsets[key + 1] - start if len(self.offsets) > 1 else np.zeros(len(texts), np.int64)
        place = start + (dice(len(texts)) * length).astype(np.int64)
        found = self.texts[np.minimum(place, max(0, len(self.texts) - 1))] if len(self.texts) else texts
        return np.where(some, found, -1)


class Index:
    """Posting lists of the texts of one split.

    Args:
        corpus: the texts.
        scorer: their codes.
        members: the texts of the split; candidates are numbers of texts of the corpus.
    """

    def __init__(self, corpus: Corpus, scorer: Scorer, members: Ints, seed: np.uint64) -> None:
        self.corpus, self.members = corpus, members
        self.dice = Dice(seed)
        coded = scorer.coded
        width = coded.offsets[members + 1] - coded.offsets[members]
        owner = np.repeat(np.arange(len(members)), width)
        finding = np.repeat(coded.offsets[members], width) + within(width)
        there = coded.columns["presence"][finding] != _ABSENT
        tags = coded.columns["tag"][finding].astype(np.int64)
        family = np.full(len(scorer.system), -1, np.int64)
        names: dict[str, int] = {}
        for tag, code in scorer.tables.tags.items():
            entry = scorer.policy.ontology.findings.get(tag)
            family[code] = -1 - code if entry is None else names.setdefault(entry.family, len(names))
        count = len(members)
        has, lacks = (owner[there], tags[there]), (owner[~there], tags[~there])
        self.labels = has
        kinds = (owner[there], family[tags[there]])
        words = self._rare_words()
        whole, near = self._signatures(count, *has)
        self.postings = {
            "label": Postings.of(count, has, has),
            "denied": Postings.of(count, _joined(has, lacks, -1), _joined(has, lacks, 1)),
            "family": Postings.of(count, kinds, kinds),
            "word": Postings.of(count, words, words),
            "signature": Postings.of(count, whole, whole),
            "near": Postings.of(count, near, near),
        }

    def _rare_words(self) -> tuple[Ints, Ints]:
        """Return for each text its rarest words: the ones that tell texts apart."""
        every, offsets = np.array(self.corpus.words, np.int64), np.array(self.corpus.word_offsets, np.int64)
        width = offsets[self.members + 1] - offsets[self.members]
        owner = np.repeat(np.arange(len(self.members)), width)
        words = every[np.repeat(offsets[self.members], width) + within(width)]
        frequency = np.bincount(words, minlength=1)
        order = np.lexsort((words, frequency[words], owner))
        owner, words = owner[order], words[order]
        rarest = within(width) < _RAREST
        return owner[rarest], words[rarest]

    @staticmethod
    def _signatures(count: int, owner: Ints, tags: Ints) -> tuple[tuple[Ints, Any], tuple[Ints, Any]]:
        """Return the hash of each text's set of findings, and with it the hashes of the set less one."""
        order = np.lexsort((tags, owner))
        owner, tags = owner[order], tags[order]
        fresh = np.ones(len(owner), bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (tags[1:] != tags[:-1])
        owner, tags = owner[fresh], tags[fresh]
        each = mixed(tags + 1)
        whole = np.zeros(count, np.uint64)
        np.bitwise_xor.at(whole, owner, each)
        some = np.flatnonzero(np.bincount(owner, minlength=count) > 0)
        less = whole[owner] ^ each
        more = less != 0  # a text with one finding is near every text otherwise
        near = (np.concatenate([some, owner[more]]), np.concatenate([whole[some], less[more]]))
        return (some, whole[some]), near

    def draw(self, source: str, texts: Ints) -> Ints:
        """Return a candidate (number in the corpus) for each text (place among the members), -1 for none."""
        if source == "chance":
            found = (self.dice(len(texts)) * len(self.members)).astype(np.int64)
        else:
            found = self.postings[source].draw(texts, self.dice)
        return np.where(found >= 0, self.members[found], -1)


def _joined(has: tuple[Ints, Ints], lacks: tuple[Ints, Ints], sign: int) -> tuple[Ints, Ints]:
    """Return keys by which a text that has a finding meets one that denies it (the other sign)."""
    return (
        np.concatenate([has[0], lacks[0]]),
        np.concatenate([sign * (has[1] + 1), -sign * (lacks[1] + 1)]),
    )


def overlap(corpus: Corpus, a: Ints, b: Ints) -> NDArray[np.float64]:
    """Return the word Jaccard of pairs of texts, close enough to choose by (words share bits)."""
    out = np.empty(len(a))
    for at in range(0, len(a), 65536):
        x, y = corpus.masks[a[at : at + 65536]], corpus.masks[b[at : at + 65536]]
        both = _ones(x & y)
        either = _ones(x | y)
        out[at : at + 65536] = both / np.maximum(either, 1)
    return out


_BYTES = np.array([bin(value).count("1") for value in range(256)], np.uint8)


def _ones(masks: NDArray[np.uint64]) -> Ints:
    """Return the number of bits of each row; NumPy 2 counts them itself."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(masks).sum(axis=1, dtype=np.int64))
    return np.asarray(_BYTES[masks.view(np.uint8)].sum(axis=1, dtype=np.int64))
