"""Checkpoints: written whole or not at all, found again, chosen by the stage's rule."""

from __future__ import annotations

import errno
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.train.settings import Rule

Metrics = Mapping[str, float]
_PREFIX = "step-"
#: What was measured so far, inside a checkpoint: the choice among evaluations needs all of them.
EVALUATIONS = "evaluations.json"


def folder_of(root: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint."""
    return root / f"{_PREFIX}{step:07d}"


def steps(root: Path) -> list[int]:
    """Return the steps of the whole checkpoints, in order; what an interrupted write left is none."""
    found = root.glob(f"{_PREFIX}*") if root.is_dir() else []
    return sorted(int(path.name.removeprefix(_PREFIX)) for path in found if (path / EVALUATIONS).is_file())


def last_good(root: Path) -> str:
    """Return what to say of the newest whole checkpoint."""
    found = steps(root)
    if not found:
        return "there is no checkpoint yet"
    return f"the checkpoint of step {found[-1]} stands; go on with --resume"


def partial(root: Path, step: int) -> Path:
    """Return the folder that a checkpoint is written into before it is renamed."""
    return root / f".{_PREFIX}{step:07d}.partial"


def finish(root: Path, step: int, evaluations: Sequence[Mapping[str, Any]], keep: set[int]) -> None:
    """Rename a written checkpoint into its place, then remove those not to keep."""
    written = partial(root, step)
    (written / EVALUATIONS).write_bytes(orjson.dumps(list(evaluations)))
    for path in written.iterdir():
        if path.is_file():
            _sync(path)
    final = folder_of(root, step)
    shutil.rmtree(final, ignore_errors=True)
    os.rename(written, final)
    _sync(root)
    for old in steps(root):
        if old not in keep:
            shutil.rmtree(folder_of(root, old), ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_evaluations(root: Path, step: int) -> list[dict[str, Any]]:
    """Return the evaluations up to a checkpoint."""
    found: list[dict[str, Any]] = orjson.loads((folder_of(root, step) / EVALUATIONS).read_bytes())
    return found


def write_failed(root: Path, step: int, error: BaseException) -> RadgenError:
    """Return the error for a checkpoint that cannot be written; what is left of it is removed."""
    shutil.rmtree(partial(root, step), ignore_errors=True)
    text = " ".join(str(error).split())
    code = error.errno if isinstance(error, OSError) else None
    full = code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(
        # safetensors and torch wrap the system's error in their own
        sign in text
        for sign in ("os error 28", "No space left", "os error 27", "file write failed", "unexpected pos")
    )
    reason = "the disk is full" if full else f"{type(error).__name__}: {text[:160]}"
    return RadgenError(
        f"{folder_of(root, step)}: the checkpoint cannot be written: {reason}; {last_good(root)}"
    )


def score(rule: Rule, metrics: Metrics) -> float:
    """Return the weighted sum of the rule's metrics that were measured; NaN where none was."""
    found = [weight * metrics[name] for name, weight in rule.score.items() if _known(metrics, name)]
    return sum(found) if found else math.nan


def fallen(rule: Rule, start: Metrics, metrics: Metrics) -> list[str]:
    """Return the guarded metrics that are further below the stage's start than the rule allows."""
    return [
        name
        for name in sorted(metrics)
        for pattern, allowed in rule.guard.items()
        if fnmatch(name, pattern) and _known(metrics, name) and _known(start, name)
        if metrics[name] < start[name] - allowed - 1e-12
    ]


def choose(rule: Rule, evaluations: Sequence[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """Return the step that the rule chooses, and the guarded metrics that fell there all the same.

    Among the evaluations after the start where no guarded metric fell: the highest score, the later of two.
    Where one fell in all of them: the one with the highest score among those where the fewest fell.

    Args:
        evaluations: ``step`` and ``metrics`` each; the first is the stage's start.
    """
    start, *later = evaluations
    if not later:
        return int(start["step"]), []

    def key(one: Mapping[str, Any]) -> tuple[int, float, int]:
        value = score(rule, one["metrics"])
        down = len(fallen(rule, start["metrics"], one["metrics"]))
        return -down, -math.inf if math.isnan(value) else value, int(one["step"])

    best = max(later, key=key)
    return int(best["step"]), fallen(rule, start["metrics"], best["metrics"])


def _known(metrics: Metrics, name: str) -> bool:
    return name in metrics and not math.isnan(metrics[name])
