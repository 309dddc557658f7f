"""Perturbations of sections: reordered (target 1.0), findings added, findings omitted (spec §5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson

from radgen.errors import DatasetError
from radgen.generators.radsim.policy import clean_states
from radgen.generators.similarity.changes import Perturbed, add, omit, reorder
from radgen.generators.similarity.folder import MadeFromReports, Spec, existing, identity, line_of, write
from radgen.generators.similarity.make import ReportOrder, checked
from radgen.generators.similarity.sections import (
    Reader,
    Section,
    Sections,
    keys,
    read_sections,
    row_random,
)
from radgen.generators.similarity.settings import settings
from radgen.generators.splits import SPLITS, Split, Splitter, normalise
from radgen.ontology.radsim import Policy

COLUMNS = (
    "sentence1",
    "sentence2",
    "score",
    "id",
    "family",
    "level",
    "kind",
    "changed",
    "state1",
    "state2",
    "findings",
    "prominence",
    "report1",
)
DESCRIPTIONS = {
    "sentence1": "a section of a report",
    "sentence2": "the same section, reordered, with sentences of other reports, or with sentences left out",
    "score": "1 in another order; k/(k+n) for n findings added to k; else the share of prominence kept",
    "family": "perturbation",
    "level": "findings or impression",
    "kind": "reordered, added or omitted",
    "changed": "the sentences that were added or left out",
    "state1": "what the section states: a list of canonical findings",
    "state2": "what the perturbed section states",
    "findings": "findings that the weights are for; empty unless something was left out",
    "prominence": "weight of each of these findings in the report",
    "report1": "id of the report",
}


class Perturber:
    """Makes the rows of a dataset of perturbations, split by split."""

    def __init__(self, made: Sections, reader: Reader | None, policy: Policy, seed: int) -> None:
        self.made, self.reader, self.policy, self.seed = made, reader, policy, seed
        self.options = settings().perturb
        self.rejected: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.short: dict[str, tuple[int, int]] = {}
        self._above = 0

    def rows(self, quotas: dict[Split, int], name: str) -> Iterator[tuple[Split, bytes]]:
        """Yield the rows; what is missing of a quota is in ``short`` afterwards."""
        for split in SPLITS:
            reordered = round(quotas[split] * self.options.reordered_share)
            yield from self._fill(split, "reordered", reordered, name)
            yield from self._fill(split, "corrupted", quotas[split] - reordered, name)

    def _fill(self, split: Split, what: str, quota: int, name: str) -> Iterator[tuple[Split, bytes]]:
        """Go over the sections of a split again and again until the quota is full or nothing new comes."""
        made, turn = 0, 0
        sections = self.made.sections[split]
        while made < quota:
            before = made
            for section in sections:
                if made == quota:
                    break
                rng = row_random("perturb", self.seed, what, turn, section.report, section.name)
                found = self._one(section, split, what, rng)
                if found is not None:
                    made += 1
                    self.kinds[found.kind] += 1
                    yield split, _line(section, found, name)
            turn += 1
            if made == before:
                break
        if made < quota:
            self.short[f"{split}, {what}"] = (made, quota)

    def _one(self, section: Section, split: Split, what: str, rng: Random) -> Perturbed | None:
        options = self.options
        if what == "reordered":
            found = reorder(section, rng)
        else:
            # Targets are drawn from the half that has fewer so far: the median stays where it is asked for.
            low, high = (options.low, options.median) if self._above > 0 else (options.median, options.high)
            aim = low + (high - low) * rng.random()
            found = None
            if rng.random() < options.addition_share:
                found = add(section, self.made.pool[split], aim, rng, options, self.policy)
            found = found or omit(section, aim, rng, options)
        if found is None:
            self.rejected["no such change of this section"] += 1
            return None
        if normalise(found.text) == normalise(section.text):
            self.rejected["the same text"] += 1
            return None
        states = [state for block in found.blocks for state in block.states]
        if self.reader is not None and self.reader.keys(found.text, section.name) != keys(states):
            self.rejected["reads differently when put together"] += 1
            return None
        if not self.made.ownership.claim_new(found.text, split):
            self.rejected["its string belongs to another split, or was made before"] += 1
            return None
        if found.kind != "reordered":
            self._above += 1 if found.score > options.median else -1
        return found


def _line(section: Section, found: Perturbed, name: str) -> bytes:
    states = [state for block in found.blocks for state in block.states]
    texts = {
        "sentence1": orjson.dumps(section.text),
        "sentence2": orjson.dumps(found.text),
        "score": orjson.dumps(found.score),
    }
    rest: dict[str, Any] = {
        "family": "perturbation",
        "level": section.name,
        "kind": found.kind,
        "changed": found.changed,
        "state1": clean_states(section.states),
        "state2": clean_states(states),
        "findings": list(found.weights),
        "prominence": list(found.weights.values()),
        "report1": section.report,
    }
    return line_of(name, texts, rest)


def make_perturbations(
    order: ReportOrder,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> MadeFromReports:
    """Write perturbation pairs to ``out/perturbation/sections``.

    Raises:
        DatasetError: there are fewer rows than ``--n`` asks for, or nothing can be written.
    """
    if order.truth:
        raise DatasetError("--truth: perturbations need to know where in the text a finding is; leave it out")
    policy, sources, options = order.policy(), order.digests(), settings().perturb
    spec = Spec(
        family="perturbation",
        name="sections",
        command=order.command("perturb"),
        seed=order.seed,
        columns=COLUMNS,
        texts=("sentence1", "sentence2"),
        label="score",
        kinds=dict.fromkeys(("state1", "state2"), "states")
        | {"changed": "texts", "findings": "texts", "prominence": "numbers"},
        target="score",
        about="Sections of reports against themselves: in another order, with findings added or left out.",
        descriptions=DESCRIPTIONS,
    )
    fingerprint = identity(spec, policy, order.rows, sources)
    if found := existing(out, spec, fingerprint, force):
        return found
    reads = order.reads(policy)
    made = read_sections(reads, policy.ontology, progress=progress)
    reader = Reader(policy.ontology) if order.extracted is None else None
    perturber = Perturber(made, reader, policy, order.seed)
    total = order.rows if order.rows is not None else max(1, round(options.per_report * made.total))
    quotas = Splitter(policy.ontology.axes.splits).quotas(total)
    perturber.rejected.update(reads.rejected + made.dropped)
    notes: list[str] = []
    counts = {"reports": made.total, "sections": sum(map(len, made.sections.values()))}
    return write(
        out,
        spec,
        fingerprint,
        checked(perturber, perturber.rows(quotas, spec.name), order, notes, counts),
        policy,
        states=reads.states,
        rejected=perturber.rejected,
        counts=counts,
        sources=sources,
        notes=notes,
        constants={"perturb": options.model_dump()},
    )
