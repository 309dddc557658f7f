"""RadThought records coded for scoring, each in one split (spec §6).

A report's split is a hash of its id. A string that reports of several splits share belongs to the split that
its own hash says, and is left out of the others; strings are compared over every text that a dataset of these
records can have (levels, hierarchies, conclusions, their evidence, findings sections), so that no string is
in two splits of any of them. Texts stay in the file of records and are read again when rows are written.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.errors import DatasetError
from radgen.generators.radsim.coded import Scorer
from radgen.generators.radsim.coding import Coder
from radgen.generators.radthought.corpus_reports import FindingsSections
from radgen.generators.radthought.corpus_texts import (
    TEXTS,
    RecordFile,
    TextName,
    evidence_text,
    steps_of,
    texts_of,
)
from radgen.generators.radthought.pair_settings import LEVELS, LevelName, RadthoughtPairsFile
from radgen.generators.radthought.predicates import canonical
from radgen.generators.radthought.record import LEVELS as CONCLUDED
from radgen.generators.radthought.record import Record
from radgen.generators.radthought.scores import told
from radgen.generators.radthought.scores_coded import (
    Conclusions,
    ConclusionScorer,
    Floats,
    Ints,
    Rows,
    Words,
    scene_scores,
)
from radgen.generators.similarity.corpus import Ownership
from radgen.generators.splits import SPLITS, Split, Splitter, text_hash
from radgen.ontology.radsim import Policy

#: Levels that conclude, as records name them and as datasets do.
CONCLUDING: dict[str, LevelName] = {
    "second": "second_order",
    "third": "third_order",
    "synthesis": "synthesis",
}


def _there(state: Mapping[str, Any]) -> bool:
    current = state.get("temporality") not in ("historical", "hypothetical")
    return current and state.get("presence") != "absent"


_NOBODY = 255


@dataclass
class Steps:
    """Every sentence of every record that concludes, with its evidence, end to end (see ``Step``).

    Attributes:
        record: number of its record.
        place: its place in ``steps_of`` the record.
        level: index in ``record.LEVELS``.
        abouts: numbers of its processes.
        evidence, text: hashes of the two texts.
        states: numbers of the evidence's states (``coder.texts``).
        tags: twice the number of each of the evidence's tags, plus 1 where it is not denied.
    """

    record: array[int] = field(default_factory=lambda: array("i"))
    place: array[int] = field(default_factory=lambda: array("i"))
    level: array[int] = field(default_factory=lambda: array("b"))
    evidence: array[int] = field(default_factory=lambda: array("Q"))
    text: array[int] = field(default_factory=lambda: array("Q"))
    abouts: Rows = field(default_factory=Rows)
    states: Rows = field(default_factory=Rows)
    tags: Rows = field(default_factory=Rows)


class Thoughts:
    """The records of one file.

    Attributes:
        ids: of the reports.
        splits: uint8, code of the split of each record.
        hashes: by text, the hash of each record's; 0 where it has none.
        states: numbers of the states of each (``coder.texts`` has their JSON).
        tags: twice the number of each tag that a record mentions, plus 1 where it is not denied.
        findings: the findings sections by record, where reports were given.
        backends: what made the records.
    """

    def __init__(self, policy: Policy, options: RadthoughtPairsFile, file: RecordFile) -> None:
        self.policy, self.options, self.file = policy, options, file
        self.splitter = Splitter(policy.ontology.axes.splits)
        self.ownership, self.sections = Ownership(self.splitter), Ownership(self.splitter)
        self.coder = Coder(policy)
        self.conclusions = Conclusions(options.conclusions, policy)
        self.ids: list[str] = []
        self.backends: set[str] = set()
        self.findings: dict[int, str] = {}
        self.states, self.scenes, self.tags = Rows(), Rows(), Rows()
        self.levels: dict[str, Rows] = {name: Rows() for name in CONCLUDED}
        self.steps = Steps()
        self.tag_numbers, self.abouts = Words(), Words()
        self._predicates = Words()
        self._places, self._splits = array("q"), array("B")
        self._hashes: dict[TextName, array[int]] = {name: array("Q") for name in TEXTS}

    def __len__(self) -> int:
        return len(self.ids)

    # --- reading ---

    def add(self, place: int, record: Record, row: Mapping[str, Any]) -> None:
        """Add a record."""
        split = self.splitter.of(record.id)
        self.ids.append(record.id)
        self.backends.add(record.backend)
        self._places.append(place)
        self._splits.append(SPLITS.index(split))
        states = record.states()
        numbers = self.coder.intern(states.values())
        self.states.add(numbers)
        self.coder.add_ids(numbers)
        self.scenes.add(self._predicates.bag(canonical(record.predicates)))
        self.tags.add(self._tags(states.values()))
        self._add_conclusions(len(self.ids) - 1, states, split, row)
        for name, text in texts_of(row, self.options.fused.order).items():
            self._own(name, text, split)
        self._hashes["findings"].append(0)

    def _tags(self, states: Iterable[Mapping[str, Any]]) -> list[int]:
        """Return the marks of findings; what is history or supposed is mentioned, but not there."""
        return sorted({2 * self.tag_numbers(state["finding"]) + _there(state) for state in states})

    def _add_conclusions(
        self, number: int, states: Mapping[int, dict[str, Any]], split: Split, row: Mapping[str, Any]
    ) -> None:
        lists: dict[str, list[int]] = {name: [] for name in CONCLUDED}
        for item in row["conclusions"]:
            lists[item["level"]].append(self.conclusions.number(told(item, states)))
        for name, rows in self.levels.items():
            rows.add(lists[name])
        steps = self.steps
        for place, step in enumerate(steps_of(row)):
            evidence = [states[int(name[1:])] for name in step.derived]
            hashes = text_hash(evidence_text(row, step.derived)), text_hash(step.text)
            for value in hashes:
                self.ownership.add(value, split)
            steps.record.append(number)
            steps.place.append(place)
            steps.level.append(CONCLUDED.index(step.level))
            steps.abouts.add(sorted(map(self.abouts, step.abouts)))
            steps.evidence.append(hashes[0])
            steps.text.append(hashes[1])
            steps.states.add(self.coder.intern(evidence))
            steps.tags.add(self._tags(evidence))

    def _own(self, name: TextName, text: str, split: Split) -> int:
        value = text_hash(text) if text else 0
        self._hashes[name].append(value)
        if value:
            self.ownership.add(value, split)
        return value

    def add_findings(self, sections: FindingsSections) -> None:
        """Add the findings sections of the reports that the records are of."""
        hashes = self._hashes["findings"]
        for number, text in sections.of(self.ids):
            self.findings[number] = text
            hashes[number] = text_hash(text)
            self.sections.add(hashes[number], SPLITS[self._splits[number]])

    def settle(self) -> None:
        """Give every string to one split and code what was read; call it when everything was added."""
        self.ownership.settle()
        self.sections.settle()
        self.splits: NDArray[np.uint8] = np.frombuffer(self._splits, np.uint8)
        self.places: Ints = np.frombuffer(self._places, np.int64)
        self.hashes = {name: np.frombuffer(values, np.uint64) for name, values in self._hashes.items()}
        self.radsim = Scorer(self.coder, self.coder.coded())
        self.scorer: ConclusionScorer = self.conclusions.scorer()

    # --- asking ---

    @property
    def backend(self) -> str:
        """What made the records, for people."""
        return " and ".join(sorted(self.backends))

    def owned(self, hashes: NDArray[np.uint64], splits: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether each string is there and belongs to the split beside it."""
        owned: NDArray[np.bool_] = (hashes != 0) & (_owner(self.ownership, hashes) == splits)
        return owned

    def owned_text(self, name: TextName) -> NDArray[np.bool_]:
        """Whether the text of each record is there and belongs to its split.

        Findings sections have owners of their own, so that the other datasets are the same without them; what
        is also a text of a record belongs where that does.
        """
        hashes = self.hashes[name]
        if name != "findings":
            return self.owned(hashes, self.splits)
        elsewhere = _owner(self.ownership, hashes)
        owned: NDArray[np.bool_] = (hashes != 0) & (_owner(self.sections, hashes) == self.splits)
        owned &= (elsewhere == self.splits) | (elsewhere == _NOBODY)
        return owned

    def usable(self, name: TextName, rejected: Counter[str]) -> NDArray[np.bool_]:
        """Return which records have a text that belongs to their split and that none before them has."""
        hashes = self.hashes[name]
        there, owned = hashes != 0, self.owned_text(name)
        first = np.zeros(len(hashes), bool)
        order = np.flatnonzero(owned)
        first[order[np.unique(hashes[order], return_index=True)[1]]] = True
        rejected["the record has no such text"] += int(np.count_nonzero(~there))
        rejected["its string belongs to another split"] += int(np.count_nonzero(there & ~owned))
        rejected["said before"] += int(np.count_nonzero(owned & ~first))
        return first

    def score(self, level: LevelName, first: Ints, second: Ints) -> Floats:
        """Return the scores of pairs of records at one level."""
        if level == "scene_graph":
            return scene_scores(self.scenes, first, second)
        if level == "first_order":
            return self.radsim.score(first, second).value
        name = next(key for key, value in CONCLUDING.items() if value == level)
        return self.scorer.score(self.levels[name], first, second)

    def scores(self, first: Ints, second: Ints) -> dict[LevelName, Floats]:
        """Return the scores of pairs of records at every level."""
        return {level: self.score(level, first, second) for level in LEVELS}

    def row(self, number: int) -> dict[str, Any]:
        """Return a record as its file has it."""
        return self.file.at(int(self.places[number]))

    def states_json(self, rows: Rows, number: int) -> bytes:
        """Return states as a JSON list: of a record (``states``), or of a step's evidence."""
        return b"[%b]" % b",".join([self.coder.texts[state] for state in rows[number]])


