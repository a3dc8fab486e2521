"""The rows of an ARFF file one by one: all that the format allows, and the exact error for the rest."""

from __future__ import annotations

import re

import numpy as np

from labelrace.streams._arff_layout import Entries, Layout
from labelrace.streams._arff_text import scan, skip_space
from labelrace.streams._source import Place, shown
from labelrace.typing import FloatArray

__all__ = ["parse_dense", "parse_sparse"]

_BARE_DENSE = re.compile(r"[^,]*")
_BARE_SPARSE = re.compile(r"[^,{}]*")
_MOST_DIGITS = 4000
_INDEX = re.compile(r"([^\s,{}]+)\s+")


def parse_dense(lines: list[bytes], numbers: list[int], layout: Layout) -> FloatArray:
    """Return the values of dense rows, shape (rows, attributes).

    Parameters
    ----------
    lines : list of bytes
        The rows, without space around them.
    numbers : list of int
        The lines' numbers in the file.
    layout : Layout
    """
    rows = np.empty((len(lines), len(layout.codes)))
    for row, raw, number in zip(rows, lines, numbers, strict=True):
        row[:] = _dense_row(raw.decode(layout.header.encoding), layout, layout.place(number))
    return rows


def parse_sparse(lines: list[bytes], numbers: list[int], layout: Layout) -> Entries:
    """Return the values of sparse rows; the parameters are those of `parse_dense`."""
    starts, columns, values = [0], list[int](), list[float]()
    for raw, number in zip(lines, numbers, strict=True):
        entries = _sparse_row(raw.decode(layout.header.encoding), layout, layout.place(number))
        for column in sorted(entries):
            columns.append(column)
            values.append(entries[column])
        starts.append(len(columns))
    return Entries(np.array(starts), np.array(columns, dtype=np.intp), np.array(values, dtype=np.float64))


def _dense_row(line: str, layout: Layout, place: Place) -> list[float]:
    if line.startswith("{"):
        raise place.error("a sparse row in a file that began with dense rows; write all rows the same way")
    texts: list[tuple[str, bool]] = []
    end = -1
    while end < len(line):
        text, quoted, end = scan(line, skip_space(line, end + 1), _BARE_DENSE, place)
        if not text and not quoted:
            raise place.error(f"value {len(texts) + 1} is empty; write ? if it is missing")
        if end < len(line) and line[end] != ",":
            raise place.error(f"text follows the quoted value {len(texts) + 1}; separate values by commas")
        texts.append((text, quoted))
    if len(texts) != len(layout.codes):
        raise place.error(
            f"the row has {len(texts)} values, but the header declares {len(layout.codes)} attributes; "
            "correct the row, or the file is cut here"
        )
    return [_number(text, quoted, column, layout, place) for column, (text, quoted) in enumerate(texts)]


def _sparse_row(line: str, layout: Layout, place: Place) -> dict[int, float]:
    if not line.startswith("{"):
        raise place.error("a dense row in a file that began with sparse rows; write all rows the same way")
    entries: dict[int, float] = {}
    end = skip_space(line, 1)
    closed = line.startswith("}", end)
    while not closed:
        column, end = _sparse_index(line, end, layout, place)
        if column in entries:
            raise place.error(f"index {column} appears twice; give each attribute one value")
        text, quoted, end = scan(line, end, _BARE_SPARSE, place)
        if not text and not quoted:
            raise place.error(f"index {column} has no value; write {{INDEX VALUE, ...}}, or the file is cut here")
        entries[column] = _number(text, quoted, column, layout, place)
        closed = line.startswith("}", end)
        if not closed:
            _check_comma(line, end, place)
            end = skip_space(line, end + 1)
    if line[end + 1 :].strip():
        raise place.error(f"unexpected text {line[end + 1 :].strip()[:40]!r} after the row's }}; remove it")
    return entries


def _sparse_index(line: str, start: int, layout: Layout, place: Place) -> tuple[int, int]:
    """Read an attribute's index; return it and the position of its value."""
    match = _INDEX.match(line, start)
    if match is None:
        if start >= len(line) or "}" not in line[start:]:
            raise _cut(place)
        raise place.error(f"expected INDEX VALUE, found {line[start : start + 40]!r}; correct the entry")
    index = match[1]
    if not (index.isascii() and index.isdigit()):
        raise place.error(f"{index!r} is not an attribute's index; write {{INDEX VALUE, ...}}")
    # Python refuses to read numbers of thousands of digits.
    if len(index) > _MOST_DIGITS or int(index) >= len(layout.codes):
        raise place.error(
            f"index {index[:40]} is out of range; the header declares {len(layout.codes)} attributes, and the "
            "first has index 0"
        )
    return int(index), match.end()


def _check_comma(line: str, end: int, place: Place) -> None:
    if end >= len(line):
        raise _cut(place)
    if line[end] != ",":
        raise place.error(f"expected a comma or }} before {line[end : end + 40]!r}; separate entries by commas")


def _cut(place: Place) -> Exception:
    return place.error("the sparse row is not closed by }; add it, or the file is cut here")


def _number(text: str, quoted: bool, column: int, layout: Layout, place: Place) -> float:
    """Return what the text of a value means in its column."""
    name = layout.header.attributes[column].name
    if text == "?" and not quoted:
        if layout.is_label[column]:
            raise place.error(f"label {name!r} is missing (?); labels must be known, so remove the row")
        return np.nan
    codes = layout.codes[column]
    if codes is not None:
        if text not in codes:
            raise place.error(f"{text!r} is not a declared value of attribute {name!r}, which has {shown([*codes])}")
        return codes[text]
    try:
        number = float(text) if text.isascii() and "_" not in text else np.inf
    except ValueError:
        number = np.inf
    if np.isinf(number):
        raise place.error(f"{text!r} is not a finite number, as attribute {name!r} needs; write ? if it is missing")
    if layout.is_label[column] and number not in (0, 1):
        raise place.error(f"label {name!r} is {text}, but a label must be 0 or 1; if it is a feature, correct labels=")
    return number
