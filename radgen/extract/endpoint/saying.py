"""What the user is told, on stderr; no word of any report, and never a key."""

from __future__ import annotations

from pathlib import Path

from radgen.console import messages
from radgen.extract.endpoint.batch import Imported
from radgen.extract.endpoint.client import Client
from radgen.extract.endpoint.export import Exported
from radgen.extract.endpoint.request import Requests
from radgen.extract.endpoint.survey import Survey


def say(text: str) -> None:
    """Print a line for the user on stderr."""
    messages().print(text, markup=False)


def say_estimate(counts: Survey, requests: Requests) -> None:
    """Say what a run would ask for and cost."""
    say(
        f"{counts.rows:,} reports: {counts.finished:,} finished, {counts.dead:,} dead letters, "
        f"{counts.empty:,} without text, {counts.missing:,} to ask for"
    )
    say(
        f"{counts.requests:,} requests, about {counts.input_tokens:,} tokens in and "
        f"{counts.output_tokens:,} out (model {requests.model})"
    )
    if counts.cost is None:
        say("cost: no price of this model in the config (prices: {MODEL: {input: …, output: …}})")
    else:
        say(f"cost: about {counts.cost:,.2f}; paid so far: {counts.spent or 0.0:,.2f}")
    say("nothing was sent")


def say_import(found: Imported) -> None:
    """Say what an import of batch results found."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.stored.items())) or "none"
    say(f"batch results: {sum(found.stored.values()):,} new ({kinds}), {found.known:,} known already")
    if found.foreign:
        say(f"{found.foreign:,} lines are answers to no request of radgen's")
    if found.broken:
        shown = ", ".join(found.broken[:5]) + (", …" if len(found.broken) > 5 else "")
        say(f"{len(found.broken):,} lines are no JSON: {shown}")
    for name in found.cut_off:
        say(f"{name}: the last line is cut off; its request is asked again")


def say_spent(client: Client) -> None:
    """Say what a run has sent and paid."""
    tally = client.tally
    text = f"{tally.requests:,} requests, {tally.input_tokens:,} tokens in, {tally.output_tokens:,} out"
    if client.budget.price is not None:
        text += f", {client.budget.spent:,.2f} paid so far"
    say(text)


def say_written(out: Path, result: Exported, dead_path: Path) -> None:
    """Say what was written, what failed and why."""
    failed = sum(result.failed.values())
    salvaged = f" ({result.salvaged:,} salvaged from the reasoning field)" if result.salvaged else ""
    say(f"{result.rows:,} reports in {out}: {result.rows - failed:,} extracted{salvaged}, {failed:,} failed")
    for kind, count in result.failed.most_common():
        say(f"  {count:,} {kind}")
    if result.dropped:
        parts = ", ".join(
            f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(result.dropped.items())
        )
        say(f"dropped: {parts}")
    if failed:
        say(f"dead letters with the raw answers: {dead_path} (--retry-failed asks again)")
