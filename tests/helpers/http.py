"""For tests of the HTTP side: a service that does as it is told, a client without a network, a server in a thread."""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi", reason="labelrace[serve] is not installed")

import httpx
from starlette.testclient import TestClient

from labelrace.serve.api import make_app
from labelrace.serve.guards import ServerOptions
from labelrace.serve.lessons import Limits
from labelrace.serve.logs import CONFIG
from labelrace.serve.problems import Problem
from labelrace.serve.server import bind, make_server
from labelrace.serve.tokens import Tokens

PREDICT, TEACH, ADMIN = (f"{name}-0123456789abcdef" for name in ("predict", "teach", "admin"))
TOKENS = [f"predict {PREDICT} Pia", "", "# a comment", f"teach {TEACH} Theo", f"admin {ADMIN}"]
JSON = {"Content-Type": "application/json"}


class FakeService:
    """Answers at once, or after `seconds`; remembers what it was asked; fails with `error` if there is one."""

    def __init__(self, seconds=0.0, error=None):
        self.limits = Limits()
        self.seconds = seconds
        self.error = error
        self.calls = []
        self.listeners = []
        self.closed = False

    def _answer(self, answer):
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return answer

    def predict(self, requests):
        self.calls.append(list(requests))
        row = {"tags": ["oven"], "probabilities": {"oven": 0.9}, "review": False}
        return self._answer([self._one(one.rows, {"rows": [row] * len(one.rows), "position": 1}) for one in requests])

    def teach(self, requests):
        self.calls.append(list(requests))
        return self._answer([self._one(one, {"learned": 1, "position": 2}) for one in requests])

    def _one(self, asked, answer):
        return Problem(422, "Wrong", "It is wrong.") if "wrong" in str(asked) else answer

    def status(self):
        names = ("rows", "position", "tags", "waiting", "known", "corrections", "alarms", "drifts")
        numbers = dict.fromkeys(names, 1) | {"journal_position": 3, "snapshot_position": 0}
        return self._answer(numbers | {"version": "1", "example_f1": None})

    def export(self):
        yield b'{"position": 1}\n'
        time.sleep(self.seconds)
        yield b'{"position": 2}\n'

    def is_ready(self):
        return None if self.error is None else str(self.error)

    def listen(self, callback):
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def tell(self, name, data):
        for callback in list(self.listeners):
            callback(name, data)

    def close(self):
        self.closed = True


@contextmanager
def asking(service, lines=(), **options):
    """Yield a client of a service's application, without a network."""
    app = make_app(service, ServerOptions(tokens=Tokens(lines), **options))
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50000)) as client:
        yield client


@contextmanager
def listening(service, lines=(), **options):
    """Yield the port of a server that runs in a thread, which is stopped in order afterwards."""
    given = ServerOptions(port=0, tokens=Tokens(lines), **options)
    listener = bind(given)
    # A server sets up the logs of its process, which goes on with other tests.
    loggers = [logging.getLogger(name) for name in CONFIG["loggers"]]
    before = [(list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    server = make_server(service, given)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.level, logger.propagate = handlers, level, propagate
    assert not thread.is_alive()


def until(condition, seconds=10.0):
    """Wait until something holds; it must within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def send(port, *pieces, pause=0.0, seconds=10.0):
    """Send bytes to a port, and return all that comes back until the connection is closed or nothing more comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        return receive(connection)


def receive(connection):
    """Return what comes until the connection is closed, or until its time is over."""
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except (TimeoutError, ConnectionResetError):
        pass
    return received


def is_problem(response, status, *words):
    """Check that an answer is a problem of a status that says some words."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert {"type", "title", "detail"} <= problem.keys()
    for word in words:
        assert word in response.text
    return problem


def get(port, path, **options):
    return httpx.get(f"http://127.0.0.1:{port}{path}", **options)
