"""Tables of any library, of files and of standard input, as columns of cells."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelrace.base.formulas import GUARDED, unescape_formula
from labelrace.base.parameters import quoted_list, repeated
from labelrace.exceptions import DataFormatError
from labelrace.streams.excel import ExcelFile
from labelrace.streams.jsonl import JsonFile, check_object, unique_keys
from labelrace.streams.lines import chunked
from labelrace.streams.table_files import CsvFile, OnBadRow, name_columns
from labelrace.streams.table_sources import Reading, TextRows, open_table, read_text
from labelrace.tables.cells import Cells
from labelrace.typing import Array

# The whole numbers below this are exact as floats.
_EXACT = 2**53
_PARTS_OF_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class Table(NamedTuple):
    """Columns of cells by name, all of the same length."""

    columns: dict[str, Cells]
    n_rows: int
    has_names: bool = True  # whether the user gave the names
    arrow: Any = None  # the Arrow table that it was made of, if any: its cells are to be written as they were
    # Whether people have corrected what a tagger predicted: rows chosen by its errors tell nothing of its quality.
    was_predicted: bool = False

    def slice(self, start: int, stop: int) -> Table:
        """Return the rows from `start` up to `stop`."""
        columns = {name: cells[start:stop] for name, cells in self.columns.items()}
        n_rows = max(0, min(stop, self.n_rows) - start)
        arrow = None if self.arrow is None else self.arrow.slice(start, n_rows)
        return Table(columns, n_rows, self.has_names, arrow, self.was_predicted)

    def take(self, rows: Iterable[int]) -> Table:
        """Return the rows with the given numbers."""
        numbers = list(rows)
        columns: dict[str, Cells] = {
            name: cells[numbers] if isinstance(cells, np.ndarray) else [cells[row] for row in numbers]
            for name, cells in self.columns.items()
        }
        return Table(columns, len(numbers), self.has_names, was_predicted=self.was_predicted)

    def drop(self, names: Iterable[str]) -> Table:
        """Return the table without some of its columns."""
        dropped = set(names)
        columns = {name: cells for name, cells in self.columns.items() if name not in dropped}
        return Table(columns, self.n_rows, self.has_names, was_predicted=self.was_predicted)


def stack_tables(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of tables; a column that one of them lacks is missing there.

    Examples
    --------
    >>> stack_tables([Table({"a": [1]}, 1), Table({"a": [2], "b": ["x"]}, 1)]).columns
    {'a': [1, 2], 'b': [None, 'x']}
    """
    columns = dict[str, Cells]()
    for name in dict.fromkeys(name for table in tables for name in table.columns):
        parts = [table.columns.get(name, [None] * table.n_rows) for table in tables]
        kinds = {part.dtype.kind if isinstance(part, np.ndarray) else "O" for part in parts}
        if len(kinds) == 1 and kinds != {"O"}:
            columns[name] = np.concatenate(parts)
        else:
            columns[name] = [_cell(cell) for part in parts for cell in part]
    return Table(columns, sum(table.n_rows for table in tables), all(table.has_names for table in tables))


