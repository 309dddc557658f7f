"""Scored pairs: on one axis (``size_pairs``, ``count_pairs``; spec §2) and on two at once (spec §3)."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from radgen.generators import contexts as ctx
from radgen.generators.blocks import Block, Pool, Row, Text, context_hash, ordered, row_id
from radgen.generators.contexts import Fields
from radgen.generators.contrasts import Contrasts, Job, schedule, seed_of
from radgen.generators.holdout import Holdout
from radgen.generators.levels import values
from radgen.generators.splits import Split
from radgen.ontology.distance import axis_distance, axis_target, joint_parts, joint_target
from radgen.ontology.load import Ontology
from radgen.ontology.schema import AxisName
from radgen.templates.realiser import Realiser

#: Blocks looked at to see which scores are rare.
SURVEY = 150
Explained = tuple[float, dict[str, Any], Any]


class ScoredPairs(Contrasts):
    """Scored pairs on one axis; the score is the graded target of one text against the other (spec §2)."""

    family = "pairs"
    columns: tuple[str, ...] = (
        "sentence1",
        "sentence2",
        "score",
        "id",
        "axis",
        "state1",
        "state2",
        "distance",
        "sigma",
        "context",
        "phrasings",
    )
    texts = ("sentence1", "sentence2")
    key = "axis"

    def __init__(
        self, ontology: Ontology, realiser: Realiser, name: str, seed: int, holdout: Holdout | None = None
    ) -> None:
        super().__init__(ontology, realiser, name.removesuffix("_pairs"), seed, holdout)
        self.name = name
        self.axes: tuple[AxisName, ...] = (self.axis,)

    @property
    def default_rows(self) -> int:
        """The recipe's volume over all three splits."""
        return round(self.spec.pair_rows / self.ontology.axes.splits["train"])

    def explain(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> Explained:
        """Return the score of two states, the columns that explain it, and its stratum."""
        score = axis_target(self.spec, self.ontology.anatomy, a, b)
        distance = axis_distance(self.spec, self.ontology.anatomy, a, b)
        return score, {"distance": distance, "sigma": self.spec.sigma}, None

    def score_range(self) -> tuple[float, float]:
        """Return the lowest and highest score that the formula can reach."""
        return -1.0, 1.0

    def fifth(self, score: float) -> int:
        """Return which fifth of the range that the formula can reach a score lies in, 0 the lowest."""
        low, high = self.score_range()
        return min(4, int((score - low) / (high - low) * 5))

    @functools.cached_property
    def fifth_weights(self) -> list[float]:
        """How often each fifth is drawn where a block can reach it: the more, the fewer blocks can.

        Found from the states of some blocks of this very dataset; no text is made.
        """
        reached = [0] * 5
        jobs = list(itertools.islice(schedule(self), SURVEY))
        for job in jobs:
            states = self.states(job, random.Random(seed_of("survey", self.name, self.seed, job.index)))
            for fifth in {self.fifth(self.explain(a, b)[0]) for a in states for b in states}:
                reached[fifth] += 1
        return [len(jobs) / max(count, len(jobs) * 0.02) for count in reached]

    def states(self, job: Job, rng: random.Random) -> list[dict[str, Any]]:
        """Return the states of one block."""
        context = dict(job.context)
        found = self.block_values(job.finding, context, rng)
        context.pop("dims", None)
        base = {"finding": job.finding, "presence": "present", **context}
        states = [ordered({**base, **dict(value)}) for value in found]
        return [state for state in states if ctx.possible(state)]

    def block_values(self, tag: str, context: Mapping[str, Any], rng: random.Random) -> list[Fields]:
        """Return the values that the varying axes take in one block."""
        return values(self.ontology, tag, self.axis, context, rng)

    def block(self, job: Job) -> Block:
        """Make the rows of one context."""
        ontology = self.ontology
        rng = random.Random(seed_of("block", self.name, self.seed, job.index))
        entry = ontology.findings[job.finding]
        modality = entry.modalities[int(rng.random() * len(entry.modalities))]
        states = self.states(job, rng)
        block = Block()
        for realiser, plan in self.plans(job):
            _PairMaker(self, realiser, rng, modality, states, block).rows(plan)
        return block


class CrossAxis(ScoredPairs):
    """Pairs that differ on two axes at once; the score is eq. (3) (spec §3)."""

    family = "crossaxis"
    columns = (
        "sentence1",
        "sentence2",
        "score",
        "id",
        "combination",
        "state1",
        "state2",
        "distances",
        "sigmas",
        "side_relation",
        "side_penalty",
        "context",
        "phrasings",
    )
    key = "combination"

    def __init__(
        self, ontology: Ontology, realiser: Realiser, name: str, seed: int, holdout: Holdout | None = None
    ) -> None:
        first = ontology.axes.crossaxis.combinations[name][0]
        super().__init__(ontology, realiser, first, seed, holdout)
        self.name = name
        self.axes = tuple(ontology.axes.crossaxis.combinations[name])
        self.varying = tuple(dict.fromkeys(f for axis in self.axes for f in ontology.axis(axis).fields))
        self._cached: dict[str, list[Fields]] = {}

    def candidates(self) -> list[str]:
        """Return the findings that have both axes."""
        return sorted(set.intersection(*(set(self.ontology.on_axis(axis)) for axis in self.axes)))

    @property
    def default_rows(self) -> int:
        """An even share of the recipe's volume, over all three splits."""
        crossaxis = self.ontology.axes.crossaxis
        return round(crossaxis.rows / len(crossaxis.combinations))

    def contexts(self, tag: str) -> list[Fields]:
        """Return every context of a finding that leaves both axes open."""
        if tag in self._cached:
            return self._cached[tag]
        ontology = self.ontology
        entry = ontology.findings[tag]
        none: list[Fields] = [()]
        if "location" in self.axes:
            places = none
        elif "laterality" in self.axes:
            places = list(none)
            if "location" in entry.axes:
                two_sided = [lobe for lobe in ctx.lobes(ontology, tag) if self._two_sided(lobe)]
                places += [(("lobe", lobe),) for lobe in two_sided]
                places += [(("zone", zone),) for zone in ctx.zones(ontology, tag)]
        else:
            places = none + list(ctx.places(ontology, tag))
        found = ctx.contexts(ontology, tag, self.axes, place_options=places)
        if "size" in self.axes:  # findings on both sides have the size of the largest (`possible`)
            found = found + [(*fields, ("size_comparator", "up_to")) for fields in found]
        found = [fields for fields in found if ctx.open_to(self.axes, fields)]
        self._cached[tag] = found
        return found

    def explain(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> Explained:
        """Return the score of two states, the columns that explain it, and its stratum."""
        axes, anatomy = self.ontology.axes, self.ontology.anatomy
        distances, sigmas, relation, penalty = joint_parts(axes, anatomy, self.axes, a, b)
        score = joint_target(axes, anatomy, self.axes, a, b)
        columns = {
            "distances": distances,
            "sigmas": sigmas,
            "side_relation": relation,
            "side_penalty": penalty,
        }
        levels = tuple(round(distance) for distance in distances.values())
        return score, columns, (relation, levels)

    def score_range(self) -> tuple[float, float]:
        """Return the lowest and highest score that the formula can reach."""
        penalty = max(self.ontology.axes.crossaxis.side_penalty.values())
        return (-penalty if "laterality" in self.axes else 0.0), 1.0

    def block_values(self, tag: str, context: Mapping[str, Any], rng: random.Random) -> list[Fields]:
        """Return some of the products of the values of both axes: enough to reach the whole range."""
        ontology = self.ontology
        # Only categories span the counts far enough to reach the lowest scores.
        share = 0.95 if (ontology.findings[tag].max_count or 0) >= 20 else 0.45
        first, second = (values(ontology, tag, axis, context, rng, share) for axis in self.axes)
        if "location" in self.axes:
            second = rng.sample(second, min(4, len(second)))
        if self.axes[0] == "size":
            first = [first[0], *rng.sample(first[1:-1], 2), first[-1]] if len(first) > 4 else first
        return [_joined(a, b) for a, b in itertools.product(first, second)]


def _joined(a: Fields, b: Fields) -> Fields:
    """Both axes' fields; what both state (presence) must be what the second says."""
    return tuple({**dict(a), **dict(b)}.items())


class _PairMaker:
    """Makes the rows of one block of pairs."""

    def __init__(
        self,
        recipe: ScoredPairs,
        realiser: Realiser,
        rng: random.Random,
        modality: Any,
        states: Sequence[Mapping[str, Any]],
        block: Block,
    ) -> None:
        self.recipe = recipe
        self.rng = rng
        self.states = states
        self.block = block
        self.pool = Pool(realiser, recipe.splitter, modality, rng)
        self.dumped = [orjson.dumps(state) for state in states]
        self.context = context_hash(states[0], recipe.varying) if states else ""
        self.weights = recipe.fifth_weights
        self.by_fifth: dict[int, list[tuple[int, int]]] = {}
        self.by_stratum: dict[Any, list[tuple[int, int]]] = {}
        self.explained: dict[tuple[int, int], Explained] = {}
        for i, j in itertools.product(range(len(states)), repeat=2):
            found = recipe.explain(states[i], states[j])
            self.explained[i, j] = found
            fifth = recipe.fifth(found[0])
            self.by_fifth.setdefault(fifth, []).append((i, j))
            self.by_stratum.setdefault(found[2], []).append((i, j))

    def pick(self) -> tuple[int, int]:
        """Draw a pair of states: evenly over fifths of the score, or over relations and levels."""
        rng = self.rng
        groups = self.by_fifth if rng.random() < 0.7 or len(self.by_stratum) < 2 else self.by_stratum
        keys = list(groups)
        if groups is self.by_fifth:
            pairs = groups[rng.choices(keys, [self.weights[key] for key in keys])[0]]
        else:
            pairs = groups[keys[int(rng.random() * len(keys))]]
        return pairs[int(rng.random() * len(pairs))]

    def rows(self, plan: Sequence[Split]) -> None:
        """Make a row for each split of the plan: train first, the others from what is left over."""
        pool, rejected, count = self.pool, self.block.rejected, len(plan)
        for index, state in enumerate(self.states):
            if not pool.add(index, state):
                rejected["no phrasing states exactly these fields"] += count
                return
        if len(self.states) < 2:
            rejected["no two values far enough apart"] += count
            return
        for split in plan:
            i, j = self.pick()
            if split != "train":
                for _ in range(30):
                    if pool.has(i, split, 2 if i == j else 1) and pool.has(j, split):
                        break
                    i, j = self.pick()
            self._row(i, j, split)

    def _row(self, i: int, j: int, split: Split) -> None:
        first = self.pool.take(i, split)
        second = self.pool.take(j, split, other=first) if first else None
        if first is None or second is None:
            self.block.rejected["no text in the split"] += 1
            return
        self.block.rows.append(self._finish(i, j, split, first, second))

    def _finish(self, i: int, j: int, split: Split, first: Text, second: Text) -> Row:
        score, columns, _ = self.explained[i, j]
        texts = b'"sentence1":%b,"sentence2":%b,"score":%b' % (
            orjson.dumps(first[0]),
            orjson.dumps(second[0]),
            orjson.dumps(score),
        )
        rest = orjson.dumps(
            {
                self.recipe.key: self.recipe.name.removesuffix("_pairs"),
                "state1": orjson.Fragment(self.dumped[i]),
                "state2": orjson.Fragment(self.dumped[j]),
                **columns,
                "context": self.context,
                "phrasings": (first[2], second[2]),
            }
        )[1:-1]
        found = row_id(self.recipe.name, texts, rest)
        line = b'{%b,"id":"%b",%b}' % (texts, found, rest)
        return Row(split, line, (first[3], second[3]))
