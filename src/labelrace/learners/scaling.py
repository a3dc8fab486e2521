"""How linear learners scale ``X``: columns of comparable size, and random features on dense data.

*Sparse data*, such as words. Values are damped, ``sign(x) log(1 + |x|)``, so that the tenth occurrence of a word adds
less than the first, and each row is scaled to length one: long texts teach no more than short ones. Cost is
``O(nnz)``.

*Dense data*, such as measurements. Columns are standardised by running moments, clipped at five standard deviations
and divided by the root of their number, so that the length of a row is near one here, too. Random features follow: the
absolute values of the row along random directions. With them a linear model also fits a label that goes with extremes
(Rahimi and Recht, "Weighted sums of random kitchen sinks", 2008).

The first rows decide which of the two it is: arrays that are mostly zeros are sparse data, in whatever form they are
stored. A missing value (NaN) counts as the mean, or as zero in sparse data.

The result has the dtype of the random directions, also where there are none. Single precision takes half the memory
and half the time; its error of 1e-7 is small beside the noise of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.exceptions import DivergenceError
from labelrace.learners import columns
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = [
    "ScalingState",
    "grow",
    "init",
    "is_sparse",
    "n_columns",
    "rescale",
    "scale",
    "start",
    "transform",
    "transform_row",
    "update",
]

# Share of non-zeros up to which data is sparse.
_SPARSE = 0.3
# Standard deviations at which a dense column is clipped.
_CLIP = 5.0
# Standard deviations beyond which a value is an outlier, and factor by which a column in another unit differs.
_OUTLIER = 10.0
# Rows from which the variance of a column can be told.
_MIN_ROWS = 50
_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))


class ScalingState(NamedTuple):
    """How columns are scaled.

    Attributes
    ----------
    n_values : (m,) array
        Number of values of each nominal feature, 0 for a numeric one.
    rows : float
        Rows that the moments come from, forgotten ones less.
    mean, square : (M,) arrays
        Running mean, and sum of squared deviations, of each column of the design. Empty for sparse data.
    directions : (M, D) array
        Directions of the random features, in single or double precision. Empty for sparse data.
    length : float
        Root of the number of columns at the start; 0 for sparse data.
    """

    n_values: IntArray
    rows: float
    mean: FloatArray
    square: FloatArray
    directions: Array
    length: float


def init(n_values: IntArray, dtype: type[np.floating] = np.float64) -> ScalingState:
    """Make the state before the first row, which treats features as sparse."""
    return ScalingState(n_values, 0.0, np.zeros(0), np.zeros(0), np.zeros((0, 0), dtype), 0.0)


def start(
    X: AnyMatrix,
    n_values: IntArray,
    n_random_features: int,
    rng: np.random.Generator,
    dtype: type[np.floating] = np.float64,
) -> ScalingState:
    """Decide by the first rows whether data is sparse or dense; their moments are left to `update`."""
    if is_sparse(X):
        return init(n_values, dtype)
    m = columns.width(n_values)
    directions = rng.normal(size=(m, n_random_features)).astype(dtype)
    return ScalingState(n_values, 0.0, np.zeros(m), np.zeros(m), directions, float(np.sqrt(m)))


def is_sparse(X: AnyMatrix) -> bool:
    """Tell whether rows are mostly zeros, in whatever form they are stored."""
    # Explicitly stored zeros are not counted.
    n_filled = np.count_nonzero(X.data if scipy.sparse.issparse(X) else X)
    return bool(n_filled <= _SPARSE * X.shape[0] * X.shape[1])


def n_columns(state: ScalingState) -> int:
    """Count the columns that `transform` makes."""
    return columns.width(state.n_values) + state.directions.shape[1]


def update(state: ScalingState, X: AnyMatrix, forgetting: float = 1.0) -> ScalingState:
    """Add a batch to the moments; ``forgetting`` is the weight that the rows before it keep."""
    if not state.length:
        return state
    X = columns.dense(columns.design(X, state.n_values))
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        if np.isnan(mean).any():
            # Missing values count as the mean so far, and so change nothing.
            X = np.where(np.isnan(X), state.mean if state.rows else _known_means(X), X)
            mean, squares = _moments(X)
        if state.rows >= _MIN_ROWS:
            most = _OUTLIER**2 * state.square / state.rows
            if ((np.maximum(squares / len(X), (mean - state.mean) ** 2) > most) & (most > 0)).any():
                # Outliers are clipped: one of them must not shrink all other values for thousands of rows.
                mean, squares = _moments(_clipped(X, state.mean, np.sqrt(most)))
        n, before = len(X), state.rows * forgetting
        step, rows = mean - state.mean, before + n
        # The sums of two parts about their common mean (Chan, Golub and LeVeque, 1979).
        square = state.square * forgetting + squares + step**2 * (before * n / rows)
    if not np.isfinite(square).all():
        raise DivergenceError("X holds values so large that sums of their squares overflow: scale them down.")
    return state._replace(rows=rows, mean=state.mean + step * (n / rows), square=square)


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the columns' means, and the sums of squared deviations from them."""
    if len(X) == 1:
        return X[0], np.zeros(X.shape[1])
    mean = X.mean(axis=0)
    apart = X - mean
    return mean, np.einsum("ij,ij->j", apart, apart)


def _clipped(X: FloatArray, mean: FloatArray, most: FloatArray) -> FloatArray:
    """Clip what is too far from the mean, in columns that have varied."""
    most = np.where(most > 0, most, np.inf)
    return np.clip(X, mean - most, mean + most)


