"""What the generator commands print: previews, summaries, verdicts, explanations (rich tables)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from radgen.generators.make import Made
from radgen.generators.verify import SHOWN, Verdict
from radgen.ontology.load import Ontology

_STYLE = {"anchor": "bold", "positive": "green", "negative": "red", "sentence1": "bold", "sentence2": "cyan"}


def preview_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Return rows as a coloured table: texts, targets, and the fields that vary."""
    table = Table(title=title, show_lines=True)
    pair = bool(rows) and "sentence1" in rows[0]
    texts = ("sentence1", "sentence2") if pair else ("anchor", "positive", "negative")
    states = ("state1", "state2") if pair else ("anchor_state", "positive_state", "negative_state")
    for name in texts:
        table.add_column(name, style=_STYLE[name], overflow="fold")
    table.add_column("score" if pair else "targets", justify="right")
    table.add_column("differs in", overflow="fold")
    for row in rows:
        target = (
            f"{row['score']:.3f}" if pair else f"{row['positive_target']:.3f}\n{row['negative_target']:.3f}"
        )
        differing = differences([row[name] for name in states])
        shown = "\n".join(f"{name}: {' | '.join(values)}" for name, values in differing.items())
        table.add_row(*(escape(row[name]) for name in texts), target, escape(shown) or "nothing")
    return table


def differences(states: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the fields in which states differ, with each state's value ("-" where unstated)."""
    names = dict.fromkeys(name for state in states for name in state)
    out = {}
    for name in names:
        values = [_plain(state.get(name)) for state in states]
        if len(set(values)) > 1:
            out[name] = values
    return out


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return " x ".join(_plain(part) for part in value)
    return str(value)


def made_table(made: Sequence[Made]) -> Table:
    """Return one line a dataset: rows a split, targets, what each filter took."""
    table = Table(title="Datasets")
    for name in ("dataset", "train", "validation", "test", "distinct texts", "targets", "filters took"):
        table.add_column(
            name, justify="right" if name in ("train", "validation", "test") else "left", overflow="fold"
        )
    for one in made:
        targets = sorted(one.targets.items(), key=lambda item: -item[1])
        spread = sorted(float(value) for value in one.targets)
        common = ", ".join(f"{value}: {count:,}" for value, count in targets[:4])
        shown = f"{spread[0]:.2f} to {spread[-1]:.2f}; {common}" if spread else "none"
        took = ", ".join(f"{name}: {count:,}" for name, count in sorted(one.rejected.items())) or "nothing"
        place = "/".join(one.folder.parts[-2:])
        state = "" if one.fresh else " (stood already)"
        counts = [f"{one.rows.get(split, 0):,}" for split in ("train", "validation", "test")]
        table.add_row(place + state, *counts, f"{one.distinct:.1%}", shown, took)
    return table


def print_made(made: Sequence[Made], console: Console) -> None:
    """Print what was made: the table, three rows of each dataset, and where it stands."""
    console.print(made_table(made))
    for one in made:
        if one.examples:
            console.print(preview_table(one.examples, f"{'/'.join(one.folder.parts[-2:])}: three rows"))
    for one in made:
        word = "written to" if one.fresh else "stands already, unchanged, in"
        console.print(f"{one.name}: {word} {one.folder}", soft_wrap=True, highlight=False)
    if len(made) == 1 and made[0].fresh:
        folder = made[0].folder
        console.print(
            f"next: radgen explain {folder}/train.jsonl 1 works a row out; "
            f"radgen verify {folder} checks them all",
            soft_wrap=True,
            highlight=False,
        )


def print_verdict(verdict: Verdict, console: Console) -> None:
    """Print one dataset's verdict: a line, and its first problems."""
    rows = ", ".join(f"{split} {count:,}" for split, count in verdict.rows.items())
    word = "[green]passes[/green]" if not verdict.count else f"[red]{verdict.count:,} problems[/red]"
    console.print(f"{escape(verdict.folder)}: {word} ({rows})", soft_wrap=True, highlight=False)
    for note in verdict.notes:
        console.print(f"  note: {escape(note)}", soft_wrap=True, highlight=False)
    for problem in verdict.problems:
        console.print(f"  {escape(problem.line())}", soft_wrap=True, highlight=False)
    if verdict.count > len(verdict.problems):
        console.print(f"  … and {verdict.count - len(verdict.problems):,} more", highlight=False)


def print_deep(folder: Path, ontology: Ontology, workers: int, console: Console) -> int:
    """Print how far the texts of a dataset say their states; return how many say something else."""
    from radgen.generators.deep import (  # the extractor is loaded for this alone
        DeepTally,
        deep_problems,
        states_its_rows,
    )

    if not states_its_rows(folder):
        why = "not read: predicates or conclusions, beside the states of the whole report"
        console.print(f"{escape(str(folder))}: deep: {why}", soft_wrap=True, highlight=False)
        return 0
    tally = DeepTally()
    found = 0
    for found, problem in enumerate(deep_problems(folder, ontology, workers=workers, tally=tally), 1):
        if found <= SHOWN:
            console.print(f"  {escape(problem.line())}", soft_wrap=True, highlight=False)
    share = f"{tally.agreeing:,} of {tally.fields:,} fields in {tally.texts:,} texts"
    console.print(f"{escape(str(folder))}: deep: {share} say their state", soft_wrap=True, highlight=False)
    return found
