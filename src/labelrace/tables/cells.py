"""The cells of a column as texts, numbers, dates and lists.

A column is a list of Python values with None for missing ones, or an array of floats (NaN if missing), or an array of
``datetime64``. Whole numbers beyond 2⁵³ are Python's, as floats cannot tell them apart. The kind of a column is decided
in `labelrace.tables.column_kinds`.
"""

from __future__ import annotations

import ast
import json
import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelrace.tables.numbers import plain_number
from labelrace.typing import Array, FloatArray

Cells: TypeAlias = list[Any] | Array
Dates: TypeAlias = npt.NDArray[np.datetime64]

# Texts that mean a missing value where something else is expected.
_NOTHING = frozenset(("", "-", "--", "?", "na", "n/a", "nan", "nat", "none", "null", "unknown"))
_TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
# Types of cells that hold several values.
COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
# Tags in the form of Stack Exchange: ``<oven><bread>``.
_ANGLES = re.compile(r"(?:<[^<>]+>\s*)+")
_WHOLE = re.compile(r"(-?\d+)\.0+")
# Texts side by side, as arrays are printed; of such texts Python would make one.
_TWO_TEXTS = re.compile(r"""["']\s+["']""")


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
    if isinstance(value, (float, np.floating, Decimal)):
        return one_form(str(value))
    if isinstance(value, datetime | date | np.datetime64):
        return str(value).replace("T", " ").removesuffix(" 00:00:00")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return " ".join(map(as_text, value))
    if isinstance(value, (set, frozenset)):
        return " ".join(sorted(map(as_text, value)))
    return str(value)


def one_form(text: str) -> str:
    """Write a whole number without a decimal point, and truths as JSON does; other texts stay as they are.

    The same value is a whole number in one table, and 5.0 in another, where a cell of its column is missing.

    Examples
    --------
    >>> one_form("5.0"), one_form("1.10"), one_form("007"), one_form("True")
    ('5', '1.10', '007', 'true')
    """
    if whole := _WHOLE.fullmatch(text):
        return whole[1] if whole[1] != "-0" else "0"
    return text.lower() if text in ("True", "False") else text


def as_name(value: Any) -> str:
    r"""Write a tag, or a value of a category or a list, as the one text that stands for it: in Unicode's form NFC.

    Examples
    --------
    >>> as_name(" Cafe\u0301 ") == "Caf\u00e9"
    True
    """
    return unicodedata.normalize("NFC", one_form(as_text(value).strip()))


def as_texts(cells: Cells) -> list[str]:
    """Return the cells as texts, empty for missing ones."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind == "M":
            return ["" if np.isnat(cell) else as_text(cell) for cell in cells]
        return ["" if math.isnan(cell) else as_text(cell) for cell in cells.tolist()]
    return ["" if cell is None else cell if isinstance(cell, str) else as_text(cell) for cell in cells]


def as_numbers(cells: Cells, decimal: str | None = None) -> tuple[FloatArray, list[int]]:
    """Return the cells as numbers, NaN for missing ones, and the rows of cells that are not numbers.

    ``decimal`` is the decimal sign of ambiguous numbers, such as ``1.234``.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f":
        return np.where(np.isinf(cells), np.nan, cells), np.flatnonzero(np.isinf(cells)).tolist()
    numbers, wrong = np.full(len(cells), np.nan), []
    for row, cell in enumerate(cells):
        number = None if isinstance(cell, np.datetime64) else _number(cell, decimal)
        if number is None:
            wrong.append(row)
        else:
            numbers[row] = number
    return numbers, wrong


def _number(cell: Any, decimal: str | None) -> float | None:
    """Read a number: NaN if it is missing, None if the cell is something else."""
    if isinstance(cell, str):
        text = cell.strip()
        if text.lower() in _NOTHING:
            return math.nan
        if text.lower() in _TRUTHS:
            return _TRUTHS[text.lower()]
        # Most are plain digits with or without a point, which are ambiguous only where commas are decimal signs.
        if decimal == "," or not text.replace(".", "", 1).isdigit():
            text = plain_number(text, decimal) or text
        if not text.isascii() or "_" in text:
            return None
        cell = text
    elif cell is None:
        return math.nan
    elif isinstance(cell, (*COLLECTIONS, dict, bytes)):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_dates(cells: Cells, pattern: str) -> tuple[Dates, list[int]]:
    """Return the cells as times, and the rows of cells that are not times.

    ``pattern`` is a format of `datetime.strptime`, or ``"iso"`` for what `datetime.fromisoformat` reads. The latter is
    always read, as it is unambiguous.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return cells, []
    known: dict[Any, Any] = {}
    dates, wrong = np.full(len(cells), "NaT", dtype="datetime64[s]"), []
    for row, cell in enumerate(cells):
        if is_missing(cell) or (isinstance(cell, float) and math.isnan(cell)):
            continue
        try:
            parsed = known[cell] if cell in known else known.setdefault(cell, _date_or_iso(cell, pattern))
        except TypeError:  # a list cannot be looked up
            parsed = None
        if parsed is not None:
            dates[row] = parsed
        elif not isinstance(cell, str) or cell.strip().lower() not in _NOTHING:
            wrong.append(row)
    return dates, wrong


def _date_or_iso(cell: Any, pattern: str) -> np.datetime64 | None:
    """Read a date of a pattern, or an ISO date."""
    parsed = parse_date(cell, pattern)
    return parse_date(cell, "iso") if parsed is None and pattern != "iso" else parsed


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
            items = text.split() if separator == " " else text.split(separator)
    return list(dict.fromkeys(name for item in items if not is_missing(item) and (name := as_name(item))))


def _python_list(text: str) -> Any:
    """Read a list as `str` writes it, as in many saved tables; None if it is none."""
    if _TWO_TEXTS.search(text):
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def parse_list(text: str) -> list[Any] | None:
    """Read a list of plain values, written as JSON, as Python writes it, or ``<a><b>``; None if the text is another."""
    stripped = text.strip()
    if stripped.startswith("<") and _ANGLES.fullmatch(stripped):
        return [item.strip() for item in stripped[1:-1].replace("<", ">").split(">") if item.strip()]
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    try:
        read = json.loads(stripped)
    except (ValueError, RecursionError):
        read = _python_list(stripped)
    return read if isinstance(read, list) and not any(isinstance(item, (list, dict)) for item in read) else None
