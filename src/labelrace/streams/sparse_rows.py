"""Sparse rows as text, ``LABEL,LABEL INDEX:VALUE INDEX:VALUE`` or ``{INDEX VALUE,INDEX VALUE}``: many parsed at once.

The text of all rows is one array of bytes. The delimiters in it form a pattern, in which each must follow its
predecessor with a value between them, or without one; in rows that keep to the pattern the labels, indices and values
lie at known positions. Rows that do not, and those with anything unusual, are left to the parsers of single rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from labelrace.typing import Array, BoolArray, FloatArray, IntArray, SparseMatrix

_Pairs: TypeAlias = Iterable[tuple[int, int]]

_MAX_DIGITS = 9

# Kinds of delimiters; a colon is what separates an index from its value.
_NEWLINE, _COLON, _COMMA, _SPACE, _OPEN, _CLOSE, _OTHER = range(1, 8)


class Grammar(NamedTuple):
    """The kind of each byte, 0 in values, and which pairs of delimiters are refused; see `cut_rows`."""

    kind_of_byte: bytes
    refused: bytes


def _grammar(delimiters: Mapping[int, int], in_no_value: bytes, empty: _Pairs, filled: _Pairs) -> Grammar:
    """Make a grammar of pairs of delimiters that have nothing between them, and of those that have a value."""
    # Python ignores underscores in numbers, and pyarrow reads nan(1) as one: neither may be in a value.
    in_value = set(range(33, 127)).difference(delimiters, in_no_value, b"_(")
    kinds = bytes(0 if byte in in_value else delimiters.get(byte, _OTHER) for byte in range(256))
    allowed = {8 * before + after for before, after in empty} | {128 + 8 * before + after for before, after in filled}
    return Grammar(kinds, bytes(pair not in allowed for pair in range(256)))


SVMLIGHT = _grammar(
    {ord("\n"): _NEWLINE, ord(","): _COMMA, ord(":"): _COLON, **dict.fromkeys(b" \t\r\v\f", _SPACE)},
    in_no_value=b"#",
    empty=[(_SPACE, _SPACE), (_NEWLINE, _SPACE), (_SPACE, _NEWLINE), (_NEWLINE, _NEWLINE)],
    filled=[
        *((before, after) for before in (_NEWLINE, _COMMA) for after in (_COMMA, _SPACE, _NEWLINE)),
        *((_NEWLINE, _COLON), (_SPACE, _COLON), (_COLON, _SPACE), (_COLON, _NEWLINE)),
    ],
)
ARFF = _grammar(
    dict(zip(b"\n ,{}", (_NEWLINE, _COLON, _COMMA, _OPEN, _CLOSE), strict=True)),
    in_no_value=b"\\'\"%",
    empty=[(_NEWLINE, _OPEN), (_OPEN, _CLOSE), (_CLOSE, _NEWLINE)],
    filled=[(_OPEN, _COLON), (_COLON, _COMMA), (_COMMA, _COLON), (_COLON, _CLOSE)],
)


class Pieces(NamedTuple):
    """Parts of a text: ``text[start:end]`` each."""

    text: bytes
    starts: IntArray
    ends: IntArray

    def at(self, which: BoolArray | IntArray | slice) -> Pieces:
        """Return some of the pieces, by a mask, their numbers or a slice."""
        return Pieces(self.text, self.starts[which], self.ends[which])


class SparseRows(NamedTuple):
    """Parsed rows: row i has ``labels[label_starts[i]:label_starts[i + 1]]``, and likewise its columns and values.

    The values are numbers, or pieces of text where they have not been parsed yet.
    """

    label_starts: IntArray
    labels: IntArray
    starts: IntArray
    columns: IntArray
    values: FloatArray | Pieces


def cut_rows(text: bytes, grammar: Grammar) -> SparseRows | None:
    """Parse the labels and indices of lines, a row each, and find their values; None if the lines are not plain."""
    kinds = np.frombuffer(text.translate(grammar.kind_of_byte), dtype=np.uint8)
    ends = np.flatnonzero(kinds != 0)  # much faster for booleans than for numbers
    delimiters = kinds[ends]
    starts = np.roll(ends, 1) + 1
    starts[0] = 0
    filled = ends > starts
    # Each pair of delimiters, with 128 added where there is a value between them. The last delimiter, a newline, also
    # counts as the one before the first line.
    pairs = (np.roll(delimiters, 1) << 3) | delimiters | (filled.view(np.uint8) << 7)
    if b"\1" in pairs.tobytes().translate(grammar.refused):
        return None
    row_ends = ends[delimiters == _NEWLINE]
    pieces, is_index = Pieces(text, starts[filled], ends[filled]), delimiters[filled] == _COLON
    if 2 * np.count_nonzero(is_index) == len(is_index):  # no labels
        label_pieces, index_pieces, value_pieces = map(pieces.at, (slice(0), slice(0, None, 2), slice(1, None, 2)))
    else:
        indices = np.flatnonzero(is_index)
        is_index[indices + 1] = True  # a value follows each index, and all other pieces are labels
        label_pieces, index_pieces, value_pieces = map(pieces.at, (np.flatnonzero(~is_index), indices, indices + 1))
    labels, columns = integers(label_pieces), integers(index_pieces)
    label_starts, row_starts = (
        np.concatenate(([0], np.searchsorted(part.starts, row_ends))) for part in (label_pieces, index_pieces)
    )
    if labels is None or columns is None:
        return None
    # The columns of a row must be in order and distinct.
    increase = columns[1:] > columns[:-1]
    increase[row_starts[(row_starts > 0) & (row_starts < len(columns))] - 1] = True
    if not increase.all():
        return None
    return SparseRows(label_starts, labels, row_starts, columns, value_pieces)


def integers(pieces: Pieces) -> IntArray | None:
    """Return the pieces as integers, or None if one has anything but digits, or too many."""
    lengths = pieces.ends - pieces.starts
    longest = int(lengths.max(initial=0))
    if longest > _MAX_DIGITS:
        return None
    text = np.frombuffer(pieces.text, dtype=np.uint8)
    total = np.zeros(len(lengths), dtype=np.intp)
    for power in range(longest):
        # In a shorter piece its first digit is read instead, and counted as zero.
        digits = text[np.maximum(pieces.ends - 1 - power, pieces.starts)] - np.uint8(ord("0"))
        if (digits > 9).any():
            return None
        total += np.where(lengths > power, digits, np.intp(0)) * 10**power
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


def entry_arrays(rows: Iterable[Mapping[int, float]]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return sparse rows, each a mapping from columns to values, as arrays: where each row begins, columns, values."""
    entries = [sorted(row.items()) for row in rows]
    cells = [cell for row in entries for cell in row]
    starts = np.cumsum([0, *map(len, entries)])
    return starts, np.array([c for c, _ in cells], dtype=np.intp), np.array([v for _, v in cells], dtype=np.float64)


def csr_rows(starts: IntArray, columns: IntArray, values: Array, width: int) -> SparseMatrix:
    """Return a sparse matrix whose row i has the entries from ``starts[i]`` on; zeros are not stored."""
    nonzero = values != 0
    if not nonzero.all():
        starts, columns, values = np.concatenate(([0], np.cumsum(nonzero)))[starts], columns[nonzero], values[nonzero]
    # 32 bits are enough for a chunk of rows, and many of scikit-learn's estimators accept no others.
    parts = (values, columns.astype(np.int32), starts.astype(np.int32))
    return csr_array(parts, shape=(len(starts) - 1, width))
