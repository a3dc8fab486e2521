"""Matrix products of one block of rows, dense or sparse, that an update of `labelrace.linear.rls` needs.

A sparse block reads and writes only its *touched* columns, those with a non-zero in it. A column with one non-zero, in
texts about half of them, needs no matrix product: it contributes only to the diagonal of ``Z D⁻¹ Zᵀ``, and needs only
that of ``M⁻¹``.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import lapack
from scipy.sparse import _sparsetools

from labelrace.base.sparse import entry_rows, row_range
from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Rows of a block. The time for each row grows with their square; smaller blocks are less exact, as only the rows of one
# block are solved together. Sparse blocks are larger, because each takes several calls to SciPy.
BLOCK_ROWS, SPARSE_BLOCK_ROWS = 64, 128
# How many times as large sparse blocks may be.
_MAX_TIMES = 4
# Share of non-zeros, of the columns that occur, from which sparse rows are learned as dense ones.
_DENSE_SHARE = 0.1
# Rows of the largest matrix that is inverted by one Cholesky decomposition; larger ones are inverted by halves, which
# is faster.
_MAX_CHOLESKY_ROWS = 48


class DenseBlock:
    """Dense rows; all columns are touched.

    Products are by `numpy.dot`, which of a single row is several times as fast as the operator.

    Attributes
    ----------
    z : (n, m) array
        The rows.
    touched : slice
        The columns that occur.
    squares : (m,) array
        Sums of the squares of each column that is touched.
    """

    def __init__(self, z: Array) -> None:
        self.z = z
        self.touched: IntArray | slice = slice(None)
        self.squares = np.add.reduce(z * z, axis=0).astype(float)

    def gram(self, variance: FloatArray) -> Array:
        """Compute ``Z D⁻¹ Zᵀ`` with the variances of the columns that are touched."""
        # The root on either side makes the product symmetric, at half the cost.
        scaled = self.z * np.sqrt(variance.astype(self.z.dtype))
        return scaled @ scaled.T

    def quadratic(self, inverse: Array) -> FloatArray:
        """Compute ``diag(Zᵀ M⁻¹ Z)`` for the columns that are touched."""
        return np.add.reduce(self.z * np.dot(inverse, self.z), axis=0).astype(float)

    def add_transposed(self, out: Array, variance: FloatArray, right: Array) -> None:
        """Add ``D⁻¹ Zᵀ right`` to an array of all columns."""
        out += np.dot((self.z * variance.astype(self.z.dtype)).T, right)


class SparseBlock:
    """Rows in compressed form, with the attributes and methods of `DenseBlock`; columns that do not occur are 0."""

    def __init__(self, z: AnyMatrix) -> None:
        self.z = z
        n, m = z.shape
        counts = np.bincount(z.indices, minlength=m)
        self.touched = np.flatnonzero(counts)
        self.squares = np.bincount(z.indices, weights=np.square(z.data), minlength=m)[self.touched].astype(float)
        is_repeated, rows = counts > 1, entry_rows(z)
        repeated = is_repeated[z.indices]
        once = ~repeated
        self._single_entries = rows[once], z.indices[once], np.square(z.data[once])
        self._repeated_columns, self._repeated_rows = np.flatnonzero(is_repeated), rows[repeated]
        index_dtype = z.indptr.dtype
        indices = (np.cumsum(is_repeated, dtype=index_dtype) - 1)[z.indices[repeated]]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self._repeated_rows, minlength=n))]).astype(index_dtype)
        shape = (n, len(self._repeated_columns))
        self._repeated = scipy.sparse.csr_array((z.data[repeated], indices, indptr), shape=shape)

    def gram(self, variance: FloatArray) -> Array:
        """Compute ``Z D⁻¹ Zᵀ`` with the variances of the columns that are touched."""
        repeated, n, variance = self._repeated, self.z.shape[0], self._expanded(variance)
        # Sparse times dense is quicker than sparse times sparse, if the dense one is in the memory order SciPy needs.
        right = np.zeros(repeated.shape[::-1], repeated.dtype)
        of_entries = variance[self._repeated_columns][repeated.indices]
        right[repeated.indices, self._repeated_rows] = repeated.data * of_entries
        product = np.asarray(repeated @ right)
        rows, columns, squares = self._single_entries
        product.flat[:: n + 1] += np.bincount(rows, weights=squares * variance[columns], minlength=n)
        return product

    def quadratic(self, inverse: Array) -> FloatArray:
        """Compute ``diag(Zᵀ M⁻¹ Z)`` for the columns that are touched."""
        diagonal = np.zeros(self.z.shape[1])
        rows, columns, squares = self._single_entries
        diagonal[columns] = squares * inverse.diagonal()[rows]
        repeated = self._repeated
        product = repeated.T @ inverse
        weights = repeated.data * product[repeated.indices, self._repeated_rows]
        n_repeated = len(self._repeated_columns)
        diagonal[self._repeated_columns] = np.bincount(repeated.indices, weights=weights, minlength=n_repeated)
        return diagonal[self.touched]

    def add_transposed(self, out: Array, variance: FloatArray, right: Array) -> None:
        """Add ``D⁻¹ Zᵀ right`` to an array of all columns, in place, which SciPy's operators cannot."""
        z, right, variance = self.z, np.ascontiguousarray(right), self._expanded(variance)
        # The transpose of compressed rows is one of compressed columns.
        shape = (z.shape[1], z.shape[0], right.shape[1])
        values = z.data * variance[z.indices]
        _sparsetools.csc_matvecs(*shape, z.indptr, z.indices, values, right.ravel(), out.reshape(-1))

    def _expanded(self, values: FloatArray) -> Array:
        """Expand values of the touched columns to all columns, with 0 for the others."""
        expanded = np.zeros(self.z.shape[1], self.z.dtype)
        expanded[self.touched] = values
        return expanded


