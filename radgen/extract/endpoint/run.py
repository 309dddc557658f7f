"""The run: a bounded pool of workers takes what the store lacks, until there is no more or it has to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

from radgen.errors import RadgenError
from radgen.extract.endpoint.client import Client, Halted, Row
from radgen.extract.endpoint.flow import BudgetSpent, GivenUp
from radgen.extract.endpoint.judge import history
from radgen.extract.endpoint.reading import Item, chunks
from radgen.extract.endpoint.request import Requests
from radgen.extract.endpoint.steps import Send, decide
from radgen.extract.endpoint.store import OPEN, Store

_TURN_S = 0.02


class End(StrEnum):
    """Why a run ended."""

    complete = "complete"
    interrupted = "interrupted"
    budget = "max-cost reached"


def missing(requests: Requests, store: Store, path: Path, limit: int | None = None) -> Iterator[Row]:
    """Yield the reports that have no final attempt, each text once, with what was answered so far.

    Memory does not grow with the file: only the keys that are under way or not yet committed are held.
    """
    claimed: set[bytes] = set()
    for group in chunks(path, requests, requests.settings.read_rows, limit):
        claimed.difference_update(store.saved())
        yield from unfinished(group, requests, store, claimed)


def unfinished(group: Sequence[Item], requests: Requests, store: Store, claimed: set[bytes]) -> Iterator[Row]:
    """Yield what has no final attempt of a group; ``claimed`` are keys under way, and grows by these."""
    states = store.states([item.key for item in group if item.key is not None])
    begun = store.attempts([key for key, final in states.items() if final == OPEN])
    for item in group:
        if item.key is None or item.user is None or item.key in claimed or states.get(item.key, OPEN):
            continue
        claimed.add(item.key)
        row = Row(item.key, item.user, item.report)
        past = history(begun.get(item.key, []), requests.settings.runaway_white_space)
        # A history that ends without its final mark is another version's: the row starts anew.
        row.history = past if isinstance(decide(past), Send) else []
        yield row


class Run:
    """Finishes rows with as many workers as ``settings.concurrency``; call :meth:`run` once."""

    def __init__(self, client: Client, store: Store, rows: Iterator[Row]) -> None:
        self.client, self.store, self._rows = client, store, rows
        self._stopping = asyncio.Event()
        self._end = End.complete
        self._error: BaseException | None = None

    async def run(self, watch: Callable[[], None] | None = None, every: float = 0.5) -> End:
        """Work until every row is final or the run has to stop; what came back is in the store then.

        Args:
            watch: called every ``every`` seconds and at the end, for a progress bar.

        Raises:
            RadgenError: the cause that ended the run: no credit, a dead endpoint, a full disk.
        """
        loop = asyncio.get_running_loop()
        self.store.on_problem = partial(loop.call_soon_threadsafe, self._check_store)
        workers = [asyncio.create_task(self._work()) for _ in range(self.client.settings.concurrency)]
        aside = [asyncio.create_task(self._stop(workers))]
        if watch:
            aside.append(asyncio.create_task(_repeat(watch, every)))
        try:
            with _signals(loop, lambda: self.halt(End.interrupted)):
                await asyncio.gather(*workers, return_exceptions=True)
        finally:
            self.store.on_problem = lambda: None
            for task in aside:
                task.cancel()
            await self.client.close()
        if watch:
            watch()
        if self._error is not None:
            raise self._error
        return self._end

    async def _work(self) -> None:
        """Take rows until there are none; the shared iterator never waits, so no two are inside it."""
        try:
            for row in self._rows:
                await self.client.finish(row)
                if self._stopping.is_set():
                    return
        except Halted:
            return
        except BudgetSpent:
            self.halt(End.budget)
        except GivenUp as reason:
            self.halt(error=RadgenError(f"{reason}; what came back is stored, and the same command goes on"))
        except Exception as error:  # noqa: BLE001  (raised by run, once the others have stopped)
            self.halt(error=error)

    def halt(self, end: End = End.complete, error: BaseException | None = None) -> None:
        """Start no new request; what is under way gets ``grace_s`` to come back. The first reason counts."""
        if not self._stopping.is_set():
            self._end, self._error = end, error
            self.client.halted = True
            self._stopping.set()

    async def _stop(self, workers: list[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        loop = asyncio.get_running_loop()
        left, last = self.client.settings.grace_s, loop.time()
        while self.client.limiter.in_use and left > 0:
            await asyncio.sleep(_TURN_S)
            # A process that stood still (a busy machine, a laptop's lid) could read no answer in that time.
            left -= min(loop.time() - last, 5 * _TURN_S)
            last = loop.time()
        for worker in workers:
            worker.cancel()

    def _check_store(self) -> None:
        try:
            self.store.check()
        except RadgenError as error:
            self.halt(error=error)


async def _repeat(call: Callable[[], None], every: float) -> None:
    while True:
        call()
        await asyncio.sleep(every)


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, halt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C (or SIGTERM, which a cluster sends) stops the run; a second one ends the process at once."""
    count = 0

    def handle() -> None:
        nonlocal count
        count += 1
        if count > 1:  # safe at any moment: what came back is committed as it comes
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # the progress bar hides the cursor
            os._exit(130)
        halt()

    signals = (signal.SIGINT, signal.SIGTERM)
    done = []
    for number in signals:
        # Not in another thread than the main one, and not on Windows: there, Ctrl-C cancels the loop.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handle)
            done.append(number)
    try:
        yield
    finally:
        for number in done:
            loop.remove_signal_handler(number)
