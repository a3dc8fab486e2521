"""Numeric features in naive Bayes: sums of values and squares, and two likelihoods that are derived from them.

The sums are taken over the rows of every pseudo label and over all rows. ``Σx² - (Σx)²/n`` loses its digits when a
feature's mean is large beside its spread, so the sums of such a feature are taken about a shift, its mean in the first
batch. Others, and those that are zero in some rows of a sparse batch, have none. Sums about one shift are turned into
sums about another exactly, so models with different shifts merge.

*By density*, the fast form. With a mean ``μ`` and a variance ``v`` for each class, the log odds of a feature are a
parabola in its value, and those of all features and pseudo labels are two products, ``Z W₁ + Z² W₂ + c`` with
``Z = X - shift``. Every class starts with a few pseudo-observations (``smoothing`` of them) that have the feature's
overall mean and variance. So a class seen once has a finite variance, a class never seen contributes nothing, and the
cuts between batches do not matter.

*By bins*, the original's form. Weka's updateable naive Bayes takes a precision for each feature from the first batch,
the mean distance of neighbouring values, rounds values to multiples of it, and takes as the likelihood the normal
probability of the bin, ``Φ((r - μ + d/2)/s) - Φ((r - μ - d/2)/s)``. Differences of ``Φ`` near one lose their digits;
that is part of the original's numbers and kept. This is no matrix product: it costs two ``Φ`` for each value, class and
pseudo label, of the stored values only where ``X`` is sparse.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from labelrace.base.growth import SUM
from labelrace.base.linalg import finite_squares
from labelrace.base.sparse import dense
from labelrace.learners import design
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Width of the bins of a feature that has one value in the first batch.
DEFAULT_PRECISION = 0.01

# Deviations between zero and a feature's mean from which a shift pays: fewer cost less than two of sixteen digits.
_FAR = 10.0
# A feature whose variance is below this share of its mean square is constant but for round-off.
_CONSTANT = 1e-12
# The same where a shift is taken from the values first: a deviation of 1e-14 of a value is its own round-off.
_ROUND_OFF = 1e-28
_SMALLEST_DEVIATION = 1e-10
# A class of at most this share of all rows has none.
_NO_ROWS = 1e-13
_SMALLEST_PROBABILITY = 1e-75
# Features whose variance, or whose bins, are below these are constant: the square of so small a number has no digits
# left.
_SMALLEST_VARIANCE, _SMALLEST_PRECISION = 1e-200, 1e-150
# What one feature may add to log odds at most, where they overflow.
_MOST_ODDS = 1e200


class Moments(NamedTuple):
    """Sums over rows."""

    shift: Annotated[FloatArray, "d"]  # what is subtracted from each feature first
    # Sums of values and of squares over the rows in which a pseudo label is 1 and, in the last column, over all.
    sums: Annotated[FloatArray, "d t+1", SUM]
    squares: Annotated[FloatArray, "d t+1", SUM]
    # Rows in which the feature is missing, likewise; None if nothing is missing.
    missing: Annotated[FloatArray | None, "d t+1", SUM]


def init(n_features: int, n_components: int) -> Moments:
    """Make empty sums, without a shift."""
    empty = np.zeros((n_features, n_components + 1))
    return Moments(np.zeros(n_features), empty, empty, None)


def with_shift(moments: Moments, X: AnyMatrix) -> Moments:
    """Choose the shift of empty sums by the first batch; of a sparse one only features that vary and are never zero."""
    if scipy.sparse.issparse(X):
        full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0])
        full = full[np.ptp(dense(X[:, full]), axis=0) > 0]
        shift = np.zeros(X.shape[1])
        shift[full] = with_shift(moments, dense(X[:, full])).shift
        return moments._replace(shift=shift)
    absent = design.missing(X)
    present = X if absent is None else design.without(X, absent)
    rows = len(X) if absent is None else np.maximum(len(X) - absent.sum(axis=0), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = present.sum(axis=0) / rows
        variance = (present * present).sum(axis=0) / rows - mean**2
        is_far = mean**2 > _FAR**2 * variance
    return moments._replace(shift=np.where(is_far & np.isfinite(mean), mean, 0.0))


def _present_rows(moments: Moments, rows: FloatArray) -> FloatArray:
    """Count the rows in which each feature is present, ``(d or 1, k + 1)``; ``rows`` counts all rows."""
    return rows[None, :] if moments.missing is None else rows - moments.missing


def update(moments: Moments, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None) -> Moments:
    """Add a batch with its 0/1 pseudo labels."""
    H1 = design.with_ones(H, row_weights)
    sums, squares = _batch_sums(moments.shift, X, H1, None)
    missing = moments.missing
    # A missing value shows in the sums, which are much smaller than X: most batches need not be searched for one.
    if not np.isfinite(squares).all():
        absent = design.missing(X)
        missing = design.add_missing(missing, absent, H, row_weights)
        sums, squares = _batch_sums(moments.shift, X, H1, absent)
    return Moments(moments.shift, moments.sums + sums, finite_squares(moments.squares + squares), missing)


def _batch_sums(
    shift: FloatArray, X: AnyMatrix, H1: AnyMatrix, absent: AnyMatrix | None
) -> tuple[FloatArray, FloatArray]:
    """Sum values and squares over the rows of each pseudo label, passing over what is absent."""
    if scipy.sparse.issparse(X):
        present = X if absent is None else design.without(X, absent)
        with np.errstate(over="ignore", invalid="ignore"):
            sums, squares = dense(present.T @ H1), dense((present * present).T @ H1)
        # What is far from zero is dense, however it is stored; multiplied out about zero, it would lose its digits.
        far = np.flatnonzero(shift)
        if len(far):
            sums[far], squares[far] = _batch_sums(shift[far], _dense_part(X, far), H1, _dense_part(absent, far))
        return sums, squares
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X - shift if shift.any() else X
        if absent is not None:
            Z = design.without(Z, absent)
        return Z.T @ H1, (Z * Z).T @ H1


def _dense_part(X: Any, features: IntArray) -> Any:
    """Make some features of a sparse matrix dense; of None it is None."""
    return None if X is None else dense(X[:, features])


def _about(shift: FloatArray, sums: FloatArray, squares: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn sums about 0 into sums about ``shift``, of ``rows`` rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return sums - rows * shift, squares - 2 * shift * sums + rows * shift**2


def merge(one: Moments, other: Moments, other_rows: FloatArray) -> Moments:
    """Add two sums, about the first one's shift; ``other_rows`` counts the rows of the other one."""
    present = _present_rows(other, other_rows)
    sums, squares = _about((one.shift - other.shift)[:, None], other.sums, other.squares, present)
    missing = design.add_or_none(one.missing, other.missing)
    return Moments(one.shift, one.sums + sums, finite_squares(one.squares + squares), missing)


