"""Classifier chains as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelrace import parameters
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.models import validation
from labelrace.models.base import OnlineClassifier
from labelrace.models.chains_core import Chains, State
from labelrace.typing import Array, IntArray

__all__ = ["ClassifierChainsClassifier"]

# 20,000 labels make a table of co-occurrences of 3.2 GB.
_MOST_LABELS = 20_000


class ClassifierChainsClassifier(OnlineClassifier):
    """Online classifier chains with naive Bayes: each label is predicted from the features and the labels before it.

    With several chains, in random orders, a label is predicted if at least half of them predict it. All chains share
    one state: binary relevance's sums and a table of label co-occurrences. Labels that appear later come last in every
    chain.

    Parameters
    ----------
    n_chains : int
        Number of chains.
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values.
    random_state : int, Generator, RandomState or None
        Seed of the chains' orders.
    learner : NaiveBayes
        Settings of the learners. Only naive Bayes shares its sums between chains.
    orders : (n_chains, l) array or None
        The chains, each a permutation of the labels; None draws them from `random_state`.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import ClassifierChainsClassifier
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> Y = np.hstack([X > 0.5, X > 0.5, X < 0.5])
    >>> model = ClassifierChainsClassifier(n_chains=5, random_state=0).fit(X, Y)
    >>> model.predict([[0.95]])
    array([[1, 1, 0]], dtype=int8)
    """

    def __init__(
        self,
        n_chains: int = 1,
        categorical_features: Any = None,
        random_state: Any = None,
        *,
        learner: NaiveBayes | None = None,
        orders: Any = None,
        label_names: Any = None,
    ) -> None:
        self.n_chains = n_chains
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.learner = learner
        self.orders = orders
        self.label_names = label_names

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make chains with the base learner of the paper's program."""
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self) -> Chains:
        learner = NaiveBayes() if self.learner is None else self.learner
        if not isinstance(learner, NaiveBayes):
            raise ValueError(f"learner={learner!r} does not do: chains share the sums of NaiveBayes, and of no other.")
        return Chains(learner)

    def _refuse_labels(self, n_labels: int) -> None:
        if n_labels > _MOST_LABELS:
            raise ValueError(
                f"Chains keep an l × l table, which is {8e-9 * n_labels**2:.0f} GB for {n_labels} labels: use at most "
                f"{_MOST_LABELS}, or RACEClassifier."
            )

    def _init(self, algorithm: Chains, n_values: IntArray, n_labels: int) -> State:
        self._refuse_labels(n_labels)
        return algorithm.init(n_values, self._orders(n_labels))

    def _init_like(self, algorithm: Chains, n_labels: int, tensors: dict[str, Array]) -> State:
        # Given orders are those of the labels known at first.
        return algorithm.init(self._n_values, np.zeros((len(tensors["state.orders"]), n_labels), dtype=np.intp))

    def _orders(self, n_labels: int) -> IntArray:
        parameters.check_whole("n_chains", self.n_chains, 1)
        if self.orders is None:
            rng = validation.generator(self.random_state)
            return np.stack([rng.permutation(n_labels) for _ in range(self.n_chains)])
        orders = np.array(self.orders, dtype=np.intp)
        if orders.shape != (self.n_chains, n_labels) or (np.sort(orders) != np.arange(n_labels)).any():
            raise ValueError(f"orders must be {self.n_chains} permutations of the {n_labels} labels.")
        return orders
