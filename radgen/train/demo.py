"""``radgen demo``: from nothing to the page of an evaluation, in steps that are done once.

Each step writes a folder of its own in ``OUT``. A part of the folder's name is a hash of all that the step
depends on, so that a changed option makes new folders for the steps that depend on it, and replaces nothing.
``demo.json`` says which steps are done; a step that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import yaml

from radgen import __version__
from radgen.atomic import AtomicFile
from radgen.console import counter
from radgen.errors import RadgenError
from radgen.generators.folders import dump
from radgen.generators.recipes import RECIPE_VERSION
from radgen.train.demo_settings import STAGES, DemoSettings, assignments
from radgen.train.progress import duration

Say = Callable[[str], None]
RECORD = "demo.json"


@dataclass(frozen=True)
class Step:
    """One step of the demo.

    Attributes:
        title: what a person reads.
        folder: where it writes.
        proof: files that are there when it is done.
        work: does it; the folder is there.
    """

    title: str
    folder: Path
    proof: tuple[str, ...]
    work: Callable[[], object]


def run(out: Path, settings: DemoSettings, command: str, workers: int, say: Say) -> Path:
    """Do what is not done yet and return the path of the page.

    Args:
        out: folder of the demo; made if it is not there.
        command: the command line, for the page.
        workers: processes that make datasets.
        say: takes a line for each step.

    Raises:
        RadgenError: packages are missing, ``out`` holds something else or is in use, or a step fails.
    """
    from radgen.train.encoder import model_path, require_training
    from radgen.train.page.render import plot_library

    require_training()
    model_path(settings.model)
    plot_library()  # what the last step needs is there, before the first one starts
    done = _record(out)
    steps = steps_of(out, settings, command, workers, say)
    with _alone(out):
        for number, step in enumerate(steps, 1):
            name = f"step {number} of {len(steps)}, {step.title}"
            if step.folder.name in done and all((step.folder / file).exists() for file in step.proof):
                say(f"{name}: done before: {step.folder}")
                continue
            say(f"{name} …")
            began = time.monotonic()
            step.folder.mkdir(exist_ok=True)
            step.work()
            spent = time.monotonic() - began
            done[step.folder.name] = round(spent, 1)
            _write(out / RECORD, dump({"radgen": "demo", "seconds": done}))
            say(f"{name}: {duration(spent)}: {step.folder}")
    return steps[-1].folder / "page.html"


def steps_of(out: Path, settings: DemoSettings, command: str, workers: int, say: Say) -> list[Step]:
    """Return the steps in their order; the name of each folder holds the hash of what it depends on.

    Raises:
        RadgenError: settings of a stage or of the evaluation are wrong.
    """
    from radgen.train.evaluate.settings import load_settings, settings_hash
    from radgen.train.settings import as_data, load_stage

    data = _place(out, "collection", settings.seed, settings.collection.model_dump())
    reports = _place(out, "reports", settings.seed, settings.reports.model_dump())
    steps = [
        Step("collection", data, ("collection.json",), lambda: _collect(data, settings, workers)),
        Step("synthetic reports", reports, ("reports.jsonl",), lambda: _reports(reports, settings, workers)),
    ]
    before = data
    places: dict[str, Path] = {}
    for name in STAGES:
        sets = assignments(settings.stages.get(name, {}))
        stage = load_stage(name.removeprefix("stage"), settings.preset, sets=sets, seed=settings.seed)
        parts = [settings.model, settings.without, as_data(stage.settings)]
        places[name] = _place(out, name, before.name, *parts)
        work = functools.partial(_train, name, places, data, settings, command, say)
        steps.append(Step(f"training, {name}", places[name], (f"{name}/model/modules.json",), work))
        before = places[name]
    asked = [settings.seed, settings.evaluate.model_dump(), settings_hash(load_settings())]
    judged = _place(out, "evaluation", before.name, reports.name, *asked)
    models = (settings.model, *(str(places["stage3"] / name) for name in places))

    def evaluate() -> None:
        _evaluate(judged, models, data / "judging", reports / "reports.jsonl", settings, command, say)

    steps.append(Step("evaluation", judged, ("results.json", "page.html"), evaluate))
    return steps


def open_page(page: Path) -> bool:
    """Open the page in the person's browser; return False where there is no screen to show it on."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False  # the only browser left would be one that takes the terminal
    return webbrowser.open(page.absolute().as_uri())


