"""How a model came about: the evaluations of its training stages, where its folder has them (figure 3)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson

_METRICS = "metrics.jsonl"


def trained_model(name: str) -> str:
    """Return the model's own folder where ``name`` is the folder of a training stage around it."""
    inside = Path(name) / "model"
    alone = not any((Path(name) / file).is_file() for file in ("modules.json", "config.json"))
    return str(inside) if alone and (inside / "modules.json").is_file() else name


def curriculum(model: str) -> dict[str, Any] | None:
    """Return what validation measured in each stage up to a model's, None where there is no record.

    ``radgen train`` writes OUT/stage2/metrics.jsonl beside OUT/stage2/model; earlier stages stand beside.
    """
    folder = Path(model).absolute().parent
    if not (folder / _METRICS).is_file():
        return None
    stages: list[Any] = []
    points: list[dict[str, Any]] = []
    for path in [*_earlier(folder), folder / _METRICS]:
        stage = _number(path.parent.name)
        found = [
            {"stage": stage, "step": record["step"], "values": record["metrics"]}
            for record in _records(path)
            if isinstance(record.get("metrics"), dict) and isinstance(record.get("step"), int)
        ]
        if found:
            stages.append(stage)
            points += found
    return {"stages": stages, "points": points} if points else None


def _number(name: str) -> int | str:
    found = re.fullmatch(r"stage[-_ ]?(\d+)", name)
    return int(found[1]) if found else name


def _earlier(folder: Path) -> list[Path]:
    own = _number(folder.name)
    if not isinstance(own, int):
        return []
    found = [
        (number, path)
        for path in folder.parent.glob(f"*/{_METRICS}")
        if isinstance(number := _number(path.parent.name), int) and number < own
    ]
    return [path for _, path in sorted(found)]


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal; a line that a killed run left half-written is left out."""
    out = []
    for line in path.read_bytes().splitlines():
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            out.append(record)
    return out
