"""One request of one row, until it is answered: places, the circuit, and tenacity, the one retry layer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from radgen.errors import RadgenError
from radgen.extract.endpoint import answer
from radgen.extract.endpoint.answer import Kind, Outcome
from radgen.extract.endpoint.flow import Budget, CircuitBreaker, GivenUp, Limiter
from radgen.extract.endpoint.judge import read_outcome
from radgen.extract.endpoint.request import Abilities, Requests
from radgen.extract.endpoint.settings import Settings
from radgen.extract.endpoint.steps import Answered, Send, Verdict, decide
from radgen.extract.endpoint.store import DEAD, GOOD, OPEN, Attempt, Store
from radgen.extract.endpoint.transport import NoReply, Transport

CHAT = "/chat/completions"
MODELS = "/models"


class StoppedError(RadgenError):
    """The endpoint will answer no request (401, 403, 404, no credit): the run ends with the cause."""


class Halted(Exception):  # noqa: N818  (no error: a signal that the run ends; the row stays as it is)
    """No new request may be sent."""


class _Again(Exception):  # noqa: N818  (no error: tenacity takes it as the sign to try again)
    """An attempt that got no answer of the model."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


@dataclass(slots=True)
class Row:
    """A report under way.

    Attributes:
        charged: attempts of the present request that count against ``retry.attempts``.
        silent: those of them after which the endpoint has shown no life: forgiven if the circuit opens.
        forgiven: how often they were.
        seen: openings of the circuit that the row knows of.
        failed_at: monotonic time of the last silent failure.
    """

    key: bytes
    user: str
    report: Mapping[str, Any]
    history: list[Answered] = field(default_factory=list)
    charged: int = 0
    silent: int = 0
    forgiven: int = 0
    seen: int = 0
    failed_at: float = 0.0


