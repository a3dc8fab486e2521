"""Online classifier chains with naive Bayes, any number of them on one state.

A link of a chain predicts one label from the features and from the labels before it in the chain: the true ones when
it learns, the predicted ones when it predicts. With naive Bayes its log odds are a sum,

    log odds of label j = (what the features say, as in binary relevance)
                        + Σ over labels i before j of log P(yᵢ | j) / P(yᵢ | not j),

and the terms of the second part follow from the co-occurrence counts ``YᵀY``. So binary relevance's sums and one
``l × l`` table serve every link of every chain. Predicting goes through the labels in blocks: within a block link by
link, and one product adds what a finished block says about all labels after it.

References
----------
Read, J., Pfahringer, B., Holmes, G. and Frank, E.: Classifier chains for multi-label classification. Machine Learning
85 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit

from labelrace.algorithm import Algorithm
from labelrace.learners.naive_bayes import NaiveBayes, NaiveBayesState
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["Chains", "State"]

# Links taken one by one before their part in all later links is added by one product.
_BLOCK = 32
# Rows of the table of co-occurrences worked on at once: intermediate results stay in the processor's cache.
_ROWS = 32


class State(NamedTuple):
    """What all chains share.

    Attributes
    ----------
    learners : NaiveBayesState
        Binary relevance's sums.
    together : (l, l) array
        Rows that have both labels; rows with a label on the diagonal.
    orders : (E, l) array
        The chains: labels in the order in which they are predicted.
    """

    learners: NaiveBayesState
    together: FloatArray
    orders: IntArray


class Derived(NamedTuple):
    """What predicting needs.

    Attributes
    ----------
    learners
        The features' part.
    absent, present : (l, l) arrays
        What an absent label says for each other label, and what its presence adds to that.
    orders : (E, l) array
        The chains.
    """

    learners: Any
    absent: FloatArray
    present: FloatArray
    orders: IntArray


@dataclass(frozen=True)
class Chains(Algorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : NaiveBayes
        The learners of the features' part.
    """

    bank: NaiveBayes

    def init(self, n_values: IntArray, orders: IntArray) -> State:
        """Make the state of chains that have seen nothing."""
        n_labels = orders.shape[1]
        return State(self.bank.init(n_values, n_labels), np.zeros((n_labels, n_labels)), orders)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn a batch."""
        counted = scipy.sparse.coo_array(Y.T @ Y)
        together = state.together.copy()
        together[counted.coords] += counted.data
        return State(self.bank.update(state.learners, X, Y), together, state.orders)

    def derive(self, state: State) -> Derived:
        """Turn counts into log odds, with naive Bayes' estimates for a binary feature."""
        rows, ones = state.learners.rows[-1], np.diag(state.together)
        absent, present = np.empty_like(state.together), np.empty_like(state.together)
        # The classes' sizes are the denominators of a column.
        sizes = np.log((rows - ones + 2.0) / (ones + 2.0))
        for start in range(0, len(ones), _ROWS):
            block = slice(start, start + _ROWS)
            # Row i is the feature, column j the class. With a, b the rows in which label i is present, and p, q those
            # in which it is absent, in class 1 and class 0, plus one.
            a = state.together[block] + 1.0
            b = ones[block, None] + 2.0 - a
            p, q = ones + 2.0 - a, rows - ones + 2.0 - b
            odds = np.log(p / q, out=absent[block])
            np.log(a / b, out=present[block])
            present[block] -= odds
            odds += sizes
        return Derived(self.bank.derive(state.learners), absent, present, state.orders)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that at least half of the chains mark."""
        votes = self._sum(derived, X, lambda odds: odds >= 0, np.int32)
        return 2 * votes >= len(derived.orders)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities; 0 is even odds and the range is -1 to 1."""
        return 2.0 * self._sum(derived, X, expit, np.float64) / len(derived.orders) - 1.0

    def _sum(self, derived: Derived, X: AnyMatrix, vote: Callable[[FloatArray], Array], kind: Any) -> Array:
        """Let every chain vote, and add up."""
        features = np.ascontiguousarray(self.bank.predict(derived.learners, X).T)
        votes = np.zeros(features.shape, dtype=kind)
        for order in derived.orders:
            votes[order] += vote(chain_odds(features, derived.absent, derived.present, order))
        return votes.T

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Say why two models cannot be merged exactly; None if they can."""
        reason = self.bank.why_unmergeable(one.learners, other.learners)
        if reason:
            return f"their learners are {self.bank!r}, and {reason}"
        return None if np.array_equal(one.orders, other.orders) else "their chains differ; use one random_state"

    def merge(self, one: State, other: State) -> State:
        """Join two models with the same chains, which learned different rows."""
        learners = self.bank.merge(one.learners, other.learners)
        return State(learners, one.together + other.together, one.orders)


def chain_odds(features: FloatArray, absent: FloatArray, present: FloatArray, order: IntArray) -> FloatArray:
    """Compute the log odds of all links of one chain: (l, n), links in the chain's order.

    ``features`` is what the features say, (l, n); it, ``absent`` and ``present`` are in the labels' own order.
    """
    odds = features[order]
    # At first all labels before a link count as absent; presence is added link by link.
    all_absent = np.zeros(len(order))
    is_present, step = np.empty(odds.shape[1]), np.empty((_BLOCK, odds.shape[1]))
    for start in range(0, len(order), _BLOCK):
        stop = start + _BLOCK
        block = odds[start:stop]
        links, later = order[start:stop], order[start:]
        if_absent, adds = absent[links].take(later, axis=1), present[links].take(later, axis=1)
        all_absent[start:stop] += np.triu(if_absent[:, : len(block)], 1).sum(axis=0)
        all_absent[stop:] += if_absent[:, len(block) :].sum(axis=0)
        block += all_absent[start:stop, None]
        for i in range(len(block) - 1):
            # No BLAS for these small steps: a second library's threads would get in the way of the product below.
            np.greater_equal(block[i], 0.0, out=is_present)
            rest = block[i + 1 :]
            rest += np.multiply(adds[i, i + 1 : len(block), None], is_present, out=step[: len(rest)])
        if stop < len(order):
            odds[stop:] += adds[:, _BLOCK:].T @ (block >= 0).astype(float)
    return odds
