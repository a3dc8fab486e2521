"""How linear learners scale ``X``: columns of comparable size, and random features on dense data.

*Sparse data*, such as words. Values are damped, ``sign(x) log(1 + |x|)``, so that the tenth occurrence of a word adds
less than the first, and each row is scaled to unit norm, so that long texts weigh no more than short ones. Cost is
``O(nnz)``.

*Dense data*, such as measurements. Columns are standardised by running moments, clipped at five standard deviations
and divided by the square root of their number, so that the norm of a row is near one here, too. Random features follow:
the absolute values of the row along random directions. With them a linear model also fits a label of extreme values,
large or small (Rahimi and Recht, "Weighted sums of random kitchen sinks", 2008).

The first rows decide which of the two it is: arrays that are mostly zeros are sparse data, in whatever form they are
stored. Rows of nothing but zeros do not count. `has_become_dense` tells whether data turned out to be dense later.
A missing value (NaN) counts as the mean, or as zero in sparse data.

*Moments are robust.* Of the first rows, values far beyond the spread of the others are clipped; later ones, values
beyond ten standard deviations. A column that has been constant, such as that of a sensor that starts late, has moments
from the first row on that differs. And where the last few hundred rows of a column have a standard deviation ten times
smaller than the running one, the running moments are replaced by theirs (`with_recent_moments`).

The result has the dtype of the random directions, also where there are none. Single precision takes half the memory
and half the time; its error of 1e-7 is small beside the noise of the data.
"""

from __future__ import annotations

from math import isfinite, isnan
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.growth import Moves
from labelrace.base.moments import merge_moments
from labelrace.base.sparse import as_rows, entry_rows, with_values
from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Data is sparse up to this share of non-zeros; sparse data becomes dense above the second one.
_SPARSE_SHARE, _DENSE_SHARE = 0.3, 0.5
# Standard deviations at which a dense column is clipped.
CLIP = 5.0
# Standard deviations beyond which a value is an outlier; also the factor by which the scale of a column must differ for
# its unit to have changed.
OUTLIER = 10.0
# Standard deviations beyond which a value of the first rows is an outlier, and share of the values, the largest, that
# these standard deviations leave out.
_FIRST_OUTLIER, _TRIMMED_SHARE = 30.0, 0.05
# Rows that a column's variance needs, and rows after which recent moments are compared with the running ones.
MIN_ROWS, _MIN_RECENT_ROWS = 50, 256.0
# A column is constant where it deviates from its mean by no more than this share of it.
CONSTANT = 1e-13
# Mean absolute value of a standard normal variable.
MEAN_ABSOLUTE_NORMAL = float(np.sqrt(2.0 / np.pi))


class ScalingState(NamedTuple):
    """How columns are scaled."""

    kinds: FeatureKinds  # which features are numeric, which nominal
    # Rows that the moments of each column of the design come from, forgotten ones less. Empty for sparse data, as are
    # the next ones.
    rows: Annotated[FloatArray, "M|0"]
    # Running mean, and sum of squared deviations from it.
    mean: Annotated[FloatArray, "M|0"]
    sum_squares: Annotated[FloatArray, "M|0"]
    # Rows since columns were last compared with what is known of them; of sparse data, those that are not empty.
    recent_rows: float
    # Their moments.
    recent_mean: Annotated[FloatArray, "M|0"]
    recent_sum_squares: Annotated[FloatArray, "M|0"]
    recent_nonzeros: float  # their non-zeros, of sparse data
    # Directions of the random features, in single or double precision. Empty for sparse data.
    directions: Annotated[Array, "M r|0 r", "float"]
    sqrt_n_columns: float  # square root of the number of columns at the start; 0 for sparse data

    @property
    def is_dense(self) -> bool:
        """Whether the data is dense."""
        return self.sqrt_n_columns != 0.0


def init(kinds: KindsLike, dtype: type[np.floating] = np.float64) -> ScalingState:
    """Make the state before the first row, which treats features as sparse."""
    return _empty(FeatureKinds.of(kinds), np.zeros((0, 0), dtype))


def _empty(kinds: FeatureKinds, directions: Array) -> ScalingState:
    m = len(directions)
    none = np.zeros(m)
    return ScalingState(kinds, none, none, none, 0.0, none, none, 0.0, directions, float(np.sqrt(m)))


