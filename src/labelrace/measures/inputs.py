"""Checked inputs: whatever the caller holds becomes one sparse form of labels, one dense form of scores.

Labels are a CSR array in canonical form (sorted indices, no duplicates) that stores exactly the ones. Dense
and sparse callers then share every line of what follows, and nothing sparse is ever made dense.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from labelrace.typing import AnyMatrix, Array, FloatArray, SparseMatrix

__all__ = ["as_labels", "as_scores"]


def as_labels(Y: AnyMatrix, name: str, shape: tuple[int, int] | None = None) -> SparseMatrix:
    """Return the label matrix `Y` as a canonical CSR array of ones.

    Parameters
    ----------
    Y : array-like, scipy.sparse matrix or array, or DataFrame
        Zeros and ones, examples × labels. Rows and columns of a DataFrame count by position. A sparse matrix
        means what its `toarray()` says: duplicates add up, and a sum of 2 is no label.
    name : str
        What error messages call it.
    shape : tuple of int, optional
        The shape it must have.

    Examples
    --------
    >>> as_labels([[0, 1, 1], [1, 0, 0]], "Y_true").indices.tolist()
    [1, 2, 0]
    """
    if sparse.issparse(Y):
        return _from_sparse(Y, name, shape)
    return _from_dense(np.asarray(Y), name, shape)


def as_scores(scores: AnyMatrix, shape: tuple[int, int]) -> FloatArray:
    """Return `scores` as a float64 array of the given shape; infinities may stay, NaN may not."""
    if sparse.issparse(scores):
        raise ValueError("scores must be dense: a cell that a sparse matrix leaves out has no score")
    dense = np.asarray(scores)
    _check_shape(dense.shape, "scores", shape)
    values = _as_float(dense, "scores must be real numbers")
    # The minimum of an array with a NaN is NaN.
    if np.isnan(values.min()):
        raise ValueError("scores contain NaN, which has no rank")
    return values


def _check_shape(actual: tuple[int, ...], name: str, expected: tuple[int, int] | None) -> None:
    if len(actual) != 2:
        raise ValueError(f"{name} must be two-dimensional, examples × labels, but its shape is {actual}")
    if expected is not None and actual != expected:
        raise ValueError(f"{name} has shape {actual}, but Y_true has shape {expected}")
    if 0 in actual:
        raise ValueError(f"{name} is empty: its shape is {actual}, and no measure is defined on nothing")


def _from_sparse(Y: SparseMatrix, name: str, shape: tuple[int, int] | None) -> SparseMatrix:
    _check_shape(Y.shape, name, shape)
    # A copy, because the clean-up below works in place and the matrix is the caller's.
    labels = sparse.csr_array(Y, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    _require_labels(bool((labels.data == 1).all()), name)
    return _ones_at(labels.indices, labels.indptr, labels.shape)


def _from_dense(Y: Array, name: str, shape: tuple[int, int] | None) -> SparseMatrix:
    _check_shape(Y.shape, name, shape)
    if Y.dtype != np.bool_:
        if Y.dtype.kind not in "iuf":
            Y = _as_float(Y, f"{name} must hold only 0 and 1")
        present = Y == 1
        _require_labels(bool((present | (Y == 0)).all()), name)
        Y = present
    n_examples, n_labels = Y.shape
    cells = np.flatnonzero(Y)
    indptr = np.searchsorted(cells, np.arange(n_examples + 1) * n_labels)
    return _ones_at(cells % n_labels, indptr, Y.shape)


def _ones_at(indices: Array, indptr: Array, shape: tuple[int, int]) -> SparseMatrix:
    return sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=shape)


def _as_float(values: Array, message: str) -> FloatArray:
    # Text would be parsed and complex numbers cut to their real part, both without a word. Object arrays are
    # what a DataFrame of mixed or nullable columns gives.
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{message}, but the dtype is {values.dtype}")
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{message}: {error}") from error


def _require_labels(valid: bool, name: str) -> None:
    if not valid:
        raise ValueError(f"{name} must hold only 0 and 1")
