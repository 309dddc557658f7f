"""RadSim of two descriptions (spec §4, eq. 1), with the table that makes up the score.

The same policy for millions of pairs is in ``coded.py``; a test holds the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import orjson

from radgen.generators.radsim.agreement import SHAPES, Pair, State, compare, presence_of, size_of
from radgen.ontology.finding import FIELDS, Finding
from radgen.ontology.radsim import Policy

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIELDS = frozenset(FIELDS)
#: Fields that a state may carry and that are no part of what it says.
_NOT_CURRENT = ("historical", "hypothetical")

Kind = Literal["same", "continuum", "only_a", "only_b", "denied_by_summary", "denied_with_summary"]


@dataclass(frozen=True)
class Row:
    """One finding in the table of a score.

    Attributes:
        kind: why it counts as it does.
        a, b: what each side states, None where a side does not mention it.
        weight: sum of its weights.
        agreement: its weighted agreement, in [-1, 1].
        pair: its attributes, where both sides have it.
        related: its share of B_family before weighting, and the finding that gives it.
        organ: its share of B_organ before weighting.
    """

    kind: Kind
    a: State | None
    b: State | None
    weight: float
    agreement: float
    pair: Pair | None = None
    related: tuple[float, str | None] = (0.0, None)
    organ: float = 0.0


@dataclass(frozen=True)
class Score:
    """A RadSim score and what it is made of: ``value = clip(agreement + family + organ + jitter, -1, 1)``."""

    value: float
    agreement: float
    family: float
    organ: float
    jitter: float
    weight: float
    rows: tuple[Row, ...]


def canonical(findings: Iterable[Finding | Mapping[str, Any]]) -> dict[bytes, dict[str, Any]]:
    """Return the distinct current states by their canonical JSON, in its order, without evidence."""
    found: dict[bytes, dict[str, Any]] = {}
    for item in findings:
        state = item.stated() if isinstance(item, Finding) else item
        if state.get("temporality") in _NOT_CURRENT:
            continue
        kept = {name: value for name, value in state.items() if name in _FIELDS and value not in (None, [])}
        if "morphology" in kept:
            kept["morphology"] = sorted(kept["morphology"])
        found[orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)] = kept
    return {key: found[key] for key in sorted(found)}


def clean_states(findings: Iterable[Finding | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return distinct current states in a canonical order, without evidence or section.

    >>> clean_states([{"finding": "edema", "presence": "present", "section": "findings"}])
    [{'finding': 'edema', 'presence': 'present'}]
    """
    return list(canonical(findings).values())


def state_hash(state: State) -> int:
    """Return the 64-bit hash of a state."""
    return _hash(orjson.dumps(state, option=orjson.OPT_SORT_KEYS))


