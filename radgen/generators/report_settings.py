"""Constants of synthetic reports: ``data/reports.yaml``, and the section ``reports`` of the user's files."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from radgen.errors import OntologyError, unknown
from radgen.ontology.load import Ontology, packaged
from radgen.ontology.schema import Modality, Strict
from radgen.yamlfile import Loc, Section, merge, validate, where

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Weights = dict[str, Weight]


def _numbers(value: Any) -> Any:
    """Keys that are counts come as text from YAML's mappings."""
    return {str(key): number for key, number in value.items()} if isinstance(value, dict) else value


NumberWeights = Annotated[Weights, BeforeValidator(_numbers)]


class Factors(Strict):
    """Factors on the frequency of findings."""

    families: Weights
    findings: Weights


class Usual(Strict):
    """What is usual for a finding: weights of its places and values, and how often each axis is stated."""

    chance: dict[str, Share] = Field(default={})
    place: Weights = Field(default={})
    side: Weights = Field(default={})
    lobe: Weights = Field(default={})
    zone: Weights = Field(default={})
    severity: Weights = Field(default={})
    temporal_change: Weights = Field(default={})
    certainty: Weights = Field(default={})
    density: Weights = Field(default={})
    margin: Weights = Field(default={})
    distribution: Weights = Field(default={})
    count: NumberWeights = Field(default={})
    count_category: Weights = Field(default={})


class Prefer(Strict):
    """What is usual, by family and by finding."""

    families: dict[str, Usual]
    findings: dict[str, Usual]


class Size(Strict):
    """How sizes are drawn."""

    smallest_mm: dict[Modality, float]
    skew: Annotated[float, Field(gt=0)]
    two_dimensions_share: dict[Modality, Share]
    approx_share: Share


class Number(Strict):
    """A number that a sentence states: its field, range and step."""

    field: str
    range: Annotated[list[float], Field(min_length=2, max_length=2)]
    step: Annotated[float, Field(gt=0)]


class Sentences(Strict):
    """Sentences that a kind, a system or a finding has for itself."""

    share: Share
    texts: list[str]
    number: Number | None = None


class OwnSentences(Strict):
    """Sentences of their own, the finding's first, then its kind's, then its system's."""

    findings: dict[str, Sentences] = Field(default={})
    kinds: dict[str, Sentences] = Field(default={})
    systems: dict[str, Sentences] = Field(default={})


class Pair(Strict):
    """Two findings that one sentence names."""

    findings: Annotated[list[str], Field(min_length=2, max_length=2)]
    texts: Annotated[list[str], Field(min_length=1)]
    same_side: bool = False


class Joined(Strict):
    """Sentences that name two findings."""

    share: Share
    any_related: Annotated[list[str], Field(min_length=1)]
    pairs: list[Pair]


def _denial(value: Any) -> Any:
    return {"finding": value} if isinstance(value, str) else value


Denial = Annotated[dict[str, Any], BeforeValidator(_denial)]


class Statement(Strict):
    """What can be said of an organ that is normal.

    Attributes:
        share: how often it is said.
        modality: where it is said; everywhere if absent.
        says: findings that the texts deny.
        texts: sentences; ``{tag}`` in them is a name of that finding.
        deny: findings that are denied with the general patterns.
        unless: findings and families beside which it is not said.
        plain: it stands alone.
    """

    share: Share = 1.0
    modality: Modality | None = None
    says: list[Denial] = Field(default=[])
    texts: list[str] = Field(default=[])
    deny: list[Denial] = Field(default=[])
    unless: list[str] = Field(default=[])
    plain: bool = False


class Part(Strict):
    """An organ's place in the report, and its normal statements."""

    label: str
    systems: list[str] = Field(default=[])
    findings: list[str] = Field(default=[])
    statements: list[Statement] = Field(default=[])


class Cover(Strict):
    """What a denied finding denies beside itself."""

    systems: list[str] = Field(default=[])
    families: list[str] = Field(default=[])
    findings: list[str] = Field(default=[])
    excepted: list[str] = Field(default=[], alias="except")


class Chronic(Strict):
    """What may stand beside "no acute …"."""

    families: list[str]
    findings: list[str]


class Impression(Strict):
    """How the impression is made."""

    most: NumberWeights
    least_prominence: float
    drop: dict[str, Share]
    tries: Annotated[int, Field(ge=1)]
    most_alike: Share
    normal: dict[str, list[Statement]]
    not_acute_share: Share
    negative_share: Share
    negatives: list[str]
    advice_share: Share
    advice: dict[str, list[str]]


class ProminenceSize(Strict):
    """What a size is worth."""

    reference_mm: float
    power: float
    limits: Annotated[list[float], Field(min_length=2, max_length=2)]


class Prominence(Strict):
    """Constants of the prominence."""

    kinds: Weights
    families: Weights
    findings: Weights
    severity: Weights
    temporal_change: Weights
    certainty: Weights
    density: Weights
    size: ProminenceSize
    digits: int


