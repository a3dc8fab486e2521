"""The start of a service: a journal begins with a tagger or from nothing, or continues from its newest snapshot."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelrace.base.state_file import load
from labelrace.serve import snapshots
from labelrace.serve.database import FILE, Database, checked_url, url_of
from labelrace.serve.fold import Folded, served
from labelrace.serve.journal import Journal
from labelrace.serve.lessons import ID
from labelrace.tables import Tagger

# The facts of a journal: the parameters of a tagger that began from nothing, the hash of a tagger's file; or None.
PARAMETERS, FILE_DIGEST, FORMAT = "parameters", "tagger", "format"
VERSION = 1


def open_database(data: str | os.PathLike[str] | None, url: str | None, *, is_new: bool = False) -> Database:
    """Open the database of a journal; only a new one may be made."""
    if url is not None:
        database = Database(checked_url(url))
    elif data is None:
        raise ValueError("data must be the folder of a journal, or database its URL, got neither.")
    else:
        folder = Path(data)
        if not (folder / FILE).is_file() and not is_new:
            raise FileNotFoundError(
                f"There is no journal in {folder}: give a tagger, or begin from nothing with --new --tags COLUMN."
            )
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"The folder {folder} of the journal is not writable: change its permissions.")
        database = Database(url_of(folder))
    try:
        database.create()
        with database.reading() as connection:
            _check_format(Journal(database).fact(connection, FORMAT))
    except BaseException:
        database.close()
        raise
    return database


def check_beginning(tagger: str | os.PathLike[str] | None, new: Mapping[str, Any] | None) -> None:
    """Refuse a wrong tagger or parameters, before a folder is made for them."""
    if new is not None:
        empty(new)
    elif tagger is not None:
        load(Path(tagger), Tagger)


def begin(
    database: Database, tagger: str | os.PathLike[str] | None = None, new: Mapping[str, Any] | None = None
) -> None:
    """Begin a new journal; refuse a different beginning for one that has begun."""
    if tagger is not None and new is not None:
        raise ValueError("tagger and new must not be given together: begin with a tagger, or from nothing.")
    journal = Journal(database)
    digest = None if tagger is None else hashlib.sha256(Path(tagger).read_bytes()).hexdigest()
    parameters = None if new is None else dict(new)
    with database.reading() as connection:
        known = {name: journal.fact(connection, name) for name in (FORMAT, PARAMETERS, FILE_DIGEST)}
    if known[FORMAT] is not None:
        _check_same(known, parameters, digest)
        return
    made = None
    if tagger is None and parameters is None:
        raise ValueError("The journal has not begun: give a tagger, or begin from nothing with --new --tags COLUMN.")
    if parameters is not None:
        empty(parameters)
    elif tagger is not None:
        made = snapshots.draft(database, Folded(0, served(load(Path(tagger), Tagger))))
    with database.writing() as connection:
        # Another process may have been faster.
        known = {name: journal.fact(connection, name) for name in known}
        if known[FORMAT] is None:
            if made is not None:
                snapshots.finish(connection, made)
            journal.state(connection, PARAMETERS, parameters)
            journal.state(connection, FILE_DIGEST, digest)
            journal.state(connection, FORMAT, VERSION)
        elif made is not None:
            snapshots.discard(connection, made)
    if known[FORMAT] is not None:
        _check_same(known, parameters, digest)


def newest(database: Database) -> Folded:
    """Return the newest snapshot, or the start of the journal if there is none."""
    folded = snapshots.newest(database)
    if folded is not None:
        return folded
    journal = Journal(database)
    with database.reading() as connection:
        parameters, compacted = journal.fact(connection, PARAMETERS), journal.compacted(connection)
    if parameters is None or compacted:
        raise ValueError("The journal needs a snapshot, but has no intact snapshot: restore a backup.")
    return empty(parameters)


def empty(parameters: Mapping[str, Any]) -> Folded:
    """Return the empty start of a journal that has no tagger to begin with."""
    return Folded(0, served(Tagger(**{"id": ID, "random_state": 0, **parameters})))


def _check_format(version: int | None) -> None:
    if version is not None and version > VERSION:
        raise ValueError("The journal was written by a newer version of labelrace: upgrade labelrace.")


def _check_same(known: Mapping[str, Any], parameters: dict[str, Any] | None, digest: str | None) -> None:
    if digest is not None and digest != known[FILE_DIGEST]:
        raise ValueError(
            "The journal was started with another tagger: leave the tagger out to continue it, or name another folder."
        )
    if parameters is not None and parameters != known[PARAMETERS]:
        raise ValueError(
            "The journal was started with a tagger or with other parameters: leave out --new to continue it, or name "
            "another folder."
        )
