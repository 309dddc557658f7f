"""The numbers and words of ``data/states.yaml``, checked when they are read."""

from __future__ import annotations

import functools
from string import Formatter
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from radgen.errors import DatasetError, OntologyError, unknown
from radgen.generators.splits import Split
from radgen.ontology.load import Ontology, packaged
from radgen.ontology.schema import Strict
from radgen.yamlfile import Section, merge, validate

#: Slots that a finding fills; others are lists of ``words``.
SLOTS = ("0", "1", "2", "a0", "A0", "r", "n", "d", "q")
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


def slots(pattern: str) -> list[str]:
    """Return the names of the slots of a pattern.

    >>> slots("{q} {0} or {d}.")
    ['q', '0', 'd']
    """
    return [name for _, name, _, _ in Formatter().parse(pattern) if name is not None]


class RowsSettings(Strict):
    """Rows of each finding, in all splits together."""

    pairs: Count
    triplets: Count
    others: Count


class Differential(Strict):
    """Findings that are named as alternatives, and words that stand before any of them."""

    findings: Annotated[list[str], Field(min_length=2)]
    words: Annotated[list[str], Field(min_length=1)]


class SyntheticSettings(Strict):
    """What is made where no reports are given; the slots of the patterns are explained in ``states.yaml``."""

    reports: Count
    modality: str
    statements: Count
    patterns_share: Share
    others_most: Annotated[int, Field(ge=0, le=2)]
    doubtful: Annotated[int, Field(ge=0)]
    nothing: Annotated[int, Field(ge=0)]
    not_alone: list[str]
    absent: Annotated[list[str], Field(min_length=1)]
    present: Annotated[list[str], Field(min_length=1)]
    differential: list[Differential]
    words: dict[str, Annotated[list[str], Field(min_length=1)]]
    unnamed: list[str]

    @model_validator(mode="after")
    def _slots(self) -> Self:
        for name, own in (("absent", SLOTS), ("present", SLOTS), ("unnamed", ())):
            for pattern in getattr(self, name):
                for slot in slots(pattern):
                    if slot not in own and slot not in self.words:
                        raise ValueError(f"{name}: '{pattern}': {unknown('slot', slot, [*own, *self.words])}")
        return self


class StatesSettings(Strict):
    """``states.yaml``."""

    findings: Annotated[list[str], Field(min_length=1)]
    splits: dict[Split, Share]
    rows: RowsSettings
    across_share: Share
    negative_candidates: Count
    least: Annotated[int, Field(ge=2)]
    plain_absence: list[str]
    plain_changes: list[str]
    acquisition: list[str]
    administrative: list[str]
    synthetic: SyntheticSettings


@functools.lru_cache(maxsize=4)
def load_settings(ontology: Ontology) -> StatesSettings:
    """Load the packaged settings with the section ``states`` of the user's files over them.

    Raises:
        OntologyError: with every mistake and its line.
    """
    sources = packaged("radgen.generators", "states.yaml")
    data: dict[str, Any] = dict(sources[0].data)
    every = list(sources)
    for user in ontology.user_sources:
        if "states" in user.data:
            data = merge(data, user.data["states"])
            every.append(Section.of(user, "states"))
    found = validate(StatesSettings, data, every)
    problems = [
        f"states.synthetic.differential: {unknown('finding', tag, ontology.findings)}"
        for group in found.synthetic.differential
        for tag in group.findings
        if tag not in ontology.findings
    ]
    if problems:
        raise OntologyError(problems)
    return found


def chosen_findings(asked: str | None, ontology: Ontology, options: StatesSettings) -> tuple[str, ...]:
    """Return the findings of ``--findings a,b,c``, or the settings' own; each once, in that order.

    Raises:
        DatasetError: a name is no finding of the ontology.
    """
    names = options.findings if asked is None else [name.strip() for name in asked.split(",")]
    out: list[str] = []
    for name in names:
        if not name:
            continue
        tag = _tag(name, ontology)
        if tag is None:
            raise DatasetError(f"--findings: {unknown('finding', name, ontology.findings)}")
        if tag not in out:
            out.append(tag)
    if not out:
        raise DatasetError(
            "--findings: names no finding; expected names such as pleural_effusion,pneumothorax"
        )
    return tuple(out)


def _tag(name: str, ontology: Ontology) -> str | None:
    """Return the finding of a tag, of another tag for it, or of one of its names ("heart_enlargement")."""
    if name in ontology.findings:
        return name
    if name in ontology.aliases:
        return ontology.aliases[name].finding
    words = name.replace("_", " ").lower()
    named = [
        tag
        for tag, entry in ontology.findings.items()
        if any(term.text.lower() == words for term in entry.terms)
    ]
    return named[0] if len(named) == 1 else None
