"""Rows that a state keeps: a matrix, dense or sparse, as arrays that can be saved."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import stacked
from labelrace.typing import AnyMatrix, FloatArray, IntArray


class StoredRows(NamedTuple):
    """A matrix as arrays that can be saved: dense, or in compressed rows."""

    dense: Annotated[FloatArray | None, "_n <=_m"]  # the matrix, if it is dense
    # Its compressed rows, if it is sparse.
    data: Annotated[FloatArray | None, "_z"]
    indices: Annotated[IntArray | None, "_z", "<_m"]
    indptr: Annotated[IntArray | None, "_n+1", "starts _z"]


def store(X: AnyMatrix) -> StoredRows:
    """Copy a matrix into what can be saved."""
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X, copy=True)
        return StoredRows(None, X.data.astype(float), X.indices, X.indptr)
    return StoredRows(np.array(X, dtype=float), None, None, None)


def as_matrix(rows: StoredRows, n_columns: int) -> AnyMatrix:
    """Return stored rows as a matrix; columns that came later than the rows are 0."""
    if rows.dense is None:
        parts = (rows.data, rows.indices, rows.indptr)
        return scipy.sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_columns))  # type: ignore[arg-type]
    missing = n_columns - rows.dense.shape[1]
    return np.pad(rows.dense, ((0, 0), (0, missing))) if missing else rows.dense


def append(rows: StoredRows, X: AnyMatrix) -> AnyMatrix:
    """Return the matrix of stored rows with further rows, the newest, below; it is sparse if either is.

    Examples
    --------
    >>> import numpy as np
    >>> append(store(np.array([[1.0], [2.0]])), np.array([[3.0]]))
    array([[1.],
           [2.],
           [3.]])
    """
    before = as_matrix(rows, X.shape[1])
    return stacked([before, X]) if before.shape[0] else X
