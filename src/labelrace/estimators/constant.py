"""Constant predictions as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal

from labelrace import parameters
from labelrace.baselines.constant import Constant, State
from labelrace.estimators.base import OnlineClassifier
from labelrace.typing import IntArray

__all__ = ["ConstantClassifier"]


class ConstantClassifier(OnlineClassifier):
    """Predicts the same labels whatever the features: what any method must beat.

    Parameters
    ----------
    strategy : {"majority", "negative"}
        Predict the most frequent labels, as many as a row of the last batch had on average, rounded down; or none.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import ConstantClassifier
    >>> Y = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0]])
    >>> ConstantClassifier().fit(np.zeros((3, 1)), Y).predict([[0.0]])
    array([[1, 0, 0]], dtype=int8)
    """

    def __init__(self, strategy: Literal["majority", "negative"] = "majority", *, label_names: Any = None) -> None:
        self.strategy = strategy
        self.label_names = label_names

    def _algorithm(self) -> Constant:
        parameters.check_choice("strategy", self.strategy, ("majority", "negative"))
        return Constant(majority=self.strategy == "majority")

    def _init(self, algorithm: Constant, n_values: IntArray, n_labels: int) -> State:
        return algorithm.init(n_labels)
