"""Online classifier chains with naive Bayes, any number of them on one state.

A link of a chain predicts one label from the features and from the labels before it in the chain: the true ones when
it learns, the predicted ones when it predicts. With naive Bayes its log odds are a sum,

    log odds of label j = (what the features say, as in binary relevance)
                        + Σ over labels i before j of log P(yᵢ | j) / P(yᵢ | not j),

and the terms of the second part follow from the co-occurrence counts ``YᵀY``. So binary relevance's sums and one
``l × l`` table serve every link of every chain. That labels are absent is a constant of a link, known before any row is
seen; presence adds a label's log odds ratio with the link's. How chains are followed is in `following`.

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

from labelrace.core.algorithm import Algorithm
from labelrace.learners.naive_bayes import NaiveBayes, NaiveBayesState
from labelrace.models import following
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["Chains", "State"]

# Rows of the table of co-occurrences worked on at once: intermediate results stay in the processor's cache.
_ROWS = 32
# Numbers in an array of the chains that are followed at once: 2²³ are 32 MB in single precision. The C library keeps
# freed memory up to that for the next batch; larger arrays are new, and zeroed, every time.
_CELLS = 2**23


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
    all_absent : (E, l) array
        For each chain, what a link hears from the labels before it if all of them are absent.
    present : (l, l) array
        What the presence of a label adds to that for another: their log odds ratio, hence symmetric.
    orders : (E, l) array
        The chains.
    """

    learners: Any
    all_absent: FloatArray
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
        # One index is faster than a pair.
        together.reshape(-1)[np.ravel_multi_index(counted.coords, together.shape)] += counted.data
        return State(self.bank.update(state.learners, X, Y), together, state.orders)

    def derive(self, state: State) -> Derived:
        """Turn counts into log odds, with naive Bayes' estimates for a binary feature."""
        rows, ones = state.learners.rows[-1], np.diag(state.together)
        positions = np.argsort(state.orders, axis=1).astype(np.int32)
        all_absent, present = np.zeros(positions.shape), np.empty_like(state.together)
        sizes = (rows - ones + 2.0) / (ones + 2.0)
        for start in range(0, len(ones), _ROWS):
            block = slice(start, start + _ROWS)
            # Row i is the feature, column j the class. With a, b the rows in which label i is present, and p, q those
            # in which it is absent, in class 1 and class 0, plus one.
            a = state.together[block] + 1.0
            b = ones[block, None] + 2.0 - a
            p, q = ones + 2.0 - a, rows - ones + 2.0 - b
            p /= q
            b *= p
            np.log(np.divide(a, b, out=a), out=present[block])
            # P(absent | 1) / P(absent | 0), less one: a product with 0 or 1, plus one, then takes or leaves a factor.
            ratio = np.multiply(p, sizes, out=p)
            ratio -= 1.0
            for said, position in zip(all_absent, positions, strict=True):
                # The logarithm of a product: one for a column instead of one for an entry.
                factors = np.multiply(ratio, position[block, None] < position, out=q)
                factors += 1.0
                said += np.log(factors.prod(axis=0))
        return Derived(self.bank.derive(state.learners), all_absent, present, state.orders)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that at least half of the chains mark."""
        votes = self._sum(derived, X, following.marks, np.float32)
        return 2 * votes >= len(derived.orders)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities; 0 is even odds and the range is -1 to 1."""
        votes = self._sum(derived, X, lambda links: expit(following.log_odds(links)), np.float64)
        return 2.0 * votes / len(derived.orders) - 1.0

    def _sum(self, derived: Derived, X: AnyMatrix, vote: Callable[[following.Links], Array], kind: Any) -> Array:
        """Let every chain vote, and add up."""
        features = np.ascontiguousarray(self.bank.predict(derived.learners, X).T)
        votes = np.zeros(features.shape, dtype=kind)
        n_labels, n_rows = features.shape
        at_once = max(1, _CELLS // max(1, n_labels * max(n_labels, n_rows)))
        for start in range(0, len(derived.orders), at_once):
            group = slice(start, start + at_once)
            orders = derived.orders[group]
            found = vote(following.Links(features, derived.all_absent[group], derived.present, orders))
            for order, chain in zip(orders, found, strict=True):
                votes += chain.take(np.argsort(order), axis=0)
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

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels that were absent so far, at the end of every chain.

        Chains in random order are no longer quite random then: a late label hears from those before it, and they do not
        hear from it. Anywhere else it would change what the other links predict.
        """
        n_known = len(state.together)
        together = np.pad(state.together, (0, n_labels - n_known))
        late = np.tile(np.arange(n_known, n_labels), (len(state.orders), 1))
        learners = self.bank.grow_components(state.learners, n_labels)
        return State(learners, together, np.hstack([state.orders, late]))
