"""Limits: requests a second of each client, and the size and time of their bodies."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping

from starlette.types import Message, Receive

from labelrace.serve.problems import Problem, busy

# Bytes that are read of a refused body, so that its sender sees the answer.
_DRAINED, _DRAIN_SECONDS = 1 << 20, 1.0


class Rates:
    """Requests of each token or address: `rate` a second in the long run, ten times as many at once.

    Parameters
    ----------
    rate : float
        Requests a second.
    """

    _MAX_KEYS = 10_000

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, 10 * rate)
        # The requests that each may still make at once, and the time of that count.
        self._left: OrderedDict[str | bytes, tuple[float, float]] = OrderedDict()

    def check(self, key: str | bytes) -> None:
        """Raise a problem if a key makes too many requests."""
        now = time.monotonic()
        left, before = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > self._MAX_KEYS:
            self._left.popitem(last=False)
        if left < 1:
            raise Problem(
                429,
                "Too many requests",
                f"{self._rate:g} requests a second are allowed.",
                retry_after=(1 - left) / self._rate,
            )


class Bodies:
    """Reads bodies of requests, within limits of size and time, and of the total size of those under way.

    Parameters
    ----------
    most : int
        Bytes of a body.
    seconds : float
        How long one may take to arrive.
    """

    # Bodies under way, each as large as may be: many large ones must not fill the memory.
    _MAX_HELD = 16

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._held = 0

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Return a whole body, which is held until it is released; raise the problem of one too large or too slow."""
        parts = list[bytes]()
        try:
            await self._read(headers, receive, parts)
        except BaseException:
            self.release(*parts)
            raise
        return b"".join(parts) if len(parts) > 1 else parts[0]

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive, parts: list[bytes]) -> None:
        """Read the parts of a body, each of which is held from when it is here."""
        too_large = Problem(
            413, "Too large", f"The body must have at most {self._most:,} bytes: send several requests."
        )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._most:
            raise too_large
        # Announced bytes are not counted: they may never come.
        self._check_room(int(length))
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "Incomplete request", "The connection was closed before the body ended.")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > self._most:
                        raise too_large
                    self._check_room(len(part))
                    self._held += len(part)
                    parts.append(part)
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            raise Problem(408, "Too slow", f"The body must arrive within {self._seconds:g} seconds.") from None

    def _check_room(self, size: int) -> None:
        if self._held + size > self._MAX_HELD * self._most:
            raise busy("The requests under way are too large in total: try again.")

    def release(self, *parts: bytes) -> None:
        """Release a body."""
        self._held -= sum(map(len, parts))


def again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that repeats a body that was read, then goes on."""
    given = False

    async def once_more() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more


async def drain(receive: Receive) -> None:
    """Read a little of a body that is refused, as a sender that still writes does not see the answer."""
    size = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while size < _DRAINED:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return
