"""Blocks of rows, dense or sparse: the products that a step of `labelrace.linear.rls` is made of.

A sparse block touches the columns that occur in it and nothing else. Columns that occur once, in texts about half of
them, need no product at all: they add to the diagonal of ``Z D⁻¹ Zᵀ``, and read that of ``M⁻¹``.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
import scipy.sparse
from scipy.linalg import lapack
from scipy.sparse import _sparsetools

from labelrace.base.sparse import entry_rows
from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Rows of a block: its matrix costs their square a row, and smaller blocks lose what is exact within them. Sparse ones
# are larger as each costs some calls to SciPy.
BLOCK, SPARSE_BLOCK = 64, 128
# Rows of a matrix that is inverted at once: of larger ones, products of their halves are faster.
_LARGEST_AT_ONCE = 48


class DenseBlock:
    """Dense rows; all columns are touched.

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
        self.squares = np.einsum("ij,ij->j", z, z).astype(float)

    def gram(self, variance: FloatArray) -> Array:
        """Compute ``Z D⁻¹ Zᵀ`` with the variances of the columns that are touched."""
        # The root on either side makes the product symmetric, at half the cost.
        scaled = self.z * np.sqrt(variance.astype(self.z.dtype))
        return scaled @ scaled.T

    def quadratic(self, inverse: Array) -> FloatArray:
        """Compute ``diag(Zᵀ M⁻¹ Z)`` for the columns that are touched."""
        return np.einsum("ij,ij->j", self.z, inverse @ self.z).astype(float)

    def add_transposed(self, out: Array, variance: FloatArray, right: Array) -> None:
        """Add ``D⁻¹ Zᵀ right`` to an array of all columns."""
        product = self.z.T @ right
        product *= variance.astype(self.z.dtype)[:, None]
        out += product


class SparseBlock:
    """Rows in compressed form, with the attributes and methods of `DenseBlock`; columns that do not occur are 0."""

    def __init__(self, z: AnyMatrix) -> None:
        self.z = z
        n, m = z.shape
        counts = np.bincount(z.indices, minlength=m)
        self.touched = np.flatnonzero(counts)
        self.squares = np.bincount(z.indices, weights=np.square(z.data), minlength=m)[self.touched].astype(float)
        often, rows = counts > 1, entry_rows(z)
        repeated = often[z.indices]
        once = ~repeated
        self._once = rows[once], z.indices[once], np.square(z.data[once])
        self._often, self._rows = np.flatnonzero(often), rows[repeated]
        kind = z.indptr.dtype
        indices = (np.cumsum(often, dtype=kind) - 1)[z.indices[repeated]]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self._rows, minlength=n))]).astype(kind)
        self._repeated = scipy.sparse.csr_array((z.data[repeated], indices, indptr), shape=(n, len(self._often)))

    def gram(self, variance: FloatArray) -> Array:
        """Compute ``Z D⁻¹ Zᵀ`` with the variances of the columns that are touched."""
        repeated, n, variance = self._repeated, self.z.shape[0], self._of_all(variance)
        # Sparse times dense is quicker than sparse times sparse, if the dense one is in the memory order SciPy needs.
        right = np.zeros(repeated.shape[::-1], repeated.dtype)
        right[repeated.indices, self._rows] = repeated.data * variance[self._often][repeated.indices]
        product = np.asarray(repeated @ right)
        rows, columns, squares = self._once
        product.flat[:: n + 1] += np.bincount(rows, weights=squares * variance[columns], minlength=n)
        return product

    def quadratic(self, inverse: Array) -> FloatArray:
        """Compute ``diag(Zᵀ M⁻¹ Z)`` for the columns that are touched."""
        diagonal = np.zeros(self.z.shape[1])
        rows, columns, squares = self._once
        diagonal[columns] = squares * inverse.diagonal()[rows]
        repeated = self._repeated
        product = repeated.T @ inverse
        weights = repeated.data * product[repeated.indices, self._rows]
        diagonal[self._often] = np.bincount(repeated.indices, weights=weights, minlength=len(self._often))
        return diagonal[self.touched]

    def add_transposed(self, out: Array, variance: FloatArray, right: Array) -> None:
        """Add ``D⁻¹ Zᵀ right`` to an array of all columns, in place, which SciPy's operators cannot."""
        z, right, variance = self.z, np.ascontiguousarray(right), self._of_all(variance)
        # The transpose of compressed rows is one of compressed columns.
        shape = (z.shape[1], z.shape[0], right.shape[1])
        values = z.data * variance[z.indices]
        _sparsetools.csc_matvecs(*shape, z.indptr, z.indices, values, right.ravel(), out.reshape(-1))

    def _of_all(self, values: FloatArray) -> Array:
        """Put one value for each column that is touched among those of all columns."""
        of_all = np.zeros(self.z.shape[1], self.z.dtype)
        of_all[self.touched] = values
        return of_all


def inverse_of(matrix: Array) -> Array:
    """Invert a symmetric, positive definite matrix, of which the lower triangle is read; it is changed.

    By Cholesky's decomposition, or of a large one ``[[P, Qᵀ], [Q, S]]`` by its parts: the inverses of ``P`` and of
    ``S - Q P⁻¹ Qᵀ``, and products.
    """
    n = len(matrix)
    if n == 1:
        return np.asarray(1.0 / matrix)
    if n <= _LARGEST_AT_ONCE:
        factor, solve = (lapack.spotrf, lapack.spotrs) if matrix.dtype == np.float32 else (lapack.dpotrf, lapack.dpotrs)
        # In Fortran's order the transpose is the same matrix, and nothing is copied.
        upper, failed = factor(matrix.T, overwrite_a=True, clean=False)
        if not failed:
            # Of matrices as large as a block, half as fast by LAPACK's own inverse in single precision.
            inverse, failed = solve(upper, np.eye(n, dtype=matrix.dtype, order="F"), overwrite_b=True)
        if failed:
            raise DivergenceError("X holds values so large that sums of them overflow: scale them down.")
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
    """Compute the precision after a block: that of columns taken for independent is never exceeded, nor lost."""
    left = precision / np.maximum(1.0 - q / precision, 0.0)
    # Not by np.clip, which is slow where there are few.
    return np.minimum(np.maximum(left, precision), precision + squares)


def check_finite(*arrays: Array) -> None:
    """Refuse what has overflowed."""
    # Largest and smallest number are found several times as fast as a sum in double precision.
    for array in arrays:
        if not (isfinite(array.max(initial=0.0)) and isfinite(array.min(initial=0.0))):
            raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")


def without_empty_columns(z: AnyMatrix) -> tuple[AnyMatrix, IntArray | slice]:
    """Leave out the empty columns of sparse rows; return the rows, and which columns are left, in order of first use.

    So columns that rows use one after the other lie side by side, and the cost does not depend on how many there are.
    """
    if not scipy.sparse.issparse(z):
        return z, slice(None)
    if z.shape[0] == 1 and z.has_canonical_format:
        # One row is as good dense, and needs no search.
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
    kind, n = columns.dtype, len(columns)
    first_use = np.empty(n_columns, kind)
    # Backwards, so that of several entries of a column the first one stays.
    first_use[columns[::-1]] = np.arange(n - 1, -1, -1, dtype=kind)
    of_entries = first_use[columns]
    is_first = of_entries == np.arange(n, dtype=kind)
    return columns[is_first], (np.cumsum(is_first, dtype=kind) - 1)[of_entries]
