"""Blocks: the rows of one context, made together so that no sentence is rendered in vain.

A row's split is drawn first; each of its texts is then taken from what has been said of its state, or said
anew until its hash falls into that split (spec §2). Texts that fall into another split wait for its rows.
"""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from radgen.errors import RadgenError
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.finding import FIELDS
from radgen.templates.realiser import Chorus, Realiser, Shell, overlap

ORDER = {name: place for place, name in enumerate(FIELDS)}
#: How often a state is said at most while a text of one split is looked for, and how many texts at a time.
PATIENCE, BATCH = 60, 8
#: Under so many new ones, the state gets another plan.
FEWEST_NEW = 2
#: Plans of a state before its first text, so that two texts rarely share one.
FEWEST_PLANS = 5


class Row(NamedTuple):
    """One finished row: its split, its line of JSON, and the hashes of its texts."""

    split: Split
    line: bytes
    hashes: tuple[bytes, ...]


#: A `Row` from the tuple of its fields: three times as fast as calling the class, for every row.
make_row: Callable[[tuple[Split, bytes, tuple[bytes, ...]]], Row] = functools.partial(tuple.__new__, Row)

#: A sentence: its text, the mask of its words, its frame, the 64-bit hash of its normalised form.
Text = tuple[str, int, str, bytes]


@dataclass
class Block:
    """The rows of one context, and what each filter took."""

    rows: list[Row] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


