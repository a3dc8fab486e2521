"""How rows become points whose Euclidean distances are meant.

Numeric features are divided by their range in the first batch, so that a feature that was constant there does not
count, or taken as they are; nominal ones differ by 0 or 1.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import dense
from labelrace.learners import design as columns
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Coordinates beyond this have no square, nor have the inverses of widths below its inverse.
_FARTHEST = 1e100


class Scale(NamedTuple):
    """How features become coordinates."""

    n_values: Annotated[IntArray, "m", ">=0"]  # number of values of each nominal feature, 0 for a numeric one
    # What is subtracted from numeric features, and what they are divided by; features of width 0 do not count.
    low: Annotated[FloatArray, "m"]
    width: Annotated[FloatArray, "m", ">=0"]


def unit_scale(n_values: IntArray) -> Scale:
    """Make the scale that takes features as they are."""
    return Scale(n_values, np.zeros(len(n_values)), np.ones(len(n_values)))


def range_scale(n_values: IntArray, X: AnyMatrix) -> Scale:
    """Make the scale that divides each numeric feature by its range in ``X``, the first batch."""
    low, high = X.min(axis=0), X.max(axis=0)
    if scipy.sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    numeric = n_values == 0
    return Scale(n_values, np.where(numeric, low, 0.0), np.where(numeric, high - low, 1.0))


def grow_scale(scale: Scale, n_values: IntArray, width: float) -> Scale:
    """Add features that were 0 so far; ``width`` is what numeric ones are divided by."""
    new = columns.appended(scale.n_values, n_values)[len(scale.low) :]
    return Scale(
        np.concatenate([scale.n_values, new]),
        np.concatenate([scale.low, np.zeros(len(new))]),
        np.concatenate([scale.width, np.where(new > 0, 1.0, width)]),
    )


def to_points(scale: Scale, X: AnyMatrix, n_values: IntArray, *, sparse: bool) -> AnyMatrix:
    """Turn rows into points whose Euclidean distance is wanted, dense or sparse.

    ``n_values`` counts the values of nominal features, new ones included: more than two become indicators.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 7.0], [3.0, 7.0]])
    >>> to_points(range_scale(np.array([0, 0]), X), np.array([[2.0, 9.0]]), np.array([0, 0]), sparse=False)
    array([[0.5, 0. ]])
    """
    # The inverse of less would be infinite.
    varies = scale.width > 1.0 / _FARTHEST
    inverse = np.divide(1.0, scale.width, out=np.zeros_like(scale.width), where=varies)
    if sparse:
        # Where all rows have the same origin it does not matter, and zeros stay zeros.
        result = scipy.sparse.csr_array(X)
        scaled = _clipped(result.data * inverse[result.indices])
        result = scipy.sparse.csr_array((scaled, result.indices, result.indptr), X.shape)
    else:
        result = _clipped((dense(X) - scale.low) * inverse)
    many = np.flatnonzero(n_values > 2)
    if not len(many):
        return result
    result = result[:, np.setdiff1d(np.arange(len(n_values)), many)]
    codes = dense(X[:, many])
    # Where two codes differ, two indicators do. Each is there twice, as a half: four quarters are one exactly.
    parts = [0.5 * (codes[:, [i]] == np.tile(np.arange(n_values[j]), 2)) for i, j in enumerate(many)]
    if sparse:
        return scipy.sparse.hstack([result, *parts], format="csr")
    return np.hstack([result, *parts])


def _clipped(values: FloatArray) -> FloatArray:
    """Clip coordinates, in place, to what has a square."""
    return np.clip(values, -_FARTHEST, _FARTHEST, out=values)
