"""How rows become points whose Euclidean distances are meant.

Numeric features are divided by their range in the first batch, so that a feature that was constant there does not
count, or taken as they are; nominal ones differ by 0 or 1.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.sparse import dense
from labelrace.typing import AnyMatrix, BoolArray, FloatArray

# Coordinates beyond this have no square, nor have the inverses of widths below its inverse.
_FARTHEST = 1e100


class Scale(NamedTuple):
    """How features become coordinates."""

    # What is subtracted from numeric features, and what they are divided by; features of width 0 do not count.
    low: Annotated[FloatArray, "m"]
    width: Annotated[FloatArray, "m"]


def unit_scale(n_features: int) -> Scale:
    """Make the scale that takes features as they are."""
    return Scale(np.zeros(n_features), np.ones(n_features))


def range_scale(is_numeric: BoolArray, X: AnyMatrix) -> Scale:
    """Make the scale that divides each numeric feature by its range in ``X``, the first batch."""
    low, high = X.min(axis=0), X.max(axis=0)
    if scipy.sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return Scale(np.where(is_numeric, low, 0.0), np.where(is_numeric, high - low, 1.0))


def take(scale: Scale, moves: Moves, new_width: float) -> Scale:
    """Move features; new ones have been 0, and numeric ones of them are divided by ``new_width``."""
    taken: Scale = growth.take(scale, moves)
    if moves.kinds is None:
        return taken
    width = np.where(moves.kinds.n_values > 0, 1.0, new_width)
    return taken._replace(width=np.where(moves.sources["m"] < 0, width, taken.width))


def to_points(scale: Scale, X: AnyMatrix, kinds: FeatureKinds, *, sparse: bool) -> AnyMatrix:
    """Turn rows into points whose Euclidean distance is wanted, dense or sparse.

    Nominal features with more than two values become indicators.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 7.0], [3.0, 7.0]])
    >>> scale = range_scale(np.array([True, True]), X)
    >>> to_points(scale, np.array([[2.0, 9.0]]), FeatureKinds.numbers(2), sparse=False)
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
    many = np.flatnonzero(kinds.n_values > 2)
    if not len(many):
        return result
    result = result[:, np.setdiff1d(np.arange(len(kinds)), many)]
    codes = dense(X[:, many])
    # Where two codes differ, two indicators do. Each is there twice, as a half: four quarters are one exactly.
    parts = [0.5 * (codes[:, [i]] == np.tile(np.arange(kinds.n_values[j]), 2)) for i, j in enumerate(many)]
    if sparse:
        return scipy.sparse.hstack([result, *parts], format="csr")
    return np.hstack([result, *parts])


def _clipped(values: FloatArray) -> FloatArray:
    """Clip coordinates, in place, to what has a square."""
    return np.clip(values, -_FARTHEST, _FARTHEST, out=values)
