"""Boolean matrix decomposition (MLC-BMaD): label sets as unions of a few basis sets.

``Y ≈ C ∘ B``: each label set is the union of some of ``k`` basis sets, so that codes ``C`` are 0 and 1, any classifier
can learn them, and a code can be read: its basis set is a group of labels. The candidates for the basis are, one for
each label, the labels that are there in more than half of its rows. The basis is chosen greedily, or by a local search
from a random start; what counts is what a basis set adds to a label set that is covered in part: newly covered labels
that are there, less newly covered labels that are not. Distinct label sets with their counts do for all rows.

Codes are not linear in the labels, and learners cannot follow a basis that changes. So the basis is found in the first
rows, the warm-up, and then stays. Until then rows are kept, and the model is read from all of them; afterwards a row is
coded and learned, and forgotten. A label that appears after the warm-up could never be predicted, so it is refused.

Cost: coding a row ``k l``; learning ``nnz(x) k`` with naive Bayes; a prediction ``(m + l) k``; the basis ``w l² k`` for
``w`` distinct label sets. State: ``(m + l) k``, and the rows of the warm-up. Online; not mergeable; new labels, exact,
as long as the warm-up lasts.

References
----------
Wicker, J., Pfahringer, B. and Kramer, S.: Multi-label classification using Boolean matrix decomposition. SAC (2012).

Miettinen, P., Mielikäinen, T., Gionis, A., Das, G. and Mannila, H.: The discrete basis problem. IEEE Transactions on
Knowledge and Data Engineering 20 (2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy.sparse
import scipy.special

from labelrace.base import parameters
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.linalg import is_even_or_more
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.exceptions import GrowthError
from labelrace.learners.adapter import as_bank
from labelrace.learners.bank import Bank, BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.linear.warm_up import WarmUp
from labelrace.related.compression import label_sets
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Cells of the rows that are coded at once: 2²² are 32 MB.
_CELLS = 2**22


class State(NamedTuple):
    """What was learned."""

    rows: float  # rows learned
    basis: Annotated[FloatArray, "k l"]  # the basis sets; all zero until the warm-up is over
    buffer: Annotated[WarmUp, "w=l"]  # the rows of the warm-up, with their labels; none when it is over
    n_features: Annotated[float, "=m"]  # number of features
    learners: Annotated[Any, "t=k"]  # the bank's state; empty until the warm-up is over


class Derived(NamedTuple):
    """The learners' parameters and the basis."""

    learners: Any
    basis: FloatArray


