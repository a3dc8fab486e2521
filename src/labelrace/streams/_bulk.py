"""Many numbers at once, out of one array of bytes that holds the texts of all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["Pieces", "floats", "increase_within_rows", "integers"]

_MOST_DIGITS = 9
_EXACT_DIGITS = 15
_POWERS = np.array([float(10**power) for power in range(_EXACT_DIGITS + 1)])


class Pieces(NamedTuple):
    """Texts between delimiters: ``text[start:end]`` each."""

    text: bytes
    starts: IntArray
    ends: IntArray

    def first_bytes(self) -> Array:
        """Return the first byte of each piece."""
        return np.frombuffer(self.text, dtype=np.uint8)[self.starts]


def integers(pieces: Pieces) -> IntArray | None:
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


def increase_within_rows(columns: IntArray, starts: IntArray) -> bool:
    """Return whether the columns of each row, the i-th from ``starts[i]`` on, are in order and differ."""
    increase = columns[1:] > columns[:-1]
    firsts = starts[(starts > 0) & (starts < len(columns))]
    increase[firsts - 1] = True
    return bool(increase.all())


def floats(pieces: Pieces) -> FloatArray:
    """Return ``float()`` of each piece, or raise ValueError."""
    values = _fixed_point(pieces)
    others = np.flatnonzero(np.isnan(values))
    spans = zip(pieces.starts[others].tolist(), pieces.ends[others].tolist(), strict=True)
    values[others] = [float(pieces.text[start:end]) for start, end in spans]
    return values


def _fixed_point(pieces: Pieces) -> FloatArray:
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
