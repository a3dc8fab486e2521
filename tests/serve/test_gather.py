"""Requests that are served together."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from labelrace.serve.gather import Gatherer
from labelrace.serve.problems import Problem


def gatherer(serve, *, seconds=0.002, rows=64, capacity=1000):
    return Gatherer(serve, seconds=seconds, rows=rows, capacity=capacity, name="test")


def run(main):
    async def ended():
        gather, result = await main()
        gather.close()
        return result

    return asyncio.run(ended())


def test_concurrent_requests_are_one_call():
    calls = []

    async def main():
        gather = gatherer(lambda requests: calls.append(list(requests)) or requests)
        await gather(-1, 1)
        return gather, [await asyncio.gather(*(gather(number, 1) for number in range(16))) for _ in range(3)]

    for answers in run(main):
        assert answers == list(range(16))
    # The first round has to find out how many there are; the others are one call each.
    assert list(range(16)) in calls[-2:]
    assert len(calls) <= 6


def test_one_client_does_not_wait_for_others():
    async def main():
        gather = gatherer(list, seconds=1.0)
        start = time.perf_counter()
        for number in range(20):
            await gather(number, 1)
        return gather, time.perf_counter() - start

    assert run(main) < 0.5


def test_a_call_has_no_more_rows_than_it_may():
    sizes = []

    async def main():
        gather = gatherer(lambda requests: sizes.append(len(requests)) or list(requests), rows=64)
        await asyncio.gather(*(gather(number, 30) for number in range(10)))
        # A request that has more rows than a call may have goes alone.
        await asyncio.gather(gather(0, 1), gather(1, 500), gather(2, 1))
        return gather, gather.waiting_rows

    assert run(main) == 0
    assert sum(sizes) == 13
    assert max(sizes) <= 2


def test_what_does_not_fit_the_queue_is_refused_with_429():
    go = threading.Event()

    async def main():
        gather = gatherer(lambda requests: go.wait(5) and list(requests), capacity=10)
        first = asyncio.ensure_future(gather("first", 1))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(gather(number, 2)) for number in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await gather("more", 1)
        go.set()
        answers = await asyncio.gather(first, *others)
        return gather, (refused.value, answers)

    problem, answers = run(main)
    assert problem.status == 429
    assert problem.retry_after
    assert answers == ["first", *range(5)]


def test_problems_are_those_of_their_requests():
    def serve(requests):
        return [Problem(422, "Odd", "Odd.") if number % 2 else number for number in requests]

    async def main():
        gather = gatherer(serve)
        return gather, await asyncio.gather(*(gather(number, 1) for number in range(8)), return_exceptions=True)

    answers = run(main)
    assert answers[::2] == [0, 2, 4, 6]
    assert all(isinstance(answer, Problem) for answer in answers[1::2])


def test_an_error_is_that_of_all_who_asked_and_of_none_who_asks_later():
    errors = [RuntimeError("broken")]

    def serve(requests):
        if errors:
            raise errors.pop()
        return list(requests)

    async def main():
        gather = gatherer(serve)
        with pytest.raises(RuntimeError, match="broken"):
            await gather(1, 1)
        return gather, await gather(2, 1)

    assert run(main) == 2


def test_a_request_that_is_given_up_does_not_disturb_others():
    async def main():
        gather = gatherer(lambda requests: time.sleep(0.05) or list(requests))
        gone, stays = asyncio.ensure_future(gather(1, 1)), asyncio.ensure_future(gather(2, 1))
        await asyncio.sleep(0.01)
        gone.cancel()
        return gather, await stays

    assert run(main) == 2
