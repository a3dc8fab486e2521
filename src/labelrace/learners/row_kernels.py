"""The loops of one row, to be compiled: what `labelrace.learners.single_rows` has in NumPy beside them.

A row is a few thousand multiplications, and in NumPy most of its time goes into some hundred calls. Numbers that other
modules have settled are arguments: a compiled loop that is kept on disk would not notice that they have changed. So are
the arrays that results are written to, as those made by Numba cost some microseconds each.
"""

from __future__ import annotations

import numpy as np

from labelrace.core.compiled import kernel
from labelrace.typing import Array, BoolArray, FloatArray, IntArray

__all__ = ["brings_new", "commit", "dense_values", "moments", "sparse_values", "teach"]


@kernel
def sparse_values(data: FloatArray, values: Array) -> int:
    """Damp a sparse row and scale it to length one; count what is not zero."""
    n, n_filled, squares = len(data), 0, 0.0
    damped = np.empty(n)
    for i in range(n):
        n_filled += int(data[i] != 0.0)
        # What is missing is zero.
        damped[i] = np.copysign(np.log1p(abs(data[i])), data[i]) if data[i] == data[i] else 0.0
        squares += damped[i] * damped[i]
    ratio = 1.0 / np.sqrt(squares) if squares > 0.0 else 1.0
    for i in range(n):
        values[i] = damped[i] * ratio
    return n_filled


@kernel
def dense_values(
    x: FloatArray,
    rows: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    directions: Array,
    length: float,
    clip: float,
    constant: float,
    mean_absolute: float,
    values: Array,
) -> None:
    """Standardise a dense row, clip it at so many deviations, and append its random features."""
    n, n_random = directions.shape
    values[n:] = 0.0
    for i in range(n):
        spread = np.sqrt(square[i] / max(rows[i], 1.0))
        standardised = (x[i] - mean[i]) / spread if spread > constant * abs(mean[i]) else 0.0
        # What is missing is the mean.
        values[i] = min(max(standardised, -clip), clip) / length if standardised == standardised else 0.0
        value = values[i]
        for j in range(n_random):
            values[n + j] += value * directions[i, j]
    for j in range(n, n + n_random):
        values[j] = (abs(values[j]) - mean_absolute) * n_random**-0.5


@kernel
def brings_new(first_rows: FloatArray, h: FloatArray) -> bool:
    """Tell whether a label is present for the first time."""
    found = False
    for j in range(len(h)):
        found |= h[j] > 0.0 and first_rows[j] == np.inf
    return found


