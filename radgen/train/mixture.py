"""The mixture: which dataset a step takes, and which of its rows (spec §7: Σ p·w·L).

Every draw is a function of seed, dataset and number alone: the same on every rank, and after a resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
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


class Batch(NamedTuple):
    """What one step learns from.

    Attributes:
        dataset: its name.
        texts: distinct.
        rows: shape (R, k), positions in ``texts``.
        scores: shape (R,), None for triplets.
        tokens: texts are cut after so many.
        columns: further columns that the loss asks for, one value a row.
    """

    dataset: str
    texts: list[str]
    rows: Ints
    scores: Floats | None
    tokens: int
    columns: Mapping[str, list[Any]] = MappingProxyType({})


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


class Mixture:
    """All parts, and the order in which steps take them."""

    def __init__(self, parts: Sequence[Part], settings: StageSettings) -> None:
        self.parts = list(parts)
        self.settings = settings
        sizes = np.array([part.size for part in self.parts], np.float64)
        self.probabilities: Floats = sizes / sizes.sum()
        self.steps = settings.steps or max(1, round(sizes.sum() / settings.batch))
        self.order = self._order()
        self._turns = self._count_turns()

    def _order(self) -> Ints:
        """Return the part of each step.

        Systematic sampling: each part gets its share of the steps, rounded up or down at random, so that a
        short stage has the mixture that was asked for; in expectation exactly p.
        """
        rng = np.random.default_rng([self.settings.seed, 7])
        places = (np.arange(self.steps) + rng.random()) / self.steps
        # Parts in a random order: rounding favours none.
        mixed = rng.permutation(len(self.parts))
        edges = np.cumsum(self.probabilities[mixed])
        drawn = np.minimum(np.searchsorted(edges, places, side="right"), len(self.parts) - 1)
        return np.asarray(rng.permutation(mixed[drawn]), np.int64)

    def _count_turns(self) -> Ints:
        """Return for each step how many steps before it took the same part."""
        turns = np.empty_like(self.order)
        seen = np.zeros(len(self.parts), np.int64)
        for step, part in enumerate(self.order):
            turns[step] = seen[part]
            seen[part] += 1
        return turns

    def __len__(self) -> int:
        return self.steps

    def batch(self, step: int) -> Batch:
        """Return what a step (from 0) learns from."""
        part = self.parts[self.order[step]]
        numbers = part.take(int(self._turns[step]), self.settings.batch)
        tokens = self.settings.tokens_at(step / self.steps)
        rows = [part.rows[number] for number in numbers]
        return form(part, numbers, rows, tokens, part.rng(2, step))


def form(
    part: Part, numbers: Ints, rows: Sequence[Mapping[str, Any]], tokens: int, rng: np.random.Generator
) -> Batch:
    """Turn rows into a batch: distinct texts once, rows as positions, and what can be formed beyond them."""
    place: dict[str, int] = {}
    written = []
    for number, row in zip(numbers, rows, strict=True):
        texts = part.rows.texts(number, dict(row), part.kind.texts)
        written.append([place.setdefault(text, len(place)) for text in texts])
    score = part.kind.score
    if part.targets is not None:
        formed, scores = _formed(part, rows, written, part.targets)
        if len(formed):
            if len(formed) > part.grouping.max_rows:
                kept = np.sort(rng.permutation(len(formed))[: part.grouping.max_rows])
                formed, scores = formed[kept], None if scores is None else scores[kept]
            return Batch(part.name, list(place), formed, scores if score else None, tokens)
    given = None
    if score:
        given = np.array([part.rows.score(n, dict(r), score) for n, r in zip(numbers, rows, strict=True)])
    columns = {name: [row.get(name) for row in rows] for name in part.kind.columns}
    return Batch(part.name, list(place), np.array(written, np.int64), given, tokens, columns)


def _formed(
    part: Part, rows: Sequence[Mapping[str, Any]], written: Sequence[Sequence[int]], targets: forming.Targets
) -> tuple[Ints, Floats | None]:
    """Return the rows formed within each context of the batch, and their scores for pairs."""
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

