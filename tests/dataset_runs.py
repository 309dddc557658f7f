"""Small datasets for tests, and the recipe's numbers written down a second time, away from the package."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from radgen.generators.make import make
from radgen.generators.run import realiser_of
from radgen.generators.stream import Order

ROOT = Path(__file__).resolve().parents[1]
SPLITS = ("train", "validation", "test")
TEXTS = ("anchor", "positive", "negative", "sentence1", "sentence2")


def dataset(out: Path, family: str, name: str, rows: int, seed: int = 42, **more: Any) -> Path:
    """Make a dataset in this process and return its folder."""
    order = Order(family, name, rows, seed, **more)
    return make(order, out, realiser=realiser_of(order)).folder


def rows_of(folder: Path, *splits: str) -> list[dict[str, Any]]:
    """Return the rows of the named splits (all three if none is named)."""
    lines = [line for split in splits or SPLITS for line in (folder / f"{split}.jsonl").open("rb")]
    return [orjson.loads(line) for line in lines]


def texts_of(folder: Path, *splits: str) -> list[str]:
    """Return every text of the named splits."""
    return [row[key] for row in rows_of(folder, *splits) for key in TEXTS if key in row]


def radgen(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "radgen", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    """Check that a command ended as a mistake of the user should end, and return its line."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("radgen: ")
    return result.stderr.removeprefix("radgen: ").strip()


# --- the recipe, from the papers and not from the package ---

LEVELS = {
    "severity": ["trace", "mild", "moderate", "severe"],
    "temporal_change": ["resolved", "decreased", "stable", "increased", "new"],
    "density": ["ground_glass", "part_solid", "solid", "calcified"],
    "margin": ["smooth", "lobulated", "ill_defined", "spiculated"],
    "certainty": ["cannot_exclude", "possible", "probable", "definite"],
    "distribution": ["focal", "multifocal", "diffuse"],
}
ZONES = ["apical", "upper", "mid", "lower", "basal"]
LOBES = {"upper": 1, "middle": 2, "lingula": 2, "lower": 3}
NUMBER = {"single": 1, "few": 3, "multiple": 8, "innumerable": 24}
FIELDS = {
    "size": {"size_mm", "size_dims_mm"},
    "count": {"count", "count_category"},
    "laterality": {"laterality"},
    "location": {"laterality", "lobe", "zone"},
    "temporal_change": {"temporal_change", "presence"},
    "certainty": {"certainty", "presence"},
    "severity": {"severity"},
    "density": {"density"},
    "margin": {"margin"},
    "distribution": {"distribution"},
}


def target(axis: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Return the graded target of one state against another on one of the ten axes."""
    if axis == "laterality":
        if a["laterality"] == b["laterality"]:
            return 1.0
        return 0.15 if "bilateral" in (a["laterality"], b["laterality"]) else -0.6
    sigma = 2.0 if axis == "location" else 1.5
    return 2 * math.exp(-(distance(axis, a, b) ** 2) / (2 * sigma * sigma)) - 1


def distance(axis: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Return the distance of two states on a graded axis."""
    if axis in LEVELS:
        return abs(LEVELS[axis].index(a[axis]) - LEVELS[axis].index(b[axis]))
    if axis == "size":
        return abs(math.log2(a["size_mm"] / b["size_mm"]))
    if axis == "count":
        x, y = (s["count"] if "count" in s else NUMBER[s["count_category"]] for s in (a, b))
        return abs(math.log2(x / y))
    steps = abs(_rank(a) - _rank(b))
    return steps + (2.5 if a["laterality"] != b["laterality"] else 0)


def _rank(state: Mapping[str, Any]) -> int:
    return ZONES.index(state["zone"]) if "zone" in state else LOBES[state["lobe"]]


def split_of(text: str) -> str:
    """Return the split of a text, worked out anew."""
    plain = " ".join(text.lower().split()).rstrip(". ")
    share = int.from_bytes(blake2b(plain.encode(), digest_size=8).digest(), "big") / 2**64
    return "train" if share < 0.90 else "validation" if share < 0.95 else "test"
