"""The server: listens, stops in order, and does not wait for whoever sends slowly."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labelrace.serve import logs
from labelrace.serve.answers import ProblemAnswer
from labelrace.serve.api import make_app
from labelrace.serve.guards import ServerOptions
from labelrace.serve.problems import Problem, busy

if TYPE_CHECKING:
    from labelrace.serve.service import Service

# A thread that computes gives way to one that waits after this many seconds, so that answers do not wait for learning.
_SWITCH_SECONDS = 0.0005
_KEEP_ALIVE_SECONDS = 15
_MAX_HEADERS = 1 << 16
# Seconds in which whoever gets an answer has to take some of it.
_SEND_SECONDS = 30.0


def run(service: Service, options: ServerOptions | None = None, *, listener: socket.socket | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then answer what is under way, and close the service.

    Parameters
    ----------
    service : Service
    options : ServerOptions, default=None
    listener : socket, default=None
        What `bind` returned, to know that the port is free before a service is opened.
    """
    options = options or ServerOptions()
    try:
        listener = listener or bind(options)
        with listener:
            server = make_server(service, options)
            # What is there now stays: looking for garbage in it would be a pause for whoever asks.
            gc.collect()
            gc.freeze()
            server.run(sockets=[listener])
    finally:
        service.close()


def bind(options: ServerOptions) -> socket.socket:
    """Return a socket that listens; what is wrong with the address is told in a sentence."""
    options.check()
    host, port = options.host.strip("[]"), options.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = {
            errno.EADDRINUSE: "another program uses it: choose another with --port",
            errno.EACCES: "it needs rights that this program has not: choose one above 1023 with --port",
            errno.EADDRNOTAVAIL: "this machine has no such address: choose another with --host",
        }.get(error.errno or 0, error.strerror or str(error))
        raise ValueError(f"{options.host}, port {port}, cannot be listened on; {reason}.") from error


def make_server(service: Service, options: ServerOptions) -> Server:
    """Return the server of a service; it can be run once."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = make_app(service, options, logs.RequestLog())
    config = uvicorn.Config(
        app,
        loop="auto",
        http=_protocol(options),
        ws="none",
        lifespan="on",
        log_config=logs.CONFIG,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=options.stop_seconds,
    )
    return Server(config, app.state.events)


class Server(uvicorn.Server):
    """A server that ends the streams of events when it stops, and returns when it has stopped.

    Parameters
    ----------
    config : uvicorn.Config
    events : Events
    """

    def __init__(self, config: uvicorn.Config, events: Any) -> None:
        super().__init__(config)
        self._events = events

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, which would last, then wait for the requests under way."""
        self._events.close()
        await super().shutdown(sockets)
        # Those whose other side does not read would keep the loop from ending.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order, also when told so again: that takes `stop_seconds` at most."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on signals; they do not end the program afterwards, as the service is to be closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _protocol(options: ServerOptions) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol with limits on connections, on headers, and on the time in which nothing is taken."""

    class Protocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        # While what is sent is not taken: when to look again, and the bytes that waited.
        _sending: asyncio.TimerHandle | None = None
        _unsent = 0
        # Bytes since the last headers or the head of the last chunk that are of no body: headers, trailers, extensions.
        _beside = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            # Those above the limit are told so; those far above it are not even read.
            if len(self.connections) > 2 * options.max_connections:
                transport.abort()
                return
            if len(self.connections) > options.max_connections:
                self.app = _refuse_connection
            self._expect_headers()

        def data_received(self, data: bytes) -> None:
            self._beside += len(data)
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._beside > _MAX_HEADERS:
                detail = f"The headers must have at most {_MAX_HEADERS:,} bytes."
                self._end(Problem(431, "Headers too large", detail))
            elif self.cycle is None or self.cycle.response_complete:
                # Nothing that is answered or read: the headers of the next request are incomplete.
                self._expect_headers()

        def on_headers_complete(self) -> None:
            self._beside = 0
            self._forget_headers()
            super().on_headers_complete()

        def on_chunk_header(self) -> None:
            self._beside = 0

        def on_body(self, body: bytes) -> None:
            self._beside = max(0, self._beside - len(body))
            super().on_body(body)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch_sending()

        def resume_writing(self) -> None:
            self._forget_sending()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_headers()
            self._forget_sending()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self._end(Problem(400, "Malformed request", "The request must be HTTP/1.1."))

        def _expect_headers(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(options.header_seconds, self._give_up)

        def _forget_headers(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _watch_sending(self) -> None:
            self._forget_sending()
            self._unsent = self.transport.get_write_buffer_size()
            self._sending = self.loop.call_later(_SEND_SECONDS, self._look_at_sending)

        def _look_at_sending(self) -> None:
            if self.transport.get_write_buffer_size() < self._unsent:
                self._watch_sending()
            else:
                self.transport.abort()

        def _forget_sending(self) -> None:
            if self._sending is not None:
                self._sending.cancel()
                self._sending = None

        def _give_up(self) -> None:
            self._end(Problem(408, "Too slow", f"The headers must arrive within {options.header_seconds:g} seconds."))

        def _end(self, problem: Problem) -> None:
            """Answer with a problem, without a request, and close the connection."""
            self._forget_headers()
            if self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete:
                body = to_json(problem.as_json())
                head = (
                    f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: application/problem+json\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
                )
                self.transport.write(head.encode() + body)
            self.transport.close()

    return Protocol


async def _refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    problem = busy("There are too many connections.", retry_after=2.0)
    await ProblemAnswer(problem, {"Connection": "close"})(scope, receive, send)
