"""How much is under way at once, whether the endpoint is alive, and how much may still be spent."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

from radgen.extract.endpoint.settings import Adapt, Circuit, Price

Sleep = Callable[[float], Awaitable[None]]


class Limiter:
    """Lets at most ``limit`` requests through; the limit falls at once and rises slowly.

    One overload multiplies it by ``adapt.fewer``; requests sent before that count no second time. A round
    of answers without overload (as many as the limit) adds ``adapt.more``.
    """

    def __init__(self, most: int, adapt: Adapt) -> None:
        self.most, self._adapt = most, adapt
        self.limit = float(most)
        self.in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lowered = 0.0

    async def acquire(self) -> None:
        """Wait for a place."""
        if self.in_use < int(self.limit) and not self._waiting:
            self.in_use += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # the place was given in the same moment
                self.release()
            else:
                self._waiting.remove(place)
            raise

    def release(self) -> None:
        """Give a place back."""
        self.in_use -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.in_use < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_use += 1
                place.set_result(None)

    def overloaded(self, sent: float) -> None:
        """Lower the limit for a request sent at ``sent`` (monotonic seconds) that met an overload."""
        if sent >= self._lowered:
            self.limit = max(1.0, int(self.limit) * self._adapt.fewer)
            self._lowered = time.monotonic()

    def answered(self) -> None:
        """Raise the limit a little for an answer."""
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + self._adapt.more / self.limit)
            self._wake()


class GivenUp(Exception):  # noqa: N818  (it ends the run, but nothing went wrong in it)
    """The endpoint stayed dead for longer than the user wants to wait."""


class CircuitBreaker:
    """Notices that the endpoint is dead, holds every request back, and looks for signs of life.

    It opens after ``failures`` failures with no answer between them. A probe (a cheap request that shows
    no report) then decides, with growing waits, when it closes.

    Attributes:
        openings: how often it has opened: what failed before the next opening may be the endpoint's doing.
        last_life: monotonic time of the last sign of life.
    """

    def __init__(
        self, numbers: Circuit, probe: Callable[[], Awaitable[bool]], sleep: Sleep = asyncio.sleep
    ) -> None:
        self._numbers, self._probe, self._sleep = numbers, probe, sleep
        self.openings = 0
        self.last_life = 0.0
        self.on_change: Callable[[bool], None] = lambda is_open: None
        self._failures = 0
        self._closed = asyncio.Event()
        self._closed.set()
        self._watch: asyncio.Task[None] | None = None
        self._given_up: GivenUp | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are held back."""
        return not self._closed.is_set()

    def alive(self) -> None:
        """Note an answer of any kind."""
        self._failures = 0
        self.last_life = time.monotonic()

    def failed(self) -> None:
        """Note a failure that looks like a dead endpoint."""
        self._failures += 1
        if self._failures >= self._numbers.failures and not self.is_open:
            self.openings += 1
            self._closed.clear()
            self.on_change(True)
            self._watch = asyncio.create_task(self._wait_for_life())

    async def ready(self) -> None:
        """Wait while the circuit is open.

        Raises:
            GivenUp: it stayed open for too long.
        """
        if self.is_open:
            await self._closed.wait()
        if self._given_up:
            raise self._given_up

    async def ask(self) -> bool:
        """Ask for a sign of life now."""
        if await self._probe():
            self.alive()
            return True
        return False

    async def _wait_for_life(self) -> None:
        began, wait = time.monotonic(), self._numbers.first_wait_s
        while True:
            left = self._numbers.give_up_s - (time.monotonic() - began)
            if left <= 0:
                self._given_up = GivenUp(f"no sign of life for {self._numbers.give_up_s:g} s")
                break
            await self._sleep(min(left, wait * random.uniform(0.5, 1.0)))
            if await self.ask():
                break
            wait = min(2 * wait, self._numbers.longest_wait_s)
        self._closed.set()
        self.on_change(False)

    async def close(self) -> None:
        """Stop looking."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)


class BudgetSpent(Exception):  # noqa: N818  (a limit the user set, reached)
    """The next request might cost more than is left of ``--max-cost``."""


class Budget:
    """Keeps the cost below a maximum: each request reserves the most it can cost before it is sent.

    A request without a count of its tokens (a timeout, a broken connection) is taken at what it reserved.
    """

    def __init__(self, price: Price | None, most: float | None, spent: float = 0.0) -> None:
        self.price, self.most, self.spent = price, most, spent
        self._reserved = 0.0
        self._changed = asyncio.Event()

    async def reserve(self, input_tokens: float, output_tokens: float) -> float:
        """Set the most that a request can cost aside and return it.

        Raises:
            BudgetSpent: there is not so much left, and nothing is under way that could free some.
        """
        if self.most is None or self.price is None:
            return 0.0
        cost = self.price.cost(input_tokens, output_tokens)
        while self.spent + self._reserved + cost > self.most:
            if self._reserved <= 0:
                raise BudgetSpent
            self._changed.clear()
            await self._changed.wait()
        self._reserved += cost
        return cost

    def settle(
        self, reserved: float, input_tokens: int | None, output_tokens: int | None, free: bool
    ) -> None:
        """Replace a reservation by what the request did cost; ``free``: it never reached the model."""
        if self.price is None:
            return
        self._reserved = max(0.0, self._reserved - reserved) if self._reserved - reserved > 1e-12 else 0.0
        if input_tokens is not None or output_tokens is not None:
            self.spent += self.price.cost(input_tokens or 0, output_tokens or 0)
        elif not free:
            self.spent += reserved
        self._changed.set()