def ordered(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with its fields in the order of §1."""
    return dict(sorted(state.items(), key=lambda item: ORDER[item[0]]))


def digest(*parts: str | bytes) -> str:
    """Return 16 hex digits that identify the parts; no two different lists of parts run together."""
    found = blake2b(digest_size=8)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(4, "big"))
        found.update(data)
    return found.hexdigest()


def context_hash(state: Mapping[str, Any], varying: Sequence[str]) -> str:
    """Return the hash of a state without the fields that vary: rows of one context share it (§9)."""
    rest = {name: value for name, value in state.items() if name not in varying}
    return digest(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS))


def row_id(name: str, texts: bytes, rest: bytes) -> bytes:
    """Return the id of a row: the dataset's name and a hash of all else that stands in its line.

    Args:
        texts: the members of the JSON object before the id, as they are written.
        rest: the members after it.
    """
    return row_id_of(name.encode(), blake2b(rest, digest_size=8), b"," + texts)


def row_id_of(name: bytes, begun: blake2b, more: bytes) -> bytes:
    """Return the id of a row whose hash was begun with what it shares with other rows: see `row_id`."""
    found = begun.copy()
    found.update(more)
    return b"%b-%b" % (name, found.hexdigest().encode())


class Pool:
    """Says the states of one block, each text once, and keeps what falls into the small splits.

    A text of train is used once. One of the small splits may be used twice, since twenty sentences have to
    be said for each that falls there; that touches under 5 % of a dataset's texts.
    """

    def __init__(self, realiser: Realiser, splitter: Splitter, modality: Any, rng: random.Random) -> None:
        self.realiser = realiser
        self.modality = modality
        self.draw = rng.random
        self.bounds = splitter.digest_bounds
        self.chorus = Chorus()
        self.shells: dict[int, list[Shell]] = {}
        self.plans: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self.waiting: dict[Split, dict[int, list[Text]]] = {name: {} for name in SPLITS}
        self.buckets: dict[int, tuple[list[Text], list[Text], list[Text]]] = {}
        self.seen: set[str] = set()
        self.used: set[bytes] = set()
        self.worn: set[tuple[int, Split]] = set()

    def add(self, index: int, state: Mapping[str, Any], terms: Any = None) -> bool:
        """Get ready to say a state; False where no phrasing states exactly its fields.

        All states are added before the first text is taken, since they share what they can.
        """
        try:
            self.chorus.add(index, self.realiser.speaker(state, self.modality, terms))
        except RadgenError:
            return False
        self.shells[index] = []
        self.plans[index] = 0
        self.places[index] = int(self.draw() * 1000)
        buckets: tuple[list[Text], list[Text], list[Text]] = ([], [], [])
        for split, bucket in zip(SPLITS, buckets, strict=True):
            self.waiting[split][index] = bucket
        self.buckets[index] = buckets
        return True

    def has(self, index: int, split: Split, texts: int = 1) -> bool:
        """Whether so many texts of a state wait for one of the small splits."""
        return len(self.waiting[split][index]) >= texts

    def pop(self, index: int) -> Text | None:
        """Return a text of a state for train: what `take` does where anything suits."""
        bucket = self.buckets[index][0]
        return bucket.pop() if bucket else self.take(index, "train")

    def take(
        self, index: int, split: Split, mask: int = 0, below: float = 2.0, other: Text | None = None
    ) -> Text | None:
        """Return a text of a state that lies in a split, or None where patience runs out.

        Args:
            mask, below: its word Jaccard with this mask has to be under this, if the mask has words.
            other: a text that it must not be.
        """
        bucket = self.waiting[split][index]
        for _ in range(PATIENCE):
            for place in range(len(bucket) - 1, -1, -1):
                text = bucket[place]
                if text is not other and (not mask or overlap(mask, text[1]) < below):
                    return self._use(bucket, place, split)
            if (index, split) in self.worn:
                return None
            self._say(index)
        self.worn.add((index, split))
        return None

    def nearer(self, index: int, split: Split, mask: int, above: float) -> Text | None:
        """Take a waiting text whose word Jaccard with a mask is above a bound, or None if there is none."""
        bucket = self.waiting[split][index]
        for place in range(len(bucket) - 1, -1, -1):
            if overlap(mask, bucket[place][1]) > above:
                return self._use(bucket, place, split)
        return None

    def _use(self, bucket: list[Text], place: int, split: Split) -> Text:
        """Take a text from its bucket; one of a small split goes back for a second use."""
        text = bucket.pop(place)
        if split != "train" and text[3] not in self.used:
            self.used.add(text[3])
            bucket.insert(0, text)
        return text

    def _say(self, index: int) -> None:
        """Say a state a few times, and sort what is new into the splits."""
        while self.plans[index] < FEWEST_PLANS:
            self._more_shells(index)
        draw, seen, choices = self.draw, self.seen, self.shells[index]
        train, validation, test = self.buckets[index]
        first, second = self.bounds
        count, new, place = len(choices), 0, self.places[index]
        step = _stride(count)
        for _ in range(BATCH):
            place = (place + step) % count
            head, tail, mask, cores, frame = choices[place]
            pieces = cores[index]
            core, more = pieces[int(draw() * len(pieces))]
            text = head + core + tail
            if text in seen:
                continue
            seen.add(text)
            new += 1
            # A generated sentence has single spaces and one full stop: this is `text_hash` without its work.
            value = blake2b(text[:-1].lower().encode(), digest_size=8).digest()
            where = train if value < first else validation if value < second else test
            where.append((text, mask | more, frame, value))
        self.places[index] = place
        if new < FEWEST_NEW:
            self._more_shells(index)

    def _more_shells(self, index: int) -> None:
        members, made = self.chorus.shells(index, self.draw)
        for member in members:
            self.shells[member] += made
            self.plans[member] += 1


@functools.cache
def _stride(count: int) -> int:
    """Return a step that visits every shell once, and hardly ever two of one plan in a row."""
    step = round(count * 0.618)
    while math.gcd(step, count) != 1:
        step += 1
    return step


@functools.lru_cache(maxsize=4096)
def split_plan(rows: int, shares: tuple[tuple[Split, float], ...], start: int) -> tuple[Split, ...]:
    """Return the splits of ``rows`` rows, train first; over many blocks the shares come out exactly."""
    share = dict(shares)
    shift = {"validation": 0.0, "test": 0.5}  # so that the two small splits never fall on one row
    out: list[Split] = []
    for index in range(start, start + rows):
        chosen: Split = "train"
        for name in SPLITS[1:]:
            before, after = (int(place * share[name] + shift[name] + 1e-9) for place in (index, index + 1))
            if after > before:
                chosen = name
                break
        out.append(chosen)
    return tuple(sorted(out, key=SPLITS.index))
