"""Many rows of an ARFF file at once.

The text of the rows is one array of bytes. The delimiters in it form a pattern in which each must follow its
predecessor with a value between them, or without one; rows that keep to the pattern are plain, and their
values lie at known positions. Nearly all of them have one byte, which a table turns into a number.

What is not plain (quotes, missing or longer nominal values, any error) makes these functions return None,
and `labelrace.streams._arff_lines` takes the rows one by one. So they need not handle everything, but what
they accept they must read exactly as that module does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.streams._arff_layout import Entries, Layout
from labelrace.streams._bulk import Pieces, floats, increase_within_rows, integers
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["parse_dense", "parse_sparse"]

_EMPTY, _FILLED, _NEVER = 0, 1, 2
_IN_VALUE, _NEWLINE, _COMMA, _SPACE, _OPEN, _CLOSE, _STRANGE = range(7)
_KINDS = 7


class _Grammar(NamedTuple):
    """``kinds`` maps a byte to its kind, ``between`` a pair of delimiters to what they must enclose."""

    kinds: bytes
    between: bytes


def _grammar(delimiters: dict[str, int], between: dict[tuple[int, int], int]) -> _Grammar:
    # Underscores are strange as Python's float() would pass over them.
    plain = [33 <= byte < 127 and chr(byte) not in "{}\\'\"%_" for byte in range(256)]
    kinds = bytearray(_IN_VALUE if is_plain else _STRANGE for is_plain in plain)
    for delimiter, kind in delimiters.items():
        kinds[ord(delimiter)] = kind
    rules = bytearray([_NEVER]) * 256
    for (before, after), rule in between.items():
        rules[_KINDS * before + after] = rule
    return _Grammar(bytes(kinds), bytes(rules))


_DENSE = _grammar(
    {"\n": _NEWLINE, ",": _COMMA},
    {(before, after): _FILLED for before in (_NEWLINE, _COMMA) for after in (_NEWLINE, _COMMA)},
)
_SPARSE = _grammar(
    {"\n": _NEWLINE, ",": _COMMA, " ": _SPACE, "{": _OPEN, "}": _CLOSE},
    {
        (_NEWLINE, _OPEN): _EMPTY,
        (_OPEN, _CLOSE): _EMPTY,
        (_OPEN, _SPACE): _FILLED,
        (_SPACE, _COMMA): _FILLED,
        (_COMMA, _SPACE): _FILLED,
        (_SPACE, _CLOSE): _FILLED,
        (_CLOSE, _NEWLINE): _EMPTY,
    },
)


def parse_dense(lines: list[bytes], layout: Layout) -> FloatArray | None:
    """Return the values of dense rows, shape (rows, attributes), or None if the rows are not plain."""
    width = len(layout.domain)
    pieces, delimiters = _split(lines, _DENSE)
    if pieces is None or len(delimiters) != len(lines) * width:
        return None
    if (delimiters[width - 1 :: width] != _NEWLINE).any():
        return None
    values = _values(pieces, np.tile(np.arange(width), len(lines)), layout)
    return None if values is None else values.reshape(len(lines), width)


def parse_sparse(lines: list[bytes], layout: Layout) -> Entries | None:
    """Return the values of sparse rows, or None if the rows are not plain."""
    pieces, _ = _split(lines, _SPARSE)
    if pieces is None:
        return None
    indices, values = (Pieces(pieces.text, pieces.starts[i::2], pieces.ends[i::2]) for i in (0, 1))
    row_ends = np.flatnonzero(np.frombuffer(pieces.text, dtype=np.uint8) == ord("\n"))
    starts = np.concatenate(([0], np.searchsorted(indices.starts, row_ends)))
    columns = integers(indices)
    if columns is None or (columns >= len(layout.domain)).any() or not increase_within_rows(columns, starts):
        return None
    numbers = _values(values, columns, layout)
    return None if numbers is None else Entries(starts, columns, numbers)


def _split(lines: list[bytes], grammar: _Grammar) -> tuple[Pieces | None, Array]:
    """Cut the lines at their delimiters; return the pieces that are not empty, and the delimiters.

    There are no pieces, but None, if the delimiters do not form the grammar's pattern.
    """
    text = b"\n".join([*lines, b""]).replace(b", ", b",")
    kinds = np.frombuffer(text.translate(grammar.kinds), dtype=np.uint8)
    ends = np.flatnonzero(kinds != _IN_VALUE)
    delimiters = kinds[ends]
    # The last delimiter is a newline, as if it stood before the first.
    starts = np.roll(ends, 1) + 1
    starts[0] = 0
    filled = ends > starts
    pairs = _KINDS * np.roll(delimiters, 1) + delimiters
    if pairs.tobytes().translate(grammar.between) != filled.tobytes():
        return None, delimiters
    return Pieces(text, starts[filled], ends[filled]), delimiters


def _values(pieces: Pieces, columns: IntArray, layout: Layout) -> FloatArray | None:
    """Return the numbers that the pieces stand for in their columns, or None if one is not plain."""
    values = layout.table[layout.domain[columns], pieces.first_bytes()]
    longer = (pieces.ends - pieces.starts > 1) | np.isnan(values)
    if layout.domain[columns[longer]].any():
        return None
    try:
        values[longer] = floats(Pieces(pieces.text, pieces.starts[longer], pieces.ends[longer]))
    except ValueError:
        return None
    of_labels = values[layout.is_label[columns]]
    if not np.isfinite(values).all() or ((of_labels != 0) & (of_labels != 1)).any():
        return None
    return values
