"""Online binary relevance: one learner for each label, independent of the others.

A bank of learners is what it needs, with the labels themselves in place of pseudo labels. All labels are learned by one
product. Regressors score an absent label -1 and a present one 1; they learn 0 and 2 and the 1 is taken off afterwards,
so that labels stay sparse and a label that was always absent has taught its learner nothing.

Cost: that of the bank with l targets; with naive Bayes a batch ``nnz(X) l``, a prediction ``nnz(x) l``, state ``m l``.
Online, and with naive Bayes or ridge mergeable and growable, both exact.

References
----------
Tsoumakas, G. and Katakis, I.: Multi-label classification: an overview. International Journal of Data Warehousing and
Mining 3 (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from scipy.special import expit

from labelrace.base.estimator import OnlineClassifier
from labelrace.base.linalg import is_even_or_more
from labelrace.base.schema import Schema
from labelrace.decisions.calibration import soft_clip
from labelrace.learners.adapter import as_bank
from labelrace.learners.bank import Bank, BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """What the learners remember."""

    learners: Annotated[Any, "t=l"]


@dataclass(frozen=True)
class Relevance(BankAlgorithm[State]):
    """The algorithm."""

    bank: Bank[Any]  # the learners

    state_type = State
    unweighted = None

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of learners that have seen nothing."""
        return State(self.bank.init(schema.kinds, schema.n_labels))

    def update(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> State:
        """Learn a batch."""
        targets = Y if self.bank.task == "classification" else 2.0 * Y
        return State(self.bank.update(state.learners, X, targets, row_weights))

    def derive(self, state: State) -> Any:
        """Compute what predicting needs."""
        return self.bank.derive(state.learners)

    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all labels."""
        predicted = self.bank.predict(derived, X)
        return predicted if self.bank.task == "classification" else predicted - 1.0

    def predict(self, derived: Any, X: AnyMatrix) -> BoolArray:
        """Mark the labels that are at least as likely as not."""
        return is_even_or_more(self.scores(derived, X))

    def probabilities(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Turn log odds into probabilities; map the values of regressors, -1 to 1, to [0, 1]."""
        scores = self.scores(derived, X)
        return expit(scores) if self.bank.task == "classification" else soft_clip((scores + 1.0) / 2.0)

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where learners cannot."""
        return self.bank.why_no_new_components()


class BinaryRelevanceClassifier(OnlineClassifier):
    """Online binary relevance: one learner for each label, independent of the others.

    Parameters
    ----------
    learner : str, bank or estimator, default="auto"
        The learners: "auto", "naive_bayes", "sgd", "ridge", "rls", a bank of `labelrace.learners`, or an estimator with
        ``partial_fit``. "auto" is naive Bayes.

    See Also
    --------
    ClassifierChainsClassifier : Labels that are predicted from one another, too.
    RACEClassifier : A learner for each of a few pseudo labels instead.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import BinaryRelevanceClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> model = BinaryRelevanceClassifier().fit(X, X == 1)
    >>> model.predict([[1.0, 0.0]])
    array([[ True, False]])
    """

    learner: Any = "auto"

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make binary relevance with the base learner of the paper's program (OBR), to the digit.

        ``others`` are further parameters.
        """
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self, seed: int) -> Relevance:
        return Relevance(as_bank(self.learner))
