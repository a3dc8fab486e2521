"""JSON lines: an object on each line, as Arrow tables, or as sparse rows.

Blocks of lines are parsed by pyarrow. A block that it refuses, or might read differently from what is documented, is
parsed by the standard library's `json`, which also finds the line of an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from labelrace.base import limits
from labelrace.base.parameters import quoted_list, repeated
from labelrace.exceptions import DataFormatError
from labelrace.streams.files import Location, open_data
from labelrace.streams.lines import arrow_reader, byte_blocks, chunked, rows_in
from labelrace.streams.table_files import OnBadRow, TableBatch, TableFile, Types

_Row: TypeAlias = dict[str, Any]
# The lines of some rows, and the rows.
_Objects: TypeAlias = tuple[list[int], list[_Row]]

_NUMBERS = (float, int, bool)
_LISTS = pa.list_(pa.string())
_CELL_BYTES = 8
# Lines with more brackets than this are left to `json`, as pyarrow's types are nested as deeply as the values.
_MAX_LISTS = 64


# Keys up to which rows are a table whatever they hold, those from which they are none, and the share of filled cells
# below which others are none. pyarrow takes minutes for a million columns.
_FEW_KEYS, _MANY_KEYS, _FILLED = 2**8, 2**16, 0.1
# The strings of a text; those before a colon, which are keys, are a group.
_STRINGS = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class SparseRowsError(ValueError):
    """A table would be far larger than the file: rows have few of very many keys."""


def is_sparse(n_rows: int, n_keys: int, n_cells: int) -> bool:
    """Return whether rows with `n_cells` cells in all are sparse: a table would be nearly empty, or too wide.

    Examples
    --------
    >>> is_sparse(1000, 20, 2000), is_sparse(1000, 80_000, 100_000)
    (False, True)
    """
    return n_keys > _MANY_KEYS or (n_keys > _FEW_KEYS and n_cells < _FILLED * n_rows * n_keys)


class JsonFile(TableFile):
    """A file with a JSON object on each line.

    Rows may have different keys: `batches` without types gives each batch the columns that were seen so far. Numbers,
    true and false are ``float64`` (``bool`` if all of a block are true or false), texts are ``string``, lists of texts
    or whole numbers are lists of ``string``. A key that is null or absent has a missing value.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    nominal : collection of str, default=()
        Keys whose numbers are read as texts.
    on_bad_row : callable or None, default=None
        Called by `objects` with the error of each line that is no object, instead of raising it.
    """

    noun = "key"

    def __init__(self, path: Path, *, nominal: Collection[str] = (), on_bad_row: OnBadRow | None = None) -> None:
        self.path, self.nominal, self.on_bad_row = path, nominal, on_bad_row

    def batches(self, size: int, types: Types | None = None, *, grow: bool = False) -> Iterator[TableBatch]:
        """Yield the rows; see `TableFile`.

        Without `types`, or with ``grow=True``, keys that appear later are added to the columns (and to `types`), and
        rows that are sparse by nature are a `SparseRowsError`. With `types` alone new keys are an error.
        """
        if types is None:
            types, grow = {}, True
        line = 0
        with open_data(self.path) as file:
            for block, n_lines in byte_blocks(file, size):
                numbers, lines = rows_in(block, line)
                line += n_lines
                limits.BYTES.check(_CELL_BYTES * len(lines) * len(types), f"{self.path}", "give sparse=True, or")
                # Nearly all blocks have the keys of those before them, or some of these.
                batch = _bulk(lines, types, grow=False) if lines and types else None
                if batch is None and lines and grow:
                    self._check_width(block, len(lines), types)
                    batch = _bulk(lines, types, grow=True)
                if batch is not None:
                    yield TableBatch(batch, numbers)
                elif lines:
                    yield from self._by_rows(lines, numbers, types, grow)

    def _check_width(self, block: bytes, n_rows: int, types: Types) -> None:
        """Raise `SparseRowsError` if rows are sparse by nature: in a table each key takes a cell in every row."""
        cells = [key for key in _STRINGS.findall(block) if key]
        n_keys = len(set(cells)) + len(types)
        if is_sparse(n_rows, n_keys, len(cells)):
            raise SparseRowsError(f"{self.path}: rows of {n_keys} keys have few of them; give sparse=True")

    def objects(self, size: int) -> Iterator[_Objects]:
        """Yield the rows as objects, `size` at a time, with their lines; before an error those above it."""
        with open_data(self.path) as file:
            lines = ((number, line.strip()) for number, line in enumerate(file, start=1))
            for rows in chunked(self._readable((number, line) for number, line in lines if line), size):
                yield [number for number, _ in rows], [row for _, row in rows]

    def _readable(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, _Row]]:
        for number, line in lines:
            try:
                yield number, read_object(line, self.location(number))
            except DataFormatError as error:
                if self.on_bad_row is None:
                    raise
                self.on_bad_row(error)

    def _by_rows(
        self, lines: list[bytes], numbers: list[int], types: dict[str, Any], grow: bool
    ) -> Iterator[TableBatch]:
        """Yield the rows of a block; before an error those above it."""
        located, known = zip(lines, map(self.location, numbers), strict=True), list(types)
        for rows in chunked(
            self.cells(read_object(line, location), types, location, grow=grow) for line, location in located
        ):
            # In the order of their appearance, as in bulk: `types` has a key where it first holds a value.
            names = list(dict.fromkeys([*known, *(key for row in rows for key in row)]))
            # Of booleans, `cells` has made floats.
            stored = {name: pa.float64() if pa.types.is_boolean(kind) else kind for name, kind in types.items()}
            arrays = [pa.array([row.get(name) for row in rows], stored.get(name, pa.null())) for name in names]
            yield TableBatch(pa.table(arrays, names=names), numbers[: len(rows)])

    def cells(self, row: _Row, types: dict[str, Any], location: Location, *, grow: bool) -> _Row:
        """Return the cells of a row as floats, texts, lists of texts and None, or raise the exact error.

        With `grow`, unknown keys are added to `types`, with the types of their values. Without it they are an error,
        and a number among texts is read as a text.
        """
        if not grow and not row.keys() <= types.keys():
            unknown = quoted_list(sorted(row.keys() - types.keys()))
            raise location.error(f"unknown keys {unknown}; correct them, or add them to feature_names=")
        cells = {}
        for key, cell in row.items():
            if cell is not None and grow and key not in types:
                types[key] = (
                    _LISTS if isinstance(cell, list) else pa.string() if isinstance(cell, str) else pa.float64()
                )
                if key in self.nominal:
                    types[key] = pa.string()
            cells[key] = None if cell is None else self._cell(cell, key, types[key], location, grow)
        return cells

    def _cell(self, cell: Any, key: str, kind: Any, location: Location, grow: bool) -> Any:
        if pa.types.is_list(kind):
            return _label_list(cell, key, location)
        is_number, wants_text = isinstance(cell, _NUMBERS), pa.types.is_string(kind)
        if grow and not is_number and not isinstance(cell, str):
            raise not_a_feature(key, cell, location)
        if wants_text and is_number and (key in self.nominal or not grow):
            return json.dumps(cell)
        if wants_text and isinstance(cell, str):
            return cell
        if grow and wants_text == is_number:
            raise location.error(
                f"key {key!r} holds {'texts' if wants_text else 'numbers'}, but {_repr(cell)} here; correct it, or "
                f"give nominal=[{key!r}] to read all of it as text"
            )
        if not is_number:
            raise location.error(f"{_repr(cell)} is not a number, as key {key!r} needs")
        try:
            value = float(cell)
        except OverflowError:
            value = np.inf
        if np.isinf(value):
            raise location.error(f"{_repr(cell)} is too large a number for key {key!r}")
        return value


def not_a_feature(key: str, cell: Any, location: Location) -> DataFormatError:
    """Return the error of a cell that cannot be a feature."""
    return location.error(f"key {key!r} holds {_repr(cell)}, which is neither a number nor a text; take it apart first")


def _bulk(lines: list[bytes], types: dict[str, Any], grow: bool) -> Any:
    """Return a block of lines as a table, or None if pyarrow might not read it exactly."""
    if not all(map(_is_flat, lines)):
        return None
    known = dict(types)
    table = _parsed(lines, known, grow)
    if table is not None and (dates := [field.name for field in table.schema if pa.types.is_temporal(field.type)]):
        known |= dict.fromkeys(dates, pa.string())  # pyarrow reads texts that look like dates as dates
        table = _parsed(lines, known, grow)
    if table is None or table.num_rows != len(lines):
        return None
    columns, types_here = [], dict[str, Any]()
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_integer(column.type):
            column = column.cast(pa.float64(), safe=False)
        if pa.types.is_floating(column.type):
            if np.isfinite(column.to_numpy()).sum() + column.null_count < len(lines):
                return None
        elif column.type == _LISTS:
            if any(chunk.flatten().null_count for chunk in column.chunks):
                return None
        elif not any(is_a(column.type) for is_a in (pa.types.is_string, pa.types.is_boolean, pa.types.is_null)):
            return None
        if not pa.types.is_null(column.type):
            types_here[name] = column.type
        columns.append(column)
    types.update(types_here)
    return pa.table(columns, names=table.schema.names) if columns else None


def _is_flat(line: bytes) -> bool:
    """Return whether a line can only be one object without objects in it: pyarrow may crash on a bare null."""
    enclosed = line.startswith(b"{") and line.endswith(b"}") and line.count(b"{") == line.count(b"}") == 1
    return enclosed and line.count(b"[") <= _MAX_LISTS


def _parsed(lines: list[bytes], types: dict[str, Any], grow: bool) -> Any:
    text = b"\n".join(lines)
    try:
        text.decode()  # which pyarrow does not check
        return arrow_json.read_json(
            arrow_reader(text),
            arrow_json.ReadOptions(block_size=len(text) + 1),
            arrow_json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())) if types else None,
                newlines_in_values=False,
                unexpected_field_behavior="infer" if grow else "error",
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def read_object(line: bytes, location: Location) -> _Row:
    """Read the JSON object of a line."""
    return check_object(read_json(line, location), location)


def check_object(value: Any, location: Location) -> _Row:
    """Return a value that was read from JSON if it is an object."""
    if not isinstance(value, dict):
        raise location.error(f"expected a JSON object, found {_repr(value)}; write one object per line")
    return value


def read_json(line: bytes, location: Location) -> Any:
    """Read the JSON of a line; what is not JSON, such as NaN or a repeated key, is refused."""
    try:
        text = line.decode("utf-8-sig" if location.line == 1 else "utf-8")
        value = _DECODER.decode(text)
        if b"\\u" in line:
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not a text
    except DataFormatError as error:
        raise location.error(str(error)) from None
    except (RecursionError, ValueError) as error:
        reason = str(error).partition("\n")[0][:120]
        raise location.error(
            f"not a JSON object ({reason}); write one object per line, or the data is cut here"
        ) from error
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> _Row:
    """Make the dict of a JSON object, for `json.loads`, which would keep the last value of a repeated key.

    Examples
    --------
    >>> unique_keys([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = repeated(key for key, _ in pairs)[0]
        raise DataFormatError(f"the key {twice[:40]!r} is there twice in an object; keep one of them")
    return row


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON; write null for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=unique_keys)


def _label_list(cell: Any, key: str, location: Location) -> list[str]:
    if not isinstance(cell, list) or not all(type(name) in (str, int) for name in cell):
        raise location.error(
            f"key {key!r} must hold a list of label names, not {_repr(cell)}; if it holds 0 and 1, give "
            f"labels=[{key!r}]"
        )
    return [str(name) for name in cell]


def _repr(cell: Any) -> str:
    return repr(cell)[:40]
