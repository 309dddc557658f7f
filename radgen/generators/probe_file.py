"""The shape of ``data/probe.yaml``: the sentences of Probe-13."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from radgen.ontology.load import packaged
from radgen.ontology.schema import Strict, TermText
from radgen.yamlfile import validate


class Pattern(Strict):
    """A sentence with slots, and the classes of findings that it suits (all if none)."""

    text: str
    classes: list[str] = Field(default_factory=list, alias="for")


def _pattern(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


PatternText = Annotated[Pattern, BeforeValidator(_pattern)]


class Group(Strict):
    """One group of rows.

    Attributes:
        findings: what its rows are about.
        places: kinds of places that may be stated as context: ``none``, ``side``, ``lobe``.
        shell: the noun phrase that goes into the common ``shells``; the group uses none if absent.
        values: for each value, for each slot, the words for it; ``adj.amount`` only for that class.
        patterns: sentences for every value.
        said: sentences for one value.
        skip: findings that are not said with a value.
        innumerable: findings of which so many are said.
        sizes: the sizes that occur, millimetres.
        near: smallest and largest ratio of anchor and positive in an ordinal triplet.
        far: smallest and largest ratio of anchor and negative.
        forms: how a size is said.
    """

    findings: list[str] = Field(default_factory=list)
    places: list[str] = Field(default_factory=lambda: ["none"])
    shell: str | None = None
    values: dict[str, dict[str, list[str]]] = Field(default_factory=dict)
    patterns: list[PatternText] = Field(default_factory=list)
    said: dict[str, list[PatternText]] = Field(default_factory=dict)
    skip: dict[str, list[str]] = Field(default_factory=dict)
    innumerable: list[str] = Field(default_factory=list)
    sizes: list[int] = Field(default_factory=list)
    near: list[float] = Field(default_factory=list)
    far: list[float] = Field(default_factory=list)
    forms: dict[str, list[str]] = Field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        """The findings that its anchors are about."""
        return list(self.findings)


class Synonyms(Strict):
    """The names of one finding, and the diseases that a negative may name instead."""

    names: list[TermText]
    others: list[str]


class SynonymGroup(Group):
    """The group ``synonym``: its findings bring their own names."""

    findings: dict[str, Synonyms] = Field(default_factory=dict)  # type: ignore[assignment]  # a table here, a list in other groups


class PlaceWords(Strict):
    """How a place is said before a finding's name."""

    side: list[str]
    both: list[str]
    lobe: list[str]
    lingula: list[str]
    zone: dict[str, list[str]]

    def plain(self, zone: str | None) -> list[str]:
        """Return the forms of a zone without their side."""
        return [text.replace("{side} ", "") for text in self.zone[zone]] if zone else []


class LocationWords(Strict):
    """How a place is said as a noun phrase."""

    lobe: dict[str, list[str]]
    zone: dict[str, dict[str, list[str]]]


class ProbeFile(Strict):
    """``probe.yaml``."""

    groups: list[str]
    rows_per_group: Annotated[int, Field(gt=0)]
    seed: int
    plural_heads: list[str]
    max_word_jaccard: float
    trap_share: float
    names: dict[str, list[TermText]]
    places: PlaceWords
    locations: LocationWords
    shells: list[str]
    size: Group
    count: Group
    laterality: Group
    location: Group
    zone: Group
    severity: Group
    temporal_change: Group
    density: Group
    margin: Group
    certainty: Group
    distribution: Group
    presence: Group
    synonym: SynonymGroup


@functools.cache
def load_probe() -> ProbeFile:
    """Read and check ``data/probe.yaml``."""
    sources = packaged("radgen.generators", "probe.yaml")
    return validate(ProbeFile, sources[0].data, sources)