def _collect(folder: Path, settings: DemoSettings, workers: int) -> None:
    from radgen.generators.collection import make_collection

    make_collection(folder, seed=settings.seed, scale=settings.collection.scale, workers=workers)


def _reports(folder: Path, settings: DemoSettings, workers: int) -> None:
    from radgen.generators.reports import write_synthetic

    asked = settings.reports
    with counter("reports made") as show:
        write_synthetic(
            asked.number,
            folder / "reports.jsonl",
            seed=settings.seed,
            modality=asked.modality,
            workers=workers,
            force=True,  # the folder is the demo's own
            progress=show,
        )


def _train(
    name: str, places: dict[str, Path], data: Path, settings: DemoSettings, command: str, say: Say
) -> None:
    from radgen.train.run import Order, train

    folder = places[name]
    if name != "stage2":
        _beside(places["stage2"] / "stage2", folder / "stage2")
    order = Order(
        stage=name.removeprefix("stage"),
        data=data,
        out=folder,
        preset=settings.preset,
        model=settings.model if name == "stage2" else None,
        seed=settings.seed,
        sets=assignments(settings.stages.get(name, {})),
        without=tuple(settings.without),
        resume=True,
        command=command,
    )
    train(order, say)


def _beside(stage: Path, link: Path) -> None:
    """Let the stage before stand beside this one, as where both are trained in one folder."""
    if link.exists():
        return
    try:
        link.symlink_to(os.path.relpath(stage, link.parent), target_is_directory=True)
    except OSError:  # a file system without links
        shutil.copytree(stage, link)


def _evaluate(
    folder: Path,
    models: tuple[str, ...],
    judging: Path,
    reports: Path,
    settings: DemoSettings,
    command: str,
    say: Say,
) -> None:
    from radgen.train.evaluate.bench import Request
    from radgen.train.evaluate.results import as_mapping, read_results
    from radgen.train.evaluate.results import dump as dump_results
    from radgen.train.evaluate.run import Result, evaluate
    from radgen.train.page import write_page

    own = folder / "settings.yaml"
    _write(own, yaml.safe_dump(settings.evaluate.settings, sort_keys=False).encode())
    request = Request(
        models=models,
        suites=tuple(settings.evaluate.suites),
        judging=judging,
        reports=reports,
        pool=settings.evaluate.pool,
        cache=folder.parent / "vectors",
        seed=settings.seed,
        settings=(str(own),),
    )

    def judged(result: Result) -> None:
        what = f"skipped: {result.reason}" if result.reason else f"{len(result.outcome.values)} figures"
        say(f"{result.model}, {result.suite}: {what}")

    bench, found, results = evaluate(request, counter, judged)
    if all(result.reason for result in results):
        raise RadgenError(f"nothing could be judged: {results[0].reason}")
    _write(folder / "results.json", dump_results(as_mapping(bench, found, results, command)))
    write_page(read_results(folder / "results.json"), folder / "page.html")


def _place(out: Path, name: str, *parts: Any) -> Path:
    """Return the folder of a step, named after the step and the hash of what it depends on."""
    whole = orjson.dumps([name, __version__, RECIPE_VERSION, parts], option=orjson.OPT_SORT_KEYS)
    return out / f"{name}-{sha256(whole).hexdigest()[:8]}"


def _record(out: Path) -> dict[str, float]:
    """Return the steps that are done, with their seconds; make the folder where there is none.

    Raises:
        RadgenError: the folder holds files that are no demo of radgen.
    """
    path = out / RECORD
    if out.exists() and not out.is_dir():
        raise RadgenError(f"{out}: is a file, expected a folder")
    if path.is_file():
        try:
            found = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or found.get("radgen") != "demo":
            raise RadgenError(f"{path}: is not radgen's; give another --out (nothing was changed)")
        return dict(found["seconds"])
    if out.exists() and any(file.name != f".{RECORD}.partial" for file in out.iterdir()):
        raise RadgenError(
            f"{out}: holds files that are no radgen demo; give another --out (nothing was changed)"
        )
    _write(path, dump({"radgen": "demo", "seconds": {}}))
    return {}


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the folder for this process; the lock ends with the process, however it ends.

    Raises:
        RadgenError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with (out / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RadgenError(f"{out}: another radgen demo works in this folder now") from None
        yield


def _write(path: Path, data: bytes) -> None:
    with AtomicFile(path, force=True) as file:
        file.write(data)
