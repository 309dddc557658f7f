"""One dataset of the mixture: its rows within the cap, in contexts, and what is formed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from radgen.train import forming
from radgen.train.losses import Kind
from radgen.train.rows import Rows
from radgen.train.settings import DatasetSettings, Grouping, StageSettings

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Segment(NamedTuple):
    """Rows of one dataset in a step.

    Attributes:
        dataset: its name.
        rows: shape (R, k), positions among the texts of the step.
        scores: shape (R,), None for triplets.
        columns: further columns that the loss asks for, one value a row.
    """

    dataset: str
    rows: Ints
    scores: Floats | None
    columns: Mapping[str, list[Any]]


@dataclass
class Part:
    """One dataset of the mixture.

    Attributes:
        used: numbers of the rows within the cap.
        contexts: the context of each used row, as a number; None where rows have none.
        targets: what rows are formed by; None where none are.
        found: rows there are in the file.
    """

    name: str
    rows: Rows
    kind: Kind
    settings: DatasetSettings
    grouping: Grouping
    seed: int
    used: Ints
    found: int
    contexts: Ints | None = None
    targets: forming.Targets | None = None
    _epoch: tuple[int, Sequence[Ints]] = field(default=(-1, ()), repr=False)

    @property
    def size(self) -> int:
        """Capped rows."""
        return len(self.used)

    def rng(self, *numbers: int) -> np.random.Generator:
        """Return a generator of this dataset's own."""
        return np.random.default_rng([self.seed, crc32(self.name.encode()), *numbers])

    def blocks(self, epoch: int) -> Sequence[Ints]:
        """Return the used rows of one pass, in blocks of one context each, shuffled anew each pass."""
        if self._epoch[0] != epoch:
            rng = self.rng(1, epoch)
            mixed = rng.permutation(self.size)
            blocks: Any
            if self.contexts is None:
                blocks = self.used[mixed][:, None]
            else:
                mixed = mixed[np.argsort(self.contexts[mixed], kind="stable")]
                context = self.contexts[mixed]
                starts = np.flatnonzero(np.append(True, context[1:] != context[:-1]))
                blocks = []
                for rows in np.split(self.used[mixed], starts[1:]):
                    step = self.grouping.rows_per_context
                    blocks += [rows[at : at + step] for at in range(0, len(rows), step)]
                blocks = [blocks[at] for at in rng.permutation(len(blocks))]
            self._epoch = (epoch, blocks)
        return self._epoch[1]

    def take(self, turn: int, batch: int) -> Ints:
        """Return the rows of this dataset's ``turn``-th batch: pass after pass, every row once a pass."""
        number = max(1, batch // self.grouping.rows_per_context) if self.contexts is not None else batch
        first = self.blocks(0)
        taken: list[Ints] = []
        for place in range(turn * number, (turn + 1) * number):
            epoch, at = divmod(place, len(first))
            taken.append(self.blocks(epoch)[at])
        return np.unique(np.concatenate(taken))


def part_of(
    name: str, rows: Rows, kind: Kind, settings: DatasetSettings, stage: StageSettings
) -> Part:
    """Cap a dataset and, where its rows have contexts and states, group it by them.

    Raises:
        RadgenError: a row has not the columns that its loss needs.
    """
    caps = [cap for cap in (settings.cap, stage.cap) if cap is not None]
    cap = min([len(rows), *caps])
    part = Part(name, rows, kind, settings, stage.grouping, stage.seed, np.arange(len(rows)), len(rows))
    first = rows[0]
    rows.texts(0, first, kind.texts)
    if kind.score:
        rows.score(0, first, kind.score)
    grouped = (
        bool(kind.states)
        and isinstance(first.get("context"), str)
        and all(isinstance(first.get(column), Mapping) for column in kind.states)
    )
    if not grouped or not (stage.grouping.form or stage.grouping.rows_per_context > 1):
        part.used = np.sort(part.rng(0).permutation(len(rows))[:cap])
        return part
    part.used, part.contexts = _whole_contexts(part, cap)
    if stage.grouping.form:
        part.targets = _learn(part)
    return part


def _whole_contexts(part: Part, cap: int) -> tuple[Ints, Ints]:
    """Return the rows within the cap, context by context, the last one cut; and their contexts."""
    numbers: dict[str, int] = {}
    contexts = np.array([numbers.setdefault(row["context"], len(numbers)) for row in part.rows], np.int64)
    rank = part.rng(0).permutation(len(numbers))
    order = np.argsort(rank[contexts], kind="stable")[:cap]
    return order, contexts[order]


def _learn(part: Part) -> forming.Targets:
    """Read the targets of pairs of states from the used rows."""
    targets = forming.Targets()
    for number in part.used:
        row = part.rows[number]
        states = [targets.number(row[column]) for column in part.kind.states]
        for a, b, column in part.kind.targets:
            targets.learn(states[a], states[b], part.rows.score(number, row, column))
    return targets


def segment(
    part: Part, numbers: Ints, place: dict[str, int], rng: np.random.Generator
) -> Segment:
    """Turn rows into positions of distinct texts, and form what can be formed beyond them.

    Args:
        place: positions of the texts of the step; new texts are added.
        rng: draws which formed rows are kept, where there are more than ``max_rows``.
    """
    rows = [part.rows[number] for number in numbers]
    written = []
    for number, row in zip(numbers, rows, strict=True):
        texts = part.rows.texts(number, row, part.kind.texts)
        written.append([place.setdefault(text, len(place)) for text in texts])
    if part.targets is not None:
        formed, scores = _formed(part, rows, written, part.targets)
        if len(formed) > part.grouping.max_rows:
            kept = np.sort(rng.permutation(len(formed))[: part.grouping.max_rows])
            formed, scores = formed[kept], None if scores is None else scores[kept]
        if len(formed):
            return Segment(part.name, formed, scores, {})
    score, given = part.kind.score, None
    if score:
        given = np.array([part.rows.score(n, row, score) for n, row in zip(numbers, rows, strict=True)])
    columns = {name: [row.get(name) for row in rows] for name in part.kind.columns}
    return Segment(part.name, np.array(written, np.int64), given, columns)


def _formed(
    part: Part, rows: Sequence[Mapping[str, Any]], written: Sequence[Sequence[int]], targets: forming.Targets
) -> tuple[Ints, Floats | None]:
    """Return the rows formed within each context, and their scores for pairs."""
    members: dict[str, dict[int, int]] = {}
    for row, places in zip(rows, written, strict=True):
        states = members.setdefault(str(row["context"]), {})
        for column, at in zip(part.kind.states, places, strict=True):
            states[at] = targets.number(row[column])
    formed, scores = [], []
    for texts in members.values():
        own = np.array(list(texts), np.int64)
        table = targets.table(np.array(list(texts.values()), np.int64))
        if part.kind.forms == "pairs":
            found, values = forming.pairs(table)
            scores.append(values)
        else:
            found = forming.triplets(table, part.grouping.min_gap)
        formed.append(own[found])
    return np.concatenate(formed), np.concatenate(scores) if scores else None
