"""What is left of a journal whose processes were killed, compared with what was answered: for `benchmarks.durability`.

The journal is read by plain SQL, and folded in this process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sql

from benchmarks.crowd import Sent
from benchmarks.kills import NEW, Nursery, digest_of
from labelrace.serve import export, snapshots, start
from labelrace.serve.fold import Folded, fold
from labelrace.serve.journal import Entry

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


def begin(url: str) -> None:
    """Begin a journal, whose database keeps what is forgotten, and refuses other changes."""
    database = start.open_database(None, url)
    start.begin(database, new=NEW)
    with database.writing() as connection:
        for statement in _IN_SQLITE if database.is_sqlite else _IN_POSTGRESQL:
            connection.exec_driver_sql(statement)
    database.close()


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
    assert digest_of(export.fold_export(lines)) == digest_of(folded), "The exported journal gives another model."
    exported = [Entry(**json.loads(line)) for line in lines[1:]]
    assert exported == entries[len(entries) - len(exported) :]
