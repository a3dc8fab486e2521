"""Concurrent requests that are served together: one call, in one thread, for all of a millisecond.

A call for sixteen rows costs little more than one for a single row, and one commit to disk serves all that wait for it.
While a call is under way, further requests wait; those that wait go together. When nothing is under way, they wait
until there are as many as there were at the same time lately, or until the time is over: so that neither a single
client waits for others that do not exist, nor sixteen are served in two calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from labelrace.serve.problems import Problem, busy

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Gatherer(Generic[Request, Answer]):
    """Gathers requests and serves them together.

    Parameters
    ----------
    serve : callable
        Takes requests and returns an answer or a problem for each. It runs in a thread, once at a time.
    seconds : float
        How long the first request waits for others.
    rows : int
        Rows that go at once at most; a request that has more goes alone.
    capacity : int
        The number of rows that may wait; further requests are refused with 429.
    name : str
        The name of the thread.
    """

    def __init__(
        self,
        serve: Callable[[Sequence[Request]], list[Answer | Problem]],
        *,
        seconds: float,
        rows: int,
        capacity: int,
        name: str,
    ) -> None:
        self._serve = serve
        self._seconds = seconds
        self._rows = rows
        self._capacity = capacity
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting = deque[tuple[Request, int, asyncio.Future[Answer]]]()
        # How many requests there are likely to be at the same time.
        self._expected = 1
        self._calling = False
        self._timer: asyncio.Handle | None = None
        self._is_due = False
        self.waiting_rows = 0

    async def __call__(self, request: Request, rows: int) -> Answer:
        """Return the answer to a request with its number of rows, or raise its problem."""
        if self.waiting_rows and self.waiting_rows + rows > self._capacity:
            detail = f"{self.waiting_rows} rows are waiting, at most {self._capacity} may: try again."
            raise Problem(429, "Too many requests", detail, retry_after=1.0)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((request, rows, future))
        self.waiting_rows += rows
        self._plan()
        return await future

    def _call(self) -> None:
        """Serve waiting requests, up to the number of rows; others wait for the next call."""
        self._timer, self._is_due = None, False
        called, rows = list[tuple[Request, asyncio.Future[Answer]]](), 0
        while self._waiting and (not called or rows + self._waiting[0][1] <= self._rows):
            request, more, future = self._waiting.popleft()
            called.append((request, future))
            rows += more
        self.waiting_rows -= rows
        self._calling = True
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, self._serve, [request for request, _ in called]
        )
        running.add_done_callback(lambda done: self._answer([future for _, future in called], done))

    def _answer(self, futures: list[asyncio.Future[Answer]], done: asyncio.Future[list[Answer | Problem]]) -> None:
        """Give each request its answer, and serve those that came meanwhile."""
        self._calling = False
        # As many as there were just now; fewer only by and by, as some may come a little later than others.
        self._expected = max(len(futures) + len(self._waiting), 3 * self._expected // 4)
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        answers = [error] * len(futures) if error is not None else done.result()
        for future, answer in zip(futures, answers, strict=True):
            # Nobody reads the answer to a request that was cancelled at the end of the service.
            if future.done():
                continue
            if isinstance(answer, asyncio.CancelledError):
                future.set_exception(busy("The service ends."))
            elif isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self._plan()

    def _plan(self) -> None:
        """Plan the next call: at once if enough requests wait, otherwise when the time is over."""
        if self._calling or self._is_due or not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if len(self._waiting) >= self._expected or self.waiting_rows >= self._rows:
            if self._timer is not None:
                self._timer.cancel()
            # After those that have arrived as well, and will be here in a moment.
            self._timer, self._is_due = loop.call_soon(self._call), True
        elif self._timer is None:
            self._timer = loop.call_later(self._seconds, self._call)

    def close(self) -> None:
        """End the thread when its last call is over."""
        self._threads.shutdown(wait=True)
