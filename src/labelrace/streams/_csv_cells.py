"""The cells of delimited text, some rows at a time.

Lines without quotes are taken all at once: one array of bytes, and where each cell begins and ends in it. From the
first quote on, which may hide delimiters and line ends, the standard library's `csv` takes the rows one by one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import numpy as np

from labelrace.streams._bulk import Pieces, floats
from labelrace.streams._source import Place
from labelrace.typing import FloatArray, IntArray

__all__ = ["Cells", "Dialect", "as_numbers", "read_cells", "read_header"]


class Dialect(NamedTuple):
    """How a file is written."""

    path: Path
    delimiter: str
    missing: frozenset[str]


class Cells(Protocol):
    """The cells of some rows."""

    lines: list[int]

    def column(self, position: int) -> Sequence[str]:
        """Return the texts of one column, empty where the cell means a missing value."""

    def numbers(self, positions: Sequence[int]) -> FloatArray | None:
        """Return some columns as finite numbers, NaN where missing; None if a cell is no number."""


def as_numbers(cells: Sequence[str]) -> FloatArray | None:
    """Return the cells as finite numbers, NaN where they are empty or say so; None if one is no number.

    Examples
    --------
    >>> as_numbers(("1", "", "2e3")).tolist(), as_numbers(("1", "x"))
    ([1.0, nan, 2000.0], None)
    """
    text = "".join(cells)
    # float() would take other scripts' digits, and pass over underscores.
    if not text.isascii() or "_" in text:
        return None
    try:
        numbers = np.array(list(map(float, [cell or "nan" for cell in cells])))
    except ValueError:
        return None
    return None if np.isinf(numbers).any() else numbers


class _PlainCells:
    """Cells of lines without quotes; ``text[starts[i, j]:ends[i, j]]`` is the cell of row i and column j."""

    def __init__(self, lines: list[int], text: bytes, starts: IntArray, ends: IntArray) -> None:
        self.lines = lines
        self._text, self._starts, self._ends = text, starts, ends

    def column(self, position: int) -> Sequence[str]:
        spans = zip(self._starts[:, position].tolist(), self._ends[:, position].tolist(), strict=True)
        return [self._text[start:end].decode() for start, end in spans]

    def numbers(self, positions: Sequence[int]) -> FloatArray | None:
        if b"_" in self._text:  # which float() would pass over
            return None
        starts, ends = self._starts[:, positions], self._ends[:, positions]
        values = np.full(starts.shape, np.nan)
        filled = ends > starts
        try:
            values[filled] = floats(Pieces(self._text, starts[filled], ends[filled]))
        except ValueError:
            return None
        return None if np.isinf(values).any() else values


class _RowCells:
    """Cells of rows that `csv` has read."""

    def __init__(self, lines: list[int], rows: list[list[str]], missing: frozenset[str]) -> None:
        self.lines = lines
        self._columns = list(zip(*rows, strict=True))
        self._missing = missing

    def column(self, position: int) -> Sequence[str]:
        cells = self._columns[position]
        return ["" if cell in self._missing else cell for cell in cells] if self._missing else cells

    def numbers(self, positions: Sequence[int]) -> FloatArray | None:
        columns = []
        for position in positions:
            numbers = as_numbers(self.column(position))
            if numbers is None:
                return None
            columns.append(numbers)
        return np.column_stack(columns) if columns else np.empty((len(self.lines), 0))


def read_header(file: IO[bytes], dialect: Dialect) -> tuple[tuple[str, ...], int]:
    """Return the first row of a file, and the number of lines it takes."""
    for lines, rows in _careful_rows(file, 0, 1, dialect):
        return tuple(rows[0]), lines[0]
    raise Place(dialect.path, 1).error("the file is empty; a header of column names must come first")


def read_cells(file: IO[bytes], dialect: Dialect, size: int) -> Iterator[Cells]:
    """Yield the cells of the rows below the header, `size` rows at a time.

    Parameters
    ----------
    file : binary file
        At its start.
    dialect : Dialect
    size : int
    """
    header, line = read_header(file, dialect)
    may_be_plain = dialect.delimiter.isascii() and not dialect.missing
    for block in _blocks(file, size):
        if not may_be_plain or b'"' in b"".join(block):
            yield from _careful_cells(chain(block, file), line, size, dialect, len(header))
            return
        cells = _plain_cells(block, line, dialect, len(header))
        if cells is not None:
            yield cells
        else:
            yield from _careful_cells(block, line, size, dialect, len(header))
        line += len(block)


def _blocks(file: IO[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield lines, so many that `size` of them are not blank."""
    lines, filled = list[bytes](), 0
    while more := list(islice(file, size - filled)):
        lines += more
        filled += sum(bool(raw.strip(b"\r\n")) for raw in more)
        if filled == size:
            yield lines
            lines, filled = [], 0
    if lines:
        yield lines


def _plain_cells(block: list[bytes], line: int, dialect: Dialect, width: int) -> _PlainCells | None:
    """Return the cells of lines without quotes, or None if there is something else about them."""
    bare = [raw.rstrip(b"\r\n") for raw in block]
    lines = list(compress(range(line + 1, line + 1 + len(bare)), bare))
    text = b"\n".join([*filter(None, bare), b""])
    if not lines or b"\r" in text or not _is_utf8(text):
        return None
    signs = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((signs == ord(dialect.delimiter)) | (signs == ord("\n")))
    if len(ends) != len(lines) * width or (signs[ends[width - 1 :: width]] != ord("\n")).any():
        return None
    starts = np.roll(ends, 1) + 1
    starts[0] = 0
    return _PlainCells(lines, text, starts.reshape(-1, width), ends.reshape(-1, width))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _careful_cells(
    raw_lines: Iterable[bytes], line: int, size: int, dialect: Dialect, width: int
) -> Iterator[_RowCells]:
    for lines, rows in _careful_rows(raw_lines, line, size, dialect):
        if set(map(len, rows)) != {width}:
            wrong = next(i for i, row in enumerate(rows) if len(row) != width)
            raise Place(dialect.path, lines[wrong]).error(
                f"the row has {len(rows[wrong])} cells, but the header has {width} columns; correct the row, or the "
                "file is cut here"
            )
        yield _RowCells(lines, rows, dialect.missing)


def _careful_rows(
    raw_lines: Iterable[bytes], line: int, size: int, dialect: Dialect
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Yield the numbers of the (last) lines of rows that are not blank, and their cells, `size` rows at a time."""
    reader = csv.reader(_decoded(raw_lines, line, dialect.path), delimiter=dialect.delimiter, strict=True)
    lines, rows = list[int](), list[list[str]]()
    try:
        for row in filter(None, reader):
            lines.append(line + reader.line_num)
            rows.append(row)
            if len(rows) == size:
                yield lines, rows
                lines, rows = [], []
    except csv.Error as error:
        raise Place(dialect.path, line + reader.line_num).error(
            f"not a valid row ({error}); correct the quotes, or the file is cut here"
        ) from error
    if rows:
        yield lines, rows


def _decoded(raw_lines: Iterable[bytes], line: int, path: Path) -> Iterator[str]:
    for number, raw in enumerate(raw_lines, start=line + 1):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise Place(path, number).error(f"not UTF-8 text ({error.reason}); save the file as UTF-8") from error
        yield text.removeprefix("\ufeff") if number == 1 else text
