"""Making datasets: from an order to a folder, and what a preview shows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.generators.card import card
from radgen.generators.contrasts import Contrasts
from radgen.generators.folders import MANIFEST, Writer, dump, finished, replacing, write_file
from radgen.generators.holdout import Holdout
from radgen.generators.identity import constants, fingerprint_of
from radgen.generators.pairs import CrossAxis, ScoredPairs
from radgen.generators.recipes import RECIPE_VERSION
from radgen.generators.splits import SPLITS
from radgen.generators.stream import Order, Tally, check_rows, stream
from radgen.templates.realiser import Realiser


@dataclass
class Made:
    """What came of one order.

    Attributes:
        folder: where the dataset stands.
        rows: rows a split.
        rejected: what each filter took.
        targets: rows a target, rounded to two digits.
        examples: three rows.
        fresh: False where the dataset already stood there.
        distinct: share of the texts that are distinct.
    """

    folder: Path
    rows: dict[str, int]
    rejected: dict[str, int]
    targets: dict[str, int]
    examples: list[dict[str, Any]]
    fresh: bool
    distinct: float = 1.0
    name: str = ""


def command_of(order: Order) -> str:
    """Return the command line that makes a dataset, without what does not change its rows."""
    words = (
        ["radgen crossaxis", f"--combination {order.name}"]
        if order.family == "crossaxis"
        else ["radgen contrasts", f"--axis {order.name}"]
    )
    if order.rows is not None:
        words.append(f"--n {order.rows}")
    words.append(f"--seed {order.seed}")
    if order.holdout:
        words.append(f"--holdout {order.holdout}")
    words += [f"--ontology {Path(path).name}" for path in order.ontology_files]
    return " ".join(words)


def fingerprint(order: Order, recipe: Contrasts) -> str:
    """Return the hash of all that the rows depend on: order, ontology, phrasings, version of the recipe.

    Worker counts and places are left out: they change no byte of the rows.
    """
    rows = order.rows if order.rows is not None else recipe.default_rows
    parts = {
        "recipe_version": RECIPE_VERSION,
        "family": order.family,
        "name": order.name,
        "seed": order.seed,
        "holdout": {"kind": order.holdout} if order.holdout else None,
        "ontology": recipe.ontology.fingerprint,
        "phrasings": recipe.realiser.phrasings.fingerprint,
    }
    return fingerprint_of(parts, rows)


def preview(order: Order, rows: int) -> tuple[Contrasts, list[dict[str, Any]]]:
    """Return the recipe and the first ``rows`` rows of a dataset, from all splits; nothing is written.

    Raises:
        DatasetError: fewer than one row was asked for, or more than the dataset has.
    """
    made = order.recipe()
    check_rows(order, made, rows)
    wanted = Order(**{**order.__dict__, "rows": max(rows, 40)})
    found = itertools.islice((row for row, _ in stream(wanted, realiser=made.realiser)), rows)
    return made, [orjson.loads(row.line) for row in found]


def make(
    order: Order,
    out: Path,
    *,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
    realiser: Realiser | None = None,
) -> Made:
    """Write one dataset to ``out/<family>/<name>``, or find that it stands there already.

    Raises:
        DatasetError: the rows cannot be made, or the place cannot be written or holds something else.
    """
    recipe = order.recipe(realiser)
    wanted = order.rows if order.rows is not None else recipe.default_rows
    apart = max(1, min(400, wanted // 4))  # examples of different contexts, where there are so many rows
    folder = out / order.family / order.name
    identity = fingerprint(order, recipe)
    if finished(folder, identity, force):
        return _found(folder, order)
    check_rows(order, recipe, wanted)
    tally = Tally()
    targets: Counter[str] = Counter()
    examples: list[dict[str, Any]] = []
    label = "score" if "score" in recipe.columns else "negative_target"
    with replacing(folder) as partial:
        writer = Writer(partial)
        try:
            for row, running in stream(order, workers=workers, progress=progress, recipe=recipe):
                writer.write(row.split, row.line)
                tally = running
                if len(examples) < 3 and row.split == "train" and writer.rows["train"] % apart == 1 % apart:
                    examples.append(orjson.loads(row.line))
                start = row.line.index(b'"%b":' % label.encode()) + len(label) + 3
                targets[f"{float(row.line[start : row.line.index(b',', start)]):.2f}"] += 1
        except BaseException:
            writer.close(keep=False)
            raise
        writer.close()
        manifest = _manifest(order, recipe, identity, writer, tally, targets)
        write_file(
            partial / "README.md",
            card(
                title=f"radgen {order.family}: {order.name}",
                about=_about(recipe),
                columns=recipe.columns,
                texts=recipe.texts,
                label="score" if "score" in recipe.columns else None,
                rows=writer.rows,
                manifest=manifest,
                struct=_struct(recipe),
                examples=examples,
            ).encode(),
        )
        write_file(partial / MANIFEST, dump(manifest))
    return Made(
        folder,
        dict(writer.rows),
        dict(tally.rejected),
        dict(targets),
        examples,
        True,
        tally.distinct / max(1, tally.texts),
        order.name,
    )


def _manifest(
    order: Order, recipe: Contrasts, identity: str, writer: Writer, tally: Tally, targets: Counter[str]
) -> dict[str, Any]:
    ontology = recipe.ontology
    return {
        "radgen": "dataset",
        "family": order.family,
        "name": order.name,
        "command": command_of(order),
        "version": __version__,
        "recipe_version": RECIPE_VERSION,
        "seed": order.seed,
        "fingerprint": identity,
        "ontology": ontology.fingerprint,
        "phrasings": recipe.realiser.phrasings.fingerprint,
        "columns": list(recipe.columns),
        "files": writer.files(),
        "rejected": dict(sorted(tally.rejected.items())),
        "texts": {"all": tally.texts, "distinct": tally.distinct},
        "targets": dict(sorted(targets.items(), key=lambda item: float(item[0]))),
        "constants": constants(ontology, order.family, order.name),
        "holdout": Holdout.of(order.holdout, ontology).describe() if order.holdout else None,
    }


def _struct(recipe: Contrasts) -> dict[str, list[str]]:
    if not isinstance(recipe, CrossAxis):
        return {}
    graded = [axis for axis in recipe.axes if recipe.ontology.axis(axis).kind != "side"]
    return {"distances": graded, "sigmas": graded}


def _about(recipe: Contrasts) -> str:
    if isinstance(recipe, CrossAxis):
        return (
            f"Pairs of sentences that differ in {' and '.join(recipe.axes)} and in nothing else. The score "
            "is the product of exp(-d²/2σ²) over the graded axes, less a penalty for the side."
        )
    if isinstance(recipe, ScoredPairs):
        return (
            f"Pairs of sentences that differ in {recipe.axis} and in nothing else. The score is "
            "2·exp(-d²/2σ²)-1 with d = |log2(a/b)|."
        )
    held = " The zone or lobe is stated and fixed." if recipe.controlled else ""
    return (
        f"Triplets of sentences that differ in {recipe.axis} and in nothing else; the positive is nearer to "
        f"the anchor than the negative by at least 0.20 of the graded target.{held}"
    )


def _found(folder: Path, order: Order) -> Made:
    manifest = orjson.loads((folder / MANIFEST).read_bytes())
    rows: dict[str, int] = {split: manifest["files"][f"{split}.jsonl"]["rows"] for split in SPLITS}
    with (folder / "train.jsonl").open("rb") as file:
        examples = [orjson.loads(line) for line in itertools.islice(file, 3)]
    texts = manifest["texts"]
    return Made(
        folder,
        rows,
        manifest["rejected"],
        manifest["targets"],
        examples,
        False,
        texts["distinct"] / max(1, texts["all"]),
        order.name,
    )
