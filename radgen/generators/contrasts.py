"""Single-axis contrasts (spec §2): triplets on one axis, and scored pairs on size and count."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from radgen.errors import RadgenError, unknown
from radgen.generators import contexts as ctx
from radgen.generators.blocks import (
    Block,
    Pool,
    Row,
    Text,
    context_hash,
    digest,
    ordered,
    overlap,
    row_id,
    split_plan,
)
from radgen.generators.contexts import Fields
from radgen.generators.levels import TriplePicker, values
from radgen.generators.splits import Splitter
from radgen.ontology.load import Ontology
from radgen.templates.realiser import Realiser


@dataclass(frozen=True)
class Job:
    """One block to make: its number, its finding and its context."""

    index: int
    finding: str
    context: Fields


def seed_of(*parts: object) -> int:
    """Return the seed of a stream of random numbers: a hash of what the stream is for."""
    return int(digest("\x1f".join(map(str, parts))), 16)


class Contrasts:
    """Triplets on one axis; ``name`` is an axis or ``laterality_controlled``.

    Attributes:
        varying: canonical fields that may differ between the texts of a row.
    """

    family = "contrasts"
    columns = (
        "anchor",
        "positive",
        "negative",
        "id",
        "axis",
        "positive_target",
        "negative_target",
        "anchor_state",
        "positive_state",
        "negative_state",
        "context",
        "phrasings",
    )
    texts = ("anchor", "positive", "negative")

    def __init__(self, ontology: Ontology, realiser: Realiser, name: str, seed: int) -> None:
        self.ontology = ontology
        self.realiser = realiser
        self.name = name
        self.seed = seed
        controlled = ontology.axes.controlled.get(name)
        self.axis = controlled.axis if controlled else name
        self.controlled = controlled is not None
        self.spec = ontology.axis(self.axis)
        self.varying = tuple(self.spec.fields)
        self.splitter = Splitter(ontology.axes.splits)
        self.findings = [tag for tag in ontology.on_axis(self.axis) if self.contexts(tag)]

    @property
    def default_rows(self) -> int:
        """The recipe's volume over all three splits."""
        spec = self.ontology.axes.controlled.get(self.name) or self.spec
        return round(spec.train_rows / self.ontology.axes.splits["train"])

    def contexts(self, tag: str) -> list[Fields]:
        """Return every context of a finding on this axis."""
        ontology = self.ontology
        entry = ontology.findings[tag]
        none: list[Fields] = [()]
        places: list[Fields]
        if self.axis == "laterality":
            places = [] if self.controlled else none
            if "location" in entry.axes:
                two_sided = [lobe for lobe in ctx.lobes(ontology, tag) if self._two_sided(lobe)]
                places = places + [(("lobe", lobe),) for lobe in two_sided]
                places = places + [(("zone", zone),) for zone in ctx.zones(ontology, tag)]
        elif self.axis == "location":
            places = none
        else:
            places = none + list(ctx.places(ontology, tag))
        found = ctx.contexts(ontology, tag, (self.axis,), place_options=places)
        if self.axis == "size":
            dims: Fields = (("dims", True),)
            comparators: list[Fields] = [(("size_comparator", word),) for word in ("up_to", "approx")]
            found = found + [
                fields + form
                for fields in found
                for form in (dims, *comparators)
                if ctx.possible({"size_mm": 8.0, **dict(fields), **_shape(form)})
            ]
            found = [fields for fields in found if ctx.possible({"size_mm": 8.0, **dict(fields)})]
        return found

    def _two_sided(self, lobe: str) -> bool:
        return {"left", "right"} <= set(self.ontology.anatomy.lobes[lobe].sides)

    def weight(self, tag: str) -> float:
        """How often a finding is drawn: its frequency in reports, damped so that rare ones are seen."""
        return float(sum(self.ontology.findings[tag].frequency.values()) + 100) ** 0.5

    def block(self, job: Job) -> Block:
        """Make the rows of one context."""
        ontology = self.ontology
        rng = random.Random(seed_of("block", self.name, self.seed, job.index))
        entry = ontology.findings[job.finding]
        modality = entry.modalities[int(rng.random() * len(entry.modalities))]
        context = dict(job.context)
        found = values(ontology, job.finding, self.axis, context, rng)
        context.pop("dims", None)
        base = {"finding": job.finding, "presence": "present", **context}
        states = [ordered({**base, **dict(value)}) for value in found]
        kept = [index for index, state in enumerate(states) if ctx.possible(state)]
        found, states = [found[index] for index in kept], [states[index] for index in kept]
        block = Block()
        picker = TriplePicker(ontology, self.name, found)
        maker = _Maker(self, rng, modality, states, picker, block)
        count = ontology.axes.rows_per_context
        for split in split_plan(count, ontology.axes.splits, job.index * count):
            triple = picker.pick(rng)
            if triple is None:
                block.rejected["no two values far enough apart"] += 1
                break
            maker.row(triple, split)
        return block


def _shape(form: Fields) -> dict[str, Any]:
    return {"size_dims_mm": [8.0, 6.0]} if form == (("dims", True),) else dict(form)


