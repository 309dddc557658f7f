"""Scores of two RadThought records, level by level (spec §6), in plain Python with their tables.

- scene graph: ``2 J - 1`` with ``J`` the Jaccard index of the predicates without ids. A predicate that holds
  for two findings of one tag counts twice: ``J = |A ∩ B| / |A ∪ B|`` over multisets.
- first order: RadSim (§4) of the findings that the predicates state.
- second order, third order, synthesis: agreement of the conclusions of that level *(ours)*::

      S = [ Σ_matched Σ_a w_a r_a  +  Σ_alone W u ] / [ Σ_matched Σ_a w_a  +  Σ_alone W ]

  Conclusions are matched one to one by the process that they are ``about``, the best agreement first; those
  that say nothing without their findings ("stands alone in its organ") only where they share a finding. ``a``
  runs over the attributes that at least one of the two states: assertion, certainty, severity, acuity,
  temporal, mechanism, significance, and what they derive from: its side, and its findings, ``2 J - 1`` of
  their tags. Ordinals agree by §2's ``t(d) = 2 exp(-d² / 2σ²) - 1``. What both deny has no findings of its
  own; where one side denies the process and the other does not, every attribute has the agreement of the
  assertions (present against absent: -1). A conclusion that one side has alone counts ``u`` for the weight
  ``W`` of what it states. Neither side concludes anything: 1.
- fused: the sum of the levels' scores times their weights.

All are symmetric, lie in [-1, 1], and depend on no numbering and no order. The numbers are in
``radthought_pairs.yaml``; the assertions, hedges and sides have RadSim's tables (``radsim.yaml``).
The same scores for many pairs at once are in ``scores_coded.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.generators.radsim.agreement import presence_agreement, side_agreement
from radgen.generators.radthought.pair_settings import (
    COMPARED,
    LEVELS,
    Compared,
    ConclusionSettings,
    LevelName,
    RadthoughtPairsFile,
)
from radgen.generators.radthought.record import CERTAINTY, FIRMNESS, SEVERITY, SIGNIFICANCE
from radgen.ontology.distance import graded
from radgen.ontology.radsim import Policy

#: What is compared of a conclusion: the process, then its attributes; unstated ones are None, the evidence
#: is a sorted list of tags.
Told = Mapping[str, Any]
TOLD: tuple[str, ...] = ("about", *COMPARED)
_SCALES: dict[str, tuple[str, ...]] = {
    "certainty": CERTAINTY,
    "severity": SEVERITY,
    "acuity": ("chronic", "subacute", "acute"),
    "temporal": ("resolved", "decreased", "stable", "increased", "new"),
    "significance": SIGNIFICANCE,
}


def told(conclusion: Mapping[str, Any], states: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is compared of a conclusion of a record.

    Args:
        states: the findings of the record by number (``Record.states``).
    """
    evidence = [states[int(name[1:])] for name in conclusion["derived"]]
    here = [state for state in evidence if state.get("presence") != "absent"] or evidence
    stated: dict[str, Any] = {name: conclusion[name] for name in COMPARED if name not in ("side", "evidence")}
    tags = sorted({state["finding"] for state in evidence})
    return {"about": conclusion["about"], **stated, "side": side_of(here), "evidence": tags}


