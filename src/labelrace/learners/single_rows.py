"""One row at a time, for the learners of `labelrace.learners.rls`, without making matrices of it.

Of one row the matrix ``M`` is a number, and the precision that the row leaves is ``d + z² / (M - z²/d)``. So what a row
teaches is computed together with its scores (`teach`), before anything is changed, and put into the state afterwards
(`learn`).

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
from labelrace.learners.table import Table, changed_both, read_both, replaced_rows, rows_of
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["Lesson", "learn", "teach"]


class Lesson(NamedTuple):
    """What a row is predicted, and what it teaches.

    Attributes
    ----------
    state : RLSState
        What it is taught to: with the row's new labels in the young generation.
    places : (n,) array, or slice
        The columns of the row.
    weights, gained : (n, k) and (n, 2) arrays
        What is known of these columns before the row.
    scores : (k,) array
        What the row is predicted.
    directions, pulls : (g, n) and (g, k) arrays
        Vectors for each generation, whose products go to the weights.
    gained_after, intercepts, intercept_gained, fading
        What becomes of the parts of the state.
    n_used : int
        Columns that are in use for the first time.
    n_filled : int
        Values other than zero, of sparse data; -1 where they were not counted.
    """

    state: RLSState
    places: IntArray | slice
    weights: Array
    gained: FloatArray
    scores: Array
    directions: Array
    pulls: Array
    gained_after: FloatArray
    intercepts: FloatArray
    intercept_gained: FloatArray
    fading: float
    n_used: int
    n_filled: int


def teach(
    bank: RLS,
    state: RLSState,
    X: AnyMatrix,
    h: FloatArray,
    scales: FloatArray | None = None,
    *,
    compiled: bool = False,
) -> Lesson:
    """Compute the scores of a row of numeric features, and what it teaches with its labels.

    ``scales`` are those of `RLS.derive`, if there are any.
    """
    if (row_kernels.brings_new if compiled else _brings_new)(state.first_rows, h):
        state = bank.with_generations(state, h[None])
    if state.fading < LEAST_FADING:
        state = multiplied_out(state)
    return (_teach_compiled if compiled else _teach)(state, X, h, scales, bank.factor(1))


def learn(bank: RLS, lesson: Lesson, X: AnyMatrix, *, compiled: bool = False) -> RLSState:
    """Do as `RLS.learn` with what a row teaches."""
    keep, state = bank.factor(1), lesson.state
    weights, gained = (_put_compiled if compiled else _put)(lesson)
    scaled = _moments_compiled(state.scaling, X, lesson, keep) if compiled else scaling.update(state.scaling, X, keep)
    learned = RLSState(
        scaled,
        state.alpha,
        weights,
        lesson.intercepts,
        gained,
        lesson.fading,
        state.in_use + lesson.n_used,
        lesson.intercept_gained,
        state.rows + 1.0,
        state.first_rows,
        state.young,
        state.founded,
        state.warm_up,
    )
    return bank.rescaled(learned, scaled)


def _brings_new(first_rows: FloatArray, h: FloatArray) -> bool:
    """Tell whether a label is present for the first time."""
    return bool(np.isinf(first_rows[h > 0]).any())


def _faded(state: RLSState, keep: float) -> float:
    return max(state.fading * keep, LEAST_FADING**2)


def _teach(state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None, keep: float) -> Lesson:
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
    fading = _faded(state, keep)
    gained /= fading
    n_used = int(np.count_nonzero(gained[:, 0]) - np.count_nonzero(before[:, 0]))
    known = weights, before, scores, directions, pulls
    return Lesson(state, places, *known, gained, intercepts, intercept_gained, fading, n_used, -1)


def _teach_compiled(state: RLSState, X: AnyMatrix, h: FloatArray, scales: FloatArray | None, keep: float) -> Lesson:
    scaled, fading = state.scaling, _faded(state, keep)
    places: Any = slice(None)
    if scaled.length:
        values, n_filled = np.empty(len(state.weights), scaled.directions.dtype), -1
        known = columns.dense(X)[0], scaled.rows, scaled.mean, scaled.square, scaled.directions, scaled.length
        row_kernels.dense_values(*known, scaling.CLIP, scaling.CONSTANT, scaling.MEAN_ABSOLUTE, values)
    else:
        data, places = scaling.stored(X)
        values = np.empty(len(data), scaled.directions.dtype)
        n_filled = row_kernels.sparse_values(data, values)
    n, n_labels, kind = len(values), len(h), values.dtype
    gained, taught = np.empty((2, n, 2)), np.empty((2, n + n_labels), kind)
    # Written by the loop; one array for several of a kind, as making arrays takes longer than filling them.
    weights, scores, intercepts = np.empty((n, n_labels), kind), np.empty(n_labels, kind), np.empty(n_labels + 2)
    row = values, h, state.intercepts, state.intercept_gained, state.young
    rest = *row, state.alpha, keep, state.fading, fading, INTERCEPT, weights, gained, scores, taught, intercepts
    found = None
    if scaled.length == 0.0:
        found = read_both(Table.of(state.weights), Table.of(state.gained), row_kernels.teach, places, *rest)
    if found is None:
        teach: Any = row_kernels.teach
        found = teach(rows_of(state.weights, places), rows_of(state.gained, places), _all_rows(n), *rest)
    n_generations, n_used, total = found
    if not isfinite(total):
        steps.check_finite(intercepts)
    return Lesson(
        state,
        places,
        weights,
        gained[0],
        scores,
        taught[:n_generations, :n],
        taught[:n_generations, n:],
        gained[1],
        intercepts[:n_labels],
        intercepts[n_labels:],
        fading,
        n_used,
        n_filled,
    )


def _all_rows(n: int) -> IntArray:
    # In the type that the columns of sparse rows have, so that nothing is compiled twice.
    return np.arange(n, dtype=np.int32)


def _put(lesson: Lesson) -> tuple[Any, Any]:
    """Put what a row teaches into the weights and their precision."""
    state, places = lesson.state, lesson.places
    with np.errstate(over="ignore", invalid="ignore"):
        # A product of one or two vectors each is the quickest way to add them up.
        weights = lesson.directions.T @ lesson.pulls
        weights += lesson.weights
    return (
        replaced_rows(state.weights, places, weights, lesson.weights),
        replaced_rows(state.gained, places, lesson.gained_after, lesson.gained),
    )


def _put_compiled(lesson: Lesson) -> tuple[Any, Any]:
    places, taught = lesson.places, (lesson.directions, lesson.pulls, lesson.gained_after)
    if isinstance(places, slice):
        # What is known are copies of all columns.
        row_kernels.commit(lesson.weights, lesson.gained, _all_rows(len(lesson.weights)), *taught)
        return lesson.weights, lesson.gained
    tables = Table.of(lesson.state.weights), Table.of(lesson.state.gained)

    def change(weights: Array, gained: FloatArray) -> None:
        row_kernels.commit(weights, gained, places, *taught)

    return changed_both(*tables, places, (lesson.weights, lesson.gained), change)


def _moments_compiled(scaled: ScalingState, X: AnyMatrix, lesson: Lesson, keep: float) -> ScalingState:
    """Do as `scaling.update`."""
    if lesson.n_filled >= 0:
        return scaling.counted(scaled, int(lesson.n_filled > 0), lesson.n_filled)
    if not scaled.rows[0] > 0:
        return scaling.update(scaled, X, keep)
    after = np.empty((5, len(scaled.rows)))
    known = scaled.rows, scaled.mean, scaled.square, scaled.recent_rows, scaled.recent_mean, scaled.recent_square
    limits = float(scaling.MIN_ROWS), scaling.OUTLIER, scaling.CONSTANT
    scaling.check_finite(row_kernels.moments(columns.dense(X)[0], *known, keep, *limits, after))
    return scaled._replace(
        rows=after[0],
        mean=after[1],
        square=after[2],
        recent_rows=scaled.recent_rows + 1.0,
        recent_mean=after[3],
        recent_square=after[4],
    )
