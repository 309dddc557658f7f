"""Texts of reports with their findings, coded for RadSim, each in one split (spec §5).

A report's split is a hash of its id. A string that reports of several splits share belongs to the split that
its own hash says (as in every other dataset), and is left out of the others; strings are compared over
sections, whole reports and sentences, so that no string is in two splits of any dataset of the same reports.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.extract.sentences import sentences
from radgen.generators.radsim.coding import Coded, Coder
from radgen.generators.similarity.settings import Level
from radgen.generators.similarity.settings import settings as similarity
from radgen.generators.similarity.source import Placed, Read
from radgen.generators.splits import SPLITS, Split, Splitter, text_hash
from radgen.ontology.radsim import Policy

#: Words of a text as bits of a fixed width: enough to compare texts, one bit a hashed word.
BITS = 512
_WORD = re.compile(r"[a-z][a-z-]+|\d+(?:\.\d+)?")
_CODES = {name: index for index, name in enumerate(SPLITS)}


def words_of(text: str) -> set[str]:
    """Return the words of a text, lower case.

    >>> sorted(words_of("A 2.5 cm nodule."))
    ['2.5', 'cm', 'nodule']
    """
    return {word for word in _WORD.findall(text.lower()) if len(word) > 1 or word.isdigit()}


def jaccard(a: str, b: str) -> float:
    """Return the word Jaccard of two texts."""
    x, y = words_of(a), words_of(b)
    return len(x & y) / len(x | y) if x | y else 1.0


def report_text(sections: dict[str, str]) -> str:
    """Return the text of a whole report: its sections, a line each."""
    return "\n".join(" ".join(text.split()) for text in sections.values())


def sentence_units(text: str, placed: list[Placed]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the sentences of a section that state findings, each with them.

    A sentence that shares a finding with another ("There is a nodule. It measures 8 mm.") is left out: alone
    it does not say what was read in it.
    """
    spans = sentences(text)
    states: list[list[dict[str, Any]]] = [[] for _ in spans]
    shared: set[int] = set()
    for state, (start, end) in placed:
        inside = [index for index, (low, high) in enumerate(spans) if low < end and start < high]
        if len(inside) == 1:
            states[inside[0]].append(state)
        else:
            shared.update(inside)
    for index, (low, high) in enumerate(spans):
        if states[index] and index not in shared:
            yield " ".join(text[low:high].split()), states[index]


class Ownership:
    """Which split a string belongs to."""

    def __init__(self, splitter: Splitter) -> None:
        self.splitter = splitter
        self._hashes: array[int] = array("Q")
        self._splits: array[int] = array("B")
        self._new: dict[int, Split] = {}

    def add(self, value: int, split: Split) -> None:
        """Note that a report of a split has a string."""
        self._hashes.append(value)
        self._splits.append(1 << _CODES[split])

    def settle(self) -> None:
        """Give every string to one split; call it when everything was added."""
        hashes, bits = np.array(self._hashes, np.uint64), np.array(self._splits, np.uint8)
        self._hashes, self._splits = array("Q"), array("B")
        order = np.argsort(hashes, kind="stable")
        hashes, bits = hashes[order], bits[order]
        fresh = np.ones(len(hashes), bool)
        fresh[1:] = hashes[1:] != hashes[:-1]
        first = np.flatnonzero(fresh)
        self.known = hashes[first]
        joined = np.bitwise_or.reduceat(bits, first) if len(hashes) else bits
        bounds = [np.uint64(min(bound, 2**64 - 1)) for bound in self.splitter.bounds]
        own = (self.known >= bounds[0]).astype(np.uint8) + (self.known >= bounds[1])
        single = np.select([joined == 1, joined == 2, joined == 4], [0, 1, 2], -1)
        self.owner = np.where(single >= 0, single, own).astype(np.uint8)

    def of(self, value: int) -> Split | None:
        """Return the split of a string of the reports; None for a new string."""
        at = int(np.searchsorted(self.known, np.uint64(value)))
        if at < len(self.known) and int(self.known[at]) == value:
            return SPLITS[int(self.owner[at])]
        return self._new.get(value)

    def claim_new(self, text: str, split: Split) -> bool:
        """Whether a text that was made just now may stand in a split: it is new, and no other's.

        It belongs to the split from then on.
        """
        value = text_hash(text)
        if value in self._new or self.of(value) not in (None, split):
            return False
        self._new[value] = split
        return True


