"""Training: train."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import OntologyFiles, files

app = typer.Typer()


@app.command()
def train(
    stage: Annotated[
        str, typer.Option("--stage", help="1, 2, 3 or all; another stage's name, or a stage file (YAML).")
    ] = "all",
    data: Annotated[
        Path, typer.Option("--data", help="Folder with the datasets: DATA/FAMILY/NAME.")
    ] = Path("data"),
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the stages: OUT/stage1, with model/ in it, and so on.")
    ] = Path("models"),
    preset: Annotated[
        str | None,
        typer.Option("--preset", help="h100 or laptop, or a YAML file; laptop where there is no GPU."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Start from this: a folder, a hub id, or minilm (extra laptop)."),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps of each stage.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random draw.")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting: lr=2e-5, datasets.contrasts/size.weight=2; again for more."),
    ] = None,
    config: Annotated[
        list[Path] | None, typer.Option("--config", help="Your own YAML over the stage and the preset.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="Leave a dataset or a family out, e.g. radthought; again for more."),
    ] = None,
    reports: Annotated[
        Path | None,
        typer.Option("--reports", help="Reports with both sections: retrieval at every evaluation."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last whole checkpoint.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Start anew over another run of radgen.")] = False,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Take datasets that do not verify, or have no manifest.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the mixture, steps and expected time, and stop.")
    ] = False,
    ontology: OntologyFiles = None,
) -> None:
    """Train an encoder on the datasets: report alignment, single axes, cross-axis (spec §7).

    Several GPUs: torchrun --nproc-per-node 8 -m radgen train --stage 3 --preset h100.
    """
    from radgen.train.run import Order, close_ranks, rank
    from radgen.train.run import train as run

    order = Order(
        stage=stage, data=data, out=out, preset=preset, model=model, steps=steps, seed=seed,
        sets=tuple(sets or ()), config=tuple(config or ()), without=tuple(without or ()),
        reports=reports, ontology=files(ontology),
        resume=resume, force=force, verify=not no_verify, command=shlex.join(["radgen", *sys.argv[1:]]),
    )  # fmt: skip
    if dry_run:
        from rich.console import Console

        from radgen.train.plan import print_plan

        print_plan(order, Console(), _say if rank() == 0 else _nothing)
        return
    run(order, _say if rank() == 0 else _nothing)
    close_ranks()


def _say(text: str) -> None:
    from radgen.console import messages

    messages().print(f"radgen: {text}", markup=False)


def _nothing(_: str) -> None:
    """Say nothing: another process does."""