def rescale(state: ScalingState, X: AnyMatrix) -> ScalingState:
    """Take the moments of a batch for columns whose unit has changed: shifted far, or ten times as wide or narrow."""
    if not state.length or X.shape[0] < _MIN_ROWS:
        return state
    X = columns.dense(columns.design(X, state.n_values))
    X = np.where(np.isnan(X), _known_means(X), X)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        variance, known = squares / len(X), state.square / state.rows
        is_other = np.maximum(variance, known) > _OUTLIER**2 * np.minimum(variance, known)
        is_other |= (mean - state.mean) ** 2 > _OUTLIER**2 * known
    is_other &= (variance > 0) & np.isfinite(variance)
    square = np.where(is_other, variance, known) * state.rows
    return state._replace(mean=np.where(is_other, mean, state.mean), square=square)


def _known_means(X: FloatArray) -> FloatArray:
    """Compute the columns' means of what is not missing; 0 where all is."""
    known = ~np.isnan(X)
    return np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def scale(state: ScalingState) -> FloatArray:
    """Compute what the columns' deviations from their means are divided by."""
    spread = np.sqrt(state.square / max(state.rows, 1.0))
    # A constant column becomes zero.
    return np.where(spread > 1e-9 * np.abs(state.mean), spread, np.inf) * state.length


def transform(state: ScalingState, X: AnyMatrix, scales: FloatArray | None = None) -> AnyMatrix:
    """Compute the columns that learners use; ``scales`` is the state's `scale`, if it has been computed already."""
    if not state.length:
        return _unit_rows(X, state.n_values, state.directions.dtype)
    return _standardised(state, columns.design(X, state.n_values), scale(state) if scales is None else scales)


def transform_row(
    state: ScalingState, X: AnyMatrix, scales: FloatArray | None = None
) -> tuple[Array, IntArray | slice]:
    """Do as `transform` for one row of numeric features, without making a matrix: its values, and their columns."""
    if state.length:
        return _standardised(state, X, scale(state) if scales is None else scales)[0], slice(None)
    if scipy.sparse.issparse(X):
        places, values = X.indices, X.data
    else:
        places = np.flatnonzero(X[0])
        values = X[0, places]
    values = _damped(values)
    length = float(values @ values) ** 0.5
    # A row whose squares underflow to zero is not scaled.
    return (values * (1.0 / length if length > 0 else 1.0)).astype(state.directions.dtype), places


def _damped(values: FloatArray) -> FloatArray:
    """Damp values, so that the tenth occurrence adds less than the first; what is missing is zero."""
    damped = np.copysign(np.log1p(np.abs(values)), values)
    return np.nan_to_num(damped, nan=0.0) if np.isnan(damped.sum()) else damped


def _standardised(state: ScalingState, X: AnyMatrix, scales: FloatArray) -> FloatArray:
    """Standardise dense columns and append the random features."""
    n_random = state.directions.shape[1]
    # Single rows take this way, too: it makes few calls, and none of slow ones such as np.clip. The two parts are
    # separate arrays until the end, as NumPy is several times slower on a part of the columns of an array.
    with np.errstate(over="ignore", invalid="ignore"):
        Z = columns.dense(X) - state.mean
        Z *= 1.0 / scales
        Z = Z.astype(state.directions.dtype, copy=False)
    most = _CLIP / state.length
    np.minimum(Z, most, out=Z)
    np.maximum(Z, -most, out=Z)
    if np.isnan(Z.sum()):
        Z[np.isnan(Z)] = 0.0
    if not n_random:
        return Z
    random = Z @ state.directions
    np.abs(random, out=random)
    # Less the mean of a normal variable's absolute value; all together about as long as the row.
    random -= _MEAN_ABSOLUTE
    random *= n_random**-0.5
    return np.concatenate([Z, random], axis=1)


def _unit_rows(X: AnyMatrix, n_values: IntArray, dtype: np.dtype[np.floating]) -> AnyMatrix:
    """Damp the values of sparse rows and scale the rows to length one."""
    sparse = columns.design(X, n_values)
    sparse = sparse if isinstance(sparse, scipy.sparse.csr_array) else scipy.sparse.csr_array(sparse)
    data = sparse.data
    if not columns.all_nominal(n_values):
        data = _damped(data)
    counts = np.diff(sparse.indptr)
    filled = np.flatnonzero(counts)
    lengths = np.sqrt(np.add.reduceat(data * data, sparse.indptr[filled])) if len(filled) else np.zeros(0)
    # Rows whose squares underflow to zero are not scaled.
    data = data / np.repeat(np.where(lengths > 0, lengths, 1.0), counts[filled])
    scaled = scipy.sparse.csr_array((data.astype(dtype, copy=False), sparse.indices, sparse.indptr), shape=sparse.shape)
    # Known of the rows given, and slow to find out again.
    scaled.has_canonical_format = sparse.has_canonical_format
    return scaled


def grow(state: ScalingState, n_values: IntArray, rng: np.random.Generator) -> ScalingState:
    """Add features that were zero in all rows so far; the columns of the others keep their values.

    Numeric features come before nominal ones in the design, so new columns may lie between known ones.
    """
    if not state.length:
        return state._replace(n_values=n_values)
    kept = columns.places(state.n_values, n_values)
    m = columns.width(n_values)
    mean, square = np.zeros(m), np.zeros(m)
    directions = rng.normal(size=(m, state.directions.shape[1])).astype(state.directions.dtype)
    mean[kept], square[kept], directions[kept] = state.mean, state.square, state.directions
    return state._replace(n_values=n_values, mean=mean, square=square, directions=directions)
