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
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sql
import typer

from benchmarks.kills import NEW, Nursery, Person, Sent, digest_of
from benchmarks.postgresql import running_cluster, why_not
from labelrace.serve import export, snapshots, start
from labelrace.serve.database import checked_url, url_of
from labelrace.serve.fold import Folded, fold
from labelrace.serve.journal import Entry

# Kills of one journal; then there is a new one.
_KILLS = 50
_SECONDS = 60.0

# Compaction forgets what entries say. Here the database itself keeps it, and refuses to change or remove an entry.
_WITNESS = "CREATE TABLE witness (position BIGINT PRIMARY KEY, body TEXT NOT NULL)"
_CHANGES = " OR ".join(f"new.{name} <> old.{name}" for name in ("position", "batch", "time", "kind", "who", "digest"))
_IN_SQLITE = (
    _WITNESS,
    """CREATE TRIGGER forgotten AFTER UPDATE ON entries WHEN old.body IS NOT NULL AND new.body IS NULL
       BEGIN INSERT INTO witness VALUES (old.position, old.body); END""",
    f"""CREATE TRIGGER changed BEFORE UPDATE ON entries WHEN new.body IS NOT NULL OR {_CHANGES}
       BEGIN SELECT RAISE(ABORT, 'an entry is changed'); END""",
    """CREATE TRIGGER removed BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'an entry is removed'); END""",
)
_IN_POSTGRESQL = (
    _WITNESS,
    f"""CREATE FUNCTION witnessed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'DELETE' OR new.body IS NOT NULL OR {_CHANGES} THEN
            RAISE EXCEPTION 'an entry is changed or removed';
        ELSIF old.body IS NOT NULL THEN
            INSERT INTO witness VALUES (old.position, old.body);
        END IF;
        RETURN new; END $$""",
    """CREATE TRIGGER witnessed BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION witnessed()""",
)


class Figures(NamedTuple):
    """What happened to a journal, and was compared."""

    kills: int = 0
    answered: int = 0  # requests that teach
    unanswered: int = 0  # of these some are in the journal, once
    again: int = 0  # requests that were sent more than once
    entries: int = 0
    rows: int = 0
    compacted: int = 0  # entries
    compared: int = 0  # digests of processes with those of the fold
    seconds: float = 0.0

    def plus(self, other: Figures) -> Figures:
        """Return the sums."""
        sums: Any = {name: value + getattr(other, name) for name, value in self._asdict().items()}
        return Figures(**sums)


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
        _kill(nursery, names, kills, random.Random(seed), crash)
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


def begin(url: str) -> None:
    """Begin a journal, whose database keeps what is forgotten, and refuses other changes."""
    database = start.open_database(None, url)
    start.begin(database, new=NEW)
    with database.writing() as connection:
        for statement in _IN_SQLITE if database.is_sqlite else _IN_POSTGRESQL:
            connection.exec_driver_sql(statement)
    database.close()


def _kill(
    nursery: Nursery, names: Sequence[str], kills: int, draw: random.Random, crash: Callable[[], None] | None
) -> None:
    """Kill a process and start it again, so often: most while they serve, some while they start, some that compact."""
    for _ in range(kills):
        name = draw.choice(names)
        if draw.random() < 0.85:
            nursery.wait_for(name)
            time.sleep(draw.uniform(0, 0.7))
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


# --- What is compared -------------------------------------------------------------------------------------------------


def compare(url: str, nursery: Nursery, sent: Sequence[Sent], lines: Sequence[bytes]) -> Figures:
    """Compare what was answered, the journal, what processes knew, what was exported, snapshots and rows."""
    entries, rows = read_database(url)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    requests = [one for one in sent if one.path != "/v1/predict"]
    compare_answers(requests, entries)
    compare_rows(sent, entries, rows)
    known = dict[int, str]()
    for position, digest in nursery.digests():
        assert known.setdefault(position, digest) == digest, f"Two processes differ at position {position}."
    folded = start.empty(NEW)
    for _, group in groupby(entries, lambda entry: entry.batch):
        folded = fold(folded, list(group))
        if folded.position in known:
            digest = known.pop(folded.position)
            assert digest == digest_of(folded), f"A process differs from the fold at position {folded.position}."
    assert not known, f"There is no commit that ends at {sorted(known)[:5]}."
    compare_end(url, folded, entries, lines)
    log = (nursery.folder / "log").read_text()
    for word in ("damaged", "cannot be followed", "Traceback", '"error"'):
        assert word not in log, log[log.index(word) - 500 :][:3000]
    n_answered = sum(one.status == 200 for one in requests)
    return Figures(
        answered=n_answered,
        unanswered=sum(one.status in (None, 503) for one in requests),
        again=sum(one.times > 1 for one in requests),
        entries=len(entries),
        rows=folded.tagger.n_rows_,
        compared=sum(1 for _ in nursery.digests()),
    )


