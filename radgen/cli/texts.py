"""Texts in: radgen reports, radgen extract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from radgen.cli.options import OntologyFiles
from radgen.errors import RadgenError, unknown

app = typer.Typer()


@app.command()
def reports(
    path: Annotated[
        Path | None,
        typer.Argument(help="JSONL, CSV or Parquet file, folder of text files, or Open-I archive (.tgz)."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")] = Path("reports.jsonl"),
    rejects: Annotated[
        Path | None, typer.Option(help="Where broken rows go (rejects.jsonl beside --out if not given).")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, csv, parquet, folder, archive, document; else guessed."),
    ] = None,
    identifier: Annotated[str | None, typer.Option("--id", help="Column with the id.")] = None,
    findings: Annotated[str | None, typer.Option(help="Column with the findings.")] = None,
    impression: Annotated[str | None, typer.Option(help="Column with the impression.")] = None,
    text: Annotated[str | None, typer.Option(help="Column with whole reports; headings split them.")] = None,
    abnormalities: Annotated[str | None, typer.Option(help="Column with labels.")] = None,
    prominence: Annotated[str | None, typer.Option(help="Column with a number for each label.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the files that are there.")] = False,
    synthetic: Annotated[
        int | None, typer.Option(help="Make so many reports from the ontology instead of reading PATH.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic reports.")] = 42,
    modality: Annotated[str, typer.Option(help="Synthetic reports of xr, ct or both.")] = "both",
    workers: Annotated[int | None, typer.Option(help="Processes; one a core if not given.")] = None,
    ontology: OntologyFiles = None,
) -> None:
    """Bring reports of any source into one shape, or make synthetic ones: id, findings, impression, …"""
    from radgen.console import counter, messages
    from radgen.extract.reports import convert, summary

    if synthetic is not None:
        from radgen.generators.reports import write_synthetic
        from radgen.generators.stream import default_workers

        if path is not None:
            raise typer.BadParameter("reads no PATH; give one of the two", param_hint="--synthetic")
        with counter("reports made") as show:
            made = write_synthetic(
                synthetic,
                out,
                seed=seed,
                modality=modality,
                ontology_files=ontology or (),
                workers=workers or default_workers(),
                force=force,
                progress=show,
            )
        messages().print(f"{made.written:,} synthetic reports -> {out}", markup=False)
        return
    if path is None:
        raise typer.BadParameter(
            "expected a file, folder or archive of reports, or --synthetic N", param_hint="PATH"
        )
    asked = {
        "id": identifier,
        "findings": findings,
        "impression": impression,
        "text": text,
        "abnormalities": abnormalities,
        "prominence": prominence,
    }
    columns = {role: name for role, name in asked.items() if name is not None}
    rejects = rejects or out.with_name("rejects.jsonl")
    with counter("reports read") as show:
        source, counts = convert(path, out, rejects, columns=columns, kind=kind, force=force, progress=show)
    for line in summary(source, counts, out, rejects):
        messages().print(line, markup=False)


def _endpoint(help_text: str, *names: str, **more: Any) -> Any:
    """Return an option of the endpoint backend; they stand together in the help."""
    return typer.Option(*names, help=help_text, rich_help_panel="The endpoint (--backend openai)", **more)


@app.command()
def extract(
    reports: Annotated[
        Path | None, typer.Argument(help="Reports as JSONL: id, findings, impression.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--show", help="Show the findings of this text, by rules; write nothing.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")] = Path("extracted.jsonl"),
    backend: Annotated[str, typer.Option(help="rules (offline) or openai (an endpoint).")] = "rules",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many reports.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that is there.")] = False,
    ontology: OntologyFiles = None,
    base_url: Annotated[
        str | None, _endpoint("Where report text may be sent, such as http://127.0.0.1:8000/v1.")
    ] = None,
    model: Annotated[str | None, _endpoint("The name that the endpoint serves.")] = None,
    store: Annotated[
        Path | None, _endpoint("Where every answer is kept; beside --out if not given.")
    ] = None,
    concurrency: Annotated[int | None, _endpoint("The most requests under way at once.", min=1)] = None,
    timeout: Annotated[float | None, _endpoint("Seconds for one request.", min=0.1)] = None,
    dry_run: Annotated[
        bool, _endpoint("Count requests, tokens and cost; send nothing.", "--dry-run")
    ] = False,
    max_cost: Annotated[
        float | None, _endpoint("Stop before the answers cost more (prices in --config).", min=0)
    ] = None,
    max_wait: Annotated[
        float | None, _endpoint("The longest Retry-After that is waited for, seconds.", min=0.001)
    ] = None,
    max_outage: Annotated[
        float | None, _endpoint("Stop if the endpoint is dead for so many seconds.", min=0.001)
    ] = None,
    thinking: Annotated[bool, _endpoint("Let the model think first.", "--thinking")] = False,
    retry_failed: Annotated[bool, _endpoint("Ask for dead letters again.", "--retry-failed")] = False,
    preflight: Annotated[bool, _endpoint("Look at the server anew.", "--preflight")] = False,
    allow_remote: Annotated[
        bool, _endpoint("The host may be outside your network.", "--allow-remote")
    ] = False,
    api_key_env: Annotated[
        str | None, _endpoint("Variable that holds the key; RADGEN_API_KEY if not given.")
    ] = None,
    api_key_file: Annotated[Path | None, _endpoint("File that holds the key.")] = None,
    transport: Annotated[str, _endpoint("aiohttp (fast) or openai (the SDK).")] = "aiohttp",
    config: Annotated[
        Path | None, _endpoint("YAML over the packaged endpoint.yaml: prices, waits, sampling.")
    ] = None,
    export_batch: Annotated[
        Path | None, _endpoint("Write what is missing as OpenAI batch files into this folder.")
    ] = None,
    import_batch: Annotated[
        list[Path] | None, _endpoint("Take a file of batch results; may be given again.")
    ] = None,
) -> None:
    """Canonical findings of reports, each with its evidence: by rules, or by a model behind an endpoint."""
    if text is not None:
        if reports is not None:
            raise RadgenError("--show takes a text instead of a file of reports; leave one of them out")
        from rich.console import Console

        from radgen.extract.show import show_findings

        show_findings(text, Console(highlight=False), ontology or ())
        return
    if reports is None:
        raise RadgenError("expected a file of reports, or --show and a text; see radgen extract --help")
    if backend == "rules":
        if base_url or export_batch or import_batch:
            raise RadgenError("--base-url and batch files need --backend openai; add it, or leave them out")
        from radgen.console import counter, messages
        from radgen.extract.offline import extract_with_rules

        with counter("reports extracted") as show:
            count, _ = extract_with_rules(
                reports, out, ontology_files=ontology or (), limit=limit, force=force, progress=show
            )
        messages().print(f"{count:,} reports -> {out}", markup=False)
        return
    if backend != "openai":
        raise RadgenError(unknown("backend", backend, ["rules", "openai"]))
    from radgen.extract.endpoint.command import Options, extract_with_endpoint
    from radgen.extract.endpoint.task import ExtractionTask
    from radgen.ontology import load_ontology

    options = Options(
        reports, out, base_url, model, store, config, transport, thinking, allow_remote, api_key_env,
        api_key_file, concurrency, timeout, max_wait, max_outage, max_cost, limit, dry_run, retry_failed,
        preflight, export_batch, import_batch or (), force,
    )  # fmt: skip
    raise typer.Exit(extract_with_endpoint(options, ExtractionTask(load_ontology(ontology or ()))))
