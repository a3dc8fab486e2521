"""Maintenance of a journal: import, backup and compaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from labelrace.base.files import check_target
from labelrace.serve import export, snapshots, start
from labelrace.serve.database import ENTRIES, Database
from labelrace.serve.fold import TEACHING, Folded, fold
from labelrace.serve.inbox import Inbox
from labelrace.serve.journal import Compacted, Entry, Journal, as_text
from labelrace.serve.problems import busy

# The last entry of those that an exported journal has no more.
_FORGOTTEN = {"kind": "learn", "who": "", "key": None, "digest": "", "learned": 0, "body": None}
# Entries that are written at once: others may write in between.
_AT_ONCE = 10_000


class Compaction(NamedTuple):
    """The result of compacting."""

    position: int  # up to which entries are compacted
    entries: int  # that lost their body


def import_journal(database: Database, source: Iterable[str | bytes]) -> int:
    """Write an exported journal into an empty database, and return the position of its last entry."""
    with database.reading() as connection:
        _check_empty(connection, Journal(database))
    first, batches, header = export.read(source)
    made = snapshots.draft(database, first) if "snapshot" in header else None
    try:
        return _write(database, first, batches, header, made)
    except BaseException:
        if made is not None:
            with database.writing() as connection:
                snapshots.discard(connection, made)
        raise


def _write(
    database: Database,
    first: Folded,
    batches: Iterable[Sequence[Entry]],
    header: Mapping[str, Any],
    made: snapshots.Draft | None,
) -> int:
    """Write what was read of a journal in one commit."""
    journal, inbox, position = Journal(database), Inbox(database), first.position
    with database.writing() as connection:
        # Others may have begun one while the snapshot was written.
        _check_empty(connection, journal)
        if position:
            # What was said before is in the snapshot only: the journal goes on from there, as one that was compacted.
            entry = {**_FORGOTTEN, "position": position, "batch": position, "time": first.time}
            connection.execute(ENTRIES.insert(), entry)
        if made is not None:
            snapshots.finish(connection, made)
        for batch in batches:
            values = [
                {**entry._asdict(), "body": as_text(entry.body), "key": None, "digest": "", "learned": 0}
                for entry in batch
            ]
            connection.execute(ENTRIES.insert(), values)
            teaching = [entry for entry in batch if entry.kind in TEACHING]
            ids = {row["id"] for entry in teaching for row in entry.body["rows"]} - {None}
            inbox.add_told(connection, teaching, inbox.find(connection, ids))
            position = batch[-1].position
        journal.state(connection, start.PARAMETERS, header["parameters"])
        journal.state(connection, start.FILE_DIGEST, None)
        journal.state(connection, start.FORMAT, start.VERSION)
    return position


def _check_empty(connection: Connection, journal: Journal) -> None:
    if journal.fact(connection, start.FORMAT) is not None or journal.head(connection):
        raise ValueError("The database must be empty to import a journal, but one has begun there: name another.")


def backup(database: Database, path: str | os.PathLike[str]) -> None:
    """Copy a journal of SQLite into a file, while it is in use; the copy is complete, or there is none."""
    if not database.is_sqlite:
        raise ValueError("backup is for journals in a folder: use pg_dump for PostgreSQL, or 'labelrace serve export'.")
    target = check_target(path, str(database.url.database))
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(str(database.url.database))) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def compact(database: Database) -> Compaction:
    """Remove the bodies of entries that the older one of two snapshots has; keys and positions stay.

    A snapshot of the end is written first. The one before it stays, with the entries after it, in case the newest is
    damaged; where there is none before it, nothing is forgotten. Both were read before anything is.
    """
    _save_newest(database)
    whole, damaged = _checked_snapshots(database)
    with database.reading() as connection:
        there = snapshots.positions(connection)
    usable = [at for at in whole if at in there]
    position, count = usable[1] if len(usable) > 1 else 0, 0
    if position:
        # From the first on: where an entry has no body, none before it has one.
        first = 1
        while first <= position:
            last = min(first + _AT_ONCE - 1, position)
            with database.writing() as connection:
                has_body = ENTRIES.c.position.between(first, last) & ENTRIES.c.body.is_not(None)
                count += connection.execute(ENTRIES.update().where(has_body).values(body=None)).rowcount
            first = last + 1
        with database.writing() as connection:
            older = [at for at in snapshots.positions(connection) if at < position]
            snapshots.remove(connection, [*older, *damaged])
    return Compaction(position, count)


def _save_newest(database: Database) -> None:
    """Write a snapshot of the end of the journal."""
    journal = Journal(database)
    for is_last in (False, False, True):
        folded = start.newest(database)
        try:
            for batch in journal.walk(folded.position):
                folded = fold(folded, batch)
                Inbox(database).take_back(folded.refused_of(batch))
        except Compacted:
            # By another process, at the same time; it has left a newer snapshot.
            if is_last:
                raise busy("The journal is being compacted by others.") from None
            continue
        if folded.tagger.is_fitted:
            snapshots.save(database, folded)
        return


def _checked_snapshots(database: Database) -> tuple[list[int], list[int]]:
    """Return the positions of intact and of damaged snapshots, the newest first."""
    whole, damaged = list[int](), list[int]()
    with database.reading() as connection:
        listed = [at for at in snapshots.positions(connection) if at > 0]
    for position in listed:
        try:
            if snapshots.load(database, position) is not None:
                whole.append(position)
        except snapshots.UnreadableError:
            damaged.append(position)
    return whole, damaged


def shrink(database: Database) -> None:
    """Give freed space back to the disk."""
    if database.is_sqlite:
        with closing(sqlite3.connect(str(database.url.database), timeout=60)) as connection:
            connection.execute("VACUUM")


def size_of(database: Database) -> int | None:
    """Return the bytes of SQLite's file; None for other databases."""
    return Path(str(database.url.database)).stat().st_size if database.is_sqlite else None
