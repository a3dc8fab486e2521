"""What linear learners see of ``X``: columns of one size, and on dense data some that bend.

*Sparse data*, such as words. Values are damped, ``sign(x) log(1 + |x|)``, so that the tenth occurrence of a word adds
less than the first, and each row is scaled to length one: long texts teach no more than short ones. Cost is
``O(nnz)``.

*Dense data*, such as measurements. Columns are brought to mean 0 and variance 1 by running moments, cut off at five
standard deviations and divided by the root of their number, so that a row has a length near one here, too. Then come
the absolute values of the row along random directions: with them a linear model also fits what bends, such as a label
that goes with extremes (random features as by Rahimi and Recht, "Weighted sums of random kitchen sinks", 2008).

Which kind it is, the first rows tell: arrays that are mostly zeros are sparse data, whatever form they come in. A
missing value (NaN) is taken for the mean, or for zero in sparse data.

Columns are in single precision where that is asked for: half the memory and twice the speed, with an error of 1e-7
beside noise many times that. The type of the directions tells, also where there are none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.exceptions import DivergenceError
from labelrace.learners import columns
from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["FeatureState", "grow", "learn", "n_columns", "restart", "scale", "start", "transform", "unseen"]

# Share of non-zeros up to which data is sparse.
_SPARSE = 0.3
# Standard deviations at which a dense column is cut off.
_CLIP = 5.0
# Standard deviations beyond which a value, or a factor beyond which their change, is not what there was before.
_STRANGE = 10.0
# Rows that tell how much columns vary.
_FEWEST_ROWS = 50
_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))


class FeatureState(NamedTuple):
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
        Random directions of the columns that bend. Empty for sparse data.
    length : float
        Root of the number of columns there were at the start; 0 for sparse data.
    """

    n_values: IntArray
    rows: float
    mean: FloatArray
    square: FloatArray
    directions: FloatArray
    length: float


def unseen(n_values: IntArray, kind: type[np.floating] = np.float64) -> FeatureState:
    """Make the state of features that nothing is known of: sparse ones, until something is."""
    return FeatureState(n_values, 0.0, np.zeros(0), np.zeros(0), np.zeros((0, 0), kind), 0.0)


def start(
    X: AnyMatrix, n_values: IntArray, n_bends: int, rng: np.random.Generator, kind: type[np.floating] = np.float64
) -> FeatureState:
    """Decide by the first rows how columns are to be treated; `learn` has yet to see them."""
    # Zeros that are stored are zeros all the same.
    n_filled = np.count_nonzero(X.data if scipy.sparse.issparse(X) else X)
    if n_filled <= _SPARSE * X.shape[0] * X.shape[1]:
        return unseen(n_values, kind)
    m = columns.width(n_values)
    directions = rng.normal(size=(m, n_bends)).astype(kind)
    return FeatureState(n_values, 0.0, np.zeros(m), np.zeros(m), directions, float(np.sqrt(m)))


def n_columns(state: FeatureState) -> int:
    """Count the columns that `transform` makes."""
    return columns.width(state.n_values) + state.directions.shape[1]


def learn(state: FeatureState, X: AnyMatrix, forgetting: float = 1.0) -> FeatureState:
    """Let the moments follow a batch; ``forgetting`` is what the rows before it still count for."""
    if not state.length:
        return state
    X = columns.dense(columns.design(X, state.n_values))
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        if np.isnan(mean).any():
            # Missing values take no part: as if they were the mean there was.
            X = np.where(np.isnan(X), state.mean if state.rows else _known_means(X), X)
            mean, squares = _moments(X)
        if state.rows >= _FEWEST_ROWS:
            most = _STRANGE**2 * state.square / state.rows
            if ((np.maximum(squares / len(X), (mean - state.mean) ** 2) > most) & (most > 0)).any():
                # Values beyond belief are cut off here, too: one must not make all others alike for thousands of rows.
                mean, squares = _moments(_cut_off(X, state.mean, np.sqrt(most)))
        n, before = len(X), state.rows * forgetting
        step, rows = mean - state.mean, before + n
        # The sums of two parts about their common mean (Chan, Golub and LeVeque, 1979).
        square = state.square * forgetting + squares + step**2 * (before * n / rows)
    if not np.isfinite(square).all():
        raise DivergenceError("X holds values so large that sums of their squares overflow: scale them down.")
    return state._replace(rows=rows, mean=state.mean + step * (n / rows), square=square)


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the columns' means, and the sums of squared deviations from them."""
    mean = X.mean(axis=0)
    apart = X - mean
    return mean, np.einsum("ij,ij->j", apart, apart)