@dataclass(frozen=True)
class BMaD(BankAlgorithm[State]):
    """The algorithm."""

    bank: Bank[Any]  # classifiers, for the codes
    # "log2", "log2_squared" or int: number of basis sets; as many as there are labels, if those are fewer.
    n_components: str | int
    threshold: float  # share of a label's rows in which a member of its candidate is there
    search: str  # "greedy" or "local": how the basis is chosen
    warm_up: int  # rows after which the basis stays
    seed: int = 0  # what the local search starts from

    state_type = State
    unmergeable = "each has found a basis in its own first rows"

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        wanted = self.n_components if isinstance(self.n_components, str) else min(self.n_components, schema.n_labels)
        k = parameters.component_count(wanted, schema.n_labels)
        basis, m = np.zeros((k, schema.n_labels)), float(schema.n_features)
        return State(0.0, basis, WarmUp.empty(), m, self.bank.init(schema.kinds, k))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Keep the rows of the warm-up; learn codes when it is over."""
        rows = state.rows + X.shape[0]
        if state.rows >= self.warm_up:
            learners = self.bank.update(state.learners, X, self._codes(Y, state.basis))
            return state._replace(rows=rows, learners=learners)
        updated = state._replace(rows=rows, buffer=state.buffer.with_batch(X, Y))
        if rows < self.warm_up:
            return updated
        learners, basis = self._learn_buffer(updated)
        return updated._replace(basis=basis, learners=learners, buffer=WarmUp.empty())

    def _learn_buffer(self, state: State) -> tuple[Any, FloatArray]:
        """Find the basis in the rows that are kept, and learn their codes."""
        k, n_labels = state.basis.shape
        X, Y = state.buffer.rows(scipy.sparse.csr_array((0, int(state.n_features))), n_labels)
        known = label_sets.of_rows(Y)
        sets, counts = dense(label_sets.matrix(known, n_labels)), known.counts
        options = candidates(dense(Y.T @ Y), self.threshold)
        if self.search == "greedy":
            chosen = greedy_basis(sets, counts, options, k)
        else:
            chosen = local_basis(sets, counts, options, k, np.random.default_rng(self.seed))
        basis = options[chosen]
        return self.bank.update(state.learners, X, self._codes(Y, basis)), basis

    def _codes(self, Y: AnyMatrix, basis: FloatArray) -> FloatArray:
        """Code some rows at a time, so that there is never a dense array of all rows and labels."""
        size = max(1, _CELLS // Y.shape[1])
        parts = [dense(Y[start : start + size]).astype(float) for start in range(0, Y.shape[0], size)]
        return np.vstack([encode(part, basis, by_density=self.search == "local") for part in parts])

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs; before the warm-up is over, from all rows."""
        is_over = state.rows >= self.warm_up
        learners, basis = (state.learners, state.basis) if is_over else self._learn_buffer(state)
        return Derived(self.bank.derive(learners), basis)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Return for each label the largest log odds of the codes whose basis sets have it."""
        odds = self.bank.predict(derived.learners, X)
        # Labels that no basis set has come after all others.
        scores = np.tile(np.minimum(odds.min(axis=1), 0.0)[:, None] - 1.0, derived.basis.shape[1])
        for code, members in zip(odds.T, derived.basis > 0, strict=True):
            scores[:, members] = np.maximum(scores[:, members], code[:, None])
        return scores

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Unite the basis sets of the codes that are at least as likely as not."""
        codes = is_even_or_more(self.bank.predict(derived.learners, X)).astype(float)
        return product(codes, derived.basis) > 0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Turn log odds into probabilities."""
        return scipy.special.expit(self.scores(derived, X))

    def grow(self, state: State, old: Schema, new: Schema, rng: np.random.Generator) -> State:
        """Add features, and labels as long as the basis can still take them in."""
        if new.n_labels > old.n_labels and state.rows >= self.warm_up:
            raise GrowthError(
                f"BMaD cannot take new labels after its warm-up of {self.warm_up} rows: its basis stays, and a label "
                "that is in no basis set would never be predicted. Give a longer warm_up, or call fit to start over."
            )
        return super().grow(state, old, new, rng)


def candidates(gram: FloatArray, threshold: float) -> FloatArray:
    """Make a candidate of each label: the labels that are there in more than a share of its rows, (l, l).

    Examples
    --------
    >>> import numpy as np
    >>> candidates(np.array([[4.0, 3.0], [3.0, 8.0]]), 0.5)
    array([[1., 1.],
           [0., 1.]])
    """
    return (gram > threshold * gram.diagonal()[:, None]).astype(float)


def product(C: FloatArray, B: FloatArray) -> FloatArray:
    """Compute the Boolean product: the unions of the basis sets that the rows of ``C`` name."""
    return (C @ B > 0).astype(float)


def greedy_basis(Y: FloatArray, weights: FloatArray, sets: FloatArray, k: int) -> IntArray:
    """Choose, ``k`` times, the candidate that adds most to all rows; of equal ones the first."""
    cover, chosen = np.zeros_like(Y), []
    for _ in range(k):
        gains = _gains(Y, cover, sets)
        best = int((weights @ np.maximum(gains, 0.0)).argmax())
        chosen.append(best)
        cover = np.maximum(cover, np.where(gains[:, best, None] > 0, sets[best], 0.0))
    return np.array(chosen, dtype=np.intp)


def local_basis(Y: FloatArray, weights: FloatArray, sets: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Start from random candidates and replace one at a time by the best instead of it, while that adds anything."""
    chosen = rng.choice(len(sets), size=k, replace=False)
    C = encode(Y, sets[chosen], by_density=True)
    improves = True
    while improves:
        improves = False
        for column in rng.permutation(k):
            others = np.delete(np.arange(k), column)
            gains = _gains(Y, product(C[:, others], sets[chosen[others]]), sets)
            totals = weights @ np.maximum(gains, 0.0)
            best = int(totals.argmax())
            held = float(weights @ (gains[:, chosen[column]] * C[:, column]))
            if totals[best] > held:
                chosen[column], improves = best, True
                C[:, column] = gains[:, best] > 0
    return chosen


def encode(Y: FloatArray, B: FloatArray, *, by_density: bool) -> FloatArray:
    """Write label sets as unions of basis sets, (n, k).

    Basis sets are added that cover more labels that are there than labels that are not: one after the other in the
    order of a greedy basis, or always the densest. Then single ones are included where they gain, and excluded where
    nothing is lost, until nothing changes.
    """
    return _flipped(Y, B, _densest_first(Y, B) if by_density else _in_order(Y, B))


