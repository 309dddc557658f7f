"""``radgen train``: from settings and data to the model of a stage, resumable at every checkpoint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.errors import RadgenError
from radgen.generators.folders import dump, replacing
from radgen.train import checkpoints, sources
from radgen.train.settings import Stage, as_data, load_stage, stage_name

Say = Callable[[str], None]
RUN = "run.json"
ALL = ("1", "2", "3")
#: That the other ranks wait for the first one: hashing and verifying millions of rows.
_LONGEST = timedelta(hours=6)


@dataclass(frozen=True)
class Order:
    """What to train.

    Attributes:
        stage: ``1``, ``2``, ``3``, ``all``, another stage's name or the path of its file.
        preset: None chooses h100 with a GPU, laptop without.
        model: start from this one instead of the stage before.
        reports: for retrieval during the stage; None measures none.
        command: the command line, for the card.
    """

    stage: str
    data: Path
    out: Path
    preset: str | None = None
    model: str | None = None
    steps: int | None = None
    seed: int | None = None
    sets: tuple[str, ...] = ()
    config: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    reports: Path | None = None
    ontology: tuple[str, ...] = ()
    resume: bool = False
    force: bool = False
    verify: bool = True
    command: str = "radgen train"


def rank() -> int:
    """Return this process's rank as torchrun gives it, before anything of torch is set up."""
    return int(os.environ.get("RANK", "0"))


def wait_for_all() -> None:
    """Wait until every rank of torchrun is here: the first one verifies datasets and clears places."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        import torch
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available(), timeout=_LONGEST).wait_for_everyone()


def close_ranks() -> None:
    """Close the process group before this process ends: a rank that ends with it open may abort."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def stages_of(order: Order, say: Say) -> list[Stage]:
    """Return the stages of an order, checked against the data.

    Raises:
        RadgenError: settings with mistakes, missing datasets, datasets that do not verify.
    """
    from radgen.train.losses import kind_of

    words = ALL if order.stage == "all" else (order.stage,)
    for word in words:
        stage_name(word)
    preset = order.preset or _default_preset(say)
    made = [
        load_stage(
            word, preset, files=order.config, sets=order.sets, steps=order.steps, seed=order.seed,
            model=order.model,
        )
        for word in words
    ]  # fmt: skip
    made = sources.wanted(made, order.without)
    for stage in made:
        for name, entry in stage.settings.datasets.items():
            kind_of(entry.loss, f"{stage.name}: {name}")
    sources.check_there(made, order.data)
    if order.verify and rank() == 0:
        names = dict.fromkeys(name for stage in made for name in stage.settings.datasets)
        sources.verify({name: order.data / name for name in names}, order.ontology, say)
    return made


def _default_preset(say: Say) -> str:
    import torch

    if torch.cuda.is_available():
        return "h100"
    say("no GPU here: preset laptop (choose with --preset)")
    return "laptop"


def train(order: Order, say: Say) -> list[Path]:
    """Train the stages of an order, one after the other; return their folders.

    Raises:
        RadgenError: as ``stages_of``; another run in the place; no model to start from; a stage that fails,
            with its last good checkpoint standing.
    """
    from radgen.train.encoder import require_training

    require_training()
    stages = stages_of(order, say)
    for stage in stages:
        _check_place(order.out / stage.name, order)
    wait_for_all()
    folders = []
    for number, stage in enumerate(stages):
        start = start_of(stage, order, first=number == 0)
        folders.append(_train_stage(stage, start, order, say))
    return folders


def start_of(stage: Stage, order: Order, *, first: bool = True) -> str:
    """Return the model that a stage starts from: ``--model``, else the stage before, else the preset's.

    Raises:
        RadgenError: the stage before has no model.
    """
    if order.model and first:
        return order.model
    after = stage.settings.after
    if after is None:
        return stage.settings.model
    folder = order.out / after / "model"
    if not first or (folder / "modules.json").is_file():
        return str(folder)
    number = after.removeprefix("stage")
    raise RadgenError(
        f"{folder}: {stage.name} starts from the model of {after}, and there is none: train it first "
        f"(radgen train --stage {number} --out {order.out}), or name another with --model"
    )


