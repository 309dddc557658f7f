"""Judging encoders: evaluate, compare."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from radgen.cli.options import Force, OntologyFiles, files
from radgen.errors import RadgenError

app = typer.Typer()


@app.command()
def evaluate(
    model: Annotated[
        list[str],
        typer.Option("--model", help="A folder, a hub id, or minilm (extra laptop); again for more."),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            "--suite",
            help="contrasts, crossaxis, probe, retrieval, queries, discrepancies, probes, heads, states, "
            "cost; all if absent.",
        ),
    ] = None,
    judging: Annotated[
        Path, typer.Option("--judging", help="The judging sets; 'radgen benchmark' makes data/judging.")
    ] = Path("data/judging"),
    reports: Annotated[
        Path | None, typer.Option("--reports", help="Reports in any form that 'radgen reports' reads.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="CSV of human labels: id, then a column a label (1, 0, -1, empty)."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option("--pool", help="Length of sections: openi 128, xr 256, ct, mr, us 512 tokens."),
    ] = None,
    discrepancies: Annotated[
        Path | None,
        typer.Option("--discrepancies", help="Of 'radgen discrepancies'; made from --reports if absent."),
    ] = None,
    radjudge: Annotated[
        Path | None, typer.Option("--radjudge", help="RadJudge's JSON file of ranking tests.")
    ] = None,
    radthought: Annotated[
        Path | None,
        typer.Option("--radthought", help="Records of 'radgen radthought': retrieval from level to level."),
    ] = None,
    states: Annotated[
        Path, typer.Option("--states", help="Where 'radgen states' wrote its sentences: its --out.")
    ] = Path("data"),
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results.json, page.html and the vectors.")
    ] = Path("evaluation"),
    full: Annotated[bool, typer.Option("--full", help="Judge every row instead of a seeded sample.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random draw.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, …; the best if absent.")] = None,
    settings: Annotated[
        list[Path] | None,
        typer.Option("--settings", help="Your own YAML over the packaged evaluate.yaml; may be given again."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no vectors in OUT/vectors for the next time.")
    ] = False,
    force: Force = False,
    ontology: OntologyFiles = None,
) -> None:
    """Judge encoders: attribute contrasts, retrieval, queries, report comparison, probes, heads, cost."""
    from radgen.atomic import AtomicFile
    from radgen.console import counter, messages
    from radgen.train.evaluate.bench import Request
    from radgen.train.evaluate.results import as_mapping, dump, read_results
    from radgen.train.evaluate.run import Result
    from radgen.train.evaluate.run import evaluate as judge
    from radgen.train.evaluate.settings import SUITES
    from radgen.train.evaluate.show import print_results, wide
    from radgen.train.page import check_place, write_page

    place = out / "results.json"
    check_place(out / "page.html")
    target = AtomicFile(place, force=force)  # what stands there is refused before hours are spent
    if place.exists():
        read_results(place)  # --force replaces an evaluation, no other file
    asked = list(dict.fromkeys(suite or ["all"]))
    request = Request(
        models=tuple(model),
        suites=SUITES if "all" in asked else tuple(asked),
        judging=judging,
        reports=reports,
        labels=labels,
        pool=pool,
        discrepancies=discrepancies,
        radjudge=radjudge,
        radthought=radthought,
        states=states,
        full=full,
        cache=None if no_cache else out / "vectors",
        seed=seed,
        device=device,
        settings=files(settings),
        ontology=files(ontology),
    )

    def said(result: Result) -> None:
        what = f"skipped: {result.reason}" if result.reason else f"{len(result.outcome.values)} figures"
        messages().print(f"{result.model}, {result.suite}: {what}", markup=False)

    bench, models, results = judge(request, counter, said)
    found = as_mapping(bench, models, results, shlex.join(["radgen", *sys.argv[1:]]))
    with target as file:
        file.write(dump(found))
    console = wide()
    print_results(read_results(place), console)
    console.print(f"results: {place}", soft_wrap=True, highlight=False)
    write_page(read_results(place), out / "page.html")
    console.print(f"page: {out / 'page.html'}", soft_wrap=True, highlight=False)
    if all(result.reason for result in results):
        raise RadgenError("nothing could be judged: the reasons stand above")


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="results.json of the first evaluation.", metavar="A.json")],
    after: Annotated[Path, typer.Argument(help="results.json of the second.", metavar="B.json")],
    model: Annotated[
        str | None, typer.Option("--model", help="Model of A.json, where it has several.")
    ] = None,
    other: Annotated[
        str | None, typer.Option("--against", help="Model of B.json, where it has several.")
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help="MEASURE=BOUND or MEASURE[GROUP]=BOUND: exit code 1 if it fell by more; again for more.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Compare two evaluations, with intervals; a regression gate for CI."""
    import dataclasses

    from radgen.console import messages
    from radgen.train.evaluate.compare import broken, model_of, read_gate
    from radgen.train.evaluate.compare import compare as differences
    from radgen.train.evaluate.results import read_results
    from radgen.train.evaluate.show import print_differences, wide

    gates = [read_gate(text) for text in gate or ()]
    a, b = read_results(before), read_results(after)
    names = (model_of(a, model, "--model", str(before)), model_of(b, other, "--against", str(after)))
    found, remarks = differences(a, b, *names)
    fallen = broken(gates, found)
    if json:
        import orjson

        rows = [{**dataclasses.asdict(item), "name": item.name, "verdict": item.verdict} for item in found]
        typer.echo(orjson.dumps({"differences": rows, "remarks": remarks, "broken": fallen}).decode())
    else:
        print_differences(found, names, wide())
    for remark in remarks:
        messages().print(f"radgen: {remark}", markup=False)
    for line in fallen:
        messages().print(f"radgen: {line}", markup=False)
    if fallen:
        raise typer.Exit(1)
