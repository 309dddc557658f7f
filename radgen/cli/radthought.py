"""RadThought: records of reports, and pairs and triplets from records (spec §6)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from radgen.cli.options import Force, OntologyFiles, Out, Rows, Seed, Workers, files
from radgen.errors import RadgenError, unknown

#: What ``radgen radthought`` runs where no command of the group is named.
DEFAULT = "records"


class DefaultGroup(TyperGroup):
    """A group whose default command may be left out: ``radgen radthought reports.jsonl``.

    A file that has the name of a command is given with its folder: ``./pairs``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that begin with none."""
        if not args or args[0] not in self.commands:
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))


def _endpoint(help_text: str, *names: str, **more: Any) -> Any:
    """Return an option of the endpoint backend; they stand together in the help."""
    return typer.Option(*names, help=help_text, rich_help_panel="The endpoint (--backend openai)", **more)


#: Commands of the group are added with ``@app.command()``; ``radgen.cli`` adds it as ``radthought``.
app = typer.Typer(cls=DefaultGroup)


@app.command()
def records(
    reports: Annotated[
        Path | None,
        typer.Argument(help="Reports in any form that 'radgen reports' reads; synthetic ones if absent."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--show", help="Show the hierarchy of this text as a tree; write nothing.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("data/radthought/records"),
    extracted: Annotated[
        Path | None,
        typer.Option("--extracted", help="Output of 'radgen extract' for them; read by the rules if absent."),
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Synthetic reports in a file: take their truth as the findings.")
    ] = False,
    synthetic: Annotated[
        int, typer.Option("--synthetic", min=1, help="How many reports to make where no file is given.")
    ] = 200,
    seed: Seed = 42,
    modality: Annotated[str, typer.Option(help="Synthetic reports of xr, ct or both.")] = "both",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many reports.")] = None,
    backend: Annotated[str, typer.Option(help="rules (offline) or openai (an endpoint).")] = "rules",
    workers: Workers = None,
    force: Force = False,
    ontology: OntologyFiles = None,
    base_url: Annotated[
        str | None, _endpoint("Where report text may be sent, such as http://127.0.0.1:8000/v1.")
    ] = None,
    model: Annotated[str | None, _endpoint("The name that the endpoint serves.")] = None,
    store: Annotated[Path | None, _endpoint("Where every answer is kept; beside --out if not given.")] = None,
    concurrency: Annotated[int | None, _endpoint("The most requests under way at once.", min=1)] = None,
    dry_run: Annotated[
        bool, _endpoint("Count requests, tokens and cost; send nothing.", "--dry-run")
    ] = False,
    max_cost: Annotated[
        float | None, _endpoint("Stop before the answers cost more (prices in --config).", min=0)
    ] = None,
    thinking: Annotated[bool, _endpoint("Let the model think first.", "--thinking")] = False,
    retry_failed: Annotated[bool, _endpoint("Ask for dead letters again.", "--retry-failed")] = False,
    allow_remote: Annotated[
        bool, _endpoint("The host may be outside your network.", "--allow-remote")
    ] = False,
    api_key_env: Annotated[
        str | None, _endpoint("Variable that holds the key; RADGEN_API_KEY if not given.")
    ] = None,
    config: Annotated[
        Path | None, _endpoint("YAML over the packaged endpoint.yaml: prices, waits, sampling.")
    ] = None,
) -> None:
    """Make evidence predicates, three orders of description and a synthesis of every report.

    From records, 'radgen radthought pairs' and 'radgen radthought triplets' make what is trained on.
    """
    from rich.console import Console

    from radgen.generators.radthought.records import RecordOrder, one_record
    from radgen.generators.radthought.records_folder import make_records
    from radgen.generators.radthought.show import show_record
    from radgen.generators.radthought.source import Source

    if text is not None:
        if reports is not None:
            raise RadgenError("--show takes a text instead of a file of reports; leave one of them out")
        show_record(one_record(text, files(ontology)), Console(highlight=False))
        return
    source = Source(reports, extracted, truth, synthetic, seed, modality, limit)
    order = RecordOrder(source, files(ontology))
    from radgen.console import counter, messages

    if backend == "openai":
        from radgen.extract.endpoint.command import Options
        from radgen.generators.radthought.endpoint import make_with_endpoint

        if reports is None:
            raise RadgenError("--backend openai needs a file of reports, as radgen reports writes it")
        options = Options(
            reports, out, base_url, model, store=store, config=config, thinking=thinking,
            allow_remote=allow_remote, api_key_env=api_key_env, concurrency=concurrency, max_cost=max_cost,
            limit=limit, dry_run=dry_run, retry_failed=retry_failed, force=force,
        )  # fmt: skip
        answered, code = make_with_endpoint(order, options, out)
        for line in summary(answered) if answered is not None else ():
            messages().print(line, markup=False)
        raise typer.Exit(code)
    if backend != "rules":
        raise RadgenError(unknown("backend", backend, ["rules", "openai"]))
    if base_url or model or store or dry_run or retry_failed:
        raise RadgenError("--base-url and what goes with it need --backend openai; add it, or leave them out")
    from radgen.generators.stream import default_workers

    with counter("reports read") as show:
        made = make_records(order, out, workers=workers or default_workers(), force=force, progress=show)
    for line in summary(made):
        messages().print(line, markup=False)


Records = Annotated[
    Path,
    typer.Argument(help="Folder that 'radgen radthought' wrote, or its records.jsonl.", metavar="RECORDS"),
]
_MADE_BY_DEFAULT = Path("data/radthought/records")


@app.command()
def pairs(
    records: Records = _MADE_BY_DEFAULT,
    level: Annotated[
        str,
        typer.Option(
            help="fused, scene_graph, first_order, second_order, third_order, synthesis, or all of them."
        ),
    ] = "all",
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make scored pairs of records: of whole hierarchies (fused), and level by level."""
    from radgen.generators.radthought.pairs import make_thought_pairs

    _make(make_thought_pairs, records, None, level, out, n, seed, force, ontology)


@app.command()
def triplets(
    records: Records = _MADE_BY_DEFAULT,
    family: Annotated[
        str, typer.Option(help="findings_alignment, coherence, derivation, or all of them.")
    ] = "all",
    reports: Annotated[
        Path | None,
        typer.Option(help="The reports of the records, for findings_alignment; synthetic ones if absent."),
    ] = None,
    out: Out = Path("data"),
    n: Rows = None,
    seed: Seed = 42,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Make triplets of records whose negatives are of unrelated reports."""
    from radgen.generators.radthought.triplets import make_thought_triplets

    _make(make_thought_triplets, records, reports, family, out, n, seed, force, ontology)


def _make(
    maker: Any,
    records: Path,
    reports: Path | None,
    name: str,
    out: Path,
    rows: int | None,
    seed: int,
    force: bool,
    ontology: list[Path] | None,
) -> None:
    from rich.console import Console

    from radgen.console import counter
    from radgen.generators.radthought.pairs_folder import ThoughtOrder
    from radgen.generators.similarity.show import print_made_from_reports

    order = ThoughtOrder(records, reports, rows, seed, files(ontology))
    with counter("records read") as show:
        made = maker(order, name, out, force=force, progress=show)
    for each in made:
        print_made_from_reports(each, Console())


def summary(made: Any) -> list[str]:
    """Return what is said of records that were made."""
    state = "" if made.fresh else " (there already)"
    lines = [f"{made.records:,} records of {made.counts['reports']:,} reports -> {made.folder}{state}"]
    lines += [f"{count:,} rejected: {reason}" for reason, count in sorted(made.rejected.items())]
    return lines
