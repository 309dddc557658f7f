"""Rows in order, from any number of processes: the same rows whatever the number.

Blocks are numbered. Workers make them; one consumer takes their rows in the order of the numbers, drops
what stands already, fills the splits to their quotas, and stops. Nothing depends on who was faster.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from radgen.errors import DatasetError
from radgen.generators.blocks import Block, Row
from radgen.generators.contrasts import Contrasts, Job, schedule
from radgen.generators.holdout import Holdout
from radgen.generators.pools import pool
from radgen.generators.recipes import recipe as recipe_of
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.load import Ontology, load_ontology
from radgen.templates.realiser import Realiser

CHUNK = 12
#: Blocks in a row without a single new row after which a dataset is held to be exhausted.
STALL = 400


@dataclass(frozen=True)
class Order:
    """Which dataset to make: everything that its rows depend on.

    Attributes:
        ontology_files: the user's files over the packaged ontology.
        family: ``contrasts``, ``pairs`` or ``crossaxis``.
        name: the dataset's name within the family.
        rows: rows in the three splits together; the recipe's volume if None.
        seed: seed of every random draw.
        holdout: what is kept out of train, or None.
        only: the one split to make rows of, for the judging sets; all three if None.
    """

    family: str
    name: str
    rows: int | None = None
    seed: int = 42
    ontology_files: tuple[str, ...] = ()
    holdout: str | None = None
    only: Split | None = None

    def ontology(self) -> Ontology:
        """Load the ontology that the order names."""
        return load_ontology(self.ontology_files)

    def recipe(self, realiser: Realiser | None = None) -> Contrasts:
        """Return what makes the dataset."""
        ontology = self.ontology()
        holdout = Holdout.of(self.holdout, ontology) if self.holdout else None
        made = recipe_of(ontology, realiser or Realiser(ontology), self.family, self.name, self.seed, holdout)
        made.only = self.only
        return made


@dataclass
class Tally:
    """What came out of a stream: rows a split, texts and how many are distinct, what each filter took."""

    rows: Counter[Split] = field(default_factory=Counter)
    texts: int = 0
    distinct: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


_worker: dict[str, Any] = {}


def _start(order: Order) -> None:
    gc.disable()  # blocks make no cycles, and collecting costs a tenth of the time
    _worker["recipe"] = order.recipe(_worker.get("realiser"))


def _blocks(jobs: list[Job]) -> list[Block]:
    made: Contrasts = _worker["recipe"]
    return [made.block(job) for job in jobs]


def _chunks(jobs: Iterator[Job]) -> Iterator[list[Job]]:
    while chunk := list(itertools.islice(jobs, CHUNK)):
        yield chunk


def _make(order: Order, made: Contrasts, workers: int) -> Iterator[Block]:
    """Yield the blocks of a dataset in order."""
    jobs = schedule(made)
    if workers <= 1:
        for job in jobs:
            yield made.block(job)
        return
    with pool(workers, _start, (order,)) as processes:
        waiting: deque[Any] = deque()
        chunks = _chunks(jobs)
        try:
            for chunk in chunks:
                waiting.append(processes.submit(_blocks, chunk))
                if len(waiting) > 3 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def stream(
    order: Order,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    realiser: Realiser | None = None,
    recipe: Contrasts | None = None,
) -> Iterator[tuple[Row, Tally]]:
    """Yield exactly the rows of an order, each with the tally so far.

    Args:
        recipe: the order's recipe, where the caller has it and has checked its rows already.

    Raises:
        DatasetError: the axis cannot give so many rows; says how many it can and which filter took the rest.
    """
    made = recipe or order.recipe(realiser)
    axes = made.ontology.axes
    wanted = order.rows if order.rows is not None else made.default_rows
    if recipe is None:
        check_rows(order, made, wanted)
    quotas = Splitter(axes.splits).quotas(wanted)
    if order.only is not None:
        quotas = {split: wanted if split == order.only else 0 for split in SPLITS}
    tally = Tally()
    seen_rows: set[tuple[bytes, ...]] = set()
    seen_texts: set[bytes] = set()
    barren = 0
    if workers > 1:
        _worker["realiser"] = made.realiser
    for block in _make(order, made, workers):
        tally.rejected.update(block.rejected)
        before = tally.rows.total()
        for row in block.rows:
            if tally.rows[row.split] >= quotas[row.split]:
                continue
            if row.hashes in seen_rows:
                tally.rejected["the same row again"] += 1
                continue
            new = sum(value not in seen_texts for value in set(row.hashes))
            enough = (tally.distinct + new) >= axes.min_distinct_texts * (tally.texts + len(row.hashes))
            if new < len(row.hashes) and not enough:
                tally.rejected["its texts stand already"] += 1
                continue
            seen_rows.add(row.hashes)
            seen_texts.update(row.hashes)
            tally.rows[row.split] += 1
            tally.texts += len(row.hashes)
            tally.distinct = len(seen_texts)
            yield row, tally
        if progress is not None:
            progress(tally.rows.total(), wanted)
        if tally.rows.total() == wanted:
            return
        barren = barren + 1 if tally.rows.total() == before else 0
        if barren >= STALL:
            break
    raise DatasetError(_short(order, tally, wanted))


def check_rows(order: Order, made: Contrasts, wanted: int) -> None:
    """Refuse an order that cannot be filled, before anything is made.

    Raises:
        DatasetError: fewer than one row, or more than all contexts can give.
    """
    if wanted < 1:
        raise DatasetError(f"--n {wanted}: expected at least 1 row")
    per = made.ontology.axes.max_rows_per_context
    contexts = 0
    for tag in made.candidates():
        contexts += len(made.contexts(tag))
        if wanted <= contexts * per:
            return  # no need to count them all
    if not contexts:
        raise DatasetError(f"{order.family}/{order.name}: no finding of the ontology has this axis")
    raise DatasetError(
        f"{order.family}/{order.name} can give {contexts * per:,} rows, {wanted:,} were asked for: "
        f"its {contexts:,} contexts give at most {per} rows each (max_rows_per_context in axes.yaml)"
    )


def _short(order: Order, tally: Tally, wanted: int) -> str:
    filters = ", ".join(f"{name}: {count:,}" for name, count in tally.rejected.most_common(3)) or "none"
    return (
        f"{order.family}/{order.name} gave {tally.rows.total():,} of the {wanted:,} rows asked for and has "
        f"no more; the filters took: {filters}"
    )


def default_workers() -> int:
    """Return the number of processes to use: one for each core that this process may run on."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return max(1, multiprocessing.cpu_count())