@dataclass(slots=True)
class Tally:
    """What a run has done so far; the progress bar and the summary read it."""

    rows: int = 0
    failed: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Client:
    """Sends the requests of a row and stores every attempt."""

    def __init__(
        self,
        transport: Transport,
        requests: Requests,
        abilities: Abilities,
        settings: Settings,
        store: Store,
        budget: Budget | None = None,
    ) -> None:
        self.transport, self.requests, self.abilities = transport, requests, abilities
        self.settings, self.store = settings, store
        self.limiter = Limiter(settings.concurrency, settings.adapt)
        self.circuit = CircuitBreaker(settings.circuit, self._probe)
        self.budget = budget or Budget(None, None)
        self.tally = Tally()
        self.halted = False
        self._last_answer = time.monotonic()

    async def finish(self, row: Row) -> None:
        """Send requests for a row until it has a result or a dead letter; both are in the store then.

        Raises:
            StoppedError, GivenUp, BudgetSpent, StoreError, Halted: the run has to end; the row goes on later.
        """
        step = decide(row.history)
        while isinstance(step, Send):
            row.charged = row.silent = 0
            while self.store.behind:  # what is answered has to be held in memory until it is stored
                await asyncio.sleep(0.01)
            try:
                await self._attempt(row, step)
            except _Again as failure:
                if not await self._retry(row, step, failure):
                    break
            step = decide(row.history)
        self.tally.rows += 1

    async def _retry(self, row: Row, step: Send, failure: _Again | None) -> bool:
        """Try again as tenacity says; it is handed the first failure, so that success never pays for it.

        Returns whether an answer came; if not, the last attempt was stored as the row's dead letter.
        """

        async def attempt() -> None:
            nonlocal failure
            if failure is not None:
                first, failure = failure, None
                raise first
            await self._attempt(row, step)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_Again),
            wait=self._wait,
            stop=lambda state: row.charged >= self.settings.retry.attempts,
            reraise=True,
        )
        try:
            await retrying(attempt)
        except _Again:
            return False
        return True

    async def _attempt(self, row: Row, step: Send) -> None:
        """Send one request and store what came of it; ``_Again`` if it was no answer."""
        body = self.requests.encode_step(row.user, step, self.abilities)
        # More than a tokenizer makes of the bytes, so that --max-cost holds.
        most_in = 2 * len(body) / self.settings.estimate.characters_per_token
        while True:
            await self.circuit.ready()
            self._forgive(row)
            await self.limiter.acquire()
            if self.halted:
                self.limiter.release()
                raise Halted
            if not self.circuit.is_open:
                break
            self.limiter.release()
        try:
            reserved = await self.budget.reserve(most_in, self.requests.tokens(step))
        except BaseException:
            self.limiter.release()
            raise
        sent = time.monotonic()
        reply = None
        try:
            reply = await self.transport.request("POST", CHAT, body, self.settings.timeout_s)
        except NoReply as failure:
            outcome = answer.from_failure(failure)
        except BaseException:  # cancelled, or the run ends: what was sent may have been paid
            self.budget.settle(reserved, None, None, free=False)
            raise
        else:
            outcome = answer.from_reply(reply, self.settings.statuses, self.settings.runaway_white_space)
            read_outcome(outcome, self.requests.task.check)
        finally:
            self.limiter.release()
        free = outcome.kind is Kind.connect or (outcome.status is not None and outcome.status != 200)
        self.budget.settle(reserved, outcome.input_tokens, outcome.output_tokens, free)
        self._signal(outcome, sent)
        await self._record(row, step, outcome, reply.body if reply else None, time.monotonic() - sent)

    def _forgive(self, row: Row) -> None:
        """Take back what was charged while the endpoint was dead."""
        if self.circuit.openings == row.seen:
            return
        row.seen = self.circuit.openings
        if row.silent and row.forgiven < self.settings.retry.free_attempts:
            row.charged -= row.silent
            row.forgiven += 1
        row.silent = 0

    def _signal(self, outcome: Outcome, sent: float) -> None:
        if outcome.no_answer:
            self.circuit.failed()
        else:
            self.circuit.alive()
        if outcome.overload:
            self.limiter.overloaded(sent)
        if outcome.kind in answer.ANSWERED:
            self._last_answer = time.monotonic()
            self.limiter.answered()

    async def _record(
        self, row: Row, step: Send, outcome: Outcome, raw: bytes | None, seconds: float
    ) -> None:
        tally = self.tally
        tally.requests += 1
        tally.input_tokens += outcome.input_tokens or 0
        tally.output_tokens += outcome.output_tokens or 0
        final = OPEN
        if outcome.kind in answer.ANSWERED:
            row.history.append(Answered(step.step, outcome.kind, outcome.text, outcome.detail))
            after = decide(row.history)
            if isinstance(after, Verdict):
                final = GOOD if after.good else DEAD
        elif outcome.kind in answer.TRANSIENT:
            await self._charge(row, outcome)
            if row.charged >= self.settings.retry.attempts:
                final = DEAD
        if raw is not None and outcome.status != 200:
            raw = raw[: self.settings.store.raw_error_bytes]
        tally.failed += final == DEAD
        self.store.add(
            Attempt(
                row.key, step.step, outcome.kind, final, outcome.status, outcome.detail, raw,
                outcome.input_tokens, outcome.output_tokens, seconds,
            )
        )  # fmt: skip
        if outcome.kind is Kind.stop:
            raise StoppedError(f"the endpoint answers {outcome.detail}{_HINTS.get(outcome.status or 0, '')}")
        if outcome.kind in answer.TRANSIENT:
            raise _Again(outcome)

    async def _charge(self, row: Row, outcome: Outcome) -> None:
        """Count a failure against the row, unless it is the endpoint's: a rate limit, or a dead endpoint.

        A row may only die of silence if the endpoint has shown life since: a last failure therefore
        waits for a sign of life, and is forgiven if the circuit opens instead.
        """
        if outcome.kind is Kind.rate_limited:
            if time.monotonic() - self._last_answer > self.settings.circuit.give_up_s:
                raise GivenUp(f"nothing but rate limits for {self.settings.circuit.give_up_s:g} s")
            return
        row.charged += 1
        if not outcome.no_answer:
            return
        row.silent = 1 if self.circuit.last_life > row.failed_at else row.silent + 1
        row.failed_at = time.monotonic()
        while (
            row.charged >= self.settings.retry.attempts
            and self.circuit.last_life < row.failed_at
            and self.circuit.openings == row.seen
        ):
            if not await self.circuit.ask():
                self.circuit.failed()
                await asyncio.sleep(0.05)
        self._forgive(row)

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds to wait: what the server asked for up to the user's bound, or full jitter."""
        numbers = self.settings.retry
        error = state.outcome.exception() if state.outcome else None
        told = error.outcome.retry_after if isinstance(error, _Again) else None
        if told:
            # A little more than told, so that a crowd does not come back in one moment.
            return min(told, numbers.longest_told_wait_s) + random.uniform(0, min(1.0, 0.1 * told))
        longest = min(numbers.longest_wait_s, numbers.first_wait_s * 2.0 ** (state.attempt_number - 1))
        return random.uniform(0.1 * longest, longest)

    async def _probe(self) -> bool:
        try:
            reply = await self.transport.request("GET", MODELS, None, self.settings.circuit.probe_timeout_s)
        except (NoReply, RadgenError):
            return False
        return reply.status not in self.settings.statuses.no_answer

    async def close(self) -> None:
        """Stop looking for the endpoint and close every connection."""
        await self.circuit.close()
        await self.transport.close()


_HINTS = {
    401: "; give a key with --api-key-file or in the environment (--api-key-env)",
    403: "; the key may not use this model or address",
    404: "; is --base-url right (does it end in /v1?), and is --model one that it serves?",
}
