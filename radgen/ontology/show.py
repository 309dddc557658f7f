"""Tables for a person: ``radgen ontology list`` and ``show``; plain tab-separated lines in a pipe."""

from __future__ import annotations

import sys
from typing import Literal

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from radgen.ontology.browse import Description, implied
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry

COLUMNS = ("tag", "name", "kind", "system", "axes", "modalities", "reports")


def _row(tag: str, entry: FindingEntry) -> tuple[str, ...]:
    reports = sum(entry.frequency.values())
    return (
        tag,
        entry.name,
        entry.kind,
        entry.system,
        " ".join(entry.axes),
        " ".join(entry.modalities),
        str(reports) if reports else "",
    )


def print_list(ontology: Ontology, found: dict[str, FindingEntry], *, every_tag: bool = False) -> None:
    """Print a line a finding; with ``every_tag`` also the tags that mean one of them or no finding."""
    rows = [_row(tag, entry) for tag, entry in found.items()]
    if every_tag:
        for tag, alias in ontology.aliases.items():
            if alias.finding in found:
                means = " ".join(filter(None, (f"= {alias.finding}", implied(alias.implies))))
                rows.append((tag, means, "alias", found[alias.finding].system, "", "", ""))
        if len(found) == len(ontology.findings):  # they are of no kind, system, axis or modality
            none = ontology.not_findings.items()
            rows += [(tag, entry.why, "no finding", "", "", "", "") for tag, entry in none]
        rows.sort()
    console = Console()
    if not console.is_terminal:
        sys.stdout.writelines("\t".join(row) + "\n" for row in (COLUMNS, *rows))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=f"{len(rows)} of {len(ontology.tags)} tags")
    wide = ("tag", "kind", "system", "axes", "reports")
    shown = [COLUMNS.index(name) for name in (wide if console.width >= 110 else ("tag", "axes", "reports"))]
    for index in shown:
        name = COLUMNS[index]
        whole = name in ("tag", "kind", "reports")
        style = {"tag": "bold", "axes": "dim"}.get(name)
        justify: Literal["left", "right"] = "right" if name == "reports" else "left"
        table.add_column(name, justify=justify, no_wrap=whole, style=style)
    for row in rows:
        # What an alias means and why a tag is no finding stand where a finding has its axes.
        axes = row[COLUMNS.index("axes")] if row[0] in found else row[1]
        cells = [axes if COLUMNS[index] == "axes" else row[index] for index in shown]
        table.add_row(*map(Text, cells[:-1]), f"{int(cells[-1]):,}" if cells[-1] else "")
    console.print(table)


def print_description(found: Description) -> None:
    """Print everything about one tag."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    if found.finding is None:
        console.print(Text.assemble((found.tag, "bold"), f" states no finding: {found.why}"))
        return
    if found.tag != found.finding:
        what = f" with {implied(found.implies)}" if found.implies else ""
        console.print(Text.assemble((found.tag, "bold"), " means ", (found.finding, "bold"), what))
    if not console.is_terminal:
        for name, text in found.facts:
            console.print(f"{name}: {text}", markup=False)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in found.facts:
        table.add_row(name, Text(text))
    console.print(Panel(table, title=found.finding, title_align="left", border_style="dim"))
