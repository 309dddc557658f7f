"""What must hold between the ontology's files, beyond the shape of each; every mistake is listed."""

from __future__ import annotations

from collections import defaultdict

from radgen.errors import unknown
from radgen.ontology.finding import FIELDS
from radgen.ontology.schema import (
    AnatomyFile,
    AxesFile,
    FamiliesFile,
    FindingEntry,
    FindingsFile,
    Modality,
    TagsFile,
)
from radgen.yamlfile import Loc, Source, where


def problem(sources: list[Source], loc: Loc, text: str) -> str:
    """Return one line: file, line, path and what is wrong there."""
    return f"{where(sources, loc)}: {'.'.join(map(str, loc))}: {text}"


def cross_check(
    found: FindingsFile,
    families: FamiliesFile,
    anatomy: AnatomyFile,
    axes: AxesFile,
    tags: TagsFile,
    sources: list[Source],
) -> list[str]:
    """Return a line for every reference that leads nowhere and every impossible combination."""
    out: list[str] = []
    for tag, entry in found.findings.items():
        out += _entry_problems(tag, entry, families, anatomy, axes, sources)
    for tag, alias in found.aliases.items():
        if alias.finding not in found.findings:
            out.append(
                problem(
                    sources, ("aliases", tag, "finding"), unknown("finding", alias.finding, found.findings)
                )
            )
    for first, second in (("findings", "aliases"), ("findings", "not_findings"), ("aliases", "not_findings")):
        for tag in set(getattr(found, first)) & set(getattr(found, second)):
            out.append(problem(sources, (second, tag), f"'{tag}' is already in {first}"))
    for index, association in enumerate(families.associations):
        for tag in association.findings:
            if tag not in found.findings:
                loc = ("associations", index, "findings")
                out.append(problem(sources, loc, unknown("finding", tag, found.findings)))
    known = {*found.findings, *found.aliases, *found.not_findings}
    out += [
        f"tag '{row.tag}' ({row.modality}) has no entry in the ontology"
        for row in tags.tags
        if row.tag not in known
    ]
    out += _axis_problems(axes, sources)
    out += _shared_forms(found, sources)
    return out


def _entry_problems(
    tag: str,
    entry: FindingEntry,
    families: FamiliesFile,
    anatomy: AnatomyFile,
    axes: AxesFile,
    sources: list[Source],
) -> list[str]:
    out = []
    at: Loc = ("findings", tag)
    if entry.family not in families.families:
        out.append(problem(sources, (*at, "family"), unknown("family", entry.family, families.families)))
    if entry.system not in anatomy.systems:
        out.append(problem(sources, (*at, "system"), unknown("organ system", entry.system, anatomy.systems)))
    sites = []
    for index, name in enumerate(entry.sites):
        if name in anatomy.sites:
            sites.append(anatomy.sites[name])
        else:
            out.append(problem(sources, (*at, "sites", index), unknown("site", name, anatomy.sites)))
    axis_at: Loc = (*at, "axes")
    for index, name in enumerate(entry.axes):
        if name not in axes.axes:
            out.append(problem(sources, (*axis_at, index), unknown("axis", name, axes.axes)))
    if "laterality" in entry.axes and not any(site.sides == "paired" for site in sites):
        out.append(problem(sources, axis_at, "'laterality' needs a site with paired sides"))
    if "location" in entry.axes and not any(site.zones or site.lobes for site in sites):
        out.append(problem(sources, axis_at, "'location' needs a site with zones or lobes"))
    if "size" in entry.axes and entry.size_mm is None:
        out.append(problem(sources, axis_at, "'size' needs size_mm: [smallest, largest]"))
    for name, used in entry.levels.items():
        every = axes.axes[name].levels if name in axes.axes else []
        out += [
            problem(sources, (*at, "levels", name), unknown("level", level, every))
            for level in used
            if level not in every
        ]
    if entry.size_mm is not None and not 0 < entry.size_mm[0] < entry.size_mm[1]:
        out.append(
            problem(
                sources,
                (*at, "size_mm"),
                f"expected [smallest, largest] in millimetres, found {entry.size_mm}",
            )
        )
    if "count" in entry.axes and (entry.max_count or 0) < 2:
        out.append(problem(sources, axis_at, "'count' needs max_count of at least 2"))
    if "count" in entry.axes and entry.preferred.number != "count":
        out.append(problem(sources, axis_at, "'count' needs a plural for the name"))
    if entry.kind == "device" and {"severity", "density"} & set(entry.axes):
        out.append(problem(sources, axis_at, "a device has neither severity nor density"))
    return out


def _axis_problems(axes: AxesFile, sources: list[Source]) -> list[str]:
    out: list[str] = []
    for name, axis in axes.axes.items():
        for index, field in enumerate(axis.fields):
            if field not in FIELDS:
                text = unknown("canonical field", field, FIELDS)
                out.append(problem(sources, ("axes", name, "fields", index), text))
        if axis.kind in ("presence", "finding"):
            text = f"'{axis.kind}' is a kind of 'further' axes only"
            out.append(problem(sources, ("axes", name, "kind"), text))
        if axis.kind == "ordinal" and axis.fields[:1] != [name]:
            text = (
                f"an ordinal axis has the name of its field: expected fields: [{name}], found {axis.fields}"
            )
            out.append(problem(sources, ("axes", name, "fields"), text))
        if axis.kind == "ordinal" and len(axis.levels) < 2:
            out.append(problem(sources, ("axes", name), "expected at least two levels"))
        if axis.kind != "side" and axis.sigma is None:
            out.append(problem(sources, ("axes", name), "expected sigma, found none"))
        if axis.kind == "side" and set(axis.targets) != {"same", "opposite", "bilateral"}:
            out.append(problem(sources, ("axes", name), "expected targets for same, opposite and bilateral"))
    total = sum(axes.splits.values())
    if abs(total - 1.0) > 1e-9:
        out.append(problem(sources, ("splits",), f"expected shares that add up to 1, found {total:g}"))
    return out


def _shared_forms(found: FindingsFile, sources: list[Source]) -> list[str]:
    """A surface form that names two findings would make the extractor guess."""
    owner: dict[str, str] = {}
    out: list[str] = []
    for tag, entry in found.findings.items():
        forms: set[str] = set()
        for key, terms in (
            ("synonyms", entry.terms),
            ("definition", [entry.definition] if entry.definition else []),
        ):
            for term in terms:
                for form in filter(None, (term.text, term.plural)):
                    forms.add(form if form.isupper() else form.lower())
                    _claim(owner, form if form.isupper() else form.lower(), tag, key, out, sources)
        for form in entry.recognised:
            if form not in forms:
                _claim(owner, form if form.isupper() else form.lower(), tag, "recognised", out, sources)
    return out


def _claim(
    owner: dict[str, str], form: str, tag: str, key: str, out: list[str], sources: list[Source]
) -> None:
    other = owner.setdefault(form, tag)
    if other != tag:
        out.append(problem(sources, ("findings", tag, key), f"'{form}' already names '{other}'"))


def frequencies(found: FindingsFile, tags: TagsFile) -> dict[str, dict[Modality, int]]:
    """Return reports a modality for each canonical finding: its own tag's and its aliases' support."""
    out: dict[str, dict[Modality, int]] = defaultdict(dict)
    for row in tags.tags:
        alias = found.aliases.get(row.tag)
        tag = alias.finding if alias else row.tag
        if tag in found.findings and not (alias and alias.implies.get("presence") == "absent"):
            counts = out[tag]
            counts[row.modality] = counts.get(row.modality, 0) + row.support
    return dict(out)
