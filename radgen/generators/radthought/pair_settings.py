"""The numbers of ``data/radthought_pairs.yaml`` (spec §6), checked when they are read."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from radgen.ontology.schema import Strict
from radgen.yamlfile import read_yaml, validate

LevelName = Literal["scene_graph", "first_order", "second_order", "third_order", "synthesis"]
LEVELS: tuple[LevelName, ...] = get_args(LevelName)
PairName = Literal["fused", "scene_graph", "first_order", "second_order", "third_order", "synthesis"]
PAIRS: tuple[PairName, ...] = get_args(PairName)
TripletName = Literal["findings_alignment", "coherence", "derivation"]
TRIPLETS: tuple[TripletName, ...] = get_args(TripletName)
#: What a conclusion is compared by, in order; ``side`` and ``evidence`` are those of what it derives from.
Compared = Literal[
    "assertion",
    "certainty",
    "severity",
    "acuity",
    "temporal",
    "mechanism",
    "significance",
    "side",
    "evidence",
]
COMPARED: tuple[Compared, ...] = get_args(Compared)
Ordinal = Literal["certainty", "severity", "acuity", "temporal", "significance"]
OneSided = Literal["severity", "acuity", "temporal", "mechanism", "significance", "side"]
Source = Literal["signature", "near", "label", "denied", "family", "process", "processes", "chance"]

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Agreement = Annotated[float, Field(ge=-1, le=1)]
Positive = Annotated[float, Field(gt=0)]


def _complete(name: str, given: object, expected: tuple[str, ...]) -> None:
    missing = [key for key in expected if key not in given]  # type: ignore[operator]  # a mapping or a list
    if missing:
        raise ValueError(f"{name}: expected a value for {', '.join(missing)}")


class PairsSettings(Strict):
    """Scored pairs: volumes, how candidates are found, how scores are spread."""

    rows: dict[PairName, Count]
    rows_per_report: Positive
    bins: Annotated[int, Field(ge=2, le=200)]
    candidates_per_row: Annotated[int, Field(ge=1, le=100)]
    rounds: Count
    sources: dict[Source, Annotated[int, Field(ge=0)]]

    @model_validator(mode="after")
    def _whole(self) -> PairsSettings:
        _complete("rows", self.rows, PAIRS)
        if not sum(self.sources.values()):
            raise ValueError("sources: expected one that is named at least once")
        return self


class FusedSettings(Strict):
    """Weights of the levels in the fused score, and the order of the levels in its text."""

    weights: dict[LevelName, Weight]
    order: list[LevelName]

    @model_validator(mode="after")
    def _whole(self) -> FusedSettings:
        _complete("weights", self.weights, LEVELS)
        _complete("order", self.order, LEVELS)
        if len(self.order) != len(LEVELS):
            raise ValueError("order: expected each level once")
        if abs(sum(self.weights.values()) - 1.0) > 1e-9:
            raise ValueError("weights: expected a sum of 1")
        return self


class ConclusionSettings(Strict):
    """How conclusions are compared; see ``scores.py``."""

    weights: dict[Compared, Weight]
    sigma: dict[Ordinal, Positive]
    one_sided: dict[OneSided, Agreement]
    mechanism: dict[Literal["same", "firmness", "different"], Agreement]
    mixed_change: Agreement
    unmatched: dict[Literal["present", "absent", "indeterminate"], Agreement]
    nothing_concluded: Agreement
    generic: list[str]

    @model_validator(mode="after")
    def _whole(self) -> ConclusionSettings:
        _complete("weights", self.weights, COMPARED)
        _complete("sigma", self.sigma, get_args(Ordinal))
        _complete("one_sided", self.one_sided, get_args(OneSided))
        _complete("mechanism", self.mechanism, ("same", "firmness", "different"))
        _complete("unmatched", self.unmatched, ("present", "absent", "indeterminate"))
        if self.weights["assertion"] <= 0:
            raise ValueError("weights: expected a weight above 0 for assertion")
        return self


class TripletsSettings(Strict):
    """Triplets: volumes, and what an unrelated report is."""

    rows: dict[TripletName, Count]
    negatives_per_anchor: Annotated[int, Field(ge=1, le=16)]
    hard_share: Share
    max_target: Agreement
    draws: Annotated[int, Field(ge=1, le=1024)]
    rounds: Count
    adjacent: Annotated[
        list[Annotated[list[LevelName], Field(min_length=2, max_length=2)]], Field(min_length=1)
    ]

    @model_validator(mode="after")
    def _whole(self) -> TripletsSettings:
        _complete("rows", self.rows, TRIPLETS)
        return self


class RadthoughtPairsFile(Strict):
    """``radthought_pairs.yaml``."""

    pairs: PairsSettings
    fused: FusedSettings
    conclusions: ConclusionSettings
    triplets: TripletsSettings


@functools.cache
def settings() -> RadthoughtPairsFile:
    """Return the packaged settings."""
    name = "radgen/generators/data/radthought_pairs.yaml"
    files = resources.files("radgen.generators")
    with resources.as_file(files.joinpath("data", "radthought_pairs.yaml")) as path:
        source = read_yaml(Path(path), name=name, careful=False)
    return validate(RadthoughtPairsFile, source.data, [source])


@functools.cache
def settings_text() -> bytes:
    """Return the packaged settings as they stand in the file: part of every fingerprint."""
    return resources.files("radgen.generators").joinpath("data", "radthought_pairs.yaml").read_bytes()
