"""The shape of ``data/cues.yaml`` and of a user's ``lexicon`` section, and how they are laid together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from radgen.errors import OntologyError, unknown
from radgen.ontology import Ontology
from radgen.ontology.finding import Finding
from radgen.ontology.load import ontology_of_section, packaged
from radgen.yamlfile import Source, validate, where

Texts = list[str]
Loc = tuple[str | int, ...]


class _Strict(BaseModel):
    """A model that refuses unknown keys, so that a typing mistake in YAML is never silent."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Phrases(_Strict):
    """Forms that name a finding together with attributes."""

    finding: str
    implies: dict[str, Any] = Field(default={}, alias="with")
    cased: bool = False
    text: Texts


class States(_Strict):
    """Forms that state several fields at once."""

    attrs: dict[str, Any]
    text: Texts


class Refinement(_Strict):
    """General words that an organ makes into another finding."""

    words: Texts
    sites: dict[str, str]


class Composition(_Strict):
    """What is said of a subject; without subjects, of what the finding lists under ``normal``."""

    finding: str
    subjects: Texts = []
    predicates: Texts


class Places(_Strict):
    """Words of place."""

    side: dict[str, Texts] = {}
    lobe_position: dict[str, str] = {}
    zone_position: dict[str, str] = {}
    lobe_noun: Texts = []
    zone_noun: Texts = []
    zone: dict[str, Texts] = {}
    lobe: dict[str, Texts] = {}
    both: dict[str, dict[str, str]] = {}
    abbreviations: dict[str, str] = {}
    segments: Texts = []
    anatomy: dict[str, Texts] = {}


class Numbers(_Strict):
    """The words around numbers."""

    units: dict[str, float] = {}
    by: Texts = []
    range: Texts = []
    vertebrae: dict[str, int] = {}
    before: dict[str, Texts] = {}
    after: dict[str, Texts] = {}
    prior: Texts = []
    prior_after: Texts = []
    away: Texts = []
    landmarks: Texts = []
    labels: Texts = []
    no_count: Texts = []
    rib_fillers: Texts = []


class Grammar(_Strict):
    """Words that separate, join, deny and set aside; see the comments in ``cues.yaml``."""

    break_: Texts = Field(default=[], alias="break")
    comma: Texts = []
    and_: Texts = Field(default=[], alias="and")
    or_: Texts = Field(default=[], alias="or")
    slash: Texts = []
    versus: Texts = []
    with_: Texts = Field(default=[], alias="with")
    prep: Texts = []
    det: Texts = []
    verb: Texts = []
    there: Texts = []
    pronoun: Texts = []
    largest: Texts = []
    ignore: Texts = []
    negation: Texts = []
    post_negation: Texts = []
    normal: Texts = []
    normal_acute: Texts = []
    not_normal: Texts = []
    limited: Texts = []
    history: Texts = []
    history_after: Texts = []
    hypothetical: Texts = []


class Cues(_Strict):
    """``cues.yaml``; every key may be absent from a user's ``lexicon``."""

    cues: Grammar = Grammar()
    relations: dict[str, Texts] = {}
    certainty: dict[str, Texts] = {}
    attributes: dict[str, dict[str, Texts]] = {}
    morphology: Texts = []
    axis_joins: Texts = []
    places: Places = Places()
    sections: dict[str, Texts] = {}
    phrases: list[Phrases] = []
    states: list[States] = []
    general: Texts = []
    refine: list[Refinement] = []
    compositions: list[Composition] = []
    spellings: dict[str, str] = {}
    quantities: Numbers = Numbers()


class _UserFile(_Strict):
    lexicon: Cues = Cues()


@cache
def _packaged() -> Source:
    return packaged("radgen.extract", "cues.yaml")[0]


def load_cues(ontology: Ontology) -> dict[str, Any]:
    """Return the packaged cues with the ``lexicon`` sections of the user's files added to them.

    Raises:
        OntologyError: with every mistake of a user's section: file, line, path, what was expected.
    """
    data: dict[str, Any] = yaml.safe_load(_packaged().text)
    for source in ontology.user_sources:
        section = source.data.get("lexicon")
        if section is None:
            continue
        validate(_UserFile, {"lexicon": section}, [source])
        problems = list(_problems(section, ontology, source, data))
        if problems:
            raise OntologyError(problems)
        _extend(data, section)
    return data


def check_lexicon(path: Path) -> list[str]:
    """Return a line for every mistake in the section ``lexicon`` of a user's file.

    Mistakes of other sections are not reported here; findings that the file adds are known if it has none.
    """
    ontology = ontology_of_section(path, "lexicon")
    if ontology is None:
        return []
    try:
        load_cues(ontology)
    except OntologyError as error:
        return error.problems
    return []


def _problems(section: dict[str, Any], ontology: Ontology, source: Source, base: dict[str, Any]) -> list[str]:
    """Return a line for every unknown finding, field or value of a section whose shape is right."""
    found: list[str] = []

    def report(loc: Loc, message: str) -> None:
        found.append(f"{where([source], loc)}: {'.'.join(map(str, loc))}: {message}")

    for part, key in (("phrases", "finding"), ("compositions", "finding")):
        for index, entry in enumerate(section.get(part, [])):
            if entry[key] not in ontology.findings:
                report(("lexicon", part, index, key), unknown("finding", entry[key], ontology.findings))
    for index, entry in enumerate(section.get("refine", [])):
        for site, tag in entry["sites"].items():
            if tag not in ontology.findings:
                report(
                    ("lexicon", "refine", index, "sites", site), unknown("finding", tag, ontology.findings)
                )
    for index, tag in enumerate(section.get("general", [])):
        if tag not in ontology.findings:
            report(("lexicon", "general", index), unknown("finding", tag, ontology.findings))
    for name, levels in section.get("attributes", {}).items():
        if name not in base["attributes"]:
            report(("lexicon", "attributes", name), unknown("attribute", name, base["attributes"]))
            continue
        for level in levels:
            if level not in base["attributes"][name]:
                report(
                    ("lexicon", "attributes", name, level), unknown("value", level, base["attributes"][name])
                )
    for part in ("relations", "certainty"):
        for level in section.get(part, {}):
            if level not in base[part]:
                report(("lexicon", part, level), unknown("value", level, base[part]))
    for part, key in (("phrases", "with"), ("states", "attrs")):
        for index, entry in enumerate(section.get(part, [])):
            for name in entry.get(key, {}):
                if name not in Finding.model_fields:
                    report(("lexicon", part, index, key, name), unknown("field", name, Finding.model_fields))
    return found


def _tags(section: dict[str, Any]) -> Iterator[tuple[Loc, str]]:
    """Yield every tag that a section names, with its place."""
    for part in ("phrases", "compositions"):
        for index, entry in enumerate(section.get(part, [])):
            yield ("lexicon", part, index, "finding"), entry["finding"]
    for index, entry in enumerate(section.get("refine", [])):
        for site, tag in entry["sites"].items():
            yield ("lexicon", "refine", index, "sites", site), tag
    for index, tag in enumerate(section.get("general", [])):
        yield ("lexicon", "general", index), tag


def _extend(data: dict[str, Any], more: dict[str, Any]) -> None:
    """Add a user's cues: lists grow, mappings merge, anything else replaces."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _extend(data[key], value)
        elif isinstance(value, list) and isinstance(data.get(key), list):
            data[key] = [*data[key], *value]
        else:
            data[key] = value
