"""Columns that learners make of the features: filled where values are missing, counted, and with a column of ones.

Which columns there are, numeric ones and indicators of nominal values, `labelrace.base.feature_kinds` says.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.sparse import dense, weighted
from labelrace.typing import AnyMatrix, Array, FloatArray


def with_first(sums: Array, total: Array) -> Array:
    """Put the sum of the first value before those of the others, ``(J, V - 1, …)``: what they leave of the total."""
    return np.concatenate([total - sums.sum(axis=1, keepdims=True), sums], axis=1)


def missing(X: AnyMatrix) -> AnyMatrix | None:
    """Find the missing values: a 0/1 matrix like ``X``, or None where there are none."""
    values = X.data if scipy.sparse.issparse(X) else X
    # One NaN makes the sum NaN: most batches have none, and this is the quickest way to know.
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isnan(values.sum()):
            return None
    absent = np.isnan(values)
    if not absent.any():
        return None
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array((absent.astype(float), X.indices, X.indptr), shape=X.shape)
    return absent.astype(float)


def without(X: AnyMatrix, absent: AnyMatrix) -> AnyMatrix:
    """Put zeros where values are missing."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array((np.where(absent.data > 0, 0.0, X.data), X.indices, X.indptr), shape=X.shape)
    return np.where(absent > 0, 0.0, X)


def fill_values(X: AnyMatrix, kinds: FeatureKinds) -> FloatArray:
    """Compute the mean of each numeric column and the most frequent value, of equal ones the first, of a nominal one.

    Examples
    --------
    >>> import numpy as np
    >>> kinds = FeatureKinds(np.array([0, 3]))
    >>> fill_values(np.array([[1.0, 2.0], [2.0, np.nan], [np.nan, 2.0]]), kinds)
    array([1.5, 2. ])
    """
    absent = missing(X)
    present = X if absent is None else without(X, absent)
    rows = np.full(X.shape[1], float(X.shape[0])) - (0.0 if absent is None else absent.sum(axis=0))
    values = np.asarray(present.sum(axis=0) / np.maximum(rows, 1.0), dtype=float)
    counts = kinds.design(present).sum(axis=0)
    for features, indicators in kinds.value_groups:
        values[features] = with_first(counts[indicators], rows[features][:, None]).argmax(axis=1)
    return values


def filled(X: AnyMatrix, values: FloatArray) -> AnyMatrix:
    """Put each column's value where it is missing."""
    if missing(X) is None:
        return X
    if scipy.sparse.issparse(X):
        data = np.where(np.isnan(X.data), values[X.indices], X.data)
        return scipy.sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    return np.where(np.isnan(X), values, X)


def with_ones(H: AnyMatrix, row_weights: FloatArray | None = None) -> AnyMatrix:
    """Put a column of ones behind ``H``, for sums over all rows, and multiply rows by their weights."""
    n, k = H.shape
    ones = np.ones((n, 1)) if row_weights is None else row_weights[:, None]
    H = weighted(H, row_weights)
    if scipy.sparse.issparse(H):
        return scipy.sparse.hstack([H, ones], format="csr")
    joined = np.empty((n, k + 1))
    joined[:, :k], joined[:, k:] = H, ones
    return joined


def add_missing(
    counted: FloatArray | None, absent: AnyMatrix | None, H: AnyMatrix, row_weights: FloatArray | None = None
) -> FloatArray | None:
    """Count the rows of a batch in which a feature is missing, for each pseudo label and, last, for all rows."""
    if absent is None:
        return counted
    return add_or_none(counted, dense(absent.T @ with_ones(H, row_weights)))


def add_or_none(one: FloatArray | None, other: FloatArray | None) -> FloatArray | None:
    """Add two arrays, either of which may be None for zero."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
