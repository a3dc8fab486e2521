"""Labels that come later than predictions: rows are pending, by their ids, until their labels are known.

Pending rows are kept in the batches that they came in. A batch whose rows have mostly left is cut down to the others,
so that memory is at most twice what the pending rows need.

A row is learned or pending, never both, wherever an interrupt comes. Learning a row and dropping it are two steps: the
first notes which rows are being learned and what the model knew before; the next call, or the interrupted one itself,
checks whether the model has changed since, and drops the rows if it has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import naming, parameters
from labelrace.base.fitted import Fitted
from labelrace.base.naming import NamedRows
from labelrace.base.sparse import stacked
from labelrace.base.threads import Writable, one_at_a_time
from labelrace.exceptions import UnknownRowError
from labelrace.typing import AnyMatrix, Array, IntArray, MatrixLike, TargetLike


class _Learning(NamedTuple):
    """Rows that are being learned, and what the model knew before; None for models of other libraries."""

    ids: list[Hashable]
    before: Fitted | None


class DelayedLabels(Writable):
    """A model whose rows are predicted now and learned when their labels are known.

    Any number of threads may call its methods. After an interrupt (Ctrl-C) a row has been learned or is still pending;
    rows that a model of another library was just learning are not pending any more.

    Parameters
    ----------
    model : classifier
        It predicts, and learns by ``partial_fit``; one of labelrace's or any other.
    max_rows : int, default=10_000
        Maximum number of pending rows; the oldest are dropped.

    Attributes
    ----------
    model : classifier
        The model, to save it or to call its other methods. Pending rows are not saved with it.

    Examples
    --------
    >>> import numpy as np
    >>> import labelrace
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> model = labelrace.BinaryRelevanceClassifier().fit(X, X > 0.5)
    >>> tickets = labelrace.DelayedLabels(model, max_rows=1000)
    >>> tickets.predict([[0.1], [0.8]], ids=["A-1", "A-2"])
    array([[False],
           [ True]])
    >>> tickets.learn(["A-2"], [[1]]).pending_ids
    ['A-1']
    """

    def __init__(self, model: Any, *, max_rows: int = 10_000) -> None:
        parameters.check_whole("max_rows", max_rows, 0)
        if not hasattr(model, "partial_fit"):
            raise ValueError(f"model must be a classifier that has partial_fit, got {model!r}.")
        self.model = model
        self.max_rows = max_rows
        self._rows = PendingRows()
        self._learning: _Learning | None = None

    def __len__(self) -> int:
        return len(self.pending_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, max_rows={self.max_rows})"

    @property
    def pending_ids(self) -> list[Hashable]:
        """Ids of the pending rows, oldest first."""
        return one_at_a_time(self._writers, lambda: self._up_to_date().ids)

    def predict(self, X: MatrixLike, ids: Iterable[Hashable]) -> AnyMatrix:
        """Predict label sets; the rows are pending until `learn` gets their labels.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.
        ids : sequence of n ids
            Numbers, text or tuples of these. An id that comes again replaces its row.

        Returns
        -------
        (n, l) array of 0 and 1
            As the model's ``predict`` gives it.
        """
        return self._keep(self.model.predict(X), X, ids)

    def predict_labels(self, X: MatrixLike, ids: Iterable[Hashable]) -> list[set[Any]]:
        """Predict label sets by name, and keep the rows; see `predict`."""
        return self._keep(self.model.predict_labels(X), X, ids)

    def predict_top(self, X: MatrixLike, ids: Iterable[Hashable], k: int = 5) -> list[list[tuple[Any, float]]]:
        """List the most likely labels with their probabilities, and keep the rows; see `predict`."""
        return self._keep(self.model.predict_top(X, k), X, ids)

    def _keep(self, predicted: Any, X: Any, ids: Any) -> Any:
        """Keep copies of rows after they have been predicted, so that wrong rows have been refused."""
        rows = _own_rows(X)
        listed = _check_ids(ids, _matrix(rows).shape[0])
        one_at_a_time(self._writers, lambda: self._up_to_date().keep(listed, rows, self.max_rows))
        return predicted

    def learn(self, ids: Iterable[Hashable], y: TargetLike) -> Self:
        """Learn rows that were predicted before, now that their labels are known.

        Parameters
        ----------
        ids : sequence
            The ids that the rows were given in `predict`. They are forgotten then: a row is learned once.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, as for ``partial_fit``.

        Returns
        -------
        self

        Raises
        ------
        UnknownRowError
            If an id is not that of a pending row.
        """
        one_at_a_time(self._writers, self._learn, _check_ids(ids), y)
        return self

    def _learn(self, ids: list[Hashable], y: TargetLike) -> None:
        names, n_features = (getattr(self.model, known, None) for known in ("feature_names_in_", "n_features_in_"))
        rows = self._up_to_date().find(ids, names, n_features or 0)
        self._learning = _Learning(ids, getattr(self.model, "_fitted", None))
        try:
            self.model.partial_fit(rows, y)
        except Exception:
            # The model has refused the rows, and is as it was: they stay pending.
            self._learning = None
            raise
        finally:
            self._up_to_date()

    def _up_to_date(self) -> PendingRows:
        """Return the pending rows, without those that have been learned."""
        learning = self._learning
        if learning is not None:
            known = getattr(self.model, "_fitted", None)
            if known is None or known is not learning.before:
                self._rows.drop(learning.ids)
            self._learning = None
        return self._rows


class _Batch:
    """Rows that came together, with the names of their features or None, and their ids; freed with the last of them."""

    def __init__(self, number: int, rows: AnyMatrix, names: Sequence[str] | Array | None, ids: list[Hashable]) -> None:
        self.number = number
        self.rows = rows
        self.names = names
        self.ids = ids
        self.n_gone = 0


class PendingRows:
    """The pending rows by their ids, oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> pending = PendingRows()
    >>> pending.keep(["a", "b", "c"], np.array([[1.0], [2.0], [3.0]]), size=2)
    >>> len(pending)
    2
    >>> pending.find(["c", "b"], names=None)
    array([[3.],
           [2.]])
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

    def keep(self, ids: list[Hashable], rows: AnyMatrix | NamedRows, size: int) -> None:
        """Add rows, which the caller must not change later; the oldest are dropped if there are more than ``size``."""
        matrix, names = rows if isinstance(rows, NamedRows) else (rows, None)
        # Of rows with one id the last counts.
        last = {identity: row for row, identity in enumerate(ids)}
        chosen = np.fromiter(last.values(), dtype=np.intp)[max(0, len(last) - size) :]
        if not len(chosen):
            self.drop(last)
            return
        if len(chosen) < len(ids):
            matrix, ids = matrix[chosen], [ids[row] for row in chosen]
        self._n_batches += 1
        batch = _Batch(self._n_batches, matrix, names, ids)
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

    def find(self, ids: list[Hashable], names: Array | None, n_features: int = 0) -> AnyMatrix | NamedRows:
        """Find rows, in the order of the ids; with names if the model has ``names`` for its ``n_features`` features.

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
        parts = [_take(batch, np.array(groups[batch])[:, 1], names) for batch in oldest_first]
        order = np.argsort([index for batch in oldest_first for index, _ in groups[batch]])
        if names is None:
            return stacked([part.matrix for part in parts], n_features)[order]
        known: Sequence[str] | Array = names
        for index, part in enumerate(parts):
            parts[index] = naming.aligned(part, known)
            known = parts[index].names
        return NamedRows(stacked([part.matrix for part in parts], len(known))[order], known)

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
            smaller = _Batch(batch.number, batch.rows[pending], batch.names, ids)
            self._positions.update({identity: (smaller, row) for row, identity in enumerate(ids)})


def _take(batch: _Batch, rows: IntArray, names: Array | None) -> NamedRows:
    """Take rows of a batch; without names of its own it has the first of the model's."""
    matrix = batch.rows[rows]
    known = [] if names is None else list(names[: matrix.shape[1]])
    return NamedRows(matrix, known if batch.names is None else batch.names)


