"""Whether the service loses anything: it is killed at random moments while people teach it, and then all is compared.

What is compared: every request that was answered with the journal, read without the service's own code; everything that
any of the processes has known, at every position, with one fold over the journal in this process, to the bit.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.crowd import Person
from benchmarks.kills import Nursery
from benchmarks.postgresql import running_cluster, why_not
from benchmarks.witness import Figures, begin, compare
from labelrace.serve.database import checked_url, url_of

# Kills of one journal; then there is a new one.
_KILLS = 50
_SECONDS = 60.0


def durability(
    kills: Annotated[int, typer.Option(help="How often a process is killed.", min=1)] = 1000,
    database: Annotated[str, typer.Option(help="The database: sqlite or postgresql.")] = "sqlite",
    seed: Annotated[int, typer.Option(help="Of what is asked, and when processes are killed.")] = 0,
) -> None:
    """Kill services at random moments, and compare what is left.

    People teach them meanwhile. One, two and three processes share a journal in turn, which another one compacts. All
    that was answered has to be in the journal once, and all that any process has known has to be the fold over it.

    [dim]Example:[/dim] python -m benchmarks durability --kills 200 --database postgresql
    """
    if database not in ("sqlite", "postgresql"):
        raise ValueError(f"--database must be sqlite or postgresql, got {database!r}")
    if database == "postgresql" and (why := why_not()):
        raise ValueError(why)
    total, number = Figures(), 0
    with contextlib.ExitStack() as opened:
        cluster = opened.enter_context(running_cluster()) if database == "postgresql" else None
        while total.kills < kills:
            with tempfile.TemporaryDirectory(prefix="labelrace-") as folder:
                url = url_of(Path(folder)) if cluster is None else checked_url(cluster.new_database())
                count, processes = min(_KILLS, kills - total.kills), 1 + number % 3
                crash = cluster.crash if cluster else None
                done = kill_and_compare(url, Path(folder), count, processes, seed + number, crash=crash)
            total, number = total.plus(done), number + 1
            print(f"{processes} processes: {told(done)}", flush=True)
    print(f"{database}: {told(total)}")


def told(figures: Figures) -> str:
    """Return figures as a sentence."""
    return ", ".join(f"{value:,.0f} {name}" for name, value in figures._asdict().items())


def kill_and_compare(
    url: str,
    folder: Path,
    kills: int,
    processes: int,
    seed: int,
    *,
    people: int = 4,
    pause: float = 0.02,
    crash: Callable[[], None] | None = None,
) -> Figures:
    """Kill processes that serve a journal, which begins now, and compare what is left with what was answered.

    Parameters
    ----------
    url : str
        Of the database, which is empty.
    folder : Path
    kills : int
    processes : int
    seed : int
    people : int, default=4
    pause : float, default=0.02
        Seconds between the requests of one of them.
    crash : callable, default=None
        Kills the database itself, and starts it again; called now and then.

    Returns
    -------
    Figures
    """
    begin(url)
    began, names = time.monotonic(), [f"service-{number}" for number in range(processes)]
    nursery = Nursery(url, folder / "processes")
    crowd = [Person(number, seed, nursery, names, pause) for number in range(people)]
    try:
        for name in names:
            nursery.start(name)
        nursery.start("compaction", "compact")
        for person in crowd:
            person.start()
        _kill(nursery, names, crowd, kills, random.Random(seed), crash)
        for name in names:
            nursery.wait_for(name)
        for person in crowd:
            person.stops.set()
        for person in crowd:
            person.join(2 * _SECONDS)
            assert not person.is_alive(), f"{person.name} waits for {person.sent[-1].path}"
            if person.error is not None:
                raise person.error
        compacted = nursery.folder / "compaction.done"
        nursery.kill("compaction")
        lines = _exported_by_all(nursery, names)
        assert [nursery.kill(name, signal.SIGTERM) for name in names] == [0] * len(names)
    finally:
        nursery.close()
    sent = [one for person in crowd for one in person.sent]
    figures = compare(url, nursery, sent, lines)
    return figures._replace(
        kills=kills,
        compacted=int(compacted.read_text()) if compacted.exists() else 0,
        seconds=time.monotonic() - began,
    )


def _kill(
    nursery: Nursery,
    names: Sequence[str],
    crowd: Sequence[Person],
    kills: int,
    draw: random.Random,
    crash: Callable[[], None] | None,
) -> None:
    """Kill a process and start it again, so often: most while they serve, some while they start, some that compact."""
    for _ in range(kills):
        name = draw.choice(names)
        if draw.random() < 0.85:
            nursery.wait_for(name)
            time.sleep(draw.uniform(0, 0.4))
            _wait_for_requests(crowd, draw.randint(0, 8))
        else:
            time.sleep(draw.uniform(0, 0.2))
        status = nursery.kill(name)
        assert status == -signal.SIGKILL, f"{name} had ended, {status}:\n{(nursery.folder / 'log').read_text()[-3000:]}"
        nursery.start(name)
        if draw.random() < 0.3:
            nursery.kill("compaction")
            if crash is not None:
                # A service goes on without its database, but does not start without.
                for one in names:
                    nursery.wait_for(one)
                crash()
            nursery.start("compaction", "compact")


def _wait_for_requests(crowd: Sequence[Person], count: int) -> None:
    """Wait until `count` further requests were sent, on a busy machine not for ever."""
    until, before = time.monotonic() + 5.0, sum(len(person.sent) for person in crowd)
    while sum(len(person.sent) for person in crowd) < before + count and time.monotonic() < until:
        time.sleep(0.01)


def _exported_by_all(nursery: Nursery, names: Sequence[str]) -> list[bytes]:
    """Wait until all processes are at the end of the journal, and return it as the last of them exports it."""
    until = time.monotonic() + _SECONDS
    while True:
        found = [json.loads(_get(nursery, name, "/v1/status")) for name in names]
        if len({one[place] for one in found for place in ("position", "journal_position")}) == 1:
            return _get(nursery, names[-1], "/v1/export").splitlines()
        assert time.monotonic() < until, f"The processes do not agree: {found}"
        time.sleep(0.05)


def _get(nursery: Nursery, name: str, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", nursery.wait_for(name), timeout=_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read()
