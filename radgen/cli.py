"""The command line: thin commands that hand over to the package; heavy imports wait for the command.

Every mistake of the user ends in one line on stderr, ``radgen: …``, and exit code 2.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from radgen import __version__
from radgen.errors import RadgenError, did_you_mean, unknown

app = typer.Typer(
    name="radgen",
    help="Synthetic supervision for radiology text encoders, with targets that can be inspected.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# ---------------------------------------------------------------------------------------------------
# the program itself


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"radgen {__version__}")
        raise typer.Exit


@app.callback()
def radgen(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Synthetic supervision for radiology text encoders, with targets that can be inspected."""


# ---------------------------------------------------------------------------------------------------
# ontology

ontology_app = typer.Typer(no_args_is_help=True, help="Look things up in the ontology, check your own file.")
app.add_typer(ontology_app, name="ontology")

OntologyFiles = Annotated[
    list[Path] | None,
    typer.Option("--ontology", help="Your own YAML file over the packaged ontology; may be given again."),
]


@ontology_app.command("list")
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


@ontology_app.command("show")
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


@ontology_app.command("check")
def ontology_check(
    file: Annotated[Path, typer.Argument(help="Your YAML file of findings, phrasings and constants.")],
) -> None:
    """Check your own YAML file; every mistake with its line, what was expected and the nearest right name."""
    from radgen.errors import OntologyError
    from radgen.extract.cues import check_lexicon
    from radgen.generators.report_settings import check_reports
    from radgen.templates.check import check_file

    problems = [*check_file(file), *check_reports(file), *check_lexicon(file)]
    if problems:
        count = f"{len(problems)} mistake{'s' if len(problems) > 1 else ''} in {file}"
        raise OntologyError([*problems, count])
    typer.echo(f"{file}: no mistakes")


# ---------------------------------------------------------------------------------------------------
# reports


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


# ---------------------------------------------------------------------------------------------------
# extract

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


# ---------------------------------------------------------------------------------------------------
# datasets: contrasts, crossaxis, collection, benchmark, verify, explain

Out = Annotated[Path, typer.Option("--out", help="Folder for the datasets: OUT/FAMILY/NAME.")]
Rows = Annotated[
    int | None, typer.Option("--n", help="Rows in all three splits together; the recipe's volume if absent.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes; all cores if absent. Changes no byte.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace another radgen dataset in the place.")]
Preview = Annotated[
    int | None, typer.Option("--preview", min=1, help="Print so many rows as a table and write nothing.")
]
HoldoutKind = Annotated[
    str | None, typer.Option("--holdout", help="Also keep out of train: states, phrasings or findings.")
]


def _files(paths: list[Path] | None) -> tuple[str, ...]:
    return tuple(str(path) for path in paths or ())


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

    orders = contrast_orders(axis, n, seed, _files(ontology), holdout)
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

    orders = crossaxis_orders(combination, n, seed, _files(ontology), holdout)
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
        ontology_files=_files(ontology),
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
        out, ontology_files=_files(ontology), workers=workers or default_workers(), force=force
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
    for verdict in verdicts(folder, _files(ontology), workers or default_workers()):
        print_verdict(verdict, Console())
        wrong += verdict.count
    if deep:
        from radgen.generators.show import print_deep
        from radgen.generators.verify import dataset_folders
        from radgen.ontology.load import load_ontology

        loaded = load_ontology(_files(ontology))
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

    found = explained(read_row(file, row), load_ontology(_files(ontology)))
    if as_json:
        import orjson

        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    from rich.console import Console

    print_explained(found, Console())


# ---------------------------------------------------------------------------------------------------
# similarity: radsim, pairs, triplets, perturb, discrepancies


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

    score, notes = scored_texts(text_a, text_b, _files(ontology))
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

    return ReportOrder(reports, rows, seed, extracted, truth, _files(ontology))


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


# ---------------------------------------------------------------------------------------------------
# errors and the entry point

#: The usage errors of Typer (and of Click, in versions that still use it): their common base.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_OS_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file became larger than the disk or a limit allows",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "is a folder, expected a file",
    errno.ENOTDIR: "is a file, expected a folder",
    errno.EEXIST: "exists already",
}


def _fail(message: str, code: int = 2) -> NoReturn:
    """Print every line of the message after ``radgen:`` and end with the exit code."""
    for line in message.splitlines() or ["failed"]:
        typer.echo(f"radgen: {line}", err=True)
    sys.exit(code)


def _usage_line(error: Exception) -> str:
    """Turn a usage error into one line that ends with where to read on."""
    text = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", None)
    if option and context is not None and text.lower().startswith("no such option"):
        known = [name for parameter in context.command.params for name in parameter.opts]
        text = f"no such option '{option}'{did_you_mean(option, known)}"
    text = text[:1].lower() + text[1:]
    if context is not None:
        text = f"{text.rstrip('.')} (see {context.command_path} --help)"
    return text


def _os_line(error: OSError) -> str:
    """Turn an error of the operating system into one line: the path, then what is wrong with it."""
    what = _OS_ERRORS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(names)}: {what}" if names else what


def main() -> None:
    """Run the command line and end the process: 0 done, 2 the user can mend it, 130 stopped by Ctrl-C."""
    try:
        code = app(prog_name="radgen", standalone_mode=False)
    except RadgenError as error:
        _fail(str(error))
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(2)
        _fail(_usage_line(error))
    except typer.Abort:
        _fail("stopped", 130)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except OSError as error:
        if error.errno is None:
            raise  # no error of the operating system: a mistake of ours keeps its traceback
        _fail(_os_line(error))
    if code == 130:  # Typer turned Ctrl-C into this code
        _fail("stopped", 130)
    sys.exit(code if isinstance(code, int) else 0)