@dataclass
class Corpus:
    """The distinct texts of one level.

    Attributes:
        level: sentence, findings, impression or report.
        texts: the texts.
        reports: the id of the first report of its split that has each.
        splits: uint8, code of the split of each.
        states: numbers of the states of each (``coder.texts`` has their JSON), one text after another.
        hashes: uint64, hash of each normalised text.
        words: numbers of the words of each, without those that say nothing, one text after another.
        masks: uint64 [texts, BITS / 64], the same words as bits.
        dropped: texts left out, by reason.
        total: reports read.
    """

    level: Level
    coder: Coder
    ownership: Ownership
    texts: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    states: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    dropped: Counter[str] = field(default_factory=Counter)
    report_splits: Counter[str] = field(default_factory=Counter)
    total: int = 0
    splits: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    words: array[int] = field(default_factory=lambda: array("i"))
    word_offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    masks: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, BITS // 64), np.uint64))
    coded: Coded | None = None

    def states_json(self, number: int) -> bytes:
        """Return what a text states, as a JSON list."""
        low, high = self.offsets[number], self.offsets[number + 1]
        return b"[%b]" % b",".join([self.coder.texts[state] for state in self.states[low:high]])

    def of(self, split: Split) -> NDArray[np.int64]:
        """Return the texts of a split."""
        return np.flatnonzero(self.splits == _CODES[split])


def _units(read: Read, level: Level) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    """Yield the texts of one level of a report."""
    if level == "sentence":
        for name, text in read.sections.items():
            yield from sentence_units(text, read.states.get(name, []))
    elif level == "report":
        states = [state for placed in read.states.values() for state, _ in placed]
        yield report_text(read.sections), states
    elif level in read.sections:
        text = " ".join(read.sections[level].split())
        yield text, [state for state, _ in read.states.get(level, [])]


def build(
    reads: Iterable[Read],
    level: Level,
    policy: Policy,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> Corpus:
    """Read reports and code the texts of one level; memory holds the texts, their states and codes."""
    splitter = Splitter(policy.ontology.axes.splits)
    corpus = Corpus(level, Coder(policy), Ownership(splitter))
    found: dict[int, tuple[int, ...]] = {}
    kept: list[tuple[str, str, array[int], int, int]] = []
    for read in reads:
        split = splitter.of(read.id)
        corpus.total += 1
        corpus.report_splits[split] += 1
        for value in strings(read):
            corpus.ownership.add(value, split)
        for text, states in _units(read, level):
            if not states:
                corpus.dropped["states no finding"] += 1
                continue
            value = text_hash(text)
            code = _CODES[split]
            if code in found.get(value, ()):
                corpus.dropped["said before"] += 1
                continue
            found[value] = (*found.get(value, ()), code)
            kept.append((text, read.id, corpus.coder.intern(states), value, code))
        if corpus.total % 500 == 0:
            progress(corpus.total)
    corpus.ownership.settle()
    del found
    _keep(corpus, kept)
    return corpus


def strings(read: Read) -> set[int]:
    """Return the hashes of every string of a report: sections, the whole, sentences."""
    out = {text_hash(report_text(read.sections))}
    for text in read.sections.values():
        out.add(text_hash(text))
        out.update(text_hash(text[low:high]) for low, high in sentences(text))
    return out


def _keep(corpus: Corpus, kept: list[tuple[str, str, array[int], int, int]]) -> None:
    """Leave out what belongs to another split and code the rest."""
    kept.reverse()
    hashes, splits = array("Q"), array("B")
    masks = bytearray()
    numbers: dict[str, int] = {}
    bits: list[int] = []
    stop = set(similarity().stop_words)
    while kept:
        text, identifier, states, value, code = kept.pop()
        if corpus.ownership.of(value) != SPLITS[code]:
            corpus.dropped["its string belongs to another split"] += 1
            continue
        corpus.texts.append(text)
        corpus.reports.append(identifier)
        corpus.states.extend(states)
        corpus.offsets.append(len(corpus.states))
        corpus.coder.add_ids(states)
        hashes.append(value)
        splits.append(code)
        mask = 0
        for word in sorted(words_of(text) - stop):
            number = numbers.setdefault(word, len(numbers))
            if number == len(bits):
                digest = blake2b(word.encode(), digest_size=8).digest()
                bits.append(1 << (int.from_bytes(digest, "big") % BITS))
            mask |= bits[number]
            corpus.words.append(number)
        corpus.word_offsets.append(len(corpus.words))
        masks += mask.to_bytes(BITS // 8, "little")
    corpus.hashes = np.array(hashes, np.uint64)
    corpus.splits = np.array(splits, np.uint8)
    corpus.masks = np.frombuffer(bytes(masks), np.uint64).reshape(-1, BITS // 64)
    corpus.coded = corpus.coder.coded()
