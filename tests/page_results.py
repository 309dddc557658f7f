"""Small results of an evaluation, written by hand, for the tests of the page."""

from __future__ import annotations

import copy
from typing import Any

#: Names that a page must not trip over: HTML, and a path that is wider than a telephone.
HOSTILE = "<script>alert('x')</script> & \"quoted\""
LONG = "organisation/an-encoder-with-a-very-long-name-that-nobody-shortened-for-a-narrow-screen"

_UNITS = {
    "cost.reports_per_second": "reports/s",
    "heads.modularity": "ratio",
    "crossaxis.side_flip": "cosine",
}
_LOWER = {"queries.contradiction@10", "states.across", "probes.hamming"}


def _measures(*names: str) -> dict[str, dict[str, str]]:
    return {
        name: {
            "title": name.partition(".")[2].replace("_", " "),
            "formula": f"the formula of {name}",
            "source": "paper §3.1",
            "better": "lower" if name in _LOWER else "higher",
            "unit": _UNITS.get(name, "share"),
        }
        for name in names
    }


def value(
    measure: str, group: str, number: float | None, width: float | None = 0.02, **more: Any
) -> dict[str, Any]:
    """An entry of ``values``; the interval lies ``width`` to both sides."""
    entry: dict[str, Any] = {
        "measure": measure,
        "group": group,
        "value": number,
        "low": None,
        "high": None,
        "n": 100,
    }
    if number is not None and width is not None:
        entry |= {"low": round(number - width, 6), "high": round(number + width, 6)}
    return entry | more


def failure(axis: str, number: int, positive: float, negative: float, text: str = "nodule") -> dict[str, Any]:
    """A misordered triplet: the size differs between anchor and negative alone."""
    state = {"finding": "pulmonary_nodule", "presence": "present", "laterality": "left"}
    return {
        "axis": axis,
        "id": f"{axis}-{number}",
        "anchor": f"A 6 mm {text} in the left lung.",
        "positive": f"The left lung holds a {text} of 6 mm.",
        "negative": f"A 24 mm {text} in the left lung.",
        "anchor_state": state | {"size_mm": 6.0},
        "positive_state": state | {"size_mm": 6.0},
        "negative_state": state | {"size_mm": 24.0},
        "positive_target": 1.0,
        "negative_target": -0.18,
        "cos_positive": positive,
        "cos_negative": negative,
    }


def entry(suite: str, model: str, values: list[dict[str, Any]], **figures: Any) -> dict[str, Any]:
    """An entry of ``results`` of a suite that was run."""
    return {
        "suite": suite, "model": model, "status": "done", "reason": None, "notes": [],
        "values": values, "figures": figures,
    }  # fmt: skip


def skipped(suite: str, model: str, reason: str) -> dict[str, Any]:
    """An entry of ``results`` of a suite that was not run."""
    return entry(suite, model, []) | {"status": "skipped", "reason": reason}


def _model(name: str, number: int, curriculum: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "name": name, "hash": f"{number:016d}", "dimensions": 384, "max_tokens": 256, "parameters": 22713216,
        "curriculum": curriculum,
    }  # fmt: skip


def _contrasts(
    model: str, size: float, density: float, failures: list[dict[str, Any]], drop: float
) -> dict[str, Any]:
    levels = ["trace", "mild", "moderate", "severe"]
    matrix = [[None if i == j == 3 else 1 - drop * abs(i - j) for j in range(4)] for i in range(4)]
    mean = [0.95 - drop * step / 2 for step in range(5)]
    return entry(
        "contrasts",
        model,
        [
            value("contrasts.accuracy", "", (size + density) / 2),
            value("contrasts.accuracy", "size", size),
            value("contrasts.accuracy", "density", density),
        ],
        levels={"severity": {"levels": levels, "matrix": matrix, "n": [[9] * 4] * 4}},
        zones={
            "separation": [0, 1, 2, 3, 4], "mean": mean, "n": [50] * 5,
            "low": [number - 0.02 for number in mean], "high": [number + 0.02 for number in mean],
        },
        failures=failures,
        failure_counts={"size": 120, "density": 7},
    )  # fmt: skip


def _box(middle: float | None) -> dict[str, Any]:
    if middle is None:
        return dict.fromkeys(("low", "q1", "median", "q3", "high", "mean")) | {"n": 0}
    steps = {"low": -0.1, "q1": -0.05, "median": 0.0, "q3": 0.05, "high": 0.1, "mean": 0.0}
    return {name: round(middle + step, 6) for name, step in steps.items()} | {"n": 40}


