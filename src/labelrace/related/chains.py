"""Online classifier chains with naive Bayes, any number of them on one state.

A link of a chain predicts one label from the features and from the labels before it in the chain: the true ones when
it learns, the predicted ones when it predicts. With naive Bayes its log odds are a sum,

    log odds of label j = (evidence of the features, as in binary relevance)
                        + Σ over labels i before j of log P(yᵢ | j) / P(yᵢ | not j),

and the terms of the second part follow from the co-occurrence counts ``YᵀY``. So binary relevance's sums and one
``l × l`` table serve every link of every chain. The evidence of absent labels is a constant of a link, known before any
row is seen; presence adds a label's log odds ratio with the link's.

*Chain inference* decides link after link, many rows and several chains at once. A chain is halved again and again: the
first half is a chain itself, and one product gives the second half the evidence of the first. Pieces of few links are
decided link by link, in all chains at once.

Deciding takes no more than the sign of each link's log odds. Single precision halves the work, and finds the sign
wherever the log odds are further from zero than its rounding errors can reach; at the few others, double precision
decides. So the decisions are those of double precision throughout. How far the errors reach: let x be the exact log
odds of a link in a row, a start s (from the features, and from absent labels) plus a term for each of the n labels
present before it, and let T be the sum of these terms' magnitudes. In single precision, the start and each term are
rounded once when they are stored, and up to n times when they are added, in whatever order; absent labels add exact
zeros. With the unit roundoff u = 2⁻²⁴ and γ = (n + 1)u to first order,

    |computed - x| ≤ γ(|s| + T) ≤ γ(|x| + 2T),   because |s| ≤ |x| + T.

If the signs differ, the left side is |computed| + |x|, hence |computed| ≤ 2γT: the start, which may be large, does not
matter. T is at most the sum of the magnitudes of all terms before the link. The bound used is 4(n + 4)u times that sum:
twice what is needed, for the higher orders and for the errors of double precision and of the bound itself.

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

from labelrace.base import parameters
from labelrace.base.algorithm import why_no_table
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.linalg import TIE
from labelrace.base.schema import Schema
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes, NaiveBayesState
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Rows of the table of co-occurrences worked on at once: intermediate results stay in the processor's cache.
_ROWS = 32
# Numbers in an array of the chains that are followed at once: 2²³ are 32 MB in single precision. The C library keeps
# freed memory up to that for the next batch; larger arrays are new, and zeroed, every time.
_CELLS = 2**23
# Chains of at most so many links are decided link by link, longer ones by halves.
_BLOCK = 32
# 4u of single precision: see above.
_ROUNDING = 2.0**-22
# Added to the sum of magnitudes, against numbers too small for single precision.
_TINY = 1e-30
# Numbers looked up at once to decide single links in double precision: 2¹⁸ are 2 MB. If there are more, whole pieces
# are cheaper.
_LOOKUPS = 2**18


class State(NamedTuple):
    """What all chains share."""

    learners: Annotated[NaiveBayesState, "t=l"]  # binary relevance's sums
    together: Annotated[FloatArray, "l l", ">=0"]  # rows that have both labels; rows with a label on the diagonal
    orders: Annotated[IntArray, "_e l", "orders"]  # the chains: labels in the order in which they are predicted
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

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of chains that have seen nothing, in the given orders or in random ones."""
        if self.orders is None:
            orders = np.stack([rng.permutation(schema.n_labels) for _ in range(self.n_chains)])
        else:
            orders = _check_orders(self.orders, self.n_chains, schema.n_labels)
        return self.start_from(orders, schema.n_values)

    def start_from(self, orders: IntArray, n_values: IntArray) -> State:
        """Make the state of chains in these orders that have seen nothing."""
        n_labels = orders.shape[1]
        return State(self.bank.init(n_values, n_labels), np.zeros((n_labels, n_labels)), orders, float(n_labels))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn a batch."""
        counted = scipy.sparse.coo_array(Y.T @ Y)
        together = state.together.copy()
        # One index is faster than a pair.
        together.reshape(-1)[np.ravel_multi_index(counted.coords, together.shape)] += counted.data
        return State(self.bank.update(state.learners, X, Y), together, state.orders, state.n_first)

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
        votes = self._sum(derived, X, decisions, np.float32)
        return 2 * votes >= len(derived.orders)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities; 0 is even odds and the range is -1 to 1."""
        votes = self._sum(derived, X, lambda links: expit(log_odds(links)), np.float64)
        return 2.0 * votes / len(derived.orders) - 1.0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Average the chains' probabilities."""
        return (self.scores(derived, X) + 1.0) / 2.0

    def _sum(self, derived: Derived, X: AnyMatrix, vote: Callable[[Links], Array], kind: Any) -> Array:
        """Let every chain vote, and add up."""
        features = np.ascontiguousarray(self.bank.predict(derived.learners, X).T)
        # Where the features say nothing, the sign of their round-off must not decide.
        features[np.abs(features) <= TIE] = 0.0
        votes = np.zeros(features.shape, dtype=kind)
        n_labels, n_rows = features.shape
        at_once = max(1, _CELLS // max(1, n_labels * max(n_labels, n_rows)))
        for start in range(0, len(derived.orders), at_once):
            group = slice(start, start + at_once)
            orders = derived.orders[group]
            found = vote(Links(features, derived.all_absent[group], derived.present, orders))
            for order, chain in zip(orders, found, strict=True):
                votes += chain.take(np.argsort(order), axis=0)
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
        learners = self.bank.merge(one.learners, other.learners)
        return State(learners, one.together + other.together, one.orders, one.n_first)

    def emptied(self, state: State) -> State:
        """Make the state that has learned nothing, with the same chains."""
        return state._replace(learners=self.bank.emptied(state.learners), together=np.zeros_like(state.together))

    def reordered(self, state: State, labels: IntArray, features: IntArray) -> State:
        """Give labels and features other places; chains go on to predict labels in the same order."""
        learners = self.bank.reordered(state.learners, labels, features)
        return State(learners, state.together[np.ix_(labels, labels)], np.argsort(labels)[state.orders], state.n_first)

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for so many labels: the table of co-occurrences would be too large."""
        return why_no_table("chains keep", n_labels)

    def grow_labels(self, state: State, n_labels: int) -> State:
        """Add labels that were absent so far, at the end of every chain.

        Chains in random order are no longer quite random then: a late label depends on those before it, and they do
        not depend on it. Anywhere else it would change what the other links predict.
        """
        n_known = len(state.together)
        together = np.pad(state.together, (0, n_labels - n_known))
        late = np.tile(np.arange(n_known, n_labels), (len(state.orders), 1))
        learners = self.bank.grow_components(state.learners, n_labels)
        return State(learners, together, np.hstack([state.orders, late]), state.n_first)


class Links(NamedTuple):
    """Chains, and the evidence that their links get."""

    features: FloatArray  # (l, n): evidence of the features for each label, in each row
    # (E, l): for each chain, the evidence that a label gets from those before it if all of them are absent.
    all_absent: FloatArray
    present: FloatArray  # (l, l): what the presence of a label, a column, adds to that for another, a row
    orders: IntArray  # (E, l): the chains: labels in the order in which they are predicted


def log_odds(links: Links) -> FloatArray:
    """Compute the log odds of all links, (E, l, n), in their chain's order."""
    odds, adds = arrange(links, np.float64)
    found = np.empty_like(odds)

    def keep(start: int, piece: FloatArray) -> None:
        found[:, start : start + piece.shape[1]] = piece

    infer(odds, adds, keep)
    return found


def decisions(links: Links) -> Array:
    """Decide which links find their label present: 1 or 0, (E, l, n), in their chain's order."""
    odds, adds = arrange(links, np.float32)
    reach = np.stack([magnitudes(table) for table in adds])
    n_present = np.zeros((len(odds), odds.shape[2]), dtype=np.float32)

    def settle(start: int, piece: Array) -> None:
        stop = start + piece.shape[1]
        settle_in_double(links, odds, start, stop, doubtful(piece, reach[:, start:stop], n_present))
        n_present[...] += odds[:, start:stop].sum(axis=1)

    infer(odds, adds, settle)
    return odds


def arrange(links: Links, kind: Any) -> tuple[Array, Array]:
    """Bring evidence into the chains' order: if all labels are absent, (E, l, n), and of each label, (E, l, l)."""
    n_labels, n_rows = links.features.shape
    odds = np.empty((len(links.orders), n_labels, n_rows), dtype=kind)
    adds = np.empty((len(links.orders), n_labels, n_labels), dtype=kind)
    present = links.present.astype(kind, copy=False)
    for chain, order in enumerate(links.orders):
        for start in range(0, n_labels, _ROWS):
            stop = start + _ROWS
            block = order[start:stop]
            # Features far out of single precision's range become infinite, which has the right sign.
            with np.errstate(over="ignore"):
                np.add(
                    links.features[block],
                    links.all_absent[chain, block, None],
                    out=odds[chain, start:stop],
                    casting="same_kind",
                )
            # Of the table only what is used: the evidence that a link, a row, gets from those before it.
            present[block].take(order[:stop], axis=1, out=adds[chain, start:stop, :stop], mode="clip")
    return odds, adds


def magnitudes(adds: Array) -> Array:
    """Bound the rounding errors of each link of a chain, for one label present before it."""
    reach = np.empty(len(adds), dtype=adds.dtype)
    for start in range(0, len(adds), _ROWS):
        stop = start + _ROWS
        np.abs(adds[start:stop, :stop]).sum(axis=1, out=reach[start:stop])
    return np.float32(_ROUNDING) * (reach + np.float32(_TINY))


def infer(odds: Array, adds: Array, settle: Callable[[int, Array], None], start: int = 0) -> None:
    """Infer link after link: add to the log odds of each link what the labels present before it add, and decide.

    Decisions, 1 or 0, take the place of log odds in ``odds``. After each piece, from link ``start`` on, ``settle`` gets
    its log odds, and may still change its decisions: no other piece has used them.
    """
    n_links = odds.shape[1]
    if n_links > _BLOCK:
        half = n_links // 2
        infer(odds[:, :half], adds[:, :half, :half], settle, start)
        for chain in range(len(odds)):
            odds[chain, half:] += adds[chain, half:, :half] @ odds[chain, :half]
        infer(odds[:, half:], adds[:, half:, half:], settle, start + half)
        return
    piece = odds.copy()
    for i in range(n_links):
        link = piece[:, i]
        if i:
            link += (adds[:, i : i + 1, :i] @ odds[:, :i])[:, 0]
        np.greater_equal(link, 0.0, out=odds[:, i])
    settle(start, piece)


def doubtful(piece: Array, reach: Array, n_present: Array) -> tuple[IntArray, ...]:
    """Find log odds that rounding errors may have brought to the other side of zero: their chains, links and rows."""
    # Labels of the piece itself may be present too.
    n_terms = n_present + np.float32(piece.shape[1] + 4)
    # One bound for all leaves few.
    near = np.flatnonzero(np.abs(piece) <= reach.max(initial=0) * n_terms.max(initial=0))
    chains, numbers, rows = np.unravel_index(near, piece.shape)
    is_doubtful = np.abs(piece[chains, numbers, rows]) <= reach[chains, numbers] * n_terms[chains, rows]
    return chains[is_doubtful], numbers[is_doubtful], rows[is_doubtful]


def settle_in_double(links: Links, marked: Array, start: int, stop: int, found: tuple[IntArray, ...]) -> None:
    """Decide a piece in double precision, in the chains and rows that have a doubtful link in it.

    Most doubtful decisions are right. A row in which all are right, each given the decisions before it, has nothing to
    correct: its first wrong decision would be one of them.
    """
    chains, numbers, rows = found
    if 0 < len(chains) * stop <= _LOOKUPS:
        is_present = single_links(links, marked, stop, chains, start + numbers, rows) >= 0
        is_wrong = is_present != marked[chains, start + numbers, rows]
        chains, rows = chains[is_wrong], rows[is_wrong]
    for chain in np.unique(chains):
        infer_in_double(links, marked[chain], start, stop, chain, np.unique(rows[chains == chain]))


def single_links(
    links: Links, marked: Array, stop: int, chains: IntArray, numbers: IntArray, rows: IntArray
) -> FloatArray:
    """Compute the log odds of single links, given by chain, place in it and row, from the decisions before them."""
    labels = links.orders[chains, numbers]
    # Decisions at and after the link itself count for nothing.
    is_present = marked[chains, :stop, rows] * (np.arange(stop) < numbers[:, None])
    adds = links.present[labels[:, None], links.orders[chains, :stop]]
    evidence: FloatArray = np.einsum("ij,ij->i", adds, is_present)
    return evidence + (links.features[labels, rows] + links.all_absent[chains, labels])


def infer_in_double(links: Links, marked: Array, start: int, stop: int, chain: int, rows: IntArray) -> None:
    """Infer a piece of one chain from scratch, for some rows, after the decisions before it in ``marked``."""
    order = links.orders[chain]
    piece = order[start:stop]
    adds = links.present[piece[:, None], order[:stop]]
    odds = links.features[piece[:, None], rows] + links.all_absent[chain, piece, None]
    odds += adds[:, :start] @ marked[:start, rows].astype(np.float64)
    infer(odds[None], adds[None, :, start:], lambda start, piece: None)
    marked[start:stop, rows] = odds


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
        """Make chains with the base learner of the paper's program."""
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