def as_table(X: Any) -> Table:
    """Turn a table of any kind into columns of cells.

    Parameters
    ----------
    X : data frame (pandas, polars), Arrow table or record batch, list of dicts, dict of columns, or (n, m) array

    Examples
    --------
    >>> as_table([{"title": "Poached eggs", "price": 3}, {"title": None}]).columns
    {'title': ['Poached eggs', None], 'price': [3, None]}
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, Mapping):
        _check_names(list(X))
        are_columns = all(hasattr(cells, "__len__") and not isinstance(cells, str) for cells in X.values())
        if not are_columns or len(lengths := set(map(len, X.values()))) != 1:
            raise ValueError(
                "X must be columns of equal length if it is a dict; give a single row as a list of one dict."
            )
        return Table({name: _cells(column) for name, column in X.items()}, lengths.pop())
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        names = [str(name) if isinstance(name, (int, np.integer)) else name for name in X.columns]
        _check_names(names)
        # By position, as pandas knows a column by its original name only.
        return Table({name: _cells(X.iloc[:, i]) for i, name in enumerate(names)}, len(X))
    if hasattr(X, "to_arrow"):
        X = X.to_arrow()
    if isinstance(X, (pa.Table, pa.RecordBatch)):
        _check_names(X.schema.names)
        pairs = zip(X.schema.names, X.columns, strict=True)
        return Table({name: _cells(column) for name, column in pairs}, X.num_rows, arrow=X)
    if isinstance(X, (list, tuple)) and all(isinstance(row, Mapping) for row in X):
        names = list(dict.fromkeys(name for row in X for name in row))
        _check_names(names)
        return Table({name: [_cell(row.get(name)) for row in X] for name in names}, len(X))
    return _from_array(X)


def _check_names(names: Sequence[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"X must have columns whose names are text, got {name!r}: rename it.")
    if twice := repeated(names):
        raise ValueError(f"X has two columns called {twice[0]!r}: rename one of them.")


def _from_array(X: Any) -> Table:
    try:
        array = np.asarray(X)
    except ValueError:
        array = np.zeros(0)
    if array.ndim != 2:
        raise ValueError(
            "X must be a table: a data frame, an Arrow table, a list of dicts, or an array of two dimensions, got "
            f"{type(X).__name__}. Reshape your data either using array.reshape(-1, 1) or array.reshape(1, -1)."
        )
    if array.dtype.kind == "c":
        raise ValueError("X must hold texts, numbers or dates, got complex numbers. Complex data not supported.")
    return Table({f"x{i}": _cells(array[:, i]) for i in range(array.shape[1])}, len(array), has_names=False)


def _cells(column: Any) -> Cells:
    """Return a column of an Arrow table, a data frame or an array, or a list, as cells."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(column)
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    is_series = hasattr(column, "to_numpy")
    if kind in "iuf" and column.ndim == 1:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) if is_series else column.astype(np.float64)
        return _floats(numbers, column.dtype.itemsize) if kind == "f" else _whole_numbers(numbers, column.tolist)
    if kind == "M":
        return (column.dt.tz_localize(None).to_numpy() if is_series else column).astype("datetime64[s]")
    if kind == "m":
        seconds = getattr(column, "dt", column).total_seconds() if is_series else column / np.timedelta64(1, "s")
        return np.asarray(seconds, dtype=np.float64)
    return [_cell(cell) for cell in (column.tolist() if hasattr(column, "tolist") else column)]


def _from_arrow(column: Any) -> Cells:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
        if pa.types.is_floating(kind):
            return _floats(numbers, kind.bit_width // 8)
        return _whole_numbers(numbers, column.to_pylist)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column.cast(pa.timestamp("s"), safe=False).to_numpy(zero_copy_only=False).astype("datetime64[s]")
    if pa.types.is_duration(kind):
        parts = column.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(parts, dtype=np.float64) / _PARTS_OF_A_SECOND[kind.unit]
    return [_cell(cell) for cell in column.to_pylist()]


def _whole_numbers(numbers: Array, exact: Callable[[], list[Any]]) -> Cells:
    """Return whole numbers as floats, or as Python's integers where floats are not exact."""
    is_exact = bool((np.abs(numbers[~np.isnan(numbers)]) < _EXACT).all())
    return numbers if is_exact else [_cell(cell) for cell in exact()]


def _floats(numbers: Array, n_bytes: int) -> Array:
    """Return floats; those of less precision as they are written, 0.1 and not 0.10000000149011612."""
    return numbers if n_bytes >= 8 else numbers.astype(f"f{n_bytes}").astype(str).astype(np.float64)


def _cell(value: Any) -> Any:
    """Return None for a missing value of any library, durations in seconds, and NumPy's scalars as Python's."""
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if is_missing or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return None
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, np.timedelta64):
        return None if np.isnat(value) else float(value / np.timedelta64(1, "s"))
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.item() if isinstance(value, np.generic) else value


