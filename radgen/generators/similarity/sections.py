"""Sections as blocks of sentences that can be moved, dropped and added without harm (spec §5)."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from radgen.extract.sentences import sentences
from radgen.generators.radsim.policy import canonical
from radgen.generators.similarity.corpus import Ownership, strings
from radgen.generators.similarity.settings import settings
from radgen.generators.similarity.source import Placed, Read
from radgen.generators.splits import SPLITS, Split, Splitter, text_hash
from radgen.ontology.load import Ontology
from radgen.ontology.radsim import Policy

State = dict[str, Any]
_ENDS = (".", "!", "?", ";", ":")


@dataclass(frozen=True, slots=True)
class Block:
    """One sentence, or sentences that belong together, and what they state."""

    text: str
    states: tuple[State, ...]
    single: bool = True

    @property
    def tags(self) -> set[str]:
        """Findings that it states are, or may be, there."""
        return {state["finding"] for state in self.states if state.get("presence") != "absent"}

    @property
    def named(self) -> set[str]:
        """Findings that it speaks of at all."""
        return {state["finding"] for state in self.states}


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a report.

    Attributes:
        name: findings or impression.
        text: as it is, with single spaces.
        blocks: its sentences.
        weights: by finding, the prominence that the report gives or that ``similarity.yaml`` does.
    """

    report: str
    name: str
    split: Split
    text: str
    blocks: tuple[Block, ...]
    weights: dict[str, float]

    @property
    def states(self) -> list[State]:
        """What all its blocks state."""
        return [state for block in self.blocks for state in block.states]


def joined(blocks: Iterable[Block]) -> str:
    """Return blocks as one text, each closed."""
    return " ".join(block.text if block.text.endswith(_ENDS) else f"{block.text}." for block in blocks)


def keys(states: Iterable[State]) -> list[bytes]:
    """Return what two lists of states are compared by."""
    return list(canonical(states))


def split_blocks(text: str, placed: list[Placed]) -> tuple[Block, ...]:
    """Return the blocks of a section: sentences, joined where they share a finding or lean on each other."""
    spans = sentences(text)
    starts = tuple(f"{word} " for word in settings().discrepancies.dependent)
    group = list(range(len(spans)))
    for index, (low, high) in enumerate(spans):
        if index and f"{text[low:high].lower().strip(',')} ".replace(",", " ").startswith(starts):
            group[index] = group[index - 1]
    found: list[list[State]] = [[] for _ in spans]
    for state, (start, end) in placed:
        inside = [index for index, (low, high) in enumerate(spans) if low < end and start < high]
        if not inside:
            continue
        found[inside[0]].append(state)
        low = min(group[index] for index in inside)
        for index in range(low, inside[-1] + 1):
            group[index] = low
    blocks = []
    for key in dict.fromkeys(group):
        members = [index for index in range(len(spans)) if group[index] == key]
        parts = [Block(" ".join(text[spans[index][0] : spans[index][1]].split()), ()) for index in members]
        states = tuple(state for index in members for state in found[index])
        whole = joined(parts) if len(parts) > 1 else parts[0].text
        blocks.append(Block(whole, states, len(parts) == 1))
    return tuple(blocks)


@dataclass
class Sections:
    """Every section of the reports, by split, with the sentences that can be added.

    Attributes:
        sections: by split, as JSON would hold them (kept as they are).
        pool: by split, blocks whose findings are all there.
    """

    ownership: Ownership
    sections: dict[Split, list[Section]] = field(default_factory=lambda: {split: [] for split in SPLITS})
    pool: dict[Split, list[Block]] = field(default_factory=lambda: {split: [] for split in SPLITS})
    dropped: Counter[str] = field(default_factory=Counter)
    total: int = 0


