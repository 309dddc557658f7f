"""Checking a user's YAML file: every mistake in it at once, in the ontology and in the phrasings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from radgen.errors import OntologyError
from radgen.ontology.load import build_ontology, load_ontology, unknown_sections
from radgen.ontology.mistakes import every_problem, place
from radgen.ontology.radsim import load_policy
from radgen.templates.phrasings import load_phrasings
from radgen.yamlfile import Source, read_yaml


def check_file(path: Path) -> list[str]:
    """Return a line for every mistake of a file: ``file:line: path: what was expected``.

    Raises:
        RadgenError: the file cannot be read.
    """
    problems: list[str] = []
    try:
        source = read_yaml(path)
    except OntologyError as error:
        problems += error.problems
        try:
            source = read_yaml(path, careful=False)  # keys that stand twice are no reason to stop
        except OntologyError:
            return problems
    problems += unknown_sections(source)
    known = {key: value for key, value in source.data.items() if not unknown_sections(_only(source, key))}
    source = Source(source.name, source.text, known)
    base = load_ontology()
    problems += every_problem(source, lambda left: build_ontology([left]))
    problems += every_problem(
        source, lambda left: load_phrasings(dataclasses.replace(base, user_sources=(left,)))
    )
    problems += every_problem(
        source, lambda left: load_policy(dataclasses.replace(base, user_sources=(left,)))
    )
    return sorted(set(problems), key=place)


def _only(source: Source, key: str) -> Source:
    return Source(source.name, source.text, {key: source.data[key]})
