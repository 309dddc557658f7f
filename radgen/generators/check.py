"""Checking the sections of a user's YAML file that the generators read: reports, radthought, states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from radgen.errors import OntologyError, RadgenError
from radgen.generators import report_settings
from radgen.generators.radthought.hierarchy import Hierarchy
from radgen.generators.radthought.settings import load_rules
from radgen.generators.states import settings as states_settings
from radgen.ontology.load import Ontology, ontology_of_section


def check_sections(path: Path) -> list[str]:
    """Return a line for every mistake in the sections ``reports``, ``radthought`` and ``states`` of a file.

    Mistakes of other sections are not reported here; findings that the file adds are known if it has none.
    """
    problems: list[str] = []
    for section, read in _READERS.items():
        ontology = ontology_of_section(path, section)
        if ontology is None:
            continue
        try:
            read(ontology)
        except OntologyError as error:
            problems += error.problems
        except RadgenError as error:
            problems.append(f"{path.name}: {error}")
    return problems


def _rules(ontology: Ontology) -> None:
    load_rules(ontology)  # shape and names, every mistake with its line
    Hierarchy(ontology)  # conditions and texts


_READERS: dict[str, Callable[[Ontology], object]] = {
    "reports": report_settings.load_settings,
    "radthought": _rules,
    "states": states_settings.load_settings,
}
