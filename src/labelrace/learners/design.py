"""Numeric and nominal columns, side by side.

A nominal feature with ``V`` values holds codes ``0 … V - 1``. Learners see it as ``V - 1`` indicator columns, one for
each value but the first: the first value is the zero of a sparse row, and its share follows from the others. With two
values the indicator is the column itself, so that binary features, dense or sparse, are used unchanged.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.sparse import dense, entry_rows
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

_FLOAT, _INDEX = np.dtype(np.float64), np.dtype(np.int32)
_COMPRESSED_ROWS = (scipy.sparse.csr_array, scipy.sparse.csr_matrix)
# Of what kinds columns are is asked several times a batch, and nobody writes into these arrays. Arrays that are no more
# are not noticed (an interrupt within a callback would be lost); all is forgotten from time to time instead.
_MOST_KNOWN = 256
_KNOWN: dict[int, tuple[weakref.ref[IntArray], tuple[bool, bool]]] = {}


def all_numeric(n_values: IntArray) -> bool:
    """Tell whether there is no nominal column."""
    return _kinds(n_values)[0]


def all_nominal(n_values: IntArray) -> bool:
    """Tell whether there is no numeric column."""
    return _kinds(n_values)[1]


def _kinds(n_values: IntArray) -> tuple[bool, bool]:
    """Tell whether all columns are numeric, and whether all are nominal, which is remembered."""
    found = _KNOWN.get(id(n_values))
    if found is None or found[0]() is not n_values:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        found = _KNOWN[id(n_values)] = (weakref.ref(n_values), (not n_values.any(), bool(n_values.all())))
    return found[1]


def numeric(X: AnyMatrix, n_values: IntArray) -> AnyMatrix:
    """Take the numeric columns."""
    return X if all_numeric(n_values) else X[:, np.flatnonzero(n_values == 0)]


def nominal(X: AnyMatrix, n_values: IntArray) -> AnyMatrix:
    """Take the nominal columns, as codes."""
    return X if all_nominal(n_values) else X[:, np.flatnonzero(n_values)]


def indicators(codes: AnyMatrix, n_values: IntArray) -> AnyMatrix:
    """Turn nominal columns into indicators of every value but the first.

    ``n_values`` belongs to these columns alone. A code beyond a column's values, or NaN, sets no indicator.

    Examples
    --------
    >>> import numpy as np
    >>> indicators(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([2, 3])).toarray()
    array([[0., 0., 1.],
           [1., 1., 0.]])
    """
    if (n_values == 2).all() and _highest(codes) <= 1:
        return codes
    sparse = scipy.sparse.csr_array(codes)
    first = np.concatenate([[0], np.cumsum(n_values - 1)])
    values = sparse.data
    known = (values >= 1) & (values < n_values[sparse.indices])
    rows = entry_rows(sparse)[known]
    columns = first[sparse.indices[known]] + values[known].astype(np.intp) - 1
    shape = (sparse.shape[0], int(first[-1]))
    return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _highest(codes: AnyMatrix) -> float:
    """Find the largest code; NaN if one is missing, so that comparing it fails."""
    values = codes.data if scipy.sparse.issparse(codes) else codes
    return float(values.max(initial=0.0))


def widest_values(n_values: IntArray, X: AnyMatrix) -> IntArray:
    """Raise the number of values of the nominal columns to what occurs in ``X``."""
    if all_numeric(n_values) or _highest(X) < 2:
        return n_values
    columns = np.flatnonzero(n_values)
    highest = _column_maxima(nominal(X, n_values))
    widened = n_values.copy()
    widened[columns] = np.maximum(n_values[columns], highest.astype(np.intp) + 1)
    return widened


def _column_maxima(codes: AnyMatrix) -> Array:
    """Find each column's largest code, or 0, passing over what is missing."""
    if not scipy.sparse.issparse(codes):
        return np.fmax.reduce(codes, axis=0, initial=0.0)
    maxima = np.zeros(codes.shape[1])
    np.fmax.at(maxima, codes.indices, codes.data)
    return maxima


def design(X: AnyMatrix, n_values: IntArray) -> AnyMatrix:
    """Make the matrix a linear model sees: numeric columns, then indicators."""
    if all_numeric(n_values):
        return X
    coded = indicators(nominal(X, n_values), n_values[n_values > 0])
    if all_nominal(n_values):
        return coded
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack([numeric(X, n_values), coded], format="csr")
    return np.hstack([numeric(X, n_values), coded.toarray() if scipy.sparse.issparse(coded) else coded])


def width(n_values: IntArray) -> int:
    """Count the columns of the `design`."""
    return int(np.where(n_values > 0, n_values - 1, 1).sum())


def appended(n_values: IntArray, wider: IntArray) -> IntArray:
    """Append the new features of ``wider`` to those that are known, which may have got more values meanwhile."""
    return np.concatenate([n_values, wider[len(n_values) :]])


