"""The scan of a table before it is read as a stream: keys, texts of nominal columns, and labels in lists.

It reads the file once, in bounded memory. A row that cannot be read ends it: the rows above are a stream, and the row
is an error when it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelrace.exceptions import DataFormatError
from labelrace.streams.jsonl import JsonFile, SparseRowsError, is_sparse, not_a_feature
from labelrace.streams.lines import finite_number
from labelrace.streams.schema import TableOptions
from labelrace.streams.table_files import CsvFile, TableBatch, TableFile, Types, mixed_column

# Rows that are scanned at once.
_CHUNK_ROWS = 1024
Item = TypeVar("Item")


class Stop(NamedTuple):
    """A row that cannot be read: how many are above it, and why not."""

    n_rows: int
    error: DataFormatError


class Scan(NamedTuple):
    """The result of a scan: the sorted texts of nominal columns, the labels in lists, and where it ended early."""

    values: Mapping[str, tuple[str, ...]]
    labels: set[str]
    stop: Stop | None = None


class _Readable(Generic[Item]):
    """Batches up to the first row that cannot be read, at which ``stop`` is set: it is an error when it is reached."""

    def __init__(self, batches: Iterable[Item], n_rows: Callable[[Item], int]) -> None:
        self._batches, self._count, self.stop = batches, n_rows, cast("Stop | None", None)

    def __iter__(self) -> Iterator[Item]:
        n_rows = 0
        try:
            for batch in self._batches:
                yield batch
                n_rows += self._count(batch)
        except DataFormatError as error:
            if not n_rows:
                raise
            self.stop = Stop(n_rows, error)
        finally:
            # A caller that stops early may keep the batches in a traceback: the file is closed now.
            if isinstance(self._batches, Generator):
                self._batches.close()


def scan_table(
    table: TableFile,
    types: Types,
    texts: list[str],
    given: TableOptions,
    lists: str | None,
    separator: str | None = None,
) -> Scan:
    """Scan the file for the texts of nominal columns and the labels in lists, as far as they are not given.

    A column without any text has no values; in CSV it is a column of numbers after all.
    """
    lists = lists if given.label_names is None else None
    scanned = {name: types[name] for name in texts if name != lists} | ({lists: types[lists]} if lists else {})
    values, labels = {name: set[str]() for name in texts}, set[str]()
    # In other formats, numbers and texts have different types.
    kinds = {name: set[str]() for name in texts if isinstance(table, CsvFile) and name not in given.nominal}
    readable = _Readable(table.batches(_CHUNK_ROWS, scanned) if scanned else (), _n_rows)
    for rows, lines in readable:
        for name, known in values.items():
            column = rows.column(name).cast(pa.string())
            new = [text for text in column.unique().drop_null().to_pylist() if text not in known]
            for text in new if name in kinds else ():
                kinds[name].add(_kind_of(text))
                if {"numbers", "text"} <= kinds[name]:
                    others = "numbers" if _kind_of(text) == "text" else "text"
                    line = lines[pc.index(column, text).as_py()]
                    raise table.location(line).error(mixed_column(name, text, others))
            known.update(new)
        if lists is not None:
            labels.update(*label_lists(rows.column(lists), separator))
    nominal = {name: known for name, known in values.items() if known and "text" in kinds.get(name, {"text"})}
    return Scan({name: tuple(sorted(known)) for name, known in nominal.items()}, labels, readable.stop)


def _n_rows(batch: TableBatch) -> int:
    return int(batch.rows.num_rows)


def _kind_of(text: str) -> str:
    """Return what a cell of CSV is: a text such as "nan" is a missing number among numbers, and a text among texts."""
    number = finite_number(text)
    return "text" if number is None else "either" if np.isnan(number) else "numbers"


def scan_json(table: JsonFile, types: Types, lists: str | None, sparse: bool | None) -> tuple[Scan, list[str], bool]:
    """Scan a JSONL file for its keys (with their types), the texts of nominal ones, and the labels in lists.

    Also return whether an absent key is zero: as `sparse` says, or else as the rows are by nature.
    """
    known = dict(types)
    found = None if sparse else _scan_blocks(table, types, lists)
    if found is not None:
        return *found, False
    types.clear()
    types.update(known)
    return _scan_objects(table, types, lists, sparse)


def _scan_blocks(table: JsonFile, types: Types, lists: str | None) -> tuple[Scan, list[str]] | None:
    """Scan many rows at a time; return None if they are sparse by nature, which takes much memory so."""
    keys, texts, labels, n_rows, n_cells = dict[str, None](), dict[str, set[str]](), set[str](), 0, 0
    readable = _Readable(table.batches(_CHUNK_ROWS, types, grow=True), _n_rows)
    try:
        for rows, lines in readable:
            n_rows += rows.num_rows
            for key, column in zip(rows.schema.names, rows.columns, strict=True):
                n_cells += len(column) - column.null_count
                if key != lists or column.null_count < len(column):
                    keys[key] = None
                if key == lists:
                    labels.update(*label_lists(column))
                elif pa.types.is_string(column.type):
                    texts.setdefault(key, set()).update(column.unique().drop_null().to_pylist())
                elif pa.types.is_list(column.type) and column.null_count < len(column):
                    first = int(np.argmax(column.is_valid().to_numpy(zero_copy_only=False)))
                    raise not_a_feature(key, column[first].as_py(), table.location(lines[first]))
            if is_sparse(n_rows, len(keys), n_cells):
                return None
    except SparseRowsError:
        return None
    values = {key: tuple(sorted(known)) for key, known in texts.items() if known}
    return Scan(values, labels, readable.stop), list(keys)


def _scan_objects(
    table: JsonFile, types: Types, lists: str | None, sparse: bool | None
) -> tuple[Scan, list[str], bool]:
    """Scan row by row, which takes no memory for absent keys; in sparse rows an absent text is the empty one."""
    counts, texts, labels, n_rows = dict[str, int](), dict[str, set[str]](), set[str](), 0

    def rows_of_cells() -> Iterator[dict[str, Any]]:
        for lines, rows in table.objects(_CHUNK_ROWS):
            for row, location in zip(rows, map(table.location, lines), strict=True):
                cells = table.cells(row, types, location, grow=True)
                for key, cell in cells.items():
                    if key != lists and isinstance(cell, list):
                        raise not_a_feature(key, cell, location)
                yield cells

    readable = _Readable(rows_of_cells(), lambda _: 1)
    for cells in readable:
        n_rows += 1
        for key, cell in cells.items():
            counts[key] = counts.get(key, 0) + 1
            if key == lists:
                labels.update(cell or ())
            elif isinstance(cell, str):
                texts.setdefault(key, set()).add(cell)
    if sparse is None:
        sparse = is_sparse(n_rows, len(counts), sum(counts.values()))
    absent = {key for key in texts if sparse and counts[key] < n_rows}
    values = {key: tuple(sorted(known | ({""} if key in absent else set()))) for key, known in texts.items()}
    return Scan(values, labels, readable.stop), list(counts), sparse


def label_lists(column: Any, separator: str | None = None) -> list[list[str]]:
    """Return the names in a column of label lists, or of texts that are split at the separator."""
    cells = column.to_pylist()
    if separator is None:
        return [[str(name) for name in cell or () if name is not None] for cell in cells]
    return [[name for part in (cell or "").split(separator) if (name := part.strip())] for cell in cells]
