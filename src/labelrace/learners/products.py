"""Products with a block of rows, dense or sparse: what the learners of `labelrace.learners.rls` are made of.

Sparse blocks touch the columns that occur in them and nothing else. SciPy's own routines are called where its operators
would make an array of all columns.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.linalg import lapack
from scipy.sparse import _sparsetools  # type: ignore[attr-defined]

from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["add_transposed", "block_inverse", "column_squares", "gram", "quadratic", "without_empty_columns"]

# Columns for each non-zero up to which occurring columns are marked rather than found by sorting.
_MAX_MARKED = 8


def gram(z: AnyMatrix, weights: Array) -> Array:
    """Compute ``z diag(weights) zᵀ`` for some rows."""
    if not scipy.sparse.issparse(z):
        # The root on either side makes the product symmetric, at half the cost.
        scaled = z * np.sqrt(weights)
        return scaled @ scaled.T
    # Sparse times dense is quicker than sparse times sparse, if the dense one is in the memory order SciPy needs.
    right = np.zeros(z.shape[::-1], z.dtype)
    right[z.indices, np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))] = z.data * weights[z.indices]
    return np.asarray(z @ right)


def block_inverse(z: AnyMatrix, variance: FloatArray, freedom: float) -> Array:
    """Compute ``(Z D⁻¹ Zᵀ + 1/d_b + I)⁻¹`` by Cholesky's decomposition."""
    middle = gram(z, variance.astype(z.dtype))
    middle += z.dtype.type(freedom)
    middle.flat[:: len(middle) + 1] += 1.0
    if len(middle) == 1:
        return 1.0 / middle
    factor, solve = (lapack.spotrf, lapack.spotri) if middle.dtype == np.float32 else (lapack.dpotrf, lapack.dpotri)
    # In Fortran's order the transpose is the same matrix, and nothing is copied.
    upper, failed = factor(middle.T, overwrite_a=True, clean=False)
    if not failed:
        upper, failed = solve(upper, overwrite_c=True)
    if failed:
        raise DivergenceError("X holds values so large that sums of them overflow: scale them down.")
    full = np.triu(upper)
    full += np.triu(upper, 1).T
    return full


def quadratic(z: AnyMatrix, inverse: Array) -> FloatArray:
    """Compute ``diag(Zᵀ M⁻¹ Z)``."""
    if not scipy.sparse.issparse(z):
        return np.einsum("ij,ij->j", z, inverse @ z).astype(float)
    product = z.T @ inverse
    rows = np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))
    return np.bincount(z.indices, weights=z.data * product[z.indices, rows], minlength=z.shape[1]).astype(float)


def add_transposed(out: Array, z: AnyMatrix, weights: Array, right: Array) -> None:
    """Add ``diag(weights) zᵀ right`` to an array."""
    if not scipy.sparse.issparse(z):
        product = z.T @ right
        product *= weights[:, None]
        out += product
        return
    # The transpose of compressed rows is one of compressed columns.
    shape = (z.shape[1], z.shape[0], right.shape[1])
    values, right = z.data * weights[z.indices], np.ascontiguousarray(right)
    _sparsetools.csc_matvecs(*shape, z.indptr, z.indices, values, right.ravel(), out.ravel())


def column_squares(z: AnyMatrix) -> FloatArray:
    """Sum the squares of each column."""
    if not scipy.sparse.issparse(z):
        return np.einsum("ij,ij->j", z, z).astype(float)
    return np.bincount(z.indices, weights=z.data * z.data, minlength=z.shape[1]).astype(float)


def without_empty_columns(z: AnyMatrix) -> tuple[AnyMatrix, IntArray | slice]:
    """Leave out the empty columns of sparse rows; return the others and their places, in order."""
    if not scipy.sparse.issparse(z):
        return z, slice(None)
    if z.shape[1] <= _MAX_MARKED * z.nnz:
        # Marking columns is quicker than sorting indices, unless there are far more columns than indices.
        occurs = np.zeros(z.shape[1], dtype=bool)
        occurs[z.indices] = True
        touched, places = np.flatnonzero(occurs), (np.cumsum(occurs, dtype=z.indptr.dtype) - 1)[z.indices]
    else:
        touched, places = np.unique(z.indices, return_inverse=True)
        places = places.astype(z.indptr.dtype, copy=False)
    return scipy.sparse.csr_array((z.data, places, z.indptr), shape=(z.shape[0], len(touched))), touched
