"""What triplets are made from: an anchor with its positive, and what its negative may be (spec §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.generators.radsim.coded import Scorer
from radgen.generators.radsim.coding import Coder
from radgen.generators.radthought.corpus import Thoughts, of_split
from radgen.generators.radthought.corpus_texts import TEXTS, TextName
from radgen.generators.radthought.pair_settings import LEVELS, LevelName, TripletName
from radgen.generators.radthought.record import LEVELS as CONCLUDED
from radgen.generators.radthought.scores_coded import Floats, Ints, Rows
from radgen.generators.similarity.index import mixed
from radgen.generators.splits import SPLITS, Split

Truths = NDArray[np.bool_]


@dataclass
class Units:
    """Anchors with their positives, of one split.

    A positive or negative is a *member*: a record (whose text is that of the unit's level), or a step of a
    derivation.

    Attributes:
        record: the record of each unit.
        member: its positive.
        level: what its negative is drawn from, a key of ``pools``.
        anchor: for records, the anchor's text as an index of ``TEXTS``.
        anchor_hash: hash of the anchor's text.
        pools: members that negatives are drawn from, by level.
        rows: by member, its row in ``tags`` and its description in ``scorer``.
        tags: findings of members (see ``Thoughts.tags``).
        owners: by member, its record.
        hashes: by level, the hash of each member's text at that level.
        about: by step, the processes that it concludes, as bits.
    """

    record: Ints
    member: Ints
    level: Ints
    anchor: Ints
    anchor_hash: NDArray[np.uint64]
    pools: dict[int, Ints]
    tags: Rows
    owners: Ints
    hashes: dict[int, NDArray[np.uint64]]
    scorer: Scorer
    described: Ints
    about: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self.record)

    @property
    def derived(self) -> bool:
        """Whether members are steps of a derivation."""
        return self.about is not None

    def radsim(self, units: Ints, members: Ints) -> Floats:
        """Return RadSim of the findings that units and members rest on."""
        first, second = self.described[self.member[units]], self.described[members]
        return self.scorer.score(first, second).value

    def apart(self, units: Ints, members: Ints) -> Truths:
        """Whether the member's text is another than the unit's two, and about another process."""
        good = np.ones(len(units), bool)
        for level, hashes in self.hashes.items():
            at = self.level[units] == level
            unit, other = units[at], hashes[members[at]]
            good[at] = (other != hashes[self.member[unit]]) & (other != self.anchor_hash[unit])
        if self.about is not None:
            good &= ~(self.about[self.member[units]] & self.about[members]).any(axis=1)
        return good


def record_units(
    thoughts: Thoughts, name: TripletName, adjacent: Sequence[Sequence[LevelName]], rejected: Counter[str]
) -> Iterator[tuple[Split, Units]]:
    """Yield the units of findings alignment (the findings section, a level) or coherence (two levels)."""
    if name == "findings_alignment":
        wanted: list[tuple[TextName, LevelName]] = [("findings", level) for level in LEVELS]
    else:
        wanted = [both for a, b in adjacent for both in ((a, b), (b, a))]
    owned = {text: thoughts.owned_text(text) for text in TEXTS}
    columns: list[tuple[Ints, Ints, Ints]] = []
    for text, level in wanted:
        hashes = thoughts.hashes[text], thoughts.hashes[level]
        there = (hashes[0] != 0) & (hashes[1] != 0)
        good = owned[text] & owned[level] & (hashes[0] != hashes[1])
        records = np.flatnonzero(good)
        pair = mixed(hashes[0][records]) ^ hashes[1][records]
        records = records[np.sort(np.unique(pair, return_index=True)[1])]
        rejected["the record has no such texts"] += int(np.count_nonzero(~there))
        rejected["a string of it belongs to another split"] += int(np.count_nonzero(there & ~good))
        rejected["said before"] += int(np.count_nonzero(good)) - len(records)
        columns.append((
            records,
            np.full(len(records), TEXTS.index(text)),
            np.full(len(records), LEVELS.index(level)),
        ))  # fmt: skip
    record, anchor, level_codes = (np.concatenate(column) for column in zip(*columns, strict=True))
    drawn = {
        LEVELS.index(level): thoughts.usable(level, Counter())
        for level in dict.fromkeys(b for _, b in wanted)
    }
    numbers = np.arange(len(thoughts))
    anchor_hash = np.stack([thoughts.hashes[text] for text in TEXTS])[anchor, record]
    for code, split in enumerate(SPLITS):
        at = thoughts.splits[record] == code
        yield split, Units(
            record[at], record[at], level_codes[at], anchor[at], anchor_hash[at],
            pools={key: np.flatnonzero(chosen & (thoughts.splits == code)) for key, chosen in drawn.items()},
            tags=thoughts.tags, owners=numbers,
            hashes={key: thoughts.hashes[LEVELS[key]] for key in drawn},
            scorer=thoughts.radsim, described=numbers,
        )  # fmt: skip


def step_units(thoughts: Thoughts, rejected: Counter[str]) -> Iterator[tuple[Split, Units]]:
    """Yield the units of derivation: each distinct evidence with a conclusion that rests on it."""
    steps = thoughts.steps
    record = np.array(steps.record, np.int64)
    level, about = np.array(steps.level, np.int64), _bits(steps.abouts, len(thoughts.abouts.numbers))
    evidence, text = np.array(steps.evidence, np.uint64), np.array(steps.text, np.uint64)
    splits = thoughts.splits[record] if len(record) else np.zeros(0, np.uint8)
    good = thoughts.owned(evidence, splits) & thoughts.owned(text, splits) & (evidence != text)
    rejected["a string of it belongs to another split"] += int(np.count_nonzero(~good))
    chosen = np.flatnonzero(good)
    first = np.sort(np.unique(mixed(evidence[chosen]) ^ text[chosen], return_index=True)[1])
    rejected["said before"] += len(chosen) - len(first)
    units = np.zeros(len(record), bool)
    units[chosen[first]] = True
    scorer, described = _evidence_scorer(thoughts)
    drawn = np.zeros(len(record), bool)  # each conclusion's text once
    drawn[chosen[np.unique(text[chosen], return_index=True)[1]]] = True
    levels = range(len(CONCLUDED))
    for split, at in of_split(units, splits):
        code = SPLITS.index(split)
        yield split, Units(
            record[at], at, level[at], np.zeros(len(at), np.int64), evidence[at],
            pools={key: np.flatnonzero(drawn & (splits == code) & (level == key)) for key in levels},
            tags=steps.tags, owners=record, hashes=dict.fromkeys(levels, text),
            scorer=scorer, described=described, about=about,
        )  # fmt: skip


def _evidence_scorer(thoughts: Thoughts) -> tuple[Scorer, Ints]:
    """Return what scores the evidence of steps, and the description of each step; equal ones once."""
    coder = Coder(thoughts.policy)
    numbers: dict[int, int] = {}
    known: dict[bytes, int] = {}
    described = np.zeros(len(thoughts.steps.record), np.int64)
    for step in range(len(described)):
        states = thoughts.steps.states[step]
        key = states.tobytes()
        if key not in known:
            known[key] = len(known)
            for state in states:
                if state not in numbers:
                    numbers[state] = coder.intern([orjson.loads(thoughts.coder.texts[state])])[0]
            coder.add_ids([numbers[state] for state in states])
        described[step] = known[key]
    return Scorer(coder, coder.coded()), described


def _bits(rows: Rows, count: int) -> NDArray[np.uint64]:
    """Return lists of numbers below ``count`` as rows of bits."""
    out = np.zeros((len(rows), -(-max(1, count) // 64)), np.uint64)
    numbers, owner = rows.expand(np.arange(len(rows)))
    np.bitwise_or.at(out, (owner, numbers // 64), np.uint64(1) << (numbers % 64).astype(np.uint64))
    return out