def read_thoughts(
    records: Path,
    policy: Policy,
    options: RadthoughtPairsFile,
    sections: FindingsSections | None = None,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> Thoughts:
    """Read records and, where they are given, the findings sections of their reports.

    Raises:
        DatasetError: a row is no record, an id stands twice, or there is none.
    """
    thoughts = Thoughts(policy, options, RecordFile(records, list(policy.ontology.findings)))
    seen: set[str] = set()
    for place, record, row in thoughts.file:
        if record.id in seen:
            raise DatasetError(f"{records}: the record '{record.id}' stands twice")
        seen.add(record.id)
        thoughts.add(place, record, row)
        if len(seen) % 500 == 0:
            progress(len(seen))
    if not seen:
        raise DatasetError(f"{records}: no record")
    if sections is not None:
        thoughts.add_findings(sections)
    thoughts.settle()
    return thoughts


def _owner(ownership: Ownership, hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the code of the split that each string belongs to, ``_NOBODY`` for an unknown one."""
    known = ownership.known
    if not len(known):
        return np.full(len(hashes), _NOBODY, np.uint8)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.where(known[at] == hashes, ownership.owner[at], _NOBODY).astype(np.uint8)


def of_split(chosen: NDArray[np.bool_], splits: NDArray[np.uint8]) -> Iterator[tuple[Split, Ints]]:
    """Yield each split with the numbers of the chosen records in it."""
    for code, split in enumerate(SPLITS):
        yield split, np.flatnonzero(chosen & (splits == code))
