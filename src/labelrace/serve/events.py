"""The events of the service, sent to all listeners: server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from labelrace.serve.problems import busy
from labelrace.serve.service import Service

# Events that wait for a listener; one that is further behind is disconnected, and comes back to the current state.
_MAX_BEHIND = 1000
# A comment that shows both sides that the connection is alive.
_HEARTBEAT, _HEARTBEAT_SECONDS = b": \n\n", 15.0
# The position changes with each batch; it is sent ten times a second at most.
_POSITION, _POSITION_SECONDS = "position", 0.1


class Events:
    """The listeners of a service.

    Parameters
    ----------
    service : Service
    most : int
        The number of listeners.
    """

    def __init__(self, service: Service, most: int) -> None:
        self._service = service
        self._most = most
        self._listeners = set[asyncio.Queue[bytes | None]]()
        self._stop: Callable[[], None] | None = None
        self._position: bytes | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    async def stream(self) -> EventStream:
        """Return an answer that sends events from now on, beginning with the position."""
        if self._closed:
            raise busy("The service ends.")
        if len(self._listeners) >= self._most:
            raise busy(f"{self._most} listen already.", retry_after=10.0)
        queue = asyncio.Queue[bytes | None](_MAX_BEHIND)
        self._listeners.add(queue)
        try:
            if self._stop is None:
                loop = asyncio.get_running_loop()
                self._stop = self._service.listen(lambda name, data: self._said(loop, name, data))
            status = await run_in_threadpool(self._service.status)
        except BaseException:
            self._listeners.discard(queue)
            raise
        now = {name: status[name] for name in ("position", "rows", "tags", "waiting")}
        return EventStream(_encoded(_POSITION, now), queue, self._listeners)

    def close(self) -> None:
        """End all streams, and refuse new ones."""
        self._closed = True
        if self._stop is not None:
            self._stop()
            self._stop = None
        for queue in self._listeners:
            _end(queue)
        self._listeners.clear()

    def _said(self, loop: asyncio.AbstractEventLoop, name: str, data: dict[str, Any]) -> None:
        """Take an event from a thread of the service."""
        if self._listeners:
            # The loop may be closed already when the service ends.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._tell, name, _encoded(name, data))

    def _tell(self, name: str, event: bytes) -> None:
        if name == _POSITION:
            if self._position is None:
                asyncio.get_running_loop().call_later(_POSITION_SECONDS, self._tell_position)
            self._position = event
        else:
            self._put(event)

    def _tell_position(self) -> None:
        event, self._position = self._position, None
        if event is not None:
            self._put(event)

    def _put(self, event: bytes) -> None:
        for queue in list(self._listeners):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._listeners.discard(queue)
                _end(queue)


class EventStream(Response):
    """An answer that goes on until its listener or the service ends.

    Parameters
    ----------
    first : bytes
        The first piece, sent at once.
    queue : asyncio.Queue
        The next pieces; None ends the stream.
    listeners : set
        Where the queue is removed from at the end.
    """

    def __init__(
        self, first: bytes, queue: asyncio.Queue[bytes | None], listeners: set[asyncio.Queue[bytes | None]]
    ) -> None:
        super().__init__()
        self._first = first
        self._queue = queue
        self._listeners = listeners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the end."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        gone = asyncio.ensure_future(self._wait_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            event: bytes | None = self._first
            while event is not None:
                await send({"type": "http.response.body", "body": event, "more_body": True})
                event = await self._next()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._listeners.discard(self._queue)
            gone.cancel()

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(_HEARTBEAT_SECONDS):
                event = await self._queue.get()
        except TimeoutError:
            return _HEARTBEAT
        # Other waiting events go in the same piece.
        parts = [event]
        while event is not None and not self._queue.empty():
            event = self._queue.get_nowait()
            parts.append(event)
        told = b"".join(part for part in parts if part is not None)
        if event is None and told:
            self._queue.put_nowait(None)
        return told or None

    async def _wait_until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        _end(self._queue)


def _end(queue: asyncio.Queue[bytes | None]) -> None:
    """End a stream now, whatever waits in its queue."""
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def _encoded(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(data, inf_nan_mode="null"))
