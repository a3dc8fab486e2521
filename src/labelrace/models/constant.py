"""Constant predictions as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelrace import parameters
from labelrace.models.base import OnlineClassifier
from labelrace.models.constant_core import Constant, State
from labelrace.typing import FloatArray, IntArray

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

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the labels' shares of all rows so far, the same for every row.

        Returns
        -------
        (n, l) array
        """
        check_is_fitted(self)
        shares = self._learned.derived.frequency
        return np.tile(shares, (self._check_features(X, reset=False).shape[0], 1))