def _own_rows(X: Any) -> AnyMatrix | NamedRows:
    """Copy rows, with the names of their features if they have any."""
    named = naming.feature_dicts(X)
    if named is not None:
        return NamedRows(named.matrix.copy(), list(named.names))
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X, dtype=float, copy=True)
    matrix = np.array(X, dtype=float)
    names = [name for name in getattr(X, "columns", ()) if isinstance(name, str)]
    return NamedRows(matrix, names) if len(names) == matrix.shape[-1] else matrix


def _matrix(rows: AnyMatrix | NamedRows) -> AnyMatrix:
    return rows.matrix if isinstance(rows, NamedRows) else rows


def _check_ids(ids: Any, n_rows: int | None = None) -> list[Hashable]:
    """List ids: one for each of ``n_rows`` rows, if that is given; otherwise distinct ones."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"ids must be a list of ids, one for each row, got {ids!r}.")
    listed = list(ids)
    try:
        distinct = set(listed)
    except TypeError:
        raise ValueError("ids must hold numbers, text or tuples of these, got what cannot be an id.") from None
    if n_rows is not None and len(listed) != n_rows:
        raise ValueError(f"X and ids must have the same number of rows, got {n_rows} and {len(listed)}.")
    if n_rows is None and not listed:
        raise ValueError("ids must hold at least one id, got none.")
    if n_rows is None and len(distinct) < len(listed):
        raise ValueError("ids must be distinct, got an id twice: give each row's labels once.")
    return listed
