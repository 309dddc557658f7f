"""Concurrency, circuit and budget, without a server."""

from __future__ import annotations

import asyncio
import time

import pytest

from radgen.extract.endpoint.flow import Budget, BudgetSpent, CircuitBreaker, GivenUp, Limiter
from radgen.extract.endpoint.settings import Adapt, Circuit, Price

ADAPT = Adapt(fewer=0.5, more=1.0)


def test_the_limit_is_halved_once_a_round_and_raised_by_one_a_round() -> None:
    limiter = Limiter(64, ADAPT)
    sent = time.monotonic()
    limiter.overloaded(sent)
    assert limiter.limit == 32
    for _ in range(20):  # the others of the same round met the same overload
        limiter.overloaded(sent)
    assert limiter.limit == 32
    limiter.overloaded(time.monotonic())
    assert limiter.limit == 16
    for _ in range(17):
        limiter.answered()
    assert 16.9 < limiter.limit < 17.1
    for _ in range(10_000):
        limiter.answered()
    assert limiter.limit == 64
    for _ in range(20):
        limiter.overloaded(time.monotonic())
    assert limiter.limit == 1


def test_no_more_than_the_limit_are_let_through_and_nobody_is_forgotten() -> None:
    async def run() -> tuple[int, int]:
        limiter = Limiter(5, ADAPT)
        most = done = 0

        async def work() -> None:
            nonlocal most, done
            await limiter.acquire()
            most = max(most, limiter.in_use)
            await asyncio.sleep(0.001)
            limiter.release()
            done += 1

        await asyncio.gather(*(work() for _ in range(100)))
        assert limiter.in_use == 0
        return most, done

    assert asyncio.run(run()) == (5, 100)


def test_a_cancelled_wait_gives_its_place_back() -> None:
    async def run() -> None:
        limiter = Limiter(1, ADAPT)
        await limiter.acquire()
        first = asyncio.create_task(limiter.acquire())
        second = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        limiter.release()
        await asyncio.wait_for(second, 1)
        third = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.release()  # the place is given to the third, which is cancelled in the same moment
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)
        await asyncio.wait_for(limiter.acquire(), 1)
        assert limiter.in_use == 1

    asyncio.run(run())


def circuit(alive: list[bool], give_up: float = 100.0) -> CircuitBreaker:
    numbers = Circuit(
        failures=3, first_wait_s=0.01, longest_wait_s=0.02, probe_timeout_s=1, give_up_s=give_up
    )

    async def probe() -> bool:
        return alive.pop(0) if alive else False

    return CircuitBreaker(numbers, probe)


def test_the_circuit_opens_after_failures_in_a_row_and_closes_on_a_sign_of_life() -> None:
    async def run() -> None:
        breaker = circuit([False, False, True])
        breaker.failed()
        breaker.failed()
        breaker.alive()
        breaker.failed()
        breaker.failed()
        assert not breaker.is_open
        await breaker.ready()
        breaker.failed()
        assert (breaker.is_open, breaker.openings) == (True, 1)
        breaker.failed()
        assert breaker.openings == 1
        await asyncio.wait_for(breaker.ready(), 1)
        assert not breaker.is_open
        await breaker.close()

    asyncio.run(run())


def test_the_circuit_gives_up_when_the_user_does_not_want_to_wait_longer() -> None:
    async def run() -> None:
        breaker = circuit([], give_up=0.1)
        for _ in range(3):
            breaker.failed()
        began = time.monotonic()
        with pytest.raises(GivenUp, match=r"no sign of life for 0\.1 s"):
            await breaker.ready()
        assert 0.1 <= time.monotonic() - began < 1
        await breaker.close()

    asyncio.run(run())


def test_the_budget_counts_what_is_under_way_at_its_most() -> None:
    async def run() -> None:
        budget = Budget(Price(input=1e6, output=1e6), 100.0)
        first = await budget.reserve(20, 20)
        second = await budget.reserve(20, 20)
        waiting = asyncio.create_task(budget.reserve(20, 20))
        await asyncio.sleep(0.01)
        assert not waiting.done()  # 80 are reserved, 40 more would be 120
        budget.settle(first, 5, 5, free=False)
        third = await asyncio.wait_for(waiting, 1)
        assert budget.spent == 10
        budget.settle(second, None, None, free=False)  # a timeout: the most is taken
        budget.settle(third, None, None, free=True)  # never reached the model
        assert budget.spent == 50
        with pytest.raises(BudgetSpent):
            await budget.reserve(30, 30)
        assert await budget.reserve(25, 25) == 50

    asyncio.run(run())


def test_what_was_spent_before_counts() -> None:
    async def run() -> None:
        budget = Budget(Price(input=0, output=1e6), 10.0, spent=8.0)
        with pytest.raises(BudgetSpent):
            await budget.reserve(0, 3)
        await budget.reserve(0, 2)

    asyncio.run(run())
