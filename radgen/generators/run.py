"""Running orders: one dataset over several processes, or several datasets side by side."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from radgen.console import messages
from radgen.generators.folders import finished
from radgen.generators.make import Made, fingerprint, make
from radgen.generators.pools import pool
from radgen.generators.recipes import combination_names, contrast_names, further_names
from radgen.generators.stream import Order, check_rows
from radgen.ontology.load import load_ontology
from radgen.templates.realiser import Realiser

_realisers: dict[tuple[str, ...], Realiser] = {}


def contrast_orders(
    axis: str, rows: int | None, seed: int, files: tuple[str, ...], holdout: str | None
) -> list[Order]:
    """Return the orders of ``radgen contrasts --axis``: one dataset, or ``all``."""
    ontology = load_ontology(files)
    names = contrast_names(ontology) if axis == "all" else [axis]
    return [
        Order("pairs" if name.endswith("_pairs") else "contrasts", name, rows, seed, files, holdout)
        for name in names
    ]


def crossaxis_orders(
    combination: str, rows: int | None, seed: int, files: tuple[str, ...], holdout: str | None
) -> list[Order]:
    """Return the orders of ``radgen crossaxis``; ``rows`` of ``all`` are shared out over the combinations."""
    ontology = load_ontology(files)
    names = combination_names(ontology) if combination == "all" else [combination]
    shares = shared(rows, len(names)) if rows is not None else [None] * len(names)
    return [
        Order("crossaxis", name, share, seed, files, holdout)
        for name, share in zip(names, shares, strict=True)
    ]


def shared(rows: int, parts: int) -> list[int]:
    """Share rows out as evenly as whole numbers allow.

    >>> shared(10, 4)
    [3, 3, 2, 2]
    """
    return [rows // parts + (place < rows % parts) for place in range(parts)]


def collection_orders(seed: int, files: tuple[str, ...], holdout: str | None, scale: float) -> list[Order]:
    """Return the orders of ``radgen collection``: all that stage 2 and 3 need, at ``scale`` of its volume."""
    ontology = load_ontology(files)
    names = [*contrast_names(ontology), *further_names(ontology)]
    orders = [
        Order("pairs" if name.endswith("_pairs") else "contrasts", name, None, seed, files, holdout)
        for name in names
    ]
    orders += crossaxis_orders("all", ontology.axes.crossaxis.rows, seed, files, holdout)
    if scale == 1.0:
        return orders
    realiser = Realiser(ontology)
    sizes = [order.rows or order.recipe(realiser).default_rows for order in orders]
    return [
        Order(**{**order.__dict__, "rows": max(1, round(size * scale))})
        for order, size in zip(orders, sizes, strict=True)
    ]


def check_all(orders: Sequence[Order], out: Path, force: bool) -> None:
    """Refuse the whole run before anything is made, if any order cannot be carried out.

    Raises:
        DatasetError: an order asks for too many rows, or its place holds something else.
    """
    for order in orders:
        recipe = order.recipe(realiser_of(order))
        if order.rows is not None and not 0 < order.rows <= recipe.default_rows:
            check_rows(order, recipe, order.rows)  # the recipe's own volume is there; counting takes seconds
        finished(out / order.family / order.name, fingerprint(order, recipe), force)


def run(orders: Sequence[Order], out: Path, *, workers: int, force: bool) -> list[Made]:
    """Make datasets, with a progress bar on a terminal; several are made side by side.

    Raises:
        DatasetError: see :func:`check_all`, and what stops a dataset on the way.
    """
    if len(orders) > 1:
        check_all(orders, out, force)
    else:  # `make` checks it
        with _bar() as bar:
            task = bar.add_task(orders[0].name, total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            order = orders[0]
            return [
                make(order, out, workers=workers, force=force, progress=show, realiser=realiser_of(order))
            ]
    with _bar() as bar:
        task = bar.add_task("datasets", total=len(orders))
        made = []
        for one in _side_by_side(orders, out, workers, force):
            made.append(one)
            bar.update(task, advance=1, description=one.name)
        return made


def realiser_of(order: Order) -> Realiser:
    """Return the process's realiser: what it has found out about frames and forms serves every dataset."""
    if order.ontology_files not in _realisers:
        _realisers.clear()
        _realisers[order.ontology_files] = Realiser(order.ontology())
    return _realisers[order.ontology_files]


def _make_one(arguments: tuple[Order, str, bool]) -> Made:
    order, out, force = arguments
    gc.disable()  # as in the workers of one dataset
    try:
        return make(order, Path(out), force=force, realiser=realiser_of(order))
    finally:
        gc.enable()
        gc.collect()


def _side_by_side(orders: Sequence[Order], out: Path, workers: int, force: bool) -> Iterator[Made]:
    work = [(order, str(out), force) for order in orders]
    if workers <= 1:
        yield from map(_make_one, work)
        return
    with pool(min(workers, len(work))) as processes:
        try:
            yield from processes.map(_make_one, work)
        except BaseException:
            processes.shutdown(wait=True, cancel_futures=True)
            raise


@contextmanager
def _bar() -> Iterator[Progress]:
    console = messages()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar
