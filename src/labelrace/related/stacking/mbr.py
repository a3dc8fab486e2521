"""Stacked binary relevance (MBR): a second level of naive Bayes sees the features and what the first level predicts.

The first level is binary relevance. The second is binary relevance again, on the features and on the label sets that
the first level predicted, a label's own prediction included. With naive Bayes the features' part of the second level is
the first level's log odds, so the second level is one table of counts: rows in which the first level said ``v`` for
label i while label j was ``c``. It follows from ``ŶᵀY``, ``Σŷ`` and ``Σy``, and predicting is one product,

    log odds of label j = (the first level's) + (a constant, if nothing is predicted) + Σ over predicted i of W[i, j].

The first level predicts a batch before it learns it; only the very first batch is learned first. A batch of n rows
costs ``nnz(X) · l`` to learn and to predict, and ``|ŷ| · |y|`` a row for the table; the state is that of binary
relevance and an l × l table. Two models merge by adding; what either's first level predicted stays what it predicted.

References
----------
Qu, W., Zhang, Y., Zhu, J. and Qiu, Q.: Mining multi-label concept-drifting data streams using dynamic classifier
ensemble. ACML (2009).
Godbole, S. and Sarawagi, S.: Discriminative methods for multi-labeled classification. PAKDD (2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.special import expit

from labelrace.base.algorithm import why_no_table
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.growth import SUM
from labelrace.base.linalg import is_even_or_more
from labelrace.base.schema import Schema
from labelrace.base.sparse import weighted
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes, NaiveBayesState
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """What both levels remember."""

    learners: Annotated[NaiveBayesState, "t=l"]  # binary relevance's sums
    # Rows for which the first level predicted label i, a row, while label j, a column, was there.
    together: Annotated[FloatArray, "l l", SUM]
    predicted: Annotated[FloatArray, "l", SUM]  # rows for which the first level predicted each label


class Derived(NamedTuple):
    """What predicting needs."""

    learners: Any  # the first level
    constant: FloatArray  # (l,): what the second level adds where the first predicts nothing
    weights: FloatArray  # (l, l): what the prediction of a label, a row, adds to that for another, a column


@dataclass(frozen=True)
class Stack(BankAlgorithm[State]):
    """The algorithm."""

    bank: NaiveBayes  # the learners of the first level

    state_type = State
    unweighted = None

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of two levels that have seen nothing."""
        n_labels = schema.n_labels
        return State(self.bank.init(schema.kinds, n_labels), np.zeros((n_labels, n_labels)), np.zeros(n_labels))

    def update(
        self,
        state: State,
        X: AnyMatrix,
        Y: AnyMatrix,
        derived: Derived | None = None,
        row_weights: FloatArray | None = None,
    ) -> State:
        """Learn a batch: the first level predicts it, both levels learn it."""
        learners = self.bank.update(state.learners, X, Y, row_weights)
        if state.learners.rows[-1] == 0:
            first_level = self.bank.derive(learners)
        else:
            first_level = self.bank.derive(state.learners) if derived is None else derived.learners
        predicted = scipy.sparse.csr_array(is_even_or_more(self.bank.predict(first_level, X)), dtype=float)
        counts = weighted(predicted, row_weights)
        counted = scipy.sparse.coo_array(counts.T @ Y)
        together = state.together.copy()
        together[counted.coords] += counted.data
        return State(learners, together, state.predicted + counts.sum(axis=0))

    def derive(self, state: State) -> Derived:
        """Turn counts into log odds, with naive Bayes' estimates for a binary feature."""
        rows = state.learners.rows
        n, ones = rows[-1], rows[:-1]
        # With the label (1) or without it (0), one more than the rows for which another label was predicted or not.
        predicted1 = state.together + 1.0
        predicted0 = state.predicted[:, None] + 2.0 - predicted1
        not1, not0 = ones + 2.0 - predicted1, n - ones + 2.0 - predicted0
        absent = np.log(not1 / not0) - np.log((ones + 2.0) / (n - ones + 2.0))
        weights = np.log(predicted1 / predicted0) - np.log(not1 / not0)
        return Derived(self.bank.derive(state.learners), absent.sum(axis=0), weights)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the log odds of the second level."""
        first = self.bank.predict(derived.learners, X)
        return first + derived.constant + is_even_or_more(first).astype(float) @ derived.weights

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that are at least as likely as not."""
        return is_even_or_more(self.scores(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Turn log odds into probabilities."""
        return expit(self.scores(derived, X))

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for the labels: the table would be too large."""
        return why_no_table("the second level is", n_labels)


def checked_learner(learner: Any) -> NaiveBayes:
    """Return the naive Bayes that a user gave, or the default one."""
    learner = NaiveBayes() if learner is None else learner
    if not isinstance(learner, NaiveBayes):
        raise ValueError(f"learner must be a NaiveBayes, whose sums both levels share, got {learner!r}.")
    return learner


class MBRClassifier(OnlineClassifier):
    """Stacked binary relevance, online: labels are predicted from the features and from predicted labels.

    Parameters
    ----------
    learner : NaiveBayes or None, default=None
        The learners: `labelrace.learners.naive_bayes.bank.NaiveBayes`, with its defaults if None.

    See Also
    --------
    MBRChunksClassifier : An ensemble of such stacks, one a batch, as published.
    ClassifierChainsClassifier : Labels that are predicted from the true ones before them.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import MBRClassifier
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> Y = np.hstack([X > 0.5, X > 0.5, X < 0.5])
    >>> MBRClassifier().fit(X, Y).predict([[0.95]])
    array([[ True,  True, False]])
    """

    learner: NaiveBayes | None = None

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make a stack whose first level is that of the paper's program (OBR), to the digit.

        ``others`` are further parameters.
        """
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self, seed: int) -> Stack:
        return Stack(checked_learner(self.learner))