def places(n_values: IntArray, wider: IntArray) -> IntArray:
    """Find where a wider `design`, with further features behind the others or with further values, has the columns.

    Examples
    --------
    >>> import numpy as np
    >>> places(np.array([0, 3]), np.array([0, 3, 0, 2]))  # a number, an indicator for each of two values
    array([0, 2, 3])
    >>> places(np.array([3, 2]), np.array([4, 2]))  # three indicators now for the first feature
    array([0, 1, 3])
    """
    before = n_values[n_values > 0] - 1
    after = wider[wider > 0][: len(before)] - 1
    starts = (wider == 0).sum() + np.cumsum(after) - after
    coded = np.repeat(starts - (np.cumsum(before) - before), before) + np.arange(before.sum())
    return np.concatenate([np.arange((n_values == 0).sum()), coded])


class Order(NamedTuple):
    """Where the columns of features in another order were: numeric ones, nominal ones, indicators, and the `design`."""

    numeric: IntArray
    nominal: IntArray
    indicators: IntArray
    design: IntArray


def order_of(n_values: IntArray, features: IntArray) -> Order:
    """Find where the columns of features in another order were.

    Examples
    --------
    >>> import numpy as np
    >>> order_of(np.array([0, 3, 0, 2]), np.array([3, 2, 1, 0])).design  # two numbers, then indicators of 3 values
    array([1, 0, 4, 2, 3])
    """
    is_nominal = n_values > 0
    rank = np.where(is_nominal, np.cumsum(is_nominal), np.cumsum(~is_nominal)) - 1
    numeric, nominal = (rank[features[is_nominal[features] == kind]] for kind in (False, True))
    lengths = n_values[is_nominal] - 1
    starts, taken = np.cumsum(lengths) - lengths, lengths[nominal]
    indicators = np.repeat(starts[nominal] - (np.cumsum(taken) - taken), taken) + np.arange(taken.sum())
    return Order(numeric, nominal, indicators, np.concatenate([numeric, len(numeric) + indicators]))


def pad_rows(array: FloatArray, n_rows: int, value: float = 0.0) -> FloatArray:
    """Append rows that hold one value, up to ``n_rows``."""
    return np.concatenate([array, np.full((n_rows - len(array), *array.shape[1:]), value)])


def before_last(sums: FloatArray, n_new: int) -> FloatArray:
    """Insert columns of zeros before the last, which belongs to all rows."""
    zeros = np.zeros((*sums.shape[:-1], n_new))
    return np.concatenate([sums[..., :-1], zeros, sums[..., -1:]], axis=-1)


def value_groups(n_values: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Group the nominal features by their number ``V`` of values: features and, a row for each, their indicators.

    Examples
    --------
    >>> import numpy as np
    >>> for features, places in value_groups(np.array([0, 3, 2, 3])):
    ...     print(features, places.tolist())
    [2] [[3]]
    [1 3] [[1, 2], [4, 5]]
    """
    n_indicators = np.where(n_values > 0, n_values - 1, 0)
    first = (n_values == 0).sum() + np.cumsum(n_indicators) - n_indicators
    features = [np.flatnonzero(n_values == v) for v in np.unique(n_values[n_values > 0])]
    return [(group, first[group][:, None] + np.arange(n_indicators[group[0]])) for group in features]


def value_order(n_values: IntArray) -> IntArray:
    """Give the value, from 1, that each indicator of the `design` stands for; 1 for numeric columns."""
    order = np.ones(width(n_values), dtype=np.intp)
    for _, places in value_groups(n_values):
        order[places] = np.arange(1, places.shape[1] + 1)
    return order


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


def is_sparse_row(X: Any, width: int) -> bool:
    """Tell whether it is one compressed row of doubles, of so many columns; its values are not looked at."""
    if type(X) not in _COMPRESSED_ROWS or X.shape != (1, width):
        return False
    data, indices, starts = X.data, X.indices, X.indptr
    if data.dtype != _FLOAT or indices.dtype != _INDEX or starts.dtype != _INDEX:
        return False
    are_flat: bool = data.ndim == indices.ndim == starts.ndim == 1
    return are_flat


def with_ones(H: AnyMatrix) -> AnyMatrix:
    """Put a column of ones behind ``H``, for sums over all rows."""
    n, k = H.shape
    if scipy.sparse.issparse(H):
        return scipy.sparse.hstack([H, np.ones((n, 1))], format="csr")
    joined = np.ones((n, k + 1))
    joined[:, :k] = H
    return joined


def add_missing(counted: FloatArray | None, absent: AnyMatrix | None, H: AnyMatrix) -> FloatArray | None:
    """Count the rows of a batch in which a feature is missing, for each pseudo label and, last, for all rows."""
    if absent is None:
        return counted
    return add_or_none(counted, dense(absent.T @ with_ones(H)))


def add_or_none(one: FloatArray | None, other: FloatArray | None) -> FloatArray | None:
    """Add two arrays, either of which may be None for zero."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
