"""Tables that people drop on a page: read by the same readers as everywhere, in a temporary file, within limits."""

from __future__ import annotations

import io
import json
import math
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import Request

from labelrace.serve.answers import read_json
from labelrace.serve.problems import Problem
from labelrace.tables import join_tags
from labelrace.tables.cells import as_text
from labelrace.tables.read import Table, file_tables
from labelrace.tables.tags import tags_of_table, without_tags
from labelrace.tables.write import table_writer

MAX_BYTES = 10 * 10**6
"""The largest file that is read. It is less than a body may have, as its rows come back with tags."""
MAX_ROWS = 20_000
MAX_COLUMNS = 1000
MAX_CELLS = 2_000_000
"""The largest number of cells of a table: its rows times its columns, also where rows lack a column."""
# The largest JSON that is written as a file: that of a file with its tags.
_MAX_BODY = 16 * 10**6
# The largest unpacked size of an Excel file: it is read from memory.
_MAX_UNPACKED = 200 * 10**6
_BATCH = 1000

READABLE = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".xlsx")
WRITABLE = (".csv", ".tsv", ".jsonl", ".xlsx")
# Names that columns of tags have, in the order in which they are looked for.
_TAGS = ("tags", "tag", "labels", "label", "categories", "category", "topics", "topic", "keywords")


async def receive(request: Request) -> bytes:
    """Return the body of a request, if it is not too large."""
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > _MAX_BODY:
            raise Problem(413, "File too large", f"A file may have at most {MAX_BYTES // 10**6} MB: divide it.")
        parts.append(part)
    return b"".join(parts)


def read_rows(name: str, content: bytes, tags: str | None = None) -> bytes:
    """Read a file, and return its columns, its rows and their tags as JSON.

    Parameters
    ----------
    name : str
        The name of the file. Its suffix says how it is read; nothing else of it is used.
    content : bytes
    tags : str or None, default=None
        The column of tags; by default one with such a name; empty for none.

    Returns
    -------
    JSON bytes
        ``columns`` are the columns without tags, ``rows`` lists of their cells, ``tags_column`` the column of tags, or
        null, ``tags`` lists of texts, or null for rows without, ``names`` all columns, ``notes`` warnings.
    """
    suffix = _suffix(name, READABLE)
    if len(content) > MAX_BYTES:
        raise Problem(413, "File too large", f"A file may have at most {MAX_BYTES // 10**6} MB: divide it.")
    if suffix == ".xlsx":
        _check_unpacked(content)
    with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always", UserWarning)
        path = Path(folder, f"table{suffix}")
        path.write_bytes(content)
        try:
            table = _whole_table(path)
            found = _as_rows(table, tags)
        except (ValueError, OSError, ImportError, RecursionError) as error:
            detail = str(error).replace(str(path), "the file") or type(error).__name__
            raise Problem(422, "File cannot be read", detail) from None
        notes = [str(warning.message).replace(str(path), "the file") for warning in caught]
    return json.dumps(found | {"notes": list(dict.fromkeys(notes))}, allow_nan=False).encode()


def write_rows(name: str, content: bytes) -> bytes:
    """Write rows as a file in the format of its name.

    Parameters
    ----------
    name : str
    content : bytes
        JSON: ``columns`` are names, ``rows`` lists of cells. Lists among these are joined, other than in JSON lines.
    """
    suffix = _suffix(name, WRITABLE)
    given = read_json(content)
    try:
        columns, rows = given["columns"], given["rows"]
        if not all(isinstance(column, str) for column in columns) or len(set(columns)) < len(columns):
            raise ValueError("columns must be different texts")
        cells = [[row[i] for row in rows] for i in range(len(columns))]
        if not all(map(_can_be_written, chain.from_iterable(cells))):
            raise ValueError("cells must be texts, numbers, true, false, null or lists of texts or numbers")
    except (ValueError, TypeError, LookupError) as error:
        raise Problem(400, "Rows cannot be written", f"The body must hold columns and rows as JSON: {error}.") from None
    if suffix != ".jsonl":
        cells = [[join_tags(map(as_text, c), None) if isinstance(c, list) else c for c in column] for column in cells]
    file = io.BytesIO()
    with warnings.catch_warnings():
        # Excel's cells hold less than 32,768 characters: longer texts are cut.
        warnings.simplefilter("ignore", UserWarning)
        with table_writer(file, suffix, bom=True) as write:
            write(Table(dict(zip(columns, cells, strict=True)), len(rows)))
    return file.getvalue()


def _can_be_written(cell: Any) -> bool:
    parts = cell if isinstance(cell, list) else ()
    return not isinstance(cell, dict) and all(isinstance(part, str | int | float) for part in parts)


def _suffix(name: str, known: tuple[str, ...]) -> str:
    suffix = Path(name).suffix.lower()
    if suffix not in known:
        raise Problem(415, "Unknown kind of file", f"The file must end in {', '.join(known)}, got {name[-40:]!r}.")
    return suffix


def _check_unpacked(content: bytes) -> None:
    """Refuse an Excel file that is too large when unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):
        return  # the reader says what is wrong
    if size > _MAX_UNPACKED:
        raise Problem(413, "File too large", f"Unpacked, an Excel file may have at most {_MAX_UNPACKED // 10**6} MB.")


def _whole_table(path: Path) -> Table:
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for part in file_tables(path, _BATCH, check_size=_check_size):
        _check_size(n_rows + part.n_rows, len(columns.keys() | part.columns.keys()))
        for name, cells in part.columns.items():
            # A column that comes later was missing before, as in JSON lines.
            columns.setdefault(name, [None] * n_rows).extend(cells.tolist() if isinstance(cells, np.ndarray) else cells)
        n_rows += part.n_rows
        for cells in columns.values():
            cells.extend([None] * (n_rows - len(cells)))
    return Table(dict(columns), n_rows)


def _check_size(n_rows: int, n_columns: int) -> None:
    """Refuse a table that would be too large, before there is any."""
    what = None
    if n_rows > MAX_ROWS:
        what = f"{MAX_ROWS:,} rows here: divide it."
    elif n_columns > MAX_COLUMNS:
        what = f"{MAX_COLUMNS:,} columns, got {n_columns:,}: leave out those that say nothing of tags."
    elif n_rows * n_columns > MAX_CELLS:
        what = f"{MAX_CELLS:,} cells, its rows times its columns: divide it."
    if what is not None:
        raise Problem(413, "File too large", f"A file may have at most {what}")


def _as_rows(table: Table, tags: str | None) -> dict[str, Any]:
    if tags is None:
        lower = {name.strip().lower(): name for name in reversed(table.columns)}
        tags = next((lower[name] for name in _TAGS if name in lower), "")
    sets: list[list[str] | None] = [None] * table.n_rows
    if tags:
        sets = [None if names is None else sorted(names) for names in tags_of_table(table, tags, None)[0]]
    rest = without_tags(table, tags or None)
    columns = [list(map(_cell, cells)) for cells in rest.columns.values()]
    rows = [list(cells) for cells in zip(*columns, strict=True)] if columns else [[] for _ in range(table.n_rows)]
    names = {"columns": list(rest.columns), "names": list(table.columns), "tags_column": tags or None}
    return {**names, "rows": rows, "tags": sets}


def _cell(value: Any) -> Any:
    """Return a cell as the API takes it: a text, a number, a bool, None, or a list of texts."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_text(cell) for cell in value]
    return json.dumps(value, default=as_text) if isinstance(value, Mapping) else as_text(value)
