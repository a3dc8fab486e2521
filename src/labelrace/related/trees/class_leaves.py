"""Leaves of a tree of classes: naive Bayes, or the most frequent class, whichever has been right more often.

They are those of Weka's Hoeffding tree. Both ways to predict are tested on every row of the leaf before it is learned,
and naive Bayes predicts where it has been right at least as often. It knows the rows that came since the leaf began,
children begin with nothing; the most frequent class counts what the leaf began with, too. As in Weka's naive Bayes,
classes and nominal values have Laplace's probabilities, and a numeric value is rounded to a multiple of 0.01 and has
the normal probability of that bin (`labelrace.learners.naive_bayes.numeric`).

Rows and counts of nominal values are the tree's own statistics of the leaf; kept here are sums of the rounded numbers.
A row costs two normal probabilities for each numeric feature and class, to learn and to predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import softmax

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.linalg import finite_squares
from labelrace.base.sparse import dense
from labelrace.learners.naive_bayes import numeric
from labelrace.related.trees.label_statistics import Leaf
from labelrace.related.trees.leaf_learners import LeafLearner
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Width of the bins: what Weka takes where it knows no values yet.
_WIDTH = numeric.DEFAULT_PRECISION
# Numbers worked on at once.
_CELLS = 2**20


class ClassLeavesState(NamedTuple):
    """Sums of the numeric features, and how both ways to predict have done."""

    kinds: FeatureKinds
    n_classes: float  # classes that there are, the first of those that there is room for
    right: Annotated[FloatArray, "L 2"]  # rows about which the most frequent class, and naive Bayes, were right
    # Sums of the rounded values over each class's rows, and of their squares.
    sums: Annotated[FloatArray, "L l d"]
    squares: Annotated[FloatArray, "L l d"]


class _Part(NamedTuple):
    """One leaf, while a batch is learned."""

    right: FloatArray
    sums: FloatArray
    squares: FloatArray


class _Shared(NamedTuple):
    """What leaves share while a batch is learned: kinds of features, number of classes, and a leaf of no rows."""

    kinds: FeatureKinds
    n_classes: float
    empty: _Part


class _Bayes(NamedTuple):
    """Of each class a constant, the normal distributions of numbers, and what values add, compared with the first."""

    constant: FloatArray
    means: FloatArray
    deviations: FloatArray
    weights: FloatArray


class _Derived(NamedTuple):
    """Of each leaf naive Bayes, or the scores of classes where it is not used."""

    kinds: FeatureKinds
    n_classes: int
    leaves: list[_Bayes | FloatArray]


@dataclass(frozen=True)
class ClassLeaves(LeafLearner):
    """Predict a class by naive Bayes, or the most frequent one where that has been right more often."""

    state_type = ClassLeavesState

    def init(self, kinds: FeatureKinds, n_labels: int, n_leaves: int) -> ClassLeavesState:
        """Make leaves that have seen nothing."""
        zeros = np.zeros((n_leaves, n_labels, kinds.n_numeric))
        return ClassLeavesState(kinds, float(n_labels), np.zeros((n_leaves, 2)), zeros, zeros)

    def unpack(self, state: ClassLeavesState, kinds: FeatureKinds, Y: AnyMatrix) -> tuple[_Shared, list[_Part]]:
        """Unpack each leaf."""
        zeros = np.zeros(state.sums.shape[1:])
        parts = [_Part(*each) for each in zip(state.right, state.sums, state.squares, strict=True)]
        return _Shared(kinds, state.n_classes, _Part(np.zeros(2), zeros, zeros)), parts

    def pack(self, shared: _Shared, parts: list[_Part]) -> ClassLeavesState:
        """Stack the leaves."""
        right, sums, squares = (np.stack(each) for each in zip(*parts, strict=True))
        return ClassLeavesState(shared.kinds, shared.n_classes, right, sums, squares)

    def new_part(self, shared: _Shared) -> _Part:
        """Make a leaf that has seen nothing."""
        return shared.empty

    def child_part(self, part: _Part, shared: _Shared) -> _Part:
        """Let children begin with nothing."""
        return shared.empty

    def update(self, part: _Part, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, rows: IntArray, shared: _Shared) -> _Part:
        """Test both ways to predict on each row, then learn it; ``Y`` has one class a row."""
        right, sums, squares = (each.copy() for each in part)
        mass, class_rows, counts = (each.copy() for each in (leaf.mass, leaf.statistics.rows, leaf.statistics.counts))
        there = slice(0, int(shared.n_classes))
        for number, values, each in zip(*_columns(shared.kinds, X), Y.indices, strict=True):
            bayes = _bayes(shared.kinds, class_rows, counts, sums, squares)
            likely = _log_likelihoods(bayes, number[None], values[None])[0, there]
            # The first row has no class to be compared with.
            right += (mass.any() and mass.argmax() == each, likely.argmax() == each)
            mass[each] += 1.0
            class_rows[each] += 1.0
            counts[each] += values
            sums[each] += number
            with np.errstate(over="ignore"):
                squares[each] = finite_squares(squares[each] + number * number)
        return _Part(right, sums, squares)

    def derive(self, state: ClassLeavesState, leaves: list[Leaf]) -> _Derived:
        """Derive what each leaf predicts by."""
        derived: list[_Bayes | FloatArray] = [
            np.log(np.maximum(leaf.mass, np.finfo(float).tiny))
            if by_majority > by_bayes
            else _bayes(state.kinds, leaf.statistics.rows, leaf.statistics.counts, sums, squares)
            for leaf, (by_majority, by_bayes), sums, squares in zip(
                leaves, state.right, state.sums, state.squares, strict=True
            )
        ]
        return _Derived(state.kinds, int(state.n_classes), derived)

    def scores(self, derived: _Derived, leaf: int, X: AnyMatrix) -> FloatArray:
        """Compute the log likelihoods of classes, by what predicts better, up to a constant of each row."""
        by = derived.leaves[leaf]
        found = _log_likelihoods(by, *_columns(derived.kinds, X)) if isinstance(by, _Bayes) else by
        scores: FloatArray = np.where(np.arange(found.shape[-1]) < derived.n_classes, found, -np.inf)
        return np.broadcast_to(scores, (X.shape[0], found.shape[-1]))

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Turn log likelihoods into probabilities of classes."""
        result: FloatArray = softmax(scores, axis=1)
        return result