def _others(model: str, good: float) -> list[dict[str, Any]]:
    both = ("findings→impression", "impression→findings")
    tags = [f"tag number {number}" for number in range(15)]
    attributes = ["size", "count", "laterality", "location", "severity", "density", "presence"]
    response = [[good if i == j else 0.2 for j in range(len(attributes))] for i in range(len(attributes))]
    spread = [round(0.1 * index % 1, 2) for index in range(40)]
    names = ["pleural effusion", "cardiomegaly", "pneumothorax", "nodule"] * 10
    curve = {
        "mean": [good - 0.2, good],
        "low": [good - 0.22, good - 0.01],
        "high": [good - 0.18, good + 0.01],
    }
    return [
        entry(
            "crossaxis",
            model,
            [
                *(
                    value("crossaxis.spearman", group, good)
                    for group in ("", "size_laterality", "density_margin")
                ),
                *(value("crossaxis.side_flip", group, good - 0.6) for group in ("", "size_laterality")),
            ],
            sides={
                "size_laterality": {
                    "same": 0.8,
                    "opposite": 0.4,
                    "bilateral": None,
                    "n_same": 9,
                    "n_opposite": 9,
                }
            },
        ),
        entry(
            "probe",
            model,
            [value(f"probe.{key}", group, good) for key in ("match", "ordinal") for group in ("", "size")],
        ),
        entry(
            "retrieval",
            model,
            [value(f"retrieval.{key}", group, good / 10) for group in both for key in ("recall@1", "mrr@10")],
            tsne={"x": spread, "y": spread[::-1], "label": names},
        ),
        entry(
            "discrepancies",
            model,
            [
                value("discrepancies.win_rate", group, good)
                for group in ("cosine", "align_f1", "cosine/laterality", "cosine/omission")
            ],
        ),
        entry(
            "probes",
            model,
            [
                value("probes.presence_f1", "100", good - 0.2),
                value("probes.presence_f1", "all", good),
                value("probes.hamming", "all", 1 - good),
                value("probes.auroc", "", good),
                *(value("probes.auroc", tag, good) for tag in tags),
            ],
            learning={"labels": [100, 3200], "presence_f1": curve, "status_f1": curve},
        ),
        entry(
            "heads",
            model,
            [
                value("heads.spearman", "", good),
                value("heads.modularity", "", 3.1, None),
                value("heads.spearman", "size", good),
            ],
            response={"attributes": attributes, "matrix": response},
        ),
        entry(
            "states",
            model,
            [value("states.within", "", good), value("states.across", "", 1 - good)],
            boxes={
                "pleural_effusion": {"within": _box(good), "across": _box(-0.4), "within_present": _box(None)}
            },
        ),
        entry("cost", model, [value("cost.reports_per_second", "", 1105.25, None)]),
    ]


def results() -> dict[str, Any]:
    """Results of two models: ten suites, of which queries was skipped for both, for two reasons."""
    curriculum = {
        "stages": [2, 3],
        "points": [
            {"stage": 2, "step": 0, "values": {"contrast/mean": 0.5, "loss/contrasts/size": 0.9}},
            {
                "stage": 2,
                "step": 100,
                "values": {"contrast/mean": 0.9, "contrast/size": 0.8, "flip/size_laterality": None},
            },
            {"stage": 3, "step": 50, "values": {"contrast/mean": 0.95, "tokens": 9000.0}},
        ],
    }
    first = [
        failure("size", 1, 0.61, 0.82),
        failure("size", 2, 0.70, 0.71, HOSTILE),
        failure("density", 3, 0.5, 0.9, "mass"),
    ]
    second = [failure("size", 1, 0.55, 0.56)]
    measures = _measures(
        "contrasts.accuracy", "crossaxis.spearman", "crossaxis.side_flip", "probe.match", "probe.ordinal",
        "retrieval.recall@1", "retrieval.mrr@10", "queries.contradiction@10", "discrepancies.win_rate",
        "probes.presence_f1", "probes.hamming", "probes.auroc", "heads.spearman", "heads.modularity",
        "states.within", "states.across", "cost.reports_per_second",
    )  # fmt: skip
    return copy.deepcopy(
        {
            "radgen": "evaluation",
            "format": 1,
            "version": "0.1.0",
            "command": f"radgen evaluate --model before --reports '{HOSTILE}'",
            "seed": 42,
            "settings": "f" * 64,
            "sources": {
                "judging": {
                    "folder": "judging",
                    "sets": {"contrast_10": {"rows": 29500, "sha256": "e" * 64}},
                },
                "reports": {"name": HOSTILE, "pairs": 987},
                "discrepancies": None,
            },
            "models": [_model("before", 1), _model(LONG, 2, curriculum)],
            "measures": measures,
            "suites": [
                "contrasts",
                "crossaxis",
                "probe",
                "retrieval",
                "queries",
                "discrepancies",
                "probes",
                "heads",
                "states",
                "cost",
            ],
            "quoted": [
                {
                    "measure": "retrieval.recall@1",
                    "group": "findings→impression",
                    "encoder": "BGE-large",
                    "value": 0.058,
                    "source": "arXiv 2609.33075, table 2 (Open-I, 128 tokens)",
                },
            ],
            "results": [
                _contrasts("before", 0.6, 0.5, first, 0.02),
                _contrasts(LONG, 0.9, 0.98, second, 0.2),
                *_others("before", 0.7),
                *_others(LONG, 0.9),
                skipped("queries", "before", f"needs labels: {HOSTILE}"),
                skipped("queries", LONG, "no tokenizer"),
            ],
        }
    )
