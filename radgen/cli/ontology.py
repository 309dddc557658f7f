"""radgen ontology: list, show, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import OntologyFiles

app = typer.Typer(no_args_is_help=True, help="Look things up in the ontology, check your own file.")


@app.command("list")
def ontology_list(
    kind: Annotated[
        str | None, typer.Option(help="Only this kind: disease, device, procedure, quality, anatomy.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="Only this organ system, e.g. lung.")] = None,
    axis: Annotated[str | None, typer.Option(help="Only findings that have this axis, e.g. size.")] = None,
    modality: Annotated[str | None, typer.Option(help="Only findings of xr or ct.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also tags that mean another finding, and tags that are none.")
    ] = False,
    ontology: OntologyFiles = None,
) -> None:
    """List the findings: tag, name, kind, organ system, axes, modalities, reports in the papers' tables."""
    from radgen.ontology.browse import select
    from radgen.ontology.load import load_ontology
    from radgen.ontology.show import print_list

    loaded = load_ontology(ontology or ())
    print_list(
        loaded, select(loaded, kind=kind, system=system, axis=axis, modality=modality), every_tag=every
    )


@app.command("show")
def ontology_show(
    tag: Annotated[str, typer.Argument(help="A tag or a name, e.g. pleural_effusion or 'pleural fluid'.")],
    ontology: OntologyFiles = None,
) -> None:
    """Show everything about one finding."""
    from radgen.ontology.browse import describe, find_tag
    from radgen.ontology.load import load_ontology
    from radgen.ontology.show import print_description

    loaded = load_ontology(ontology or ())
    print_description(describe(loaded, find_tag(loaded, tag)))


@app.command("check")
def ontology_check(
    file: Annotated[Path, typer.Argument(help="Your YAML file of findings, phrasings and constants.")],
) -> None:
    """Check your own YAML file; every mistake with its line, what was expected and the nearest right name."""
    from radgen.errors import OntologyError
    from radgen.extract.cues import check_lexicon
    from radgen.generators.check import check_sections
    from radgen.templates.check import check_file

    problems = [*check_file(file), *check_sections(file), *check_lexicon(file)]
    if problems:
        count = f"{len(problems)} mistake{'s' if len(problems) > 1 else ''} in {file}"
        raise OntologyError([*problems, count])
    typer.echo(f"{file}: no mistakes")