def start(
    X: AnyMatrix,
    kinds: KindsLike,
    n_random_features: int,
    rng: np.random.Generator,
    dtype: type[np.floating] = np.float64,
) -> ScalingState:
    """Decide by the first rows whether data is sparse or dense; their moments are left to `update`."""
    if is_sparse(X):
        return init(kinds, dtype)
    kinds = FeatureKinds.of(kinds)
    return _empty(kinds, rng.normal(size=(kinds.width, n_random_features)).astype(dtype))


def is_sparse(X: AnyMatrix) -> bool:
    """Return whether rows are mostly zeros, in whatever form they are stored; rows of zeros only do not count."""
    n_rows, n_nonzeros = _count_filled(X)
    return n_nonzeros <= _SPARSE_SHARE * n_rows * X.shape[1]


def _count_filled(X: AnyMatrix) -> tuple[int, int]:
    """Count the rows that have non-zeros, and these; explicitly stored zeros do not count."""
    if scipy.sparse.issparse(X):
        X = X if X.format == "csr" else scipy.sparse.csr_array(X)
        if np.count_nonzero(X.data) < X.nnz:
            X = X.copy()
            X.eliminate_zeros()
        return int(np.count_nonzero(X.indptr[1:] > X.indptr[:-1])), X.nnz
    counts = np.count_nonzero(X, axis=1)
    return int(np.count_nonzero(counts)), int(counts.sum())


def has_become_dense(state: ScalingState) -> bool:
    """Return whether data that was taken for sparse is mostly filled now."""
    is_filled = state.recent_nonzeros > _DENSE_SHARE * state.recent_rows * len(state.kinds.n_values)
    return is_filled and state.recent_rows >= _MIN_RECENT_ROWS and not state.is_dense


def n_columns(state: ScalingState) -> int:
    """Count the columns that `transform` makes."""
    return state.kinds.width + state.directions.shape[1]


def update(state: ScalingState, X: AnyMatrix, forgetting: float = 1.0) -> ScalingState:
    """Add a batch to the moments; ``forgetting`` is the weight that the rows before it keep."""
    if not state.is_dense:
        return _with_recent_counts(state, *_count_filled(X))
    X = state.kinds.dense_design(X)
    n, is_first = len(X), not state.rows.any()
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        if isnan(mean.sum()):
            # Missing values count as the mean so far, and so change nothing.
            X = np.where(np.isnan(X), np.where(state.rows > 0, state.mean, _known_means(X)), X)
            mean, squares = _moments(X)
        recent_rows, recent_mean, recent_sum_squares = merge_moments(
            state.recent_rows, state.recent_mean, state.recent_sum_squares, n, mean, squares
        )
        has_enough, variance = state.rows >= MIN_ROWS, state.sum_squares / np.maximum(state.rows, 1.0)
        if is_first:
            X = _without_first_outliers(X)
            mean, squares = _moments(X)
        else:
            most = np.where(has_enough, OUTLIER**2 * variance, 0.0)
            if ((np.maximum(squares / n, np.square(mean - state.mean)) > most) & (most > 0)).any():
                # Outliers are clipped: one of them must not shrink all other values for thousands of rows.
                mean, squares = _moments(_clipped(X, state.mean, np.sqrt(most)))
        before = state.rows * forgetting, state.mean, state.sum_squares * forgetting
        moments = merge_moments(*before, len(X), mean, squares)
        is_constant = has_enough & (variance <= np.square(CONSTANT * state.mean))
        if is_constant.any():
            moments = _with_restarted_columns(state, X, np.flatnonzero(is_constant), moments)
        rows, mean, square = moments
    if not isfinite(square.sum()):
        raise DivergenceError("X holds values so large that sums of their squares overflow: scale them down.")
    return state._replace(
        rows=rows,
        mean=mean,
        sum_squares=square,
        recent_rows=recent_rows,
        recent_mean=recent_mean,
        recent_sum_squares=recent_sum_squares,
    )


def _with_recent_counts(state: ScalingState, n_rows: int, n_nonzeros: int) -> ScalingState:
    """Add to the counts of recent rows that have non-zeros, and of these, for sparse data."""
    if state.recent_rows >= _MIN_RECENT_ROWS:
        return state._replace(recent_rows=0.0 + n_rows, recent_nonzeros=0.0 + n_nonzeros)
    return state._replace(recent_rows=state.recent_rows + n_rows, recent_nonzeros=state.recent_nonzeros + n_nonzeros)


