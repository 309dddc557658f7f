"""The rule base ``data/radthought.yaml`` and the words ``data/radthought_words.yaml``, checked when read.

A user's file changes both under the key ``radthought``: its mappings merge, its lists and numbers replace.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from radgen.errors import OntologyError, unknown
from radgen.generators.radthought.record import Level
from radgen.ontology.load import Ontology, packaged
from radgen.ontology.schema import Strict
from radgen.yamlfile import Loc, Section, Source, merge, validate, where

Share = Annotated[float, Field(ge=0, le=1)]
Points = Annotated[float, Field(ge=0, le=200)]
Conditions = tuple[str, ...]
Texts = Annotated[list[str], Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Pattern(Strict):
    """One rule: what must hold, what is concluded then, and how it is said (see ``radthought.yaml``)."""

    level: Level
    kind: str
    about: Name
    when: Texts
    unless: Conditions = ()
    also: Conditions = ()
    derived: list[str] | None = None
    assertion: Literal["present", "absent"] = "present"
    mechanism: Name | None = None
    stated: bool = False
    significance: Literal["incidental", "minor", "significant", "critical"] | None = None
    each: bool = False
    normal: bool = False
    texts: Annotated[list[str], Field(min_length=3)]


class Kind(Strict):
    """How many sentences of a kind a level has, and whether only findings without one yet have another."""

    most: Annotated[int, Field(ge=1, le=20)]
    fresh: bool = False
    unless: Conditions = ()
    borrow: Conditions = ()


class Bonus(Strict):
    """Points that a finding has beyond those of its family."""

    when: Texts
    points: Annotated[float, Field(ge=-200, le=200)]


class Significance(Strict):
    """How much a finding matters: points by family, finding and bonus; levels by points."""

    families: dict[str, Points]
    findings: dict[str, Points]
    kinds: dict[str, Points]
    bonus: list[Bonus]
    certainty: dict[str, Share]
    levels: dict[Literal["incidental", "minor", "significant", "critical"], Points]
    critical: list[str]


class Cue:
    """Words that state a relation; ``turned``: it holds from the second finding to the first."""

    __slots__ = ("name", "turned", "words")

    def __init__(self, name: str, text: str, turned: bool) -> None:
        self.name, self.words, self.turned = name, tuple(text.split()), turned


class RelationCues(Strict):
    """Words between two findings that state a relation between them."""

    longest: Annotated[int, Field(ge=10)]
    negations: list[str]
    hedges: list[str]
    not_before: list[str]
    forward: dict[str, Texts]
    backward: dict[str, Texts]

    @functools.cached_property
    def ordered(self) -> list[Cue]:
        """Every cue, the longest first."""
        cues = [
            Cue(name, text, turned)
            for turned, group in ((False, self.forward), (True, self.backward))
            for name, texts in group.items()
            for text in texts
        ]
        return sorted(cues, key=lambda cue: -len(cue.words))


class Phrases(Strict):
    """Words for what the sentences of ``radgen.templates`` do not say (see ``radthought_words.yaml``)."""

    normal_share: Share
    present: Texts
    absent: Texts
    resolved: Texts
    hedged: dict[str, Texts]
    procedure: Texts
    prefix: dict[str, dict[str, str]]
    amounts: dict[str, str]
    suffix: dict[str, str]
    comparators: dict[str, str]
    sites: dict[str, str]
    asymmetry: dict[Literal["left", "right"], str]


class RadThoughtFile(Strict):
    """Both files together."""

    groups: dict[Name, Texts]
    kinds: dict[Level, dict[str, Kind]]
    patterns: dict[Name, Pattern]
    significance: Significance
    relations: RelationCues
    phrases: Phrases
    systems: dict[str, str]


def _sources() -> list[Source]:
    names = ("radthought.yaml", "radthought_words.yaml")
    return [source for name in names for source in packaged("radgen.generators", name)]


@functools.lru_cache(maxsize=4)
def load_rules(ontology: Ontology) -> RadThoughtFile:
    """Load the packaged rule base with the section ``radthought`` of the user's files over it.

    Raises:
        OntologyError: every mistake of shape, every unknown group, finding, family, system or kind.
    """
    every: list[Source] = _sources()
    data: Any = {}
    for source in every:
        data = merge(data, source.data)
    for user in ontology.user_sources:
        if "radthought" in user.data:
            data = merge(data, user.data["radthought"])
            every.append(Section.of(user, "radthought"))
    rules = validate(RadThoughtFile, data, every)
    problems = [
        f"{where(every, loc)}: {'.'.join(map(str, loc))}: {unknown(what, name, known)}"
        for loc, what, name, known in _names(rules, ontology)
        if name not in known
    ]
    if problems:
        raise OntologyError(problems)
    return rules


def rules_fingerprint(ontology: Ontology) -> str:
    """Return the hash of the rule base: part of what identifies records."""
    rules = load_rules(ontology)
    return hashlib.sha256(orjson.dumps(rules.model_dump(), option=orjson.OPT_SORT_KEYS)).hexdigest()


def abouts(ontology: Ontology) -> frozenset[str]:
    """Return every name that a conclusion may be about: the processes of the rules, and findings."""
    return frozenset(pattern.about for pattern in load_rules(ontology).patterns.values()) - {"tag"} | set(
        ontology.findings
    )


def _names(rules: RadThoughtFile, ontology: Ontology) -> Iterator[tuple[Loc, str, str, Any]]:
    """Yield every name with what it should be."""
    tags, families, systems = ontology.findings, ontology.families.families, ontology.anatomy.systems
    any_of = {**tags, **families, **systems}
    for name, members in rules.groups.items():
        yield from ((("groups", name), "finding, family or system", member, any_of) for member in members)
    for name, pattern in rules.patterns.items():
        yield ("patterns", name, "kind"), "kind", pattern.kind, rules.kinds.get(pattern.level, {})
    significance = rules.significance
    yield from ((("significance", "families"), "family", name, families) for name in significance.families)
    yield from ((("significance", "findings"), "finding", name, tags) for name in significance.findings)
    yield from ((("significance", "critical"), "finding or family", n, any_of) for n in significance.critical)
    yield from ((("systems",), "system", name, systems) for name in rules.systems)
