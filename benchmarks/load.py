"""What `labelrace serve` bears: requests a second, how long they take while it learns, and a million rows.

Everything is on one machine, with the load generator beside the service. Requests have one row of text each, from 16
clients, with 50 tags.

- ``ratios``: requests a second beside those of a bare FastAPI endpoint that reads and answers the same JSON. Both are
  driven by turns, in short rounds, so that a machine that is slow for a while is so for both; what is printed is the
  median of the rounds' ratios.
- ``latency``: how long predicting takes while others teach as fast as they can, and snapshots are written.
- ``rows``: many rows with ids are predicted, and then tagged. Memory on the way, and at the end what a large journal
  costs: requests, export, start and compaction.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import typer

from benchmarks.load_generator import Load, drive, get, post
from labelrace.cli.options import argument, option
from labelrace.serve.demo import free_port

PARTS = ("ratios", "latency", "rows")
N_TAGS, N_CLIENTS, N_TEACHERS = 50, 16, 4
# Rows that are learned before anything is measured, and rows of a request where these are many.
_BEFORE, _AT_ONCE = 5000, 500
# The share of the rows that nobody tags, and how often memory is looked at.
_LEFT, _LOOKS = 0.05, 10
_WAIT_SECONDS = 120.0
# More than a service answers.
_MOST_A_SECOND = {"predict": 12_000, "learn": 6_000}
_WITH_IDS = " rows with ids"
_SYLLABLES = ["".join(pair) for pair in itertools.product("bdfgklmnprst", "aeiou")]
_N_COMMON, _N_RARE = 200, 20_000

Row = dict[str, Any]


def load(
    part: Annotated[str, argument(help=f"What is measured: {', '.join(PARTS)}.")] = "ratios",
    database: Annotated[
        str | None, option("--database", help="An empty database instead of SQLite in a temporary folder.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of ratios.")] = 10,
    seconds: Annotated[float, typer.Option(help="Seconds of each measurement.")] = 2.0,
    rows: Annotated[int, typer.Option(min=20, help="Rows of the part 'rows'.")] = 1_000_000,
) -> None:
    """Measure the service under load, beside a bare endpoint.

    [dim]Example:[/dim] python -m benchmarks load ratios --rounds 20
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}.")
    with tempfile.TemporaryDirectory(prefix="labelrace-load-") as folder:
        where = ["--database", database] if database else ["--data", folder]
        command = [sys.executable, "-m", "labelrace", "serve", "--new", "--tags", "tags", *where]
        if part == "ratios":
            with _started(command) as service, _started(_BARE) as bare:
                ratios(service.port, bare.port, rounds, seconds)
        elif part == "latency":
            with _started(command) as service:
                latency(service.port, seconds)
        else:
            many_rows(command, where, rows)


# --- Rows and processes -----------------------------------------------------------------------------------------------


def tickets(n_rows: int | None = None, seed: int = 0, n_rare: int = 0) -> Iterator[Row]:
    """Generate rows of text such as those of the demo: words of their tags among common ones, and a rare one.

    Examples
    --------
    >>> [row] = tickets(1)
    >>> list(row), len(row["body"].split())
    (['subject', 'body', 'tags'], 16)
    """
    draw, words = random.Random(seed), random.Random(0)
    of_tags = [["".join(words.choices(_SYLLABLES, k=3)) for _ in range(10)] for _ in range(N_TAGS)]
    common = ["".join(words.choices(_SYLLABLES, k=2)) for _ in range(_N_COMMON)]
    weights = [1.0 / (rank + 2.0) for rank in range(N_TAGS)]
    for _ in itertools.count() if n_rows is None else range(n_rows):
        tags = list(dict.fromkeys(draw.choices(range(N_TAGS), weights, k=draw.randint(1, 3))))
        said = [draw.choice(of_tags[tag]) for tag in tags for _ in range(2)]
        rare = [f"{draw.randrange(n_rare):x}"] if n_rare else []
        body = [*said, *rare, *draw.choices(common, k=16 - len(said) - len(rare))]
        draw.shuffle(body)
        subject = f"{draw.choice(of_tags[tags[0]])} {draw.choice(common)}"
        yield {"subject": subject, "body": " ".join(body), "tags": [f"tag {tag}" for tag in tags]}