def file_tables(
    path: str | Path,
    size: int,
    reading: Reading | str | None = None,
    check_size: Callable[[int, int], None] | None = None,
) -> Iterator[Table]:
    r"""Yield the rows of a CSV, TSV, Excel, JSON lines, Parquet or Arrow file, `size` at a time, in bounded memory.

    Cells of CSV are texts: `labelrace.tables.column_kinds` decides on the kind of a whole column. A ``.json`` file
    holds an object, or a list of them, and is read as a whole. Of a file with a header alone, one table without rows is
    yielded.

    Parameters
    ----------
    path : path
    size : int
    reading : str, default=None
        The delimiter of a CSV file, which is otherwise detected.
    check_size : callable, default=None
        Called with the number of rows and of columns that a table will have; it may refuse them, as cells that rows
        lack take memory as well.

    Yields
    ------
    Table

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,hue\n1.5,red\n2,\n3,blue\n")
    ...     [table.columns for table in file_tables(path, 2)]
    [{'size': ['1.5', '2'], 'hue': ['red', None]}, {'size': ['3'], 'hue': ['blue']}]
    """
    path = Path(path)
    check_size = check_size or _any_size
    if path.suffix.lower() == ".json":
        yield from table_batches(_checked_rows(_json_rows(path), check_size), size)
        return
    file = open_table(path, reading if isinstance(reading, Reading) else Reading(reading))
    if isinstance(file, JsonFile):
        for _, rows in file.objects(size):
            yield as_table(_checked_rows(rows, check_size))
        return
    parts: Iterable[Any]
    check_size(0, len(file.names if isinstance(file, ExcelFile | CsvFile) else file.schema.names))
    if isinstance(file, ExcelFile):
        # A sheet may come from a CSV file whose texts were guarded.
        names, unnamed = file.names, file.unnamed
        parts = ([_unguarded_row(row) for row in rows] for _, rows in file.objects(size))
    elif isinstance(file, CsvFile):
        names, unnamed = list(map(unescape_formula, file.names)), file.unnamed
        texts = dict.fromkeys(file.names, pa.string())
        parts = map(_unguarded, _resized((batch.rows for batch in file.batches(size, texts)), size))
    else:
        names, unnamed, parts = file.schema.names, [], _resized((batch.rows for batch in file.batches(size)), size)
    yield from _or_header(map(as_table, parts), names, unnamed, str(path))


def _any_size(n_rows: int, n_columns: int) -> None:
    """Take a table of any size."""


def _checked_rows(rows: list[dict[str, Any]], check_size: Callable[[int, int], None]) -> list[dict[str, Any]]:
    check_size(len(rows), len({name for row in rows for name in row}))
    return rows


def _unguarded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: unescape_formula(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def _unguarded(rows: Any) -> Any:
    """Remove the quotes that keep spreadsheets from computing texts of a CSV file."""
    columns = [
        pc.replace_substring_regex(column, GUARDED, r"\1") if pc.any(pc.starts_with(column, "'")).as_py() else column
        for column in rows.columns
    ]
    return pa.table(columns, names=list(map(unescape_formula, rows.schema.names)))


def _or_header(tables: Iterator[Table], names: Sequence[str], unnamed: Sequence[str], path: str) -> Iterator[Table]:
    """Yield tables without their empty columns that have no name; a table without rows if there are none."""
    n_rows = 0
    for table in tables:
        n_rows += table.n_rows
        filled = [name for name in unnamed if any(cell is not None for cell in table.columns[name])]
        empty = [name for name in unnamed if name not in filled]
        if filled:
            _say(f"{path}: columns without a name are named by their position: {quoted_list(filled)}.")
        if empty:
            _say(f"{path}: empty columns without a name are left out: {quoted_list(empty)}.")
        yield table.drop(empty) if empty else table
    if not n_rows:
        yield Table({name: [] for name in names if name not in unnamed}, 0)


def _say(text: str) -> None:
    """Warn; once for each text, by the filter that Python has by default."""
    warnings.warn(text, UserWarning, stacklevel=2)


def _resized(parts: Iterable[Any], size: int) -> Iterator[Any]:
    """Split and join tables so that each but the last, or that before an error, has `size` rows."""
    waiting, n_waiting = [], 0
    try:
        for part in parts:
            waiting.append(part)
            n_waiting += part.num_rows
            if n_waiting >= size:
                whole = pa.concat_tables(waiting)
                n_whole = n_waiting - n_waiting % size
                for start in range(0, n_whole, size):
                    yield whole.slice(start, size)
                waiting, n_waiting = [whole.slice(n_whole).combine_chunks()], n_waiting - n_whole
    except Exception:
        if n_waiting:
            yield pa.concat_tables(waiting)
        raise
    if n_waiting:
        yield pa.concat_tables(waiting)


def _json_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file that holds one JSON object, or a list of them."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
    except ValueError as error:
        raise ValueError(
            f"{path} must hold a JSON object or a list of them, got something else ({error}); a file with an object on "
            "each line is called .jsonl."
        ) from None
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path} must hold a JSON object, with a value for each column, or a list of them.")
    return rows


