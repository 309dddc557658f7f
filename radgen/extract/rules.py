"""Text to canonical findings, offline (spec §8, backend ``rules``)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from radgen.ontology import Finding, Ontology, load_ontology


class RulesExtractor:
    """Finds the findings of an ontology in text (interface; the rules follow)."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology

    def extract(self, text: str, section: str | None = None) -> list[Finding]:
        """Return the findings of a text, in the order in which it states them.

        Args:
            text: a sentence or a whole section; evidence spans are positions in it.
            section: name of the section, if known ("indication" states no current finding).
        """
        raise NotImplementedError

    def extract_report(self, report: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the findings of a report's sections, each with ``section`` and ``evidence``."""
        raise NotImplementedError


@functools.cache
def default_extractor() -> RulesExtractor:
    """Return the extractor over the packaged ontology."""
    return RulesExtractor(load_ontology())
