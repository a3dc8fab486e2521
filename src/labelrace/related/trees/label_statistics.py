"""What a leaf knows of the features of each label's rows, and the splits that follow from it.

For every label, and if wanted for all rows, a numeric feature has count, mean, sum of squared deviations, least and
largest value; a nominal one counts of its values. The numbers of a label's rows on either side of a threshold are
estimated by a normal distribution, within the values that occurred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.moments import merge_moments
from labelrace.base.sparse import dense
from labelrace.related import stacked_states
from labelrace.related.trees.tree import AT_MOST, EACH_VALUE, ONE_VALUE
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Thresholds that are tried between a feature's least and largest value.
_THRESHOLDS = 10
# Each of at least two branches must have more than this share.
_LEAST_SHARE = 0.01
# Numbers gathered at once.
_CELLS = 2**22


class Statistics(NamedTuple):
    """Sums of the features over each label's rows; all rows, if they are counted, are one more label, the last."""

    rows: Annotated[FloatArray, "c"]  # rows of each label
    # Mean, sum of squared deviations, least and largest value of each numeric feature.
    mean: Annotated[FloatArray, "c d"]
    spread: Annotated[FloatArray, "c d"]
    low: Annotated[FloatArray, "c d", "new inf"]
    high: Annotated[FloatArray, "c d", "new -inf"]
    counts: Annotated[FloatArray, "c i"]  # rows with each value but the first of every nominal feature


class Leaf(NamedTuple):
    """What decides when and how a leaf splits; in a state, of all leaves, stacked."""

    mass: Annotated[FloatArray, "l"]  # rows with each label, those that the leaf began with included
    rows: Annotated[FloatArray, ""]  # rows, likewise
    tried: Annotated[FloatArray, ""]  # the leaf's weight when a split was last tried
    statistics: Statistics  # those of the features, over the rows that came since the leaf began


def empty(kinds: FeatureKinds, n_columns: int) -> Statistics:
    """Make the statistics of no rows."""
    shape = (n_columns, kinds.n_numeric)
    zeros = np.zeros(shape)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    return Statistics(np.zeros(n_columns), zeros, zeros, low, high, np.zeros((n_columns, kinds.n_indicators)))


def update(
    statistics: Statistics, X: AnyMatrix, Y: AnyMatrix, kinds: FeatureKinds, *, in_order: bool = False
) -> Statistics:
    """Add rows; ``Y`` is in compressed columns, with a column of ones last if all rows are counted.

    All rows are added at once. With ``in_order`` they are added one after the other, which is slower and gives the same
    numbers to the last digits, in which they are then those of programs that learn row by row.
    """
    seen = np.flatnonzero(np.diff(Y.indptr))
    if not len(seen):
        return statistics
    rows = statistics.rows.copy()
    rows[seen] += np.diff(Y.indptr)[seen]
    counts = statistics.counts
    if not kinds.all_numeric:
        counts = counts + dense(Y.T @ kinds.indicators(kinds.nominal(X)))
    parts = [part.copy() for part in statistics[1:5]]
    if not kinds.all_nominal:
        for block, values in _blocks(kinds.numeric(X), Y.nnz):
            if in_order:
                _add_in_order(parts, block, statistics.rows.copy(), values, Y.tocsr())
            else:
                _add(parts, block, statistics.rows[seen], values, Y, seen)
            _extend(parts, block, values[Y.indices], Y.indptr[seen], seen)
    mean, spread, low, high = parts
    return Statistics(rows, mean, spread, low, high, counts)


