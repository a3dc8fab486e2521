"""Labels that are not known: NaN in ``Y``, dense or stored in a sparse matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows, batch_rows
from labelrace.typing import AnyMatrix, FloatArray, IntArray


class Positions(NamedTuple):
    """Rows and labels of what is not known, row by row."""

    rows: IntArray
    labels: IntArray


def find(Y: AnyMatrix) -> Positions | None:
    """Find what is not known; None if all is."""
    values = Y.data if scipy.sparse.issparse(Y) else Y
    # One NaN makes the sum NaN, which differs from itself: most batches have none, and no other way is as quick.
    if values.dtype.kind != "f" or (total := np.add.reduce(values, axis=None)) == total:
        return None
    if not scipy.sparse.issparse(Y):
        return Positions(*np.nonzero(np.isnan(Y)))
    positions = np.flatnonzero(np.isnan(Y.data))
    return Positions(np.searchsorted(Y.indptr, positions, side="right") - 1, Y.indices[positions])


def leave_out(
    X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None
) -> tuple[AnyMatrix, AnyMatrix, FloatArray | None]:
    """Leave out the rows of which no label is known, and their weights.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[0.5], [1.5]]), np.array([[np.nan, np.nan], [1.0, np.nan]])
    >>> leave_out(X, Y, np.array([1.0, 2.0]))
    (array([[1.5]]), array([[ 1., nan]]), array([2.]))
    """
    missing = find(Y)
    if missing is None:
        return X, Y, row_weights
    is_known = np.bincount(missing.rows, minlength=Y.shape[0]) < Y.shape[1]
    return (X, Y, row_weights) if is_known.all() else batch_rows(np.flatnonzero(is_known), X, Y, row_weights)


def n_known_labels(Y: AnyMatrix, missing: Positions) -> int:
    """Count the labels of which something is known."""
    return int(np.count_nonzero(np.bincount(missing.labels, minlength=Y.shape[1]) < Y.shape[0]))


def fill(Y: AnyMatrix, missing: Positions, values: FloatArray) -> AnyMatrix:
    """Put values where labels are not known; they are in the order of the positions."""
    if not scipy.sparse.issparse(Y):
        filled = Y.copy()
        filled[missing] = values
        return filled
    data = Y.data.copy()
    data[np.isnan(data)] = values
    return scipy.sparse.csr_array((data, Y.indices, Y.indptr), shape=Y.shape)


def fill_with_means(Y: AnyMatrix) -> AnyMatrix:
    """Put each label's frequency among the known entries where it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> fill_with_means(np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, np.nan]]))
    array([[1. , 0. ],
           [0.5, 1. ],
           [0. , 0.5]])
    """
    missing = find(Y)
    if missing is None:
        return Y
    n_missing = np.bincount(missing.labels, minlength=Y.shape[1])
    present = np.asarray(fill(Y, missing, np.zeros(len(missing.rows))).sum(axis=0)).ravel()
    means = present / np.maximum(Y.shape[0] - n_missing, 1)
    return fill(Y, missing, means[missing.labels])


def without_zeros(Y: AnyMatrix) -> AnyMatrix:
    """Leave out labels that are stored and absent."""
    Y = as_rows(Y)
    if Y.data.all():
        return Y
    Y = Y.copy()
    Y.eliminate_zeros()
    return Y
