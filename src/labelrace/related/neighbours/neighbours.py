"""Rows that are kept, and the nearest of them: distances for all labels at once, in blocks, by matrix products.

Numeric features are divided by their range in the first batch, so that a feature that was constant there does not
count, or taken as they are; nominal ones differ by 0 or 1. Squared distances are ``|a|² + |b|² - 2 a·b``, one product a
block, sparse for sparse rows and in single precision for dense ones. Where rounding leaves open which rows are the
nearest, the few in question are measured again by differences, so that equal rows have equal distances, and ties can be
told: of rows at the same distance the newest, or the oldest, is nearer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import dense, stacked, with_last_rows
from labelrace.learners import design as columns
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Distances computed at once: 2¹⁸ are 2 MB, which stay in the processor's cache.
_CELLS = 2**18
# The smallest of 2³ distances stands for all of them, while the nearest rows are looked for.
_HALVINGS = 3
# Numbers gathered at once to measure pairs of rows again.
_GATHERED = 2**21
# What the leading part of a distance is rounded to: 36 of its 53 binary digits.
_DIGITS = 2.0**36
# Whole numbers below this have squares that add up exactly; in single precision, squared lengths up to this are exact.
_EXACT = 2.0**20
# Squared lengths of rows that single precision can hold: products do not overflow, nor vanish beside the errors.
_SINGLE = 1e-20, 1e30
# Candidates for each neighbour that are measured again; if there are more, they are looked for in double precision.
_OPEN = 2
# Coordinates beyond this have no square, nor have the inverses of widths below its inverse.
_FARTHEST = 1e100


class Rows(NamedTuple):
    """A matrix as arrays that can be saved: dense, or in compressed rows."""

    dense: Annotated[FloatArray | None, "_n <=_m", "<=_top", "missing"]  # the matrix, if it is dense
    # Its compressed rows, if it is sparse.
    data: Annotated[FloatArray | None, "_z", "<=_top", "missing"]
    indices: Annotated[IntArray | None, "_z", "<_m", "with data"]
    indptr: Annotated[IntArray | None, "_n+1", "starts _z", "with data", "instead dense"]


def stored(X: AnyMatrix) -> Rows:
    """Copy a matrix into what can be saved."""
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(X, copy=True)
        return Rows(None, X.data.astype(float), X.indices, X.indptr)
    return Rows(np.array(X, dtype=float), None, None, None)


def as_matrix(rows: Rows, n_columns: int) -> AnyMatrix:
    """Return stored rows as a matrix; columns that came later than the rows are 0."""
    if rows.dense is None:
        parts = (rows.data, rows.indices, rows.indptr)
        return scipy.sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_columns))  # type: ignore[arg-type]
    missing = n_columns - rows.dense.shape[1]
    return np.pad(rows.dense, ((0, 0), (0, missing))) if missing else rows.dense


def as_marks(rows: Rows, n_columns: int, dtype: Any) -> Any:
    """Return stored rows of zeros and ones, in compressed rows, as a dense array."""
    data, indices, indptr = (np.asarray(part) for part in rows[1:])
    marks = np.zeros((len(indptr) - 1, n_columns), dtype)
    cells = np.repeat(np.arange(0, marks.size, max(1, n_columns)), np.diff(indptr)) + indices
    marks.ravel()[cells] = data
    return marks


def joined(rows: Rows, X: AnyMatrix) -> AnyMatrix:
    """Put further rows, the newest, behind stored ones; the result is sparse if either is."""
    before = as_matrix(rows, X.shape[1])
    if before.shape[0] == 0:
        return X
    return stacked([before, X])


def newest(rows: Rows, X: AnyMatrix, count: int) -> Rows:
    """Put further rows behind stored ones, and keep the newest; as `joined` and `stored`, without a detour by matrices.

    Examples
    --------
    >>> import numpy as np
    >>> newest(stored(np.array([[1.0], [2.0]])), np.array([[3.0]]), 2).dense
    array([[2.],
           [3.]])
    """
    if rows.dense is not None and not scipy.sparse.issparse(X):
        before, X = as_matrix(rows, X.shape[1]), X[-count:]
        return Rows(np.concatenate([before[max(0, len(before) + len(X) - count) :], X], dtype=float), None, None, None)
    if rows.dense is not None or not scipy.sparse.issparse(X):
        return stored(joined(rows, X)[-count:])
    return Rows(None, *with_last_rows(rows[1:], X, count))  # type: ignore[arg-type]


class Scale(NamedTuple):
    """How features become coordinates."""

    n_values: Annotated[IntArray, "m", ">=0"]  # number of values of each nominal feature, 0 for a numeric one
    # What is subtracted from numeric features, and what they are divided by; features of width 0 do not count.
    low: Annotated[FloatArray, "m"]
    width: Annotated[FloatArray, "m", ">=0"]


def empty_scale(n_values: IntArray) -> Scale:
    """Make the scale of features that have not been seen: as they are."""
    return Scale(n_values, np.zeros(len(n_values)), np.ones(len(n_values)))


def first_scale(n_values: IntArray, X: AnyMatrix) -> Scale:
    """Take each numeric feature's range from a first batch."""
    low, high = X.min(axis=0), X.max(axis=0)
    if scipy.sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    numeric = n_values == 0
    return Scale(n_values, np.where(numeric, low, 0.0), np.where(numeric, high - low, 1.0))