def read_database(url: str) -> tuple[list[Entry], dict[str, Any]]:
    """Return all entries, also those that were compacted, and the tags of rows, by plain SQL."""
    engine = sql.create_engine(url)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT e.position, e.batch, e.time, e.kind, e.who, coalesce(e.body, w.body) FROM entries e "
            "LEFT JOIN witness w ON w.position = e.position ORDER BY e.position"
        ).all()
        rows = {row.id: row for row in connection.exec_driver_sql("SELECT id, state, tags FROM rows")}
        if engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    engine.dispose()
    return [Entry._make([*values, json.loads(body)]) for *values, body in found], rows


def compare_answers(requests: Sequence[Sent], entries: Sequence[Entry]) -> None:
    """See that what was answered is in the journal once, as it was said, and what was refused is not."""
    by_name = {one.name: one for one in requests}
    counts = Counter(entry.who for entry in entries)
    assert set(counts) <= set(by_name), "The journal has what nobody has sent."
    for one in requests:
        if one.status in (None, 503):
            # Nobody said what became of it: also a database that is killed may have committed it.
            assert counts[one.name] <= 1, f"{one.name} is in the journal {counts[one.name]} times."
        elif one.status == 200:
            assert counts[one.name] == 1, f"{one.name} is in the journal {counts[one.name]} times, but was answered."
            entry = entries[one.answer["position"] - 1]
            assert entry.who == one.name, f"{one.name} is not where the answer said it is."
        else:
            assert counts[one.name] == 0, f"{one.name} was refused, but is in the journal."
            # Tags that are to be changed may be no longer there; all else has to be taken.
            assert one.path.startswith("/v1/tags"), f"{one.path} {one.body}: {one.status} {one.answer}"
    for entry in entries:
        path = f"/v1/tags/{entry.kind}" if entry.kind not in ("learn", "feedback") else f"/v1/{entry.kind}"
        one = by_name[entry.who]
        assert path == one.path
        if entry.kind in ("learn", "feedback"):
            compare_lesson(one, entry)


def compare_lesson(one: Sent, entry: Entry) -> None:
    """See that an entry has the rows of a request."""
    given, learned = one.body["rows"], entry.body["rows"]
    assert [row.get("id") for row in given] == [row["id"] for row in learned]
    for row, found in zip(given, learned, strict=True):
        if "tags" in row:
            assert found["tags"] == row["tags"]
        else:
            assert set(row["add"]) <= set(found["tags"])
        if entry.kind == "learn":
            assert found["cells"] == {name: cell for name, cell in row.items() if name not in ("id", "tags")}
    if one.status == 200:
        assert one.answer["learned"] == sum(row["tags"] is not None for row in learned)


def compare_rows(sent: Sequence[Sent], entries: Sequence[Entry], rows: dict[str, Any]) -> None:
    """See that rows are what was said of them last, and that those that were predicted are there."""
    last = {row["id"]: row["tags"] for entry in entries for row in entry.body.get("rows", ()) if row["id"] is not None}
    for identity, tags in last.items():
        found = rows[identity]
        assert (found.state, found.tags and json.loads(found.tags)) == ("waiting" if tags is None else "tagged", tags)
    for one in sent:
        if one.path == "/v1/predict":
            assert one.status in (200, 503, None), f"{one.status} {one.answer}"
            if one.status == 200:
                for row in one.body["rows"]:
                    assert row["id"] in rows, f"{row['id']} was predicted, and does not wait."


def compare_end(url: str, folded: Folded, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
    """See that the fold is what the service wrote when it ended, and what its export gives."""
    assert folded.position == len(entries)
    assert not folded.refused
    # What was said of a row before is known, and not learned again.
    state = folded.tagger.state
    n_taught = sum(row["tags"] is not None for entry in entries for row in entry.body.get("rows", ()))
    assert folded.tagger.n_rows_ + state.n_known == n_taught, "Rows were learned twice, or not at all."
    database = start.open_database(None, url)
    newest = snapshots.newest(database)
    database.close()
    assert newest is not None
    assert (newest.position, digest_of(newest)) == (folded.position, digest_of(folded))
    assert digest_of(export.learned(lines)) == digest_of(folded), "The exported journal gives another model."
    exported = [Entry(**json.loads(line)) for line in lines[1:]]
    assert exported == entries[len(entries) - len(exported) :]
