"""Linear models in the leaves of a tree, on features that are standardised by statistics of the whole tree.

A leaf's weights learn by recursive least squares whose precision matrix is kept as its diagonal ``D``, a block of rows
at a time: ``w ← w + D⁻¹Zᵀ (Z D⁻¹Zᵀ + I)⁻¹ (Y - Z w)``. One block from nothing is ridge regression; a label that is
always absent leaves its weights 0. Each label is predicted by the model or by the leaf's mean, whichever has had the
smaller absolute error, of which recent rows count more.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.base.sparse import dense
from labelrace.typing import AnyMatrix, FloatArray

# What is left of an error when the next row has come.
_FADING = 0.95
# Rows learned at once, at the most: what is inverted is as large.
_BLOCK = 128
# Penalty on the squared weights.
_PENALTY = 10.0


class Inputs(NamedTuple):
    """Statistics of the features over all rows."""

    rows: Annotated[FloatArray, ""]
    # Mean and sum of squared deviations.
    mean: Annotated[FloatArray, "m|0"]
    spread: Annotated[FloatArray, "m|0", "with mean"]


class Linear(NamedTuple):
    """The model of a leaf."""

    weights: Annotated[FloatArray, "m+1 l|0 l"]  # the intercepts are last
    precision: Annotated[FloatArray, "m+1|0", "with weights"]  # ``diag(ZᵀZ)`` so far
    errors: Annotated[FloatArray, "2 l"]  # faded absolute errors of the mean and of the model


def empty(n_features: int, n_labels: int) -> Linear:
    """Make a model that has seen nothing; -1 features are none, not even an intercept."""
    return Linear(np.zeros((n_features + 1, n_labels)), np.zeros(n_features + 1), np.zeros((2, n_labels)))


def inputs(before: Inputs, X: AnyMatrix) -> Inputs:
    """Add rows to the statistics of the features."""
    X = dense(X)
    new, mean = float(len(X)), X.mean(axis=0)
    gap, total = mean - before.mean, before.rows + new
    spread = before.spread + np.square(X - mean).sum(axis=0) + gap * gap * (before.rows * new / total)
    return Inputs(np.asarray(total), before.mean + gap * (new / total), spread)


def standardised(statistics: Inputs, X: AnyMatrix) -> FloatArray:
    """Centre features, divide them by their deviation, and put a one behind them; constant ones become 0."""
    deviation = np.sqrt(statistics.spread / max(float(statistics.rows), 1.0))
    varies = deviation > 1e-9 * np.abs(statistics.mean)
    Z = (dense(X) - statistics.mean) * (varies / np.where(varies, deviation, 1.0))
    # Far out, a feature must not speak louder than all others.
    return np.column_stack([np.clip(Z, -5.0, 5.0), np.ones(len(Z))])


def values(linear: Linear, mean: FloatArray, Z: FloatArray) -> FloatArray:
    """Predict each label by what has had the smaller error."""
    use = linear.errors[1] < linear.errors[0]
    result: FloatArray = np.where(use, Z @ linear.weights, mean)
    return result


def learned(linear: Linear, mean: FloatArray, Z: FloatArray, Y: AnyMatrix) -> Linear:
    """Judge mean and model by rows, then learn them; ``mean`` is that of the leaf before them."""
    Y = dense(Y)
    for start in range(0, len(Z), _BLOCK):
        linear = _learned_block(linear, mean, Z[start : start + _BLOCK], Y[start : start + _BLOCK])
    return linear


def _learned_block(linear: Linear, mean: FloatArray, Z: FloatArray, Y: FloatArray) -> Linear:
    rest = Y - Z @ linear.weights
    fading = _FADING ** np.arange(len(Z) - 1, -1, -1)
    errors = np.stack([fading @ np.abs(Y - mean), fading @ np.abs(rest)])
    inverse = 1.0 / (linear.precision + _PENALTY)
    system = (Z * inverse) @ Z.T
    system.flat[:: len(Z) + 1] += 1.0
    weights = linear.weights + inverse[:, None] * (Z.T @ np.linalg.solve(system, rest))
    precision = linear.precision + np.square(Z).sum(axis=0)
    return Linear(weights, precision, _FADING ** len(Z) * linear.errors + errors)


def grow_labels(linear: Linear, n_new: int) -> Linear:
    """Add labels that were absent so far."""
    wider = ((0, 0), (0, n_new))
    return linear._replace(weights=np.pad(linear.weights, wider), errors=np.pad(linear.errors, wider))


def grow_features(linear: Linear, n_features: int) -> Linear:
    """Add features that were 0 so far; the intercepts stay last."""
    last = len(linear.precision) - 1
    new = [last] * (n_features - last)
    return linear._replace(
        weights=np.insert(linear.weights, new, 0.0, axis=0), precision=np.insert(linear.precision, new, 0.0)
    )
