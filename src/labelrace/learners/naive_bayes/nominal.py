"""Nominal features in naive Bayes: counts of values, and the log odds they give.

The probability of a value is Laplace's ``(count + 1) / (n_c + V)``. The denominators cancel between a value and the
first one, so the log odds of all features are linear in the indicators of the values, and a batch costs one product.
Counts are kept for the rows in which a pseudo label is 1, and for all rows; class 0 is the difference.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import SUM
from labelrace.base.sparse import dense, weighted
from labelrace.learners import design
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Numbers worked on at once: intermediate results of this size stay in the processor's cache.
_BLOCK = 1 << 15
# Pseudo labels that are few.
_FEW = 32
# Ratios multiplied before a logarithm is taken. Counts up to 10⁹ cannot overflow: (10⁹)³² < 10³⁰⁸.
_PRODUCT = 32


class Counts(NamedTuple):
    """How often each value but the first of every feature occurred."""

    ones: Annotated[FloatArray, "i t", SUM]  # rows with the value in which the pseudo label is 1
    total: Annotated[FloatArray, "i", SUM]  # rows with the value
    # Rows in which the feature is missing and, in the last column, all such rows; None if nothing is missing.
    missing: Annotated[FloatArray | None, "j t+1", SUM]


class LogOdds(NamedTuple):
    """Log odds as a linear function of the indicators."""

    kinds: FeatureKinds
    weights: FloatArray  # (M, k): what a value adds, compared with the first value
    constant: FloatArray  # (k,): the log odds of a row that has the first value everywhere
    # What the above was derived from: rows with missing values need each feature's part of the constant.
    counts: Counts
    rows: FloatArray


def init(kinds: FeatureKinds, n_components: int) -> Counts:
    """Make the counts of features that have not occurred."""
    return Counts(np.zeros((kinds.n_indicators, n_components)), np.zeros(kinds.n_indicators), None)


def _starts(n_values: IntArray) -> IntArray:
    """Find the first indicator of each feature."""
    return np.cumsum(n_values - 1) - (n_values - 1)


def update(
    counts: Counts, kinds: FeatureKinds, codes: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None
) -> Counts:
    """Count the rows of a batch with their 0/1 pseudo labels."""
    absent = design.missing(codes)
    present = kinds.indicators(codes if absent is None else design.without(codes, absent))
    ones = counts.ones + dense(present.T @ weighted(H, row_weights))
    total = counts.total + weighted(present, row_weights).sum(axis=0)
    return Counts(ones, total, design.add_missing(counts.missing, absent, H, row_weights))


def log_odds(counts: Counts, kinds: FeatureKinds, rows: FloatArray) -> LogOdds:
    """Derive the log odds; ``rows`` counts the rows of each pseudo label and, last, all rows."""
    n_values = kinds.nominal_values
    if counts.missing is None and (n_values == 2).all():
        weights, constant = _binary(counts, rows)
        return LogOdds(kinds, weights, constant, counts, rows)
    owner = np.repeat(np.arange(len(n_values)), n_values - 1)
    ones, zeros = counts.ones, counts.total[:, None] - counts.ones
    first_ones, first_zeros, _, _ = _first_values(counts, n_values, rows)
    weights = np.log((ones + 1) * (first_zeros[owner] + 1) / ((zeros + 1) * (first_ones[owner] + 1)))
    constant = _first_log_odds(counts, n_values, rows).sum(axis=0)
    return LogOdds(kinds, weights, constant, counts, rows)


def _binary(counts: Counts, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Derive weights and constant of complete binary features, the case that must be fast.

    With ``a, b`` the counts of value 1 and ``p, q`` those of value 0 in the two classes, each plus one, the weights
    are ``log(aq/bp)`` and the constant sums ``log(p/q)``, up to the denominators: logarithms of products, as
    logarithms are what costs.
    """
    n_components = len(rows) - 1
    # Long rows are what NumPy is fast on: few pseudo labels go first, many go last.
    few = n_components < _FEW
    axis, column = (1, np.s_[:, None]) if few else (0, np.s_[None, :])
    ones, zeros = rows[:-1][column], (rows[-1] - rows[:-1])[column]
    weights = np.empty(counts.ones.shape)
    constant = len(counts.total) * np.log((zeros + 2) / (ones + 2)).ravel()
    size = max(1, _BLOCK // n_components)
    for start in range(0, len(weights), size):
        block = slice(start, start + size)
        a = np.add(counts.ones[block].T if few else counts.ones[block], 1.0, order="C")
        b = (counts.total[block] if few else counts.total[block, None]) + 2.0 - a
        ratio = ones + 2.0 - a
        ratio /= zeros + 2.0 - b
        a /= b
        a /= ratio
        np.log(a, out=a)
        weights[block] = a.T if few else a
        products = np.multiply.reduceat(ratio, np.arange(0, ratio.shape[axis], _PRODUCT), axis=axis)
        constant += np.log(products).sum(axis=axis)
    return weights, constant


def _first_values(
    counts: Counts, n_values: IntArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Count the first value of each feature in class 1 and class 0, and the rows of either in which it is present."""
    present = rows[None, :] if counts.missing is None else rows - counts.missing
    ones_rows, zeros_rows = present[:, :-1], present[:, -1:] - present[:, :-1]
    starts = _starts(n_values)
    ones = np.add.reduceat(counts.ones, starts, axis=0)
    zeros = np.add.reduceat(counts.total, starts)[:, None] - ones
    return ones_rows - ones, zeros_rows - zeros, ones_rows, zeros_rows


def _first_log_odds(counts: Counts, n_values: IntArray, rows: FloatArray) -> FloatArray:
    """Compute what the first value of each feature contributes, (J, k)."""
    ones, zeros, ones_rows, zeros_rows = _first_values(counts, n_values, rows)
    V = n_values[:, None]
    return np.log((ones + 1) * (zeros_rows + V) / ((zeros + 1) * (ones_rows + V)))


def predict(odds: LogOdds, codes: AnyMatrix) -> FloatArray:
    """Add up the log odds of all features; what is missing adds nothing."""
    absent = design.missing(codes)
    present = codes if absent is None else design.without(codes, absent)
    result = odds.kinds.indicators(present) @ odds.weights
    result += odds.constant
    if absent is not None:
        result -= absent @ _first_log_odds(odds.counts, odds.kinds.nominal_values, odds.rows)
    return result
