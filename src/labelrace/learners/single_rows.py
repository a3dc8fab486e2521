"""One row at a time, for the learners of `labelrace.learners.rls`, without making matrices of it.

Of one row the matrix ``M`` is a number, and the precision that the row leaves is ``d + z² / (M - z²/d)``. So what a row
teaches costs little more than its scores, and both are computed together.

Everything is here in two forms that give the same up to round-off: in NumPy, and by loops that Numba compiles
(`labelrace.learners.row_kernels`). The caller decides which is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelrace.learners import columns, row_kernels, scaling, steps
from labelrace.learners.penalty import INTERCEPT
from labelrace.learners.rls import LEAST_FADING, RLS, RLSState, multiplied_out
from labelrace.learners.scaling import ScalingState
from labelrace.learners.table import Table, changed_both, replaced_rows, rows_of
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["Learned", "learn"]

# Where the rows before need not be kept: they are copied as a whole.
_NOT_KEPT: Any = {np.dtype(kind): np.empty((0, 0), kind) for kind in (np.float32, np.float64)}


class Learned(NamedTuple):
    """The scores that a row had before it was learned, (k,), and the state after it."""

    scores: Array
    state: RLSState


def learn(
    bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None = None, *, compiled: bool = False
) -> Learned:
    """Do as `RLS.learn` with a row of numeric features and its labels ``h``, and compute its scores before that.

    ``scales`` are those of `RLS.derive`, if there are any; ``compiled`` tells to do it by compiled loops.
    """
    if state.fading < LEAST_FADING:
        state = multiplied_out(state)
    return _learn_compiled(bank, state, X, h) if compiled else _learn(bank, state, X, h, scales)


def _learn(bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None) -> Learned:
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
    fading = _faded(state, keep)
    gained /= fading
    n_used = int(np.count_nonzero(gained[:, 0]) - np.count_nonzero(before[:, 0]))
    scaled = scaling.update(state.scaling, X, keep)
    tables = replaced_rows(state.weights, places, taught, weights), replaced_rows(state.gained, places, gained, before)
    return Learned(scores, _after(bank, state, scaled, *tables, intercepts, intercept_gained, fading, n_used))


def _learn_compiled(bank: RLS, state: RLSState, X: AnyMatrix, h: FloatArray) -> Learned:
    keep, scaled = bank.factor(1), state.scaling
    values, places, after = _scaled_compiled(scaled, X, keep)
    fading, n_labels = _faded(state, keep), len(h)
    scores, intercepts, intercept_gained = np.empty(n_labels, values.dtype), np.empty(n_labels), np.empty(2)
    known = state.first_rows, state.young, state.intercepts, state.intercept_gained
    numbers = state.alpha, keep, state.fading, fading, INTERCEPT
    row = places, values, h, *known, *numbers, scores, intercepts, intercept_gained
    weights: Any
    gained: Any
    if scaled.length:
        weights, gained = state.weights.copy(), state.gained.copy()
        kept = _NOT_KEPT[weights.dtype], _NOT_KEPT[gained.dtype], np.zeros(1, bool)
        n_used = row_kernels.learn(weights, gained, *kept, *row)
    else:
        tables = Table.of(state.weights), Table.of(state.gained)
        weights, gained, n_used = changed_both(*tables, places, row_kernels.learn, *row)
    if n_used == row_kernels.NEW_LABEL:
        return _learn_compiled(bank, bank.with_generations(state, h[None]), X, h)
    if n_used == row_kernels.OVERFLOW:
        steps.check_finite(intercepts)
    return Learned(scores, _after(bank, state, after, weights, gained, intercepts, intercept_gained, fading, n_used))


def _faded(state: RLSState, keep: float) -> float:
    return max(state.fading * keep, LEAST_FADING**2)


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
    return bank.rescaled(learned, scaled)


def _scaled_compiled(scaled: ScalingState, X: AnyMatrix, keep: float) -> tuple[Array, IntArray, ScalingState]:
    """Do as `scaling.transform_row` and `scaling.update`: the values of a row, their columns, and the state after it."""
    kind = scaled.directions.dtype
    if not scaled.length:
        data, indices = scaling.stored(X)
        values = np.empty(len(data), kind)
        n_filled = row_kernels.sparse_values(data, values)
        # Of one type, so that nothing is compiled twice.
        places = indices.astype(np.int32, copy=False)
        return values, places, scaling.counted(scaled, int(n_filled > 0), n_filled)
    x, (m, n_random) = columns.dense(X)[0], scaled.directions.shape
    values, places = np.empty(m + n_random, kind), np.arange(m + n_random, dtype=np.int32)
    moments = scaled.rows, scaled.mean, scaled.square
    settled = scaled.length, scaling.CLIP, scaling.CONSTANT, scaling.MEAN_ABSOLUTE
    row_kernels.dense_values(x, *moments, scaled.directions, *settled, values)
    if not scaled.rows[0] > 0:
        return values, places, scaling.update(scaled, X, keep)
    after = np.empty((5, m))
    recent = scaled.recent_rows, scaled.recent_mean, scaled.recent_square
    limits = float(scaling.MIN_ROWS), scaling.OUTLIER, scaling.CONSTANT
    scaling.check_finite(row_kernels.moments(x, *moments, *recent, keep, *limits, after))
    rows, mean, square, recent_mean, recent_square = after
    return (
        values,
        places,
        scaled._replace(
            rows=rows,
            mean=mean,
            square=square,
            recent_rows=scaled.recent_rows + 1.0,
            recent_mean=recent_mean,
            recent_square=recent_square,
        ),
    )