def _in_order(Y: FloatArray, B: FloatArray) -> FloatArray:
    """Take each basis set, in order, where it adds anything."""
    C, cover = np.zeros((len(Y), len(B))), np.zeros_like(Y)
    for column, members in enumerate(B):
        C[:, column] = _gains(Y, cover, members[None])[:, 0] > 0
        cover = np.maximum(cover, C[:, column, None] * members)
    return C


def _densest_first(Y: FloatArray, B: FloatArray) -> FloatArray:
    """Take the basis set with the largest share of gain in what it newly covers, as long as there is one."""
    n, k = len(Y), len(B)
    C, cover, rows = np.zeros((n, k)), np.zeros_like(Y), np.arange(n)
    sizes = B.sum(axis=1)
    for _ in range(k):
        gains, covered = _gains(Y, cover, B), sizes - cover @ B.T
        density = np.divide(gains, covered, out=np.full_like(gains, -1.0), where=(covered > 0) & (C == 0))
        best = density.argmax(axis=1)
        takes = density[rows, best] > 0
        if not takes.any():
            break
        C[rows[takes], best[takes]] = 1.0
        cover[takes] = np.maximum(cover[takes], B[best[takes]])
    return C


def _flipped(Y: FloatArray, B: FloatArray, C: FloatArray) -> FloatArray:
    """Include and exclude single basis sets until nothing changes."""
    times, signs = C @ B, 2.0 * Y - 1.0
    for _ in range(10 * len(B) + 10):
        before = C.copy()
        for column, members in enumerate(B):
            without = times - C[:, column, None] * members
            gain = ((without == 0) * signs) @ members
            C[:, column] = gain > 0
            times = without + C[:, column, None] * members
        if (before == C).all():
            break
    return C


def _gains(Y: FloatArray, cover: FloatArray, sets: FloatArray) -> FloatArray:
    """Compute what each set would add to each row: labels newly covered that are there less those that are not."""
    return ((1.0 - cover) * (2.0 * Y - 1.0)) @ sets.T


class BMaDClassifier(OnlineClassifier):
    """Boolean matrix decomposition: label sets as unions of a few basis sets, which classifiers predict.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default=20
        Number of basis sets; as many as there are labels, if those are fewer.
    threshold : float, default=0.5
        Share of a label's rows from which another label is in its candidate.
    search : {"greedy", "local"}, default="greedy"
        How the basis is chosen: greedily, or by replacing one basis set at a time, from a random start.
    warm_up : int, default=1000
        Rows after which the basis stays.
    learner : str, bank or estimator, default="naive_bayes"
        Classifiers for the codes: "naive_bayes", or a classifying bank of `labelrace.learners`.
    random_state : int, Generator, RandomState or None, default=None
        What the local search starts from.

    Attributes
    ----------
    basis_ : (k, l) array
        The basis sets.

    See Also
    --------
    CSSPClassifier : Codes that are labels.

    Examples
    --------
    >>> from labelrace import BMaDClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = BMaDClassifier(n_components=8).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.7
    """

    n_components: str | int = 20
    threshold: float = 0.5
    search: str = "greedy"
    warm_up: int = 1000
    learner: Any = "naive_bayes"
    random_state: Any = None

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make the form of MEKA: the local search, and Weka's naive Bayes; MEKA's own search has no seed.

        ``others`` are further parameters.
        """
        return cls(**{"search": "local", "learner": NaiveBayes(numeric="binned"), **others})

    @property
    def basis_(self) -> FloatArray:
        """The basis sets."""
        basis: FloatArray = self.fitted.derived.basis
        return basis

    def _algorithm(self, seed: int) -> BMaD:
        if not isinstance(self.n_components, str):
            parameters.check_whole("n_components", self.n_components, 1)
        parameters.check_number("threshold", self.threshold, 0, 1)
        parameters.check_choice("search", self.search, ("greedy", "local"))
        parameters.check_whole("warm_up", self.warm_up, 1)
        bank = as_bank(self.learner)
        if bank.task != "classification":
            raise ValueError(f"learner must be a classifier, such as 'naive_bayes', got {self.learner!r}.")
        own_seed = seed if self.search == "local" else 0
        k = self.n_components if isinstance(self.n_components, str) else int(self.n_components)
        return BMaD(bank, k, float(self.threshold), self.search, int(self.warm_up), own_seed)
