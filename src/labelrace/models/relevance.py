"""Binary relevance as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Self

from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.models.banks import bank_of
from labelrace.models.base import OnlineClassifier
from labelrace.models.relevance_core import Relevance, State
from labelrace.typing import IntArray

__all__ = ["BinaryRelevanceClassifier"]


class BinaryRelevanceClassifier(OnlineClassifier):
    """Online binary relevance: one learner for each label, independent of the others.

    Parameters
    ----------
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values.
    learner : "auto", "naive_bayes", "sgd", "ridge", "rls", a bank of labelrace.learners, or one with partial_fit
        The learners. "auto" is naive Bayes.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import BinaryRelevanceClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> model = BinaryRelevanceClassifier().fit(X, X == 1)
    >>> model.predict([[1.0, 0.0]])
    array([[1, 0]], dtype=int8)
    """

    def __init__(self, categorical_features: Any = None, *, learner: Any = "auto", label_names: Any = None) -> None:
        self.categorical_features = categorical_features
        self.learner = learner
        self.label_names = label_names

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make binary relevance with the base learner of the paper's program (OBR), to the digit."""
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self) -> Relevance:
        return Relevance(bank_of(self.learner))

    def _init(self, algorithm: Relevance, n_values: IntArray, n_labels: int) -> State:
        return algorithm.init(n_values, n_labels)
