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
_OWN_COLUMN = ("finding", "presence")


def show_findings(text: str, console: Console, ontology_files: Sequence[str | Path] = ()) -> int:
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
    """Return a row for each finding: what it is, whether it is there, what else is stated, in which words."""
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("finding", "presence", "states", "evidence"):
        grid.add_column(name, overflow="fold")
    for number, finding in enumerate(found):
        rest = [
            f"{name} {_cell(value)}" for name, value in finding.stated().items() if name not in _OWN_COLUMN
        ]
        grid.add_row(
            Text(finding.finding, style=colour(number, finding)),
            Text(finding.presence or ""),
            Text("\n".join(rest)),
            Text(finding.evidence.text if finding.evidence else "", style="dim"),
        )
    return grid


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_cell(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
