"""Every mistake of a user's file at once, although the checks build on each other."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from radgen.errors import OntologyError
from radgen.yamlfile import Loc, Source

_LINE = re.compile(r"^(?P<file>.+?):(?P<line>\d+): (?P<path>\S+): ")
_ROUNDS = 20


def every_problem(source: Source, build: Callable[[Source], Any]) -> list[str]:
    """Return every problem of a file, although a mistake hides others from the checks that come after it.

    What is wrong is left out and the rest is built again, until nothing new comes up.

    Args:
        build: checks the source and raises OntologyError with its problems.
    """
    problems: list[str] = []
    data = source.data
    gone: set[Loc] = set()
    for _ in range(_ROUNDS):
        try:
            build(Source(source.name, source.text, copy.deepcopy(data)))
        except OntologyError as error:
            problems += [line for line in error.problems if not _follows(line, gone)]
            wrong = {loc for line in error.problems if (loc := _culprit(data, line))}
            nameless = {loc for loc in wrong if any(_lacks_name(line, loc) for line in error.problems)}
            if not wrong:
                break
            data = _without(data, wrong - nameless)
            for section, tag in nameless:  # a name of its own lets the rest of the entry be checked
                data[section][tag]["name"] = f"({tag})"
            gone |= wrong - nameless
        else:
            break
    return problems


def _lacks_name(line: str, loc: Loc) -> bool:
    return len(loc) == 2 and f" findings.{loc[1]}.name: expected a value" in line


def _follows(line: str, gone: set[Loc]) -> bool:
    """Whether a problem only comes from what was taken out before: a gap, or a name that is not there."""
    match = _LINE.match(line)
    path = match["path"] if match else ""
    inside = [".".join(map(str, loc)) for loc in gone]
    gap = re.search("expected a value for|should have at least", line)
    if gap and any(f"{place}.".startswith(f"{path}.") for place in inside):
        return True
    entry = ".".join(path.split(".")[:2])
    if "' needs " in line and any(place.startswith(f"{entry}.") for place in inside):
        return True  # an axis needs a site, a size or a plural that was wrong and is not there now
    return any(f"'{loc[1]}'" in line for loc in gone if len(loc) == 2)


def _culprit(data: dict[str, Any], line: str) -> Loc | None:
    """Return what to take out for a problem: the value it speaks of, or the entry that lacks one."""
    match = _LINE.match(line)
    if not match:
        return None
    loc: list[str | int] = []
    node: Any = data
    parts = match["path"].split(".")
    for part in parts:
        if isinstance(node, dict) and part in node:
            loc.append(part)
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            loc.append(int(part))
        else:
            break
        node = node[loc[-1]]
    if len(loc) < len(parts):
        loc = loc[:2] if len(loc) >= 2 else []
    return tuple(loc) or None


def _without(data: Any, wrong: set[Loc], at: Loc = ()) -> Any:
    """Return a copy of a tree without the values at some places."""
    if isinstance(data, dict):
        return {
            key: _without(value, wrong, (*at, key)) for key, value in data.items() if (*at, key) not in wrong
        }
    if isinstance(data, list):
        return [
            _without(value, wrong, (*at, index))
            for index, value in enumerate(data)
            if (*at, index) not in wrong
        ]
    return data


def place(line: str) -> tuple[str, int, str]:
    """Return what problems are sorted by: file, line, text."""
    match = _LINE.match(line)
    return (match["file"], int(match["line"]), line) if match else ("", 0, line)
