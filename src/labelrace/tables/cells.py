"""Tables of any library as columns of cells, and cells as texts, numbers, dates and lists.

A column is a list of Python values with None for missing ones, or an array of floats (NaN if missing), or an array of
``datetime64``. What a column means is decided in `labelrace.tables.kinds`.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from labelrace.base.parameters import repeated
from labelrace.typing import Array, FloatArray

Cells: TypeAlias = list[Any] | Array
Dates: TypeAlias = npt.NDArray[np.datetime64]

# Texts that mean a missing value where something else is expected.
_NOTHING = frozenset(("", "-", "--", "?", "na", "n/a", "nan", "nat", "none", "null", "unknown"))
_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_SEQUENCES = (list, tuple, set, frozenset, np.ndarray)
# A number with a currency or a percent sign, or with commas between thousands.
_FORMATTED = re.compile(r"(-?)[$€£¥]?\s?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s?[%$€£¥]?")
# Texts side by side, as arrays are printed; of such texts Python would make one.
_TWO_TEXTS = re.compile(r"""["']\s+["']""")


class Table(NamedTuple):
    """Columns of cells by name, all of the same length; ``has_names`` is whether the user gave the names."""

    columns: dict[str, Cells]
    n_rows: int
    has_names: bool = True

    def rows(self, start: int, stop: int) -> Table:
        """Return some of the rows."""
        kept = {name: cells[start:stop] for name, cells in self.columns.items()}
        return Table(kept, max(0, min(stop, self.n_rows) - start), self.has_names)

    def taken(self, places: Iterable[int]) -> Table:
        """Return the rows at the given places."""
        listed = list(places)
        kept: dict[str, Cells] = {
            name: cells[listed] if isinstance(cells, np.ndarray) else [cells[place] for place in listed]
            for name, cells in self.columns.items()
        }
        return Table(kept, len(listed), self.has_names)

    def without(self, names: Iterable[str]) -> Table:
        """Return the table without some of its columns."""
        left_out = set(names)
        kept = {name: cells for name, cells in self.columns.items() if name not in left_out}
        return Table(kept, self.n_rows, self.has_names)


def stacked(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of tables; a column that one of them lacks is missing there.

    Examples
    --------
    >>> stacked([Table({"a": [1]}, 1), Table({"a": [2], "b": ["x"]}, 1)]).columns
    {'a': [1, 2], 'b': [None, 'x']}
    """
    columns = dict[str, Cells]()
    for name in dict.fromkeys(name for table in tables for name in table.columns):
        parts = [table.columns.get(name, [None] * table.n_rows) for table in tables]
        if all(isinstance(part, np.ndarray) for part in parts):
            columns[name] = np.concatenate(parts)
        else:
            columns[name] = [cell for part in parts for cell in part]
    return Table(columns, sum(table.n_rows for table in tables), all(table.has_names for table in tables))


def read_table(X: Any) -> Table:
    """Turn a table of any kind into columns of cells.

    Parameters
    ----------
    X : data frame (pandas, polars), Arrow table or record batch, list of dicts, dict of columns, or (n, m) array

    Examples
    --------
    >>> read_table([{"title": "Poached eggs", "price": 3}, {"title": None}])
    Table(columns={'title': ['Poached eggs', None], 'price': [3, None]}, n_rows=2, has_names=True)
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
        return Table({name: _cells(column) for name, column in pairs}, X.num_rows)
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
        return column.to_numpy(dtype=np.float64, na_value=np.nan) if is_series else column.astype(np.float64)
    if kind == "M":
        return (column.dt.tz_localize(None).to_numpy() if is_series else column).astype("datetime64[s]")
    return [_cell(cell) for cell in (column.tolist() if hasattr(column, "tolist") else column)]


def _from_arrow(column: Any) -> Cells:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column.cast(pa.timestamp("s"), safe=False).to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return [_cell(cell) for cell in column.to_pylist()]


def _cell(value: Any) -> Any:
    """Return None for a missing value of any library, and NumPy's scalars as Python's."""
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if is_missing or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing: None, or a blank text."""
    return value is None or (isinstance(value, str) and not value.strip())


def filled(cells: Cells) -> Cells:
    """Return the cells that are not missing."""
    if isinstance(cells, np.ndarray):
        return cells[~(np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells))]
    return [cell for cell in cells if not is_missing(cell)]


def as_text(value: Any) -> str:
    """Write a value as text; whole numbers without a decimal point, whatever their type.

    Examples
    --------
    >>> as_text(3.0), as_text(True), as_text("Oven"), as_text(2.5)
    ('3', 'true', 'Oven', '2.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return " ".join(map(as_text, value))
    return str(value)


def as_texts(cells: Cells) -> list[str]:
    """Return the cells as texts, empty for missing ones."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind == "M":
            return ["" if np.isnat(cell) else str(cell) for cell in cells]
        return ["" if math.isnan(cell) else as_text(cell) for cell in cells.tolist()]
    return ["" if cell is None else cell if isinstance(cell, str) else as_text(cell) for cell in cells]


def as_numbers(cells: Cells) -> tuple[FloatArray, list[int]]:
    """Return the cells as numbers, NaN for missing ones, and the rows of cells that are not numbers."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f":
        return np.where(np.isinf(cells), np.nan, cells), np.flatnonzero(np.isinf(cells)).tolist()
    numbers, wrong = np.full(len(cells), np.nan), []
    for row, cell in enumerate(cells):
        number = None if isinstance(cell, np.datetime64) else _number(cell)
        if number is None:
            wrong.append(row)
        else:
            numbers[row] = number
    return numbers, wrong


def _number(cell: Any) -> float | None:
    """Read a number: NaN if it is missing, None if the cell is something else."""
    if isinstance(cell, str):
        text = cell.strip()
        if text.lower() in _NOTHING:
            return math.nan
        if text.lower() in _TRUTHS:
            return _TRUTHS[text.lower()]
        if formatted := _FORMATTED.fullmatch(text):
            text = formatted[1] + formatted[2].replace(",", "")
        if not text.isascii() or "_" in text:
            return None
        cell = text
    elif cell is None:
        return math.nan
    elif isinstance(cell, (*_SEQUENCES, dict, bytes)):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_dates(cells: Cells, pattern: str) -> tuple[Dates, list[int]]:
    """Return the cells as times, and the rows of cells that are not times.

    ``pattern`` is a format of `datetime.strptime`, or ``"iso"`` for what `datetime.fromisoformat` reads, which is read
    in any case: it cannot be taken for anything else.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return cells, []
    known: dict[Any, Any] = {}
    dates, wrong = np.full(len(cells), "NaT", dtype="datetime64[s]"), []
    for row, cell in enumerate(cells):
        if is_missing(cell) or (isinstance(cell, float) and math.isnan(cell)):
            continue
        try:
            found = known[cell] if cell in known else known.setdefault(cell, _date_or_iso(cell, pattern))
        except TypeError:  # a list cannot be looked up
            found = None
        if found is not None:
            dates[row] = found
        elif not isinstance(cell, str) or cell.strip().lower() not in _NOTHING:
            wrong.append(row)
    return dates, wrong


def _date_or_iso(cell: Any, pattern: str) -> np.datetime64 | None:
    """Read a date of a pattern, or an ISO date."""
    found = parse_date(cell, pattern)
    return parse_date(cell, "iso") if found is None and pattern != "iso" else found


def parse_date(cell: Any, pattern: str) -> np.datetime64 | None:
    """Read a date, with or without a time; None if the cell is neither. Time zones are ignored: local time counts."""
    if isinstance(cell, str):
        try:
            read = (
                datetime.fromisoformat(cell.strip()) if pattern == "iso" else datetime.strptime(cell.strip(), pattern)
            )
        except ValueError:
            return None
    elif isinstance(cell, datetime):
        read = cell
    elif isinstance(cell, date):
        read = datetime(cell.year, cell.month, cell.day)
    else:
        return None
    return np.datetime64(read.replace(tzinfo=None), "s")


def as_lists(cells: Cells, separator: str | None) -> list[list[str]]:
    """Return the cells as lists of texts; texts are lists in JSON or of Python, or are split at the separator, if any.

    Examples
    --------
    >>> as_lists(["red; blue", '["green"]', None, ["a", 1]], ";")
    [['red', 'blue'], ['green'], [], ['a', '1']]
    """
    return [_list(cell, separator) for cell in (cells if isinstance(cells, list) else as_texts(cells))]


def _list(cell: Any, separator: str | None) -> list[str]:
    if is_missing(cell):
        return []
    if isinstance(cell, (list, tuple, np.ndarray)):
        items: Iterable[Any] = cell
    elif isinstance(cell, (set, frozenset)):
        items = sorted(cell, key=str)
    else:
        text = as_text(cell)
        listed = parse_list(text)
        if listed is not None:
            items = listed
        elif separator is None:
            items = [text]
        else:
            items = text.split() if separator.isspace() and separator != "\t" else text.split(separator)
    return list(dict.fromkeys(name for item in items if not is_missing(item) and (name := as_text(item).strip())))


def _python_list(text: str) -> Any:
    """Read a list as `str` writes it, which is what tables with lists are often saved with; None if it is none."""
    if _TWO_TEXTS.search(text):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def parse_list(text: str) -> list[Any] | None:
    """Read a list of plain values, written as JSON or as Python writes it; None if the text is something else."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    try:
        read = json.loads(stripped)
    except (ValueError, RecursionError):
        read = _python_list(stripped)
    return read if isinstance(read, list) and not any(isinstance(item, (list, dict)) for item in read) else None
