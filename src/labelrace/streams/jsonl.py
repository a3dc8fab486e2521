"""JSON lines: an object on each line, as Arrow tables, or as sparse rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from labelrace.base.parameters import quoted_list, repeated
from labelrace.exceptions import DataFormatError
from labelrace.streams.files import Location, open_data
from labelrace.streams.lines import byte_blocks, chunked, rows_in
from labelrace.streams.table_files import TableBatch, TableFile, Types
from labelrace.typing import FloatArray

_Row: TypeAlias = dict[str, Any]
# The lines of some rows, and the rows.
_Objects: TypeAlias = tuple[list[int], list[_Row]]

_NUMBERS = {float, int, bool}
_LISTS = pa.list_(pa.string())


class JsonFile(TableFile):
    """A file with a JSON object on each line.

    Rows may have different keys: `batches` without types gives each batch the columns that were seen so far. Numbers,
    true and false are ``float64``, texts are ``string``, lists of texts or whole numbers are lists of ``string``. A key
    that is null or absent has a missing value.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    nominal : collection of str, default=()
        Keys whose numbers are read as texts.
    """

    noun = "key"

    def __init__(self, path: Path, *, nominal: Collection[str] = ()) -> None:
        self.path, self.nominal = path, nominal

    def batches(self, size: int, types: Types | None = None, *, grow: bool = False) -> Iterator[TableBatch]:
        """Yield the rows; see `TableFile`.

        Without `types`, or with ``grow=True``, keys that appear later are added to the columns (and to `types`). With
        `types` alone they are an error.
        """
        if types is None:
            types, grow = {}, True
        line = 0
        with open_data(self.path) as file:
            for block, n_lines in byte_blocks(file, size):
                numbers, lines = rows_in(block, line)
                line += n_lines
                locations = list(map(self.location, numbers))
                for rows in chunked(map(read_object, lines, locations)):
                    table, error = self._table(rows, types, locations, grow)
                    if table.num_rows:
                        yield TableBatch(table, numbers[: table.num_rows])
                    if error is not None:
                        raise error

    def objects(self, size: int) -> Iterator[_Objects]:
        """Yield the rows as objects, `size` at a time, with their lines; before an error those above it."""
        with open_data(self.path) as file:
            lines = ((number, line.strip()) for number, line in enumerate(file, start=1))
            objects = ((number, read_object(line, self.location(number))) for number, line in lines if line)
            for rows in chunked(objects, size):
                yield [number for number, _ in rows], [row for _, row in rows]

    def _table(
        self, rows: list[_Row], types: Types, locations: list[Location], grow: bool
    ) -> tuple[Any, DataFormatError | None]:
        """Return the rows as a table, up to the first that is wrong, and what is wrong with it."""
        end, error = len(rows), None
        columns = dict[str, Any]()
        if not grow:
            unknown = (i for i, row in enumerate(rows) if not row.keys() <= types.keys())
            if (first := next(unknown, end)) < end:
                end, error = first, _unknown_keys(rows[first], types, locations[first])
        for key in dict.fromkeys([*types, *(key for row in rows for key in row if grow)]):
            cells = [row.get(key) for row in rows]
            kinds = {*map(type, cells)} - {type(None)}
            if kinds and key not in types:
                types[key] = self._type_of(key, next(cell for cell in cells if cell is not None))
            columns[key] = cells
            if not kinds or (kinds == {str} and pa.types.is_string(types[key])):
                continue
            if kinds <= _NUMBERS and pa.types.is_floating(types[key]) and (numbers := _finite(cells)) is not None:
                columns[key] = numbers
                continue
            for i, cell in enumerate(cells[:end]):
                try:
                    cells[i] = self._cell(cell, key, types[key], locations[i], grow)
                except DataFormatError as wrong:
                    end, error = i, wrong
                    break
        arrays = [pa.array(cells[:end], types.get(key, pa.null()), from_pandas=True) for key, cells in columns.items()]
        return pa.table(arrays, names=list(columns)), error

    def cells(self, row: _Row, types: dict[str, Any], location: Location, *, grow: bool) -> _Row:
        """Return the cells of a row as floats, texts, lists of texts and None, or raise the exact error.

        With `grow`, unknown keys are added to `types`, with the types of their values. Without it they are an error,
        and a number among texts is read as a text.
        """
        if not grow and not row.keys() <= types.keys():
            raise _unknown_keys(row, types, location)
        cells = {}
        for key, cell in row.items():
            if cell is not None and key not in types:
                types[key] = self._type_of(key, cell)
            cells[key] = None if cell is None else self._cell(cell, key, types[key], location, grow)
        return cells

    def _type_of(self, key: str, cell: Any) -> Any:
        """Return the type of a key whose first value is `cell`."""
        if isinstance(cell, str) or key in self.nominal:
            return pa.string()
        return _LISTS if isinstance(cell, list) else pa.float64()

    def _cell(self, cell: Any, key: str, kind: Any, location: Location, grow: bool) -> Any:
        """Return a cell as its column has it, or raise the exact error."""
        if cell is None:
            return None
        if pa.types.is_list(kind):
            return _label_list(cell, key, location)
        is_number, wants_text = type(cell) in _NUMBERS, pa.types.is_string(kind)
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


def _unknown_keys(row: _Row, types: Types, location: Location) -> DataFormatError:
    unknown = quoted_list(sorted(row.keys() - types.keys()))
    return location.error(f"unknown keys {unknown}; correct them, or add them to feature_names=")


def _finite(cells: list[Any]) -> FloatArray | None:
    """Return numbers as an array, with NaN for missing ones, or None if one is too large."""
    try:
        numbers = np.array(cells, dtype=np.float64)
    except OverflowError:
        return None
    return None if np.isinf(numbers).any() else numbers


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