class _Maker:
    """Makes the rows of one block."""

    def __init__(
        self,
        recipe: Contrasts,
        rng: random.Random,
        modality: Any,
        states: Sequence[Mapping[str, Any]],
        picker: TriplePicker,
        block: Block,
    ) -> None:
        self.recipe = recipe
        self.block = block
        self.states = states
        self.targets = picker.targets
        self.rng = rng
        self.pool = Pool(recipe.realiser, recipe.splitter, modality, rng, block.rejected)
        self.dumped = [orjson.dumps(state) for state in states]
        self.context = context_hash(states[0], recipe.varying) if states else ""
        axes = recipe.ontology.axes
        self.limit = axes.max_word_jaccard
        self.trap_share = axes.lexical_trap_share

    def row(self, triple: tuple[int, int, int], split: Any) -> None:
        """Make one row, or count which filter took it."""
        a, p, n = triple
        pool, rejected = self.pool, self.block.rejected
        speakers = [pool.speaker(index, self.states[index]) for index in triple]
        if None in speakers:
            rejected["no phrasing states exactly these fields"] += 1
            return
        anchor = pool.take(a, speakers[0], split)  # type: ignore[arg-type]  # None is excluded above
        if anchor is None:
            rejected["no text in the split"] += 1
            return
        limit = self.limit
        negative = pool.take(n, speakers[2], split)  # type: ignore[arg-type]
        if negative is None:
            rejected["no text in the split"] += 1
            return
        near = overlap(anchor.mask, negative.mask)
        # In a share of rows the negative is lexically the nearer one, so that words alone do not tell.
        if near < limit and self.rng.random() < self.trap_share:
            limit = max(near, 0.05)
        positive = pool.take(p, speakers[1], split, lambda text: overlap(anchor.mask, text.mask) < limit)  # type: ignore[arg-type]
        if positive is None:
            rejected["word Jaccard of anchor and positive"] += 1
            return
        self.block.rows.append(self._finish(triple, split, (anchor, positive, negative)))

    def _finish(self, triple: tuple[int, int, int], split: Any, texts: tuple[Text, Text, Text]) -> Row:
        a, p, n = triple
        name = self.recipe.name
        targets = self.targets[a][p], self.targets[a][n]
        states = self.dumped[a], self.dumped[p], self.dumped[n]
        words = [text.text for text in texts]
        frames = [text.frame for text in texts]
        line = orjson.dumps(
            {
                "anchor": words[0],
                "positive": words[1],
                "negative": words[2],
                "id": row_id(name, [*words, *states, repr(targets[0]), repr(targets[1]), *frames]),
                "axis": name,
                "positive_target": targets[0],
                "negative_target": targets[1],
                "anchor_state": orjson.Fragment(states[0]),
                "positive_state": orjson.Fragment(states[1]),
                "negative_state": orjson.Fragment(states[2]),
                "context": self.context,
                "phrasings": frames,
            }
        )
        return Row(split, line, tuple(text.value for text in texts))


class ScoredPairs(Contrasts):
    """Scored pairs on one axis: ``size_pairs``, ``count_pairs``; the score is the graded target (spec §2)."""

    family = "pairs"
    columns = (
        "sentence1",
        "sentence2",
        "score",
        "id",
        "axis",
        "state1",
        "state2",
        "distance",
        "context",
        "phrasings",
    )
    texts = ("sentence1", "sentence2")


"""Not used directly; see :mod:`radgen.generators.recipes`."""


def names(ontology: Ontology) -> list[str]:
    """Return every dataset that ``radgen contrasts`` makes, in the order of the ontology."""
    axes = list(ontology.axes.axes)
    pairs = [f"{name}_pairs" for name in axes if ontology.axes.axes[name].pair_rows]
    return [*axes, *ontology.axes.controlled, *pairs]


def check_name(ontology: Ontology, name: str) -> str:
    """Return the name of a dataset, or raise with the nearest right one."""
    if name not in names(ontology):
        raise RadgenError(unknown("axis", name, [*names(ontology), "all"]))
    return name


def schedule(recipe: Contrasts) -> Iterator[Job]:
    """Yield the blocks of a dataset: every finding once, then by weight, contexts without replacement.

    A context comes round again only when all those of its finding are used, and at most as often as
    ``max_rows_per_context`` allows.
    """
    axes = recipe.ontology.axes
    rng = random.Random(seed_of("schedule", recipe.name, recipe.seed))
    passes = max(1, axes.max_rows_per_context // axes.rows_per_context)
    queues: dict[str, Iterator[Fields]] = {}
    for tag in recipe.findings:
        order = random.Random(seed_of("contexts", recipe.name, recipe.seed, tag))
        queues[tag] = _passes(recipe.contexts(tag), passes, order)
    index = 0
    first = list(recipe.findings)
    rng.shuffle(first)
    tags = list(recipe.findings)
    weights = [recipe.weight(tag) for tag in tags]
    while tags:
        tag = first.pop() if first else rng.choices(tags, weights)[0]
        context = next(queues[tag], None)
        if context is None:
            place = tags.index(tag)
            del tags[place], weights[place]
            continue
        yield Job(index, tag, context)
        index += 1


def _passes(found: list[Fields], passes: int, rng: random.Random) -> Iterator[Fields]:
    for _ in range(passes):
        order = list(range(len(found)))
        rng.shuffle(order)
        for place in order:
            yield found[place]
