"""Online classifier chains with naive Bayes, any number of them on one state.

A link of a chain predicts one label from the features and from the labels before it in the chain: the true ones when
it learns, the predicted ones when it predicts. With naive Bayes its log odds are a sum,

    log odds of label j = (evidence of the features, as in binary relevance)
                        + Σ over labels i before j of log P(yᵢ | j) / P(yᵢ | not j),

and the terms of the second part follow from the co-occurrence counts ``YᵀY``. So binary relevance's sums and one
``l × l`` table serve every link of every chain. The evidence of absent labels is a constant of a link, known before any
row is seen; presence adds a label's log odds ratio with the link's.

*Chain inference* decides link after link, for many rows at once. A chain is halved again and again: the first half is a
chain itself, and one product gives the second half the evidence of the first. Short chains are decided link by link.

Cost: a batch ``nnz(X) l`` and ``|y|²`` a row; reading ``E l²`` for E chains; a prediction ``nnz(x) l`` and ``E l²``.
State: that of binary relevance, an ``l × l`` table and the chains. Mergeable where the chains are the same, growable,
both exact.

References
----------
Read, J., Pfahringer, B., Holmes, G. and Frank, E.: Classifier chains for multi-label classification. Machine Learning
85 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.special import expit

from labelrace.base import growth, parameters
from labelrace.base.algorithm import why_no_table
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import KindsLike
from labelrace.base.growth import SUM, Moves
from labelrace.base.linalg import TIE
from labelrace.base.schema import Schema
from labelrace.base.sparse import weighted
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes, NaiveBayesState
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Rows of the table of co-occurrences worked on at once: intermediate results stay in the processor's cache.
_ROWS = 32
# Chains of at most this many links are decided link by link, longer ones by halves.
_SHORT_CHAIN = 32


class State(NamedTuple):
    """What all chains share."""

    learners: Annotated[NaiveBayesState, "t=l"]  # binary relevance's sums
    together: Annotated[FloatArray, "l l", SUM]  # rows that have both labels; rows with a label on the diagonal
    orders: Annotated[IntArray, "_e l", "<l"]  # the chains: labels in the order in which they are predicted
    # Number of labels that there were at first; others came later, and are last in every chain.
    n_first: Annotated[float, "<l+1"]


class Derived(NamedTuple):
    """What predicting needs."""

    learners: Any  # the features' part
    # (E, l): for each chain, the evidence that a link gets from the labels before it if all of them are absent.
    all_absent: FloatArray
    # (l, l): what the presence of a label adds to that for another: their log odds ratio, hence symmetric.
    present: FloatArray
    orders: IntArray  # (E, l): the chains


@dataclass(frozen=True)
class Chains(BankAlgorithm[State]):
    """The algorithm."""

    bank: NaiveBayes  # the learners of the features' part
    n_chains: int = 1  # number of chains
    orders: Any = field(default=None, compare=False)  # (n_chains, l) or None: the chains, or None to draw them

    state_type = State
    unweighted = None

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of chains that have seen nothing, in the given orders or in random ones."""
        if self.orders is None:
            orders = np.stack([rng.permutation(schema.n_labels) for _ in range(self.n_chains)])
        else:
            orders = _check_orders(self.orders, self.n_chains, schema.n_labels)
        return self.start_from(orders, schema.kinds)

    def start_from(self, orders: IntArray, kinds: KindsLike) -> State:
        """Make the state of chains in these orders that have seen nothing."""
        n_labels = orders.shape[1]
        return State(self.bank.init(kinds, n_labels), np.zeros((n_labels, n_labels)), orders, float(n_labels))

    def update(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> State:
        """Learn a batch."""
        counted = scipy.sparse.coo_array(Y.T @ weighted(Y, row_weights))
        together = state.together.copy()
        # One index is faster than a pair.
        together.reshape(-1)[np.ravel_multi_index(counted.coords, together.shape)] += counted.data
        learners = self.bank.update(state.learners, X, Y, row_weights)
        return State(learners, together, state.orders, state.n_first)

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
            for evidence, position in zip(all_absent, positions, strict=True):
                # The logarithm of a product: one for a column instead of one for an entry.
                factors = np.multiply(ratio, position[block, None] < position, out=q)
                factors += 1.0
                evidence += np.log(factors.prod(axis=0))
        return Derived(self.bank.derive(state.learners), all_absent, present, state.orders)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that at least half of the chains mark."""
        votes = self._sum(derived, X, lambda odds: odds >= 0)
        return 2 * votes >= len(derived.orders)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities; 0 is even odds and the range is -1 to 1."""
        return 2.0 * self._sum(derived, X, expit) / len(derived.orders) - 1.0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities."""
        return (self.scores(derived, X) + 1.0) / 2.0

    def _sum(self, derived: Derived, X: AnyMatrix, vote: Callable[[FloatArray], Array]) -> FloatArray:
        """Turn each chain's log odds into votes, and add them up, (n, l)."""
        features = np.ascontiguousarray(self.bank.predict(derived.learners, X).T)
        # Where the features say nothing, the sign of their round-off must not decide.
        features[np.abs(features) <= TIE] = 0.0
        votes = np.zeros(features.shape)
        for order, all_absent in zip(derived.orders, derived.all_absent, strict=True):
            votes[order] += vote(chain_log_odds(order, features, all_absent, derived.present))
        return votes.T

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged exactly; None if they can."""
        reason = super().why_unmergeable(one, other)
        if reason:
            return reason
        n_first = int(one.n_first)
        same = one.n_first == other.n_first and np.array_equal(one.orders[:, :n_first], other.orders[:, :n_first])
        return None if same else "their chains differ; let both start from one model, or use one random_state"

    def merge(self, one: State, other: State) -> State:
        """Join two models with the same chains of first labels; late ones stay in the first model's order."""
        merged: State = growth.add(one, other, learners=self.bank.merge)
        return merged

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features; chains predict known labels in the same order, and new ones at the end.

        Chains in random order are no longer quite random then: a late label depends on those before it, and they do
        not depend on it. Anywhere else it would change what the other links predict.
        """
        taken = super().take(state, moves)
        source = moves.source("l", len(state.together))
        if source is None:
            return taken
        column = np.empty(len(state.together), dtype=np.intp)
        column[source[source >= 0]] = np.flatnonzero(source >= 0)
        late = np.tile(np.flatnonzero(source < 0), (len(state.orders), 1))
        return taken._replace(orders=np.hstack([column[state.orders], late]))

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for the labels: the table of co-occurrences would be too large."""
        return why_no_table("chains keep", n_labels)


def chain_log_odds(order: IntArray, features: FloatArray, all_absent: FloatArray, present: FloatArray) -> FloatArray:
    """Compute the log odds of a chain's links, (l, n), in the chain's order.

    Parameters
    ----------
    order : (l,) array
        The chain: labels in the order in which they are predicted.
    features : (l, n) array
        Evidence of the features for each label, in each row.
    all_absent : (l,) array
        The evidence that a label gets from those before it if all of them are absent.
    present : (l, l) array
        What the presence of a label, a column, adds to that for another, a row.

    Examples
    --------
    >>> import numpy as np
    >>> features, present = np.array([[-1.0, 1.0], [-2.0, -2.0]]), np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> chain_log_odds(np.array([0, 1]), features, np.zeros(2), present)
    array([[-1.,  1.],
           [-2.,  1.]])
    """
    odds = features.take(order, axis=0)
    odds += all_absent[order, None]
    _infer(odds, np.empty_like(odds), present[order].take(order, axis=1))
    return odds


def _infer(odds: FloatArray, is_present: FloatArray, adds: FloatArray) -> None:
    """Add to the log odds of each link, in place, what the labels before it add, and decide whether it is present.

    ``odds`` and ``is_present``, (l, n), are written; ``adds``, (l, l), is what the presence of a label adds to others.
    """
    n_links = len(odds)
    if n_links > _SHORT_CHAIN:
        half = n_links // 2
        _infer(odds[:half], is_present[:half], adds[:half, :half])
        odds[half:] += adds[half:, :half] @ is_present[:half]
        _infer(odds[half:], is_present[half:], adds[half:, half:])
        return
    for i in range(n_links):
        if i:
            odds[i] += adds[i, :i] @ is_present[:i]
        np.greater_equal(odds[i], 0.0, out=is_present[i])


class ClassifierChainsClassifier(OnlineClassifier):
    """Online classifier chains with naive Bayes: each label is predicted from the features and the labels before it.

    With several chains, in random orders, a label is predicted if at least half of them predict it. All chains share
    one state: binary relevance's sums and a table of label co-occurrences. Labels that appear later come last in every
    chain.

    Parameters
    ----------
    n_chains : int, default=1
        Number of chains.
    orders : (n_chains, l) array or None, default=None
        The chains, each a permutation of the labels; None draws them from `random_state`.
    learner : NaiveBayes or None, default=None
        Settings of the learners. Only naive Bayes shares its sums between chains.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the chains' orders.

    See Also
    --------
    BinaryRelevanceClassifier : The same learners, each on its own.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import ClassifierChainsClassifier
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> Y = np.hstack([X > 0.5, X > 0.5, X < 0.5])
    >>> model = ClassifierChainsClassifier(n_chains=5, random_state=0).fit(X, Y)
    >>> model.predict([[0.95]])
    array([[ True,  True, False]])
    """

    n_chains: int = 1
    orders: Any = None
    learner: NaiveBayes | None = None
    random_state: Any = None

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make chains with the base learner of the paper's program; ``others`` are further parameters."""
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self, seed: int) -> Chains:
        parameters.check_whole("n_chains", self.n_chains, 1)
        learner = NaiveBayes() if self.learner is None else self.learner
        if not isinstance(learner, NaiveBayes):
            raise ValueError(f"learner must be a NaiveBayes, whose sums chains share, got {learner!r}.")
        return Chains(learner, int(self.n_chains), self.orders)


def _check_orders(orders: Any, n_chains: int, n_labels: int) -> IntArray:
    """Check given chains: permutations of the labels."""
    checked = np.array(orders, dtype=np.intp)
    if checked.shape != (n_chains, n_labels) or (np.sort(checked) != np.arange(n_labels)).any():
        raise ValueError(f"orders must be {n_chains} permutations of the {n_labels} labels.")
    return checked