def _cut_off(X: FloatArray, mean: FloatArray, most: FloatArray) -> FloatArray:
    """Cut off what is too far from the mean, in columns that have varied."""
    most = np.where(most > 0, most, np.inf)
    return np.clip(X, mean - most, mean + most)


def restart(state: FeatureState, X: AnyMatrix) -> FeatureState:
    """Begin anew with columns that are somewhere else, or vary ten times as much or as little: in another unit."""
    if not state.length or X.shape[0] < _FEWEST_ROWS:
        return state
    X = columns.dense(columns.design(X, state.n_values))
    X = np.where(np.isnan(X), _known_means(X), X)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, squares = _moments(X)
        variance, known = squares / len(X), state.square / state.rows
        is_other = np.maximum(variance, known) > _STRANGE**2 * np.minimum(variance, known)
        is_other |= (mean - state.mean) ** 2 > _STRANGE**2 * known
    is_other &= (variance > 0) & np.isfinite(variance)
    square = np.where(is_other, variance, known) * state.rows
    return state._replace(mean=np.where(is_other, mean, state.mean), square=square)


def _known_means(X: FloatArray) -> FloatArray:
    """Compute the columns' means of what is not missing; 0 where all is."""
    known = ~np.isnan(X)
    return np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def scale(state: FeatureState) -> FloatArray:
    """Compute what the columns' deviations from their means are divided by."""
    spread = np.sqrt(state.square / max(state.rows, 1.0))
    # A column that does not vary is all zeros once its mean is gone.
    return np.where(spread > 1e-9 * np.abs(state.mean), spread, np.inf) * state.length


def transform(state: FeatureState, X: AnyMatrix, scales: FloatArray | None = None) -> AnyMatrix:
    """Compute the columns that learners see; ``scales`` is the state's `scale`, if at hand."""
    if not state.length:
        return _unit_rows(X, state.n_values, state.directions.dtype)
    return _bent(state, columns.design(X, state.n_values), scale(state) if scales is None else scales)


def _bent(state: FeatureState, X: AnyMatrix, scales: FloatArray) -> FloatArray:
    n_bends = state.directions.shape[1]
    # Single rows come this way, too: few calls, and none of the slow ones such as np.clip. Each part is contiguous
    # until the end: NumPy works on columns of a larger array several times slower.
    with np.errstate(over="ignore", invalid="ignore"):
        Z = columns.dense(X) - state.mean
        Z *= 1.0 / scales
        Z = Z.astype(state.directions.dtype, copy=False)
    most = _CLIP / state.length
    np.minimum(Z, most, out=Z)
    np.maximum(Z, -most, out=Z)
    if np.isnan(Z.sum()):
        Z[np.isnan(Z)] = 0.0
    if not n_bends:
        return Z
    bends = Z @ state.directions
    np.abs(bends, out=bends)
    # Less the mean of a normal variable's absolute value, and together about as long as the row.
    bends -= _MEAN_ABSOLUTE
    bends *= n_bends**-0.5
    return np.concatenate([Z, bends], axis=1)


def _unit_rows(X: AnyMatrix, n_values: IntArray, kind: np.dtype[np.floating]) -> AnyMatrix:
    sparse = columns.design(X, n_values)
    sparse = sparse if isinstance(sparse, scipy.sparse.csr_array) else scipy.sparse.csr_array(sparse)
    data = sparse.data
    if not columns.all_nominal(n_values):
        data = np.nan_to_num(data, nan=0.0)
        data = np.sign(data) * np.log1p(np.abs(data))
    counts = np.diff(sparse.indptr)
    filled = np.flatnonzero(counts)
    lengths = np.sqrt(np.add.reduceat(data * data, sparse.indptr[filled])) if len(filled) else np.zeros(0)
    # A length whose square is too small to be told from zero is left as it is.
    data = data / np.repeat(np.where(lengths > 0, lengths, 1.0), counts[filled])
    return scipy.sparse.csr_array((data.astype(kind, copy=False), sparse.indices, sparse.indptr), shape=sparse.shape)


def grow(state: FeatureState, n_values: IntArray, rng: np.random.Generator) -> FeatureState:
    """Add features that were zero in all rows so far; what the others are turned into stays as it is.

    Numeric features come before nominal ones in the design, so that new columns are put where they belong.
    """
    if not state.length:
        return state._replace(n_values=n_values)
    kept = columns.places(state.n_values, n_values)
    m = columns.width(n_values)
    mean, square = np.zeros(m), np.zeros(m)
    directions = rng.normal(size=(m, state.directions.shape[1])).astype(state.directions.dtype)
    mean[kept], square[kept], directions[kept] = state.mean, state.square, state.directions
    return state._replace(n_values=n_values, mean=mean, square=square, directions=directions)
