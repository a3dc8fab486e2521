"""Linear models in the leaves of a tree, on features that are standardised by statistics of the whole tree.

A leaf's weights learn by recursive least squares whose precision matrix is kept as its diagonal ``D``, a block of rows
at a time: ``w ← w + D⁻¹Zᵀ (Z D⁻¹Zᵀ + I)⁻¹ (Y - Z w)``. One block from nothing is ridge regression; a label that is
always absent leaves its weights 0. Each label is predicted by the model or by the leaf's mean, whichever has had the
smaller absolute error, of which recent rows count more.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.base.moments import merge_moments
from labelrace.base.sparse import dense
from labelrace.typing import AnyMatrix, FloatArray

# What is left of an error when the next row has come.
_DECAY = 0.95
# Rows learned at once, at most: what is inverted is as large.
_BLOCK = 128
# Penalty on the squared weights.
_PENALTY = 10.0


class FeatureMoments(NamedTuple):
    """Statistics of the features over all rows."""

    rows: Annotated[FloatArray, ""]
    # Mean and sum of squared deviations.
    mean: Annotated[FloatArray, "m|0"]
    spread: Annotated[FloatArray, "m|0"]


class LeafModel(NamedTuple):
    """The linear model of a leaf."""

    weights: Annotated[FloatArray, "m+1 l|0 l"]  # the intercepts are last
    precision: Annotated[FloatArray, "m+1|0"]  # ``diag(ZᵀZ)`` so far
    errors: Annotated[FloatArray, "2 l"]  # decayed absolute errors of the mean and of the model


def empty(n_features: int, n_labels: int) -> LeafModel:
    """Make a model that has seen nothing; -1 features are none, not even an intercept."""
    return LeafModel(np.zeros((n_features + 1, n_labels)), np.zeros(n_features + 1), np.zeros((2, n_labels)))


def add_rows(moments: FeatureMoments, X: AnyMatrix) -> FeatureMoments:
    """Add rows to the statistics of the features."""
    X = dense(X)
    mean = X.mean(axis=0)
    rows, mean, spread = merge_moments(*moments, float(len(X)), mean, np.square(X - mean).sum(axis=0))
    return FeatureMoments(np.asarray(rows), mean, spread)


def standardise(moments: FeatureMoments, X: AnyMatrix) -> FloatArray:
    """Centre features, divide them by their deviation, and put a one behind them; constant ones become 0."""
    deviation = np.sqrt(moments.spread / max(float(moments.rows), 1.0))
    varies = deviation > 1e-9 * np.abs(moments.mean)
    Z = (dense(X) - moments.mean) * (varies / np.where(varies, deviation, 1.0))
    # Far out, a feature must not speak louder than all others.
    return np.column_stack([np.clip(Z, -5.0, 5.0), np.ones(len(Z))])


def predict(model: LeafModel, mean: FloatArray, Z: FloatArray) -> FloatArray:
    """Predict each label by what has had the smaller error."""
    use = model.errors[1] < model.errors[0]
    result: FloatArray = np.where(use, Z @ model.weights, mean)
    return result


def update(model: LeafModel, mean: FloatArray, Z: FloatArray, Y: AnyMatrix) -> LeafModel:
    """Judge mean and model by rows, then learn them; ``mean`` is that of the leaf before them."""
    Y = dense(Y)
    for start in range(0, len(Z), _BLOCK):
        model = _update_block(model, mean, Z[start : start + _BLOCK], Y[start : start + _BLOCK])
    return model


def _update_block(model: LeafModel, mean: FloatArray, Z: FloatArray, Y: FloatArray) -> LeafModel:
    rest = Y - Z @ model.weights
    decay = _DECAY ** np.arange(len(Z) - 1, -1, -1)
    errors = np.stack([decay @ np.abs(Y - mean), decay @ np.abs(rest)])
    inverse = 1.0 / (model.precision + _PENALTY)
    system = (Z * inverse) @ Z.T
    system.flat[:: len(Z) + 1] += 1.0
    weights = model.weights + inverse[:, None] * (Z.T @ np.linalg.solve(system, rest))
    precision = model.precision + np.square(Z).sum(axis=0)
    return LeafModel(weights, precision, _DECAY ** len(Z) * model.errors + errors)
