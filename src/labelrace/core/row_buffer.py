"""Rows that are collected one by one, as a value: appending makes a new buffer, and copies none of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.typing import Array, FloatArray

__all__ = ["RowBuffer"]


class RowBuffer:
    """Rows in the parts that they came in; to NumPy, one array of all of them.

    Parameters
    ----------
    n_columns : int
    parts : tuple of (n, n_columns) arrays, default=()
        Nobody may write into them.
    n_rows : int, default=0
        All their rows.

    Examples
    --------
    >>> import numpy as np
    >>> one = RowBuffer.of(np.zeros((1, 2)))
    >>> two = one.appended(np.array([[3.0, 4.0]]))
    >>> np.asarray(two).tolist(), len(two), len(one)
    ([[0.0, 0.0], [3.0, 4.0]], 2, 1)
    """

    def __init__(self, n_columns: int, parts: tuple[Array, ...] = (), n_rows: int = 0) -> None:
        self.n_columns = n_columns
        self.parts = parts
        self.n_rows = n_rows

    @classmethod
    def of(cls, rows: Array | RowBuffer) -> RowBuffer:
        """Make a buffer of an array; a buffer is returned as it is."""
        if isinstance(rows, RowBuffer):
            return rows
        return cls(rows.shape[1], (rows,) if len(rows) else (), len(rows))

    def appended(self, rows: Array) -> RowBuffer:
        """Make a buffer with further rows."""
        return RowBuffer(self.n_columns, (*self.parts, rows), self.n_rows + len(rows))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of all rows."""
        return self.n_rows, self.n_columns

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.concatenate([np.zeros((0, self.n_columns)), *self.parts], dtype=dtype or float)
