"""Rows that are collected one by one, as a value: appending makes a new buffer, and copies none of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.typing import Array, FloatArray


class RowBuffer:
    """Rows behind others; to NumPy, one array of all of them.

    Parameters
    ----------
    before : (n, m) array or RowBuffer
        The rows before.
    part : (n, m) array
        The last rows. Nobody may write into either.

    Examples
    --------
    >>> import numpy as np
    >>> one = RowBuffer(np.zeros((1, 2)), np.array([[3.0, 4.0]]))
    >>> two = RowBuffer(one, np.array([[5.0, 6.0]]))
    >>> np.asarray(two).tolist(), one.shape
    ([[0.0, 0.0], [3.0, 4.0], [5.0, 6.0]], (2, 2))
    """

    __slots__ = ("before", "part", "shape")

    def __init__(self, before: Array | RowBuffer, part: Array) -> None:
        self.before = before
        self.part = part
        self.shape: tuple[int, int] = (before.shape[0] + len(part), part.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        parts: list[Array] = [self.part]
        before = self.before
        while isinstance(before, RowBuffer):
            parts.append(before.part)
            before = before.before
        return np.concatenate([before, *reversed(parts)], dtype=dtype or float)
