"""One row at a time, for the learners of `labelrace.learners.rls`: seen, and then learned, without making matrices.

Of one row the matrix ``M`` is a number, and the precision that the row leaves is ``d + z² / (M - z²/d)``.

Everything is here in two forms that give the same up to round-off: in NumPy, and by loops that Numba compiles
(`labelrace.learners.row_kernels`). The caller decides which is taken.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from labelrace.learners import columns, row_kernels, scaling, steps
from labelrace.learners.penalty import INTERCEPT
from labelrace.learners.rls import LEAST_FADING, RLS, RLSState, multiplied_out
from labelrace.learners.scaling import ScalingState
from labelrace.learners.table import Table, replaced_rows, rows_of
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["Row", "learn", "see"]


class Row(NamedTuple):
    """One row as the learners see it.

    Attributes
    ----------
    values : (n,) array
    places : (n,) array, or slice
        Their columns.
    weights, gained : (n, k) and (n, 2) arrays
        What is known of these columns.
    scores : (k,) array
    n_filled : int or None
        Values other than zero, of sparse data, if they were counted.
    """

    values: Array
    places: IntArray | slice
    weights: Array
    gained: FloatArray
    scores: Array
    n_filled: int | None = None


class _Step(NamedTuple):
    """What a row teaches: the products of ``directions`` and ``pulls``, one for each generation, go to the weights."""

    directions: Array
    pulls: Array
    gained: FloatArray
    intercepts: FloatArray
    intercept_gained: FloatArray
    n_used: int


def see(state: RLSState, X: AnyMatrix, scales: FloatArray | None = None, *, compiled: bool = False) -> Row:
    """Take in a row of numeric features, for `learn`; ``scales`` are those of `RLS.derive`, if there are any."""
    scaled, intercepts = state.scaling, state.intercepts
    if not compiled:
        values, places = scaling.transform_row(scaled, X, scales)
        weights, gained = rows_of(state.weights, places), rows_of(state.gained, places)
        return Row(values, places, weights, gained, values @ weights + intercepts.astype(values.dtype))
    if scaled.length:
        weights, gained = np.asarray(state.weights), state.gained
        scales = scaling.scale(scaled) if scales is None else scales
        limits = scaling.CLIP / scaled.length, scaling.MEAN_ABSOLUTE
        values, scores = row_kernels.dense_row(
            columns.dense(X)[0], scaled.mean, scales, scaled.directions, weights, intercepts, *limits
        )
        return Row(values, slice(None), weights, gained, scores)
    data, places = scaling.stored(X)
    weights, gained = rows_of(state.weights, places), rows_of(state.gained, places)
    values, scores, n_filled = row_kernels.sparse_row(data, weights, intercepts)
    return Row(values, places, weights, gained, scores, n_filled)


def learn(bank: RLS, state: RLSState, X: AnyMatrix, row: Row, h: FloatArray, *, compiled: bool = False) -> RLSState:
    """Do as `RLS.learn` for one row, which `see` has taken in, and its labels."""
    brings_new = row_kernels.brings_new if compiled else _brings_new
    if brings_new(state.first_rows, h):
        state = bank.with_generations(state, h[None])
        row = row._replace(gained=rows_of(state.gained, row.places))
    if state.fading < LEAST_FADING:
        state = multiplied_out(state)
        row = row._replace(gained=rows_of(state.gained, row.places))
    keep = bank.factor(1)
    fading = max(state.fading * keep, LEAST_FADING**2)
    step = (_compiled_step if compiled else _step)(state, row, h, keep, fading)
    learned = state._replace(
        weights=_with_products(state.weights, row, step, compiled),
        intercepts=step.intercepts,
        gained=replaced_rows(state.gained, row.places, step.gained, row.gained),
        fading=fading,
        in_use=state.in_use + step.n_used,
        intercept_gained=step.intercept_gained,
        rows=state.rows + 1.0,
    )
    scaled = _compiled_moments(state.scaling, X, row, keep) if compiled else scaling.update(state.scaling, X, keep)
    return bank.rescaled(learned, scaled)


def _brings_new(first_rows: FloatArray, h: FloatArray) -> bool:
    """Tell whether a label is present for the first time."""
    return bool(np.isinf(first_rows[h > 0]).any())


def _step(state: RLSState, row: Row, h: FloatArray, keep: float, fading: float) -> _Step:
    """Compute what a row teaches; ``fading`` is what is to be multiplied with `gained` after it."""
    z, h, young = row.values, h.astype(row.values.dtype), state.young.nonzero()[0]
    errors = steps.hinged(h - row.scores, h)
    gained, intercept_gained = row.gained * (state.fading * keep), state.intercept_gained * keep
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
    gained /= fading
    n_used = int(np.count_nonzero(gained[:, 0]) - np.count_nonzero(row.gained[:, 0]))
    return _Step(directions, pulls, gained, intercepts, intercept_gained, n_used)


def _compiled_step(state: RLSState, row: Row, h: FloatArray, keep: float, fading: float) -> _Step:
    """Do as `_step`."""
    directions, pulls, gained, intercepts, intercept_gained, total, n_used = row_kernels.learn(
        row.values,
        row.scores,
        h,
        row.gained,
        state.intercepts,
        state.intercept_gained,
        state.young,
        state.alpha,
        keep,
        state.fading,
        fading,
        INTERCEPT,
    )
    if not isfinite(total):
        steps.check_finite(intercepts)
    return _Step(directions, pulls, gained, intercepts, intercept_gained, n_used)


def _with_products(weights: Any, row: Row, step: _Step, compiled: bool) -> Any:
    """Add to the weights what a row teaches."""
    if not compiled:
        with np.errstate(over="ignore", invalid="ignore"):
            # A product of one or two vectors each is the quickest way to add them up.
            changed = step.directions.T @ step.pulls
            changed += row.weights
        return replaced_rows(weights, row.places, changed, row.weights)
    places = row.places
    if isinstance(places, slice):
        return row_kernels.with_products(row.weights, step.directions, step.pulls)

    def add(array: Array) -> None:
        row_kernels.add_products(array, places, step.directions, step.pulls)

    return Table.of(weights).changed(places, row.weights, add)


def _compiled_moments(scaled: ScalingState, X: AnyMatrix, row: Row, keep: float) -> ScalingState:
    """Do as `scaling.update`."""
    if row.n_filled is not None:
        return scaling.counted(scaled, int(row.n_filled > 0), row.n_filled)
    if not scaled.rows[0] > 0:
        return scaling.update(scaled, X, keep)
    *after, total = row_kernels.moments(
        columns.dense(X)[0],
        (scaled.rows, scaled.mean, scaled.square),
        (scaled.recent_rows, scaled.recent_mean, scaled.recent_square),
        keep,
        float(scaling.MIN_ROWS),
        scaling.OUTLIER,
        scaling.CONSTANT,
    )
    scaling.check_finite(total)
    rows, mean, square, recent_mean, recent_square = after
    return scaled._replace(
        rows=rows,
        mean=mean,
        square=square,
        recent_rows=scaled.recent_rows + 1.0,
        recent_mean=recent_mean,
        recent_square=recent_square,
    )