class Part(NamedTuple):
    """Rows that are learned at once, their targets, and their weights, None for 1."""

    z: AnyMatrix
    h: Array
    row_weights: FloatArray | None


def cut(Z: AnyMatrix, H: Array, row_weights: FloatArray | None) -> list[Part]:
    """Cut a batch into the parts that are learned at once; mostly filled ones are dense.

    Of sparse rows a part has about as many as each has non-zeros, if that is more than usual: for each label a row
    costs as much as it has non-zeros, and as its part has rows.
    """
    size = BLOCK_ROWS
    if scipy.sparse.issparse(Z):
        times = round(Z.nnz / max(Z.shape[0], 1) / SPARSE_BLOCK_ROWS)
        size = SPARSE_BLOCK_ROWS * min(max(times, 1), _MAX_TIMES)
        Z = Z.toarray() if Z.nnz > _DENSE_SHARE * Z.shape[0] * Z.shape[1] else Z
    if len(H) <= size:
        # Slicing sparse rows is slow, even a slice of all rows.
        return [Part(Z, H, row_weights)]
    parts = []
    for start in range(0, len(H), size):
        here = slice(start, start + size)
        z = row_range(Z, start, start + size) if scipy.sparse.issparse(Z) else Z[here]
        parts.append(Part(z, H[here], None if row_weights is None else row_weights[here]))
    return parts


