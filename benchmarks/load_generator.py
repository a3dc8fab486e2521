"""A load generator that costs little: one thread, keep-alive connections, requests that are bytes before the time runs.

Every client sends a request, reads its answer and sends the next one, so that there are always as many requests under
way as there are clients.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_END = b"\r\n\r\n"
_LENGTH, _SUCCESS = b"content-length: ", b"HTTP/1.1 200"
_SECONDS = 60.0


class Load(NamedTuple):
    """Clients that send requests by turns."""

    n_clients: int
    requests: Iterator[bytes]


class Measured(NamedTuple):
    """What the clients of a load have seen."""

    seconds: float
    latencies: list[float]  # of each request, in seconds

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds


def post(path: str, rows: Sequence[dict[str, Any]]) -> bytes:
    """Return a request with rows."""
    body = json.dumps({"rows": rows}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + _END + body


def get(path: str) -> bytes:
    """Return a request that asks for a path."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class _Client:
    """A connection, and the request under way on it."""

    def __init__(self, port: int, load: int, requests: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.load = load
        self._requests = requests
        self._received = b""
        self.began = 0.0

    def send(self) -> bool:
        """Send the next request; return whether there is one."""
        request = next(self._requests, None)
        if request is None:
            return False
        self.began = time.perf_counter()
        self.socket.sendall(request)
        return True

    def receive(self) -> bool:
        """Read what has come; return whether the answer is complete. One that is no success ends the benchmark."""
        part = self.socket.recv(1 << 16)
        if not part:
            raise ValueError("The server has closed a connection.")
        self._received = received = self._received + part if self._received else part
        head = received.find(_END)
        if head < 0:
            return False
        start = received.find(_LENGTH) + len(_LENGTH)
        if len(received) < head + len(_END) + int(received[start : received.find(b"\r", start)]):
            return False
        if not received.startswith(_SUCCESS):
            raise ValueError(f"The server answers {received[:500]!r}.")
        self._received = b""
        return True


def drive(port: int, loads: Sequence[Load], seconds: float = float("inf")) -> list[Measured]:
    """Send requests for some time, or until there are none, and return what was measured of each load."""
    latencies: list[list[float]] = [[] for _ in loads]
    clients = [_Client(port, number, load.requests) for number, load in enumerate(loads) for _ in range(load.n_clients)]
    try:
        with selectors.DefaultSelector() as selector:
            begin = time.perf_counter()
            n_busy = 0
            for client in clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
                n_busy += client.send()
            while n_busy:
                ready = selector.select(_SECONDS)
                if not ready:
                    raise ValueError(f"The server has not answered for {_SECONDS:g} seconds.")
                for key, _ in ready:
                    client = key.data
                    if client.receive():
                        now = time.perf_counter()
                        latencies[client.load].append(now - client.began)
                        n_busy -= now - begin > seconds or not client.send()
            ended = time.perf_counter() - begin
    finally:
        for client in clients:
            client.socket.close()
    return [Measured(ended, found) for found in latencies]
