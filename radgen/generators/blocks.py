"""Blocks: the rows of one context, made together so that no sentence is rendered in vain.

A row's split is drawn first; each of its texts is then taken from what has been said of its state, or said
anew until its hash falls into that split (spec §2). Texts that fall into another split wait for its rows.
"""

from __future__ import annotations

import functools
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
from radgen.templates.realiser import Realiser, Said, Speaker

from_bytes = int.from_bytes
ORDER = {name: place for place, name in enumerate(FIELDS)}
#: How often a frame is filled at most while a text of one split is looked for.
PATIENCE = 60


class Row(NamedTuple):
    """One finished row: its split, its line of JSON, and the hashes of its texts."""

    split: Split
    line: bytes
    hashes: tuple[int, ...]


#: A sentence: its text, the mask of its words, its frame, the 64-bit hash of its normalised form.
Text = tuple[str, int, str, int]


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
    return b"%b-%b" % (name.encode(), blake2b(texts + b"," + rest, digest_size=8).hexdigest().encode())


def overlap(a: int, b: int) -> float:
    """Return the word Jaccard of two texts from the masks of their words."""
    union = (a | b).bit_count()
    return (a & b).bit_count() / union if union else 1.0


class Pool:
    """What has been said of the states of one block, by state and split.

    A text of train is used once. One of the small splits may be used twice, since twenty sentences have to
    be said for each that falls there; that touches under 5 % of a dataset's texts.

    Args:
        batch: beginnings and ends drawn of a frame at a time; more where only a small split is wanted.
    """

    def __init__(
        self,
        realiser: Realiser,
        splitter: Splitter,
        modality: Any,
        rng: random.Random,
        batch: tuple[int, int] = (4, 3),
    ) -> None:
        self.batch = batch
        self.realiser = realiser
        self.modality = modality
        self.rng = rng
        self.draw = rng.random
        self.speakers: dict[int, Speaker | None] = {}
        self.waiting: dict[int, dict[Split, list[Text]]] = {}
        self.seen: set[int] = set()
        self.used: set[int] = set()
        self.bounds = splitter.bounds
        self.worn: set[tuple[int, Split]] = set()

    def add(self, index: int, state: Mapping[str, Any], terms: Any = None) -> bool:
        """Get ready to say a state; False where no phrasing states exactly its fields."""
        if index not in self.speakers:
            self.waiting[index] = {name: [] for name in SPLITS}
            try:
                self.speakers[index] = self.realiser.speaker(state, self.modality, terms)
            except RadgenError:
                self.speakers[index] = None
        return self.speakers[index] is not None

    def fill(self, index: int, texts: int) -> None:
        """Say a state until about ``texts`` of its sentences wait."""
        while texts > 0 and (made := self._say(index)):
            texts -= made

    def has(self, index: int, split: Split, texts: int = 1) -> bool:
        """Whether so many texts of a state wait for a split."""
        return len(self.waiting[index][split]) >= texts

    def pop(self, index: int) -> Text | None:
        """Return a text of a state for train: `take` for the common case."""
        bucket = self.waiting[index]["train"]
        if not bucket:
            return self.take(index, "train")
        place = int(self.draw() * len(bucket))
        text = bucket[place]
        bucket[place] = bucket[-1]
        bucket.pop()
        return text

    def take(self, index: int, split: Split, suits: Callable[[Text], bool] | None = None) -> Text | None:
        """Return a text of a state that lies in a split and suits, or None when patience runs out."""
        bucket = self.waiting[index][split]
        draw = self.draw
        looked = 0
        for attempt in range(PATIENCE):
            while (count := len(bucket)) > looked:
                place = looked + int(draw() * (count - looked))
                text = bucket[place]
                if suits is None or suits(text):
                    if split != "train" and text[3] not in self.used:
                        self.used.add(text[3])  # the small splits may use a text twice: see `Pool`
                    else:
                        bucket[place] = bucket[-1]
                        bucket.pop()
                    return text
                bucket[place], bucket[looked] = bucket[looked], text
                looked += 1
            if (index, split) in self.worn or attempt == PATIENCE - 1:
                break
            if not self._say(index) and not self._say(index) and not self._say(index):
                break
        self.worn.add((index, split))
        return None

    def nearest(self, index: int, split: Split, mask: int, above: float) -> Text | None:
        """Take a waiting text that shares more words with ``mask`` than ``above``, or None if none does."""
        bucket = self.waiting[index][split]
        for place in range(len(bucket) - 1, max(-1, len(bucket) - 9), -1):
            if overlap(mask, bucket[place][1]) > above:
                return bucket.pop(place)
        return None

    def _say(self, index: int) -> int:
        """Say a state a few times, sort what is new into the splits, return how many were new."""
        speaker = self.speakers[index]
        assert speaker is not None  # `add` was asked
        seen, waiting = self.seen, self.waiting[index]
        train, validation = waiting["train"], waiting["validation"]
        test = waiting["test"]
        first, second = self.bounds
        made = 0
        frame, said = speaker.say_some(self.rng, *self.batch)
        for text, mask in said:
            # A generated sentence has single spaces and one full stop: this is `text_hash` without its work.
            value = from_bytes(blake2b(text[:-1].lower().encode(), digest_size=8).digest(), "big")
            if value in seen:
                continue
            seen.add(value)
            made += 1
            where = train if value < first else validation if value < second else test
            where.append((text, mask, frame, value))
        return made


@functools.lru_cache(maxsize=4096)
def split_plan(rows: int, shares: tuple[tuple[Split, float], ...], start: int) -> tuple[Split, ...]:
    """Return the splits of ``rows`` rows, train first, so that the shares come out exactly over many blocks."""
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
