"""Rows that were predicted and wait for their labels.

Rows are kept in the batches that they came in. A batch whose rows have mostly left is cut down to the others, so that
memory is at most twice what the waiting rows need.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.exceptions import UnknownRowError
from labelrace.models import naming
from labelrace.models.naming import NamedRows
from labelrace.typing import AnyMatrix, Array, BoolArray, IntArray

__all__ = ["Waiting", "check_ids"]


class _Batch(NamedTuple):
    """Rows that came together: their features, the names of these or None, their ids, and which still wait."""

    rows: AnyMatrix
    names: Sequence[str] | Array | None
    ids: list[Hashable]
    waits: BoolArray


class Waiting:
    """The rows that wait, by their ids, oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> waiting = Waiting()
    >>> waiting.keep(["a", "b", "c"], np.array([[1.0], [2.0], [3.0]]), size=2)
    >>> len(waiting)
    2
    >>> waiting.find(["c", "b"], n_features=2, names=None)  # there has been a new feature meanwhile
    array([[3., 0.],
           [2., 0.]])
    """

    def __init__(self) -> None:
        self._places: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        self._batches: dict[int, _Batch] = {}
        self._n_batches = 0

    def __len__(self) -> int:
        return len(self._places)

    def keep(self, ids: list[Hashable], rows: AnyMatrix | NamedRows, size: int) -> None:
        """Keep rows, which must be the caller's no more; the oldest leave where there are more than ``size``."""
        matrix, names = rows if isinstance(rows, NamedRows) else (rows, None)
        self.drop(identity for identity in ids if identity in self._places)
        # Of rows with one id the last counts.
        last = {identity: row for row, identity in enumerate(ids)}
        chosen = np.fromiter(last.values(), dtype=np.intp)[max(0, len(last) - size) :]
        if not len(chosen):
            return
        if len(chosen) < len(ids):
            matrix, ids = matrix[chosen], [ids[row] for row in chosen]
        number = self._n_batches = self._n_batches + 1
        self._batches[number] = _Batch(matrix, names, ids, np.ones(len(ids), dtype=bool))
        self._places.update((identity, (number, row)) for row, identity in enumerate(ids))
        self.drop(list(islice(self._places, max(0, len(self._places) - size))))

    def find(self, ids: list[Hashable], n_features: int, names: Array | None) -> AnyMatrix | NamedRows:
        """Find rows, in the order of the ids, as rows of a model with so many features, and their names or None.

        Raises
        ------
        UnknownRowError
            Where an id is not there.
        """
        unknown = [identity for identity in ids if identity not in self._places]
        if unknown:
            some = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise UnknownRowError(
                f"There are no rows for the ids {some}: "
                "they were not predicted with ids, have been learned, or were the oldest of more than buffer_size."
            )
        numbers, places = np.array([self._places[identity] for identity in ids], dtype=np.intp).T
        groups = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        parts = [self._taken(int(numbers[group[0]]), places[group], names) for group in groups]
        order = np.argsort(np.concatenate(groups))
        if names is None:
            width = max(n_features, *(part.matrix.shape[1] for part in parts))
            return _stacked([part.matrix for part in parts], width)[order]
        known: Sequence[str] | Array = names
        for place, part in enumerate(parts):
            parts[place] = naming.aligned(part, known)
            known = parts[place].names
        return NamedRows(_stacked([part.matrix for part in parts], len(known))[order], known)

    def _taken(self, number: int, rows: IntArray, names: Array | None) -> NamedRows:
        """Take rows of a batch; without names of its own it has the first of the model's."""
        batch = self._batches[number]
        matrix = batch.rows[rows]
        known = [] if names is None else list(names[: matrix.shape[1]])
        return NamedRows(matrix, known if batch.names is None else batch.names)

    def drop(self, ids: Iterable[Hashable]) -> None:
        """Let rows go."""
        touched = set()
        for identity in list(ids):
            number, row = self._places.pop(identity, (0, 0))
            if number:
                self._batches[number].waits[row] = False
                touched.add(number)
        for number in touched:
            self._cut_down(number)

    def _cut_down(self, number: int) -> None:
        """Forget a batch of which no row waits, and the others of one of which less than half do."""
        rows, names, ids, waits = self._batches[number]
        kept = np.flatnonzero(waits)
        if not len(kept):
            del self._batches[number]
        elif 2 * len(kept) < len(ids):
            ids = [ids[row] for row in kept]
            self._batches[number] = _Batch(rows[kept], names, ids, np.ones(len(ids), dtype=bool))
            for row, identity in enumerate(ids):
                self._places[identity] = (number, row)


def _stacked(parts: list[AnyMatrix], width: int) -> AnyMatrix:
    """Put rows below one another, those from before there were so many features filled up with zeros."""
    if any(scipy.sparse.issparse(part) for part in parts):
        sparse = [scipy.sparse.csr_array(part) for part in parts]
        wide = [scipy.sparse.csr_array((s.data, s.indices, s.indptr), shape=(s.shape[0], width)) for s in sparse]
        return scipy.sparse.vstack(wide, format="csr")
    return np.vstack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


def check_ids(ids: Any, n_rows: int | None = None) -> list[Hashable]:
    """List ids: one for each of ``n_rows`` rows, if that is given; otherwise distinct ones."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"ids={ids!r} does not do: give a list of ids, one for each row.")
    listed = list(ids)
    try:
        distinct = set(listed)
    except TypeError:
        raise ValueError("ids holds what cannot be an id: give numbers, text or tuples of these.") from None
    if n_rows is not None and len(listed) != n_rows:
        raise ValueError(f"X and ids differ in their rows: X has {n_rows}, ids has {len(listed)}.")
    if n_rows is None and not listed:
        raise ValueError("ids is empty: give at least one id.")
    if n_rows is None and len(distinct) < len(listed):
        raise ValueError("ids has an id twice: give each row's labels once.")
    return listed
