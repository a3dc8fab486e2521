"""Gaussian features in naive Bayes by the probability of a bin: the original's form.

The original (Weka's updateable naive Bayes) takes a precision for each feature from the first batch, the mean distance
of neighbouring values, rounds values to multiples of it, and takes as the likelihood the normal probability of the bin,
``Φ((r - μ + d/2)/s) - Φ((r - μ - d/2)/s)``. Differences of ``Φ`` near one lose their digits; that is part of the
original's numbers and kept. There is no product to put this into: it costs two ``Φ`` for each value, class and pseudo
label, of the stored values only where ``X`` is sparse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from labelrace.learners import columns
from labelrace.learners.moments import Moments, present_rows
from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["DEFAULT_PRECISION", "Normals", "normals", "precision", "predict", "rounded"]

# Width of the bins of a feature of which the first batch shows one value.
DEFAULT_PRECISION = 0.01
_SMALLEST_DEVIATION = 1e-10
_SMALLEST_PROBABILITY = 1e-75


class Normals(NamedTuple):
    """A normal distribution for each feature, pseudo label and class.

    Attributes
    ----------
    precision : (d,) array
        Width of the bins.
    means, deviations : (k, 2, d) arrays
        For class 0 and class 1.
    at_zero : (k, d) array
        Log odds of a feature that is zero, for sparse rows.
    """

    precision: FloatArray
    means: FloatArray
    deviations: FloatArray
    at_zero: FloatArray


def precision(X: AnyMatrix) -> FloatArray:
    """Compute the mean distance of neighbouring distinct values in each column, 0.01 where there is one value.

    Examples
    --------
    >>> import numpy as np
    >>> precision(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0], [2.0, 5.0]]))
    array([1.5 , 0.01])
    """
    column, value = _sorted_values(X)
    steps = np.where(np.diff(column) == 0, np.diff(value), 0.0)
    # bincount adds in order, as the original does: the sum of the steps then has the same last digit.
    distance = np.bincount(column[1:], weights=steps, minlength=X.shape[1])
    distinct = np.bincount(column[1:], weights=steps > 0, minlength=X.shape[1])
    return np.divide(distance, distinct, out=np.full(X.shape[1], DEFAULT_PRECISION), where=distinct > 0)


def _sorted_values(X: AnyMatrix) -> tuple[IntArray, FloatArray]:
    """List the present values with their columns, sorted by column and value; zeros of a sparse column once."""
    if scipy.sparse.issparse(X):
        X = X.tocsc()
        with_zeros = np.flatnonzero(np.diff(X.indptr) < X.shape[0])
        column = np.concatenate([np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)), with_zeros])
        value = np.concatenate([X.data, np.zeros(len(with_zeros))])
    else:
        column, value = np.repeat(np.arange(X.shape[1]), X.shape[0]), X.T.ravel()
    present = ~np.isnan(value)
    column, value = column[present], value[present]
    order = np.lexsort((value, column))
    return column[order], value[order]


def rounded(X: AnyMatrix, precision: FloatArray) -> AnyMatrix:
    """Round values to the nearest multiple of each column's precision, half to even."""
    if scipy.sparse.issparse(X):
        width = precision[X.indices]
        return scipy.sparse.csr_array((np.rint(X.data / width) * width, X.indices, X.indptr), shape=X.shape)
    return np.rint(X / precision) * precision


def normals(moments: Moments, rows: FloatArray, precision: FloatArray) -> Normals:
    """Derive means and deviations; ``rows`` counts the rows of each pseudo label and, last, all rows."""
    ones = np.stack([moments.sums[:, :-1], moments.squares[:, :-1]])
    everything = np.stack([moments.sums[:, -1:], moments.squares[:, -1:]])
    sums, squares = np.stack([everything - ones, ones], axis=-1).transpose(0, 2, 3, 1)
    present = present_rows(moments, rows)
    n = np.stack([present[:, -1:] - present[:, :-1], present[:, :-1]], axis=-1).transpose(1, 2, 0)
    n = np.maximum(n, 1.0)
    means = sums / n
    spread = np.sqrt(np.abs(squares - means * sums) / n)
    least = precision / 6
    deviations = np.where(spread > _SMALLEST_DEVIATION, np.maximum(spread, least), least)
    bare = Normals(precision, means, deviations, np.empty(0))
    zero = np.zeros(len(precision))
    return bare._replace(at_zero=np.stack([_log_odds(bare, c, zero) for c in range(len(means))]))


def _log_odds(normals: Normals, component: int, values: FloatArray, index: Any = ...) -> FloatArray:
    """Compute the log odds of rounded values; ``index`` says which columns the values belong to."""
    half = normals.precision[index] / 2
    log = []
    for label in (1, 0):
        centred = values - normals.means[component, label][index]
        deviation = normals.deviations[component, label][index]
        probability = ndtr((centred + half) / deviation) - ndtr((centred - half) / deviation)
        log.append(np.log(np.maximum(probability, _SMALLEST_PROBABILITY)))
    return log[0] - log[1]


def predict(normals: Normals, X: AnyMatrix) -> FloatArray:
    """Add up the log odds of all features; what is missing adds nothing."""
    absent = columns.missing(X)
    values = rounded(X if absent is None else columns.without(X, absent), normals.precision)
    add_up = _add_up_sparse if scipy.sparse.issparse(X) else _add_up_dense
    return np.column_stack([add_up(normals, c, values, absent) for c in range(len(normals.means))])


def _add_up_dense(normals: Normals, component: int, values: FloatArray, absent: FloatArray | None) -> FloatArray:
    log_odds = _log_odds(normals, component, values)
    return log_odds.sum(axis=1) if absent is None else (log_odds * (1 - absent)).sum(axis=1)


def _add_up_sparse(normals: Normals, component: int, values: AnyMatrix, absent: AnyMatrix | None) -> FloatArray:
    at_zero = normals.at_zero[component]
    beyond_zero = _log_odds(normals, component, values.data, values.indices) - at_zero[values.indices]
    stored = scipy.sparse.csr_array((beyond_zero, values.indices, values.indptr), shape=values.shape)
    total = stored.sum(axis=1) + at_zero.sum()
    return total if absent is None else total - absent @ at_zero
