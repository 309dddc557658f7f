"""``radgen compare``: differences of two evaluations with intervals, and a gate for regressions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.train.measures import Interval, difference

_GATE = re.compile(r"(?P<measure>[^\[\]=]+)(?:\[(?P<group>[^\]]*)\])?=(?P<bound>.+)")


@dataclass(frozen=True)
class Difference:
    """One figure in two evaluations.

    Attributes:
        change: after − before.
        low, high: its interval; None where a figure has none.
        better: "higher", "lower" or "none": which way is better.
    """

    measure: str
    group: str
    before: float
    after: float
    change: float
    low: float | None
    high: float | None
    better: str

    @property
    def name(self) -> str:
        """``measure`` or ``measure[group]``, as a gate names it."""
        return f"{self.measure}[{self.group}]" if self.group else self.measure

    @property
    def fall(self) -> float:
        """By how much it got worse; negative where it got better."""
        return self.change if self.better == "lower" else -self.change

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` where the interval holds no zero, else nothing."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high or self.better == "none":
            return ""
        return "better" if (self.change > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class Gate:
    """A measure that may fall by no more than a bound."""

    measure: str
    group: str
    bound: float

    @property
    def name(self) -> str:
        """``measure`` or ``measure[group]``."""
        return f"{self.measure}[{self.group}]" if self.group else self.measure


def read_gate(text: str) -> Gate:
    """Read ``MEASURE=BOUND`` or ``MEASURE[GROUP]=BOUND``.

    >>> read_gate("contrasts.accuracy[size]=0.01")
    Gate(measure='contrasts.accuracy', group='size', bound=0.01)

    Raises:
        RadgenError: it is neither, or the bound is no number of at least 0.
    """
    found = _GATE.fullmatch(text.strip())
    try:
        bound = float(found["bound"]) if found else math.nan
    except ValueError:
        bound = math.nan
    if found is None or not bound >= 0 or math.isinf(bound):
        raise RadgenError(
            f"--gate {text!r}: expected MEASURE=BOUND or MEASURE[GROUP]=BOUND with a bound of at least 0, "
            "such as contrasts.accuracy[size]=0.01"
        )
    return Gate(found["measure"].strip(), (found["group"] or "").strip(), bound)


def model_of(results: Mapping[str, Any], name: str | None, option: str, where: str) -> str:
    """Return the model to compare: the one named, or the only one.

    Raises:
        RadgenError: the name is not in the file, or the file has several and none was named.
    """
    names = [model["name"] for model in results["models"]]
    if name is None:
        if len(names) == 1:
            return str(names[0])
        raise RadgenError(f"{where}: has several models: name one with {option}: {', '.join(names)}")
    if name not in names:
        raise RadgenError(f"{option}: {where}: {unknown('model', name, names)}")
    return name


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], model: str, other: str
) -> tuple[list[Difference], list[str]]:
    """Return the differences of all figures that both have, and what stands against comparing them.

    Args:
        before, after: contents of two ``results.json``.
        model, other: the model of ``before`` and the one of ``after``.
    """
    first, second = _values(before, model), _values(after, other)
    measures = {**before["measures"], **after["measures"]}
    out = []
    for key, a in first.items():
        b = second.get(key)
        if b is None or a["value"] is None or b["value"] is None:
            continue
        found = difference(_interval(a), _interval(b))
        low, high = (None if math.isnan(edge) else edge for edge in (found.low, found.high))
        better = measures[key[0]]["better"]
        out.append(Difference(*key, a["value"], b["value"], found.value, low, high, better))
    return out, _remarks(before, after, first, second)


def _values(results: Mapping[str, Any], model: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (value["measure"], value["group"]): value
        for entry in results["results"]
        if entry["model"] == model
        for value in entry["values"]
    }


def _interval(value: Mapping[str, Any]) -> Interval:
    low, high = (math.nan if value[key] is None else value[key] for key in ("low", "high"))
    return Interval(value["value"], low, high, value["n"])


def _remarks(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    first: Mapping[tuple[str, str], Any],
    second: Mapping[tuple[str, str], Any],
) -> list[str]:
    sources = before["sources"], after["sources"]
    out = [
        f"{key}: the two evaluations did not judge the same rows"
        for key in sorted({*sources[0], *sources[1]})
        if sources[0].get(key) != sources[1].get(key)
    ]
    out += [
        f"{key}: differs between the two evaluations"
        for key in ("settings", "seed", "ontology")
        if before.get(key) != after.get(key)
    ]
    if missing := len(first.keys() ^ second.keys()):
        out.append(f"{missing} figures are in one evaluation alone and are not compared")
    return out


def broken(gates: Sequence[Gate], found: Sequence[Difference]) -> list[str]:
    """Return a line for each gate whose measure fell by more than its bound.

    Raises:
        RadgenError: a gate's measure is not in both evaluations: nothing can be said, so nothing passes.
    """
    by = {(item.measure, item.group): item for item in found}
    out = []
    for gate in gates:
        item = by.get((gate.measure, gate.group))
        if item is None:
            known = [other.name for other in found]
            raise RadgenError(f"--gate: not in both evaluations: {unknown('figure', gate.name, known)}")
        if item.better == "none":
            raise RadgenError(f"--gate {gate.name}: no way is better for this figure")
        if item.fall > gate.bound + 1e-9:
            way = "rose" if item.better == "lower" else "fell"
            out.append(
                f"{gate.name} {way} by {item.fall:.6g} ({item.before:.6g} to {item.after:.6g}); "
                f"the bound is {gate.bound:g}"
            )
    return out
