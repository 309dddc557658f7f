"""Unrelated records as negatives (spec §6): they share no predicate of the anchor's abnormal findings.

Every predicate without ids names its finding, so a record shares none with a set of findings if and only if
it mentions none of them, not even to deny it. Findings of one continuum of RadSim (nodule and mass) count as
one. Hard negatives have another abnormal finding of an organ system that the anchor's abnormal findings are
of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radthought.corpus import Thoughts
from radgen.generators.radthought.scores_coded import Ints, Rows
from radgen.generators.similarity.index import Dice

Bits = NDArray[np.uint64]
Truths = NDArray[np.bool_]
_BLOCK = 2048


class Marks:
    """Findings of lists as bits, a bit a tag: all that are mentioned, and those that are not denied.

    Attributes:
        words: 64-bit words of a row of bits.
        continuum: by tag, the bits of the tags of its continuum and its own.
        system: by tag, the number of its organ system, -1 for none.
    """

    def __init__(self, thoughts: Thoughts) -> None:
        policy, tags = thoughts.policy, thoughts.tag_numbers.numbers
        self.words = -(-max(1, len(tags)) // 64)
        systems = list(policy.ontology.anatomy.systems)
        self.systems = systems
        self.system = np.full(len(tags), -1, np.int64)
        self.continuum = np.zeros((len(tags), self.words), np.uint64)
        groups: dict[int, list[int]] = {}
        for tag, number in tags.items():
            name = policy.system(tag)
            self.system[number] = -1 if name is None else systems.index(name)
            group = policy.continuum.get(tag)
            groups.setdefault(-1 - number if group is None else group, []).append(number)
        for members in groups.values():
            bits = np.zeros(self.words, np.uint64)
            for number in members:
                bits[number // 64] |= np.uint64(1 << number % 64)
            self.continuum[members] = bits

    def bits(self, count: int, owner: Ints, tags: Ints, *, wide: bool = False) -> Bits:
        """Return rows of bits of tags; ``wide`` adds the other tags of each one's continuum."""
        out = np.zeros((count, self.words), np.uint64)
        if wide:
            np.bitwise_or.at(out, owner, self.continuum[tags])
        else:
            np.bitwise_or.at(out, (owner, tags // 64), np.uint64(1) << (tags % 64).astype(np.uint64))
        return out

    def organs(self, count: int, owner: Ints, tags: Ints) -> NDArray[np.uint64]:
        """Return the organ systems of tags as bits, a number a row."""
        out = np.zeros(count, np.uint64)
        system = self.system[tags]
        known = system >= 0
        np.bitwise_or.at(out, owner[known], np.uint64(1) << system[known].astype(np.uint64))
        return out


@dataclass
class Sought:
    """What negatives are sought for, a row an anchor.

    Attributes:
        record: number of the anchor's record.
        forbidden: bits of the tags that the negative's record must not mention.
        organs: systems of the anchor's abnormal findings.
        normal: whether the anchor has no abnormal finding; its negative must have one.
    """

    record: Ints
    forbidden: Bits
    organs: NDArray[np.uint64]
    normal: Truths

    def part(self, rows: Ints) -> Sought:
        """Return some rows."""
        return Sought(self.record[rows], self.forbidden[rows], self.organs[rows], self.normal[rows])


def sought(marks: Marks, records: Ints, tags: Rows, rows: Ints, *, denials: bool) -> Sought:
    """Return what to seek for anchors of ``records`` whose findings are the lists ``rows`` of ``tags``.

    Args:
        denials: of findings that are all denied, what is denied must not be shared.
    """
    codes, owner = tags.expand(rows)
    there, number = codes % 2 == 1, codes // 2
    count = len(rows)
    normal = np.bincount(owner[there], minlength=count) == 0
    counts = there | normal[owner] if denials else there
    return Sought(
        records,
        marks.bits(count, owner[counts], number[counts], wide=True),
        marks.organs(count, owner[there], number[there]),
        normal & (not denials),
    )


class Pool:
    """Texts of one level and split that negatives are drawn from.

    Args:
        records: number of the record of each text.
        tags, rows: the findings that each text rests on.
        seed: of the draws.
    """

    def __init__(
        self, thoughts: Thoughts, marks: Marks, records: Ints, tags: Rows, rows: Ints, seed: np.uint64
    ) -> None:
        self.records = records
        self.dice = Dice(seed)
        count = len(records)
        codes, owner = thoughts.tags.expand(records)
        self.mentioned = marks.bits(count, owner, codes // 2)
        codes, owner = tags.expand(rows)
        there, number = codes % 2 == 1, codes // 2
        self.organs = marks.organs(count, owner[there], number[there])
        self.abnormal = np.bincount(owner[there], minlength=count) > 0
        system = marks.system[number[there]]
        self.by_organ = _by_organ(count, owner[there][system >= 0], system[system >= 0])

    def seek(
        self,
        wanted: Sought,
        hard: Truths,
        draws: int,
        rounds: int,
        allowed: Callable[[Ints, Ints], Truths],
    ) -> Ints:
        """Return a place in the pool for each anchor, -1 where none was found.

        Args:
            hard: where the negative has to share an organ system; where none does, another is taken.
            draws: texts tried for an anchor at a time.
            rounds: how often that is tried.
            allowed: whether places (of anchors, in the pool) may stand together beyond what is checked here.
        """
        out = np.full(len(wanted.record), -1, np.int64)
        if not len(self.records):
            return out
        for turn in range(2 * rounds):
            left = np.flatnonzero(out < 0)
            if turn >= rounds:
                hard = np.zeros(len(hard), bool)  # what shares an organ could not be found
            for at in range(0, len(left), _BLOCK):
                rows = left[at : at + _BLOCK]
                out[rows] = self._try(wanted.part(rows), rows, hard[rows], draws, allowed)
        return out

    def _try(
        self, wanted: Sought, rows: Ints, hard: Truths, draws: int, allowed: Callable[[Ints, Ints], Truths]
    ) -> Ints:
        count = len(rows)
        shape = (count, draws)
        found = np.where(hard[:, None], self._sharing(wanted, draws), self._any(shape))
        safe = np.maximum(found, 0)
        good = found >= 0
        good &= self.records[safe] != wanted.record[:, None]
        good &= ~(self.mentioned[safe] & wanted.forbidden[:, None, :]).any(axis=2)
        good &= self.abnormal[safe] | ~wanted.normal[:, None]
        first = good.argmax(axis=1)
        place = found[np.arange(count), first]
        some = np.flatnonzero(good.any(axis=1))
        some = some[allowed(rows[some], place[some])]
        out = np.full(count, -1, np.int64)
        out[some] = place[some]
        return out

    def _any(self, shape: tuple[int, int]) -> Ints:
        return (self.dice(shape[0] * shape[1]) * len(self.records)).astype(np.int64).reshape(shape)

    def _sharing(self, wanted: Sought, draws: int) -> Ints:
        """Return texts that share a random organ system of each anchor, -1 where it has none."""
        count = len(wanted.record)
        systems = (wanted.organs[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        number = systems.sum(axis=1).astype(np.int64)
        pick = (self.dice(count * draws).reshape(count, draws) * number[:, None]).astype(np.int64)
        rank = np.cumsum(systems, axis=1).astype(np.int64)
        system = (rank[:, None, :] <= pick[:, :, None]).sum(axis=2)
        system = np.minimum(system, 63)
        low, high = self.by_organ.offsets[system], self.by_organ.offsets[system + 1]
        place = low + (self.dice(count * draws).reshape(count, draws) * (high - low)).astype(np.int64)
        some = (number[:, None] > 0) & (high > low)
        texts = self.by_organ.texts
        return np.where(some, texts[np.minimum(place, max(0, len(texts) - 1))] if len(texts) else -1, -1)


@dataclass
class _Organs:
    """Texts by organ system."""

    texts: Ints
    offsets: Ints


def _by_organ(count: int, owner: Ints, system: Ints) -> _Organs:
    both = np.unique(system * count + owner) if count else np.zeros(0, np.int64)
    offsets = np.searchsorted(both, np.arange(65) * max(1, count))
    return _Organs(both % max(1, count), offsets)
