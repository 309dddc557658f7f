"""Weights and agreements of matched findings in arrays: ``agreement.compare`` for millions of pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from radgen.generators.radsim.agreement import SHAPES, presence_agreement, side_agreement
from radgen.generators.radsim.coding import BITS, CONTINUA, SIDES, WORDS, Coded
from radgen.ontology.radsim import PRESENCES, Policy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]
ABSENT = PRESENCES.index("absent")
_PRESENT = PRESENCES.index("present")


class Terms:
    """Compares findings by their codes, attribute by attribute."""

    def __init__(self, policy: Policy, coded: Coded) -> None:
        constants = policy.constants
        self.policy, self.columns, self.sets = policy, coded.columns, coded.sets
        self.weights: dict[str, float] = {name: float(weight) for name, weight in constants.weights.items()}
        self.one_sided: dict[str, float] = {name: float(value) for name, value in constants.one_sided.items()}
        self.sigma: dict[str, float] = {name: float(value) for name, value in constants.sigma.items()}
        self.presence = np.array([[presence_agreement(policy, a, b) for b in PRESENCES] for a in PRESENCES])
        self.sides = np.array([[side_agreement(policy, a, b) for b in SIDES] for a in SIDES])
        self.continua = np.array([group.agreement for group in constants.continua] or [1.0])
        hedges = ("cannot_exclude", "possible", "probable", "definite")
        self.hedged = np.array(
            [float(value) for name in hedges for key, value in constants.hedged.items() if key == name]
        )
        self._jaccards: dict[tuple[int, int], float] = {}

    def of(self, a: Ints, b: Ints) -> Iterator[tuple[str, Floats, Floats]]:
        """Yield weight and agreement of each attribute of matched findings (``agreement.compare``)."""
        c, constants = self.columns, self.policy.constants
        pa, pb = c["presence"][a], c["presence"][b]
        presence = self.presence[pa, pb]
        stated_a, stated_b = c["stated"][a], c["stated"][b]
        either, both = stated_a | stated_b, stated_a & stated_b
        values, comparable = self._values(a, b, both)
        denied = (pa == ABSENT) != (pb == ABSENT)
        plain = denied & ((pa == _PRESENT) | (pb == _PRESENT))
        if plain.any():
            k = np.flatnonzero(plain)
            chosen = {name: (value[k], comparable[name][k]) for name, value in values.items()}
            presence[k] = self._denial(a[k], b[k], chosen, presence[k])
        differ = c["tag"][a] != c["tag"][b]
        if differ.any():
            k = np.flatnonzero(differ)
            presence[k] *= self.continua[c["group"][a[k]] - CONTINUA]
        negative = (pa == ABSENT) | (pb == ABSENT)
        yield "presence", np.full(len(a), self.weights["presence"]), presence
        for name, bit in BITS.items():
            said = (either & bit) > 0
            counts = said if name in constants.leave_when_unstated else said | ~negative
            yield name, self.weights[name] * counts, np.where(denied, presence, values[name])

    def _values(
        self, a: Ints, b: Ints, both: NDArray[np.uint8]
    ) -> tuple[dict[str, Floats], dict[str, Truths]]:
        """Return the agreement of every attribute, and where both sides state what can be compared."""
        c = self.columns
        either = c["stated"][a] | c["stated"][b]
        values: dict[str, Floats] = {}
        comparable: dict[str, Truths] = {}
        for name, bit in BITS.items():
            values[name] = np.where((either & bit) > 0, self.one_sided[name], 1.0)
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
        c = self.columns[column]
        distance = c[a].astype(np.float64) - c[b]
        value: Floats = 2.0 * np.exp(-(distance**2) / (2.0 * self.sigma[sigma] ** 2)) - 1.0
        return value

    def _parts(
        self, name: str, numbers: tuple[str, ...], texts: tuple[str, ...], a: Ints, b: Ints
    ) -> tuple[Floats, Truths]:
        """Return the mean agreement of the parts that both state, and where there is one."""
        c = self.columns
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
                first, second = self.sets[i], self.sets[j]
                self._jaccards[i, j] = 2.0 * len(first & second) / len(first | second) - 1.0
            values.append(self._jaccards[i, j])
        return np.array(values)[inverse] if values else np.zeros(0)

    def _denial(self, a: Ints, b: Ints, values: dict[str, tuple[Floats, Truths]], presence: Floats) -> Floats:
        """Return the agreement of denials and what they meet (``agreement._denial``)."""
        c, constants = self.columns, self.policy.constants
        denial = np.where(c["presence"][a] == ABSENT, a, b)
        other = np.where(c["presence"][a] == ABSENT, b, a)
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