def text_tables(lines: Iterable[str], size: int, reading: Reading | str | None = None) -> Iterator[Table]:
    r"""Yield the rows of standard input, `size` at a time: CSV with a header, or a JSON object on each line.

    Parameters
    ----------
    lines : iterable of str
        An open text file, say.
    size : int
    reading : str, default=None
        The delimiter of CSV, which is otherwise detected.

    Yields
    ------
    Table

    Examples
    --------
    >>> [table.columns for table in text_tables(["title,price\n", "Oven,400\n", "Toaster,30\n"], size=500)]
    [{'title': ['Oven', 'Toaster'], 'price': ['400', '30']}]
    >>> [table.n_rows for table in text_tables(['{"title": "Oven"}\n'] * 5, size=2)]
    [2, 2, 1]
    """
    given = reading if isinstance(reading, Reading) else Reading(reading)
    if given.encoding is not None or given.sheet is not None:
        raise ValueError("An encoding or a sheet is for files: standard input must be UTF-8, without them.")
    text, names, unnamed = read_text(lines, given.delimiter, given.on_bad_row), list[str](), list[str]()
    rows = map(as_table, chunked(_named_rows(text, names, unnamed, given.on_bad_row), size))
    for number, table in enumerate(_or_header(rows, names, unnamed, "standard input")):
        if number or table.n_rows or names:
            yield table


def _named_rows(
    text: TextRows, names: list[str], unnamed: list[str], on_bad_row: OnBadRow | None
) -> Iterator[dict[str, Any]]:
    """Yield the cells of each row by the names of their columns, which are added to the lists."""
    for location, cells in text.rows:
        try:
            if text.is_json:
                yield check_object(cells, location)
            elif not names:
                names += name_columns(list(map(unescape_formula, cells)))[0]
                unnamed += name_columns(cells)[1]
            elif len(cells) != len(names):
                raise location.error(f"the row has {len(cells)} cells, but the header has {len(names)} columns")
            else:
                yield {name: unescape_formula(cell) or None for name, cell in zip(names, cells, strict=True)}
        except DataFormatError as error:
            if on_bad_row is None:
                raise
            on_bad_row(error)
        if twice := repeated(names):
            raise location.error(f"two columns are called {twice[0]!r}; rename one of them")


def table_batches(X: Any, size: int, reading: Reading | str | None = None) -> Iterator[Table]:
    """Yield the rows of a table or a file, `size` at a time.

    Parameters
    ----------
    X : table or path
        As `labelrace.Tagger` takes them.
    size : int
    reading : str, default=None
        The delimiter of a CSV file, which is otherwise detected.

    Yields
    ------
    Table

    Examples
    --------
    >>> rows = [{"title": "Oven"}, {"title": "Toaster", "price": 30}, {"title": "Fridge"}]
    >>> [table.columns for table in table_batches(rows, size=2)]
    [{'title': ['Oven', 'Toaster'], 'price': [None, 30]}, {'title': ['Fridge'], 'price': [None]}]
    """
    if isinstance(X, (str, Path)):
        yield from file_tables(X, size, reading)
        return
    table = as_table(X)
    for start in range(0, table.n_rows, size):
        yield table.slice(start, start + size)


def count_rows(X: Any) -> int | None:
    """Return how many rows a table has; None if it has to be read to tell."""
    if isinstance(X, Table):
        return X.n_rows
    return None if isinstance(X, (str, Path, Mapping)) or not hasattr(X, "__len__") else len(X)


def one_row(row: Any) -> Table:
    """Turn a single row, a dict or a pandas Series, into a table."""
    if isinstance(row, Mapping):
        row = [row]
    elif hasattr(row, "to_dict") and hasattr(row, "index") and not hasattr(row, "columns"):
        row = [row.to_dict()]
    table = as_table(row)
    if table.n_rows != 1:
        raise ValueError(f"row must be one row, got {table.n_rows}.")
    return table
