"""The journal as a file of JSON lines, and its start.

The first line has the kind of file and the tagger's parameters; if the journal began with a tagger, or was
compacted, it has the snapshot, as text. Every further line is an entry: position, batch, time, kind, who, body.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from sqlalchemy.engine import Connection

from labelrace.exceptions import DataFormatError
from labelrace.serve import snapshots
from labelrace.serve.database import Database
from labelrace.serve.fold import KINDS, TEACHING, Folded, fold_all
from labelrace.serve.journal import Compacted, Entry, Journal, as_text
from labelrace.serve.problems import busy
from labelrace.serve.start import PARAMETERS, empty

FORMAT = 1
_KIND = "labelrace journal"
# What the body of a change has.
_FIELDS: dict[str, dict[str, type]] = {
    "rename": {"names": dict},
    "merge": {"tags": list, "into": str},
    "retire": {"tags": list},
    "describe": {"tags": dict},
    "set": {"parameters": dict},
}


def lines(database: Database) -> Iterator[bytes]:
    """Yield the lines of the journal as it is now, each with its end.

    Some entries are read at a time: whoever takes them slowly holds nothing of the database.
    """
    journal = Journal(database)
    with database.reading() as connection:
        header, end = _header(connection, journal), journal.head(connection)
    yield (as_text(header) + "\n").encode()
    position = header["position"]
    while position < end:
        try:
            with database.reading() as connection:
                batches = journal.batches(connection, position)
        except Compacted:
            batches = []
        if not batches:
            raise busy("The journal was compacted while it was exported: export it again.")
        for entry in chain.from_iterable(batches):
            if entry.position <= end:
                yield (as_text(entry._asdict()) + "\n").encode()
        position = batches[-1][-1].position


def _header(connection: Connection, journal: Journal) -> dict[str, Any]:
    """Return the first line: the start of the entries."""
    given, first = journal.fact(connection, PARAMETERS), journal.compacted(connection)
    header: dict[str, Any] = {"kind": _KIND, "format": FORMAT, "parameters": given, "position": 0}
    if not first and given is not None:
        return header
    # The oldest intact snapshot.
    for position in sorted(at for at in snapshots.positions(connection) if at >= first):
        with contextlib.suppress(snapshots.UnreadableError):
            content = snapshots.read(connection, position)
            if content is not None:
                return header | {"position": position, "snapshot": base64.b64encode(content).decode()}
    raise busy("The journal needs a snapshot, but has no intact snapshot: restore a backup.")


def read(source: Iterable[str | bytes]) -> tuple[Folded, Iterator[list[Entry]], dict[str, Any]]:
    """Return the start of a journal of JSON lines, its batches, and the first line."""
    listed = iter(source)
    header = _object(next(listed, "{}"), 1)
    if header.get("kind") != _KIND or header.get("format") != FORMAT or "parameters" not in header:
        raise DataFormatError("The first line must be that of a journal of labelrace, got another: export it again.")
    if "snapshot" in header:
        start = snapshots.unpack(base64.b64decode(header["snapshot"]))
    else:
        start = empty(header["parameters"])
    return start, _batches(listed, start.position), header


def fold_export(source: Iterable[str | bytes]) -> Folded:
    """Return the model and quality after an exported journal: one fold over all of it."""
    start, batches, _ = read(source)
    return fold_all(start, batches)


def _batches(listed: Iterator[str | bytes], last: int) -> Iterator[list[Entry]]:
    batch = list[Entry]()
    for number, line in enumerate(listed, 2):
        found = _object(line, number)
        if found.keys() != set(Entry._fields):
            raise DataFormatError(f"Line {number} must be an entry of a journal, got {str(line)[:60]!r}.")
        if (wrong := _wrong_entry(found)) is not None:
            raise DataFormatError(f"Line {number} must be an entry that this version can learn, but {wrong}.")
        entry, last = Entry(**found), last + 1
        if entry.position != last:
            raise DataFormatError(f"Line {number} must have position {last}, got {entry.position!r}: export it again.")
        if batch and entry.batch != batch[0].batch:
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch


def _wrong_entry(found: dict[str, Any]) -> str | None:
    """Return what is wrong with an entry, if anything is: what is learned from it is refused later, by the model."""
    kind, body = found["kind"], found["body"]
    if kind not in KINDS:
        return f"its kind is {kind!r:.40}"
    if not isinstance(found["who"], str) or not isinstance(found["time"], int | float):
        return "who is no text, or time no number"
    names = _FIELDS.get(kind, {"rows": list})
    if not isinstance(body, dict) or any(not isinstance(body.get(name), kinds) for name, kinds in names.items()):
        return f"its body has no {' and '.join(names)}"
    if kind in TEACHING and not (body["rows"] and all(map(_is_row, body["rows"]))):
        return "a row lacks id, cells, tags, was or again"
    return None


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and row.keys() == {"id", "cells", "tags", "was", "again"}
        and isinstance(row["id"], str | None)
        and isinstance(row["cells"], dict)
        and isinstance(row["tags"], list | None)
        and all(isinstance(tag, str) for tag in row["tags"] or ())
        and (row["was"] is None or (isinstance(row["was"], dict) and {"tags", "probabilities"} <= row["was"].keys()))
    )


def _object(line: str | bytes, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise DataFormatError(f"Line {number} must be JSON: {error}.") from None
    if not isinstance(found, dict):
        raise DataFormatError(f"Line {number} must be an object of a journal, got {str(line)[:60]!r}.")
    return found
