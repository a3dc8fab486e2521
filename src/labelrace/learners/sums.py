"""The one state of the compression methods: ``N, Σx, Σy, XᵀX, XᵀY, YᵀY``.

Ridge regression onto any linear code of the labels, and the codes themselves where they come from the labels'
covariance or from their covariance with the features, are functions of these sums. So no encoder has to be fixed when a
row is learned: PLST, CPLST, FaIE, CSSP, MOPLMS, CCA and compressed sensing are views of one state, read with any number
of codes.

All sums are additive. Merging two states is adding them, forgetting is a factor, and a label or a feature that was not
there has sums of zero. Features are summed about a shift near their means, so that centring them afterwards loses no
digits. Labels are 0 and 1 and stay sparse: a row costs ``nnz(x)²`` for ``XᵀX``, ``nnz(x) |y|`` for ``XᵀY`` and ``|y|²``
for ``YᵀY``; neither ``n × l`` nor the labels coded as -1 and 1 are ever formed.

*Many labels.* Above `Sums.exact_labels` labels, ``YᵀY`` is replaced by its product with ``r`` random signs a label,
``S = YᵀYΩ``, ``l × r``. That is linear in ``YᵀY``, hence additive like the rest, and growing beyond the limit turns one
into the other. It is read as the Nyström approximation ``S (ΩᵀS)⁺ Sᵀ``, which is exact where ``YᵀY`` has rank ``r``.

References
----------
Halko, N., Martinsson, P.-G. and Tropp, J. A.: Finding structure with randomness. SIAM Review 53 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth, random_draws
from labelrace.base.growth import SUM, Moves
from labelrace.base.linalg import finite_squares
from labelrace.base.sparse import dense, weighted
from labelrace.exceptions import MergeError
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Tables of up to this many cells are dense, 64 MB; larger ones hold what is not zero.
_DENSE_CELLS = 2**23
# 20,000 columns of features make an XᵀX of 3.2 GB, and minutes for one solution.
MOST_COLUMNS = 20_000
# Eigenvalues of ΩᵀYᵀYΩ up to this share of the largest are round-off.
_RELATIVE_RANK = 1e-12


class Table(NamedTuple):
    """A matrix of sums: dense, or, where it is large, in compressed rows; the other arrays are empty then."""

    dense: Annotated[FloatArray, "_r _c|0 0"]
    data: Annotated[FloatArray, "_z"]
    indices: Annotated[IntArray, "_z", "<_c"]
    indptr: Annotated[IntArray, "_r+1|0", "starts _z"]


class State(NamedTuple):
    """The sums."""

    rows: Annotated[float, SUM]  # rows learned, ``N``; forgotten ones count less
    shift: Annotated[FloatArray, "f"]  # what is subtracted from each feature before it is summed
    # ``Σx`` and ``Σy``.
    sum_x: Annotated[FloatArray, "f", SUM]
    sum_y: Annotated[FloatArray, "y", SUM]
    xx: Annotated[FloatArray, "f f", SUM]  # ``XᵀX``
    xy: Annotated[Table, "_r=f", "_c=y"]  # ``XᵀY``, m × l
    # ``YᵀY``, l × l; or its sketch, l × r; or nothing, l × 0, for methods that have no use for it.
    yy: Annotated[Table, "_r=y", "_c=@yy_columns(y)"]


class LabelGram(NamedTuple):
    """``YᵀY`` as it is read: a matrix, dense or sparse; or a factor ``F``, l × r, with ``FFᵀ ≈ YᵀY``."""

    matrix: AnyMatrix | None
    factor: FloatArray | None

    def times(self, V: FloatArray) -> FloatArray:
        """Multiply by a matrix."""
        return self.matrix @ V if self.factor is None else self.factor @ (self.factor.T @ V)  # type: ignore[operator]

    def columns(self, labels: IntArray) -> FloatArray:
        """Take the columns of some labels, (l, k)."""
        if self.factor is not None:
            return self.factor @ self.factor[labels].T
        return dense(self.matrix[:, labels])  # type: ignore[index]

    def dense(self) -> FloatArray:
        """Make an array of it, (l, l)."""
        if self.factor is not None:
            return self.factor @ self.factor.T
        return dense(self.matrix)


@dataclass(frozen=True)
class Sums:
    """How the sums are kept.

    Parameters
    ----------
    keeps_yy : bool, default=True
        Whether ``YᵀY`` is kept.
    exact_labels : int, default=10000
        Number of labels up to which ``YᵀY`` is exact.
    sketch_size : int, default=256
        Random signs a label, ``r``, of the sketch above that.
    seed : int, default=0
        What the signs are drawn from.
    always_dense : bool, default=False
        Whether tables are dense however large they are, for targets that are hardly ever 0.

    Examples
    --------
    >>> import numpy as np
    >>> sums, X, Y = Sums(), np.eye(3), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> one = sums.update(sums.init(3, 2), X[:1], Y[:1])
    >>> both = sums.merge(one, sums.update(sums.init(3, 2), X[1:], Y[1:]))
    >>> sums.label_gram(both).dense()
    array([[2., 1.],
           [1., 1.]])
    """

    keeps_yy: bool = True
    exact_labels: int = 10_000
    sketch_size: int = 256
    seed: int = 0
    always_dense: bool = False

    def init(self, n_columns: int, n_labels: int) -> State:
        """Make empty sums.

        Raises
        ------
        ValueError
            Where the features are too many for an ``m × m`` matrix.
        """
        m, k = n_columns, n_labels
        _refuse_many(m)
        xy, yy = (self._table(scipy.sparse.csr_array(shape)) for shape in ((m, k), self._yy_shape(k)))
        return State(0.0, np.zeros(m), np.zeros(m), np.zeros(k), np.zeros((m, m)), xy, yy)

    @np.errstate(over="ignore", invalid="ignore")
    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None) -> State:
        """Add a batch, each row times its weight.

        Raises
        ------
        DivergenceError
            Where sums of squares overflow.
        """
        sparse = scipy.sparse.issparse(X)
        if state.rows == 0 and not sparse and not state.shift.any():
            state = state._replace(shift=X.mean(axis=0))
        Z = X if sparse else X - state.shift
        weighted_z, weighted_y = weighted(Z, row_weights), weighted(Y, row_weights)
        xx = Z.T @ weighted_z
        batch = State(
            float(X.shape[0] if row_weights is None else row_weights.sum()),
            np.zeros_like(state.shift) if sparse else state.shift,
            np.asarray(weighted_z.sum(axis=0), dtype=float),
            np.asarray(weighted_y.sum(axis=0), dtype=float),
            xx.toarray() if sparse else xx,
            self._table(self._product(Z, weighted_y)),
            self._table(self._label_products(Y, weighted_y)),
        )
        return self.merge(state, batch)

    def decay(self, state: State, keep: float) -> State:
        """Let all that was learned count for less, by a factor."""
        return State(
            state.rows * keep,
            state.shift,
            state.sum_x * keep,
            state.sum_y * keep,
            state.xx * keep,
            _scaled(state.xy, keep),
            _scaled(state.yy, keep),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, one: State, other: State) -> State:
        """Add two states, the other one's sums turned into sums about the first one's shift; see `update`."""
        if one.rows == 0 and not one.shift.any():
            finite_squares(other.xx.diagonal())
            return other
        m, n_labels = len(one.shift), len(one.sum_y)
        sum_x, xx = other.sum_x, other.xx
        xy = self._sum(one.xy, other.xy, (m, n_labels))
        step = other.shift - one.shift
        if step.any():
            outer = np.outer(sum_x, step)
            xx = xx + outer + outer.T + other.rows * np.outer(step, step)
            xy = self._sum(xy, self._table(np.outer(step, other.sum_y)), (m, n_labels))
            sum_x = sum_x + other.rows * step
        merged = State(
            one.rows + other.rows,
            one.shift,
            one.sum_x + sum_x,
            one.sum_y + other.sum_y,
            one.xx + xx,
            xy,
            self._sum(one.yy, other.yy, self._yy_shape(n_labels)),
        )
        finite_squares(merged.xx.diagonal())
        return merged

    def emptied(self, state: State) -> State:
        """Make empty sums about the same shift."""
        return self.init(len(state.shift), len(state.sum_y))._replace(shift=state.shift)

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and columns of features; new ones were 0 so far.

        Beyond `exact_labels` new labels make the sketch of ``YᵀY``.

        Raises
        ------
        MergeError
            Where a sketch of ``YᵀY`` is to be reordered: its random signs belong to the columns of the labels.
        """
        m, n_labels = len(state.shift), len(state.sum_y)
        columns, labels = moves.source("f", m), moves.source("y", n_labels)
        xy, yy = matrix_of(state.xy, (m, n_labels)), matrix_of(state.yy, self._yy_shape(n_labels))
        if columns is not None:
            _refuse_many(len(columns))
            xy = _taken(xy, columns)
        if labels is not None:
            xy, yy = _taken(xy, labels, axis=1), self._taken_labels(yy, labels)
        taken: State = growth.take(state, moves, xy=lambda *_: self._table(xy), yy=lambda *_: self._table(yy))
        return taken

    def _taken_labels(self, yy: AnyMatrix, labels: IntArray) -> AnyMatrix:
        """Move the labels of ``YᵀY``, or of its sketch."""
        before, after = yy.shape[0], len(labels)
        if not self.keeps_yy:
            return _taken(yy, labels)
        if self._is_exact(after):
            return _taken(_taken(yy, labels), labels, axis=1)
        if after == before:
            raise MergeError(
                f"With more than {self.exact_labels} labels, models must have them in the same order to be merged: "
                "name them all from the start."
            )
        return _taken(yy @ self._signs(before) if self._is_exact(before) else yy, labels)

    def label_gram(self, state: State) -> LabelGram:
        """Read ``YᵀY``, or what the sketch tells of it."""
        n_labels = len(state.sum_y)
        yy = matrix_of(state.yy, self._yy_shape(n_labels))
        if self._is_exact(n_labels):
            return LabelGram(yy, None)
        yy = dense(yy)
        core = self._signs(n_labels).T @ yy
        values, vectors = np.linalg.eigh((core + core.T) / 2.0)
        is_positive = values > _RELATIVE_RANK * max(values[-1], 1e-300)
        return LabelGram(None, yy @ (vectors[:, is_positive] / np.sqrt(values[is_positive])))

    def _is_exact(self, n_labels: int) -> bool:
        return n_labels <= self.exact_labels

    def yy_columns(self, n_labels: int) -> int:
        """Compute the number of columns of ``YᵀY``, or of its sketch; 0 if there is neither."""
        if not self.keeps_yy:
            return 0
        return n_labels if self._is_exact(n_labels) else self.sketch_size

    def _yy_shape(self, n_labels: int) -> tuple[int, int]:
        return n_labels, self.yy_columns(n_labels)

    def _signs(self, n_labels: int) -> FloatArray:
        return random_draws.signs(self.seed, n_labels, self.sketch_size)

    def _label_products(self, Y: AnyMatrix, weighted_y: AnyMatrix) -> AnyMatrix:
        """Compute the batch's ``YᵀY``, or ``YᵀYΩ``, of which one has the rows' weights."""
        if not self.keeps_yy:
            return np.zeros((Y.shape[1], 0))
        if self._is_exact(Y.shape[1]):
            return Y.T @ weighted_y
        Y, weighted_y = scipy.sparse.csr_array(Y), scipy.sparse.csr_array(weighted_y)
        return Y.T @ (weighted_y @ self._signs(Y.shape[1]))

    def _is_dense(self, shape: tuple[int, int]) -> bool:
        return self.always_dense or shape[0] * shape[1] <= _DENSE_CELLS

    def _table(self, matrix: AnyMatrix) -> Table:
        """Put a matrix into a table."""
        if self._is_dense(matrix.shape):
            return Table(np.asarray(dense(matrix), dtype=float), *_NOTHING[1:])
        sparse = scipy.sparse.csr_array(matrix)
        parts = (sparse.indices.astype(np.intp, copy=False), sparse.indptr.astype(np.intp, copy=False))
        return Table(_NOTHING[0], sparse.data.astype(float, copy=False), *parts)

    def _sum(self, one: Table, other: Table, shape: tuple[int, int]) -> Table:
        return self._table(matrix_of(one, shape) + matrix_of(other, shape))

    def _product(self, Z: AnyMatrix, Y: AnyMatrix) -> AnyMatrix:
        """Compute ``ZᵀY``; where that is large and only ``Y`` is sparse, for the labels that occur alone."""
        shape = (Z.shape[1], Y.shape[1])
        if not scipy.sparse.issparse(Y) or scipy.sparse.issparse(Z) or self._is_dense(shape):
            return Z.T @ Y
        Y = scipy.sparse.csr_array(Y)
        labels, compact = np.unique(Y.indices, return_inverse=True)
        occurring = scipy.sparse.csr_array((Y.data, compact, Y.indptr), shape=(Y.shape[0], len(labels)))
        block = np.asarray(occurring.T @ Z).T
        return scipy.sparse.csr_array(
            (block.ravel(), np.tile(labels, shape[0]), np.arange(shape[0] + 1) * len(labels)), shape
        )