def read_sections(
    reads: Iterable[Read], ontology: Ontology, *, progress: Callable[[int], None] = lambda _: None
) -> Sections:
    """Read reports as sections of blocks; distinct ones only, each in the split that owns its text."""
    splitter = Splitter(ontology.axes.splits)
    made = Sections(Ownership(splitter))
    kept: list[Section] = []
    hashes: array[int] = array("Q")
    seen: dict[int, set[str]] = {}
    for read in reads:
        split = splitter.of(read.id)
        made.total += 1
        for value in strings(read):
            made.ownership.add(value, split)
        impression = {
            state["finding"]
            for state, _ in read.states.get("impression", [])
            if state.get("presence") != "absent"
        }
        for name, text in read.sections.items():
            value = text_hash(text)
            if split in seen.get(value, ()):
                made.dropped["said before"] += 1
                continue
            placed = read.states.get(name, [])
            if not placed:
                made.dropped["states no finding"] += 1
                continue
            seen.setdefault(value, set()).add(split)
            blocks = split_blocks(text, placed)
            weights = prominence(read, placed, impression if name == "findings" else set(), ontology)
            kept.append(Section(read.id, name, split, " ".join(text.split()), blocks, weights))
            hashes.append(value)
        if made.total % 500 == 0:
            progress(made.total)
    made.ownership.settle()
    pooled: set[int] = set()
    for section, value in zip(kept, hashes, strict=True):
        if made.ownership.of(value) != section.split:
            made.dropped["its string belongs to another split"] += 1
            continue
        made.sections[section.split].append(section)
        for block in section.blocks:
            if not block.single or not block.states or len(block.tags) != len(block.named):
                continue
            number = text_hash(block.text)
            if number not in pooled and made.ownership.of(number) in (None, section.split):
                pooled.add(number)
                made.pool[section.split].append(block)
    return made


def prominence(
    read: Read, placed: list[Placed], impression: set[str], ontology: Ontology
) -> dict[str, float]:
    """Return the weight of each finding of a section: the report's own, or that of ``similarity.yaml``."""
    options = settings().prominence
    own: dict[str, float] = {}
    if read.abnormalities and read.prominence:
        for label, weight in zip(read.abnormalities, read.prominence, strict=True):
            tag = _tag(label, ontology)
            if tag is not None:
                own[tag] = max(own.get(tag, 0.0), weight)
    out: dict[str, float] = {}
    for state, _ in placed:
        tag, presence = state["finding"], state.get("presence", "present")
        if tag in own and presence != "absent":
            weight = own[tag]
        elif presence == "absent":
            weight = options.labelled_absent if own else options.absent
        else:
            weight = options.present if presence == "present" else options.indeterminate
            weight *= options.severity.get(state.get("severity", ""), 1.0)
            weight *= options.in_impression if tag in impression else 1.0
        out[tag] = max(out.get(tag, 0.0), weight)
    return out


def _tag(label: str, ontology: Ontology) -> str | None:
    """Return the canonical finding of a label, None where the ontology has none of that name."""
    name = label.strip().lower().replace(" ", "_").replace("-", "_")
    if name in ontology.findings:
        return name
    alias = ontology.aliases.get(name)
    return alias.finding if alias else None


def denied_systems(policy: Policy, states: Iterable[State]) -> set[str]:
    """Return the organ systems that the summaries of a text deny ("the lungs are clear")."""
    general = policy.constants.general
    return {
        system
        for state in states
        if state.get("presence") == "absent"
        for system in general.get(state["finding"], ())
    }


def row_random(*parts: Any) -> random.Random:
    """Return a generator of its own for one row."""
    digest = blake2b(orjson.dumps([str(part) for part in parts]), digest_size=8).digest()
    return random.Random(int.from_bytes(digest, "big"))


class Reader:
    """Reads a text with the rules; what an edit did is what it reads before and after."""

    def __init__(self, ontology: Ontology) -> None:
        from radgen.extract.rules import RulesExtractor, default_extractor

        self._rules = RulesExtractor(ontology) if ontology.user_sources else default_extractor()

    def states(self, text: str, section: str) -> list[Placed]:
        """Return states with spans."""
        return self._rules.states(text, section)

    def keys(self, text: str, section: str) -> list[bytes]:
        """Return the distinct states of a text in canonical form."""
        return keys(state for state, _ in self._rules.states(text, section))
