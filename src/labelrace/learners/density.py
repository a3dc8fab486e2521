"""Gaussian features in naive Bayes by their density: the fast form.

With a mean ``μ`` and a variance ``v`` for each class, the log odds of a feature are a parabola in its value, and those
of all features and pseudo labels are two products, ``Z W₁ + Z² W₂ + c`` with ``Z = X - shift``.

Every class starts with a few imagined rows (``smoothing`` of them) that look like all rows: they have the feature's
overall mean and variance. So a class seen once has a finite variance, a class never seen says nothing, and whether the
rows came in one batch or in many does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.learners import columns
from labelrace.learners.moments import Moments, present_rows
from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["LogOdds", "log_odds", "predict"]

# A feature whose variance is below this share of its mean square is constant but for round-off.
_CONSTANT = 1e-12


class LogOdds(NamedTuple):
    """Parabolas of the shifted values.

    Attributes
    ----------
    shift : (d,) array
        What is subtracted from each feature first.
    linear, quadratic : (d, k) arrays
        ``W₁`` and ``W₂``.
    at_shift : (d, k) array
        The log odds of a feature where it equals its shift.
    constant : (k,) array
        The sum of ``at_shift``.
    """

    shift: FloatArray
    linear: FloatArray
    quadratic: FloatArray
    at_shift: FloatArray
    constant: FloatArray


def log_odds(moments: Moments, rows: FloatArray, smoothing: float) -> LogOdds:
    """Derive the parabolas; ``rows`` counts the rows of each pseudo label and, last, all rows."""
    present = present_rows(moments, rows)
    n_all = np.maximum(present[:, -1:], 1.0)
    mean, mean_square = moments.sums[:, -1:] / n_all, moments.squares[:, -1:] / n_all
    variance = mean_square - mean**2
    varies = variance > _CONSTANT * mean_square
    safe = np.where(varies, variance, 1.0)
    n = _by_class(present) + smoothing
    mu = (_by_class(moments.sums) + smoothing * mean) / n
    v = (_by_class(moments.squares) + smoothing * (safe + mean**2)) / n - mu**2
    # The imagined rows alone give this much: a bound that round-off must not cross.
    np.maximum(v, smoothing * safe / n, out=v)
    weights = varies / v
    pull = weights * mu
    at_shift = pull * mu + varies * np.log(v)
    at_shift = 0.5 * (at_shift[0] - at_shift[1])
    return LogOdds(moments.shift, pull[1] - pull[0], 0.5 * (weights[0] - weights[1]), at_shift, at_shift.sum(axis=0))


def _by_class(sums: FloatArray) -> FloatArray:
    """Separate class 0 from class 1: ``(2, d, k)``."""
    ones = sums[:, :-1]
    return np.stack([sums[:, -1:] - ones, ones])


def predict(odds: LogOdds, X: AnyMatrix) -> FloatArray:
    """Add up the log odds of all features; what is missing adds nothing."""
    add_up = _add_up_sparse if scipy.sparse.issparse(X) else _add_up_dense
    result = add_up(odds, X, None)
    # A missing value makes its row of the result NaN: most batches need not be searched for one.
    if np.isnan(result[:, 0]).any() and (absent := columns.missing(X)) is not None:
        return add_up(odds, X, absent)
    return result


def _add_up_dense(odds: LogOdds, X: FloatArray, absent: FloatArray | None) -> FloatArray:
    Z = X - odds.shift if odds.shift.any() else X
    if absent is not None:
        Z = columns.without(Z, absent)
    result = Z @ odds.linear
    result += (Z * Z) @ odds.quadratic
    result += odds.constant
    return result if absent is None else result - absent @ odds.at_shift


def _add_up_sparse(odds: LogOdds, X: AnyMatrix, absent: AnyMatrix | None) -> FloatArray:
    """Multiply the parabolas out about zero, so that a zero adds a constant and X stays sparse."""
    linear, at_zero, constant = odds.linear, odds.at_shift, odds.constant
    if odds.shift.any():
        shift = odds.shift[:, None]
        at_zero = at_zero - shift * linear + shift**2 * odds.quadratic
        linear = linear - 2 * shift * odds.quadratic
        constant = at_zero.sum(axis=0)
    present = X if absent is None else columns.without(X, absent)
    result = present @ linear + (present * present) @ odds.quadratic + constant
    return result if absent is None else result - absent @ at_zero