def inverse_of(matrix: Array, *, whole: bool = False) -> Array:
    """Invert a symmetric, positive definite matrix; only its lower triangle is read, and it is overwritten.

    By Cholesky decomposition; a large matrix ``[[P, Qᵀ], [Q, S]]`` by blocks, from the inverses of ``P`` and of its
    Schur complement ``S - Q P⁻¹ Qᵀ``, unless it is to be inverted as a ``whole``, which loses fewer digits.
    """
    n = len(matrix)
    if n == 1:
        return np.asarray(1.0 / matrix)
    if n <= _MAX_CHOLESKY_ROWS or whole:
        factor, solve = (lapack.spotrf, lapack.spotrs) if matrix.dtype == np.float32 else (lapack.dpotrf, lapack.dpotrs)
        # In Fortran's order the transpose is the same matrix, and nothing is copied.
        upper, failed = factor(matrix.T, overwrite_a=True, clean=False)
        if not failed:
            # At this size LAPACK's own inverse is half as fast in single precision.
            inverse, failed = solve(upper, np.eye(n, dtype=matrix.dtype, order="F"), overwrite_b=True)
        if failed:
            raise DivergenceError(
                "X holds values so large, or sample_weight does, that sums overflow: scale them down."
            )
        return np.asarray(inverse.T)
    half = n // 2
    Q, first = matrix[half:, :half], inverse_of(matrix[:half, :half])
    product = Q @ first
    last = inverse_of(matrix[half:, half:] - product @ Q.T)
    across = last @ product
    inverse = np.empty_like(matrix)
    inverse[:half, :half], inverse[:half, half:] = first + product.T @ across, -across.T
    inverse[half:, :half], inverse[half:, half:] = -across, last
    return inverse


def marginal_precision(precision: FloatArray, q: FloatArray, squares: FloatArray) -> FloatArray:
    """Compute the precision after a block: at least that before it, at most that of independent columns."""
    marginal = precision / np.maximum(1.0 - q / precision, 0.0)
    # np.clip is slow on short arrays.
    return np.minimum(np.maximum(marginal, precision), precision + squares)


def check_finite(*arrays: Array) -> None:
    """Raise an error if an array holds NaN or infinity."""
    # Largest and smallest number are found several times as fast as a sum in double precision.
    for array in arrays:
        if not (isfinite(array.max(initial=0.0)) and isfinite(array.min(initial=0.0))):
            raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")


class Gathered(NamedTuple):
    """Rows without their empty columns, which columns are left, and their weights and extra precision."""

    Z: AnyMatrix
    columns: IntArray | slice
    weights: Array
    extra_precision: FloatArray
    scores: Array | None = None  # of all rows by these weights, if they are known

    def entry_columns(self) -> IntArray | None:
        """Return the column of each non-zero; a single row has one in each. None where rows are dense."""
        if isinstance(self.columns, slice):
            return None
        return self.Z.indices if scipy.sparse.issparse(self.Z) else np.arange(self.Z.shape[1], dtype=np.int32)


def without_empty_columns(z: AnyMatrix) -> tuple[AnyMatrix, IntArray | slice]:
    """Leave out the empty columns of sparse rows; return the rows, and which columns are left, in order of first use.

    So the columns of a row lie near each other in memory, and the cost does not depend on the number of all columns.
    """
    if not scipy.sparse.issparse(z):
        return z, slice(None)
    if z.shape[0] == 1 and z.has_canonical_format:
        # The non-zeros of a single row are a dense row of their columns.
        return z.data[None], z.indices
    touched, indices = in_order_of_use(z.indices, z.shape[1])
    return scipy.sparse.csr_array((z.data, indices, z.indptr), shape=(z.shape[0], len(touched))), touched


def in_order_of_use(columns: IntArray, n_columns: int) -> tuple[IntArray, IntArray]:
    """List columns, each once, in the order of first use, and the index of each entry's column in that list.

    The cost depends on the number of entries alone.

    Examples
    --------
    >>> in_order_of_use(np.array([7, 2, 7, 5]), 10)
    (array([7, 2, 5]), array([0, 1, 0, 2]))
    """
    dtype, n = columns.dtype, len(columns)
    first_use = np.empty(n_columns, dtype)
    # Backwards, so that of several entries of a column the first one stays.
    first_use[columns[::-1]] = np.arange(n - 1, -1, -1, dtype=dtype)
    first_of_entries = first_use[columns]
    is_first = first_of_entries == np.arange(n, dtype=dtype)
    return columns[is_first], (np.cumsum(is_first, dtype=dtype) - 1)[first_of_entries]
