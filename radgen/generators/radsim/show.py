"""The table behind a RadSim score: for programs as a mapping, for people on the terminal."""

from __future__ import annotations

import sys
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from radgen.generators.radsim.agreement import State
from radgen.generators.radsim.policy import Row, Score

_WHY = {
    "same": "",
    "continuum": "one continuum",
    "only_a": "only A states it",
    "only_b": "only B states it",
    "denied_by_summary": "denied by the other's summary",
    "denied_with_summary": "both deny it, one in a summary",
}
COLUMNS = ("finding", "attribute", "A", "B", "weight", "agreement", "why")


def as_mapping(score: Score) -> dict[str, Any]:
    """Return a score with its table as JSON can hold it."""
    return {
        "score": score.value,
        "agreement": score.agreement,
        "family": score.family,
        "organ": score.organ,
        "jitter": score.jitter,
        "weight": score.weight,
        "findings": [_row(row) for row in score.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "a": row.a,
        "b": row.b,
        "weight": row.weight,
        "agreement": row.agreement,
        "attributes": [term.__dict__ for term in row.pair.terms] if row.pair else [],
        "related": {"finding": row.related[1], "bonus": row.related[0]},
        "organ": row.organ,
    }


def _name(a: State | None, b: State | None) -> str:
    names = [state["finding"] for state in (a, b) if state is not None]
    return " ~ ".join(dict.fromkeys(names))


def table_rows(score: Score) -> list[tuple[str, ...]]:
    """Return a line for each attribute of each finding, in the order of ``COLUMNS``."""
    out: list[tuple[str, ...]] = []
    for row in score.rows:
        name = _name(row.a, row.b)
        if row.pair is None:
            why = _WHY[row.kind]
            if row.related[1]:
                why += f"; related to {row.related[1]} (+{row.related[0]:g})"
            if row.organ:
                why += f"; same organ system (+{row.organ:g})"
            sides = [(state or {}).get("presence", "") or "" for state in (row.a, row.b)]
            out.append((name, "all", *sides, f"{row.weight:g}", f"{row.agreement:+.3f}", why))
            continue
        for index, term in enumerate(row.pair.terms):
            out.append(
                (
                    name if index == 0 else "",
                    term.attribute,
                    term.a or "",
                    term.b or "",
                    f"{term.weight:g}",
                    f"{term.agreement:+.3f}",
                    _WHY[row.kind] if index == 0 else "",
                )
            )
    return out


def sum_line(score: Score) -> str:
    """Say how the parts add up."""
    line = (
        f"agreement {score.agreement:+.4f} (over weight {score.weight:g})  family {score.family:+.4f}  "
        f"organ {score.organ:+.4f}  jitter {score.jitter:+.4f}"
    )
    total = score.agreement + score.family + score.organ + score.jitter
    return line + (f"  = {total:+.4f}, clipped" if abs(total) > 1 else "")


def print_score(score: Score) -> None:
    """Print the score, its parts and its table; tab-separated lines in a pipe."""
    rows = table_rows(score)
    console = Console(highlight=False)
    if not console.is_terminal:
        sys.stdout.write(f"score\t{score.value:.6f}\n{sum_line(score)}\n")
        sys.stdout.writelines("\t".join(row) + "\n" for row in (COLUMNS, *rows))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        number = name in ("weight", "agreement")
        table.add_column(
            name, justify="right" if number else "left", style="bold" if name == "finding" else None
        )
    for row in rows:
        style = "red" if row[5].startswith("-") else None
        table.add_row(*map(Text, row[:5]), Text(row[5], style=style or ""), Text(row[6], style="dim"))
    console.print(table)
    console.print(sum_line(score))
    console.print(Text.assemble("RadSim ", (f"{score.value:.4f}", "bold")))


def scored_texts(a: str, b: str, ontology_files: tuple[str, ...] = ()) -> tuple[Score, list[str]]:
    """Extract both texts with the rules and score them.

    Returns:
        The score, and a line for each text in which no finding was recognised.

    Raises:
        OntologyError: a user's file is wrong.
    """
    from radgen.extract.rules import RulesExtractor, default_extractor
    from radgen.generators.radsim.policy import score
    from radgen.ontology.load import load_ontology
    from radgen.ontology.radsim import load_policy

    ontology = load_ontology(ontology_files)
    extractor = RulesExtractor(ontology) if ontology_files else default_extractor()
    sides = [extractor.extract(text) for text in (a, b)]
    notes = [
        f"no finding recognised in text {name}" for name, side in zip("AB", sides, strict=True) if not side
    ]
    return score(sides[0], sides[1], load_policy(ontology)), notes