def content_hash(keys: Iterable[bytes]) -> int:
    """Return the 64-bit hash of a description: of the canonical JSON of its states, in order."""
    return _hash(b"\n".join(keys))


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def mix(value: int) -> int:
    """Return the finaliser of splitmix64: 64 well mixed bits of 64 bits."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def jitter(policy: Policy, a: int, b: int) -> float:
    """Return ε of two content hashes: Gaussian, clipped, the same in both orders and on every machine."""
    constants = policy.constants.jitter
    low, high = min(a, b), max(a, b)
    seed = (low * _GOLDEN + high) & _MASK
    first, second = mix(seed), mix((seed + _GOLDEN) & _MASK)
    u, v = ((first >> 11) + 1) / 2**53, (second >> 11) / 2**53
    z = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
    return constants.sigma * max(-constants.clip, min(constants.clip, z))


def score(
    a: Iterable[Finding | Mapping[str, Any]], b: Iterable[Finding | Mapping[str, Any]], policy: Policy
) -> Score:
    """Return RadSim of two lists of findings, with its table; symmetric and reproducible.

    Args:
        a, b: findings or mappings of stated fields; history and hypotheticals are left out.
    """
    keys_a, keys_b = canonical(a), canonical(b)
    left, right = list(keys_a.values()), list(keys_b.values())
    noise = jitter(policy, content_hash(keys_a), content_hash(keys_b))
    rows, rest_a, rest_b = _match(policy, left, right)
    rows += _leftovers(policy, left, right, rest_a, rest_b)
    weight = sum(row.weight for row in rows)
    if weight <= 0:
        constants = policy.constants
        agreement = constants.nothing_stated if not left or not right else constants.only_denials
        agreement = 1.0 if left == right else agreement
        family = organ = 0.0
    else:
        agreement = sum(row.weight * row.agreement for row in rows) / weight
        family = sum(row.weight * row.related[0] for row in rows) / weight
        organ = sum(row.weight * row.organ for row in rows) / weight
    value = max(-1.0, min(1.0, agreement + family + organ + noise))
    return Score(value, agreement, family, organ, noise, weight, tuple(rows))


def _group(policy: Policy, tag: str) -> str:
    """Return what a finding is matched by: its continuum, or itself."""
    index = policy.continuum.get(tag)
    return tag if index is None else f"continuum {index}"


def _match(
    policy: Policy, left: list[dict[str, Any]], right: list[dict[str, Any]]
) -> tuple[list[Row], list[dict[str, Any]], list[dict[str, Any]]]:
    """Match findings of one tag or continuum one to one, the best agreement first."""
    options = []
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            if _group(policy, a["finding"]) == _group(policy, b["finding"]):
                pair = compare(policy, a, b)
                # Rounded, so that equal agreements are equal whatever the order of the sums; then the order
                # of the content decides, which is the same for (a, b) and (b, a).
                key = (-round(pair.total / pair.weight * 1e9), -round(pair.weight * 1e6))
                content = (state_hash(a) + state_hash(b)) & _MASK
                options.append(((*key, content), i, j, pair))
    rows: list[Row] = []
    used_a: set[int] = set()
    used_b: set[int] = set()
    for _, i, j, pair in sorted(options, key=lambda option: option[0]):
        if i in used_a or j in used_b:
            continue
        used_a.add(i)
        used_b.add(j)
        same = left[i]["finding"] == right[j]["finding"]
        agreement = pair.total / pair.weight
        rows.append(Row("same" if same else "continuum", left[i], right[j], pair.weight, agreement, pair))
    rest_a = [state for index, state in enumerate(left) if index not in used_a]
    rest_b = [state for index, state in enumerate(right) if index not in used_b]
    return rows, rest_a, rest_b


def _leftovers(
    policy: Policy,
    left: list[dict[str, Any]],
    right: list[dict[str, Any]],
    rest_a: list[dict[str, Any]],
    rest_b: list[dict[str, Any]],
) -> list[Row]:
    """Return the rows of what only one side states; a denial of its own counts nothing."""
    constants = policy.constants
    alone = sum(presence_of(state) != "absent" for state in (*rest_a, *rest_b))
    unmatched = max(
        constants.unmatched.floor, constants.unmatched.first + constants.unmatched.step * (alone - 1)
    )
    rows: list[Row] = []
    for rest, other, first in ((rest_a, right, True), (rest_b, left, False)):
        denied = {
            name
            for state in other
            if presence_of(state) == "absent"
            for name in constants.general.get(state["finding"], ())
        }
        for state in rest:
            a, b = (state, None) if first else (None, state)
            covered = policy.system(state["finding"]) in denied
            if presence_of(state) == "absent":
                if covered:
                    rows.append(Row("denied_with_summary", a, b, constants.weights["presence"], 1.0))
                continue
            weight = _own_weight(policy, state)
            related, organ = _relations(policy, state, other)
            if covered:
                agreement = min(unmatched, constants.general_denial)
                rows.append(Row("denied_by_summary", a, b, weight, agreement, None, related, organ))
            else:
                kind: Kind = "only_a" if first else "only_b"
                rows.append(Row(kind, a, b, weight, unmatched, None, related, organ))
    return rows


def _own_weight(policy: Policy, state: State) -> float:
    """Return the weight of a finding that one side has alone: the attributes that would be compared."""
    constants = policy.constants
    stated = {
        "size": size_of(state) is not None,
        "morphology": any(state.get(name) is not None for name in (*SHAPES, "morphology")),
    }
    return sum(
        weight
        for name, weight in constants.weights.items()
        if name not in constants.leave_when_unstated or stated.get(name, state.get(name) is not None)
    )


def _relations(
    policy: Policy, state: State, other: list[dict[str, Any]]
) -> tuple[tuple[float, str | None], float]:
    """Return the strongest relation to a different finding of the other side, and the bonus of the organ."""
    tag = state["finding"]
    best: tuple[float, str | None] = (0.0, None)
    organ = 0.0
    for item in other:
        if presence_of(item) == "absent" or _group(policy, item["finding"]) == _group(policy, tag):
            continue
        weight = policy.related(tag, item["finding"])
        if weight > best[0]:
            best = (weight, item["finding"])
        if policy.system(tag) is not None and policy.system(tag) == policy.system(item["finding"]):
            organ = policy.constants.same_organ
    return best, organ