class Settings(Strict):
    """``data/reports.yaml``; the comments there say what each key means."""

    modalities: dict[Modality, Weight]
    normal_share: Share
    labelled_share: dict[Modality, Share]
    numbered_share: dict[Modality, Share]
    number_of_findings: dict[Modality, NumberWeights]
    unlisted_frequency: Weight
    related_share: Share
    family_weight: Weight
    same_side_share: Share
    most_of_a_family: Annotated[int, Field(ge=1)]
    again_share: Share
    factors: Factors
    excludes: dict[str, list[str]]
    one_of: list[list[str]]
    most_groups: dict[Modality, int]
    chances: dict[str, Share]
    chances_by_modality: dict[Modality, dict[str, Share]]
    never_together: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    values: Usual
    values_by_modality: dict[Modality, Usual]
    size: Size
    prefer: Prefer
    frames: dict[str, list[str]]
    sentences: OwnSentences
    joined: Joined
    denied: Annotated[dict[str, list[str]], BeforeValidator(_numbers)]
    abnormal_factor: Share
    least_normal: dict[Modality, int]
    other: str
    parts: dict[str, Part]
    covers: dict[str, Cover]
    near_association: float
    compatible: list[list[str]]
    chronic: Chronic
    impression: Impression
    prominence: Prominence


@functools.lru_cache(maxsize=4)
def load_settings(ontology: Ontology) -> Settings:
    """Load the packaged settings with the section ``reports`` of the user's files over them.

    Raises:
        OntologyError: with every mistake of shape, or every name that is no finding, family or system.
    """
    sources = packaged("radgen.generators", "reports.yaml")
    data: dict[str, Any] = dict(sources[0].data)
    every = list(sources)
    for user in ontology.user_sources:
        if "reports" in user.data:
            data = merge(data, user.data["reports"])
            every.append(Section.of(user, "reports"))
    settings = validate(Settings, data, every)
    problems = [
        f"{where(every, loc)}: {'.'.join(map(str, loc))}: {unknown(what, name, known)}"
        for loc, what, name, known in _names(settings, ontology)
        if name not in known
    ]
    if problems:
        raise OntologyError(problems)
    return settings


def _names(settings: Settings, ontology: Ontology) -> Iterator[tuple[Loc, str, str, Any]]:
    """Yield every name in the settings with what it should be."""
    tags, families, systems = ontology.findings, ontology.families.families, ontology.anatomy.systems
    either = {**tags, **families}
    for loc, names in (
        (("factors", "findings"), settings.factors.findings),
        (("prefer", "findings"), settings.prefer.findings),
        (("sentences", "findings"), settings.sentences.findings),
        (("prominence", "findings"), settings.prominence.findings),
        (("impression", "advice"), settings.impression.advice),
        (("covers",), settings.covers),
    ):
        yield from (((*loc, name), "finding", name, tags) for name in names)
    for loc, names in (
        (("factors", "families"), settings.factors.families),
        (("prefer", "families"), settings.prefer.families),
        (("prominence", "families"), settings.prominence.families),
    ):
        yield from (((*loc, name), "family", name, families) for name in names)
    for tag, group in settings.excludes.items():
        yield ("excludes", tag), "finding", tag, tags
        yield from ((("excludes", tag), "finding or family", name, either) for name in group)
    for index, group in enumerate(settings.one_of):
        yield from ((("one_of", index), "finding or family", name, either) for name in group)
    for index, group in enumerate(settings.compatible):
        yield from ((("compatible", index), "finding", name, tags) for name in group)
    for index, pair in enumerate(settings.joined.pairs):
        yield from ((("joined", "pairs", index), "finding", name, tags) for name in pair.findings)
    yield from ((("chronic", "findings"), "finding", name, tags) for name in settings.chronic.findings)
    yield from ((("chronic", "families"), "family", name, families) for name in settings.chronic.families)
    for tag, cover in settings.covers.items():
        yield from ((("covers", tag), "system", name, systems) for name in cover.systems)
        yield from ((("covers", tag), "family", name, families) for name in cover.families)
        yield from ((("covers", tag), "finding", name, tags) for name in (*cover.findings, *cover.excepted))
    yield from (
        (("impression", "negatives"), "finding", name, tags) for name in settings.impression.negatives
    )
    yield ("other",), "part", settings.other, settings.parts
    for key, part in settings.parts.items():
        yield from ((("parts", key, "systems"), "system", name, systems) for name in part.systems)
        yield from ((("parts", key, "findings"), "finding", name, tags) for name in part.findings)
        for index, statement in enumerate(part.statements):
            yield from _of_statement(("parts", key, "statements", index), statement, tags, either)
    for key, statements in settings.impression.normal.items():
        for index, statement in enumerate(statements):
            yield from _of_statement(("impression", "normal", key, index), statement, tags, either)


def _of_statement(
    loc: Loc, statement: Statement, tags: Any, either: Any
) -> Iterator[tuple[Loc, str, str, Any]]:
    for denial in (*statement.says, *statement.deny):
        yield loc, "finding", str(denial.get("finding", "")), tags
    yield from ((loc, "finding or family", name, either) for name in statement.unless)
