"""Loading and checking the ontology: packaged YAML, and a user's files laid over it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from radgen.errors import OntologyError, RadgenError, did_you_mean, unknown
from radgen.ontology import checks
from radgen.ontology.finding import Finding
from radgen.ontology.mistakes import every_problem, place
from radgen.ontology.schema import (
    AliasEntry,
    AnatomyFile,
    AxesFile,
    Axis,
    FamiliesFile,
    FindingEntry,
    FindingsFile,
    NotAFinding,
    Site,
    TagsFile,
)
from radgen.yamlfile import Source, explain, merge, read_yaml, validate

#: Sections of a user's file that this loader reads, and the model that checks each.
SECTIONS: dict[str, str] = {
    **dict.fromkeys(FindingsFile.model_fields, "findings"),
    **dict.fromkeys(AxesFile.model_fields, "axes"),
    **dict.fromkeys(AnatomyFile.model_fields, "anatomy"),
    **dict.fromkeys(FamiliesFile.model_fields, "families"),
}
#: Sections that other parts of radgen read from the same file.
OTHER_SECTIONS = (
    "words", "frames", "leads", "combinations", "radsim", "radthought", "reports", "lexicon", "states",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ontology:
    """Everything that can be true: findings, axes, anatomy, families, and the tags of the papers.

    Attributes:
        findings: canonical findings by tag.
        aliases: tags that mean another finding, with the attributes they imply.
        not_findings: tags that state no finding, with the reason.
        axes: axes, splits and constants of ``axes.yaml``.
        anatomy: zones, lobes, sites, systems.
        families: disease families and associations.
        fingerprint: sha256 of all the files it was made of.
        user_sources: the user's files, from which other parts read their sections.
    """

    findings: dict[str, FindingEntry]
    aliases: dict[str, AliasEntry]
    not_findings: dict[str, NotAFinding]
    axes: AxesFile
    anatomy: AnatomyFile
    families: FamiliesFile
    fingerprint: str
    user_sources: tuple[Source, ...] = ()

    @property
    def tags(self) -> list[str]:
        """Every tag, canonical or not, sorted."""
        return sorted({*self.findings, *self.aliases, *self.not_findings})

    def resolve(self, tag: str) -> tuple[str, dict[str, Any]]:
        """Return the canonical finding of a tag and the attributes that the tag implies.

        Raises:
            RadgenError: the tag is unknown, or states no finding.
        """
        if tag in self.findings:
            return tag, {}
        if tag in self.aliases:
            alias = self.aliases[tag]
            return alias.finding, dict(alias.implies)
        if tag in self.not_findings:
            raise RadgenError(f"tag '{tag}' states no finding: {self.not_findings[tag].why}")
        raise RadgenError(unknown("tag", tag, self.tags))

    def axis(self, name: str) -> Axis:
        """Return the axis of that name; ``laterality_controlled`` is the laterality axis.

        Raises:
            RadgenError: there is no such axis.
        """
        axes = self.axes
        if name in axes.controlled:
            name = axes.controlled[name].axis
        found = axes.axes.get(name) or axes.further.get(name)
        if found is None:
            raise RadgenError(unknown("axis", name, [*axes.axes, *axes.controlled, *axes.further]))
        return found

    def sites(self, tag: str) -> Iterator[tuple[str, Site]]:
        """Yield the sites of a finding, the usual one first."""
        for name in self.findings[tag].sites:
            yield name, self.anatomy.sites[name]

    def on_axis(self, axis: str) -> list[str]:
        """Return the findings that have an axis, sorted.

        Every finding that can be contrasted at all has presence; those with a second name, too, ``finding``.
        """
        if axis in self.axes.further:
            plain = [
                tag
                for tag, entry in self.findings.items()
                if entry.axes or entry.kind in ("device", "procedure")
            ]
            if self.axes.further[axis].kind == "finding":
                plain = [tag for tag in plain if len(self.findings[tag].names) > 1]
            return sorted(plain)
        return sorted(tag for tag, entry in self.findings.items() if axis in entry.axes)

    def relation(self, a: str, b: str) -> str:
        """Return how two findings are related: same, family, associated, system or other."""
        if a == b:
            return "same"
        first, second = self.findings[a], self.findings[b]
        if first.family == second.family:
            return "family"
        if frozenset((a, b)) in self._associated:
            return "associated"
        return "system" if first.system == second.system else "other"

    @functools.cached_property
    def _associated(self) -> frozenset[frozenset[str]]:
        return frozenset(frozenset(found.findings) for found in self.families.associations)


def packaged(package: str, *parts: str) -> list[Source]:
    """Read the packaged YAML files of a folder or one file, in the order of their names."""
    root = resources.files(package).joinpath("data", *parts)
    with resources.as_file(root) as path:
        files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        return [
            read_yaml(file, name=f"{package.replace('.', '/')}/data/{_tail(file, path)}", careful=False)
            for file in files
        ]


def _tail(file: Path, path: Path) -> str:
    return f"{path.name}/{file.name}" if path.is_dir() else file.name


def _user_sources(paths: Sequence[str | Path]) -> list[Source]:
    sources, problems = [], []
    for path in paths:
        try:
            source = read_yaml(Path(path))
        except OntologyError as error:
            problems += error.problems
            continue
        problems += unknown_sections(source)
        sources.append(source)
    if problems:
        raise OntologyError(problems)
    return sources


def unknown_sections(source: Source) -> list[str]:
    """Return a line for every top-level key of a user's file that no part of radgen reads."""
    known = [*SECTIONS, *OTHER_SECTIONS]
    problems = []
    for key in source.data:
        if key not in known:
            hint = did_you_mean(key, known) or f"; known: {', '.join(sorted(known))}"
            problems.append(f"{source.name}:{source.line((key,))[1]}: {key}: unknown section{hint}")
    return problems


