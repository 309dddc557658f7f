"""What a person sees: progress and summaries on stderr, so that stdout is for results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def messages() -> Console:
    """Return the console for messages (stderr); paths and numbers are not coloured."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int], None]]:
    """Show a running count on a terminal, nothing elsewhere; yields the function that sets it.

    >>> with counter("reports read") as show:
    ...     show(500)
    """
    console = messages()
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done: bar.update(task, completed=done)
