"""The loops of one row, to be compiled: what `labelrace.learners.single_rows` has in NumPy beside them.

A row is a few thousand multiplications, and in NumPy most of its time goes into some hundred calls. Numbers that other
modules have settled are arguments: a compiled loop that is kept on disk would not notice that they have changed.
"""

from __future__ import annotations

import numpy as np

from labelrace.core.compiled import kernel
from labelrace.typing import Array, BoolArray, FloatArray, IntArray

__all__ = ["add_products", "brings_new", "dense_row", "learn", "moments", "sparse_row", "with_products"]


@kernel
def sparse_row(data: FloatArray, weights: Array, intercepts: FloatArray) -> tuple[Array, Array, int]:
    """Damp a sparse row and scale it to length one; compute its scores, and count what is not zero."""
    n, n_labels, n_filled, squares = len(data), weights.shape[1], 0, 0.0
    damped, values = np.empty(n), np.empty(n, weights.dtype)
    for i in range(n):
        n_filled += data[i] != 0.0
        # What is missing is zero.
        damped[i] = np.copysign(np.log1p(abs(data[i])), data[i]) if data[i] == data[i] else 0.0
        squares += damped[i] * damped[i]
    ratio = 1.0 / np.sqrt(squares) if squares > 0.0 else 1.0
    scores = intercepts.astype(weights.dtype)
    for i in range(n):
        values[i] = damped[i] * ratio
        for j in range(n_labels):
            scores[j] += values[i] * weights[i, j]
    return values, scores, n_filled


@kernel
def dense_row(
    x: FloatArray,
    mean: FloatArray,
    scales: FloatArray,
    directions: Array,
    weights: Array,
    intercepts: FloatArray,
    most: float,
    mean_absolute: float,
) -> tuple[Array, Array]:
    """Standardise a dense row, clip it at ``most`` and append its random features; compute its scores."""
    n, n_random = directions.shape
    n_labels = weights.shape[1]
    values = np.zeros(n + n_random, weights.dtype)
    for i in range(n):
        standardised = (x[i] - mean[i]) * (1.0 / scales[i])
        # What is missing is the mean.
        values[i] = min(max(standardised, -most), most) if standardised == standardised else 0.0
        for j in range(n_random):
            values[n + j] += values[i] * directions[i, j]
    for j in range(n, n + n_random):
        values[j] = (abs(values[j]) - mean_absolute) * n_random**-0.5
    scores = intercepts.astype(weights.dtype)
    for i in range(n + n_random):
        for j in range(n_labels):
            scores[j] += values[i] * weights[i, j]
    return values, scores


@kernel
def brings_new(first_rows: FloatArray, h: FloatArray) -> bool:
    """Tell whether a label is present for the first time."""
    found = False
    for j in range(len(h)):
        found |= h[j] > 0.0 and first_rows[j] == np.inf
    return found