def _section(sources: Sequence[Source], file: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for source in sources:
        own = {key: value for key, value in source.data.items() if SECTIONS.get(key) == file}
        if isinstance(own.get("associations"), list):  # the one list that adds up: each file has its own
            own["associations"] = [*data.get("associations", []), *own["associations"]]
        data = merge(data, own)
    return data


def load_ontology(paths: Sequence[str | Path] = ()) -> Ontology:
    """Load the packaged ontology with the user's files laid over it, in order.

    A user's mapping merges with the packaged one key by key; a list or a number replaces it.

    Raises:
        OntologyError: with every mistake of the files: ``file:line: path: what was expected``.
        RadgenError: a file cannot be read.
    """
    key = tuple(str(Path(path).resolve()) for path in paths)
    if not key:
        return _load()
    users = _user_sources(paths)
    read = tuple((source.name, source.text) for source in users)
    if (known := _built.get(read)) is not None:
        return known
    if len(_built) >= 4:
        _built.clear()
    try:
        _built[read] = build_ontology(users)
        return _built[read]
    except OntologyError as error:
        problems = set(error.problems)
        for index, source in enumerate(users):
            before, after = users[:index], users[index + 1 :]
            problems.update(every_problem(source, partial(_build_among, before, after)))
        raise OntologyError(sorted(problems, key=place)) from None


def ontology_of_section(path: str | Path, section: str) -> Ontology | None:
    """Return the ontology with nothing but one section of a user's file beside it, to check that section.

    What the file itself adds is known if its own part has no mistakes, else the packaged ontology is all
    there is. None: the file is no YAML or has no such section.
    """
    try:
        source = read_yaml(Path(path), careful=False)
    except OntologyError:
        return None
    if section not in source.data:
        return None
    try:
        ontology = load_ontology([path])
    except OntologyError:
        ontology = load_ontology()
    only = replace(source, data={section: source.data[section]})
    return replace(ontology, user_sources=(only,))


#: Ontologies with users' files by the names and texts of the files: the same files give the same object.
_built: dict[tuple[tuple[str, str], ...], Ontology] = {}


def _build_among(before: list[Source], after: list[Source], source: Source) -> Ontology:
    return build_ontology([*before, source, *after])


@functools.cache
def _load() -> Ontology:
    return build_ontology(())


def build_ontology(users: Sequence[Source]) -> Ontology:
    """Lay read sources over the packaged ontology; see ``load_ontology``."""
    here = "radgen.ontology"
    groups = {
        "axes": packaged(here, "axes.yaml"),
        "anatomy": packaged(here, "anatomy.yaml"),
        "families": packaged(here, "families"),
        "findings": packaged(here, "findings"),
    }
    tag_sources = packaged(here, "tags.yaml")
    problems: list[str] = []
    models: dict[str, Any] = {}
    shapes: dict[str, type[BaseModel]] = {
        "axes": AxesFile,
        "anatomy": AnatomyFile,
        "families": FamiliesFile,
        "findings": FindingsFile,
    }
    for name, sources in groups.items():
        every = [*sources, *users]
        try:
            models[name] = validate(shapes[name], _section(every, name), every)
        except OntologyError as error:
            problems += error.problems
    if problems:
        raise OntologyError(problems)
    tags = validate(TagsFile, tag_sources[0].data, tag_sources)
    found: FindingsFile = models["findings"]
    every = [*groups["findings"], *groups["families"], *groups["axes"], *groups["anatomy"], *users]
    problems = checks.cross_check(found, models["families"], models["anatomy"], models["axes"], tags, every)
    problems += _check_aliases(found, every)
    if problems:
        raise OntologyError(problems)
    frequency = checks.frequencies(found, tags)
    findings = {
        tag: entry.model_copy(update={"frequency": frequency.get(tag, entry.frequency)})
        for tag, entry in sorted(found.findings.items())
    }
    digest = hashlib.sha256()
    for source in [*tag_sources, *every]:
        digest.update(source.text.encode())
        digest.update(b"\0")
    return Ontology(
        findings=findings,
        aliases=dict(sorted(found.aliases.items())),
        not_findings=dict(sorted(found.not_findings.items())),
        axes=models["axes"],
        anatomy=models["anatomy"],
        families=models["families"],
        fingerprint=digest.hexdigest(),
        user_sources=tuple(users),
    )


def _check_aliases(found: FindingsFile, sources: list[Source]) -> list[str]:
    problems = []
    for tag, alias in found.aliases.items():
        try:
            Finding.model_validate({"finding": alias.finding, **alias.implies})
        except ValidationError as error:
            for item in error.errors():
                loc = ("aliases", tag, "with", *item["loc"])
                problems.append(checks.problem(sources, loc, explain(item, Finding)))
    return problems
