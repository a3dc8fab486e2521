"""One block of rows in recursive least squares; see `labelrace.learners.rls`."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["column_squares", "compact", "step", "weighted_gram"]

# Columns up to which a sparse block is made dense for its matrix, and up to which leaving out empty ones does not pay.
_MOST_DENSE, _FEW = 16_384, 2048
# Columns for each non-zero up to which those that occur are marked rather than sorted out.
_MOST_MARKED = 8


def step(z: AnyMatrix, errors: FloatArray, inverse: FloatArray, freedom: float) -> tuple[FloatArray, FloatArray]:
    """Compute the change of weights and intercepts that a block asks for."""
    inverse = inverse.astype(z.dtype, copy=False)
    middle = weighted_gram(z, inverse)
    middle += freedom
    middle.flat[:: len(middle) + 1] += 1.0
    # LAPACK solves for many targets more slowly than it inverts, and the matrix is far from singular.
    many = errors.shape[1] > len(middle)
    pull = np.linalg.inv(middle) @ errors if many else np.linalg.solve(middle, errors)
    change = z.T @ pull
    change *= inverse[:, None]
    return change, freedom * pull.sum(axis=0)


def weighted_gram(z: AnyMatrix, weights: FloatArray) -> FloatArray:
    """Compute ``z diag(weights) zᵀ`` for some rows."""
    if not scipy.sparse.issparse(z):
        # The root on either side makes the product symmetric, at half the cost.
        scaled = z * np.sqrt(weights)
        return scaled @ scaled.T
    values = z.data * weights[z.indices]
    if z.shape[1] > _MOST_DENSE:
        return np.asarray((scipy.sparse.csr_array((values, z.indices, z.indptr), shape=z.shape) @ z.T).toarray())
    # Sparse times dense is quicker than sparse times sparse, if the dense one lies as SciPy wants it.
    right = np.zeros(z.shape[::-1], z.dtype)
    right[z.indices, np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))] = values
    return np.asarray(z @ right)


def column_squares(z: AnyMatrix) -> FloatArray:
    """Sum the squares of each column."""
    if not scipy.sparse.issparse(z):
        return np.einsum("ij,ij->j", z, z)
    return np.bincount(z.indices, weights=z.data * z.data, minlength=z.shape[1]).astype(float)


def compact(z: AnyMatrix) -> tuple[AnyMatrix, IntArray | slice]:
    """Leave out empty columns of sparse rows, where there may be many; return those left with their places."""
    if not scipy.sparse.issparse(z) or z.shape[1] <= max(_FEW, z.nnz):
        return z, slice(None)
    if z.shape[1] <= _MOST_MARKED * z.nnz:
        # Marking columns is quicker than sorting indices, unless there are far more columns than indices.
        occurs = np.zeros(z.shape[1], dtype=bool)
        occurs[z.indices] = True
        touched, places = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[z.indices]
    else:
        touched, places = np.unique(z.indices, return_inverse=True)
    return scipy.sparse.csr_array((z.data, places, z.indptr), shape=(z.shape[0], len(touched))), touched