class DensityOdds(NamedTuple):
    """Parabolas of the shifted values."""

    shift: FloatArray  # (d,): what is subtracted from each feature first
    # (d, k): ``W₁`` and ``W₂``.
    linear: FloatArray
    quadratic: FloatArray
    at_shift: FloatArray  # (d, k): the log odds of a feature where it equals its shift
    constant: FloatArray  # (k,): the sum of ``at_shift``


def density_odds(moments: Moments, rows: FloatArray, smoothing: float) -> DensityOdds:
    """Derive the parabolas; ``rows`` counts the rows of each pseudo label and, last, all rows."""
    present = _present_rows(moments, rows)
    n_all = np.where(present[:, -1:] > 0, present[:, -1:], 1.0)
    mean, mean_square = moments.sums[:, -1:] / n_all, moments.squares[:, -1:] / n_all
    variance = mean_square - mean**2
    round_off = _ROUND_OFF * (mean + moments.shift[:, None]) ** 2
    varies = variance > np.maximum.reduce([_CONSTANT * mean_square, round_off, np.full_like(mean, _SMALLEST_VARIANCE)])
    safe = np.where(varies, variance, 1.0)
    n = _by_class(present) + smoothing
    mu = (_by_class(moments.sums) + smoothing * mean) / n
    v = (_by_class(moments.squares) + smoothing * (safe + mean**2)) / n - mu**2
    # The pseudo-observations alone give this much: a bound that round-off must not cross.
    np.maximum(v, smoothing * safe / n, out=v)
    weights = varies / v
    pull = weights * mu
    at_shift = pull * mu + varies * np.log(v)
    at_shift = 0.5 * (at_shift[0] - at_shift[1])
    return DensityOdds(
        moments.shift, pull[1] - pull[0], 0.5 * (weights[0] - weights[1]), at_shift, at_shift.sum(axis=0)
    )


def _by_class(sums: FloatArray) -> FloatArray:
    """Separate class 0 from class 1: ``(2, d, k)``."""
    ones = sums[:, :-1]
    classes = np.empty((2, *ones.shape))
    np.subtract(sums[:, -1:], ones, out=classes[0])
    classes[1] = ones
    return classes


