"""Similarity: radsim, pairs, triplets, perturb, discrepancies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from radgen.cli.options import Force, OntologyFiles, Out, Rows, Seed, files
from radgen.errors import RadgenError

app = typer.Typer()


@app.command()
def radsim(
    text_a: Annotated[str, typer.Argument(help="A description.", metavar="TEXT_A")],
    text_b: Annotated[str, typer.Argument(help="The description to compare it with.", metavar="TEXT_B")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    ontology: OntologyFiles = None,
) -> None:
    """Score two texts by what they state, with the table that makes up the score."""
    from radgen.console import messages
    from radgen.generators.radsim.show import as_mapping, print_score, scored_texts

    score, notes = scored_texts(text_a, text_b, files(ontology))
    for note in notes:
        messages().print(f"radgen: {note}", markup=False)
    if json:
        import orjson

        typer.echo(orjson.dumps(as_mapping(score)).decode())
    else:
        print_score(score)


ReportsPath = Annotated[
    Path, typer.Argument(help="Reports in any form that 'radgen reports' reads.", metavar="REPORTS")
]
Extracted = Annotated[
    Path | None,
    typer.Option("--extracted", help="Output of 'radgen extract' for them; read by the rules if absent."),
]
Truth = Annotated[
    bool, typer.Option("--truth", help="Synthetic reports: their truth is what the findings sections state.")
]


def _report_order(
    reports: Path,
    rows: int | None,
    seed: int,
    ontology: list[Path] | None,
    extracted: Path | None = None,
    truth: bool = False,
) -> Any:
    from radgen.generators.similarity.make import ReportOrder

    return ReportOrder(reports, rows, seed, extracted, truth, files(ontology))


def _make_from_reports(make: Any, *arguments: Any, force: bool) -> None:
    from rich.console import Console

    from radgen.console import counter
    from radgen.generators.similarity.show import print_made_from_reports

    with counter("reports read") as show:
        made = make(*arguments, force=force, progress=show)
    print_made_from_reports(made, Console())


@app.command()
def pairs(
    reports: ReportsPath,
    level: Annotated[str, typer.Option(help="sentence, findings or impression.")] = "findings",
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    extracted: Extracted = None,
    truth: Truth = False,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make pairs of texts of reports, scored by RadSim, even over the whole range of scores."""
    from radgen.generators.similarity.make import make_pairs

    order = _report_order(reports, n, seed, ontology, extracted, truth)
    _make_from_reports(make_pairs, order, level, out, force=force)


@app.command()
def triplets(
    reports: ReportsPath,
    level: Annotated[str, typer.Option(help="report or sentence.")] = "report",
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    extracted: Extracted = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Mine triplets of reports or sentences by similarity gap, with hard negatives."""
    from radgen.generators.similarity.make import make_triplets

    order = _report_order(reports, n, seed, ontology, extracted)
    _make_from_reports(make_triplets, order, level, out, force=force)


@app.command()
def perturb(
    reports: ReportsPath,
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    extracted: Extracted = None,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Reorder sections, add and leave out findings; the target says how much is left."""
    from radgen.generators.similarity.perturb import make_perturbations

    order = _report_order(reports, n, seed, ontology, extracted)
    _make_from_reports(make_perturbations, order, out, force=force)


def _rewriting(help_text: str, *names: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel="Paraphrases and condensations by a model")


@app.command()
def discrepancies(
    reports: ReportsPath,
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    force: Force = False,
    ontology: OntologyFiles = None,
    base_url: Annotated[
        str | None, _rewriting("Where report text may be sent, such as http://127.0.0.1:8000/v1.")
    ] = None,
    model: Annotated[str | None, _rewriting("The name that the endpoint serves.")] = None,
    store: Annotated[
        Path | None, _rewriting("Where every answer is kept; OUT/discrepancies.store.sqlite if not given.")
    ] = None,
    allow_remote: Annotated[
        bool, _rewriting("The host may be outside your network.", "--allow-remote")
    ] = False,
    api_key_env: Annotated[
        str | None, _rewriting("Variable that holds the key; RADGEN_API_KEY if not given.")
    ] = None,
    config: Annotated[
        Path | None, _rewriting("YAML over the packaged endpoint.yaml: waits, sampling, requests at once.")
    ] = None,
) -> None:
    """Make one sentence of a report wrong, beside a harmless rewrite: for judging."""
    from functools import partial

    from radgen.generators.similarity.discrepancies import make_discrepancies

    endpoint = None
    if base_url or model:
        from radgen.extract.endpoint.command import Options

        endpoint = Options(
            reports, out / "discrepancies", base_url, model, store=store, config=config,
            allow_remote=allow_remote, api_key_env=api_key_env,
        )  # fmt: skip
    elif store or allow_remote or api_key_env or config:
        raise RadgenError("--store, --allow-remote, --api-key-env and --config need --base-url and --model")
    make = partial(make_discrepancies, endpoint=endpoint)
    _make_from_reports(make, _report_order(reports, n, seed, ontology), out, force=force)
