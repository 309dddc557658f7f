"""What ``radgen verify`` recomputes of perturbations and discrepancies, from their rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from radgen.generators.radsim.policy import canonical, score
from radgen.generators.similarity.changes import addition_target, retention
from radgen.generators.similarity.edits import differs_by
from radgen.ontology.radsim import Policy

_CLOSE = 1e-6
_HARMLESS = ("synonym", "reordering", "paraphrase", "condensation")
Rows = list[tuple[int, dict[str, Any]]]


def recheck(
    family: str, rows: Rows, manifest: Mapping[str, Any], policy: Policy
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong in rows of a family."""
    check = {"perturbation": _perturbed, "discrepancies": _discrepancy}.get(family)
    if check is None:
        yield 1, f"unknown family '{family}'"
        return
    for number, row in rows:
        yield from ((number, reason) for reason in check(row, policy))


def _there(states: list[dict[str, Any]]) -> set[str]:
    return {state["finding"] for state in states if state.get("presence") != "absent"}


def _named(states: list[dict[str, Any]]) -> set[str]:
    return {state["finding"] for state in states}


def _perturbed(row: dict[str, Any], policy: Policy) -> Iterator[str]:
    before, after = row["state1"], row["state2"]
    target = None
    if row["kind"] == "reordered":
        target = 1.0
        if list(canonical(before)) != list(canonical(after)):
            yield "reordered, but the states differ"
    elif row["kind"] == "added":
        k, n = len(_there(before)), len(_there(after) - _there(before))
        target = addition_target(k, n) if k and n else None
    elif row["kind"] == "omitted":
        weights = dict(zip(row["findings"], row["prominence"], strict=True))
        if set(weights) != _named(before):
            yield "its weights are not those of its findings"
        target = retention(weights, _named(after))
        yield from (
            "a sentence that was left out is still there"
            for text in row["changed"]
            if text in row["sentence2"]
        )
    if target is None or abs(target - row["score"]) > _CLOSE:
        yield f"score {row['score']:.4f}, its states give {target if target is None else round(target, 4)}"
    if row["kind"] == "added":
        yield from (
            "a sentence that was added is not there"
            for text in row["changed"]
            if text not in row["sentence2"]
        )


def _discrepancy(row: dict[str, Any], policy: Policy) -> Iterator[str]:
    anchor, positive, negative = (row[f"{name}_state"] for name in ("anchor", "positive", "negative"))
    if row["control"] not in _HARMLESS or not differs_by(row["control"], anchor, positive):
        yield "the harmless rewrite states something else"
    for name, states in (("positive", positive), ("negative", negative)):
        value = score(anchor, states, policy).value
        if abs(value - row[f"{name}_target"]) > _CLOSE:
            yield f"{name}_target {row[f'{name}_target']:.4f}, RadSim of its states is {value:.4f}"
    kind = row["discrepancy"]
    if not differs_by(kind, anchor, negative):
        yield f"its states do not differ by a {kind} discrepancy alone"
    if row["after"] and row["after"].rstrip(".") not in row["negative"]:
        yield "the changed sentence is not in the text"
