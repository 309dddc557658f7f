"""``radgen train --dry-run``: the mixture, its steps, and how long it will take here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from radgen.errors import RadgenError
from radgen.train.mixture import Mixture
from radgen.train.progress import duration
from radgen.train.run import Order, Say, stages_of, start_of
from radgen.train.session import load_model, mixture_rows, read_parts, tokens_a_second, tokens_a_step

_CHARACTERS_A_TOKEN = 4.0  # English, where the tokeniser cannot be had


def print_plan(order: Order, console: Console, say: Say) -> None:
    """Print what ``radgen train`` would do, and do nothing.

    Raises:
        RadgenError: as ``run.train``.
    """
    for number, stage in enumerate(stages_of(order, say)):
        mixture = Mixture(read_parts(stage, order.data), stage.settings)
        console.print(_table(stage.name, mixture))
        settings = stage.settings
        lengths = ", ".join(f"{part.tokens:,} tokens for {part.share:.0%}" for part in settings.lengths)
        console.print(
            f"{stage.name}, preset {stage.preset}: {len(mixture):,} steps of {settings.batch} rows; "
            f"cut after {lengths}; lr {settings.lr:g}, cosine, warm-up {settings.warmup:.0%}, "
            f"weight decay {settings.weight_decay:g}, seed {settings.seed}"
        )
        try:
            start = start_of(stage, order, first=number == 0)
            model = load_model(stage, start if number == 0 else settings.model)
        except RadgenError as error:
            console.print(f"model: {error}")
            tokens = _tokens_by_characters(mixture)
            console.print(f"about {tokens:,.0f} tokens a step, by characters; expected time: unknown")
            continue
        tokens = tokens_a_step(mixture, model)
        speed = tokens_a_second(mixture, model)
        total = tokens * len(mixture)
        console.print(
            f"model: {start}; {tokens:,.0f} tokens a step, {total:,.0f} in all; {speed:,.0f} tokens/s "
            f"measured here on one process; expected time: {duration(total / speed)} and the evaluations"
        )


def _tokens_by_characters(mixture: Mixture) -> float:
    steps = [len(mixture) * at // 24 for at in range(24)]
    texts = [mixture.batch(step).texts for step in dict.fromkeys(steps)]
    return sum(len(text) for part in texts for text in part) / len(texts) / _CHARACTERS_A_TOKEN


def _table(title: str, mixture: Mixture) -> Table:
    table = Table(
        title=title,
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        caption="p: how often it is drawn; w: weight of its loss; *: more rows are formed in its contexts",
    )
    table.add_column("dataset", no_wrap=True)
    table.add_column("loss", no_wrap=True)
    for name in ("rows", "used", "p", "w", "margin", "steps"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in mixture_rows(mixture):
        table.add_row(
            row["dataset"],
            row["loss"] + ("*" if row["formed"] else ""),
            f"{row['rows']:,}",
            f"{row['used']:,}",
            f"{row['probability']:.1%}",
            f"{row['weight']:g}",
            "" if row["margin"] is None else f"{row['margin']:g}",
            f"{row['steps']:,}",
        )
    return table