def side_of(evidence: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the side of the findings that a conclusion derives from; None where none states a side.

    >>> side_of([{"laterality": "left"}, {"laterality": "right"}, {}])
    'bilateral'
    """
    sides = {state["laterality"] for state in evidence if state.get("laterality")}
    if len(sides - {"midline"}) > 1:
        return "bilateral"
    return min(sides - {"midline"} or sides, default=None)


def jaccard(a: Sequence[str], b: Sequence[str]) -> float:
    """Return the Jaccard index of two multisets, 1 for two empty ones.

    >>> jaccard(["x", "x", "y"], ["x", "z"])
    0.25
    """
    first, second = Counter(a), Counter(b)
    union = (first | second).total()
    return (first & second).total() / union if union else 1.0


def scene_score(a: Sequence[str], b: Sequence[str]) -> float:
    """Return the score of two scene graphs: predicates without ids (``predicates.canonical``)."""
    return 2.0 * jaccard(a, b) - 1.0


@dataclass(frozen=True)
class Term:
    """One attribute of two matched conclusions."""

    attribute: Compared
    weight: float
    agreement: float


@dataclass(frozen=True)
class Row:
    """One process in the table of a level: both sides' conclusion, or one side's alone."""

    kind: Literal["both", "only_a", "only_b"]
    a: Told | None
    b: Told | None
    weight: float
    agreement: float
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class LevelScore:
    """The score of two lists of conclusions, with its table."""

    value: float
    rows: tuple[Row, ...]


def attribute_agreement(name: Compared, a: Any, b: Any, options: ConclusionSettings, policy: Policy) -> float:
    """Return the agreement of one attribute that at least one side states; symmetric."""
    if name == "evidence":
        return 2.0 * jaccard(sorted(set(a)), sorted(set(b))) - 1.0
    if name == "assertion":
        return presence_agreement(policy, a or "unstated", b or "unstated")
    if a is None or b is None:
        stated = a if b is None else b
        if name == "certainty":
            return policy.constants.hedged[stated]
        return options.one_sided[name]
    if name == "side":
        return side_agreement(policy, a, b)
    if name == "mechanism":
        return _mechanism(a, b, options)
    scale = _SCALES[name]
    if a in scale and b in scale:
        return graded(scale.index(a) - scale.index(b), options.sigma[name])
    return 1.0 if a == b else options.mixed_change


def _mechanism(a: str, b: str, options: ConclusionSettings) -> float:
    """``possible(NAME)`` against ``stated(NAME)``: the same process, told with another firmness."""
    if a == b:
        return options.mechanism["same"]
    names = [value.partition("(")[2] if value.partition("(")[0] in FIRMNESS else value for value in (a, b)]
    return options.mechanism["firmness" if names[0] == names[1] else "different"]


def compare(a: Told, b: Told, options: ConclusionSettings, policy: Policy) -> tuple[Term, ...]:
    """Return the terms of two conclusions about one process."""
    denials = (a["assertion"] == "absent") + (b["assertion"] == "absent")
    against = attribute_agreement("assertion", a["assertion"], b["assertion"], options, policy)
    out = []
    for name in COMPARED:
        if name == "evidence" and denials == 2:
            continue
        if name != "assertion" and a[name] is None and b[name] is None:
            continue
        agreement = against if denials == 1 else attribute_agreement(name, a[name], b[name], options, policy)
        out.append(Term(name, options.weights[name], agreement))
    return tuple(out)


def may_match(a: Told, b: Told, options: ConclusionSettings) -> bool:
    """Whether two conclusions about one process speak of the same: generic ones only of a common finding."""
    return a["about"] not in options.generic or not set(a["evidence"]).isdisjoint(b["evidence"])


def own_weight(conclusion: Told, options: ConclusionSettings) -> float:
    """Return the weight of a conclusion that one side has alone: of what it states, and its assertion."""
    denied = conclusion["assertion"] == "absent"
    return sum(
        options.weights[name]
        for name in COMPARED
        if name == "assertion" or (conclusion[name] is not None and not (denied and name == "evidence"))
    )


def alone_agreement(conclusion: Told, options: ConclusionSettings) -> float:
    """Return the agreement of a conclusion that one side has alone."""
    return options.unmatched[conclusion["assertion"] or "present"]


def content_number(conclusion: Told) -> int:
    """Return the 64-bit hash of a conclusion: decides between matches that are equally good."""
    data = orjson.dumps([conclusion[name] for name in TOLD])
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def conclusion_score(
    a: Sequence[Told], b: Sequence[Told], options: ConclusionSettings, policy: Policy
) -> LevelScore:
    """Return the agreement of the conclusions of one level, with its table."""
    if not a and not b:
        return LevelScore(options.nothing_concluded, ())
    choices = []
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            if x["about"] == y["about"] and may_match(x, y, options):
                terms = compare(x, y, options, policy)
                weight = sum(term.weight for term in terms)
                total = sum(term.weight * term.agreement for term in terms)
                content = (content_number(x) + content_number(y)) % 2**64
                # Rounded, so that equal agreements are equal whatever the order of the sums.
                key = (-round(total / weight * 1e9), -round(weight * 1e6), content)
                choices.append((key, i, j, Row("both", x, y, weight, total / weight, terms)))
    rows: list[Row] = []
    used_a: set[int] = set()
    used_b: set[int] = set()
    for _, i, j, row in sorted(choices, key=lambda choice: choice[0]):
        if i not in used_a and j not in used_b:
            used_a.add(i)
            used_b.add(j)
            rows.append(row)
    for side, used, first in ((a, used_a, True), (b, used_b, False)):
        for index, item in enumerate(side):
            if index not in used:
                weight, agreement = own_weight(item, options), alone_agreement(item, options)
                rows.append(
                    Row("only_a", item, None, weight, agreement)
                    if first
                    else Row("only_b", None, item, weight, agreement)
                )
    # Exact sums, so that the order of the rows, which is another for (b, a), changes no bit.
    weight = math.fsum(row.weight for row in rows)
    return LevelScore(math.fsum(row.weight * row.agreement for row in rows) / weight, tuple(rows))


V = TypeVar("V", float, NDArray[np.float64])


def fused_sum(levels: Mapping[LevelName, V], options: RadthoughtPairsFile) -> V:
    """Return the weighted sum of the scores of the five levels (spec §6), of one pair or of many.

    >>> from radgen.generators.radthought.pair_settings import settings
    >>> round(fused_sum(dict.fromkeys(LEVELS, 0.5), settings()), 9)
    0.5
    """
    total = options.fused.weights[LEVELS[0]] * levels[LEVELS[0]]
    for name in LEVELS[1:]:
        total = total + options.fused.weights[name] * levels[name]
    return total
