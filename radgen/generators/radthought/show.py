"""``radgen radthought --show``: the hierarchy of a report as a tree, each conclusion with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from radgen.generators.radthought.record import ATTRIBUTES, Conclusion, Level, Record

_TITLES: dict[Level, str] = {"second": "second order", "third": "third order", "synthesis": "synthesis"}


def tree(record: Record) -> Tree:
    """Return findings with their predicates, then the sentences of each level with what they conclude."""
    root = Tree(Text("report", style="bold"), guide_style="dim")
    first = root.add(Text("first order", style="bold"))
    for number, sentence in enumerate(record.first_order, 1):
        node = first.add(Text.assemble((f"f{number} ", "cyan"), sentence))
        own = [str(item) for item in record.predicates if item.about == number]
        node.add(Text(" ".join(own), style="dim"))
    for level, title in _TITLES.items():
        branch = root.add(Text(title, style="bold"))
        conclusions = record.of(level)
        for text in dict.fromkeys(conclusion.text for conclusion in conclusions):
            node = branch.add(Text(text))
            for conclusion in conclusions:
                if conclusion.text == text:
                    node.add(_conclusion(conclusion))
    return root


def _conclusion(conclusion: Conclusion) -> Text:
    stated = [f"{name} {value}" for name in ATTRIBUTES if (value := getattr(conclusion, name)) is not None]
    return Text.assemble(
        (conclusion.about, "green"),
        " from ",
        (", ".join(conclusion.derived), "cyan"),
        (f"  {', '.join(stated)}", "dim"),
    )


def show_record(record: Record, console: Console, notes: Sequence[str] = ()) -> None:
    """Print the tree."""
    console.print(tree(record))
    for note in notes:
        console.print(note, style="dim", markup=False)
