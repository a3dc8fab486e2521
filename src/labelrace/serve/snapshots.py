"""Snapshots: the model at a position, so that a start need not fold the whole journal.

A snapshot is the file of the tagger (safetensors with a JSON header and a checksum), with the quality in its header. It
is written in parts, each a commit of its own, so that nobody waits for long, and counts once its entry exists. A
damaged one is skipped, with a warning in the log, and an older one is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.engine import Connection
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from labelrace.base import model_file
from labelrace.exceptions import LabelraceError
from labelrace.serve import quality
from labelrace.serve.database import PARTS, SNAPSHOTS, Database
from labelrace.serve.fold import Folded, served
from labelrace.serve.journal import OtherEntries, check_entry
from labelrace.serve.problems import Problem
from labelrace.tables import Tagger
from labelrace.typing import Array

LOGGER = logging.getLogger("labelrace.serve")

KEPT = 3
"""Snapshots that are kept: the newest, and older ones in case it is damaged."""

_PART = 2**20
_FIELD = "serve"


class UnreadableError(ValueError):
    """The bytes of a snapshot are not those that were written."""


class Draft(NamedTuple):
    """A snapshot whose parts are written, but which does not count yet."""

    position: int
    maker: str
    n_parts: int
    size: int
    digest: str
    time: float  # of the entry at the position


def save(database: Database, folded: Folded) -> bool:
    """Write a snapshot, unless this position has an intact one; return whether it was written."""
    with database.reading() as connection:
        is_there = folded.position in positions(connection)
        if is_there and is_whole(connection, folded.position):
            return False
    made = draft(database, folded)
    with database.writing() as connection:
        if is_there and not is_whole(connection, folded.position):
            remove(connection, [folded.position], but=made.maker)
        return finish(connection, made)


def draft(database: Database, folded: Folded) -> Draft:
    """Write the parts of a snapshot, each in a commit of its own."""
    maker, digest, size = secrets.token_hex(8), hashlib.sha256(), 0
    for number, part in enumerate(_parts(folded)):
        digest.update(part)
        size += len(part)
        values = {"position": folded.position, "maker": maker, "number": number, "body": part}
        with database.writing() as connection:
            connection.execute(PARTS.insert(), values)
    return Draft(folded.position, maker, number + 1, size, digest.hexdigest(), folded.time)


def finish(connection: Connection, made: Draft) -> bool:
    """Let a snapshot count, unless there is one of its position; return whether it does.

    Raises
    ------
    OtherEntries
        If the journal has lost entries that the model has learned.
    """
    check_entry(connection, made.position, made.time)
    mine = PARTS.c.maker == made.maker
    n_there = connection.execute(sql.select(sql.func.count()).where(mine)).scalar()
    # Another process may have been faster, or has removed old snapshots.
    if n_there != made.n_parts or made.position in positions(connection):
        discard(connection, made)
        return False
    values = {"position": made.position, "maker": made.maker, "time": time.time(), "size": made.size}
    connection.execute(SNAPSHOTS.insert(), {**values, "digest": made.digest})
    _remove_old(connection)
    return True


def discard(connection: Connection, made: Draft) -> None:
    """Remove the parts of a snapshot that does not count."""
    connection.execute(PARTS.delete().where(PARTS.c.maker == made.maker))


def remove(connection: Connection, listed: Sequence[int], but: str = "") -> None:
    """Remove the snapshots at some positions, and all parts there but those of one maker."""
    connection.execute(SNAPSHOTS.delete().where(SNAPSHOTS.c.position.in_(listed)))
    connection.execute(PARTS.delete().where(PARTS.c.position.in_(listed), PARTS.c.maker != but))


def positions(connection: Connection) -> list[int]:
    """Return the positions of the snapshots, the newest first."""
    found = connection.execute(sql.select(SNAPSHOTS.c.position).order_by(SNAPSHOTS.c.position.desc()))
    return [int(position) for position in found.scalars()]


def newest(database: Database, before: int | None = None) -> Folded | None:
    """Load the newest intact snapshot of those at ``before`` or earlier; None if there is none."""
    tried = set[int]()
    while True:
        with database.reading() as connection:
            # Others may write and remove some while one is read.
            listed = [at for at in positions(connection) if at not in tried and (before is None or at <= before)]
        if not listed:
            return None
        position = listed[0]
        tried.add(position)
        try:
            if (folded := load(database, position)) is not None:
                return folded
        except (LabelraceError, ValueError, KeyError, TypeError, Problem, OSError) as error:
            LOGGER.warning("The snapshot at position %d is damaged, an older one is used: %s", position, error)


def load(database: Database, position: int) -> Folded | None:
    """Load the snapshot at a position; None if there is none. One of entries that were lost counts as damaged."""
    with database.reading() as connection:
        content = read(connection, position)
    if content is None:
        return None
    folded = unpack(content)
    try:
        with database.reading() as connection:
            check_entry(connection, folded.position, folded.time)
    except OtherEntries as error:
        raise UnreadableError(str(error)) from None
    return folded


def read(connection: Connection, position: int) -> bytes | None:
    """Return the bytes of a snapshot; None if there is none at this position."""
    wanted = connection.execute(sql.select(SNAPSHOTS).where(SNAPSHOTS.c.position == position)).first()
    if wanted is None:
        return None
    query = sql.select(PARTS.c.body).where(PARTS.c.maker == wanted.maker).order_by(PARTS.c.number)
    content = b"".join(connection.execute(query).scalars())
    if len(content) != wanted.size or hashlib.sha256(content).hexdigest() != wanted.digest:
        raise UnreadableError("its bytes are not those that were written")
    return content


def is_whole(connection: Connection, position: int) -> bool:
    """Return whether there is an intact snapshot at a position."""
    try:
        return read(connection, position) is not None
    except UnreadableError:
        return False


def _remove_old(connection: Connection) -> None:
    """Remove all snapshots but the newest, and the first, which the journal began with."""
    listed = positions(connection)
    removed = [at for at in listed[KEPT:] if at > 0]
    remove(connection, removed)
    # Unfinished snapshots, unless a process may still be writing them.
    oldest = min(at for at in listed[:KEPT])
    connection.execute(PARTS.delete().where(PARTS.c.position < oldest, PARTS.c.position > 0))


@cache
def kernels() -> str:
    """Return which kernels multiply matrices here: with others the last digits of models are others.

    Examples
    --------
    >>> "blas" in kernels() or kernels() == ""
    True
    """
    found = (one for one in threadpool_info() if one["user_api"] == "blas")
    return ", ".join(sorted({f"{one['internal_api']} {one['version']} {one.get('architecture', '')}" for one in found}))


def pack(folded: Folded) -> bytes:
    """Return the bytes of a snapshot."""
    return b"".join(_parts(folded))


def _parts(folded: Folded) -> Iterator[bytes]:
    """Yield the bytes of a snapshot in parts of nearly the same size."""
    header, tensors = folded.tagger.pack(exact=True)
    own = {
        "position": folded.position,
        "quality": quality.pack(folded.quality),
        "refused": [list(one) for one in folded.refused],
        "time": folded.time,
        "kernels": kernels(),
    }
    waiting = bytearray()
    for piece in model_file.file_parts({**header, _FIELD: own}, tensors):
        waiting += bytes(piece)
        while len(waiting) >= _PART:
            yield bytes(waiting[:_PART])
            del waiting[:_PART]
    yield bytes(waiting)


def unpack(content: bytes) -> Folded:
    """Return the model and quality in the bytes of a snapshot."""
    header, tensors = _read(content)
    own = header.pop(_FIELD)
    if (there := own.get("kernels")) != (here := kernels()):
        LOGGER.warning(
            "The snapshot at position %d was written with other kernels of linear algebra, %s and not %s: what is "
            "learned here may differ in its last digits.",
            own["position"],
            there,
            here,
        )
    tagger = served(Tagger.from_file(header, tensors))
    refused = tuple((int(position), str(why)) for position, why in own["refused"])
    return Folded(int(own["position"]), tagger, quality.unpack(own["quality"]), refused, float(own["time"]))


def _read(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    # The library reads a header with its metadata from a file only.
    with tempfile.NamedTemporaryFile(suffix=".safetensors", delete=False) as file:
        file.write(content)
    try:
        return model_file.read(Path(file.name))
    finally:
        with contextlib.suppress(OSError):
            Path(file.name).unlink()