@kernel
def teach(
    weights: Array,
    gained: FloatArray,
    places: IntArray,
    values: Array,
    h: FloatArray,
    intercepts: FloatArray,
    intercept_gained: FloatArray,
    young: BoolArray,
    alpha: float,
    keep: float,
    fading: float,
    after_fading: float,
    prior: float,
    known: Array,
    gained_here: FloatArray,
    scores: Array,
    taught: Array,
    intercepts_and_gained: FloatArray,
) -> tuple[int, int, float]:
    """Compute what a row is predicted and what it teaches; ``weights`` and ``gained`` are not changed.

    Written are their rows at the row's places (``known`` and the first of ``gained_here``); its scores; directions and
    pulls (``taught``, side by side, a row for each generation), whose products go to the weights; and what becomes of
    ``gained`` (the second of ``gained_here``), the intercepts and their precision. Returns the generations, the columns
    that are in use for the first time, and the sum of the intercepts, which is finite where all are. ``prior`` is the
    intercepts' penalty.
    """
    n, n_labels, n_generations, n_used, total = len(values), len(h), 2 if young.any() else 1, 0, 0.0
    before, after, directions, pulls = gained_here[0], gained_here[1], taught[:, :n], taught[:, n:]
    intercepts_after, intercept_gained_after = intercepts_and_gained[:n_labels], intercepts_and_gained[n_labels:]
    for j in range(n_labels):
        scores[j] = intercepts_after[j] = intercepts[j]
    for i in range(n):
        # Outside of the inner loop, so that several labels are computed at once.
        value, place = values[i], places[i]
        for j in range(n_labels):
            known[i, j] = weights[place, j]
            scores[j] += value * weights[place, j]
        for generation in range(2):
            before[i, generation] = gained[place, generation]
            after[i, generation] = before[i, generation] * (fading * keep)
    intercept_gained_after[:] = intercept_gained * keep
    pulls[:] = 0.0
    for generation in range(n_generations):
        freedom = 1.0 / (prior + intercept_gained_after[generation])
        middle = freedom + 1.0
        for i in range(n):
            z = np.float64(values[i])
            middle += z * z / (after[i, generation] + alpha)
        for i in range(n):
            z, precision = np.float64(values[i]), after[i, generation] + alpha
            directions[generation, i] = z / precision
            after[i, generation] += z * z / (middle - z * z / precision)
        intercept_gained_after[generation] = 1.0 / (freedom * (1.0 - freedom / middle)) - prior
        for j in range(n_labels):
            # Scores beyond their target are no error, nor are those of labels that are not known.
            error = h[j] - scores[j]
            if young[j] == (generation == 1) and (error > 0.0 if h[j] > 0.0 else error < 0.0):
                pulls[generation, j] = error / middle
                intercepts_after[j] += freedom * pulls[generation, j]
    for i in range(n):
        after[i, 0] /= after_fading
        after[i, 1] /= after_fading
        n_used += int(after[i, 0] != 0.0) - int(before[i, 0] != 0.0)
    for j in range(n_labels):
        total += intercepts_after[j]
    return n_generations, n_used, total


@kernel
def commit(
    weights: Array, gained: FloatArray, places: IntArray, directions: Array, pulls: Array, after: FloatArray
) -> None:
    """Write what a row teaches into the arrays."""
    for i in range(len(places)):
        place = places[i]
        for generation in range(len(directions)):
            direction = directions[generation, i]
            for j in range(pulls.shape[1]):
                weights[place, j] += direction * pulls[generation, j]
        gained[place, 0], gained[place, 1] = after[i, 0], after[i, 1]


@kernel
def moments(
    x: FloatArray,
    rows: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    recent_rows: float,
    recent_mean: FloatArray,
    recent_square: FloatArray,
    forgetting: float,
    fewest_rows: float,
    outlier: float,
    constant: float,
    after: FloatArray,
) -> float:
    """Add a row to the running moments of columns, and to the recent ones; return the sum of all squares.

    Written are rows, means, squares, recent means and recent squares.
    """
    total = 0.0
    for i in range(len(x)):
        value = x[i]
        if value != value:
            # A missing value counts as the mean so far, and so changes nothing.
            value = mean[i] if rows[i] > 0.0 else 0.0
        step = value - recent_mean[i]
        after[3, i] = recent_mean[i] + step / (recent_rows + 1.0)
        after[4, i] = recent_square[i] + step * step * (recent_rows / (recent_rows + 1.0))
        apart, least, is_known = value - mean[i], constant * abs(mean[i]), rows[i] >= fewest_rows
        if is_known and square[i] <= least * least * rows[i] and abs(apart) > least:
            # The moments of a column that has been constant begin with the first row that differs.
            after[0, i], after[1, i], after[2, i] = 1.0, value, 0.0
        else:
            if is_known and square[i] > 0.0:
                # One outlier must not shrink all other values for thousands of rows.
                most = outlier * np.sqrt(square[i] / rows[i])
                apart = min(max(apart, -most), most)
            past = rows[i] * forgetting
            after[0, i], after[1, i] = past + 1.0, mean[i] + apart / (past + 1.0)
            after[2, i] = square[i] * forgetting + apart * apart * (past / (past + 1.0))
        total += after[2, i]
    return total