def _columns(kinds: FeatureKinds, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
    """Take the numeric features, rounded, and the indicators of nominal values."""
    numbers, values = np.zeros((X.shape[0], 0)), np.zeros((X.shape[0], 0))
    if not kinds.all_nominal:
        numbers = dense(numeric.rounded(dense(kinds.numeric(X)), np.full(kinds.n_numeric, _WIDTH)))
    if not kinds.all_numeric:
        values = dense(kinds.indicators(kinds.nominal(X)))
    return numbers, values


def _bayes(kinds: FeatureKinds, rows: FloatArray, counts: FloatArray, sums: FloatArray, squares: FloatArray) -> _Bayes:
    """Derive naive Bayes of a leaf's rows of each class; denominators that all classes share are left out."""
    means, deviations = numeric.binned_normals(sums, squares, rows[:, None], _WIDTH)
    constant, weights = np.log(rows + 1.0), counts
    if not kinds.all_numeric:
        n_others = kinds.nominal_values - 1
        others = np.add.reduceat(counts, np.cumsum(n_others) - n_others, axis=1)
        first = rows[:, None] - others + 1.0
        constant = constant + np.log(first / (rows[:, None] + kinds.nominal_values)).sum(axis=1)
        weights = np.log((counts + 1.0) / np.repeat(first, n_others, axis=1))
    return _Bayes(constant, means, deviations, weights)


def _log_likelihoods(bayes: _Bayes, numbers: FloatArray, values: FloatArray) -> FloatArray:
    """Compute the log likelihood of each class, (n, classes), up to a constant of each row."""
    result: FloatArray = bayes.constant + values @ bayes.weights.T
    size = max(1, _CELLS // max(1, bayes.means.size))
    for start in range(0, len(numbers), size):
        some = slice(start, start + size)
        logs = numeric.bin_log_probability(numbers[some, None], bayes.means, bayes.deviations, _WIDTH)
        result[some] += logs.sum(axis=2)
    return result
