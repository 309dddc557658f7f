"""The constants of RadSim (``radsim.yaml``, spec §4), checked against the ontology and a user's file."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from radgen.errors import OntologyError, unknown
from radgen.ontology.checks import problem
from radgen.ontology.finding import Certainty
from radgen.ontology.load import Ontology, packaged
from radgen.ontology.schema import Strict
from radgen.yamlfile import Source, merge, validate

Attribute = Literal["presence", "size", "severity", "laterality", "spatial", "morphology", "certainty"]
ATTRIBUTES: tuple[Attribute, ...] = get_args(Attribute)
#: Presence values in the order of their codes; ``unstated`` stands for a missing one.
PRESENCES = ("present", "absent", "indeterminate", "unstated")
Agreement = Annotated[float, Field(ge=-1, le=1)]
Sided = Literal["size", "severity", "laterality", "spatial", "morphology", "certainty"]


class Restricted(Strict):
    """What a restricted negation says against a finding that is not surely the denied variant."""

    unknown: Agreement
    other_variant: Agreement


class Continuum(Strict):
    """Findings that are compared as if they were one, and what is left of the agreement of their presence."""

    findings: Annotated[list[str], Field(min_length=2)]
    agreement: Agreement
    why: str


class Unmatched(Strict):
    """Agreement of a finding that one side has alone: ``max(floor, first + step (n - 1))`` with n of them."""

    first: Agreement
    step: Annotated[float, Field(le=0)]
    floor: Agreement


class Jitter(Strict):
    """Gaussian noise of a score: standard deviation, and where it is clipped in standard deviations."""

    sigma: Annotated[float, Field(ge=0, le=0.2)]
    clip: Annotated[float, Field(gt=0)]


class Constants(Strict):
    """The ``radsim`` section; see the comments of ``radsim.yaml``."""

    weights: dict[Attribute, Annotated[float, Field(ge=0)]]
    leave_when_unstated: list[Sided]
    presence: dict[str, Agreement]
    restricted: Restricted
    sigma: dict[Literal["severity", "spatial", "morphology", "certainty"], Annotated[float, Field(gt=0)]]
    laterality: dict[Literal["same", "bilateral", "opposite", "midline"], Agreement]
    different_place: Agreement
    one_sided: dict[Sided, Agreement]
    hedged: dict[Certainty, Agreement]
    continua: list[Continuum]
    unmatched: Unmatched
    general: dict[str, list[str]]
    general_denial: Agreement
    same_family: Annotated[float, Field(ge=0, le=1)]
    same_organ: Annotated[float, Field(ge=0, le=1)]
    only_denials: Agreement
    nothing_stated: Agreement
    jitter: Jitter


class RadsimFile(Strict):
    """``radsim.yaml``."""

    radsim: Constants


@dataclass(frozen=True, eq=False)
class Policy:
    """RadSim's constants and the relations of the ontology's findings.

    Attributes:
        constants: what ``radsim.yaml`` says.
        ontology: the findings, families, associations and systems.
        continuum: by tag, the index of its continuum.
        relations: by pair of tags in alphabetical order, the weight of their association.
        fingerprint: sha256 of the constants; with the ontology's it identifies every score.
    """

    constants: Constants
    ontology: Ontology
    continuum: dict[str, int]
    relations: dict[tuple[str, str], float]
    fingerprint: str

    def related(self, a: str, b: str) -> float:
        """Return B_family of two different findings: their association, or the value of one family."""
        findings = self.ontology.findings
        weight = self.relations.get((a, b) if a < b else (b, a), 0.0)
        if a in findings and b in findings and findings[a].family == findings[b].family:
            weight = max(weight, self.constants.same_family)
        return weight

    def system(self, tag: str) -> str | None:
        """Return the organ system of a finding; None for one that the ontology does not have."""
        entry = self.ontology.findings.get(tag)
        return entry.system if entry else None


def load_policy(ontology: Ontology) -> Policy:
    """Return RadSim's policy: ``radsim.yaml`` with the ``radsim`` sections of the user's files over it.

    Raises:
        OntologyError: with every mistake of the section.
    """
    if not any("radsim" in source.data for source in ontology.user_sources):
        return _packaged_policy(ontology)
    return _build(ontology)


@functools.lru_cache(maxsize=8)
def _packaged_policy(ontology: Ontology) -> Policy:
    return _build(ontology)


def _build(ontology: Ontology) -> Policy:
    from hashlib import sha256

    sources = [*packaged("radgen.ontology", "radsim.yaml")]
    data = sources[0].data
    for source in ontology.user_sources:
        if "radsim" in source.data:
            data = merge(data, {"radsim": source.data["radsim"]})
            sources.append(source)
    constants = validate(RadsimFile, data, sources).radsim
    problems = _problems(constants, ontology, sources)
    if problems:
        raise OntologyError(problems)
    relations: dict[tuple[str, str], float] = {}
    for association in ontology.families.associations:
        first, second = sorted(association.findings)
        relations[first, second] = max(relations.get((first, second), 0.0), association.weight)
    continuum = {tag: index for index, group in enumerate(constants.continua) for tag in group.findings}
    digest = sha256(constants.model_dump_json().encode()).hexdigest()
    return Policy(constants, ontology, continuum, relations, digest)


def _problems(constants: Constants, ontology: Ontology, sources: list[Source]) -> list[str]:
    """Return a line for every name that leads nowhere and every value that is missing."""
    out: list[str] = []
    at = ("radsim",)
    expected = {f"{a}-{b}" for i, a in enumerate(PRESENCES) for b in PRESENCES[i:]}
    given = {"-".join(sorted(key.split("-"), key=_presence_rank)) for key in constants.presence}
    out += [
        problem(sources, (*at, "presence", key), unknown("pair of presences", key, expected))
        for key in constants.presence
        if key not in expected
    ]
    out += [
        problem(sources, (*at, "presence"), f"expected a value for '{key}', found none")
        for key in sorted(expected - given)
    ]
    tables = {"weights": ATTRIBUTES, "one_sided": ATTRIBUTES[1:], "hedged": get_args(Certainty)}
    tables |= {"sigma": ("severity", "spatial", "morphology", "certainty")}
    tables |= {"laterality": ("same", "bilateral", "opposite", "midline")}
    for name, keys in tables.items():
        out += [
            problem(sources, (*at, name), f"expected a value for '{key}', found none")
            for key in keys
            if key not in getattr(constants, name)
        ]
    if constants.weights.get("presence", 1.0) <= 0:
        out.append(problem(sources, (*at, "weights", "presence"), "expected a weight above 0"))
    seen: set[str] = set()
    for index, group in enumerate(constants.continua):
        for tag in group.findings:
            loc = (*at, "continua", index, "findings")
            if tag not in ontology.findings:
                out.append(problem(sources, loc, unknown("finding", tag, ontology.findings)))
            elif tag in seen:
                out.append(problem(sources, loc, f"'{tag}' is in a continuum already"))
            seen.add(tag)
    for tag, systems in constants.general.items():
        if tag not in ontology.findings:
            out.append(problem(sources, (*at, "general", tag), unknown("finding", tag, ontology.findings)))
        for name in systems:
            if name not in ontology.anatomy.systems:
                text = unknown("organ system", name, ontology.anatomy.systems)
                out.append(problem(sources, (*at, "general", tag), text))
    return out


def _presence_rank(name: str) -> int:
    return PRESENCES.index(name) if name in PRESENCES else len(PRESENCES)
