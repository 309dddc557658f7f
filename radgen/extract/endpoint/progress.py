"""How far a run is: a bar on a terminal, now and then a line in a log. No word of any report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from radgen.console import messages
from radgen.extract.endpoint.client import Client

#: Seconds between two lines where there is no terminal.
_LINES = 30.0


def state(client: Client, seconds: float) -> str:
    """Return rate, tokens, failures and what is under way, in words."""
    tally, limiter = client.tally, client.limiter
    rate = tally.rows / seconds if seconds > 0 else 0.0
    tokens = f"{tally.input_tokens:,} + {tally.output_tokens:,} tokens"
    text = f"{rate:,.1f} rows/s, {tokens}, {tally.failed:,} failed"
    if client.circuit.is_open:
        return text + ", endpoint silent: waiting"
    return text + f", {limiter.in_use} of {int(limiter.limit)} under way"


@contextlib.contextmanager
def progress(client: Client, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function that shows the state of a run of ``total`` requests."""
    console, began = messages(), time.monotonic()
    said = began

    def line() -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _LINES:
            said = now
            rate = client.tally.rows / (now - began)
            left = f", {(total - client.tally.rows) / rate / 60:,.0f} min left" if rate else ""
            console.print(
                f"{client.tally.rows:,} of {total:,}: {state(client, now - began)}{left}", markup=False
            )

    if not console.is_terminal:
        yield line
        return
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[state]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=total, state="")

        def show() -> None:
            now = time.monotonic() - began
            bar.update(task, completed=client.tally.rows, state=state(client, now), refresh=True)

        yield show
