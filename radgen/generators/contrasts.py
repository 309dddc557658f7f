"""Single-axis contrasts (spec §2): triplets on one axis, and scored pairs on size and count."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from orjson import dumps

from radgen.generators import contexts as ctx
from radgen.generators.blocks import (
    Block,
    Pool,
    Row,
    Text,
    context_hash,
    digest,
    make_row,
    ordered,
    row_id_of,
    split_plan,
)
from radgen.generators.contexts import Fields
from radgen.generators.holdout import Holdout
from radgen.generators.levels import Triple, TriplePicker, values
from radgen.generators.splits import Split, Splitter
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Term
from radgen.templates.realiser import Realiser, overlap

#: How many pickers are kept: enough for every axis but size, whose values are drawn anew for each block.
MOST_PICKERS = 2000
#: How many triples are tried for a row of a small split.
SMALL_TRIES = 5


class Picker(Protocol):
    """Draws which states make a row: (anchor, positive, negative)."""

    targets: list[list[float]]
    groups: list[Any]

    def pick(self, rng: random.Random) -> Triple:
        """Return indices of three states."""


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
    columns: tuple[str, ...] = (
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
    texts: tuple[str, ...] = ("anchor", "positive", "negative")

    def __init__(
        self, ontology: Ontology, realiser: Realiser, name: str, seed: int, holdout: Holdout | None = None
    ) -> None:
        self.ontology = ontology
        self.realiser = realiser
        self.name = name
        self.seed = seed
        self.holdout = holdout
        self.only: Split | None = None
        controlled = ontology.axes.controlled.get(name)
        self.axis = controlled.axis if controlled else name
        self.controlled = controlled is not None
        self.spec = ontology.axis(self.axis)
        self.varying = tuple(self.spec.fields)
        self.splitter = Splitter(ontology.axes.splits)
        self.pickers: dict[str, TriplePicker] = {}

    def candidates(self) -> list[str]:
        """Return the findings that have what varies, whether or not a context leaves it open."""
        return self.ontology.on_axis(self.axis)

    @functools.cached_property
    def findings(self) -> list[str]:
        """The findings that can be contrasted, sorted."""
        return [tag for tag in self.candidates() if self.contexts(tag)]

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
        elif self.axis == "presence":
            # What is denied is denied whole, or as new: "no new nodule" (§1, restricted negation).
            new: list[Fields] = [(("temporal_change", "new"),)] if "temporal_change" in entry.axes else []
            return [place + rest for place in none + list(ctx.places(ontology, tag)) for rest in none + new]
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
        if self.controlled:  # where not both sides can be said, the mixture would lack its bilateral share
            found = [fields for fields in found if ctx.possible({**dict(fields), "laterality": "bilateral"})]
        return [fields for fields in found if ctx.open_to((self.axis,), fields)]

    def _two_sided(self, lobe: str) -> bool:
        return {"left", "right"} <= set(self.ontology.anatomy.lobes[lobe].sides)

    def weight(self, tag: str) -> float:
        """How often a finding is drawn: its frequency in reports, damped so that rare ones are seen."""
        return math.sqrt(sum(self.ontology.findings[tag].frequency.values()) + 100)

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
        picker = self.pickers.get(key := repr(found))
        if picker is None:
            if len(self.pickers) >= MOST_PICKERS:
                self.pickers.clear()
            picker = self.pickers[key] = TriplePicker(ontology, self.name, found)
        for realiser, plan in self.plans(job):
            TripletMaker(self, realiser, rng, modality, states, picker, block).rows(plan)
        return block

    def plans(self, job: Job) -> list[tuple[Realiser, Sequence[Split]]]:
        """Return the splits of a block's rows, and what says them: two lots where phrasings are held out."""
        count = self.ontology.axes.rows_per_context
        if self.only is not None:  # twenty sentences are said for one of a small split: fewer rows a context
            return [(self.realiser, (self.only,) * max(1, count // 5))]
        # The plan repeats itself every thousand blocks, so that it is worked out once.
        plan = split_plan(count, tuple(self.splitter.shares.items()), job.index % 1000 * count)
        if self.holdout is None:
            return [(self.realiser, plan)]
        return self.holdout.plans(self.realiser, self.axis, job.finding, job.context, plan)


def _shape(form: Fields) -> dict[str, Any]:
    return {"size_dims_mm": [8.0, 6.0]} if form == (("dims", True),) else dict(form)


class TripletMaker:
    """Makes the rows of one block.

    Attributes:
        terms: the names that each state may be called by; None for all of its finding's.
    """

    def __init__(
        self,
        recipe: Contrasts,
        realiser: Realiser,
        rng: random.Random,
        modality: Any,
        states: Sequence[Mapping[str, Any]],
        picker: Picker,
        block: Block,
    ) -> None:
        self.terms: Sequence[Sequence[Term] | None] = [None] * len(states)
        self.recipe = recipe
        self.block = block
        self.states = states
        self.targets = picker.targets
        self.rng = rng
        self.picker = picker
        self.pool = Pool(realiser, recipe.splitter, modality, rng)
        self.dumped = [dumps(state) for state in states]
        self.context = context_hash(states[0], recipe.varying).encode() if states else b""
        self.rests: dict[Triple, tuple[bytes, blake2b]] = {}
        self.name = recipe.name.encode()
        self.small_rows: set[tuple[bytes, ...]] = set()
        axes = recipe.ontology.axes
        self.limit = axes.max_word_jaccard
        self.trap_share = axes.lexical_trap_share

    def rows(self, plan: Sequence[Split]) -> None:
        """Make a row for each split of the plan: train first, the others from what that left over."""
        pool, rejected, count = self.pool, self.block.rejected, len(plan)
        for index, state in enumerate(self.states):
            if not pool.add(index, state, self.terms[index]):
                rejected["no phrasing states exactly these fields"] += count
                return
        if not self.picker.groups:
            rejected["no two values far enough apart"] += count
            return
        for split in plan:
            tries = 1 if split == "train" else SMALL_TRIES
            while tries and not self._row(self._triple(split), split):
                tries -= 1

    def _triple(self, split: Split) -> Triple:
        """Draw a triple of values: for a small split one whose texts wait already, if there is any."""
        triple = self.picker.pick(self.rng)
        if split != "train":
            for _ in range(30):
                if self._ready(triple, split):
                    break
                triple = self.picker.pick(self.rng)
        return triple

    def _ready(self, triple: Triple, split: Split) -> bool:
        a, p, n = triple
        has = self.pool.has
        return has(n, split) and (has(a, split, 2) if a == p else has(a, split) and has(p, split))

    def _row(self, triple: Triple, split: Split) -> bool:
        """Make one row, or count which filter took it."""
        a, p, n = triple
        take, rejected = self.pool.take, self.block.rejected
        train = split == "train"
        anchor = self.pool.pop(a) if train else take(a, split)
        if anchor is None:
            rejected["no text in the split"] += 1
            return False
        mask = anchor[1]
        positive = take(p, split, mask, self.limit)
        if positive is None:
            rejected["word Jaccard of anchor and positive"] += 1
            return False
        negative = None
        if self.rng.random() < self.trap_share:
            # A negative that shares more words, so that words alone do not tell it from the positive.
            negative = self.pool.nearer(n, split, mask, overlap(mask, positive[1]))
        if negative is None:
            negative = self.pool.pop(n) if train else take(n, split)
        if negative is None:
            rejected["no text in the split"] += 1
            return False
        row = self._finish(triple, split, anchor, positive, negative)
        if not train:  # texts of the small splits are used twice, but never in the same row
            if row.hashes in self.small_rows:
                rejected["the same row again"] += 1
                return False
            self.small_rows.add(row.hashes)
        self.block.rows.append(row)
        return True

    def _finish(self, triple: Triple, split: Split, anchor: Text, positive: Text, negative: Text) -> Row:
        rest, begun = self.rests.get(triple) or self._rest(triple)
        text_a, _, frame_a, hash_a = anchor
        text_p, _, frame_p, hash_p = positive
        text_n, _, frame_n, hash_n = negative
        texts = b'"anchor":%b,"positive":%b,"negative":%b' % (dumps(text_a), dumps(text_p), dumps(text_n))
        frames = b'"phrasings":' + dumps([frame_a, frame_p, frame_n])
        found = row_id_of(self.name, begun, frames + b"," + texts)
        line = b'{%b,"id":"%b",%b%b}' % (texts, found, rest, frames)
        return make_row((split, line, (hash_a, hash_p, hash_n)))

    def _rest(self, triple: Triple) -> tuple[bytes, blake2b]:
        """Return the members of a row that all rows of a triple share, and their hash."""
        a, p, n = triple
        rest = (
            b'"axis":"%b","positive_target":%b,"negative_target":%b,'
            b'"anchor_state":%b,"positive_state":%b,"negative_state":%b,"context":"%b",'
        ) % (
            self.name,
            dumps(self.targets[a][p]),
            dumps(self.targets[a][n]),
            self.dumped[a],
            self.dumped[p],
            self.dumped[n],
            self.context,
        )
        self.rests[triple] = rest, blake2b(rest, digest_size=8)
        return self.rests[triple]


def schedule(recipe: Contrasts) -> Iterator[Job]:
    """Yield the blocks of a dataset: every finding once, then by weight, contexts without replacement.

    A context comes round again only when all those of its finding are used, and at most as often as
    ``max_rows_per_context`` allows.
    """
    axes = recipe.ontology.axes
    rng = random.Random(seed_of("schedule", recipe.name, recipe.seed))
    passes = max(1, axes.max_rows_per_context // axes.rows_per_context)
    queues: dict[str, Iterator[Fields]] = {}
    tags = recipe.candidates()
    for tag in tags:
        order = random.Random(seed_of("contexts", recipe.name, recipe.seed, tag))
        queues[tag] = _passes(recipe, tag, passes, order)
    index = 0
    first = list(tags)
    rng.shuffle(first)
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


def _passes(recipe: Contrasts, tag: str, passes: int, rng: random.Random) -> Iterator[Fields]:
    """Yield the contexts of a finding in another order each time; worked out when the first is needed."""
    found = recipe.contexts(tag)
    for _ in range(passes):
        order = list(range(len(found)))
        rng.shuffle(order)
        for place in order:
            yield found[place]
