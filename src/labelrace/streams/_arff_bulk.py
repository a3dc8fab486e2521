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
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["parse_dense", "parse_sparse"]

_EMPTY, _FILLED, _NEVER = 0, 1, 2
_IN_VALUE, _NEWLINE, _COMMA, _SPACE, _OPEN, _CLOSE, _STRANGE = range(7)
_KINDS = 7
_MOST_DIGITS = 9
_EXACT_DIGITS = 15
_POWERS = np.array([float(10**power) for power in range(_EXACT_DIGITS + 1)])


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


class _Pieces(NamedTuple):
    """Texts between delimiters: ``text[start:end]`` each."""

    text: bytes
    starts: IntArray
    ends: IntArray

    def first_bytes(self) -> Array:
        return np.frombuffer(self.text, dtype=np.uint8)[self.starts]


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
    indices, values = (_Pieces(pieces.text, pieces.starts[i::2], pieces.ends[i::2]) for i in (0, 1))
    row_ends = np.flatnonzero(np.frombuffer(pieces.text, dtype=np.uint8) == ord("\n"))
    starts = np.concatenate(([0], np.searchsorted(indices.starts, row_ends)))
    columns = _integers(indices)
    if columns is None or (columns >= len(layout.domain)).any() or not _increase_within_rows(columns, starts):
        return None
    numbers = _values(values, columns, layout)
    return None if numbers is None else Entries(starts, columns, numbers)


def _split(lines: list[bytes], grammar: _Grammar) -> tuple[_Pieces | None, Array]:
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
    return _Pieces(text, starts[filled], ends[filled]), delimiters


def _integers(pieces: _Pieces) -> IntArray | None:
    """Return the pieces as integers, or None if one has anything but digits, or too many."""
    lengths = pieces.ends - pieces.starts
    longest = int(lengths.max(initial=0))
    if longest > _MOST_DIGITS:
        return None
    text = np.frombuffer(pieces.text, dtype=np.uint8)
    total = np.zeros(len(lengths), dtype=np.intp)
    for place in range(longest):
        # In a shorter piece its first digit stands in, to be counted as zero.
        digits = text[np.maximum(pieces.ends - 1 - place, pieces.starts)] - np.uint8(ord("0"))
        if (digits > 9).any():
            return None
        total += np.where(lengths > place, digits, np.intp(0)) * 10**place
    return total


def _increase_within_rows(columns: IntArray, starts: IntArray) -> bool:
    increase = columns[1:] > columns[:-1]
    firsts = starts[(starts > 0) & (starts < len(columns))]
    increase[firsts - 1] = True
    return bool(increase.all())


def _values(pieces: _Pieces, columns: IntArray, layout: Layout) -> FloatArray | None:
    """Return the numbers that the pieces stand for in their columns, or None if one is not plain."""
    values = layout.table[layout.domain[columns], pieces.first_bytes()]
    longer = (pieces.ends - pieces.starts > 1) | np.isnan(values)
    if layout.domain[columns[longer]].any():
        return None
    try:
        values[longer] = _floats(_Pieces(pieces.text, pieces.starts[longer], pieces.ends[longer]))
    except ValueError:
        return None
    of_labels = values[layout.is_label[columns]]
    if not np.isfinite(values).all() or ((of_labels != 0) & (of_labels != 1)).any():
        return None
    return values


def _floats(pieces: _Pieces) -> FloatArray:
    """Return ``float()`` of each piece, or raise ValueError."""
    values = _fixed_point(pieces)
    others = np.flatnonzero(np.isnan(values))
    spans = zip(pieces.starts[others].tolist(), pieces.ends[others].tolist(), strict=True)
    values[others] = [float(pieces.text[start:end]) for start, end in spans]
    return values


def _fixed_point(pieces: _Pieces) -> FloatArray:
    """Return the pieces that are short decimal fractions, such as -1.25, as numbers, and NaN for others.

    Digits and power of ten are exact in floating point, so their ratio is rounded once, as ``float()`` does.
    """
    text = np.frombuffer(pieces.text, dtype=np.uint8)
    negative = pieces.first_bytes() == ord("-")
    starts = pieces.starts + negative
    lengths = pieces.ends - starts
    whole, points, decimals = np.zeros((3, len(starts)), dtype=np.int64)
    known = np.zeros(len(starts), dtype=np.int64)
    for place in range(min(int(lengths.max(initial=0)), _EXACT_DIGITS + 1)):
        inside = lengths > place
        byte = text[np.minimum(starts + place, pieces.ends)]
        digit = byte - np.uint8(ord("0"))
        is_digit = inside & (digit <= 9)
        is_point = inside & (byte == ord("."))
        whole = np.where(is_digit, 10 * whole + digit, whole)
        decimals += is_digit & (points > 0)
        points += is_point
        known += is_digit | is_point
    digits = lengths - points
    plain = (known == lengths) & (points <= 1) & (digits >= 1) & (digits <= _EXACT_DIGITS)
    sign = np.where(negative, -1.0, 1.0)
    return np.where(plain, sign * whole / _POWERS[np.minimum(decimals, _EXACT_DIGITS)], np.nan)
