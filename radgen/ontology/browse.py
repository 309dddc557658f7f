"""Looking things up in the ontology: which findings there are, and everything about one tag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from radgen.errors import RadgenError, unknown
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry, Kind, Modality, Term


def select(
    ontology: Ontology,
    *,
    kind: str | None = None,
    system: str | None = None,
    axis: str | None = None,
    modality: str | None = None,
) -> dict[str, FindingEntry]:
    """Return the findings that meet every condition, by tag, sorted.

    Raises:
        RadgenError: a kind, organ system, axis or modality that does not exist.
    """
    axes = [*ontology.axes.axes, *ontology.axes.controlled]
    for what, word, known in (
        ("kind", kind, get_args(Kind)),
        ("organ system", system, ontology.anatomy.systems),
        ("axis", axis, axes),
        ("modality", modality, get_args(Modality)),
    ):
        if word is not None and word not in known:
            raise RadgenError(unknown(what, word, known))
    if axis in ontology.axes.controlled:
        axis = ontology.axes.controlled[axis].axis
    return {
        tag: entry
        for tag, entry in ontology.findings.items()
        if kind in (None, entry.kind)
        and system in (None, entry.system)
        and (axis is None or axis in entry.axes)
        and (modality is None or modality in entry.modalities)
    }


@dataclass(frozen=True)
class Description:
    """What a tag means.

    Attributes:
        tag: the tag as it is in the ontology.
        finding: the canonical finding, or ``None`` if the tag states none.
        implies: what the tag states beside the finding (``{"density": "ground_glass"}``).
        why: why it is no finding, or empty.
        facts: everything about the finding, a name and a text each, in the order to be shown.
    """

    tag: str
    finding: str | None
    implies: dict[str, Any]
    why: str
    facts: list[tuple[str, str]]


def find_tag(ontology: Ontology, word: str) -> str:
    """Return the tag of a word: a tag, or any surface form of a finding ("pleural fluid").

    Raises:
        RadgenError: neither; with the nearest tag.
    """
    plain = "_".join(word.lower().replace("-", " ").split())
    if plain in (tags := ontology.tags):
        return plain
    spoken = " ".join(word.lower().replace("_", " ").split())
    for tag, form in _surface_forms(ontology):
        if form.lower() == spoken:
            return tag
    raise RadgenError(unknown("tag", word, tags))


def _surface_forms(ontology: Ontology) -> Iterator[tuple[str, str]]:
    for tag, entry in ontology.findings.items():
        definition = [entry.definition] if entry.definition else []
        for term in (*entry.terms, *definition):
            yield from ((tag, form) for form in (term.text, term.plural) if form)
        yield from ((tag, form) for form in entry.recognised)
    for tag, alias in ontology.aliases.items():
        names = [alias.name] if alias.name else []
        yield from ((tag, form) for form in (*names, *(term.text for term in alias.synonyms)))


def describe(ontology: Ontology, tag: str) -> Description:
    """Return what a tag means.

    Raises:
        RadgenError: the tag is unknown.
    """
    if tag in ontology.not_findings:
        return Description(tag, None, {}, ontology.not_findings[tag].why, [])
    finding, implies = ontology.resolve(tag)
    return Description(tag, finding, implies, "", _facts(ontology, finding))


def _facts(ontology: Ontology, tag: str) -> list[tuple[str, str]]:
    entry = ontology.findings[tag]
    facts = [
        ("name", _term(entry.preferred)),
        ("synonyms", "; ".join(_term(term) for term in entry.synonyms)),
        ("abbreviations", "; ".join(_term(term) for term in entry.abbreviations)),
        ("in words", entry.definition.text if entry.definition else ""),
        ("also recognised", "; ".join(entry.recognised)),
        ("denied by normal", "; ".join(entry.normal)),
        ("kind", entry.kind),
        ("organ system", f"{entry.system} ({ontology.anatomy.systems[entry.system]})"),
        ("disease family", f"{entry.family} ({ontology.families.families[entry.family]})"),
        ("sits in", ", ".join(site.name for _, site in ontology.sites(tag))),
        ("axes", ", ".join(entry.axes)),
        ("severity", _severity(entry)),
        ("size", "{:g} to {:g} mm".format(*entry.size_mm) if entry.size_mm else ""),
        ("most counted", str(entry.max_count or "")),
        ("modalities", ", ".join(entry.modalities)),
        ("reports", ", ".join(f"{count:,} {name}" for name, count in sorted(entry.frequency.items()))),
        ("tags", ", ".join(_alias(ontology, name) for name in aliases_of(ontology, tag))),
        ("related", "; ".join(related(ontology, tag))),
    ]
    return [(name, text) for name, text in facts if text]


def aliases_of(ontology: Ontology, tag: str) -> list[str]:
    """Return the tags that mean a finding, sorted."""
    return [name for name, alias in ontology.aliases.items() if alias.finding == tag]


def related(ontology: Ontology, tag: str) -> list[str]:
    """Return the findings of other families that are related to one, with the reason."""
    out = []
    for association in ontology.families.associations:
        if tag in association.findings:
            other = next((name for name in association.findings if name != tag), tag)
            out.append(f"{other} {association.weight:g} ({association.why})")
    return sorted(out)


def implied(values: dict[str, Any]) -> str:
    """Return the attributes that a tag implies, in words."""
    return ", ".join(f"{field} {_value(value)}" for field, value in values.items())


def _value(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _alias(ontology: Ontology, name: str) -> str:
    what = implied(ontology.aliases[name].implies)
    return f"{name} ({what})" if what else name


def _term(term: Term) -> str:
    return f"{term.text} / {term.plural}" if term.plural else term.text


def _severity(entry: FindingEntry) -> str:
    if "severity" not in entry.axes:
        return ""
    levels = f": {', '.join(entry.severities)}" if entry.severities else ""
    return f"in words of {entry.severity_words}{levels}"
