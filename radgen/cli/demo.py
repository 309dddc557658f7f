"""The demo: demo."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import Workers

app = typer.Typer()


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for all that the demo makes.")] = Path("demo"),
    scale: Annotated[
        float | None,
        typer.Option("--scale", min=0.0001, max=1.0, help="Share of the collection's full volume."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random draw.")] = None,
    settings: Annotated[
        list[Path] | None,
        typer.Option("--settings", help="Your own YAML over the packaged demo.yaml; may be given again."),
    ] = None,
    workers: Workers = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
) -> None:
    """From nothing to the page of an evaluation: a small collection, two stages on MiniLM, before and after.

    Started again it goes on where it stopped; a changed option makes what depends on it anew, beside the old.
    """
    from rich.console import Console

    from radgen.console import messages
    from radgen.generators.stream import default_workers
    from radgen.train.demo import open_page, run
    from radgen.train.demo_settings import load_demo

    def say(text: str) -> None:
        messages().print(f"radgen: {text}", markup=False)

    chosen = load_demo(settings or (), scale=scale, seed=seed)
    command = shlex.join(["radgen", *sys.argv[1:]])
    page = run(out, chosen, command, workers or default_workers(), say)
    opened = not no_open and open_page(page)
    Console().print(
        f"page: {page}{'' if opened else ' (open it in a browser)'}", soft_wrap=True, highlight=False
    )
