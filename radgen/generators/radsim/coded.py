"""RadSim of many pairs at once, over coded findings (spec §4); equal to ``policy.score`` to 1e-6.

Findings of both descriptions are joined on tag or continuum, matched one to one by best agreement, and what
is left over is weighed and related, all in arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coding import BITS, Coded, Coder, Tables
from radgen.generators.radsim.terms import ABSENT, Terms
from radgen.ontology.radsim import Policy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CHUNK = 16384


@dataclass
class Scores:
    """Scores of many pairs and their parts (float64): ``value = clip(the sum of the others)``."""

    value: Floats
    agreement: Floats
    family: Floats
    organ: Floats
    jitter: Floats


class Scorer:
    """Scores pairs of coded descriptions.

    >>> from radgen.ontology import load_ontology
    >>> from radgen.ontology.radsim import load_policy
    >>> coder = Coder(load_policy(load_ontology()))
    >>> for presence in ("present", "absent"):
    ...     coder.add([{"finding": "pneumothorax", "presence": presence}])
    >>> Scorer(coder).score(np.array([0]), np.array([1])).agreement
    array([-1.])
    """

    def __init__(self, coder: Coder, coded: Coded | None = None) -> None:
        self.policy: Policy = coder.policy
        self.coded = coded or coder.coded()
        self.tables: Tables = coder.tables
        constants = self.policy.constants
        self.weights: dict[str, float] = {name: float(weight) for name, weight in constants.weights.items()}
        count = len(self.tables.tags)
        known = len(self.tables.system)
        self.system = np.full(count, -1, np.int32)
        self.system[:known] = self.tables.system
        self.related = np.zeros((count, count), np.float32)
        self.related[:known, :known] = self.tables.related
        self.terms = Terms(self.policy, self.coded)
        self._own = self._own_weights()
        affirmed = self.coded.columns["presence"] != ABSENT
        # Findings that are not denied, packed by description: what leftovers can be related to.
        self.there = np.flatnonzero(affirmed)
        self.there_offsets = np.concatenate([[0], np.cumsum(affirmed)])[self.coded.offsets]

    def score(self, first: NDArray[Any], second: NDArray[Any]) -> Scores:
        """Return the scores of the pairs ``(first[k], second[k])`` of descriptions."""
        parts = [
            self._chunk(first[at : at + _CHUNK].astype(np.int64), second[at : at + _CHUNK].astype(np.int64))
            for at in range(0, len(first), _CHUNK)
        ]
        joined = [np.concatenate(column) if parts else np.zeros(0) for column in zip(*parts, strict=True)]
        return Scores(*(joined or [np.zeros(0)] * 5))

    def losses(self, first: NDArray[Any], second: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what each attribute takes from the agreement of pairs: the sum of ``w (1 - r)``.

        ``finding`` is the weight of the findings that only one side has.
        """
        names = (*self.weights, "finding")
        out = {name: np.zeros(len(first), np.float32) for name in names}
        presence = self.coded.columns["presence"]
        for at in range(0, len(first), _CHUNK):
            x, y = first[at : at + _CHUNK].astype(np.int64), second[at : at + _CHUNK].astype(np.int64)
            a, pair_a = _expand(self.coded.offsets, x)
            b, pair_b = _expand(self.coded.offsets, y)
            at_a, at_b, _, _ = self._match(a, pair_a, b, pair_b)
            part = slice(at, at + len(x))
            for name, weight, agreement in self.terms.of(a[at_a], b[at_b]):
                out[name][part] = np.bincount(pair_a[at_a], weight * (1 - agreement), len(x))
            for findings, owner, used in ((a, pair_a, at_a), (b, pair_b, at_b)):
                free = presence[findings] != ABSENT
                free[used] = False
                out["finding"][part] += np.bincount(owner[free], self._own[findings[free]], len(x)).astype(
                    np.float32
                )
        return out

    def _own_weights(self) -> Floats:
        """Return by finding the weight that it has where the other side does not mention it."""
        leave = self.policy.constants.leave_when_unstated
        out = np.full(len(self.coded.columns["tag"]), self.weights["presence"])
        for name, bit in BITS.items():
            if name in leave:
                out += self.weights[name] * ((self.coded.columns["stated"] & bit) > 0)
            else:
                out += self.weights[name]
        return out

    def _chunk(self, first: Ints, second: Ints) -> tuple[Floats, ...]:
        coded, constants = self.coded, self.policy.constants
        pairs = len(first)
        a, pair_a = _expand(coded.offsets, first)
        b, pair_b = _expand(coded.offsets, second)
        at_a, at_b, weight, total = self._match(a, pair_a, b, pair_b)
        sums: Floats = np.bincount(pair_a[at_a], weight, pairs).astype(np.float64)
        totals: Floats = np.bincount(pair_a[at_a], total, pairs).astype(np.float64)
        family, organ = np.zeros(pairs), np.zeros(pairs)

        presence = coded.columns["presence"]
        sides = []
        alone = np.zeros(pairs)
        for findings, owner, used, other in ((a, pair_a, at_a, second), (b, pair_b, at_b, first)):
            free = np.ones(len(findings), bool)
            free[used] = False
            rest, owner = findings[free], owner[free]
            bit = self.system[coded.columns["tag"][rest]]
            masks = coded.general[other[owner]]
            covered = (bit >= 0) & ((masks >> np.maximum(bit, 0).astype(np.uint64)) & np.uint64(1)).astype(
                bool
            )
            denial = presence[rest] == ABSENT
            agreed = np.bincount(owner[denial & covered], minlength=pairs) * self.weights["presence"]
            sums += agreed
            totals += agreed
            rest, owner, covered = rest[~denial], owner[~denial], covered[~denial]
            alone += np.bincount(owner, minlength=pairs).astype(np.float64)
            sides.append((rest, owner, covered, other))
        unmatched = constants.unmatched
        each = np.maximum(unmatched.floor, unmatched.first + unmatched.step * (alone - 1))
        for rest, owner, covered, other in sides:
            own = self._own[rest]
            agreement = np.where(covered, np.minimum(each[owner], constants.general_denial), each[owner])
            sums += np.bincount(owner, own, pairs)
            totals += np.bincount(owner, own * agreement, pairs)
            related, same = self._relations(rest, other[owner])
            family += np.bincount(owner, own * related, pairs)
            organ += np.bincount(owner, own * same, pairs)
        return self._finish(first, second, sums, totals, family, organ)

    def _finish(
        self, first: Ints, second: Ints, sums: Floats, totals: Floats, family: Floats, organ: Floats
    ) -> tuple[Floats, ...]:
        coded, constants = self.coded, self.policy.constants
        nothing = sums <= 0
        safe = np.where(nothing, 1.0, sums)
        sizes = np.diff(coded.offsets)
        empty = (sizes[first] == 0) | (sizes[second] == 0)
        default = np.where(empty, constants.nothing_stated, constants.only_denials)
        default = np.where(coded.hashes[first] == coded.hashes[second], 1.0, default)
        agreement = np.where(nothing, default, totals / safe)
        family, organ = family / safe, organ / safe
        noise = self.jitter(coded.hashes[first], coded.hashes[second])
        value = np.clip(agreement + family + organ + noise, -1.0, 1.0)
        return value, agreement, family, organ, noise

    def jitter(self, a: NDArray[np.uint64], b: NDArray[np.uint64]) -> Floats:
        """Return ε of pairs of content hashes (see ``policy.jitter``)."""
        constants = self.policy.constants.jitter
        golden = np.uint64(0x9E3779B97F4A7C15)
        with np.errstate(over="ignore"):
            seed = np.minimum(a, b) * golden + np.maximum(a, b)
            first, second = _mix(seed), _mix(seed + golden)
        u = ((first >> np.uint64(11)).astype(np.float64) + 1.0) / 2**53
        v = (second >> np.uint64(11)).astype(np.float64) / 2**53
        z = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
        noise: Floats = constants.sigma * np.clip(z, -constants.clip, constants.clip)
        return noise

    # --- findings that both sides have ---

    def _match(self, a: Ints, pair_a: Ints, b: Ints, pair_b: Ints) -> tuple[Ints, Ints, Floats, Floats]:
        """Join on pair and group, and match one to one: places in ``a`` and ``b``, weights, totals."""
        group = self.coded.columns["group"]
        key_a = (pair_a << 21) | group[a]
        key_b = (pair_b << 21) | group[b]
        low = np.searchsorted(key_b, key_a, "left")
        width = np.searchsorted(key_b, key_a, "right") - low
        at_a = np.repeat(np.arange(len(a)), width)
        at_b = np.repeat(low, width) + within(width)
        weight, total = self._compare(a[at_a], b[at_b])
        rivals = (width[at_a] > 1) | (np.bincount(at_b, minlength=len(b))[at_b] > 1)
        if not rivals.any():
            return at_a, at_b, weight, total
        keep = ~rivals
        where = np.flatnonzero(rivals)
        keep[self._best(where, at_a, at_b, a, b, weight, total)] = True
        return at_a[keep], at_b[keep], weight[keep], total[keep]

    def _best(
        self, where: Ints, at_a: Ints, at_b: Ints, a: Ints, b: Ints, weight: Floats, total: Floats
    ) -> Ints:
        """Choose among rivals: the best agreement first, each finding once (as ``policy._match``)."""
        hashes = self.coded.columns["hash"]
        with np.errstate(over="ignore"):
            content = hashes[a[at_a[where]]] + hashes[b[at_b[where]]]
        agreement = np.rint(total[where] / weight[where] * 1e9)
        order = np.lexsort((content, -np.rint(weight[where] * 1e6), -agreement))
        left = where[order]
        chosen = []
        while len(left):
            # What comes first among the rivals of both its findings is taken; its rivals go.
            _, first_a = np.unique(at_a[left], return_index=True)
            _, first_b = np.unique(at_b[left], return_index=True)
            taken = left[np.intersect1d(first_a, first_b, assume_unique=True)]
            chosen.append(taken)
            gone = np.isin(at_a[left], at_a[taken]) | np.isin(at_b[left], at_b[taken])
            left = left[~gone]
        return np.concatenate(chosen)

    def _compare(self, a: Ints, b: Ints) -> tuple[Floats, Floats]:
        """Return the sum of weights and of weighted agreements of matched findings."""
        weight, total = np.zeros(len(a)), np.zeros(len(a))
        for _, each, agreement in self.terms.of(a, b):
            weight += each
            total += each * agreement
        return weight, total

    # --- findings that one side has alone ---

    def _relations(self, rest: Ints, other: Ints) -> tuple[Floats, Floats]:
        """Return for each finding its strongest relation to the other description, and the organ's bonus."""
        c = self.coded.columns
        width = self.there_offsets[other + 1] - self.there_offsets[other]
        related, organ = np.zeros(len(rest)), np.zeros(len(rest))
        if not width.any():
            return related, organ
        mine = np.repeat(np.arange(len(rest)), width)
        theirs = self.there[np.repeat(self.there_offsets[other], width) + within(width)]
        different = c["group"][rest][mine] != c["group"][theirs]
        tag_a, tag_b = c["tag"][rest][mine], c["tag"][theirs]
        weight = self.related[tag_a, tag_b] * different
        system = self.system[tag_a]
        same = different & (system == self.system[tag_b]) & (system >= 0)
        starts = np.concatenate([[0], np.cumsum(width)[:-1]])[width > 0]
        related[width > 0] = np.maximum.reduceat(weight, starts)
        organ[width > 0] = np.logical_or.reduceat(same, starts) * self.policy.constants.same_organ
        return related, organ


def _expand(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Return the findings of descriptions one after another, and which of ``chosen`` each belongs to."""
    width = offsets[chosen + 1] - offsets[chosen]
    owner = np.repeat(np.arange(len(chosen)), width)
    return np.repeat(offsets[chosen], width) + within(width), owner


def within(width: NDArray[Any]) -> Ints:
    """Return 0, 1, … inside each group of a width."""
    total = int(width.sum())
    starts = np.cumsum(width) - width
    places: Ints = np.arange(total) - np.repeat(starts, width)
    return places


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