def grown_scale(scale: Scale, n_values: IntArray, width: float) -> Scale:
    """Add features that were 0 so far; ``width`` is what numeric ones are divided by."""
    new = columns.appended(scale.n_values, n_values)[len(scale.low) :]
    return Scale(
        np.concatenate([scale.n_values, new]),
        np.concatenate([scale.low, np.zeros(len(new))]),
        np.concatenate([scale.width, np.where(new > 0, 1.0, width)]),
    )


def points(scale: Scale, X: AnyMatrix, n_values: IntArray, *, sparse: bool) -> AnyMatrix:
    """Turn rows into points whose Euclidean distance is wanted, dense or sparse.

    ``n_values`` counts the values of nominal features, new ones included: more than two become indicators.
    """
    # The inverse of less would be infinite.
    varies = scale.width > 1.0 / _FARTHEST
    inverse = np.divide(1.0, scale.width, out=np.zeros_like(scale.width), where=varies)
    if sparse:
        # Where all rows have the same origin it does not matter, and zeros stay zeros.
        result = scipy.sparse.csr_array(X)
        scaled = _near(result.data * inverse[result.indices])
        result = scipy.sparse.csr_array((scaled, result.indices, result.indptr), X.shape)
    else:
        result = _near((dense(X) - scale.low) * inverse)
    many = np.flatnonzero(n_values > 2)
    if not len(many):
        return result
    result = result[:, np.setdiff1d(np.arange(len(n_values)), many)]
    codes = dense(X[:, many])
    # Where two codes differ, two indicators do. Each is there twice, as a half: four quarters are one exactly.
    parts = [0.5 * (codes[:, [i]] == np.tile(np.arange(n_values[j]), 2)) for i, j in enumerate(many)]
    if sparse:
        return scipy.sparse.hstack([result, *parts], format="csr")
    return np.hstack([result, *parts])


