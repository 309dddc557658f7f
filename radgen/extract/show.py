"""``radgen extract --show``: the findings of a text as a table, and the text with their words in colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from radgen.extract.rules import RulesExtractor
from radgen.ontology import Finding, load_ontology

#: One colour a finding, in turn; red and dim are kept for what is denied.
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")
_FIRST = ("finding", "presence", "certainty")


def show(text: str, console: Console, ontology_files: Sequence[str | Path] = ()) -> int:
    """Print the findings of a text; return how many there are."""
    found = RulesExtractor(load_ontology(ontology_files)).extract(text)
    console.print(coloured(text, found))
    if found:
        console.print(table(found))
    else:
        console.print("no finding", style="dim")
    return len(found)


def colour(number: int, finding: Finding) -> str:
    """Return the style of a finding: denied ones are struck through."""
    base = _COLOURS[number % len(_COLOURS)]
    return f"{base} strike" if finding.presence == "absent" else base


def coloured(text: str, found: Sequence[Finding]) -> Text:
    """Return the text with the evidence of every finding in its colour."""
    shown = Text(text)
    for number, finding in enumerate(found):
        if finding.evidence is not None:
            shown.stylize(colour(number, finding), finding.evidence.start, finding.evidence.end)
    return shown


def table(found: Sequence[Finding]) -> Table:
    """Return a row for each finding, and a column for each field that any of them states."""
    states = [finding.stated() for finding in found]
    names = list(_FIRST[:2]) + [
        name
        for name in Finding.model_fields
        if name not in _FIRST[:2] and any(name in state for state in states)
    ]
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for name in [*names, "evidence"]:
        grid.add_column(name)
    for number, (finding, state) in enumerate(zip(found, states, strict=True)):
        evidence = finding.evidence.text if finding.evidence else ""
        cells = [Text(_cell(state.get(name))) for name in names]
        cells[0].stylize(colour(number, finding))
        grid.add_row(*cells, Text(evidence, style="dim"))
    return grid


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_cell(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
