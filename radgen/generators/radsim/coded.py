"""RadSim of many pairs at once, over coded findings (spec §4); equal to ``policy.score`` to 1e-6.

Findings of both descriptions are joined on tag or continuum, matched one to one by best agreement, and what
is left over is weighed and related, all in arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.coding import BITS, SHAPES, WORDS, Coded, Coder, Tables
from radgen.ontology.radsim import PRESENCES, Policy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CHUNK = 16384
_ABSENT = PRESENCES.index("absent")
_PRESENT = PRESENCES.index("present")


@dataclass
class Scores:
    """Scores of many pairs and their parts (float64): ``value = clip(agreement + family + organ + jitter)``."""

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
        self.weights = {name: float(constants.weights[name]) for name in constants.weights}
        count = len(self.tables.tags)
        known = len(self.tables.system)
        self.system = np.full(count, -1, np.int32)
        self.system[:known] = self.tables.system
        self.related = np.zeros((count, count), np.float32)
        self.related[:known, :known] = self.tables.related
        self.presence = np.array([[_presence(self.policy, a, b) for b in PRESENCES] for a in PRESENCES])
        self.sides = _sides(self.policy)
        self.continua = np.array([group.agreement for group in constants.continua] or [1.0])
        self.hedged = np.array([constants.hedged[name] for name in ("cannot_exclude", "possible", "probable", "definite")])
        self._jaccards: dict[tuple[int, int], float] = {}
        self._own = self._own_weights()
        affirmed = self.coded.columns["presence"] != _ABSENT
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
            for name, weight, agreement in self._terms(a[at_a], b[at_b]):
                out[name][part] = np.bincount(pair_a[at_a], weight * (1 - agreement), len(x))
            for findings, owner, used in ((a, pair_a, at_a), (b, pair_b, at_b)):
                free = presence[findings] != _ABSENT
                free[used] = False
                out["finding"][part] += np.bincount(owner[free], self._own[findings[free]], len(x)).astype(np.float32)
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
        sums = np.bincount(pair_a[at_a], weight, pairs)
        totals = np.bincount(pair_a[at_a], total, pairs)
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
            covered = (bit >= 0) & ((masks >> np.maximum(bit, 0).astype(np.uint64)) & np.uint64(1)).astype(bool)
            denial = presence[rest] == _ABSENT
            agreed = np.bincount(owner[denial & covered], minlength=pairs) * self.weights["presence"]
            sums += agreed
            totals += agreed
            rest, owner, covered = rest[~denial], owner[~denial], covered[~denial]
            alone += np.bincount(owner, minlength=pairs)
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
        return constants.sigma * np.clip(z, -constants.clip, constants.clip)

    # --- findings that both sides have ---

    def _match(self, a: Ints, pair_a: Ints, b: Ints, pair_b: Ints) -> tuple[Ints, Ints, Floats, Floats]:
        """Join on pair and group, and match one to one; returns places in ``a`` and ``b``, weights, totals."""
        group = self.coded.columns["group"]
        key_a = (pair_a << 21) | group[a]
        key_b = (pair_b << 21) | group[b]
        low = np.searchsorted(key_b, key_a, "left")
        width = np.searchsorted(key_b, key_a, "right") - low
        at_a = np.repeat(np.arange(len(a)), width)
        at_b = np.repeat(low, width) + _within(width)
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
        """Choose among rivals: the best agreement first, each finding once (the rule of ``policy._match``)."""
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
        for _, each, agreement in self._terms(a, b):
            weight += each
            total += each * agreement
        return weight, total

    def _terms(self, a: Ints, b: Ints) -> Iterator[tuple[str, Floats, Floats]]:
        """Yield weight and agreement of each attribute of matched findings (``agreement.compare``)."""
        c, constants = self.coded.columns, self.policy.constants
        pa, pb = c["presence"][a], c["presence"][b]
        presence = self.presence[pa, pb]
        stated_a, stated_b = c["stated"][a], c["stated"][b]
        either, both = stated_a | stated_b, stated_a & stated_b
        values, comparable = self._values(a, b, both)
        denied = (pa == _ABSENT) != (pb == _ABSENT)
        plain = denied & ((pa == _PRESENT) | (pb == _PRESENT))
        if plain.any():
            k = np.flatnonzero(plain)
            chosen = {name: (value[k], comparable[name][k]) for name, value in values.items()}
            presence[k] = self._denial(a[k], b[k], chosen, presence[k])
        differ = c["tag"][a] != c["tag"][b]
        if differ.any():
            k = np.flatnonzero(differ)
            presence[k] *= self.continua[c["group"][a[k]] - (1 << 20)]
        negative = (pa == _ABSENT) | (pb == _ABSENT)
        yield "presence", np.full(len(a), self.weights["presence"]), presence
        for name, bit in BITS.items():
            said = (either & bit) > 0
            counts = said if name in constants.leave_when_unstated else said | ~negative
            yield name, self.weights[name] * counts, np.where(denied, presence, values[name])

    def _values(
        self, a: Ints, b: Ints, both: NDArray[np.uint8]
    ) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
        """Return the agreement of every attribute, and where both sides state what can be compared."""
        c, constants = self.coded.columns, self.policy.constants
        stated_a, stated_b = c["stated"][a], c["stated"][b]
        either = stated_a | stated_b
        values: dict[str, Floats] = {}
        comparable: dict[str, NDArray[np.bool_]] = {}
        for name, bit in BITS.items():
            values[name] = np.where((either & bit) > 0, constants.one_sided[name], 1.0)  # type: ignore[index]
            comparable[name] = (both & bit) > 0
        k = np.flatnonzero(comparable["size"])
        x, y = c["size"][a[k]], c["size"][b[k]]
        values["size"][k] = 1.0 - 2.0 * np.abs(x - y) / np.maximum(x, y)
        k = np.flatnonzero(comparable["severity"])
        values["severity"][k] = self._graded("severity", "severity", a[k], b[k])
        k = np.flatnonzero(comparable["laterality"])
        values["laterality"][k] = self.sides[c["side"][a[k]], c["side"][b[k]]]
        k = np.flatnonzero(comparable["certainty"])
        values["certainty"][k] = self._graded("certainty", "certainty", a[k], b[k])
        k = np.flatnonzero(((either & ~both) & BITS["certainty"]) > 0)
        hedge = np.where(np.isnan(c["certainty"][a[k]]), c["certainty"][b[k]], c["certainty"][a[k]])
        values["certainty"][k] = self.hedged[hedge.astype(np.int64)]
        for name, numbers, texts in (("spatial", ("rank",), WORDS), ("morphology", SHAPES, ("words",))):
            k = np.flatnonzero(comparable[name])
            value, some = self._parts(name, numbers, texts, a[k], b[k])
            values[name][k[some]] = value[some]
            comparable[name][k] = some
        return values, comparable

    def _graded(self, column: str, sigma: str, a: Ints, b: Ints) -> Floats:
        c = self.coded.columns[column]
        distance = c[a].astype(np.float64) - c[b]
        return 2.0 * np.exp(-(distance**2) / (2.0 * self.policy.constants.sigma[sigma] ** 2)) - 1.0  # type: ignore[index]

    def _parts(
        self, name: str, numbers: tuple[str, ...], texts: tuple[str, ...], a: Ints, b: Ints
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the mean agreement of the parts that both state, and where there is one."""
        c = self.coded.columns
        total, count = np.zeros(len(a)), np.zeros(len(a))
        for column in numbers:
            value = self._graded(column, name, a, b)
            known = ~np.isnan(value)
            total[known] += value[known]
            count += known
        for column in texts:
            x, y = c[column][a], c[column][b]
            k = np.flatnonzero((x >= 0) & (y >= 0))
            if column == "words":
                total[k] += self._jaccard(x[k], y[k])
            else:
                total[k] += np.where(x[k] == y[k], 1.0, self.policy.constants.different_place)
            count[k] += 1
        return total / np.maximum(count, 1), count > 0

    def _jaccard(self, x: NDArray[np.int32], y: NDArray[np.int32]) -> Floats:
        """Return ``2 J - 1`` of sets of words; each pair of sets is worked out once."""
        keys, inverse = np.unique(x.astype(np.int64) << 32 | y, return_inverse=True)
        values = []
        for key in keys.tolist():
            i, j = key >> 32, key & 0xFFFFFFFF
            if (i, j) not in self._jaccards:
                first, second = self.coded.sets[i], self.coded.sets[j]
                self._jaccards[i, j] = 2.0 * len(first & second) / len(first | second) - 1.0
            values.append(self._jaccards[i, j])
        return np.array(values)[inverse] if values else np.zeros(0)

    def _denial(
        self, a: Ints, b: Ints, values: dict[str, tuple[Floats, NDArray[np.bool_]]], presence: Floats
    ) -> Floats:
        """Return the agreement of denials and what they meet (``agreement._denial``)."""
        c, constants = self.coded.columns, self.policy.constants
        denial = np.where(c["presence"][a] == _ABSENT, a, b)
        other = np.where(c["presence"][a] == _ABSENT, b, a)
        unknown, excluded = np.zeros(len(a), bool), np.zeros(len(a), bool)
        for name, (value, comparable) in values.items():
            if name == "certainty":
                continue
            restricts = (c["stated"][denial] & BITS[name]) > 0
            unknown |= restricts & ~comparable
            excluded |= restricts & comparable & (value <= 0)
        for name in ("acuity", "change"):
            x, y = c[name][denial], c[name][other]
            unknown |= (x >= 0) & (y < 0)
            excluded |= (x >= 0) & (y >= 0) & (x != y)
        out = np.where(unknown, constants.restricted.unknown, presence)
        return np.where(excluded, constants.restricted.other_variant, out)

    # --- findings that one side has alone ---

    def _relations(self, rest: Ints, other: Ints) -> tuple[Floats, Floats]:
        """Return for each finding its strongest relation to the other description, and the organ's bonus."""
        c = self.coded.columns
        width = self.there_offsets[other + 1] - self.there_offsets[other]
        related, organ = np.zeros(len(rest)), np.zeros(len(rest))
        if not width.any():
            return related, organ
        mine = np.repeat(np.arange(len(rest)), width)
        theirs = self.there[np.repeat(self.there_offsets[other], width) + _within(width)]
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
    return np.repeat(offsets[chosen], width) + _within(width), owner


def _within(width: NDArray[Any]) -> Ints:
    """Return 0, 1, … inside each group of a width."""
    total = int(width.sum())
    starts = np.cumsum(width) - width
    return np.arange(total) - np.repeat(starts, width)


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _presence(policy: Policy, a: str, b: str) -> float:
    first, second = sorted((a, b), key=PRESENCES.index)
    return policy.constants.presence[f"{first}-{second}"]


def _sides(policy: Policy) -> Floats:
    from radgen.generators.radsim.agreement import side_agreement
    from radgen.generators.radsim.coding import SIDES

    return np.array([[side_agreement(policy, a, b) for b in SIDES] for a in SIDES])
