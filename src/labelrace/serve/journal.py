"""The journal: lessons and changes, one entry after the other, never changed.

An entry is a request that teaches. The entries of one commit are a batch: they have the position of the first of them
as ``batch``, and are learned together, so that learning the journal again gives the same model to the bit.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from labelrace.serve.database import ENTRIES, FACTS, Database

LOGGER = logging.getLogger("labelrace.serve")

# Entries that are read at once; a batch has fewer. Characters after which no further batch is read with them.
N_AT_ONCE, MAX_CHARACTERS = 1000, 1 << 24
MAX_BATCH = 500
# Seconds that clocks may differ without a word.
_AHEAD = 3600

# Made once, as making a statement takes longer than the database takes for it.
_LAST = sql.select(ENTRIES.c.position, ENTRIES.c.time).order_by(ENTRIES.c.position.desc()).limit(1)
_TIME = sql.select(ENTRIES.c.time).where(ENTRIES.c.position == sql.bindparam("at"))
_INSERT = ENTRIES.insert()


class Entry(NamedTuple):
    """A lesson or a change of tags or settings."""

    position: int
    batch: int
    time: float
    kind: str
    who: str
    body: dict[str, Any]


class NewEntry(NamedTuple):
    """An entry that is to be appended."""

    kind: str
    who: str
    key: str | None
    digest: str
    learned: int
    body: dict[str, Any]


class Answered(NamedTuple):
    """The answer to a request with a key."""

    position: int
    digest: str
    learned: int


class Compacted(Exception):  # noqa: N818
    """The entries to read were compacted: load a snapshot instead."""


class OtherEntries(Exception):  # noqa: N818
    """Something was learned from entries that the journal no longer has: it was restored from a copy without them."""


def check_entry(connection: Connection, position: int, time: float) -> None:
    """See that the journal still has the entry up to which something was learned; its time is 0 where it is unknown.

    Entries are only appended. So if this one is there, so are those before it; a journal that lost its end and went on
    has another one there, of another time.

    Raises
    ------
    OtherEntries
        If there is none, or another.
    """
    if not position:
        return
    found = connection.execute(_TIME, {"at": position}).scalar()
    if found is None or (time and found != time):
        raise OtherEntries(f"the journal has lost entries that were learned, up to position {position}")


class Journal:
    """The entries in a database, and facts about all of them.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._is_ahead = False  # which was said

    def head(self, connection: Connection) -> int:
        """Return the position of the last entry; 0 if there is none."""
        return int(connection.execute(sql.select(sql.func.max(ENTRIES.c.position))).scalar() or 0)

    def compacted(self, connection: Connection) -> int:
        """Return the position up to which entries were compacted; 0 if none was."""
        query = sql.select(sql.func.max(ENTRIES.c.position)).where(ENTRIES.c.body.is_(None))
        return int(connection.execute(query).scalar() or 0)

    def append(self, connection: Connection, entries: Sequence[NewEntry]) -> list[Entry]:
        """Append a batch, on a connection that writes."""
        last = connection.execute(_LAST).first()
        first = last.position + 1 if last else 1
        now, then = time.time(), last.time if last else 0.0
        if then > now + _AHEAD and not self._is_ahead:
            self._is_ahead = True
            LOGGER.warning("The journal is %.0f hours ahead of this clock: its times stand still.", (then - now) / 3600)
        # A clock may be set back; the journal's does not.
        now = max(now, then)
        made = [Entry(first + i, first, now, one.kind, one.who, one.body) for i, one in enumerate(entries)]
        values = [
            {**one._asdict(), "body": as_text(one.body), "key": new.key, "digest": new.digest, "learned": new.learned}
            for one, new in zip(made, entries, strict=True)
        ]
        connection.execute(_INSERT, values)
        return made

    def answered(self, connection: Connection, keys: Iterable[str]) -> dict[str, Answered]:
        """Return the answers to requests with some keys."""
        wanted = list(keys)
        if not wanted:
            return {}
        columns = ENTRIES.c.key, ENTRIES.c.position, ENTRIES.c.digest, ENTRIES.c.learned
        found = connection.execute(sql.select(*columns).where(ENTRIES.c.key.in_(wanted)))
        return {key: Answered(*rest) for key, *rest in found}

    def keys(self, connection: Connection, start: str) -> list[str]:
        """Return the keys of requests that begin with a text, in the order of the journal."""
        begins = ENTRIES.c.key.startswith(start, autoescape=True)
        found = connection.execute(sql.select(ENTRIES.c.key).where(begins).order_by(ENTRIES.c.position)).scalars()
        # SQLite takes capitals and small letters for the same.
        return [key for key in found if key.startswith(start)]

    def batches(self, connection: Connection, after: int) -> list[list[Entry]]:
        """Return the next batches after a position, a limited number of them; none at the end.

        Raises
        ------
        Compacted
            If the next entries were compacted.
        """
        columns = [ENTRIES.c[name] for name in Entry._fields]
        query = sql.select(*columns).where(ENTRIES.c.position > after).order_by(ENTRIES.c.position).limit(N_AT_ONCE)
        found = list[sql.Row[Any]]()
        # Some at a time: entries may be large.
        with connection.execute(query, execution_options={"yield_per": 20}) as rows:
            left = MAX_CHARACTERS
            for row in rows:
                if left < 0 and row.batch != found[-1].batch:
                    break
                found.append(row)
                left -= len(row.body or "")
        if found and (found[0].body is None or found[0].position != after + 1):
            raise Compacted
        entries = [Entry(row.position, row.batch, row.time, row.kind, row.who, json.loads(row.body)) for row in found]
        groups = [list(batch) for _, batch in groupby(entries, lambda entry: entry.batch)]
        # The last one may go on.
        return groups[:-1] if len(found) == N_AT_ONCE and len(groups) > 1 else groups

    def walk(self, after: int) -> Iterator[list[Entry]]:
        """Yield all batches after a position."""
        while True:
            with self.database.reading() as connection:
                found = self.batches(connection, after)
            if not found:
                return
            yield from found
            after = found[-1][-1].position

    def fact(self, connection: Connection, name: str) -> Any:
        """Return a fact, or None."""
        text = connection.execute(sql.select(FACTS.c.value).where(FACTS.c.name == name)).scalar()
        return None if text is None else json.loads(text)

    def state(self, connection: Connection, name: str, value: Any) -> None:
        """Store a fact; it replaces the one of this name."""
        connection.execute(FACTS.delete().where(FACTS.c.name == name))
        connection.execute(FACTS.insert(), {"name": name, "value": as_text(value)})


def as_text(value: Any) -> str:
    """Return a JSON value as text, without spaces."""
    return _encode(value)


_encode = json.JSONEncoder(separators=(",", ":")).encode