def _check_place(folder: Path, order: Order) -> None:
    if not folder.exists() or rank() != 0:
        return
    if not (folder / RUN).is_file():
        if any(folder.iterdir()):
            raise RadgenError(f"{folder}: holds files that are no radgen training; give another --out")
        return
    if order.force:
        shutil.rmtree(folder)
    elif not order.resume:
        done = "a trained stage" if finished(folder) else "a stage that was begun"
        raise RadgenError(
            f"{folder}: holds {done}; --resume goes on with it, --force starts it anew, or give another --out"
        )


def finished(folder: Path) -> bool:
    """Whether a stage's model stands."""
    return (folder / "model" / "modules.json").is_file()


def _train_stage(stage: Stage, start: str, order: Order, say: Say) -> Path:
    folder = order.out / stage.name
    if finished(folder):
        _same(folder, stage, start, None)
        say(f"{stage.name}: trained already: {folder / 'model'}")
        return folder
    from radgen.train.session import Session

    session = Session(stage, start, order, folder, say)
    if rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / RUN).is_file():
            _same(folder, stage, start, session.hashes)
        else:
            _write_run(folder, stage, start, session.hashes, order)
    session.run()
    if session.main:
        _finish(folder, session, say)
    session.wait()
    return folder


def _write_run(folder: Path, stage: Stage, start: str, hashes: Any, order: Order) -> None:
    run = {
        "radgen": "training",
        "stage": stage.name,
        "preset": stage.preset,
        "command": order.command,
        "version": __version__,
        "start": start,
        "settings": as_data(stage.settings),
        "data": hashes,
    }
    (folder / RUN).write_bytes(dump(run))


def _same(folder: Path, stage: Stage, start: str, hashes: Any) -> None:
    """Check that a run that goes on is the one that was begun.

    Raises:
        RadgenError: with the first setting, or the dataset, that differs.
    """
    before = orjson.loads((folder / RUN).read_bytes())
    now = {"settings": as_data(stage.settings), "start": start}
    if hashes is not None:
        now["data"] = hashes
    for key, old, new in _differences({name: before.get(name) for name in now}, now):
        raise RadgenError(
            f"{folder}: --resume: {key} was {_short(old)} and is now {_short(new)}; "
            "resume with what it was begun with, or start anew with --force"
        )


def _differences(old: Any, new: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            found
            for key in [*old, *(key for key in new if key not in old)]
            for found in _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        ]
    return [] if old == new else [(path, old, new)]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _finish(folder: Path, session: Any, say: Say) -> None:
    """Put the chosen checkpoint in its place with card and curves; the checkpoints go."""
    from radgen.train.card import write_card
    from radgen.train.curves import write_curves

    root = folder / "checkpoints"
    step, fell = checkpoints.choose(session.stage.settings.checkpoint, session.evaluations)
    chosen = checkpoints.folder_of(root, step)
    training = {"optimizer.pt", "scheduler.pt", "trainer_state.json", checkpoints.EVALUATIONS}
    with replacing(folder / "model") as place:
        for path in sorted(chosen.iterdir()):
            if path.name in training or path.name.startswith("rng_state"):
                continue
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, place / path.name)
        if session.stage.settings.merge:
            session.merge_start_into(place)
        curves = write_curves(folder / "metrics.jsonl", place)
        write_card(place / "README.md", folder / RUN, session.rows(), session.evaluations, step, curves)
    shutil.rmtree(root, ignore_errors=True)
    if fell:
        text = "in every evaluation some guarded metric fell; at the chosen one:"
        say(f"{session.stage.name}: {text} {', '.join(fell)}")
    say(f"{session.stage.name}: step {step:,} chosen; model: {folder / 'model'}")

