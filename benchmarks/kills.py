"""Services that are killed, and what is asked of them meanwhile: the core of `benchmarks.durability` and its test.

A *nursery* is a process that has imported everything and forks services, so that a service starts in some hundredths
of a second. What is forked is what ``labelrace serve`` runs: a service on a database, and its server.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from labelrace.serve import maintenance, server, snapshots, start
from labelrace.serve.fold import Folded, fold
from labelrace.serve.guards import ServerOptions
from labelrace.serve.journal import Entry
from labelrace.serve.problems import Problem
from labelrace.serve.service import Options, open_service
from labelrace.streams.demo import demo_tickets

NEW = {"tags": "tags"}
TICKETS = [{"subject": one["subject"], "body": one["body"], "tags": one["tags"]} for one in demo_tickets(2000)]
# Snapshots several times a second, where they are minutes apart otherwise.
_OPTIONS = Options(snapshot_seconds=0.1, snapshot_every=0.2, poll_seconds=0.02)
_START_SECONDS = 60.0

Json = dict[str, Any]


def digest_of(folded: Folded) -> str:
    """Return what tells two models and their quality apart, to the bit."""
    return hashlib.sha256(snapshots.pack(folded)).hexdigest()[:32]


# --- Processes --------------------------------------------------------------------------------------------------------


class Nursery:
    """Starts services that share a database, and kills them.

    Parameters
    ----------
    url : str
        Of the database.
    folder : Path
        For what the processes say: their addresses, logs, and the digests of all that they have known.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._commands, far = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_nurse, args=(far, url, folder))
        self._process.start()
        far.close()
        assert self._commands.recv() == "ready"

    def start(self, name: str, what: str = "serve") -> None:
        """Start a process: one that serves, or one that compacts again and again."""
        self.address_file(name).unlink(missing_ok=True)
        self._ask("start", name, what)

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to a process, wait for its end, and return its exit status."""
        return int(self._ask("kill", name, number))

    def port(self, name: str) -> int | None:
        """Return the port of a service; None while it starts."""
        try:
            return int(self.address_file(name).read_text())
        except FileNotFoundError:
            return None

    def wait_for(self, name: str) -> int:
        """Wait until a service listens, and return its port."""
        until = time.monotonic() + _START_SECONDS
        while (port := self.port(name)) is None:
            if time.monotonic() > until or not self._ask("lives", name, 0):
                raise AssertionError(f"{name} does not start:\n{(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.005)
        return port

    def address_file(self, name: str) -> Path:
        """Return the file with the port of a service."""
        return self.folder / f"{name}.port"

    def digests(self) -> Iterator[tuple[int, str]]:
        """Yield the position and digest of all that was known by a process at some time."""
        for path in sorted(self.folder.glob("*.digests")):
            # The last line of a process that was killed may be cut.
            for line in path.read_text().split("\n")[:-1]:
                position, _, digest = line.partition(" ")
                if len(digest) == 32:
                    yield int(position), digest

    def close(self) -> None:
        """Kill all that is left."""
        self._commands.close()
        self._process.join(30)

    def _ask(self, *command: Any) -> Any:
        self._commands.send(command)
        return self._commands.recv()


def _nurse(commands: Connection, url: str, folder: Path) -> None:
    """Fork processes and end them, as is asked, until nobody asks any more."""
    # Ctrl-C is for the one that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    # What the first lesson imports and sets up.
    rows = [{"id": None, "cells": {"subject": "A", "body": "B"}, "tags": ["c"], "was": None, "again": False}]
    fold(start.empty(NEW), [Entry(1, 1, 0.0, "learn", "", {"rows": rows})])
    fork, running = multiprocessing.get_context("fork"), dict[str, Any]()
    commands.send("ready")
    with contextlib.suppress(EOFError, OSError):
        while True:
            what, name, value = commands.recv()
            if what == "start":
                running[name] = fork.Process(target=_TASKS[value], args=(url, folder, name), daemon=True)
                running[name].start()
                commands.send(running[name].pid)
            elif what == "lives":
                commands.send(running[name].is_alive())
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(running[name].pid, value)
                running[name].join()
                commands.send(running[name].exitcode)
    for process in running.values():
        process.kill()
        process.join()


def _serve(url: str, folder: Path, name: str) -> None:
    """Serve, as ``labelrace serve`` does; note the digest of all that is known."""
    digests = os.open(folder / f"{name}.digests", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # A line that was cut is ended.
    os.write(digests, b"\n")
    options = ServerOptions(port=0)
    with server.bind(options) as listener:
        service = open_service(database=url, new=NEW, options=_OPTIONS)

        def note(event: str, _: Json) -> None:
            # This is the thread that learns: nothing is learned until it returns.
            if event == "position":
                folded = service.folded
                os.write(digests, f"{folded.position} {digest_of(folded)}\n".encode())

        service.listen(note)
        part = folder / f"{name}.part"
        part.write_text(str(listener.getsockname()[1]))
        part.rename(folder / f"{name}.port")
        server.run(service, options, listener=listener)


def _compact(url: str, folder: Path, name: str) -> None:
    """Compact again and again."""
    database = start.open_database(None, url)
    while True:
        # Busy, or there is nothing yet.
        with contextlib.suppress(Problem, ValueError):
            done = maintenance.compact(database)
            (folder / f"{name}.done").write_text(str(done.position))
        time.sleep(0.2)


_TASKS = {"serve": _serve, "compact": _compact}


# --- Load -------------------------------------------------------------------------------------------------------------


class Sent:
    """A request that teaches, or predicts rows that wait.

    Parameters
    ----------
    name : str
        Its own: it is the user in the journal, and the key.
    path : str
    body : dict
    has_key : bool
    """

    def __init__(self, name: str, path: str, body: Json, has_key: bool) -> None:
        self.name = name
        self.path = path
        self.body = body
        self.has_key = has_key
        self.times = 0
        self.status: int | None = None  # of the answer; None if there was none
        self.answer: Json = {}


class Person(threading.Thread):
    """Asks services, and teaches them; what gets no answer is sent again, most times.

    Parameters
    ----------
    number : int
    seed : int
    nursery : Nursery
    services : list of str
        The names of the services to ask.
    pause : float
        Seconds between requests.
    """

    def __init__(self, number: int, seed: int, nursery: Nursery, services: list[str], pause: float) -> None:
        super().__init__(name=f"person-{number}", daemon=True)
        self.number = number
        self.sent: list[Sent] = []
        self.error: BaseException | None = None
        self.stops = threading.Event()
        self._draw = random.Random(f"{seed} {number}")
        self._nursery = nursery
        self._services = services
        self._at = number
        self._pause = pause
        self._connection: http.client.HTTPConnection | None = None
        self._waiting: list[str] = []
        self._told: list[str] = []

    def run(self) -> None:
        """Send requests until it is enough; the last one is not given up."""
        try:
            while not self.stops.is_set():
                self._send(self._next())
                time.sleep(self._pause * self._draw.random() * 2)
        except BaseException as error:
            self.error = error
        finally:
            self._disconnect()

    # What is sent.

    def _next(self) -> Sent:
        """Return a request, of any kind."""
        draw = self._draw
        kind = draw.choices(["learn", "predict", "feedback", "correct", "take back", "change"], [40, 25, 20, 8, 3, 2])[
            0
        ]
        if kind in ("feedback",) and not self._waiting:
            kind = "predict"
        if kind in ("correct", "take back") and not self._told:
            kind = "learn"
        name = f"p{self.number}-{len(self.sent)}"
        if kind == "learn":
            rows = [self._row(f"{name}-{at}", draw.random() < 0.5) for at in range(draw.randint(1, 3))]
            return Sent(name, "/v1/learn", {"rows": rows}, draw.random() < 0.8)
        if kind == "predict":
            rows = [self._row(f"{name}-{at}", True) for at in range(draw.randint(1, 2))]
            rows = [{key: cell for key, cell in row.items() if key != "tags"} for row in rows]
            return Sent(name, "/v1/predict", {"rows": rows}, False)
        if kind == "change":
            return Sent(name, *self._change(), True)
        listed = self._waiting if kind == "feedback" else self._told
        row = {"id": listed.pop(draw.randrange(len(listed)))}
        if kind == "take back":
            return Sent(name, "/v1/feedback", {"rows": [{**row, "tags": None}]}, True)
        said = (
            {"tags": draw.choice(TICKETS)["tags"]} if draw.random() < 0.6 else {"add": [f"topic {draw.randint(1, 9)}"]}
        )
        return Sent(name, "/v1/feedback", {"rows": [row | said]}, True)

    def _row(self, name: str, has_id: bool) -> Json:
        row = dict(self._draw.choice(TICKETS))
        row["tags"] = [*row["tags"], f"topic {self._draw.randint(1, 9)}"]
        row["subject"] = f"{row['subject']} {name}"
        return {"id": name, **row} if has_id else row

    def _change(self) -> tuple[str, Json]:
        one, two = (f"topic {number}" for number in self._draw.sample(range(1, 10), 2))
        changes: list[tuple[str, Json]] = [
            ("/v1/tags/rename", {"names": {one: f"{two} and more"}}),
            ("/v1/tags/merge", {"tags": [one], "into": two}),
            ("/v1/tags/retire", {"tags": [one]}),
            ("/v1/tags/describe", {"tags": {one: {"synonyms": [f"{one} too {len(self.sent)}"]}}}),
        ]
        return self._draw.choice(changes)

    # How it is sent.

    def _send(self, request: Sent) -> None:
        """Send a request until there is an answer; without a key, or sometimes with one, only once."""
        self.sent.append(request)
        while request.status is None or request.status == 503:
            lost = not self._try(request)
            is_predicted = request.path == "/v1/predict"
            if lost and (not (request.has_key or is_predicted) or self._draw.random() < 0.1):
                return
            if request.status == 503 and not request.has_key and not is_predicted:
                return
            if self.stops.is_set() and request.times > 1000:
                raise AssertionError(f"No answer to {request.path}: {request.status} {request.answer}")
        self._learn_from(request)

    def _try(self, request: Sent) -> bool:
        """Send a request once; return whether there was an answer, or nothing was sent."""
        headers = {"Content-Type": "application/json", "X-Labelrace-User": request.name}
        if request.has_key:
            headers["Idempotency-Key"] = request.name
        request.status = None
        try:
            if self._connection is None:
                name = self._services[self._at % len(self._services)]
                port = self._nursery.port(name)
                if port is None:
                    raise ConnectionRefusedError
                self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                self._connection.connect()
        except OSError:
            # It has not begun again: the next one may have.
            self._disconnect()
            self._at += 1
            time.sleep(0.02)
            return True
        request.times += 1
        try:
            self._connection.request("POST", request.path, json.dumps(request.body), headers)
            answer = self._connection.getresponse()
            content = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            self._disconnect()
            self._at += 1
            return False
        request.status, request.answer = answer.status, content
        if answer.status == 503:
            time.sleep(0.02)
        return True

    def _learn_from(self, request: Sent) -> None:
        """Remember the rows of which more can be said."""
        if request.status != 200:
            return
        ids = [row["id"] for row in request.body.get("rows", ()) if "id" in row]
        (self._waiting if request.path == "/v1/predict" else self._told).extend(ids)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
