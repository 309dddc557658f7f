"""Blocks: the rows of one context, made together so that no sentence is rendered in vain.

A row's split is drawn first; each of its texts is then taken from what has been said of its state, or said
anew until its hash falls into that split (spec §2). Texts that fall into another split wait for its rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from radgen.errors import RadgenError
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.finding import FIELDS
from radgen.templates.realiser import Realiser, Said, Speaker

ORDER = {name: place for place, name in enumerate(FIELDS)}
#: How often a state is said at most while a text of one split is looked for.
PATIENCE = 250


class Row(NamedTuple):
    """One finished row: its split, its line of JSON, and the hashes of its texts."""

    split: Split
    line: bytes
    hashes: tuple[int, ...]


class Text(NamedTuple):
    """A sentence with the 64-bit hash of its normalised form."""

    text: str
    mask: int
    frame: str
    value: int


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


def row_id(name: str, parts: Sequence[str | bytes]) -> str:
    """Return the id of a row: the dataset's name and a hash of all that the row says."""
    return f"{name}-{digest(*parts)}"


def overlap(a: int, b: int) -> float:
    """Return the word Jaccard of two texts from the masks of their words."""
    union = (a | b).bit_count()
    return (a & b).bit_count() / union if union else 1.0


class Pool:
    """What has been said of the states of one block, by state and split; each text is used once."""

    def __init__(
        self,
        realiser: Realiser,
        splitter: Splitter,
        modality: Any,
        rng: random.Random,
        rejected: Counter[str],
    ) -> None:
        self.realiser = realiser
        self.splitter = splitter
        self.modality = modality
        self.rng = rng
        self.rejected = rejected
        self.speakers: dict[int, Speaker | None] = {}
        self.waiting: dict[tuple[int, Split], list[Text]] = {}
        self.seen: set[int] = set()
        self.worn: set[tuple[int, Split]] = set()

    def speaker(self, index: int, state: Mapping[str, Any], terms: Any = None) -> Speaker | None:
        """Return what says a state, or None where no phrasing states exactly its fields."""
        if index not in self.speakers:
            try:
                self.speakers[index] = self.realiser.speaker(state, self.modality, terms)
            except RadgenError:
                self.speakers[index] = None
        return self.speakers[index]

    def take(
        self, index: int, speaker: Speaker, split: Split, suits: Callable[[Text], bool] | None = None
    ) -> Text | None:
        """Return a text of a state that lies in a split and suits, or None when patience runs out."""
        waiting = self.waiting.setdefault((index, split), [])
        for place in range(len(waiting) - 1, -1, -1):
            if suits is None or suits(waiting[place]):
                return waiting.pop(place)
        if (index, split) in self.worn:
            return None
        of_hash = self.splitter.of_hash
        repeats = 0
        for _ in range(PATIENCE):
            text = self.say(speaker)
            if text.value in self.seen:
                repeats += 1
                if repeats > PATIENCE // 2:
                    break
                continue
            self.seen.add(text.value)
            where = of_hash(text.value)
            if where == split and (suits is None or suits(text)):
                return text
            self.waiting.setdefault((index, where), []).append(text)
        self.worn.add((index, split))
        return None

    def say(self, speaker: Speaker) -> Text:
        """Say a state once and hash what was said."""
        said: Said = speaker.say(self.rng)
        text = said.text
        # A generated sentence has single spaces and one full stop, so this is `normalise` without its work.
        value = int.from_bytes(blake2b(text[:-1].lower().encode(), digest_size=8).digest(), "big")
        return Text(text, said.mask, said.frame, value)


def split_plan(rows: int, shares: Mapping[Split, float], start: int) -> Iterator[Split]:
    """Yield the split of each of ``rows`` rows so that the shares come out exactly over many blocks."""
    shift = {"validation": 0.0, "test": 0.5}  # so that the two small splits never fall on one row
    for index in range(start, start + rows):
        for name in SPLITS[1:]:
            before, after = (int(place * shares[name] + shift[name] + 1e-9) for place in (index, index + 1))
            if after > before:
                yield name
                break
        else:
            yield "train"
