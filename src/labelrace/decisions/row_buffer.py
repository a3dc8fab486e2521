"""Rows that are collected one by one, as a value: appending makes a new buffer, and leaves the old one as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.typing import Array, FloatArray


class RowBuffer:
    """Rows of several arrays of one width, to which few are appended at little cost; to NumPy, one array of all.

    Buffers that were made of one another share one array, in which the longest of them has written behind the others.
    Whoever appends to a buffer behind which there is something already copies it first.

    Examples
    --------
    >>> import numpy as np
    >>> one = RowBuffer.of(np.zeros((2, 0, 3)), 8).appended(np.ones((1, 3)), np.zeros((1, 3)))
    >>> two = one.appended(np.full((1, 3), 5.0), np.zeros((1, 3)))
    >>> np.asarray(two)[0].tolist(), one.shape
    ([[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]], (2, 1, 3))
    """

    __slots__ = ("_room", "_taken", "shape")

    def __init__(self, room: FloatArray, taken: dict[int, object], n_rows: int) -> None:
        self._room = room
        # By the number of rows behind which something was written, who has written it.
        self._taken = taken
        self.shape: tuple[int, int, int] = (room.shape[0], n_rows, room.shape[2])

    @classmethod
    def of(cls, arrays: Array | RowBuffer, capacity: int) -> RowBuffer:
        """Copy the rows of (k, n, m) arrays, with room for so many rows of each."""
        k, n, m = arrays.shape
        room = np.empty((k, max(n, capacity), m))
        room[:, :n] = arrays
        return cls(room, {}, n)

    def appended(self, *parts: Array) -> RowBuffer:
        """Return the buffer with further rows: an (n, m) array for each of its arrays."""
        room, start, writer = self._room, self.shape[1], object()
        end = start + len(parts[0])
        if end > room.shape[1] or self._taken.setdefault(start, writer) is not writer:
            return RowBuffer.of(self, max(end, room.shape[1])).appended(*parts)
        for place, part in enumerate(parts):
            room[place, start:end] = part
        return RowBuffer(room, self._taken, end)

    def with_room(self) -> tuple[RowBuffer, FloatArray] | None:
        """Return the buffer with a further row, and all of its array, where the caller writes that row.

        None if there is no room, or something behind this buffer already. If nothing is made of it, `withdraw` it.
        """
        room, start, writer = self._room, self.shape[1], object()
        if start == room.shape[1] or self._taken.setdefault(start, writer) is not writer:
            return None
        return RowBuffer(room, self._taken, start + 1), room

    def withdraw(self) -> None:
        """Give back the room of the last row."""
        self._taken.pop(self.shape[1] - 1, None)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        rows = self._room[:, : self.shape[1]]
        return rows.astype(dtype or float) if copy or dtype not in (None, float) else rows

    def __reduce__(self) -> tuple[Any, ...]:
        return RowBuffer.of, (np.array(self), self._room.shape[1])
