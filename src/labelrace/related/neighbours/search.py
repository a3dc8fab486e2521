"""The nearest rows of many: distances for all labels at once, in blocks, by matrix products.

Squared distances are ``|a|² + |b|² - 2 a·b``, one product a block, sparse for sparse rows: n rows against w cost
``n w m``. Rounding must not decide a tie, so these distances only choose candidates, a few more than are wanted; they
are measured again by differences, ``k m`` for each of the n rows, which gives equal rows equal distances. Of rows at
the same distance the newest, or the oldest, is nearer. Small whole numbers, such as binary features, have no rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse

from labelrace.base.sparse import dense
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Distances computed at once: 2¹⁶ are 512 KB, which stay in the processor's cache.
_CELLS = 2**16
# Numbers gathered at once to measure pairs of rows again.
_GATHERED = 2**21
# Numbers of a group whose smallest stands for all of them, while the nearest rows are looked for.
_GROUP = 8
# What the leading part of a distance is rounded to: 36 of its 53 binary digits.
_DIGITS = 2.0**36
# Whole numbers below this have squares that add up exactly.
_EXACT = 2.0**20


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut the rows of a matrix into blocks of a bounded number of cells."""
    size = max(1, _CELLS // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def squared_norms(P: AnyMatrix) -> FloatArray:
    """Compute the squared lengths of rows."""
    squares = P.multiply(P).sum(axis=1) if scipy.sparse.issparse(P) else np.einsum("ij,ij->i", P, P)
    return np.asarray(squares)


def squared_distances(P: AnyMatrix, Q: AnyMatrix) -> FloatArray:
    """Compute all squared distances between the rows of ``Q``, which are rows of the result, and those of ``P``."""
    result = dense((-2.0 * Q) @ P.T)
    result += squared_norms(P)
    result += squared_norms(Q)[:, None]
    return np.maximum(result, 0.0, out=result)


def rounding_errors(P: AnyMatrix, Q: AnyMatrix) -> FloatArray:
    """Bound the rounding errors of `squared_distances`, for each row of ``Q``; 0 if there are none."""
    if _is_exact(P) and _is_exact(Q):
        return np.zeros(Q.shape[0])
    largest = squared_norms(P).max(initial=0.0)
    return 4.0 * (P.shape[1] + 4) * np.finfo(float).eps * (squared_norms(Q) + largest)


def _is_exact(P: AnyMatrix) -> bool:
    """Return whether products are free of rounding: of small whole numbers, such as binary features."""
    values = P.data if scipy.sparse.issparse(P) else P
    return bool((np.abs(values) < _EXACT).all() and (values == np.rint(values)).all())


def nearest(
    P: AnyMatrix, Q: AnyMatrix, k: int, *, newest_first: bool = True, exclude: IntArray | None = None
) -> IntArray:
    """Find the ``k`` rows of ``P`` that are nearest to each row of ``Q``, the oldest of them first.

    Parameters
    ----------
    P : (w, d) array or sparse array
        The rows to find, the oldest first.
    Q : (n, d) array or sparse array
        The rows to find neighbours of.
    k : int
        Number of neighbours; all rows if there are fewer.
    newest_first : bool, default=True
        Whether of rows at the same distance the newest is nearer, or the oldest.
    exclude : (n,) array or None, default=None
        For each row of ``Q`` the index of a row of ``P`` that is no neighbour of it, such as the row itself.

    Examples
    --------
    >>> import numpy as np
    >>> nearest(np.array([[0.0], [3.0], [1.0]]), np.array([[1.2]]), 2).tolist()
    [[0, 2]]
    """
    n, w = Q.shape[0], P.shape[0]
    k = min(k, w - (exclude is not None))
    indices = np.empty((n, k), dtype=np.intp)
    if k == 0:
        return indices
    errors = rounding_errors(P, Q)
    for block in blocks(n, w):
        D = squared_distances(P, Q[block])
        if exclude is not None:
            D[np.arange(len(D)), exclude[block]] = np.inf
        limit = _kth_smallest_bound(D, k) + 2.0 * errors[block]
        row, column = np.divmod(np.flatnonzero(limit[:, None] >= D), w)
        distance = _by_differences(P, Q[block], row, column) if errors.any() else D[row, column]
        first = np.searchsorted(row, np.arange(len(D)))
        order = np.lexsort((-column if newest_first else column, distance, row))
        indices[block] = np.sort(column[order[first[:, None] + np.arange(k)]], axis=1)
    return indices


def _kth_smallest_bound(D: FloatArray, k: int) -> FloatArray:
    """Bound the k-th smallest number of each row from above, closely: by the k-th smallest of minima of groups."""
    n, w = D.shape
    if w >= 2 * k * _GROUP:
        D = D[:, : w - w % _GROUP].reshape(n, _GROUP, -1).min(axis=1)
    return np.partition(D, k - 1, axis=1)[:, k - 1]


def _by_differences(P: AnyMatrix, Q: AnyMatrix, row: IntArray, column: IntArray) -> FloatArray:
    """Compute the squared distances of pairs of rows, equal ones for equal rows.

    They are rounded to eleven digits: distances that are equal but for round-off must be equal, or it would depend on
    whether points are dense or sparse which of them are nearer.
    """
    result = np.empty(len(row))
    size = max(1, _GATHERED // P.shape[1])
    for start in range(0, len(row), size):
        pairs = slice(start, start + size)
        result[pairs] = squared_norms(Q[row[pairs]] - P[column[pairs]])
    parts, powers = np.frexp(result)
    return np.ldexp(np.rint(parts * _DIGITS) / _DIGITS, powers)


def order_by_distance(D: FloatArray, errors: FloatArray) -> IntArray:
    """Sort the columns of each row by distance, equal ones from the last on; what rounding may have parted is equal."""
    step = np.where(errors > 0, 8.0 * errors, 1.0)[:, None]
    rounded = np.rint(D / step) if errors.any() else D
    newest_first = np.argsort(rounded[:, ::-1], axis=1, kind="stable")
    order: IntArray = D.shape[1] - 1 - newest_first
    return order


def selection(indices: IntArray, n_rows: int) -> AnyMatrix:
    """Make the 0/1 matrix that adds up, for each row of ``indices``, the rows that it lists.

    Examples
    --------
    >>> import numpy as np
    >>> selection(np.array([[2, 0]]), 3).toarray()
    array([[1., 0., 1.]])
    """
    n, k = indices.shape
    return scipy.sparse.csr_array((np.ones(n * k), indices.ravel(), k * np.arange(n + 1)), shape=(n, n_rows))
