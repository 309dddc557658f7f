"""What a run would ask for and cost, from the reports and the store alone: nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from radgen.extract.endpoint.reading import chunks
from radgen.extract.endpoint.request import Abilities, Requests
from radgen.extract.endpoint.store import DEAD, GOOD, OPEN, Store


@dataclass(slots=True)
class Survey:
    """Counts over the whole input.

    Attributes:
        rows: reports in the file (up to the limit).
        empty: reports without text, which need no request.
        finished: reports with a result; ``dead``: with a dead letter.
        missing: reports that need a request; ``requests``: those requests, each text once at least nearly.
        input_tokens, output_tokens: what the missing requests are expected to take.
        cost: in the unit of the prices, or ``None`` without prices; ``spent``: what the store says was paid.
    """

    rows: int = 0
    empty: int = 0
    finished: int = 0
    dead: int = 0
    missing: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    spent: float | None = None


def survey(
    path: Path,
    requests: Requests,
    store: Store | None,
    limit: int | None,
    abilities: Abilities | None = None,
    tick: Callable[[int], None] = lambda rows: None,
) -> Survey:
    """Read the whole input once: every line is checked before anything is paid.

    Repeated texts are counted once within ``read_rows`` neighbours and once over all for what is stored, so
    that memory stays flat; the run itself pays for each text once.

    Raises:
        RadgenError: a line cannot be used.
    """
    settings = requests.settings
    result = Survey()
    numbers = settings.estimate
    fixed = len(requests.encode("", abilities or Abilities(), requests.max_tokens))
    characters = 0
    for group in chunks(path, requests, settings.read_rows, limit):
        keys = [item.key for item in group if item.key is not None]
        states = store.states(keys) if store else {}
        seen: set[bytes] = set()
        for item in group:
            result.rows += 1
            if item.key is None or item.user is None:
                result.empty += 1
                continue
            state = states.get(item.key, OPEN)
            result.finished += state == GOOD
            result.dead += state == DEAD
            if state == OPEN:
                result.missing += 1
                if item.key not in seen:
                    seen.add(item.key)
                    result.requests += 1
                    characters += fixed + len(item.user)
        tick(result.rows)
    overhead = result.requests * numbers.overhead_tokens
    result.input_tokens = int(characters / numbers.characters_per_token) + overhead
    expected: float = numbers.output_tokens[requests.style]
    paid_in, paid_out, counted = store.usage() if store else (0, 0, 0)
    if counted:
        expected = paid_out / counted
    result.output_tokens = int(expected * result.requests)
    price = settings.price(requests.model)
    if price:
        result.cost = price.cost(result.input_tokens, result.output_tokens)
        result.spent = price.cost(paid_in, paid_out)
    return result