def matrix_of(table: Table, shape: tuple[int, int]) -> AnyMatrix:
    """Return the matrix that a table of a shape holds."""
    if not len(table.indptr):
        return table.dense
    return scipy.sparse.csr_array((table.data, table.indices, table.indptr), shape=shape)


_NOTHING = np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)


def _scaled(table: Table, factor: float) -> Table:
    return table._replace(dense=table.dense * factor, data=table.data * factor)


def _taken(matrix: AnyMatrix, source: IntArray, axis: int = 0) -> AnyMatrix:
    """Take rows or columns of a matrix; -1 stands for zeros."""
    if not scipy.sparse.issparse(matrix):
        return growth.moved(matrix, source, axis)
    size, shape = matrix.shape[axis], list(matrix.shape)
    known = np.arange(len(source)) < size
    wider = scipy.sparse.csr_array(matrix, copy=True)
    if np.array_equal(source, np.where(known, np.arange(len(source)), -1)):
        shape[axis] = len(source)
        wider.resize(tuple(shape))
        return wider
    # What is new is a row or column behind the others.
    shape[axis] = size + 1
    wider.resize(tuple(shape))
    index = np.where(source < 0, size, source)
    return wider[index] if axis == 0 else wider[:, index]


def _refuse_many(n_columns: int) -> None:
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"X must have at most {MOST_COLUMNS} feature columns, got {n_columns}: XᵀX would take "
            f"{8e-9 * n_columns * n_columns:.0f} GB. Select or hash features (FeatureHasher), or use a model without "
            "XᵀX, such as 'race' or 'obr'."
        )
