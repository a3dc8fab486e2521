"""One row at a time, for the learners of `labelrace.linear.rls`, without making matrices of it.

Of one row the matrix ``M`` is a number, and the precision that the row leaves is ``d + z² / (M - z²/d)``. So what a row
teaches costs little more than its scores, and both are computed together.

Everything is here in two forms that give the same up to round-off: in NumPy, and by loops that Numba compiles
(`labelrace.linear.row_loops`). The caller decides which is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.sparse import dense
from labelrace.linear import row_loops, scaling, steps
from labelrace.linear.penalty import INTERCEPT
from labelrace.linear.rls import LEAST_FADING, RLS, RLSState, multiplied_out
from labelrace.linear.scaling import ScalingState
from labelrace.linear.versioned import VersionedRows, changed_both, replaced_rows, rows_of
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# What is left of `gained` at the least.
_LEAST = LEAST_FADING**2
# Where the rows before need not be kept: they are copied as a whole.
_NOT_KEPT: Any = {np.dtype(kind): np.empty((0, 0), kind) for kind in (np.float32, np.float64)}


def learn(
    bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None = None, *, compiled: bool = False
) -> tuple[Array, RLSState]:
    """Do as `RLS.learn` with a row of numeric features and its labels ``h``; return the scores before that, too.

    ``scales`` are those of `RLS.derive`, if there are any; with ``compiled``, loops are compiled.
    """
    if state.fading < LEAST_FADING:
        state = multiplied_out(state)
    return _learn_compiled(bank, state, X, h) if compiled else _learn(bank, state, X, h, scales)


def _learn(
    bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None
) -> tuple[Array, RLSState]:
    if np.isinf(state.first_rows[h > 0]).any():
        state = bank.with_generations(state, h[None])
    keep = bank.factor(1)
    z, places = scaling.transform_row(state.scaling, X, scales)
    weights, before = rows_of(state.weights, places), rows_of(state.gained, places)
    scores = z @ weights + state.intercepts.astype(z.dtype)
    h, young = h.astype(z.dtype), state.young.nonzero()[0]
    errors = steps.hinged(h - scores, h)
    gained, intercept_gained = before * (state.fading * keep), state.intercept_gained * keep
    n_generations = 2 if len(young) else 1
    directions = np.empty((n_generations, len(z)), z.dtype)
    pulls = np.zeros((n_generations, len(errors)), z.dtype)
    squares, freedoms = np.square(z, dtype=float), []
    for generation in range(n_generations):
        precision = gained[:, generation] + state.alpha
        share = squares / precision
        freedom = 1.0 / (INTERCEPT + float(intercept_gained[generation]))
        middle = float(share.sum()) + freedom + 1.0
        gained[:, generation] += squares / (middle - share)
        intercept_gained[generation] = 1.0 / (freedom * (1.0 - freedom / middle)) - INTERCEPT
        np.divide(z, precision, out=directions[generation], casting="same_kind")
        if generation:
            # These are for the young generation, with its own precision.
            pulls[0, young], pulls[1, young] = 0.0, errors[young] * (1.0 / middle)
        else:
            np.multiply(errors, 1.0 / middle, out=pulls[0])
        freedoms.append(freedom)
    with np.errstate(over="ignore", invalid="ignore"):
        intercepts = state.intercepts + freedoms @ pulls
        steps.check_finite(intercepts)
        # A product of one or two vectors each is the quickest way to add them up.
        taught = directions.T @ pulls
        taught += weights
    fading = max(state.fading * keep, _LEAST)
    gained /= fading
    n_used = int(np.count_nonzero(gained[:, 0]) - np.count_nonzero(before[:, 0]))
    scaled = scaling.update(state.scaling, X, keep)
    tables = replaced_rows(state.weights, places, taught, weights), replaced_rows(state.gained, places, gained, before)
    return scores, _after(bank, state, scaled, *tables, intercepts, intercept_gained, fading, n_used)


def _learn_compiled(bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray) -> tuple[Array, RLSState]:
    keep, scaled, n_labels, weights, gained = bank.factor(1), state.scaling, len(h), state.weights, state.gained
    fading, is_sparse = max(state.fading * keep, _LEAST), not scaled.length
    x, places = scaling.stored(X) if is_sparse else _dense_values(scaled, X)
    if places.dtype != np.int32:
        # Of one type, so that nothing is compiled twice.
        places = places.astype(np.int32)
    scores, intercepts, intercept_gained = np.empty(n_labels, scaled.directions.dtype), np.empty(n_labels), np.empty(2)
    written = scores, intercepts, intercept_gained
    row: tuple[Any, ...] = places, x, is_sparse, h, _known(state, keep, fading), *written
    if is_sparse:
        tables = VersionedRows.of(weights), VersionedRows.of(gained)
        weights, gained, (n_used, n_filled) = changed_both(*tables, places, row_loops.learn, row)  # type: ignore[assignment]
        scaled = scaling.counted(scaled, int(n_filled > 0), n_filled)
    else:
        weights, gained = weights.copy(), gained.copy()
        kept = _NOT_KEPT[weights.dtype], _NOT_KEPT[gained.dtype], np.zeros(1, bool)
        n_used, _ = row_loops.learn(weights, gained, *kept, *row)
        scaled = _with_row(scaled, X, keep)
    if n_used == row_loops.NEW_LABEL:
        return _learn_compiled(bank, bank.with_generations(state, h[None]), X, h)
    if n_used == row_loops.OVERFLOW:
        steps.check_finite(intercepts)
    return scores, _after(bank, state, scaled, weights, gained, intercepts, intercept_gained, fading, n_used)


def learn_unchecked(
    bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray, largest: float, waiting: FloatArray, place: int
) -> RLSState | None:
    """Do as `learn` by compiled loops, with a row of sparse data whose values have not been checked.

    Its scores and labels are written to a place among rows that wait, (2, n, l). None if the row is not in order, or if
    it takes more than to learn it, and then nothing has changed.
    """
    weights: Any = state.weights
    gained: Any = state.gained
    if state.fading < LEAST_FADING or type(weights) is not VersionedRows or type(gained) is not VersionedRows:
        return None
    keep, places, intercepts, intercept_gained = bank.factor(1), X.indices, np.empty(len(h)), np.empty(2)
    fading = max(state.fading * keep, _LEAST)
    known, written = _known(state, keep, fading), (waiting, place, intercepts, intercept_gained)
    row = places, X.data, X.indptr, h, len(state.scaling.n_values), largest, known, *written
    weights, gained, (n_used, n_filled) = changed_both(weights, gained, places, row_loops.learn_unchecked, row)
    if n_used < 0:
        return None
    scaled = scaling.counted(state.scaling, int(n_filled > 0), n_filled)
    return _after(bank, state, scaled, weights, gained, intercepts, intercept_gained, fading, n_used)


def _known(state: RLSState, keep: float, fading: float) -> tuple[Any, ...]:
    """List what loops must know of the learners, and what is left of `gained` after the row."""
    intercepts = state.first_rows, state.young, state.intercepts, state.intercept_gained
    return *intercepts, state.alpha, keep, state.fading, fading, INTERCEPT


def _after(
    bank: RLS,
    state: RLSState,
    scaled: ScalingState,
    weights: Any,
    gained: Any,
    intercepts: FloatArray,
    intercept_gained: FloatArray,
    fading: float,
    n_used: int,
) -> RLSState:
    """Make the state after a row."""
    learned = RLSState(
        scaled,
        state.alpha,
        weights,
        intercepts,
        gained,
        fading,
        state.in_use + n_used,
        intercept_gained,
        state.rows + 1.0,
        state.first_rows,
        state.young,
        state.founded,
        state.warm_up,
    )
    return bank.with_scaling(learned, scaled) if scaled.length else learned


def _dense_values(scaled: ScalingState, X: AnyMatrix) -> tuple[Array, IntArray]:
    """Do as `scaling.transform_row` for dense data."""
    m, n_random = scaled.directions.shape
    values = np.empty(m + n_random, scaled.directions.dtype)
    known = scaled.rows, scaled.mean, scaled.square, scaled.directions, scaled.length
    row_loops.dense_values(dense(X)[0], known, (scaling.CLIP, scaling.CONSTANT, scaling.MEAN_ABSOLUTE), values)
    return values, np.arange(m + n_random, dtype=np.int32)


def _with_row(scaled: ScalingState, X: AnyMatrix, keep: float) -> ScalingState:
    """Do as `scaling.update` for dense data."""
    if not scaled.rows[0] > 0:
        return scaling.update(scaled, X, keep)
    after = np.empty((5, len(scaled.rows)))
    known = scaled.rows, scaled.mean, scaled.square, scaled.recent_rows, scaled.recent_mean, scaled.recent_square
    limits = float(scaling.MIN_ROWS), scaling.OUTLIER, scaling.CONSTANT
    scaling.check_finite(row_loops.moments(dense(X)[0], known, keep, limits, after))
    rows, mean, square, recent_mean, recent_square = after
    return scaled._replace(
        rows=rows,
        mean=mean,
        square=square,
        recent_rows=scaled.recent_rows + 1.0,
        recent_mean=recent_mean,
        recent_square=recent_square,
    )