class Started(NamedTuple):
    """A process that answers at a port."""

    port: int
    process: subprocess.Popen[bytes]

    def memory(self) -> int:
        """Return the bytes of memory that the process has."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_BARE = [sys.executable, "-m", "uvicorn", "benchmarks.bare_endpoint:app", "--no-access-log", "--log-level", "warning"]


@contextmanager
def _started(command: Sequence[str]) -> Iterator[Started]:
    """Start a server on a free port, wait until it can be used, and end it."""
    port = free_port(0)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log)
        try:
            until = time.monotonic() + _WAIT_SECONDS
            while not _is_ready(port):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise ValueError(f"The server does not start: {log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.05)
            yield Started(port, process)
        finally:
            process.terminate()
            try:
                process.wait(_WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_ready(port: int) -> bool:
    try:
        _get(port, "/health/ready")
    except OSError:
        return False
    return True


def _get(port: int, path: str) -> int:
    """Read what is at a path; return its size."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_WAIT_SECONDS) as answer:
        return sum(map(len, iter(lambda: answer.read(1 << 20), b"")))


def _without_tags(row: Row) -> Row:
    return {name: cell for name, cell in row.items() if name != "tags"}


def _learn_before(port: int) -> None:
    """Teach what the service is to know when it is measured."""
    rows = list(tickets(_BEFORE, seed=1))
    requests = (post("/v1/learn", rows[start : start + _AT_ONCE]) for start in range(0, _BEFORE, _AT_ONCE))
    drive(port, [Load(1, requests)])


# --- Ratios -----------------------------------------------------------------------------------------------------------


def ratios(service: int, bare: int, rounds: int, seconds: float) -> None:
    """Print the median over rounds of the service's requests a second as a share of the bare endpoint's."""
    _learn_before(service)
    ids, rows = itertools.count(), tickets(seed=2)
    shares: dict[str, list[float]] = {
        f"{kind}{which}": [] for kind in ("predict", "learn") for which in ("", _WITH_IDS)
    }
    rates: dict[str, list[float]] = {name: [] for name in ("bare: predict", "bare: learn", *shares)}
    for number in range(rounds + 1):
        for name in shares:
            kind = name.split()[0]
            # Made before the time runs; rows that were learned before would not be learned again.
            made = [dict(row) for row in itertools.islice(rows, max(N_CLIENTS, int(_MOST_A_SECOND[kind] * seconds)))]
            if kind == "predict":
                made = [_without_tags(row) for row in made]
            if name.endswith(_WITH_IDS):
                made = [{"id": f"R{next(ids)}", **row} for row in made]
            requests = [post(f"/v1/{kind}", [row]) for row in made]
            [theirs] = drive(bare, [Load(N_CLIENTS, itertools.cycle(requests))], seconds / 2)
            [ours] = drive(service, [Load(N_CLIENTS, iter(requests))], seconds)
            if number:  # The first round is a warm-up.
                shares[name].append(ours.rate / theirs.rate)
                rates[name].append(ours.rate)
                rates[f"bare: {kind}"].append(theirs.rate)
    print(f"{N_CLIENTS} clients, single rows, {N_TAGS} tags; medians of {rounds} rounds of {seconds:g} seconds")
    for name, found in rates.items():
        print(f"{name:<24}{statistics.median(found):>8,.0f} requests a second", end="")
        if name in shares:
            low, high = min(shares[name]), max(shares[name])
            print(f"{statistics.median(shares[name]):>8.2f} of bare ({low:.2f} to {high:.2f})", end="")
        print()


# --- Latency ----------------------------------------------------------------------------------------------------------


