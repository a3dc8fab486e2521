"""Many rows of labels and INDEX:VALUE pairs at once, as `labelrace.streams._arff_bulk` does it for ARFF.

Rows that are not plain, or wrong, make `parse` return None; `labelrace.streams._pairs_lines` takes those.
"""

from __future__ import annotations

import numpy as np

from labelrace.streams._bulk import Pieces, floats, increase_within_rows, integers
from labelrace.streams._pairs import Pairs
from labelrace.typing import Array, BoolArray

__all__ = ["parse"]

_IN_VALUE, _NEWLINE, _COMMA, _COLON, _SPACE, _STRANGE = range(6)
_KINDS = 6
_EMPTY, _FILLED, _EITHER = 1, 2, 3


def _kinds() -> bytes:
    # Underscores are strange as Python's float() would pass over them.
    plain = [33 <= byte < 127 and chr(byte) not in "#_" for byte in range(256)]
    kinds = bytearray(_IN_VALUE if is_plain else _STRANGE for is_plain in plain)
    for kind, delimiters in ((_NEWLINE, b"\n"), (_COMMA, b","), (_COLON, b":"), (_SPACE, b" \t\r\v\f")):
        for delimiter in delimiters:
            kinds[delimiter] = kind
    return bytes(kinds)


def _between() -> Array:
    """Return, for a pair of delimiters, whether a value must, may or cannot stand between them (0: never)."""
    rules = np.zeros(_KINDS * _KINDS, dtype=np.uint8)
    label_ends = [(before, after) for before in (_NEWLINE, _COMMA) for after in (_COMMA, _SPACE, _NEWLINE)]
    pairs = [(_NEWLINE, _COLON), (_SPACE, _COLON), (_COLON, _SPACE), (_COLON, _NEWLINE)]
    for before, after in label_ends + pairs:
        rules[_KINDS * before + after] = _FILLED
    rules[_KINDS * _NEWLINE + _NEWLINE] = _EITHER
    rules[_KINDS * _SPACE + _SPACE] = _EMPTY
    return rules


_KIND_OF_BYTE = _kinds()
_RULES = _between()


def parse(lines: list[bytes], with_values: bool = True) -> Pairs | None:
    """Return the ids and values of the rows, or None if the rows are not plain.

    Parameters
    ----------
    lines : list of bytes
        The rows, without space around them.
    with_values : bool
        Without, no text is turned into a value, and there are no values in what is returned.
    """
    text = b"\n".join([*lines, b""])
    kinds = np.frombuffer(text.translate(_KIND_OF_BYTE), dtype=np.uint8)
    ends = np.flatnonzero(kinds != _IN_VALUE)
    after = kinds[ends]
    # The last delimiter is a newline, as if it stood before the first.
    before = np.roll(after, 1)
    starts = np.roll(ends, 1) + 1
    starts[0] = 0
    filled = ends > starts
    if (after == _STRANGE).any() or not (_RULES[_KINDS * before + after] & np.where(filled, _FILLED, _EMPTY)).all():
        return None

    def pieces(wanted: BoolArray) -> Pieces:
        return Pieces(text, starts[wanted], ends[wanted])

    is_index, is_value = filled & (after == _COLON), filled & (before == _COLON)
    label_pieces, index_pieces = pieces(filled & ~is_index & ~is_value), pieces(is_index)
    row_ends = ends[after == _NEWLINE]
    label_starts, row_starts = (
        np.concatenate(([0], np.searchsorted(part.starts, row_ends))) for part in (label_pieces, index_pieces)
    )
    labels, columns = integers(label_pieces), integers(index_pieces)
    if labels is None or columns is None or not increase_within_rows(columns, row_starts):
        return None
    try:
        values = floats(pieces(is_value)) if with_values else np.empty(0)
    except ValueError:
        return None
    return None if np.isinf(values).any() else Pairs(label_starts, labels, row_starts, columns, values)
