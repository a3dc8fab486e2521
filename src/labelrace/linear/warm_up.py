"""The start of a stream: the first rows, kept until there are enough of them, and learned exactly.

`labelrace.linear.rls` learns them by ridge regression, again whenever their number has doubled, up to `MAX_EXACT_ROWS`:
what becomes of a batch is decided in `RLS.rows_to_learn`.

The penalty is chosen by leave-one-out errors that one eigendecomposition gives. With ``ZZᵀ = U diag(v) Uᵀ``, the
inverse of ``M = ZZᵀ/α + 1/d_b + I`` costs two products for each penalty α. The score that a row has in a model that
learned all other rows is ``s = y - (M⁻¹ y) / diag(M⁻¹)`` (Cook and Weisberg, "Residuals and influence in regression",
1982).

Where rows have weights ``v``, the ``I`` of ``M`` becomes ``diag(1/v)``. Rows, targets and the ones of the intercept are
multiplied by ``√v`` then, and all else is as without weights.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import weighted, with_last_rows
from labelrace.linear import blocks
from labelrace.linear.blocks import DenseBlock, SparseBlock
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Largest number of rows that are learned exactly.
MAX_EXACT_ROWS = 512
# Penalties to choose from, for rows of length one.
ALPHAS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
# Factor that the best of them is multiplied by: later blocks are learned less exactly.
_ALPHA_FACTOR = 1.25
INTERCEPT_PRECISION = 1.0
"""Precision of the intercepts before the first row."""

# Largest number of scores that are computed at once.
_MAX_CELLS = 1 << 22


class WarmUp(NamedTuple):
    """Buffer of the first rows, until there are enough of them."""

    # The rows of ``X``, as CSR arrays.
    values: Annotated[FloatArray, "_x"]
    indices: Annotated[IntArray, "_x", "<m"]
    indptr: Annotated[IntArray, "_n+1", "starts _x"]
    # Their targets, as CSR arrays.
    target_values: Annotated[FloatArray, "_y"]
    target_indices: Annotated[IntArray, "_y", "<w"]
    target_indptr: Annotated[IntArray, "_n+1", "starts _y"]
    # Number of rows that were last learned exactly; 0 where the buffer is not in use.
    n_fitted: Annotated[float, "<_n+1"]
    weights: Annotated[FloatArray, "_n|0"]  # of the rows; empty where all are 1

    @classmethod
    def empty(cls) -> WarmUp:
        """Make a buffer without rows."""
        none = (np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp))
        return cls(*none, *none, 0.0, np.zeros(0))

    @classmethod
    def of(cls, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None) -> WarmUp:
        """Keep rows that are learned exactly; empty where twice as many could not be."""
        n = X.shape[0]
        if 2 * n > MAX_EXACT_ROWS:
            return cls.empty()
        return cls.empty().with_batch(X, Y, row_weights)._replace(n_fitted=float(n))

    def with_batch(self, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None) -> WarmUp:
        """Append a batch, which may have more columns."""
        weights = self.weights
        if row_weights is not None or len(weights):
            of_batch = np.ones(X.shape[0]) if row_weights is None else row_weights
            known = weights if len(weights) else np.ones(len(self.indptr) - 1)
            weights = np.concatenate([known, of_batch])
        return WarmUp(*with_last_rows(self[:3], X), *with_last_rows(self[3:6], Y), self.n_fitted, weights)

    @property
    def row_weights(self) -> FloatArray | None:
        """The weights of the rows; None where all are 1."""
        return self.weights if len(self.weights) else None

    def without(self, features: IntArray) -> WarmUp:
        """Set the values of some features to 0, because their columns were given to other features."""
        return self._replace(values=np.where(np.isin(self.indices, features), 0.0, self.values))

    def has_doubled(self) -> bool:
        """Return whether the number of rows has doubled since they were last learned exactly."""
        return len(self.indptr) - 1 >= 2 * self.n_fitted

    def rows(self, like: AnyMatrix, n_targets: int) -> tuple[AnyMatrix, AnyMatrix]:
        """Return rows and targets, the rows in the form of ``like``."""
        n = len(self.indptr) - 1
        X = scipy.sparse.csr_array(self[:3], shape=(n, like.shape[1]))
        Y = scipy.sparse.csr_array(self[3:6], shape=(n, n_targets))
        return (X if scipy.sparse.issparse(like) else X.toarray()), Y


def split_first_batch(n: int) -> tuple[IntArray, IntArray]:
    """Choose the rows of a first batch of ``n`` that are learned exactly, and the order of the others.

    A first batch may be a whole table, and sorted: both the exact rows and every block are taken from all over it.

    Examples
    --------
    >>> first, others = split_first_batch(2000)
    >>> len(first), others[:4].tolist()
    (512, [1, 17, 33, 49])
    """
    n_first = min(n, MAX_EXACT_ROWS)
    first = np.arange(n_first) * n // n_first
    others = np.setdiff1d(np.arange(n), first, assume_unique=True)
    n_blocks = -(-len(others) // blocks.SPARSE_BLOCK_ROWS)
    return first, others[np.argsort(np.arange(len(others)) % max(n_blocks, 1), kind="stable")]


class Ridge(NamedTuple):
    """Solution of ridge regression for some rows."""

    alpha: float  # the penalty
    weights: Array  # (c, k)
    intercepts: FloatArray  # (k,)
    extra_precision: FloatArray  # (c,): how far the precision of the weights is above the penalty
    intercept_extra_precision: float  # the same for the intercepts
    inverse: FloatArray  # (n, n): ``M⁻¹``

    def leave_one_out_scores(
        self, H: FloatArray, rows: IntArray | slice = slice(None), *, clip: bool = False
    ) -> FloatArray:
        """Compute the leave-one-out scores of some rows: by a model that learned all other rows.

        ``clip`` clips them to [0, 1], as a label's score beyond is no error.
        """
        scores: FloatArray = H[rows] - (self.inverse[rows] @ H) / self.inverse.diagonal()[rows][:, None]
        return np.clip(scores, 0.0, 1.0) if clip else scores


def solve(
    Z: AnyMatrix, H: FloatArray, alpha: float | None, *, clip: bool, row_weights: FloatArray | None = None
) -> Ridge:
    """Solve for rows, (n, c), with targets, (n, k), at a penalty, None for the best; ``clip`` as in `best_alpha`."""
    ones = np.ones(len(H))
    if row_weights is not None:
        ones = np.sqrt(row_weights)
        # In double precision, as weights may be large.
        Z, H = weighted(Z.astype(float), ones), weighted(H, ones)
    to_dtype = Z.dtype.type
    block = SparseBlock(Z) if scipy.sparse.issparse(Z) else DenseBlock(Z)
    eigenvalues, eigenvectors = np.linalg.eigh(block.gram(np.ones(len(block.squares))).astype(float, copy=False))
    eigenvalues = np.maximum(eigenvalues, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = best_alpha(eigenvalues, eigenvectors, H, ones, clip=clip) if alpha is None else float(alpha)
        inverse = ridge_inverse(eigenvalues, eigenvectors, alpha, ones)
        solution = inverse @ H
        weights = Z.T @ solution.astype(to_dtype) / to_dtype(alpha)
        intercepts = ones @ solution / INTERCEPT_PRECISION
    blocks.check_finite(weights, intercepts)
    before, extra_precision = np.full(len(block.squares), alpha), np.zeros(Z.shape[1])
    with np.errstate(divide="ignore"):
        after = blocks.marginal_precision(before, block.quadratic(inverse.astype(to_dtype)), block.squares)
    extra_precision[block.touched] = after - alpha
    # Not less than if the rows were independent, which heavy rows would make it by round-off.
    least = 1.0 / (1.0 + float(ones @ ones) / INTERCEPT_PRECISION)
    remaining = max(1.0 - float(ones @ inverse @ ones) / INTERCEPT_PRECISION, least)
    intercept_extra_precision = INTERCEPT_PRECISION / remaining - INTERCEPT_PRECISION
    if row_weights is not None:
        inverse *= np.outer(ones, ones)
    return Ridge(alpha, weights, intercepts, extra_precision, intercept_extra_precision, inverse)


def best_alpha(values: FloatArray, vectors: FloatArray, H: FloatArray, ones: FloatArray, *, clip: bool) -> float:
    """Choose the penalty: a quarter above that with the smallest leave-one-out error, the largest of several.

    Parameters
    ----------
    values, vectors : (n,) and (n, n) arrays
        Eigenvalues and eigenvectors of ``ZZᵀ``.
    H : (n, k) array
        The targets.
    ones : (n,) array
        The column of the intercept.
    clip : bool
        Whether targets are labels, so that scores below 0 and above 1 are as good as 0 and 1.
    """
    if len(values) < 2:
        return _ALPHA_FACTOR * float(ALPHAS[len(ALPHAS) // 2])
    if clip:
        # A label of one row is unknown where that row is left out: it only tells that no prediction is the best one.
        repeated = np.count_nonzero(H, axis=0) > 1
        H = H[:, repeated] if repeated.any() else H
    errors, sums_of_vectors = np.zeros(len(ALPHAS)), ones @ vectors
    squares, size = vectors * vectors, max(1, _MAX_CELLS // len(H))
    for first in range(0, H.shape[1], size):
        part = H[:, first : first + size]
        projected = vectors.T @ part
        for index, alpha in enumerate(ALPHAS):
            # Like `ridge_inverse`, but only the diagonal, and the product with the targets.
            shrink = 1.0 / (values / alpha + 1.0)
            sums = vectors @ (shrink * sums_of_vectors)
            intercept_part = sums / (INTERCEPT_PRECISION + ones @ sums)
            diagonal = squares @ shrink - sums * intercept_part
            errors_left_out = vectors @ (shrink[:, None] * projected) - intercept_part[:, None] * (sums @ part)
            errors_left_out /= diagonal[:, None]
            if clip:
                errors_left_out = part - np.clip(part - errors_left_out, 0.0, ones[:, None])
            errors[index] += np.square(errors_left_out).sum()
    # Errors that differ by rounding only, as where a target is constant, count as equal.
    least = errors.min() * (1 + 1e-9) + 1e-300
    return _ALPHA_FACTOR * float(ALPHAS[np.flatnonzero(errors <= least).max(initial=0)])


def ridge_inverse(values: FloatArray, vectors: FloatArray, alpha: float, ones: FloatArray) -> FloatArray:
    """Compute ``(ZZᵀ/α + 11ᵀ/d_b + I)⁻¹`` from the eigenvalues and eigenvectors of ``ZZᵀ``."""
    inverse = (vectors / (values / alpha + 1.0)) @ vectors.T
    # The intercept adds a matrix of rank one (Sherman and Morrison, 1950).
    sums = inverse @ ones
    inverse -= np.outer(sums, sums / (INTERCEPT_PRECISION + ones @ sums))
    return inverse
