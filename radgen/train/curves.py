"""Curves of a stage as PNG: losses, and what the evaluations measured."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson

_SMOOTH = 0.9  # of the running mean of training losses


def write_curves(metrics: Path, folder: Path) -> list[str]:
    """Draw ``loss.png`` and ``accuracy.png`` from ``metrics.jsonl``; return their names."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    records = [orjson.loads(line) for line in metrics.read_bytes().splitlines()]
    steps = [record for record in records if "loss" in record]
    evaluations = [record for record in records if "metrics" in record]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.5), constrained_layout=True)
    for name, points in sorted(_training(steps).items()):
        left.plot(*zip(*points, strict=True), linewidth=0.9, label=name)
    left.set(title="training loss over its first, running mean", xlabel="step")
    for name, points in _groups(evaluations, ("normalised",)).items():
        _draw(right, name, points)
    right.set(title="validation loss over the stage's start", xlabel="step")
    _legend(left)
    _legend(right)
    figure.savefig(folder / "loss.png", dpi=130)
    pyplot.close(figure)
    figure, axes = pyplot.subplots(figsize=(8, 4.5), constrained_layout=True)
    for name, points in _groups(evaluations, ("contrast", "crossaxis", "flip", "retrieval")).items():
        _draw(axes, name, points)
    axes.set(title="validation: contrasts, cross-axis, side-flip, retrieval", xlabel="step")
    _legend(axes)
    figure.savefig(folder / "accuracy.png", dpi=130)
    pyplot.close(figure)
    return ["loss.png", "accuracy.png"]


def _legend(axes: Any) -> None:
    if axes.lines:
        axes.legend(fontsize=5, ncols=2)


def _training(steps: list[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    first: dict[str, float] = {}
    mean: dict[str, float] = {}
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for record in steps:
        for name, value in record["loss"].items():
            first.setdefault(name, value or 1.0)
            mean[name] = _SMOOTH * mean.get(name, value) + (1 - _SMOOTH) * value
            points[name].append((record["step"], mean[name] / first[name]))
    return points


def _groups(evaluations: list[dict[str, Any]], groups: tuple[str, ...]) -> dict[str, list[tuple[int, float]]]:
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for record in evaluations:
        for name, value in record["metrics"].items():
            if name.partition("/")[0] in groups:
                points[name].append((record["step"], value))
    return points


def _draw(axes: Any, name: str, points: list[tuple[int, float]]) -> None:
    main = name.endswith("/mean") or name == "crossaxis/spearman"
    axes.plot(*zip(*points, strict=True), linewidth=2.2 if main else 0.7, label=name)
