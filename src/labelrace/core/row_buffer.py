"""Rows that are collected one by one, as a value: appending makes a new buffer, and copies none of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.typing import Array, FloatArray

__all__ = ["RowBuffer"]


class RowBuffer:
    """Rows in the parts that they came in, each with those before it; to NumPy, one array of all of them.

    Parameters
    ----------
    before : RowBuffer or None
        The rows before.
    part : (n, m) array
        The last rows. Nobody may write into them.

    Examples
    --------
    >>> import numpy as np
    >>> one = RowBuffer.of(np.zeros((1, 2)))
    >>> two = one.appended(np.array([[3.0, 4.0]]))
    >>> np.asarray(two).tolist(), len(two), len(one)
    ([[0.0, 0.0], [3.0, 4.0]], 2, 1)
    """

    __slots__ = ("before", "n_rows", "part")

    def __init__(self, before: RowBuffer | None, part: Array) -> None:
        self.before = before
        self.part = part
        self.n_rows = len(part) if before is None else before.n_rows + len(part)

    @classmethod
    def of(cls, rows: Array | RowBuffer) -> RowBuffer:
        """Make a buffer of an array; a buffer is returned as it is."""
        return rows if isinstance(rows, RowBuffer) else cls(None, rows)

    def appended(self, rows: Array) -> RowBuffer:
        """Make a buffer with further rows."""
        return RowBuffer(self, rows)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of all rows."""
        return self.n_rows, self.part.shape[1]

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        parts, buffer = [], self
        while buffer.before is not None:
            parts.append(buffer.part)
            buffer = buffer.before
        parts.append(buffer.part)
        return np.concatenate(parts[::-1], dtype=dtype or float)
