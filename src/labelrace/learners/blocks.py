"""One block of rows in recursive least squares; see `labelrace.learners.rls`."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.learners import columns
from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["column_squares", "compact", "put", "step", "take"]

# Columns up to which a sparse block is made dense for its matrix.
_MOST_DENSE = 2048
# Columns for each non-zero up to which those that occur are marked rather than sorted out.
_MOST_MARKED = 8


def step(z: AnyMatrix, errors: FloatArray, inverse: FloatArray, freedom: float) -> tuple[FloatArray, FloatArray]:
    """Compute the change of weights and intercepts that a block asks for."""
    scaled = _scaled_columns(z, inverse.astype(z.dtype, copy=False))
    # Sparse times dense is quicker than sparse times sparse, while the dense one is small.
    middle = scaled @ (z.T if z.shape[1] > _MOST_DENSE else columns.dense(z).T)
    middle = columns.dense(middle) + freedom
    middle.flat[:: len(middle) + 1] += 1.0
    pull = np.linalg.solve(middle, errors)
    return scaled.T @ pull, freedom * pull.sum(axis=0)


def take(before: FloatArray, touched: IntArray | None) -> FloatArray:
    """Copy columns, or all of them."""
    return before.copy() if touched is None else before[:, touched]


def put(before: FloatArray, touched: IntArray, values: FloatArray) -> FloatArray:
    """Write columns into a copy."""
    after = before.copy()
    after[:, touched] = values
    return after


def _scaled_columns(z: AnyMatrix, scale: FloatArray) -> AnyMatrix:
    if not scipy.sparse.issparse(z):
        return z * scale
    return scipy.sparse.csr_array((z.data * scale[z.indices], z.indices, z.indptr), shape=z.shape)


def column_squares(z: AnyMatrix) -> FloatArray:
    """Sum the squares of each column."""
    if not scipy.sparse.issparse(z):
        return np.einsum("ij,ij->j", z, z)
    return np.bincount(z.indices, weights=z.data * z.data, minlength=z.shape[1]).astype(float)


def compact(z: AnyMatrix) -> tuple[AnyMatrix, IntArray]:
    """Leave out the columns of sparse rows that are empty."""
    if z.shape[1] <= _MOST_MARKED * z.nnz:
        # Marking columns is quicker than sorting indices, unless there are far more columns than indices.
        occurs = np.zeros(z.shape[1], dtype=bool)
        occurs[z.indices] = True
        touched, places = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[z.indices]
    else:
        touched, places = np.unique(z.indices, return_inverse=True)
    return scipy.sparse.csr_array((z.data, places, z.indptr), shape=(z.shape[0], len(touched))), touched