def latency(port: int, seconds: float) -> None:
    """Print how long predicting takes while others teach, and until a snapshot was written."""
    _learn_before(port)
    plain = [_without_tags(row) for row in tickets(2000, seed=3)]
    asked, fresh = itertools.cycle([post("/v1/predict", [row]) for row in plain]), tickets(seed=2)
    taught = (post("/v1/learn", [row]) for row in fresh)
    alone = drive(port, [Load(N_CLIENTS, asked)], seconds)[0].latencies
    start = last = _snapshot_position(port)
    found, n_learned, n_snapshots, began = list[float](), 0, 0, time.monotonic()
    while n_snapshots < 2 and time.monotonic() - began < _WAIT_SECONDS:
        predicted, learned = drive(port, [Load(N_CLIENTS, asked), Load(N_TEACHERS, taught)], seconds)
        found += predicted.latencies
        n_learned += len(learned.latencies)
        now = _snapshot_position(port)
        n_snapshots, last = n_snapshots + (now > last), now
    took = time.monotonic() - began
    print(f"{N_CLIENTS} clients predict single rows; {N_TEACHERS} others teach as fast as they can, {N_TAGS} tags")
    for name, seen in (("nobody teaches", alone), ("others teach", found)):
        p50, p99, most = (1000 * _quantile(seen, share) for share in (0.5, 0.99, 1.0))
        print(f"{name:<18}{len(seen):>8,} requests: median {p50:.1f} ms, p99 {p99:.1f} ms, most {most:.1f} ms")
    print(f"meanwhile {n_learned / took:,.0f} rows a second were learned, and {n_snapshots} snapshots written", end="")
    print("" if last > start else " (none in time)")


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def _snapshot_position(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/status", timeout=_WAIT_SECONDS) as answer:
        return int(json.load(answer)["snapshot_position"])


# --- Many rows --------------------------------------------------------------------------------------------------------


def many_rows(command: Sequence[str], where: Sequence[str], n_rows: int) -> None:
    """Predict and tag many rows, and print memory on the way, then what a journal of this size costs."""
    with _started(command) as service:
        _learn_before(service.port)
        part, began = max(1, n_rows // _LOOKS), time.monotonic()
        rows, draw = tickets(seed=2, n_rare=_N_RARE), random.Random(0)
        for done in range(0, n_rows, part):
            drive(service.port, [Load(1, _visits(rows, draw, done, min(part, n_rows - done)))])
            took = time.monotonic() - began
            print(f"{done + part:>10,} rows after {took:>6.0f} s: {service.memory() / 1e6:>6.0f} MB", flush=True)
        _print_requests(service.port)
        _print_seconds("export", lambda: _get(service.port, "/v1/export"))
    began = time.perf_counter()
    with _started(command):
        _print_seconds("start", lambda: None, began)
    maintain = [sys.executable, "-m", "labelrace", "serve", "compact", *where]
    _print_seconds("compact", lambda: subprocess.run(maintain, check=True, stdout=subprocess.DEVNULL))


def _visits(rows: Iterator[Row], draw: random.Random, first: int, n_rows: int) -> Iterator[bytes]:
    """Yield requests that predict rows and, each time, one that tags most of them."""
    for start in range(first, first + n_rows, _AT_ONCE):
        size = min(_AT_ONCE, first + n_rows - start)
        seen = [{"id": f"T-{start + number}", **row} for number, row in enumerate(itertools.islice(rows, size))]
        yield post("/v1/predict", [_without_tags(row) for row in seen])
        told = [{"id": row["id"], "tags": row["tags"]} for row in seen if draw.random() > _LEFT]
        yield post("/v1/feedback", told or [{"id": seen[0]["id"], "tags": []}])


def _print_requests(port: int) -> None:
    """Print how long requests take that look at what there is."""
    word = next(tickets(1, seed=2, n_rare=_N_RARE))["body"].split()[0]
    paths = ["/v1/status", "/v1/quality", "/v1/tags", f"/v1/tags/{quote('tag 1')}", "/metrics"]
    paths += [f"/v1/rows?order={order}" for order in ("newest", "oldest", "review", "useful")]
    paths += [f"/v1/rows?state=all&order={order}" for order in ("newest", "useful")]
    paths += [f"/v1/rows?search={word}", f"/v1/rows?state=all&search={word}"]
    paths += ["/v1/rows?state=all&search=wordthatisnotthere", f"/v1/rows?state=tagged&tag={quote('tag 49')}"]
    paths += ["/v1/rows?after=10000", "/v1/rows?state=all&after=500000"]
    for path in paths:
        [found] = drive(port, [Load(1, iter([get(path)] * 3))])
        print(f"{path:<60}{1000 * statistics.median(found.latencies):>8.1f} ms", flush=True)


def _print_seconds(name: str, call: Callable[[], object], began: float | None = None) -> None:
    start = time.perf_counter() if began is None else began
    call()
    print(f"{name:<60}{time.perf_counter() - start:>8.1f} s", flush=True)
