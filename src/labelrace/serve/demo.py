"""The service from nothing on the demo stream, with people who correct it: ``make serve``.

``python -m labelrace.serve.demo`` starts ``labelrace serve`` in a folder of its own, feeds it with tickets and
their tags for a minute, and serves until Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.exceptions import ServiceError
from labelrace.serve.client import Client
from labelrace.streams.demo import demo_tickets

PEOPLE = ("Ann", "Ben", "Chloé")
_PORT, _LOG, _SECONDS = 8080, "service.log", 60.0
# Seconds between waves of tickets, and waves after which people have looked at them.
_WAVE, _LATER = 0.25, 4
# The share of the stream that was tagged before, and of the rest the shares that nobody looks at, and that are
# corrected once more.
_ARCHIVE, _LEFT, _MISTAKES = 0.1, 0.03, 0.03
_START_SECONDS, _STOP_SECONDS = 60.0, 30.0

Row = dict[str, Any]


class Said(NamedTuple):
    """The tags that a person gives a row, and when."""

    wave: int
    person: int
    row: Row


class People:
    """People who look at suggestions and give the right tags, some time later and not always at once.

    Parameters
    ----------
    seed : int, default=0

    Examples
    --------
    >>> people = People(seed=4)
    >>> people.see(0, [{"id": "T-1", "tags": ["billing"]}], [{"tags": ["login"]}])
    >>> [said.row for said in people.say(9)]
    [{'id': 'T-1', 'add': ['billing'], 'remove': ['login']}]
    """

    def __init__(self, seed: int = 0) -> None:
        self._draw = random.Random(seed)
        self._planned: deque[Said] = deque()

    def see(self, wave: int, tickets: Sequence[Row], suggested: Sequence[Row]) -> None:
        """Look at tickets, whose right tags are known here, and at their suggestions."""
        for ticket, one in zip(tickets, suggested, strict=True):
            if self._draw.random() < _LEFT:
                continue
            person, right = self._draw.randrange(len(PEOPLE)), ticket["tags"]
            if len(right) > 1 and self._draw.random() < _MISTAKES:
                # Something is overlooked, which somebody else notices later.
                self._plan(wave + _LATER, person, {"id": ticket["id"], "tags": right[:-1]})
                other = (person + 1) % len(PEOPLE)
                self._plan(wave + 4 * _LATER, other, {"id": ticket["id"], "tags": right})
            elif set(one["tags"]) == set(right) or self._draw.random() < 0.5:
                self._plan(wave + _LATER, person, {"id": ticket["id"], "tags": right})
            else:
                add = [tag for tag in right if tag not in one["tags"]]
                remove = [tag for tag in one["tags"] if tag not in right]
                self._plan(wave + _LATER, person, {"id": ticket["id"], "add": add, "remove": remove})

    def say(self, wave: int) -> list[Said]:
        """Return the tags that were given by now."""
        said = [one for one in self._planned if one.wave <= wave]
        self._planned = deque(one for one in self._planned if one.wave > wave)
        return said

    def _plan(self, wave: int, person: int, row: Row) -> None:
        self._planned.append(Said(wave, person, row))


def feed(url: str, n_rows: int, seconds: float) -> None:
    """Send tickets and their right tags to a service, for some time."""
    tickets = [{"id": one.pop("ticket"), **one} for one in demo_tickets(n_rows)]
    n_archive, n_waves = int(_ARCHIVE * n_rows), max(1, int(seconds / _WAVE))
    archive, rest, people = tickets[:n_archive], tickets[n_archive:], People()
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(Client(url, user=name)) for name in PEOPLE]
        for start in range(0, n_archive, 50):
            clients[0].learn(archive[start : start + 50])
        begin = time.monotonic()
        for wave in range(n_waves + 4 * _LATER + 1):
            # The last ones are of people alone, who finish what they look at.
            new = rest[wave * len(rest) // n_waves : (wave + 1) * len(rest) // n_waves] if wave < n_waves else []
            if new:
                untagged = [{name: row[name] for name in row if name != "tags"} for row in new]
                people.see(wave, new, clients[0].predict(untagged))
            said = people.say(wave)
            for person, client in enumerate(clients):
                if mine := [one.row for one in said if one.person == person]:
                    client.feedback(mine)
            time.sleep(max(0.0, begin + (wave + 1) * _WAVE * n_waves / (n_waves + 4 * _LATER) - time.monotonic()))


@contextlib.contextmanager
def running(folder: Path, port: int) -> Iterator[str]:
    """Start ``labelrace serve`` on a new journal in a folder, yield its address, and end it."""
    url, command = f"http://127.0.0.1:{port}", [sys.executable, "-m", "labelrace", "serve", "--new", "--tags", "tags"]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _LOG, "wb") as log:
        process = subprocess.Popen([*command, "--data", str(folder), "--port", str(port)], stderr=log)
    try:
        _wait_until_ready(url, process, folder / _LOG)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    with Client(url, retries=0, timeout=5.0) as client:
        while True:
            with contextlib.suppress(ServiceError):
                client.status()
                return
            if process.poll() is not None or time.monotonic() > until:
                said = log.read_text(encoding="utf-8", errors="replace").strip() or "it said nothing"
                raise ServiceError(f"The service does not start: {said}")
            time.sleep(0.1)


def free_port(wanted: int) -> int:
    """Return a port of this machine that is free: the one that is wanted, if it is."""
    for port in (wanted, 0):
        with socket.socket() as bound, contextlib.suppress(OSError):
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(("127.0.0.1", port))
            return int(bound.getsockname()[1])
    raise ServiceError("There is no free port on this machine.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; its status is 0 after ``--seconds``, 130 after Ctrl-C, 1 if the service does not start."""
    parser = argparse.ArgumentParser("python -m labelrace.serve.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, help="the folder of the journal; by default one that is removed at the end"
    )
    parser.add_argument("--port", type=int, default=_PORT, help="the port; another one if it is used (default: 8080)")
    parser.add_argument("--rows", type=int, default=3000, help="tickets to send (default: 3000)")
    parser.add_argument("--seconds", type=float, help="end after feeding for so long; by default feed for a minute")
    given = parser.parse_args(arguments)
    # As Ctrl-C, so that the service does not outlive this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory(prefix="labelrace-demo-") as temporary:
            _serve(given.data or Path(temporary, "data"), given.port, given.rows, given.seconds)
    except KeyboardInterrupt:
        return 130
    except ServiceError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(folder: Path, port: int, n_rows: int, seconds: float | None) -> None:
    """Run the service and feed it; without a number of seconds, until a signal ends this."""
    with running(folder, free_port(port)) as url:
        print(f"Open {url} in a browser, or watch it: labelrace watch {url}", flush=True)
        feed(url, n_rows, _SECONDS if seconds is None else seconds)
        with Client(url) as client:
            status = client.status()
        print(f"Learned {status['rows']:,} tickets, {status['waiting']:,} wait for their tags.", flush=True)
        if seconds is None:
            print("The service runs until Ctrl-C.", flush=True)
        while seconds is None:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main())