@kernel
def learn(
    values: Array,
    scores: Array,
    h: FloatArray,
    gained: FloatArray,
    intercepts: FloatArray,
    intercept_gained: FloatArray,
    young: BoolArray,
    alpha: float,
    keep: float,
    fading: float,
    after_fading: float,
    prior: float,
) -> tuple[Array, Array, FloatArray, FloatArray, FloatArray, float, int]:
    """Compute what a row teaches: weights get the sum over generations of ``directions`` times ``pulls``.

    Also returns what it leaves of `gained`, the intercepts and theirs, the sum of the intercepts, which is not finite
    where one of them is not, and how many columns are in use for the first time. ``prior`` is the intercepts' penalty.
    """
    n, n_labels, n_generations, n_new, total = len(values), len(h), 2 if young.any() else 1, 0, 0.0
    directions, pulls = np.empty((n_generations, n), values.dtype), np.zeros((n_generations, n_labels), values.dtype)
    left, intercepts, intercepts_left = gained * (fading * keep), intercepts.copy(), intercept_gained * keep
    for generation in range(n_generations):
        freedom = 1.0 / (prior + intercepts_left[generation])
        middle = freedom + 1.0
        for i in range(n):
            z = np.float64(values[i])
            middle += z * z / (left[i, generation] + alpha)
        for i in range(n):
            z, precision = np.float64(values[i]), left[i, generation] + alpha
            directions[generation, i] = z / precision
            left[i, generation] += z * z / (middle - z * z / precision)
        intercepts_left[generation] = 1.0 / (freedom * (1.0 - freedom / middle)) - prior
        for j in range(n_labels):
            # Scores beyond their target are no error, nor are those of labels that are not known.
            error = h[j] - scores[j]
            if young[j] == (generation == 1) and (error > 0.0 if h[j] > 0.0 else error < 0.0):
                pulls[generation, j] = error / middle
                intercepts[j] += freedom * pulls[generation, j]
    for i in range(n):
        left[i, 0] /= after_fading
        left[i, 1] /= after_fading
        n_new += (left[i, 0] != 0.0) - (gained[i, 0] != 0.0)
    for j in range(n_labels):
        total += intercepts[j]
    return directions, pulls, left, intercepts, intercepts_left, total, n_new


@kernel
def add_products(weights: Array, places: IntArray, directions: Array, pulls: Array) -> None:
    """Add the products of two vectors for each generation to some rows of an array, in place."""
    for generation in range(len(directions)):
        direction, pull = directions[generation], pulls[generation]
        for i in range(len(places)):
            # Of vectors, unlike of entries of matrices, several are added at once.
            row, step = weights[places[i]], direction[i]
            for j in range(len(pull)):
                row[j] += step * pull[j]


@kernel
def with_products(weights: Array, directions: Array, pulls: Array) -> Array:
    """Add the products of two vectors for each generation to a copy of an array."""
    summed = weights.copy()
    for generation in range(len(directions)):
        direction, pull = directions[generation], pulls[generation]
        for i in range(len(direction)):
            row, step = summed[i], direction[i]
            for j in range(len(pull)):
                row[j] += step * pull[j]
    return summed


@kernel
def moments(
    x: FloatArray,
    known: tuple[FloatArray, FloatArray, FloatArray],
    recent: tuple[float, FloatArray, FloatArray],
    forgetting: float,
    fewest_rows: float,
    outlier: float,
    constant: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Add a row to the running moments of columns, and to the recent ones; last is the sum of all squares."""
    (rows, mean, square), (n_recent, recent_mean, recent_square), total = known, recent, 0.0
    rows_after, mean_after, square_after = rows * forgetting, mean.copy(), square * forgetting
    recent_mean, recent_square = recent_mean.copy(), recent_square.copy()
    for i in range(len(x)):
        value = x[i]
        if value != value:
            # A missing value counts as the mean so far, and so changes nothing.
            value = mean[i] if rows[i] > 0.0 else 0.0
        step = value - recent_mean[i]
        recent_mean[i] += step / (n_recent + 1.0)
        recent_square[i] += step * step * (n_recent / (n_recent + 1.0))
        apart, least = value - mean[i], constant * abs(mean[i])
        if rows[i] >= fewest_rows and square[i] <= least * least * rows[i] and abs(apart) > least:
            # The moments of a column that has been constant begin with the first row that differs.
            rows_after[i], mean_after[i], square_after[i] = 1.0, value, 0.0
        else:
            if rows[i] >= fewest_rows and square[i] > 0.0:
                most = outlier * np.sqrt(square[i] / rows[i])
                apart = min(max(apart, -most), most)
            square_after[i] += apart * apart * (rows_after[i] / (rows_after[i] + 1.0))
            rows_after[i] += 1.0
            mean_after[i] += apart / rows_after[i]
        total += square_after[i]
    return rows_after, mean_after, square_after, recent_mean, recent_square, total