def _near(values: FloatArray) -> FloatArray:
    """Cut coordinates to what has a square."""
    return np.clip(values, -_FARTHEST, _FARTHEST, out=values)


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut rows so that a block of so many columns has a bounded number of cells."""
    size = max(1, _CELLS // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def squared_distances(
    P: AnyMatrix, Q: AnyMatrix, P_norms: FloatArray | None = None, Q_norms: FloatArray | None = None
) -> FloatArray:
    """Compute all squared distances between the rows of ``Q``, which are rows of the result, and those of ``P``.

    ``P_norms`` and ``Q_norms`` are their `norms`, where these are known already.
    """
    result = dense((-2.0 * Q) @ P.T)
    result += norms(P) if P_norms is None else P_norms
    result += (norms(Q) if Q_norms is None else Q_norms)[:, None]
    return np.maximum(result, 0.0, out=result)


def norms(P: AnyMatrix) -> FloatArray:
    """Compute the squared lengths of rows."""
    squares = P.multiply(P).sum(axis=1) if scipy.sparse.issparse(P) else np.einsum("ij,ij->i", P, P)
    return np.asarray(squares)


def _is_exact(P: AnyMatrix) -> bool:
    """Tell whether products are free of rounding: small whole numbers, such as binary features."""
    values = P.data if scipy.sparse.issparse(P) else P
    # The first few tell it of most data.
    if (values[:4] != np.rint(values[:4])).any():
        return False
    return bool((np.abs(values) < _EXACT).all() and (values == np.rint(values)).all())


def slack(P: AnyMatrix, Q: AnyMatrix) -> FloatArray:
    """Bound the rounding errors of squared distances, for each row of ``Q``; 0 if there are none."""
    if _is_exact(P) and _is_exact(Q):
        return np.zeros(Q.shape[0])
    return 4.0 * (P.shape[1] + 4) * np.finfo(float).eps * (norms(Q) + norms(P).max(initial=0.0))


class Single(NamedTuple):
    """Rows in single precision, about their mean, which makes rounding errors smaller."""

    P: Any  # (w, d): the rows less the origin, in single precision
    lengths: Any  # (w,): their squared lengths
    # (d,) or None: what was subtracted; None if all coordinates are small whole numbers, whose distances are exact.
    origin: FloatArray | None


def in_single(P: AnyMatrix) -> Single | None:
    """Prepare rows for distances in single precision, which take half the time; None where it cannot hold them."""
    if scipy.sparse.issparse(P) or not len(P):
        return None
    origin = None if _is_exact(P) else P.mean(axis=0)
    P = P if origin is None else P - origin
    lengths = norms(P)
    low, high = _SINGLE if origin is not None else (0.0, _EXACT)
    if not low <= lengths.max() <= high:
        return None
    return Single(P.astype(np.float32), lengths.astype(np.float32), origin)


class _Factors(NamedTuple):
    """Arrays whose products give squared distances, each row less ``|q|²``, and bounds of their rounding errors."""

    Q: AnyMatrix
    P: AnyMatrix
    lengths: FloatArray
    errors: FloatArray

    def distances(self, block: slice, itself: IntArray | None) -> FloatArray:
        """Compute the distances of a block of rows; those of rows to themselves are infinite."""
        D = dense(self.Q[block] @ self.P)
        D += self.lengths
        if itself is not None:
            D[np.arange(len(D)), itself[block]] = np.inf
        return D


def _double_factors(P: AnyMatrix, Q: AnyMatrix) -> _Factors:
    return _Factors(-2.0 * Q, P.T, norms(P), slack(P, Q))


def _single_factors(single: Single | None, Q: AnyMatrix, is_same: bool) -> _Factors | None:
    """Prepare distances to rows in single precision; None where it cannot hold them."""
    if single is None or scipy.sparse.issparse(Q):
        return None
    P, lengths, origin = single
    if is_same:
        Q, Q_lengths = P, lengths
    else:
        if origin is None and not _is_exact(Q):
            return None
        Q = Q if origin is None else Q - origin
        Q_lengths = norms(Q)
        if Q_lengths.max(initial=0.0) > (_EXACT if origin is None else _SINGLE[1]):
            return None
        Q, Q_lengths = Q.astype(np.float32), Q_lengths.astype(np.float32)
    # Half of epsilon for each of d additions, and for what is rounded besides; a fifth for products of roundings.
    epsilon = np.float32(0.0 if origin is None else 0.6 * (P.shape[1] + 8) * np.finfo(np.float32).eps)
    return _Factors(-2.0 * Q, P.T, lengths, epsilon * (Q_lengths + lengths.max()))


def nearest(
    P: AnyMatrix,
    Q: AnyMatrix,
    k: int,
    *,
    newest_first: bool = True,
    itself: IntArray | None = None,
    single: Single | None = None,
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
    itself : (n,) array or None, default=None
        For each row of ``Q`` a row of ``P`` that is left out: itself.
    single : Single or None, default=None
        What `in_single` makes of ``P``, where it is known already.

    Examples
    --------
    >>> import numpy as np
    >>> nearest(np.array([[0.0], [3.0], [1.0]]), np.array([[1.2]]), 2).tolist()
    [[0, 2]]
    """
    n, w = Q.shape[0], P.shape[0]
    k = min(k, w - (itself is not None))
    found = np.empty((n, k), dtype=np.intp)
    if k == 0:
        return found
    fast = _single_factors(in_single(P) if single is None else single, Q, Q is P)
    factors = _double_factors(P, Q) if fast is None else fast
    for block in blocks(n, w):
        D = factors.distances(block, itself)
        row, column = candidates(D, k, 2 * factors.errors[block])
        if factors is fast and len(row) > _OPEN * k * len(D):
            # Single precision leaves too much open, as where a row is far from all others.
            factors = _double_factors(P, Q)
            D = factors.distances(block, itself)
            row, column = candidates(D, k, 2 * factors.errors[block])
        exact = None if factors.errors.any() else D[row, column]
        found[block] = settled(P, Q[block], k, row, column, newest_first, exact)
    return found


