"""Services that are killed: the processes of `benchmarks.durability`.

A *nursery* is a process that has imported everything and forks services, so that a service starts in some hundredths
of a second. What is forked is what ``labelrace serve`` runs: a service on a database, and its server.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from labelrace.serve import maintenance, server, snapshots, start
from labelrace.serve.fold import Folded, fold
from labelrace.serve.follower import Options
from labelrace.serve.guards import ServerOptions
from labelrace.serve.journal import Entry
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service

NEW = {"tags": "tags"}
# Snapshots several times a second, where they are minutes apart otherwise.
_OPTIONS = Options(snapshot_seconds=0.2, snapshot_every=0.3, poll_seconds=0.02)
_START_SECONDS = 60.0

Json = dict[str, Any]


def digest_of(folded: Folded) -> str:
    """Return what tells two models and their quality apart, to the bit."""
    return hashlib.sha256(snapshots.pack(folded)).hexdigest()[:32]


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
            time.sleep(0.01)
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
        time.sleep(0.3)


_TASKS = {"serve": _serve, "compact": _compact}
