"""Sentences by finding and state: radgen states."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import Force, OntologyFiles, Out, Seed, files

app = typer.Typer()

Findings = Annotated[
    str | None,
    typer.Option("--findings", help="Findings, joined by commas; those of states.yaml if absent."),
]


@app.command()
def states(
    reports: Annotated[
        Path | None,
        typer.Argument(
            help="Reports in any form that 'radgen reports' reads; synthetic ones if absent.",
            metavar="[REPORTS]",
        ),
    ] = None,
    findings: Findings = None,
    out: Out = Path("data"),
    n: Annotated[
        int | None,
        typer.Option(
            "--n", help="Pairs, and as many triplets, in all splits; the settings' volume if absent."
        ),
    ] = None,
    seed: Seed = 42,
    extracted: Annotated[
        Path | None,
        typer.Option("--extracted", help="Output of 'radgen extract' for them; read by the rules if absent."),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Add synthetic sentences to those of the reports.")
    ] = False,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Sort sentences by finding and state, and make pairs and triplets within and across the states."""
    from rich.console import Console

    from radgen.console import counter
    from radgen.generators.states.make import StatesOrder, make_states
    from radgen.generators.states.show import print_states

    order = StatesOrder(reports, findings, n, seed, extracted, synthetic, files(ontology))
    with counter("reports read") as show:
        made = make_states(order, out, force=force, progress=show)
    print_states(made, Console())
