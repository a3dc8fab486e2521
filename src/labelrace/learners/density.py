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
    parts = []
    for sums, squares, n in zip(*map(_by_class, (moments.sums, moments.squares, present)), strict=True):
        n = n + smoothing
        mu = (sums + smoothing * mean) / n
        # The imagined rows alone give this much: a bound that round-off must not cross.
        v = np.maximum((squares + smoothing * (safe + mean**2)) / n - mu**2, smoothing * safe / n)
        parts.append((varies / v, mu, v))
    (p1, mu1, v1), (p0, mu0, v0) = parts
    at_shift = -0.5 * (p1 * mu1**2 - p0 * mu0**2 + varies * np.log(v1 / v0))
    return LogOdds(moments.shift, p1 * mu1 - p0 * mu0, -0.5 * (p1 - p0), at_shift, at_shift.sum(axis=0))


def _by_class(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Separate class 1 from class 0."""
    ones = sums[:, :-1]
    return ones, sums[:, -1:] - ones


def predict(odds: LogOdds, X: AnyMatrix) -> FloatArray:
    """Add up the log odds of all features; what is missing adds nothing."""
    absent = columns.missing(X)
    if scipy.sparse.issparse(X):
        return _predict_sparse(odds, X, absent)
    Z = X - odds.shift
    if absent is not None:
        Z = columns.without(Z, absent)
    result = Z @ odds.linear
    result += np.square(Z, out=Z) @ odds.quadratic
    result += odds.constant
    if absent is not None:
        result -= absent @ odds.at_shift
    return result


def _predict_sparse(odds: LogOdds, X: AnyMatrix, absent: AnyMatrix | None) -> FloatArray:
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
