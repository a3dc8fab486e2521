"""The loops of one row, to be compiled: how it is checked, and what `labelrace.linear.single_rows` has in NumPy.

A row is a few thousand multiplications, and in NumPy most of its time goes into some hundred calls. Numbers that other
modules have settled are arguments: a compiled loop that is kept on disk would not notice that they have changed. So are
the arrays that results are written to, as those made by Numba cost some microseconds each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.compiled import kernel
from labelrace.typing import Array, BoolArray, FloatArray, IntArray

# Why a row was not learned: a label is present for the first time, numbers are not finite, or the row is not in order.
NEW_LABEL, OVERFLOW, REFUSED = -1, -2, -3


@kernel
def is_in_order(data: FloatArray, indices: IntArray, starts: IntArray, n_features: int, largest: float) -> bool:
    """Tell whether one compressed row has columns that rise and numbers that are not too large, nor missing."""
    n, before, squares = len(data), -1, 0.0
    if len(starts) != 2 or starts[0] != 0 or starts[1] != n or len(indices) != n:
        return False
    for i in range(n):
        if indices[i] <= before:
            return False
        before = indices[i]
        squares += data[i] * data[i]
    return before < n_features and squares <= largest * largest


@kernel
def are_labels(values: FloatArray, allow_missing: bool) -> bool:
    """Tell whether numbers are 0, 1, or missing if that is allowed."""
    n_wrong = 0
    for j in range(len(values)):
        value = values[j]
        n_wrong += int(value != 0.0) & int(value != 1.0) & int(value == value or not allow_missing)
    return n_wrong == 0


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
def dense_values(x: FloatArray, known: tuple[Any, ...], limits: tuple[float, float, float], values: Array) -> None:
    """Standardise a dense row, clip it at so many deviations, and append its random features."""
    (rows, mean, square, directions, length), (clip, constant, mean_absolute) = known, limits
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
def learn(
    weights: Array,
    gained: FloatArray,
    kept: Array,
    gained_kept: FloatArray,
    has_begun: BoolArray,
    places: IntArray,
    x: Array,
    is_sparse: bool,
    h: FloatArray,
    known: tuple[Any, ...],
    scores: Array,
    intercepts_after: FloatArray,
    intercept_gained_after: FloatArray,
) -> tuple[int, int]:
    """Compute the scores of a row and write what it teaches into ``weights`` and ``gained``.

    ``x`` are the row's values at its places: as they came if data is sparse, otherwise `dense_values`; ``known`` is
    what `labelrace.linear.single_rows` lists of the state. The rows of both arrays at these places are copied to
    ``kept`` and ``gained_kept`` first, if these have any rows, and ``has_begun`` then tells that the arrays are being
    changed. Written are also the scores, the intercepts and their precision. Returns the number of columns that are in
    use for the first time, or `NEW_LABEL` or `OVERFLOW`, and then neither array is changed; and how many values are not
    zero.
    """
    first_rows, young, intercepts, intercept_gained, alpha, keep, fading, after_fading, prior = known
    n, n_labels, total = len(x), len(h), 0.0
    values = np.empty(n, weights.dtype)
    n_filled = sparse_values(x, values) if is_sparse else n
    if not is_sparse:
        values[:] = x
    for j in range(n_labels):
        if h[j] > 0.0 and first_rows[j] == np.inf:
            return NEW_LABEL, n_filled
        scores[j] = intercepts_after[j] = intercepts[j]
    for i in range(n):
        value, row = values[i], weights[places[i]]
        if len(kept):
            before = kept[i]
            for j in range(n_labels):
                before[j] = row[j]
                scores[j] += value * row[j]
            gained_kept[i, 0], gained_kept[i, 1] = gained[places[i], 0], gained[places[i], 1]
        else:
            for j in range(n_labels):
                scores[j] += value * row[j]
    after = np.empty((2, n))
    directions, pulls = np.empty((2, n), values.dtype), np.zeros((2, n_labels), values.dtype)
    n_generations = 2 if young.any() else 1
    for generation in range(2):
        for i in range(n):
            after[generation, i] = gained[places[i], generation] * (fading * keep)
        intercept_gained_after[generation] = intercept_gained[generation] * keep
    for generation in range(n_generations):
        freedom = 1.0 / (prior + intercept_gained_after[generation])
        middle = freedom + 1.0
        for i in range(n):
            z = np.float64(values[i])
            middle += z * z / (after[generation, i] + alpha)
        for i in range(n):
            z, precision = np.float64(values[i]), after[generation, i] + alpha
            directions[generation, i] = z / precision
            after[generation, i] += z * z / (middle - z * z / precision)
        intercept_gained_after[generation] = 1.0 / (freedom * (1.0 - freedom / middle)) - prior
        for j in range(n_labels):
            # Scores beyond their target are no error, nor are those of labels that are not known.
            error = h[j] - scores[j]
            if young[j] == (generation == 1) and (error > 0.0 if h[j] > 0.0 else error < 0.0):
                pulls[generation, j] = error / middle
                intercepts_after[j] += freedom * pulls[generation, j]
    for j in range(n_labels):
        total += intercepts_after[j]
    if not np.isfinite(total):
        return OVERFLOW, n_filled
    has_begun[0] = True
    n_used = 0
    for i in range(n):
        row, in_use_before = weights[places[i]], gained[places[i], 0] != 0.0
        for generation in range(n_generations):
            direction, pull = directions[generation, i], pulls[generation]
            for j in range(n_labels):
                row[j] += direction * pull[j]
        for generation in range(2):
            gained[places[i], generation] = after[generation, i] / after_fading
        n_used += int(gained[places[i], 0] != 0.0) - int(in_use_before)
    return n_used, n_filled


@kernel
def learn_unchecked(
    weights: Array,
    gained: FloatArray,
    kept: Array,
    gained_kept: FloatArray,
    has_begun: BoolArray,
    places: IntArray,
    x: Array,
    starts: IntArray,
    h: FloatArray,
    n_features: int,
    largest: float,
    known: tuple[Any, ...],
    waiting: FloatArray,
    place: int,
    intercepts_after: FloatArray,
    intercept_gained_after: FloatArray,
) -> tuple[int, int]:
    """Do as `learn` with a sparse row that has not been checked; scores and labels are written into a buffer of rows.

    Refused is what is not in order, and a row whose first label is not known, as then perhaps none is.
    """
    if h[0] != h[0] or not (is_in_order(x, places, starts, n_features, largest) and are_labels(h, True)):
        return REFUSED, 0
    scores = np.empty(len(h), weights.dtype)
    written = scores, intercepts_after, intercept_gained_after
    learned = learn(weights, gained, kept, gained_kept, has_begun, places, x, True, h, known, *written)
    for j in range(len(h)):
        waiting[0, place, j], waiting[1, place, j] = scores[j], h[j]
    return learned


@kernel
def moments(
    x: FloatArray, known: tuple[Any, ...], forgetting: float, limits: tuple[float, float, float], after: FloatArray
) -> float:
    """Add a row to the running moments of columns, and to the recent ones; return the sum of all squares.

    Written are rows, means, squares, recent means and recent squares.
    """
    rows, mean, square, recent_rows, recent_mean, recent_square = known
    total, (fewest_rows, outlier, constant) = 0.0, limits
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