def candidates(D: FloatArray, k: int, errors: FloatArray) -> tuple[IntArray, IntArray]:
    """Find the cells of each row that are its k smallest, and those that are no larger by more than an error."""
    n, w = D.shape
    if w < 2 * k * 2**_HALVINGS:
        limit = np.partition(D, k - 1, axis=1)[:, k - 1] + errors
        return np.divmod(np.flatnonzero(limit[:, None] >= D), w)
    # The k-th smallest of the minima of groups bounds the k-th smallest of all, and leaves hardly more cells than k.
    minima = D
    for _ in range(_HALVINGS):
        half = minima.shape[1] // 2
        minima = np.minimum(minima[:, :half], minima[:, half : 2 * half])
    bound = np.partition(minima, k - 1, axis=1)[:, k - 1] + errors
    cells = np.flatnonzero(bound[:, None] >= D)
    row, column = np.divmod(cells, w)
    counts = np.bincount(row, minlength=n)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    values = D.ravel()[cells]
    few = np.full((n, counts.max()), np.inf, D.dtype)
    few[row, place] = values
    limit = np.partition(few, k - 1, axis=1)[:, k - 1] + errors
    kept = values <= limit[row]
    return row[kept], column[kept]


def settled(
    P: AnyMatrix, Q: AnyMatrix, k: int, row: IntArray, column: IntArray, newest_first: bool, exact: FloatArray | None
) -> IntArray:
    """Choose ``k`` of the candidates, pairs sorted by row, of each row.

    Where there are more, by distances without rounding errors: ``exact`` ones of the pairs, or None to compute them.
    """
    found = np.empty((Q.shape[0], k), dtype=np.intp)
    counts = np.bincount(row, minlength=len(found))
    clear = counts == k
    found[clear] = column[clear[row]].reshape(-1, k)
    if clear.all():
        return found
    open_pairs = ~clear[row]
    row, column = row[open_pairs], column[open_pairs]
    distance = _by_differences(P, Q, row, column) if exact is None else exact[open_pairs]
    order = np.lexsort((-column if newest_first else column, distance, row))
    unclear = np.flatnonzero(~clear)
    first = np.searchsorted(row, unclear)[:, None] + np.arange(k)
    found[unclear] = np.sort(column[order][first], axis=1)
    return found


def _by_differences(P: AnyMatrix, Q: AnyMatrix, row: IntArray, column: IntArray) -> FloatArray:
    """Compute the squared distances of pairs of rows, equal ones for equal rows.

    They are rounded to eleven digits: distances that are equal but for round-off must be equal, or it would depend on
    whether points are dense or sparse which of them are nearer.
    """
    result = np.empty(len(row))
    size = max(1, _GATHERED // P.shape[1])
    for start in range(0, len(row), size):
        pairs = slice(start, start + size)
        gap = Q[row[pairs]] - P[column[pairs]]
        result[pairs] = norms(gap)
    parts, powers = np.frexp(result)
    return np.ldexp(np.rint(parts * _DIGITS) / _DIGITS, powers)


def selection(found: IntArray, n_rows: int) -> AnyMatrix:
    """Make the 0/1 matrix that adds up, for each row of ``found``, the rows that it lists.

    Examples
    --------
    >>> import numpy as np
    >>> selection(np.array([[2, 0]]), 3).toarray()
    array([[1., 0., 1.]])
    """
    n, k = found.shape
    return scipy.sparse.csr_array((np.ones(n * k), found.ravel(), k * np.arange(n + 1)), shape=(n, n_rows))


def ranks(D: FloatArray, errors: FloatArray) -> IntArray:
    """Sort the columns of each row by distance, equal ones from the last on; what rounding may have parted is equal."""
    step = np.where(errors > 0, 8.0 * errors, 1.0)[:, None]
    rounded = np.rint(D / step) if errors.any() else D
    newest_first = np.argsort(rounded[:, ::-1], axis=1, kind="stable")
    order: IntArray = D.shape[1] - 1 - newest_first
    return order


def in_window(present: BoolArray, size: int) -> BoolArray:
    """Mark in each column the last ``size`` rows that are present."""
    newer = np.cumsum(present[::-1], axis=0)[::-1]
    marked: BoolArray = present & (newer <= size)
    return marked
