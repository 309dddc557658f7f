"""Checking a user's YAML file: every mistake in it at once, in the ontology and in the phrasings."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from radgen.errors import OntologyError
from radgen.ontology.load import build_ontology, load_ontology, unknown_sections
from radgen.templates.phrasings import load_phrasings
from radgen.yamlfile import Loc, Source, read_yaml

_LINE = re.compile(r"^(?P<file>.+?):(?P<line>\d+): (?P<path>\S+): ")
_ROUNDS = 20


def check_file(path: Path) -> list[str]:
    """Return a line for every mistake of a file: ``file:line: path: what was expected``.

    A mistake hides others from the checks that come after it. So what is wrong is left out, and the
    rest is checked again, until nothing new comes up.

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
    sections = {key: value for key, value in source.data.items() if not unknown_sections(_only(source, key))}
    source = Source(source.name, source.text, copy.deepcopy(sections))
    base = load_ontology()
    problems += _rounds(source, lambda left: build_ontology([left]))
    problems += _rounds(source, lambda left: load_phrasings(dataclasses.replace(base, user_sources=(left,))))
    return sorted(set(problems), key=_place)


def _only(source: Source, key: str) -> Source:
    return Source(source.name, source.text, {key: source.data[key]})


def _rounds(source: Source, build: Callable[[Source], Any]) -> list[str]:
    """Build again and again without what was wrong before; return every problem."""
    problems: list[str] = []
    left = Source(source.name, source.text, copy.deepcopy(source.data))
    dropped: set[str] = set()
    for _ in range(_ROUNDS):
        try:
            build(left)
        except OntologyError as error:
            fresh = [line for line in error.problems if not any(f"'{name}'" in line for name in dropped)]
            problems += fresh
            before = copy.deepcopy(left.data)
            data = copy.deepcopy(left.data)
            for line in error.problems:
                dropped |= _prune(data, line)
            if data == before:
                break
            left = Source(source.name, source.text, data)
        else:
            break
    return problems


def _prune(data: dict[str, Any], line: str) -> set[str]:
    """Take what a problem speaks of out of the data; return the names of entries that went with it."""
    match = _LINE.match(line)
    if not match:
        return set()
    loc = _loc(data, match["path"])
    if not loc:
        return set()
    holder: Any = data
    for part in loc[:-1]:
        holder = holder[part]
    # A missing value cannot be taken out: its entry goes, and what refers to that entry is no mistake.
    complete = len(_parts(match["path"])) == len(loc)
    if isinstance(holder, dict):
        holder.pop(str(loc[-1]))
    else:
        holder.pop(int(loc[-1]))
    return set() if complete and len(loc) > 2 else {str(loc[-1])}


def _parts(path: str) -> list[str]:
    return path.split(".")


def _loc(data: Any, path: str) -> Loc:
    """Follow a path as far as the data has it."""
    loc: list[str | int] = []
    for part in _parts(path):
        if isinstance(data, dict) and part in data:
            loc.append(part)
            data = data[part]
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            loc.append(int(part))
            data = data[int(part)]
        else:
            break
    return tuple(loc)


def _place(line: str) -> tuple[str, int, str]:
    match = _LINE.match(line)
    return (match["file"], int(match["line"]), line) if match else ("", 0, line)
