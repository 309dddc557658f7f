"""What a person sees of a dataset that was made from reports: rows, spread of targets, what is left out."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from radgen.generators.similarity.folder import MadeFromReports

_WIDTH = 40


def print_made_from_reports(made: MadeFromReports, console: Console) -> None:
    """Print rows a split, the histogram of the targets, and what was left out."""
    rows = ", ".join(f"{split} {count:,}" for split, count in made.rows.items())
    state = "" if made.fresh else " (stood there already)"
    console.print(Text(f"{made.folder}: {rows}{state}"), soft_wrap=True)
    most = max(made.histogram.values(), default=1)
    for low, count in made.histogram.items():
        bar = "█" * max(1, round(count / most * _WIDTH))
        console.print(Text.assemble(f"{float(low):+.1f} ", (bar, "cyan"), f" {count:,}"))
    counts = ", ".join(f"{name} {count:,}" for name, count in made.counts.items())
    console.print(Text(counts), soft_wrap=True)
    for reason, count in sorted(made.rejected.items(), key=lambda item: -item[1]):
        if count:
            console.print(Text(f"  left out {count:,}: {reason}", style="dim"), soft_wrap=True)
    for note in made.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