def _blocks(X: AnyMatrix, n_gathered: int) -> Iterator[tuple[slice, FloatArray]]:
    """Cut dense blocks of columns of a bounded size."""
    size = max(1, _CELLS // max(1, n_gathered))
    X = X.tocsc() if scipy.sparse.issparse(X) else X
    for start in range(0, X.shape[1], size):
        block = slice(start, start + size)
        yield block, dense(X[:, block])


def _add(
    parts: list[FloatArray], block: slice, before: FloatArray, X: FloatArray, Y: AnyMatrix, seen: IntArray
) -> None:
    """Add rows to the means of a block of features, written in place; ``before`` counts the rows there were."""
    starts, new = Y.indptr[seen], np.diff(Y.indptr)[seen].astype(float)[:, None]
    gathered = X[Y.indices]
    mean = np.add.reduceat(gathered, starts, axis=0) / new
    deviation = gathered - np.repeat(mean, new[:, 0].astype(np.intp), axis=0)
    spread = np.add.reduceat(deviation * deviation, starts, axis=0)
    means, spreads = (part[:, block] for part in parts[:2])
    _, means[seen], spreads[seen] = merge_moments(before[:, None], means[seen], spreads[seen], new, mean, spread)


def _add_in_order(parts: list[FloatArray], block: slice, rows: FloatArray, X: FloatArray, Y: AnyMatrix) -> None:
    """Add rows one after the other by Welford's recursion; ``rows``, written in place, counts those there were."""
    means, spreads = (part[:, block] for part in parts[:2])
    for x, start, stop in zip(X, Y.indptr[:-1], Y.indptr[1:], strict=True):
        labels = Y.indices[start:stop]
        rows[labels] += 1.0
        mean = means[labels]
        gap = x - mean
        mean += gap / rows[labels, None]
        means[labels] = mean
        spreads[labels] += gap * (x - mean)


def _extend(parts: list[FloatArray], block: slice, gathered: FloatArray, starts: IntArray, seen: IntArray) -> None:
    """Take the rows of each label, one label after the other, into the least and largest values, written in place."""
    lows, highs = (part[:, block] for part in parts[2:])
    lows[seen] = np.minimum(lows[seen], np.minimum.reduceat(gathered, starts, axis=0))
    highs[seen] = np.maximum(highs[seen], np.maximum.reduceat(gathered, starts, axis=0))


def take(leaves: Leaf, moves: Moves) -> Leaf:
    """Move labels and features of stacked leaves; new labels were absent so far, and new features 0."""
    return stacked_states.take(_take_leaf, leaves, moves)


def _take_leaf(leaf: Leaf, moves: Moves) -> Leaf:
    taken: Leaf = growth.take(leaf, moves)
    features = moves.source("d", leaf.statistics.low.shape[1])
    if features is None:
        return taken
    statistics = taken.statistics
    is_zero = np.logical_and.outer(statistics.rows > 0, features < 0)
    low, high = (np.where(is_zero, 0.0, part) for part in (statistics.low, statistics.high))
    return taken._replace(statistics=statistics._replace(low=low, high=high))


Entropy = Callable[[FloatArray], FloatArray]
"""Turns rows of each label, along the first axis, into a branch's entropy; 0 for an empty branch."""


class BestSplits(NamedTuple):
    """The best split on each feature."""

    merit: FloatArray  # (m,): its gain; minus infinity if there is none
    # (m,): the question, as a `Split` has it.
    kind: FloatArray
    threshold: FloatArray


def best_splits(
    statistics: Statistics, kinds: FeatureKinds, whole: float, weigh: Entropy, entropy: Entropy
) -> BestSplits:
    """Find the best split on each feature.

    Parameters
    ----------
    statistics : Statistics
        What the leaf knows.
    kinds : FeatureKinds
        The kinds of the features.
    whole : float
        The entropy of the leaf.
    weigh, entropy : callables
        Turn rows of each label, along the first axis, into the weight and the entropy of a branch.
    """

    def gain(branches: FloatArray) -> FloatArray:
        """Compare splits whose branches stand along the last axis; minus infinity if one branch has nearly all."""
        weights = weigh(branches)
        total = weights.sum(axis=-1, keepdims=True)
        shares = weights / np.where(total > 0, total, 1.0)
        gains = whole - (shares * entropy(branches)).sum(axis=-1)
        return np.where((shares > _LEAST_SHARE).sum(axis=-1) >= 2, gains, -np.inf)

    best_of = BestSplits(np.full(len(kinds), -np.inf), np.full(len(kinds), AT_MOST), np.zeros(len(kinds)))
    numeric = kinds.numeric_features
    size = max(1, _CELLS // (20 * len(statistics.rows)))
    for start in range(0, len(numeric), size):
        block = slice(start, start + size)
        thresholds, inside = _thresholds(statistics, block)
        merit = np.where(inside, gain(_sides(statistics, block, thresholds)), -np.inf)
        best, at = merit.argmax(axis=1), np.arange(len(merit))
        best_of.merit[numeric[block]], best_of.threshold[numeric[block]] = merit[at, best], thresholds[at, best]
    for features, values in kinds.value_groups:
        counts = _value_counts(statistics, values - len(numeric))
        merit, kind, threshold = gain(counts), EACH_VALUE, np.full(len(features), float(counts.shape[2]))
        best_of.merit[features], best_of.kind[features], best_of.threshold[features] = merit, kind, threshold
        if counts.shape[2] > 2:
            against = gain(_against_the_rest(counts))
            value, at = against.argmax(axis=1), np.arange(len(against))
            better = against[at, value] > merit
            chosen = features[better]
            best_of.merit[chosen], best_of.kind[chosen] = against[at, value][better], ONE_VALUE
            best_of.threshold[chosen] = value[better]
    return best_of


def branches(statistics: Statistics, kinds: FeatureKinds, feature: int, kind: float, threshold: float) -> FloatArray:
    """Compute the rows of each label, (branches, K), that a split expects in its branches."""
    if kind == AT_MOST:
        column = int(np.searchsorted(kinds.numeric_features, feature))
        sides = _sides(statistics, slice(column, column + 1), np.full((1, 1), threshold))
        return np.ascontiguousarray(sides[:, 0, 0].T)
    first = FeatureKinds(kinds.n_values[:feature]).n_indicators
    counts = _value_counts(statistics, first + np.arange(kinds.n_values[feature] - 1)[None])
    if kind == ONE_VALUE:
        counts = _against_the_rest(counts)[:, :, int(threshold)]
    return np.ascontiguousarray(counts[:, 0].T)


def _thresholds(statistics: Statistics, block: slice) -> tuple[FloatArray, BoolArray]:
    """Spread thresholds between the least and the largest value, (d, 10), and mark those between them."""
    low, high = statistics.low[:, block].min(axis=0)[:, None], statistics.high[:, block].max(axis=0)[:, None]
    occurred = low <= high
    low, high = np.where(occurred, low, 0.0), np.where(occurred, high, 0.0)
    thresholds = (high - low) / (_THRESHOLDS + 1.0) * np.arange(1, _THRESHOLDS + 1) + low
    return thresholds, (thresholds > low) & (thresholds < high)


def _sides(statistics: Statistics, block: slice, thresholds: FloatArray) -> FloatArray:
    """Estimate the rows of each label on either side of thresholds, (K, d, thresholds, 2)."""
    seen = np.flatnonzero(statistics.rows)
    rows = statistics.rows[seen]
    mean, spread, low, high = (part[seen, block][:, :, None] for part in statistics[1:5])
    deviation = np.sqrt(spread / np.maximum(rows - 1.0, 1.0)[:, None, None])
    varies = deviation > 0
    share = ndtr((thresholds - mean) / np.where(varies, deviation, 1.0))
    share = np.where(varies, share, thresholds >= mean)
    share = np.where(thresholds < low, 0.0, np.where(thresholds >= high, 1.0, share))
    left = np.zeros((len(statistics.rows), *thresholds.shape))
    left[seen] = rows[:, None, None] * share
    return np.stack([left, statistics.rows[:, None, None] - left], axis=-1)


def _value_counts(statistics: Statistics, indicators: IntArray) -> FloatArray:
    """Return the rows of each label with each value of nominal features, (K, J, V)."""
    counts = statistics.counts[:, indicators]
    first = statistics.rows[:, None, None] - counts.sum(axis=2, keepdims=True)
    return np.concatenate([first, counts], axis=2)


def _against_the_rest(counts: FloatArray) -> FloatArray:
    """Set each value against all others, (K, J, V, 2)."""
    return np.stack([counts, counts.sum(axis=2, keepdims=True) - counts], axis=-1)
