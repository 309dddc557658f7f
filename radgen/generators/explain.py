"""``radgen explain``: how the target of a row comes about, step by step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radgen.errors import DatasetError
from radgen.ontology.distance import axis_distance, axis_target, joint_parts, joint_target, side_relation
from radgen.ontology.load import Ontology

#: Families explained elsewhere, recognised by a column: a function (row, ontology) that returns steps.
OTHER_ROWS: dict[str, str] = {}


def read_row(path: Path, number: int) -> dict[str, Any]:
    """Return row ``number`` (from 1) of a JSONL file.

    Raises:
        DatasetError: there is no such file or row, or it is not JSON.
    """
    if number < 1:
        raise DatasetError(f"{path}: row {number}: rows are counted from 1")
    last = 0
    try:
        with path.open("rb") as file:
            for last, line in enumerate(itertools.islice(file, number), 1):
                if last == number:
                    row = orjson.loads(line)
                    if not isinstance(row, dict):
                        raise DatasetError(f"{path}:{number}: expected a JSON object")
                    return row
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{path}:{number}: not JSON: {error}") from None
    raise DatasetError(f"{path}: has {last} rows, row {number} was asked for")


def explain(row: Mapping[str, Any], ontology: Ontology) -> dict[str, Any]:
    """Return what makes up the targets of a row: states, and for each comparison its steps and result.

    Raises:
        DatasetError: the row is of no family that radgen makes.
    """
    if "anchor_state" in row:
        names = ["anchor", "positive", "negative"]
        states = {name: row[f"{name}_state"] for name in names}
        axis = str(row["axis"])
        comparisons = [
            _single(ontology, axis, "anchor", name, states["anchor"], states[name], row[f"{name}_target"])
            for name in names[1:]
        ]
    elif "combination" in row:
        names = ["sentence1", "sentence2"]
        states = {"sentence1": row["state1"], "sentence2": row["state2"]}
        axis = str(row["combination"])
        comparisons = [_joint(ontology, axis, row["state1"], row["state2"], row["score"])]
    elif "axis" in row and isinstance(row.get("state1"), dict):
        names = ["sentence1", "sentence2"]
        states = {"sentence1": row["state1"], "sentence2": row["state2"]}
        axis = str(row["axis"])
        comparisons = [
            _single(ontology, axis, "sentence1", "sentence2", row["state1"], row["state2"], row["score"])
        ]
    else:
        raise DatasetError("this row is of no family that can be explained (expected states of its texts)")
    return {
        "id": row.get("id"),
        "axis": axis,
        "texts": {name: row[name] for name in names},
        "states": states,
        "comparisons": comparisons,
    }


def _single(
    ontology: Ontology,
    name: str,
    first: str,
    second: str,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    stored: float,
) -> dict[str, Any]:
    axis = ontology.axis("location" if name == "zone" else "finding" if name == "synonym" else name)
    steps: list[str] = []
    out: dict[str, Any] = {"of": second, "against": first}
    if axis.kind in ("presence", "finding", "side"):
        if axis.kind == "finding":
            relation = ontology.relation(a["finding"], b["finding"])
        elif axis.kind == "presence":
            relation = "same" if a["presence"] == b["presence"] else "opposite"
        else:
            relation = side_relation(a.get("laterality"), b.get("laterality"))
        target = axis.targets[relation]
        out.update(relation=relation)
        steps.append(f"{axis.kind}: relation '{relation}' has the target {target:g}")
    else:
        distance = axis_distance(axis, ontology.anatomy, a, b) or 0.0
        target = axis_target(axis, ontology.anatomy, a, b)
        steps.append(_distance_step(ontology, name, a, b, distance))
        steps.append(
            f"t = 2·exp(-d²/(2·σ²)) - 1 = 2·exp(-{distance:.4g}²/(2·{axis.sigma:g}²)) - 1 = {target:.6f}"
        )
        out.update(distance=distance, sigma=axis.sigma)
    return {**out, "steps": steps, "target": target, "stored": stored, "agrees": abs(target - stored) < 1e-9}


def _distance_step(
    ontology: Ontology, name: str, a: Mapping[str, Any], b: Mapping[str, Any], d: float
) -> str:
    axis = ontology.axis("location" if name == "zone" else name)
    values = [
        ", ".join(f"{state[f]}" for f in axis.fields if f in state and f != "presence") for state in (a, b)
    ]
    how = {
        "ordinal": "levels between",
        "log_ratio": "|log2(a/b)|",
        "location": f"craniocaudal steps, plus {axis.side_distance} if the side differs",
    }.get(axis.kind, "")
    return f"{name}: {values[0]} against {values[1]}: d = {how} = {d:.4g}"


def _joint(
    ontology: Ontology, name: str, a: Mapping[str, Any], b: Mapping[str, Any], stored: float
) -> dict[str, Any]:
    axes = ontology.axes.crossaxis.combinations[name]
    distances, sigmas, relation, penalty = joint_parts(ontology.axes, ontology.anatomy, axes, a, b)
    target = joint_target(ontology.axes, ontology.anatomy, axes, a, b)
    steps, factors = [], []
    for axis, distance in distances.items():
        factor = math.exp(-(distance**2) / (2 * sigmas[axis] ** 2))
        factors.append(factor)
        steps.append(_distance_step(ontology, axis, a, b, distance))
        steps.append(f"{axis}: exp(-{distance:.4g}²/(2·{sigmas[axis]:g}²)) = {factor:.6f}")
    if relation is not None:
        steps.append(f"laterality: relation '{relation}' takes {penalty:g}")
    product = " · ".join(f"{factor:.6f}" for factor in factors) or "1"
    steps.append(f"y = clip({product} - {penalty:g}, -1, 1) = {target:.6f}")
    return {
        "of": "sentence2",
        "against": "sentence1",
        "distances": distances,
        "sigmas": sigmas,
        "relation": relation,
        "penalty": penalty,
        "steps": steps,
        "target": target,
        "stored": stored,
        "agrees": abs(target - stored) < 1e-9,
    }


def print_explained(found: Mapping[str, Any], console: Console) -> None:
    """Print an explanation as tables: texts, states side by side, and the arithmetic."""
    for name, text in found["texts"].items():
        console.print(f"[bold]{name}[/bold]: {escape(text)}", highlight=False, soft_wrap=True)
    table = Table(title=f"States (axis: {found['axis']})")
    table.add_column("field")
    states = found["states"]
    for name in states:
        table.add_column(name)
    for field in dict.fromkeys(name for state in states.values() for name in state):
        values = ["-" if state.get(field) is None else str(state[field]) for state in states.values()]
        style = "bold yellow" if len(set(values)) > 1 else ""
        table.add_row(field, *values, style=style)
    console.print(table)
    sums = Table(title="Arithmetic", show_lines=True)
    for name in ("comparison", "steps", "target", "stored"):
        sums.add_column(name, overflow="fold")
    for one in found["comparisons"]:
        mark = f"{one['stored']:.6f}" + ("" if one["agrees"] else " [red]differs[/red]")
        sums.add_row(
            f"{one['of']} against {one['against']}",
            escape("\n".join(one["steps"])),
            f"{one['target']:.6f}",
            mark,
        )
    console.print(sums)