def _predict_density(odds: DensityOdds, X: AnyMatrix) -> FloatArray:
    add_up = _density_sparse if scipy.sparse.issparse(X) else _density_dense
    with np.errstate(over="ignore", invalid="ignore"):
        result = add_up(odds, X, None)
        # Most batches need not be searched for missing values: one would make its row of the result NaN.
        if not np.isfinite(result).all():
            if np.isnan(result[:, 0]).any() and (absent := design.missing(X)) is not None:
                result = add_up(odds, X, absent)
            for row in np.flatnonzero(~np.isfinite(result).all(axis=1)):
                result[row] = _bounded_odds(odds, dense(X[[row]])[0])
    return result


def _bounded_odds(odds: DensityOdds, x: FloatArray) -> FloatArray:
    """Add up the log odds of a row whose values are so far out that they overflow; each feature adds a bounded part."""
    present = ~np.isnan(x)
    z = (x - odds.shift)[present, None]
    parts = z * odds.linear[present] + z * (z * odds.quadratic[present]) + odds.at_shift[present]
    # Far out, the square decides, or, where classes are equally wide, the sign of the line.
    far = np.where(
        odds.quadratic != 0, np.sign(odds.quadratic), np.sign(odds.linear) * np.sign(x - odds.shift)[:, None]
    )
    parts = np.where(np.isfinite(parts), parts, far[present] * _MOST_ODDS)
    return np.clip(parts, -_MOST_ODDS, _MOST_ODDS).sum(axis=0)


def _density_dense(odds: DensityOdds, X: FloatArray, absent: FloatArray | None) -> FloatArray:
    Z = X - odds.shift if odds.shift.any() else X
    if absent is not None:
        Z = design.without(Z, absent)
    result = Z @ odds.linear
    result += (Z * Z) @ odds.quadratic
    result += odds.constant
    return result if absent is None else result - absent @ odds.at_shift


def _density_sparse(odds: DensityOdds, X: AnyMatrix, absent: AnyMatrix | None) -> FloatArray:
    """Add up the stored values, as a zero adds a constant; features with a shift, which are far from zero, as if dense.

    Parabolas about a shift could be multiplied out about zero, but would lose their digits.
    """
    far = np.flatnonzero(odds.shift)
    if len(far):
        near = np.flatnonzero(odds.shift == 0)
        missing = None if absent is None else absent[:, near]
        of_near = _density_sparse(_of_features(odds, near), X[:, near], missing)
        return of_near + _density_dense(_of_features(odds, far), _dense_part(X, far), _dense_part(absent, far))
    present = X if absent is None else design.without(X, absent)
    result = present @ odds.linear + (present * present) @ odds.quadratic + odds.constant
    return result if absent is None else result - absent @ odds.at_shift


def _of_features(odds: DensityOdds, features: IntArray) -> DensityOdds:
    """Take the parabolas of some features."""
    shift, linear, quadratic, at_shift = (part[features] for part in odds[:4])
    return DensityOdds(shift, linear, quadratic, at_shift, at_shift.sum(axis=0))


class BinnedOdds(NamedTuple):
    """A normal distribution for each feature, pseudo label and class."""

    precision: FloatArray  # (d,): width of the bins
    # (k, 2, d): for class 0 and class 1.
    means: FloatArray
    deviations: FloatArray
    at_zero: FloatArray  # (k, d): log odds of a feature that is zero, for sparse rows


def precision(X: AnyMatrix) -> FloatArray:
    """Compute the mean distance of neighbouring distinct values in each column, 0.01 where there is one value.

    Examples
    --------
    >>> import numpy as np
    >>> precision(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0], [2.0, 5.0]]))
    array([1.5 , 0.01])
    """
    column, value = _sorted_values(X)
    with np.errstate(over="ignore"):
        steps = np.where(np.diff(column) == 0, np.diff(value), 0.0)
    # bincount adds in order, as the original does: the sum of the steps then has the same last digit.
    distance = np.bincount(column[1:], weights=steps, minlength=X.shape[1])
    distinct = np.bincount(column[1:], weights=steps > 0, minlength=X.shape[1])
    found = np.divide(distance, distinct, out=np.full(X.shape[1], DEFAULT_PRECISION), where=distinct > 0)
    return np.where(np.isfinite(found), np.maximum(found, _SMALLEST_PRECISION), DEFAULT_PRECISION)


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
        rounded_data = _rounded(X.data, precision[X.indices])
        return scipy.sparse.csr_array((rounded_data, X.indices, X.indptr), shape=X.shape)
    return _rounded(X, precision)


