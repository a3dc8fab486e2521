"""Rows that wait for their labels, by their ids: where they are kept, and rows of numbers, with which most models work.

Pending rows are kept in the batches that they came in. A batch whose rows have mostly left is cut down to the others,
so that memory is at most twice what the pending rows need.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse

from labelrace.base import naming, state_file, validation
from labelrace.base.naming import NamedRows
from labelrace.base.sparse import stacked
from labelrace.exceptions import UnknownRowError
from labelrace.typing import AnyMatrix, Array, IntArray


class Step(NamedTuple):
    """A part of the rows that is learned by one change of the model, or not at all."""

    rows: list[int]
    learn: Callable[[], object]


class KindOfRows(Protocol):
    """What models of a kind predict and learn; a model with other rows than `Numbers` has a method ``rows_to_keep``."""

    def copied(self, X: Any) -> Any:
        """Copy rows that have been predicted; what is returned has ``n_rows`` and ``take``."""

    def ids(self, rows: Any) -> list[Hashable]:
        """Return the ids that rows have in them."""

    def steps(self, parts: list[Any], order: IntArray, y: Any) -> list[Step]:
        """Check labels of rows, and return what is to be done to learn them."""

    def model_state(self) -> Any:
        """Return the state of the model, a value; None if it has none."""

    def pack(self, rows: Any, path: str) -> tuple[Any, dict[str, Array]]:
        """Return rows as JSON and as arrays whose names begin with a path."""

    def unpack(self, described: Any, path: str, tensors: dict[str, Array]) -> Any:
        """Return the rows that `pack` was given, or raise an error."""


class _Batch:
    """Rows that came together, and their ids; freed with the last of them."""

    def __init__(self, number: int, rows: Any, ids: list[Hashable]) -> None:
        self.number = number
        self.rows = rows
        self.ids = ids
        self.n_gone = 0


class PendingRows:
    """The pending rows by their ids, oldest first; rows of any kind that has ``n_rows`` and ``take``.

    Examples
    --------
    >>> import numpy as np
    >>> pending = PendingRows()
    >>> pending.keep(["a", "b", "c"], NumberRows(np.array([[1.0], [2.0], [3.0]])), size=2)
    >>> len(pending)
    2
    >>> parts, order = pending.find(["c", "b"])
    >>> [part.matrix.tolist() for part in parts], order.tolist()
    ([[[3.0], [2.0]]], [0, 1])
    """

    def __init__(self) -> None:
        # Valid after any interrupt: several entries are changed in one step.
        self._positions: dict[Hashable, tuple[_Batch, int]] = {}
        self._n_batches = 0

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def ids(self) -> list[Hashable]:
        """The ids, oldest first."""
        return list(self._positions)

    def keep(self, ids: list[Hashable], rows: Any, size: int) -> None:
        """Add rows, which the caller must not change later; the oldest are dropped if there are more than ``size``."""
        # Of rows with one id the last counts.
        last = {identity: row for row, identity in enumerate(ids)}
        chosen = np.fromiter(last.values(), dtype=np.intp)[max(0, len(last) - size) :]
        if not len(chosen):
            self.drop(last)
            return
        if len(chosen) < len(ids):
            rows, ids = rows.take(chosen), [ids[row] for row in chosen]
        self._n_batches += 1
        batch = _Batch(self._n_batches, rows, ids)
        positions = {identity: (batch, row) for row, identity in enumerate(ids)}
        again = positions.keys() & self._positions.keys()
        if again:
            # They come last now, and their rows before are dropped.
            replaced = [self._positions[identity][0] for identity in again]
            self._positions = {one: where for one, where in self._positions.items() if one not in again} | positions
            self._cut_down(replaced)
        else:
            self._positions.update(positions)
        self.drop(islice(self._positions, max(0, len(self._positions) - size)))

    def find(self, ids: list[Hashable]) -> tuple[list[Any], IntArray]:
        """Find rows: some of each batch, oldest first, and in which order all of them are those of the ids.

        Raises
        ------
        UnknownRowError
            If an id is unknown.
        """
        unknown = [identity for identity in ids if identity not in self._positions]
        if unknown:
            some = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise UnknownRowError(
                f"There are no pending rows with the ids {some}: they were not predicted with ids, have been learned, "
                "or were dropped as the oldest of more than max_rows."
            )
        groups = defaultdict[_Batch, list[tuple[int, int]]](list)
        for index, identity in enumerate(ids):
            batch, row = self._positions[identity]
            groups[batch].append((index, row))
        oldest_first = sorted(groups, key=lambda batch: batch.number)
        parts = [batch.rows.take(np.array(groups[batch])[:, 1]) for batch in oldest_first]
        return parts, np.argsort([index for batch in oldest_first for index, _ in groups[batch]])

    def batches(self) -> list[tuple[list[Hashable], Any]]:
        """List the pending rows with their ids, in batches of rows that came together, oldest first."""
        together = defaultdict[_Batch, list[Hashable]](list)
        for identity, (batch, _) in self._positions.items():
            together[batch].append(identity)
        return [(ids, self.find(ids)[0][0]) for ids in together.values()]

    def drop(self, ids: Iterable[Hashable]) -> None:
        """Remove rows."""
        removed = [self._positions.pop(identity, None) for identity in list(ids)]
        self._cut_down([position[0] for position in removed if position is not None])

    def _cut_down(self, left: list[_Batch]) -> None:
        """Copy the pending rows of batches of which less than half are pending, so that the others are freed."""
        for batch, count in Counter(left).items():
            batch.n_gone += count
            if 2 * batch.n_gone <= len(batch.ids):
                continue
            pending = [row for row, one in enumerate(batch.ids) if self._positions.get(one) == (batch, row)]
            ids = [batch.ids[row] for row in pending]
            smaller = _Batch(batch.number, batch.rows.take(np.array(pending, dtype=np.intp)), ids)
            self._positions.update({identity: (smaller, row) for row, identity in enumerate(ids)})


class NumberRows(NamedTuple):
    """Rows of numbers, with the names of their features or None."""

    matrix: AnyMatrix
    names: Sequence[str] | Array | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    def take(self, rows: IntArray) -> NumberRows:
        """Return the rows with the given numbers."""
        return NumberRows(self.matrix[rows], self.names)


class Numbers:
    """Rows of numbers, for the classifiers."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def copied(self, X: Any) -> NumberRows:
        """Copy rows, with the names of their features if they have any."""
        named = naming.feature_dicts(X)
        if named is not None:
            return NumberRows(named.matrix.copy(), list(named.names))
        if scipy.sparse.issparse(X):
            return NumberRows(scipy.sparse.csr_array(X, dtype=float, copy=True))
        matrix = np.array(validation.unmasked(X), dtype=float)
        return NumberRows(matrix, naming.column_names(X, getattr(self.model, "feature_names_in_", None)))

    def ids(self, rows: NumberRows) -> list[Hashable]:
        """Refuse rows without ids."""
        raise ValueError("ids must be a list of ids, one for each row, got None: only tables have a column of ids.")

    def steps(self, parts: list[NumberRows], order: IntArray, y: Any) -> list[Step]:
        """Return the one step in which rows are learned."""
        names, n_features = (getattr(self.model, known, None) for known in ("feature_names_in_", "n_features_in_"))
        rows = _joined(parts, order, names, n_features or 0)
        return [Step(list(range(len(order))), partial(self.model.partial_fit, rows, y))]

    def model_state(self) -> Any:
        """Return the state of the model; None for models of other libraries."""
        return getattr(self.model, "_fitted", None)

    def pack(self, rows: NumberRows, path: str) -> tuple[Any, dict[str, Array]]:
        """Return rows as JSON and arrays."""
        matrix, names = rows
        tensors = {} if names is None else state_file.pack_names(f"{path}.names", [str(name) for name in names])
        if scipy.sparse.issparse(matrix):
            csr = scipy.sparse.csr_array(matrix)
            parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
            tensors |= {f"{path}.{name}": part for name, part in parts.items()}
        else:
            tensors[f"{path}.dense"] = matrix
        return {"shape": list(map(int, matrix.shape)), "has_names": names is not None}, tensors

    def unpack(self, described: Any, path: str, tensors: dict[str, Array]) -> NumberRows:
        """Return the rows of a file; arrays that are no matrix are refused."""
        n_rows, width = map(int, described["shape"])
        if f"{path}.dense" in tensors:
            matrix: Any = tensors[f"{path}.dense"]
        else:
            data, indices, indptr = (tensors[f"{path}.{name}"] for name in ("data", "indices", "indptr"))
            if data.ndim != 1 or indices.dtype.kind != "i" or indptr.dtype.kind != "i" or min(n_rows, width) < 0:
                raise ValueError("its pending rows are no matrix")
            matrix = scipy.sparse.csr_array((data, indices, indptr), shape=(n_rows, width))
            matrix.check_format(full_check=True)
        names = state_file.unpack_names(f"{path}.names", tensors) if described["has_names"] else None
        if matrix.shape != (n_rows, width) or matrix.dtype != float or (names is not None and len(names) != width):
            raise ValueError("its pending rows are not of the form that it tells")
        return NumberRows(matrix, names)


def _joined(parts: list[NumberRows], order: IntArray, names: Array | None, n_features: int) -> AnyMatrix | NamedRows:
    """Join rows; with names if the model has ``names`` for its ``n_features`` features."""
    if names is None:
        return stacked([part.matrix for part in parts], n_features)[order]
    known: Sequence[str] | Array = names
    aligned = list[AnyMatrix]()
    for matrix, own in parts:
        # Rows without names have the first of the model's.
        rows = naming.aligned(NamedRows(matrix, list(names[: matrix.shape[1]]) if own is None else own), known)
        known = rows.names
        aligned.append(rows.matrix)
    return NamedRows(stacked(aligned, len(known))[order], known)
