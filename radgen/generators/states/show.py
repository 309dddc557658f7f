"""What a person sees of sentences by finding and state: how many there are, rows, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from radgen.generators.similarity.folder import MadeFromReports
from radgen.generators.states.corpus import KEPT_APART, STATES


def print_states(made: Sequence[MadeFromReports], console: Console) -> None:
    """Print a table of findings and states, the rows of each folder, and what was left out, once."""
    counts = made[0].counts
    columns = (*STATES, KEPT_APART)
    table = Table(title=f"Distinct sentences ({counts['texts']:,} of {counts['reports']:,} reports)")
    table.add_column("finding")
    for column in columns:
        table.add_column(column, justify="right")
    findings = [name.removesuffix(f" {STATES[0]}") for name in counts if name.endswith(f" {STATES[0]}")]
    for tag in findings:
        table.add_row(tag, *(f"{counts[f'{tag} {column}']:,}" for column in columns))
    console.print(table)
    for folder in made:
        rows = ", ".join(f"{split} {count:,}" for split, count in folder.rows.items())
        state = "" if folder.fresh else " (stood there already)"
        console.print(Text(f"{folder.folder}: {rows}{state}"), soft_wrap=True)
        for note in folder.notes:
            console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    rejected = {reason: count for folder in reversed(made) for reason, count in folder.rejected.items()}
    for reason, count in sorted(rejected.items(), key=lambda item: -item[1]):
        if count:
            console.print(Text(f"  left out {count:,}: {reason}", style="dim"), soft_wrap=True)
