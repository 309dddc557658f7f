"""Datasets: contrasts, crossaxis, collection, benchmark, verify, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from radgen.cli.options import Force, HoldoutKind, OntologyFiles, Out, Preview, Rows, Seed, Workers, files
from radgen.errors import RadgenError

app = typer.Typer()


def _make_datasets(
    orders: Any, out: Path, workers: int | None, force: bool, preview: int | None
) -> None:
    from rich.console import Console

    from radgen.generators.make import preview as first_rows
    from radgen.generators.run import run
    from radgen.generators.show import preview_table, print_made
    from radgen.generators.stream import default_workers

    if preview is not None:
        for order in orders:
            _, rows = first_rows(order, preview)
            Console().print(preview_table(rows, f"{order.family}/{order.name}"))
        return
    print_made(run(orders, out, workers=workers or default_workers(), force=force), Console())


@app.command()
def contrasts(
    axis: Annotated[
        str,
        typer.Option(
            "--axis",
            help="size, count, laterality, location, severity, temporal_change, density, margin, certainty, "
            "distribution; laterality_controlled; size_pairs, count_pairs; presence, finding; or all.",
        ),
    ] = "all",
    n: Rows = None,
    seed: Seed = 42,
    out: Out = Path("data"),
    workers: Workers = None,
    preview: Preview = None,
    holdout: HoldoutKind = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make triplets whose texts differ in exactly one clinical detail (spec §2)."""
    from radgen.generators.run import contrast_orders

    orders = contrast_orders(axis, n, seed, files(ontology), holdout)
    _make_datasets(orders, out, workers, force, preview)


@app.command()
def crossaxis(
    combination: Annotated[
        str, typer.Option("--combination", help="Two axes, e.g. size_laterality, or all.")
    ] = "all",
    n: Rows = None,
    seed: Seed = 42,
    out: Out = Path("data"),
    workers: Workers = None,
    preview: Preview = None,
    holdout: HoldoutKind = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make scored pairs whose texts differ in two details at once (spec §3)."""
    from radgen.generators.run import crossaxis_orders

    orders = crossaxis_orders(combination, n, seed, files(ontology), holdout)
    _make_datasets(orders, out, workers, force, preview)


@app.command()
def collection(
    out: Out = Path("data"),
    seed: Seed = 42,
    scale: Annotated[
        float, typer.Option("--scale", min=0.0001, max=1.0, help="Share of the full volume.")
    ] = 1.0,
    workers: Workers = None,
    holdout: HoldoutKind = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make everything that training stages 2 and 3 need: all contrasts, pairs, cross-axis, judging sets."""
    from rich.console import Console

    from radgen.generators.collection import make_collection
    from radgen.generators.show import made_table
    from radgen.generators.stream import default_workers

    made = make_collection(
        out,
        seed=seed,
        ontology_files=files(ontology),
        holdout=holdout,
        scale=scale,
        workers=workers or default_workers(),
        force=force,
    )
    Console().print(made_table(made))
    Console().print(f"collection: {out} (README.md lists it)", soft_wrap=True, highlight=False)


@app.command()
def benchmark(
    out: Out = Path("data"),
    workers: Workers = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Write the three judging sets: Contrast-10, CrossAxis-8, Probe-13 (test split only)."""
    from rich.console import Console

    from radgen.generators.judging import make_judging
    from radgen.generators.show import made_table
    from radgen.generators.stream import default_workers

    made = make_judging(
        out, ontology_files=files(ontology), workers=workers or default_workers(), force=force
    )
    Console().print(made_table(made))


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A dataset folder, or a folder that holds some.")],
    deep: Annotated[
        bool, typer.Option("--deep", help="Also extract every text again and compare it with its state.")
    ] = False,
    workers: Workers = None,
    ontology: OntologyFiles = None,
) -> None:
    """Recompute targets, filters, splits and hashes of datasets from their rows alone."""
    from rich.console import Console

    from radgen.generators.show import print_verdict
    from radgen.generators.stream import default_workers
    from radgen.generators.verify import verify as verdicts

    wrong = 0
    for verdict in verdicts(folder, files(ontology), workers or default_workers()):
        print_verdict(verdict, Console())
        wrong += verdict.count
    if deep:
        from radgen.generators.show import print_deep
        from radgen.generators.verify import dataset_folders
        from radgen.ontology.load import load_ontology

        loaded = load_ontology(files(ontology))
        for found in dataset_folders(folder):
            wrong += print_deep(found, loaded, workers or default_workers(), Console())
    if wrong:
        raise RadgenError(f"{folder}: {wrong:,} problems")


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A JSONL file of a radgen dataset.")],
    row: Annotated[int, typer.Argument(help="Number of the row, from 1.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    ontology: OntologyFiles = None,
) -> None:
    """Show how the target of a row comes about: states side by side, distances, the arithmetic."""
    from radgen.generators.explain import explain as explained
    from radgen.generators.explain import print_explained, read_row
    from radgen.ontology.load import load_ontology

    found = explained(read_row(file, row), load_ontology(files(ontology)))
    if as_json:
        import orjson

        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    from rich.console import Console

    print_explained(found, Console())
