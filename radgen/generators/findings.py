"""The ``finding`` axis: one finding by another name against another finding (``further`` in ``axes.yaml``).

Only the finding differs; place and change are the same in all three texts. A positive names the anchor's
finding by another synonym, abbreviation or definition; a negative is another finding that is related, or
alike in wording. Targets come from families, associations and organ systems (``axes.yaml``, further).
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

from radgen.generators import contexts as ctx
from radgen.generators.blocks import Block, ordered
from radgen.generators.contexts import Fields
from radgen.generators.contrasts import Contrasts, Job, TripletMaker, seed_of
from radgen.generators.holdout import Holdout
from radgen.generators.levels import Triple
from radgen.ontology.distance import finding_target
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Term
from radgen.templates.realiser import Realiser, words_of

#: Findings beside the first in one block.
NEIGHBOURS = 5


class FindingContrasts(Contrasts):
    """Triplets in which only the finding differs."""

    def __init__(
        self, ontology: Ontology, realiser: Realiser, name: str, seed: int, holdout: Holdout | None = None
    ) -> None:
        self._kept: dict[str, frozenset[Fields]] = {}
        super().__init__(ontology, realiser, name, seed, holdout)

    def contexts(self, tag: str) -> list[Fields]:
        """Return the places of a finding, with and without a change."""
        ontology = self.ontology
        entry = ontology.findings[tag]
        found: list[Fields] = [(), *ctx.places(ontology, tag)]
        changes: list[Fields] = [()]
        if "temporal_change" in entry.axes:
            changes += ctx.group_options(ontology, tag, "temporal_change")
        severities: list[Fields] = [()]
        if "severity" in entry.axes:
            severities += ctx.group_options(ontology, tag, "severity")
        return [
            place + change + severity
            for place in found
            for change in changes
            for severity in severities
            if not (change and severity)
        ]

    @functools.cached_property
    def _alike(self) -> dict[str, list[str]]:
        """For each finding those that share a content word of a name with it."""
        index: dict[str, set[str]] = {}
        words: dict[str, set[str]] = {}
        for tag in self.findings:
            names = [term.text for term in self.ontology.findings[tag].terms]
            words[tag] = {word for name in names for word in words_of(name) if len(word) > 3}
            for word in words[tag]:
                index.setdefault(word, set()).add(tag)
        return {
            tag: sorted(set().union(*(index[word] for word in found)) - {tag}) if found else []
            for tag, found in words.items()
        }

    @functools.cached_property
    def _related(self) -> dict[str, list[str]]:
        """For each finding those of its family, its associations, its organ system."""
        relation = self.ontology.relation
        close = {}
        for tag in self.findings:
            kinds: dict[str, list[str]] = {"family": [], "associated": [], "system": []}
            for other in self.findings:
                kind = relation(tag, other)
                if kind in kinds:
                    kinds[kind].append(other)
            close[tag] = kinds["family"] + kinds["associated"] + kinds["system"]
        return close

    def neighbours(self, tag: str, context: Fields, rng: random.Random) -> list[str]:
        """Return other findings that can stand in the same context: related, alike in wording, and any."""
        fits = functools.partial(self._fits, context=context)
        out: list[str] = []
        any_other = [self.findings[int(rng.random() * len(self.findings))] for _ in range(12)]
        for source, number in ((self._related[tag], 2), (self._alike[tag], 2), (any_other, NEIGHBOURS)):
            candidates = [other for other in source if other != tag and other not in out and fits(other)]
            rng.shuffle(candidates)
            out += candidates[: min(number, NEIGHBOURS - len(out))]
        return out

    def _fits(self, tag: str, context: Fields) -> bool:
        return context in self._contexts_of(tag)

    def _contexts_of(self, tag: str) -> frozenset[Fields]:
        found = self._kept.get(tag)
        if found is None:
            found = self._kept[tag] = frozenset(self.contexts(tag))
        return found

    def _names(self, tag: str, context: dict[str, Any]) -> list[Term]:
        """The names that read well in a context: a definition that gives a place takes no second one."""
        entry = self.ontology.findings[tag]
        named = entry.definition is not None and {"in", "of", "at"} & set(entry.definition.text.split())
        return entry.terms if named and "laterality" in context and len(entry.terms) > 1 else entry.names

    def block(self, job: Job) -> Block:
        """Make the rows of one context: the scheduled finding and its neighbours."""
        rng = random.Random(seed_of("block", self.name, self.seed, job.index))
        ontology = self.ontology
        modalities = ontology.findings[job.finding].modalities
        modality = modalities[int(rng.random() * len(modalities))]
        tags = [
            tag
            for tag in (job.finding, *self.neighbours(job.finding, job.context, rng))
            if modality in ontology.findings[tag].modalities
        ]
        context = dict(job.context)
        states: list[dict[str, Any]] = []
        names: list[Sequence[Term]] = []
        for tag in tags:
            for half in _halves(self._names(tag, context), rng):
                states.append(ordered({"finding": tag, "presence": "present", **context}))
                names.append(half)
        picker = FindingPicker(ontology, states)
        block = Block()
        for realiser, plan in self.plans(job):
            maker = TripletMaker(self, realiser, rng, modality, states, picker, block)
            maker.terms = names
            maker.rows(plan)
        return block


def _halves(names: Sequence[Term], rng: random.Random) -> tuple[list[Term], list[Term]]:
    """Split the names of a finding in two, so that anchor and positive never share one."""
    order = list(names)
    rng.shuffle(order)
    middle = (len(order) + 1) // 2
    return order[:middle], order[middle:]


class FindingPicker:
    """Draws (anchor, positive, negative) over findings, each of which stands twice, with other names."""

    def __init__(self, ontology: Ontology, states: Sequence[dict[str, Any]]) -> None:
        spec = ontology.axis("finding")
        tags = [state["finding"] for state in states]
        self.targets = [[finding_target(spec, ontology.relation(a, b)) for b in tags] for a in tags]
        self.gap = ontology.axes.min_target_gap
        self.match_share = ontology.axes.match_share
        self.count = len(tags) // 2
        self.groups: list[Any] = [True] if self.count > 1 else []

    def pick(self, rng: random.Random) -> Triple:
        """Return indices of three states; the positive has another name, or is nearer than the negative."""
        draw = rng.random
        while True:
            anchor = int(draw() * self.count)
            half = int(draw() * 2)
            negative = int(draw() * self.count)
            if negative == anchor:
                continue
            a, n = 2 * anchor + half, 2 * negative + int(draw() * 2)
            row = self.targets[a]
            if draw() >= self.match_share:
                nearer = [
                    p
                    for p in range(self.count)
                    if p not in (anchor, negative) and row[2 * p] - row[n] >= self.gap - 1e-9
                ]
                if nearer:
                    return a, 2 * nearer[int(draw() * len(nearer))] + int(draw() * 2), n
            if row[a] - row[n] >= self.gap - 1e-9:
                return a, 2 * anchor + 1 - half, n