def _without_first_outliers(X: FloatArray) -> FloatArray:
    """Leave out rows of zeros, which a stream may begin with, and clip values far beyond the others."""
    filled = X.any(axis=1)
    X = X[filled] if filled.any() else X
    median = np.median(X, axis=0)
    deviations = np.abs(X - median)
    n_kept = len(X) - max(1, int(_TRIMMED_SHARE * len(X)))
    if n_kept < 2:
        return X
    smallest = np.partition(deviations, n_kept - 1, axis=0)[:n_kept]
    spread = np.sqrt(np.einsum("ij,ij->j", smallest, smallest) / n_kept)
    is_far = (deviations > _FIRST_OUTLIER * spread) & (spread > 0) & np.isfinite(spread)
    return np.where(is_far, np.clip(X, median - OUTLIER * spread, median + OUTLIER * spread), X)


def _with_restarted_columns(
    state: ScalingState, X: FloatArray, constant: IntArray, moments: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Restart the moments of columns that have been constant at their first row that differs."""
    least, values = CONSTANT * np.abs(state.mean[constant]), X[:, constant]
    since = np.logical_or.accumulate(np.abs(values - state.mean[constant]) > least, axis=0)
    starts = since.any(axis=0)
    constant, since, values = constant[starts], since[:, starts], values[:, starts]
    n = since.sum(axis=0)
    mean = np.where(since, values, 0.0).sum(axis=0) / n
    square = np.square(np.where(since, values - mean, 0.0)).sum(axis=0)
    for known, own in zip(moments, (n, mean, square), strict=True):
        known[constant] = own
    return moments


def with_recent_moments(state: ScalingState) -> ScalingState:
    """Replace the moments of columns by those of recent rows where these have less than a tenth of the deviation.

    The running moments of such a column were wrong, or are out of date, and would scale its values to nearly zero.
    Nothing changes before there are enough recent rows.
    """
    if state.recent_rows < _MIN_RECENT_ROWS or not state.is_dense:
        return state
    none, recent_mean = np.zeros_like(state.mean), state.recent_mean
    variance = state.recent_sum_squares / state.recent_rows
    is_known = np.sqrt(variance) > CONSTANT * np.abs(recent_mean)
    is_wrong = is_known & (state.sum_squares > OUTLIER**2 * variance * state.rows)
    state = state._replace(recent_rows=0.0, recent_mean=none, recent_sum_squares=none)
    if not is_wrong.any():
        return state
    return state._replace(
        rows=np.where(is_wrong, _MIN_RECENT_ROWS, state.rows),
        mean=np.where(is_wrong, recent_mean, state.mean),
        sum_squares=np.where(is_wrong, variance * _MIN_RECENT_ROWS, state.sum_squares),
    )


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the columns' means, and the sums of squared deviations from them."""
    if len(X) == 1:
        return X[0], np.zeros(X.shape[1])
    mean = X.mean(axis=0)
    deviations = X - mean
    return mean, np.einsum("ij,ij->j", deviations, deviations)


def _clipped(X: FloatArray, mean: FloatArray, most: FloatArray) -> FloatArray:
    """Clip what is too far from the mean, in columns that have varied."""
    most = np.where(most > 0, most, np.inf)
    return np.clip(X, mean - most, mean + most)


def rescale(state: ScalingState, X: AnyMatrix) -> ScalingState:
    """Take the moments of a batch for columns whose unit has changed, by a large shift or a factor of ten."""
    if not state.is_dense or X.shape[0] < MIN_ROWS:
        return state
    X = state.kinds.dense_design(X)
    X = np.where(np.isnan(X), _known_means(X), X)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        variance, known = squares / len(X), state.sum_squares / np.maximum(state.rows, 1.0)
        has_changed = np.maximum(variance, known) > OUTLIER**2 * np.minimum(variance, known)
        has_changed |= (mean - state.mean) ** 2 > OUTLIER**2 * known
    has_changed &= (variance > 0) & np.isfinite(variance)
    square = np.where(has_changed, variance, known) * state.rows
    return state._replace(mean=np.where(has_changed, mean, state.mean), sum_squares=square)


def _known_means(X: FloatArray) -> FloatArray:
    """Compute the columns' means of what is not missing; 0 where all is."""
    known = ~np.isnan(X)
    return np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def scale(state: ScalingState) -> FloatArray:
    """Compute what the columns' deviations from their means are divided by; empty for sparse data."""
    spread = np.sqrt(state.sum_squares / np.maximum(state.rows, 1.0))
    # A constant column becomes zero.
    return np.where(spread > CONSTANT * np.abs(state.mean), spread, np.inf) * state.sqrt_n_columns


def transform(state: ScalingState, X: AnyMatrix, scales: FloatArray | None = None) -> AnyMatrix:
    """Compute the columns that learners use; ``scales`` is the state's `scale`, if it has been computed already."""
    if not state.is_dense:
        return _unit_norm_rows(X, state.kinds, state.directions.dtype)
    return _standardised(state, state.kinds.dense_design(X), scale(state) if scales is None else scales)


def _damped(values: FloatArray) -> FloatArray:
    """Damp values, so that the tenth occurrence adds less than the first; what is missing is zero."""
    damped = np.copysign(np.log1p(np.abs(values)), values)
    # One NaN makes the sum NaN.
    return np.nan_to_num(damped, nan=0.0) if isnan(damped.sum()) else damped


def _standardised(state: ScalingState, X: FloatArray, scales: FloatArray) -> FloatArray:
    """Standardise dense columns and append the random features."""
    n_random = state.directions.shape[1]
    # The two parts are separate arrays until the end, as NumPy is several times slower on a part of the columns of an
    # array; np.clip is slow on few rows.
    Z = X - state.mean
    # Numbers are at most 1e100 and spreads, whose squares are kept, at least 1e-162: this does not overflow.
    Z /= scales
    most = CLIP / state.sqrt_n_columns
    np.minimum(Z, most, out=Z)
    np.maximum(Z, -most, out=Z)
    Z = Z.astype(state.directions.dtype, copy=False)
    # One NaN makes the sum NaN, which differs from itself.
    if (total := np.add.reduce(Z, axis=None)) != total:
        Z[np.isnan(Z)] = 0.0
    if not n_random:
        return Z
    random = Z @ state.directions
    np.abs(random, out=random)
    # Centred, and scaled so that together they have about the norm of the row.
    random -= MEAN_ABSOLUTE_NORMAL
    random *= n_random**-0.5
    return np.concatenate([Z, random], axis=1)


def _unit_norm_rows(X: AnyMatrix, kinds: FeatureKinds, dtype: np.dtype[np.floating]) -> AnyMatrix:
    """Damp the values of sparse rows and scale the rows to unit norm."""
    sparse = as_rows(kinds.design(X))
    data, rows = sparse.data if kinds.all_nominal else _damped(sparse.data), entry_rows(sparse)
    lengths = np.sqrt(np.bincount(rows, weights=data * data, minlength=sparse.shape[0]))
    # Rows whose squares underflow to zero are not scaled.
    lengths[lengths == 0.0] = 1.0
    return with_values(sparse, (data / lengths[rows]).astype(dtype, copy=False))


def reset(state: ScalingState, features: IntArray) -> ScalingState:
    """Reset the moments of numeric features, as if they had been zero in all rows so far."""
    if not state.is_dense:
        return state
    is_reset = np.isin(np.arange(len(state.rows)), features)
    moments = state.mean, state.sum_squares, state.recent_mean, state.recent_sum_squares
    mean, square, recent_mean, recent_sum_squares = (np.where(is_reset, 0.0, moment) for moment in moments)
    rows = np.where(is_reset, state.rows.max(initial=0.0), state.rows)
    return state._replace(
        rows=rows, mean=mean, sum_squares=square, recent_mean=recent_mean, recent_sum_squares=recent_sum_squares
    )


def take(state: ScalingState, moves: Moves, seed: int = 0) -> ScalingState:
    """Move columns; new ones count as zero in all rows so far, and ``seed`` is that of their random directions."""
    taken: ScalingState = growth.take(state, moves)
    source = moves.source("M", len(state.rows)) if state.is_dense else None
    if source is None or (source >= 0).all():
        return taken
    is_new, directions, rng = source < 0, taken.directions, np.random.default_rng([seed, len(taken.kinds)])
    drawn = rng.normal(size=directions.shape).astype(directions.dtype)
    return taken._replace(
        rows=np.where(is_new, state.rows.max(initial=0.0), taken.rows),
        directions=np.where(is_new[:, None], drawn, directions),
    )
