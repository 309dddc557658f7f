"""Codebooks of finding states: radgen codebook build, radgen codebook classify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import Force, OntologyFiles, files

app = typer.Typer(no_args_is_help=True)

Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, …; the best there is if absent.")]
Cache = Annotated[
    Path | None, typer.Option("--cache", help="Folder that keeps vectors, so that no text is encoded twice.")
]


@app.command()
def build(
    model: Annotated[
        str,
        typer.Option("--model", help="A folder (of radgen train, too), a hub id, or minilm (extra laptop)."),
    ],
    data: Annotated[
        Path, typer.Option("--data", help="Where 'radgen states' wrote its sentences: its --out.")
    ] = Path("data"),
    out: Annotated[Path, typer.Option("--out", help="Folder for the codebook.")] = Path("codebook"),
    vectors: Annotated[
        int | None,
        typer.Option("--vectors", min=1, help="Vectors of each state; 40 if absent, as in the paper."),
    ] = None,
    findings: Annotated[
        str | None, typer.Option("--findings", help="Findings, joined by commas; all of the data if absent.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of k-means++; 42 if absent.")] = None,
    device: Device = None,
    cache: Cache = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another codebook in the place.")] = False,
) -> None:
    """Make codebook vectors for each state of each finding, and thresholds chosen on validation."""
    from radgen.console import counter, messages
    from radgen.train.codebook.command import build as run

    with counter("sentences encoded") as show:
        made = run(
            model, data, out, vectors=vectors, findings=findings, seed=seed, device=device, cache=cache,
            force=force, show=show,
        )  # fmt: skip
    for line in made.summary(out):
        messages().print(line, markup=False)


@app.command()
def classify(
    reports: Annotated[
        Path, typer.Argument(help="Reports in any form that 'radgen reports' reads.", metavar="REPORTS")
    ],
    codebook: Annotated[Path, typer.Option("--codebook", help="A folder of 'radgen codebook build'.")] = Path(
        "codebook"
    ),
    out: Annotated[Path, typer.Option("--out", help="The JSONL file to write.")] = Path("states.jsonl"),
    model: Annotated[
        str | None, typer.Option("--model", help="The codebook's model, where it lies elsewhere now.")
    ] = None,
    assign: Annotated[
        str,
        typer.Option(
            "--assign",
            help="Which findings a sentence speaks of: by the ontology's keywords, or the codebook.",
        ),
    ] = "keywords",
    device: Device = None,
    cache: Cache = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """State and similarity of each finding, for every sentence and every report; nothing is trained."""
    from radgen.console import counter, messages
    from radgen.train.codebook.command import classify as run

    with counter("reports classified") as show:
        counts = run(
            reports, codebook, out, model=model, assign=assign, device=device, cache=cache, force=force,
            ontology=files(ontology), show=show,
        )  # fmt: skip
    for line in counts.summary(out):
        messages().print(line, markup=False)
