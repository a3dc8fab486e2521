"""Sparse rows as text: each line is ``LABEL,LABEL INDEX:VALUE INDEX:VALUE``, and many lines are parsed at once.

The text of all lines is one array of bytes. The delimiters in it form a pattern, in which each must follow its
predecessor with a value between them, or without one; in rows that keep to the pattern the labels, indices and values
lie at known positions. Rows that do not, and those with anything unusual, are left to the parsers of single rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from labelrace.typing import Array, BoolArray, FloatArray, IntArray, SparseMatrix

_MOST_DIGITS = 9

_NEWLINE, _COMMA, _COLON, _SPACE, _OTHER = range(1, 6)
_DELIMITERS = {ord("\n"): _NEWLINE, ord(","): _COMMA, ord(":"): _COLON, **dict.fromkeys(b" \t\r\v\f", _SPACE)}
# Python ignores underscores in numbers, and pyarrow reads nan(1) as one: neither may be in a value.
_IN_VALUE = frozenset(range(33, 127)).difference(b",:#_(")
_KIND_OF_BYTE = bytes(0 if byte in _IN_VALUE else _DELIMITERS.get(byte, _OTHER) for byte in range(256))
# Pairs of delimiters that may follow each other with nothing between them, and with a value between them.
_EMPTY = {(_SPACE, _SPACE), (_NEWLINE, _SPACE), (_SPACE, _NEWLINE), (_NEWLINE, _NEWLINE)}
_FILLED = {(before, after) for before in (_NEWLINE, _COMMA) for after in (_COMMA, _SPACE, _NEWLINE)}
_FILLED |= {(_NEWLINE, _COLON), (_SPACE, _COLON), (_COLON, _SPACE), (_COLON, _NEWLINE)}
_ALLOWED = {8 * before + after for before, after in _EMPTY} | {128 + 8 * before + after for before, after in _FILLED}
_REFUSED = bytes(pair not in _ALLOWED for pair in range(256))


class Pieces(NamedTuple):
    """Parts of a text: ``text[start:end]`` each."""

    text: bytes
    starts: IntArray
    ends: IntArray

    def at(self, wanted: BoolArray | IntArray) -> Pieces:
        """Return some of the pieces, by a mask or by their places."""
        return Pieces(self.text, self.starts[wanted], self.ends[wanted])

    def first_bytes(self) -> Array:
        """Return the first byte of each piece."""
        return np.frombuffer(self.text, dtype=np.uint8)[self.starts]


class SparseRows(NamedTuple):
    """Parsed rows: row i has ``labels[label_starts[i]:label_starts[i + 1]]``, and likewise its columns and values.

    The values are numbers, or pieces of text where they have not been parsed yet.
    """

    label_starts: IntArray
    labels: IntArray
    starts: IntArray
    columns: IntArray
    values: FloatArray | Pieces


def cut_rows(text: bytes) -> SparseRows | None:
    """Parse the labels and indices of lines, a row each, and find their values; None if the lines are not plain."""
    kinds = np.frombuffer(text.translate(_KIND_OF_BYTE), dtype=np.uint8)
    ends = np.flatnonzero(kinds != 0)  # much faster for booleans than for numbers
    delimiters = kinds[ends]
    starts = np.roll(ends, 1) + 1
    starts[0] = 0
    filled = ends > starts
    # The last delimiter, a newline, also counts as the one before the first line.
    pairs = (np.roll(delimiters, 1) << 3) | delimiters | (filled.view(np.uint8) << 7)
    if b"\1" in pairs.tobytes().translate(_REFUSED):
        return None
    pieces = Pieces(text, starts, ends)
    # An index stands before each colon and a value after it; all others are labels.
    at_index = np.flatnonzero(delimiters == _COLON)
    filled[at_index] = filled[at_index + 1] = False
    label_pieces, index_pieces = pieces.at(filled), pieces.at(at_index)
    labels, columns = integers(label_pieces), integers(index_pieces)
    row_ends = ends[delimiters == _NEWLINE]
    label_starts, row_starts = (
        np.concatenate(([0], np.searchsorted(part.starts, row_ends))) for part in (label_pieces, index_pieces)
    )
    if labels is None or columns is None or not _increase_within_rows(columns, row_starts):
        return None
    return SparseRows(label_starts, labels, row_starts, columns, pieces.at(at_index + 1))


def integers(pieces: Pieces) -> IntArray | None:
    """Return the pieces as integers, or None if one has anything but digits, or too many."""
    lengths = pieces.ends - pieces.starts
    longest = int(lengths.max(initial=0))
    if longest > _MOST_DIGITS:
        return None
    text = np.frombuffer(pieces.text, dtype=np.uint8)
    total = np.zeros(len(lengths), dtype=np.intp)
    for place in range(longest):
        # In a shorter piece its first digit is read instead, and counted as zero.
        digits = text[np.maximum(pieces.ends - 1 - place, pieces.starts)] - np.uint8(ord("0"))
        if (digits > 9).any():
            return None
        total += np.where(lengths > place, digits, np.intp(0)) * 10**place
    return total


def floats(pieces: Pieces) -> FloatArray | None:
    """Return the pieces as numbers, or None if one is not a number or is infinite."""
    bounds = np.stack((pieces.starts, pieces.ends), axis=1)
    buffers = [None, pa.py_buffer(bounds.astype(np.int64)), pa.py_buffer(pieces.text)]
    with_gaps = pa.Array.from_buffers(pa.large_string(), max(2 * len(bounds) - 1, 0), buffers)
    try:
        numbers: FloatArray = with_gaps.take(np.arange(0, len(with_gaps), 2)).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return None if np.isinf(numbers).any() else numbers


def _increase_within_rows(columns: IntArray, starts: IntArray) -> bool:
    """Return whether the columns of each row, the i-th from ``starts[i]`` on, are in order and distinct."""
    increase = columns[1:] > columns[:-1]
    firsts = starts[(starts > 0) & (starts < len(columns))]
    increase[firsts - 1] = True
    return bool(increase.all())


def entry_arrays(rows: Iterable[Mapping[int, float]]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return sparse rows, each a mapping from columns to values, as arrays: where each row begins, columns, values."""
    entries = [sorted(row.items()) for row in rows]
    cells = [cell for row in entries for cell in row]
    starts = np.cumsum([0, *map(len, entries)])
    return starts, np.array([c for c, _ in cells], dtype=np.intp), np.array([v for _, v in cells], dtype=np.float64)


def csr_rows(starts: IntArray, columns: IntArray, values: Array, width: int) -> SparseMatrix:
    """Return a sparse matrix whose row i has the entries from ``starts[i]`` on; zeros are not stored."""
    kept = values != 0
    if not kept.all():
        starts, columns, values = np.concatenate(([0], np.cumsum(kept)))[starts], columns[kept], values[kept]
    # 32 bits are enough for a chunk of rows, and many of scikit-learn's estimators accept no others.
    parts = (values, columns.astype(np.int32), starts.astype(np.int32))
    return csr_array(parts, shape=(len(starts) - 1, width))
