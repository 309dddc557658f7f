"""``radgen explain``: the arithmetic of a row, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from dataset_runs import dataset, one_line, radgen, rows_of

from radgen.generators.explain import explain
from radgen.ontology.load import load_ontology

ONTOLOGY = load_ontology()


def state(**fields: Any) -> dict[str, Any]:
    return {"finding": "lung_nodule", "presence": "present", **fields}


def triplet(
    axis: str, anchor: dict[str, Any], positive: dict[str, Any], negative: dict[str, Any], *targets: float
) -> dict[str, Any]:
    return {
        "anchor": "A.", "positive": "B.", "negative": "C.", "id": f"{axis}-1", "axis": axis,
        "positive_target": targets[0], "negative_target": targets[1],
        "anchor_state": anchor, "positive_state": positive, "negative_state": negative,
    }  # fmt: skip


def cross(name: str, a: dict[str, Any], b: dict[str, Any], score: float) -> dict[str, Any]:
    return {
        "sentence1": "A.",
        "sentence2": "B.",
        "score": score,
        "combination": name,
        "state1": a,
        "state2": b,
    }


def test_an_ordinal_triplet() -> None:
    mild, moderate, severe = (state(severity=level) for level in ("mild", "moderate", "severe"))
    found = explain(triplet("severity", mild, moderate, severe, 0.601475, 0.5), ONTOLOGY)
    near, far = found["comparisons"]
    # d = 1: 2 exp(-1/4.5) - 1; d = 2: 2 exp(-4/4.5) - 1
    assert (near["distance"], near["sigma"], near["target"]) == (1, 1.5, pytest.approx(0.601475, abs=1e-6))
    assert (far["distance"], far["target"]) == (2, pytest.approx(-0.177775, abs=1e-6))
    assert "mild against moderate" in near["steps"][0]
    assert "2·exp(-1²/(2·1.5²)) - 1 = 0.601475" in near["steps"][1]
    assert (near["agrees"], far["agrees"]) == (False, False)  # 0.601475 is rounded, 0.5 is wrong
    assert found["states"]["negative"]["severity"] == "severe"


def test_sides() -> None:
    left, right, both = (state(laterality=side) for side in ("left", "right", "bilateral"))
    first, second = explain(triplet("laterality_controlled", left, both, right, 0.15, -0.6), ONTOLOGY)[
        "comparisons"
    ]
    assert (first["relation"], first["target"], first["agrees"]) == ("bilateral", 0.15, True)
    assert (second["relation"], second["target"], second["agrees"]) == ("opposite", -0.6, True)


def test_location_counts_the_side() -> None:
    a, b = state(laterality="left", zone="upper"), state(laterality="right", zone="lower")
    (_, far) = explain(triplet("location", a, a, b, 1.0, 0.0), ONTOLOGY)["comparisons"]
    assert far["distance"] == 4.5  # two steps and 2.5 for the side
    assert far["target"] == pytest.approx(-0.840881, abs=1e-6)  # 2 exp(-20.25/8) - 1


def test_a_cross_axis_pair() -> None:
    a, b = state(size_mm=10.0, laterality="left"), state(size_mm=20.0, laterality="right")
    (found,) = explain(cross("size_laterality", a, b, 0.0), ONTOLOGY)["comparisons"]
    assert (found["distances"], found["sigmas"]) == ({"size": 1.0}, {"size": 2.5})
    assert (found["relation"], found["penalty"]) == ("opposite", 0.9)
    assert found["target"] == pytest.approx(0.023116, abs=1e-6)
    assert "size: exp(-1²/(2·2.5²)) = 0.923116" in found["steps"]
    assert found["steps"][-1] == "y = clip(0.923116 - 0.9, -1, 1) = 0.023116"


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("contrasts", "finding"),
        ("contrasts", "presence"),
        ("pairs", "count_pairs"),
        ("crossaxis", "count_laterality"),
    ],
)
def test_every_row_agrees_with_its_explanation(tmp_path: Path, family: str, name: str) -> None:
    for row in rows_of(dataset(tmp_path, family, name, 40)):
        found = explain(row, ONTOLOGY)
        assert all(one["agrees"] for one in found["comparisons"])
        assert all(one["steps"] for one in found["comparisons"])


def test_the_command(tmp_path: Path) -> None:
    a, b = state(size_mm=10.0, laterality="left"), state(size_mm=20.0, laterality="left")
    row = cross("size_laterality", a, b, 0.9231163463866358)
    (tmp_path / "rows.jsonl").write_bytes(orjson.dumps({}) + b"\n" + orjson.dumps(row) + b"\n")
    shown = radgen("explain", "rows.jsonl", 2, cwd=tmp_path, COLUMNS="160")
    assert shown.returncode == 0, shown.stderr
    assert "0.923116" in shown.stdout
    assert "size: 10.0 against 20.0" in shown.stdout
    given = orjson.loads(radgen("explain", "rows.jsonl", 2, "--json", cwd=tmp_path).stdout)
    assert given["comparisons"][0]["target"] == pytest.approx(0.923116, abs=1e-6)
    assert given["comparisons"][0]["agrees"] is True
    assert given["states"] == {"sentence1": a, "sentence2": b}


@pytest.mark.parametrize(
    ("number", "said"),
    [("1", "no family"), ("3", "has 2 rows, row 3 was asked for"), ("0", "counted from 1")],
)
def test_rows_that_cannot_be_explained(tmp_path: Path, number: str, said: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"{}\n{}\n")
    assert said in one_line(radgen("explain", "rows.jsonl", number, cwd=tmp_path))
