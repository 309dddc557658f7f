"""The numbers of ``data/similarity.yaml`` (spec §5), checked when they are read."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from radgen.ontology.schema import Strict
from radgen.yamlfile import read_yaml, validate

Level = Literal["sentence", "findings", "impression", "report"]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]


class PairsSettings(Strict):
    """Scored pairs: volume a report, how candidates are found, how scores are spread."""

    per_report: dict[Literal["sentence", "findings", "impression"], Positive]
    bins: Annotated[int, Field(ge=2, le=200)]
    candidates_per_row: Annotated[int, Field(ge=1, le=100)]
    rounds: Annotated[int, Field(ge=1)]
    sources: dict[str, Annotated[int, Field(ge=0)]]


class TripletSettings(Strict):
    """Mined triplets: volume a report, candidates, what makes a positive and a negative."""

    per_report: dict[Literal["report", "sentence"], Positive]
    candidates: Annotated[int, Field(ge=4, le=256)]
    min_gap: Positive
    min_positive: float
    max_word_jaccard: Share
    min_overlap: Share
    contrasts: list[str]
    sources: dict[str, Annotated[int, Field(ge=0)]]


class ProminenceSettings(Strict):
    """Weight of a finding where the report gives none."""

    present: float
    indeterminate: float
    absent: float
    severity: dict[str, float]
    in_impression: float
    labelled_absent: float


class PerturbSettings(Strict):
    """Perturbations: shares and targets."""

    per_report: Positive
    reordered_share: Share
    addition_share: Share
    median: Share
    low: Share
    high: Share
    most_added: Annotated[int, Field(ge=1)]
    tries: Annotated[int, Field(ge=1)]


class SeverityScales(Strict):
    """Words by level, from trace to severe."""

    degree: list[Annotated[list[str], Field(min_length=4, max_length=4)]]
    amount: list[Annotated[list[str], Field(min_length=4, max_length=4)]]


class DiscrepancySettings(Strict):
    """Discrepancies: words that are exchanged, factors of sizes, tries."""

    per_report: Positive
    kinds: list[str]
    controls: list[str]
    size_factors: list[Positive]
    severity: SeverityScales
    temporal: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    verbs: list[str]
    unchanging: list[str]
    denial: list[str]
    statement: list[str]
    dependent: list[str]
    tries: Annotated[int, Field(ge=1)]


class SimilarityFile(Strict):
    """``similarity.yaml``."""

    pairs: PairsSettings
    stop_words: list[str]
    triplets: TripletSettings
    prominence: ProminenceSettings
    perturb: PerturbSettings
    discrepancies: DiscrepancySettings


@functools.cache
def settings() -> SimilarityFile:
    """Return the packaged settings."""
    with resources.as_file(resources.files("radgen.generators").joinpath("data", "similarity.yaml")) as path:
        source = read_yaml(Path(path), name="radgen/generators/data/similarity.yaml", careful=False)
    return validate(SimilarityFile, source.data, [source])


@functools.cache
def settings_text() -> bytes:
    """Return the packaged settings as they stand in the file: part of every fingerprint."""
    return resources.files("radgen.generators").joinpath("data", "similarity.yaml").read_bytes()
