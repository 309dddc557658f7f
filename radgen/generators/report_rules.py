"""What can stand in one report: relations between findings, and denials that contradict none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from radgen.generators.report_settings import Settings
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Modality

State = Mapping[str, Any]


class Rules:
    """Relations and contradictions between the findings of an ontology; all tables are made once."""

    def __init__(self, ontology: Ontology, settings: Settings) -> None:
        self.ontology = ontology
        self.settings = settings
        self.findings = ontology.findings
        self.by_family: dict[str, list[str]] = {}
        self.by_system: dict[str, list[str]] = {}
        for tag, entry in self.findings.items():
            self.by_family.setdefault(entry.family, []).append(tag)
            self.by_system.setdefault(entry.system, []).append(tag)
        self.associated: dict[str, dict[str, float]] = {tag: {} for tag in self.findings}
        for association in ontology.families.associations:
            first, second = association.findings
            self.associated[first][second] = self.associated[second][first] = association.weight
        self.excluded = self._incompatible()
        self._compatible = {
            pair
            for first, second in map(tuple, settings.compatible)
            for pair in ((first, second), (second, first))
        }
        self._denies = {tag: self._denied_with(tag) for tag in self.findings}
        chronic = settings.chronic
        self._chronic = {
            tag
            for tag, entry in self.findings.items()
            if tag in chronic.findings or entry.family in chronic.families
        }

    def _tags(self, names: Iterable[str]) -> list[str]:
        """Return the findings that a list of findings and families names."""
        out: list[str] = []
        for name in names:
            out += [name] if name in self.findings else self.by_family.get(name, [])
        return out

    def _incompatible(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {tag: set() for tag in self.findings}
        for tag, names in self.settings.excludes.items():
            for other in self._tags(names):
                if other != tag:
                    found[tag].add(other)
                    found[other].add(tag)
        for group in self.settings.one_of:
            tags = self._tags(group)
            for tag in tags:
                found[tag].update(other for other in tags if other != tag)
        return {tag: frozenset(others) for tag, others in found.items()}

    def _denied_with(self, tag: str) -> frozenset[str]:
        """Return the findings beside which one is not denied."""
        entry = self.findings[tag]
        out = {tag, *self.by_family[entry.family]}
        near = self.settings.near_association
        out.update(other for other, weight in self.associated[tag].items() if weight >= near)
        cover = self.settings.covers.get(tag)
        if cover is not None:
            for system in cover.systems:
                out.update(self.by_system.get(system, ()))
            for family in cover.families:
                out.update(self.by_family.get(family, ()))
            out.update(cover.findings)
            out.difference_update(cover.excepted)
        return frozenset(other for other in out if other == tag or (tag, other) not in self._compatible)

    def related(self, tag: str, modality: Modality) -> dict[str, float]:
        """Return the findings related to one, and how strongly."""
        family = self.settings.family_weight
        out = {other: family for other in self.by_family[self.findings[tag].family] if other != tag}
        for other, weight in self.associated[tag].items():
            out[other] = max(weight, out.get(other, 0.0))
        return {other: weight for other, weight in out.items() if modality in self.findings[other].modalities}

    def is_chronic(self, state: State) -> bool:
        """Whether "no acute abnormality" may stand beside what a state says."""
        return state["finding"] in self._chronic and state.get("temporal_change") not in ("new", "increased")

    def denied_with(self, tag: str, unless: Iterable[str] = ()) -> frozenset[str]:
        """Return the findings beside which one is not denied; ``unless`` adds findings and families."""
        return self._denies[tag].union(self._tags(unless))

    def may_deny(self, denial: State, stated: Iterable[State], beside: frozenset[str] | None = None) -> bool:
        """Whether a finding can be denied beside what the report says is or may be there.

        A denial of what is acute only contradicts what is not chronic.

        Args:
            beside: ``denied_with`` of the denial, if more than the finding alone rules it out.
        """
        tag = denial["finding"]
        denied = self._denies[tag] if beside is None else beside
        acute = denial.get("acuity") == "acute"
        for state in stated:
            other = state["finding"]
            if other in denied and not (acute and other != tag and self.is_chronic(state)):
                return False
        return True
