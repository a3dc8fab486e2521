"""Rows with ids: those that wait for their tags, and the others with their last tags.

They are not in the journal, but people see them: a predicted row waits here until somebody gives its tags, and then the
journal has both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from labelrace.serve.database import ROWS, Database
from labelrace.serve.fold import TEACHING
from labelrace.serve.journal import Entry, Journal, as_text
from labelrace.serve.listing import Wanted, page, searchable
from labelrace.serve.problems import Problem
from labelrace.serve.quality import time_of

STATES = WAITING, TAGGED = "waiting", "tagged"
OPEN_SECONDS = 60.0
"""Seconds for which a row counts as open."""

_MAX_WORDS = 2000
_MAX_HISTORY = 20
# The fact that tells of rows that were opened, and the number of these.
_OPENED, _MAX_OPENED = "opened", 20
# Columns that stay as they are when a row comes again.
_KEPT = ("id", "open_by")

_COLUMNS = [
    ROWS.c[name]
    for name in ("id", "cells", "state", "tags", "suggested", "who", "time", "history", "open_by", "open_until")
]
# Made once, as making a statement takes longer than the database takes for it. Each state has an index of its own.
_FIND = sql.select(*_COLUMNS).where(ROWS.c.id.in_(sql.bindparam("ids", expanding=True)))
_NEWEST = sql.select(ROWS.c.arrived, ROWS.c.id).where(ROWS.c.state == WAITING).order_by(ROWS.c.arrived.desc()).limit(1)
_LAST_ARRIVED = sql.select(
    *(sql.select(sql.func.max(ROWS.c.arrived)).where(ROWS.c.state == state).scalar_subquery() for state in STATES)
)


class StoredRow(NamedTuple):
    """A row, as it is stored."""

    id: str
    cells: dict[str, Any]
    state: str
    tags: list[str] | None
    suggested: dict[str, Any] | None
    who: str
    time: float
    history: list[dict[str, Any]]
    open_by: str | None


class Seen(NamedTuple):
    """A row that was predicted."""

    id: str
    cells: dict[str, Any]
    suggested: dict[str, Any] | None
    review: bool
    useful: float


class News(NamedTuple):
    """What happened to rows last, in whichever process."""

    arrived: int  # counts up
    id: str | None  # of the row that arrived last, and waits
    opened: list[list[Any]]  # of the last rows that somebody opened or closed: a number that counts up, id, and who


class Inbox:
    """The rows in a database.

    Parameters
    ----------
    database : Database
    max_waiting : int, default=100_000
        Rows that wait at most; the oldest are dropped.
    """

    def __init__(self, database: Database, max_waiting: int = 100_000) -> None:
        self.database = database
        self.max_waiting = max_waiting

    # --- Writing ------------------------------------------------------------------------------------------------------

    def add_predicted(self, connection: Connection, rows: Sequence[Seen]) -> int:
        """Add rows that were predicted; they wait, unless their tags were said of the same cells before.

        Return the number with which the last of them arrived.
        """
        # Of rows with one id the last counts.
        last = {row.id: row for row in rows}
        known = self.find(connection, last)
        values, now = list[dict[str, Any]](), time.time()
        arrived = self._arrived(connection)
        for number, row in enumerate(last.values()):
            before = known.get(row.id)
            is_told = before is not None and before.state == TAGGED and before.cells == row.cells
            values.append(
                {
                    **_described(row.id, row.cells),
                    "arrived": arrived + number,
                    "time": before.time if is_told and before else now,
                    "suggested": row.suggested and as_text(row.suggested),
                    "review": row.review,
                    "useful": row.useful,
                    "state": TAGGED if is_told else WAITING,
                    "tags": as_text(before.tags) if is_told and before else None,
                    "who": before.who if is_told and before else "",
                    "history": as_text(before.history if before else []),
                    "open_until": 0.0,
                }
            )
        connection.execute(self._upsert_open, values)
        # Looked at now and then: counting takes time.
        if arrived // 500 != (arrived + len(values)) // 500:
            self._drop_oldest(connection)
        return arrived + len(values) - 1

    def add_told(self, connection: Connection, entries: Iterable[Entry], known: Mapping[str, StoredRow]) -> None:
        """Store the tags of rows in entries; ``known`` are the rows that were there before."""
        told = [(entry, row) for entry in entries for row in entry.body["rows"] if row["id"] is not None]
        if not told:
            return
        arrived, values = self._arrived(connection), dict[str, dict[str, Any]]()
        histories = {id: row.history for id, row in known.items()}
        for number, (entry, row) in enumerate(told):
            is_told, id = row["tags"] is not None, row["id"]
            said = {"position": entry.position, "time": time_of(entry.time), "who": entry.who or None}
            if id not in histories:
                said["new"] = True
            histories[id] = [*histories.get(id, ()), {**said, "tags": row["tags"]}][-_MAX_HISTORY:]
            values[id] = {
                **_described(id, row["cells"]),
                "arrived": arrived + number,
                "time": entry.time,
                "suggested": row["was"] and as_text(row["was"]),
                "review": False,
                "useful": 0.0,
                "state": TAGGED if is_told else WAITING,
                "tags": as_text(row["tags"]) if is_told else None,
                "who": entry.who if is_told else "",
                "history": as_text(histories[id]),
                "open_until": 0.0,
            }
        connection.execute(self._upsert, list(values.values()))

    def take_back(self, entries: Sequence[Entry]) -> None:
        """Let rows be as they were before entries that cannot be learned; done again, it changes nothing.

        A row that was not there before goes; of others the cells stay that were sent last.
        """
        teaching = [entry for entry in entries if entry.kind in TEACHING]
        ids = {row["id"] for entry in teaching for row in entry.body["rows"]} - {None}
        if not ids:
            return
        refused = {entry.position for entry in teaching}
        with self.database.writing() as connection:
            for id, stored in self.find(connection, ids).items():
                history = [said for said in stored.history if said["position"] not in refused]
                if len(history) == len(stored.history):
                    continue
                is_row = ROWS.c.id == id
                if not history and stored.state == TAGGED and stored.history[0].get("new"):
                    connection.execute(ROWS.delete().where(is_row))
                    continue
                values: dict[str, Any] = {"history": as_text(history)}
                if stored.history[-1]["position"] in refused:
                    tags, who = (history[-1]["tags"], history[-1]["who"]) if history else (None, None)
                    values["state"] = WAITING if tags is None else TAGGED
                    values["tags"] = None if tags is None else as_text(tags)
                    values["who"] = (who or "") if tags is not None else ""
                    values["review"] = tags is None
                    values["useful"] = 1.0 if tags is None else 0.0
                connection.execute(ROWS.update().where(is_row).values(**values))

    def open(self, connection: Connection, id: str, who: str, is_open: bool) -> int:
        """Note that somebody opens or closes a row; while somebody else has it open, that stays.

        Return the number of this among all that were opened or closed; 0 if nothing was noted.
        """
        now = time.time()
        is_free = (ROWS.c.open_by == who) | (ROWS.c.open_until <= now)
        values = {"open_by": who, "open_until": now + OPEN_SECONDS if is_open else 0.0}
        if not connection.execute(ROWS.update().where((ROWS.c.id == id) & is_free).values(**values)).rowcount:
            return 0
        opened = self._opened(connection)
        number: int = opened[-1][0] + 1 if opened else 1
        said = [*opened, [number, id, who if is_open else None]]
        Journal(self.database).state(connection, _OPENED, said[-_MAX_OPENED:])
        return number

    def rank(self, connection: Connection, useful: Mapping[str, float]) -> None:
        """Store the usefulness of waiting rows."""
        is_row = (ROWS.c.id == sql.bindparam("row")) & (ROWS.c.state == WAITING)
        statement = ROWS.update().where(is_row).values(useful=sql.bindparam("value"))
        connection.execute(statement, [{"row": id, "value": value} for id, value in useful.items()])

    def _arrived(self, connection: Connection) -> int:
        return max(int(arrived or 0) for arrived in connection.execute(_LAST_ARRIVED).one()) + 1

    @cached_property
    def _upsert(self) -> Any:
        """The statement that adds rows, or replaces those with the same id."""
        return self._upserting(_KEPT)

    @cached_property
    def _upsert_open(self) -> Any:
        """The same; who has a row open keeps it."""
        return self._upserting((*_KEPT, "open_until"))

    def _upserting(self, kept: Sequence[str]) -> Any:
        statement = self.database.insert(ROWS)
        replaced = {column.name: statement.excluded[column.name] for column in ROWS.c if column.name not in kept}
        return statement.on_conflict_do_update(index_elements=["id"], set_=replaced)

    def _drop_oldest(self, connection: Connection) -> None:
        waiting = sql.select(ROWS.c.arrived).where(ROWS.c.state == WAITING).order_by(ROWS.c.arrived.desc())
        newest_dropped = connection.execute(waiting.offset(self.max_waiting).limit(1)).scalar()
        if newest_dropped is not None:
            connection.execute(ROWS.delete().where(ROWS.c.state == WAITING, ROWS.c.arrived <= newest_dropped))

    # --- Reading ------------------------------------------------------------------------------------------------------

    def find(self, connection: Connection, ids: Iterable[str]) -> dict[str, StoredRow]:
        """Return the existing rows among some ids."""
        wanted = list(ids)
        if not wanted:
            return {}
        found = connection.execute(_FIND, {"ids": wanted})
        return {row.id: row for row in map(_stored, found)}

    def news(self, connection: Connection) -> News:
        """Return what happened last."""
        row = connection.execute(_NEWEST).first()
        return News(row.arrived if row else 0, row.id if row else None, self._opened(connection))

    def _opened(self, connection: Connection) -> list[list[Any]]:
        return Journal(self.database).fact(connection, _OPENED) or []

    def n_waiting(self, connection: Connection) -> int:
        """Count the rows that wait."""
        return int(connection.execute(sql.select(sql.func.count()).where(ROWS.c.state == WAITING)).scalar() or 0)

    def page(self, connection: Connection, wanted: Wanted) -> tuple[list[StoredRow], str | None]:
        """Return some rows, and the cursor of the next page."""
        rows, following = page(connection, _COLUMNS, wanted)
        return [_stored(row) for row in rows], following


def unknown_rows(rows: Sequence[tuple[int, str]]) -> Problem:
    """Return the problem of unknown rows, by their numbers and ids."""
    errors = [
        {"row": at, "field": "id", "detail": f"There is no row {id!r}: predict it with this id before, or learn it."}
        for at, id in rows
    ]
    return Problem(404, "Unknown row", f"Row {rows[0][0]}: {errors[0]['detail']}", errors)


def _described(id: str, cells: dict[str, Any]) -> dict[str, Any]:
    texts = (text for cell in cells.values() for text in (cell if isinstance(cell, list) else [cell]))
    words = " ".join([id, *(str(text) for text in texts if text is not None)])
    return {"id": id, "cells": as_text(cells), "words": searchable(words[:_MAX_WORDS])}


def _stored(row: Any) -> StoredRow:
    tags, suggested = (None if text is None else json.loads(text) for text in (row.tags, row.suggested))
    history = json.loads(row.history)
    open_by = row.open_by if row.open_until > time.time() else None
    return StoredRow(row.id, json.loads(row.cells), row.state, tags, suggested, row.who, row.time, history, open_by)