def _rounded(values: FloatArray, width: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        result = np.rint(values / width) * width
    # A value that is too many bins away is its own bin.
    return np.where(np.isinf(result), values, result) if np.isinf(result).any() else result


def binned_odds(moments: Moments, rows: FloatArray, precision: FloatArray) -> BinnedOdds:
    """Derive means and deviations; ``rows`` counts the rows of each pseudo label and, last, all rows."""
    ones = np.stack([moments.sums[:, :-1], moments.squares[:, :-1]])
    everything = np.stack([moments.sums[:, -1:], moments.squares[:, -1:]])
    sums, squares = np.stack([everything - ones, ones], axis=-1).transpose(0, 2, 3, 1)
    present = _present_rows(moments, rows)
    n = np.stack([present[:, -1:] - present[:, :-1], present[:, :-1]], axis=-1)
    # Of rows with weights, the difference of equal sums is round-off.
    n = np.where(n > _NO_ROWS * present[:, -1:, None], n, 0.0).transpose(1, 2, 0)
    bare = BinnedOdds(precision, *binned_normals(sums, squares, n, precision), np.empty(0))
    zero = np.zeros(len(precision))
    return bare._replace(at_zero=np.stack([_bin_log_odds(bare, c, zero) for c in range(len(bare.means))]))


def binned_normals(
    sums: FloatArray, squares: FloatArray, rows: FloatArray, precision: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Compute means and deviations of rounded values; no deviation is below a sixth of a bin."""
    n = np.where(rows > 0, rows, 1.0)
    means = sums / n
    spread = np.sqrt(np.abs(squares - means * sums) / n)
    least = precision / 6
    return means, np.where(spread > _SMALLEST_DEVIATION, np.maximum(spread, least), least)


def bin_log_probability(
    values: FloatArray, means: FloatArray, deviations: FloatArray, precision: FloatArray | float
) -> FloatArray:
    """Compute the logarithm of the normal probability of the bins of rounded values."""
    half = precision / 2
    with np.errstate(over="ignore"):
        centred = values - means
        probability = ndtr((centred + half) / deviations) - ndtr((centred - half) / deviations)
    result: FloatArray = np.log(np.maximum(probability, _SMALLEST_PROBABILITY))
    return result


def _bin_log_odds(odds: BinnedOdds, component: int, values: FloatArray, index: Any = ...) -> FloatArray:
    """Compute the log odds of rounded values; ``index`` says which columns the values belong to."""
    absent, present = (
        bin_log_probability(values, means[index], deviations[index], odds.precision[index])
        for means, deviations in zip(odds.means[component], odds.deviations[component], strict=True)
    )
    return present - absent


def _predict_binned(odds: BinnedOdds, X: AnyMatrix) -> FloatArray:
    absent = design.missing(X)
    values = rounded(X if absent is None else design.without(X, absent), odds.precision)
    add_up = _binned_sparse if scipy.sparse.issparse(X) else _binned_dense
    return np.column_stack([add_up(odds, c, values, absent) for c in range(len(odds.means))])


def _binned_dense(odds: BinnedOdds, component: int, values: FloatArray, absent: FloatArray | None) -> FloatArray:
    log_odds = _bin_log_odds(odds, component, values)
    return log_odds.sum(axis=1) if absent is None else (log_odds * (1 - absent)).sum(axis=1)


def _binned_sparse(odds: BinnedOdds, component: int, values: AnyMatrix, absent: AnyMatrix | None) -> FloatArray:
    at_zero = odds.at_zero[component]
    beyond_zero = _bin_log_odds(odds, component, values.data, values.indices) - at_zero[values.indices]
    stored = scipy.sparse.csr_array((beyond_zero, values.indices, values.indptr), shape=values.shape)
    total = stored.sum(axis=1) + at_zero.sum()
    return total if absent is None else total - absent @ at_zero


NumericOdds: TypeAlias = DensityOdds | BinnedOdds


def predict(odds: NumericOdds, X: AnyMatrix) -> FloatArray:
    """Add up the log odds of all features; what is missing adds nothing."""
    return _predict_density(odds, X) if isinstance(odds, DensityOdds) else _predict_binned(odds, X)
