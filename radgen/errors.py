"""What radgen says when something is wrong: one line, exit code 2, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RadgenError(Exception):
    """Root of every error that a user can cause or mend; its text is one complete line."""


class OntologyError(RadgenError):
    """One or more mistakes in an ontology or phrasing file; ``problems`` holds a line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class DatasetError(RadgenError):
    """A dataset cannot be written, or does not say what it claims to say."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known name, or an empty string.

    >>> did_you_mean("laterallity", ["laterality", "location"])
    "; did you mean 'laterality'?"
    >>> did_you_mean("zzz", ["laterality"])
    ''
    """
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """Return one line for an unknown name: the closest right one, or the list of right ones."""
    names = sorted(known)
    hint = did_you_mean(word, names)
    if not hint:
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        hint = f"; known: {shown}"
    return f"unknown {what} '{word}'{hint}"
