"""Methods that learn everything at once, as scikit-learn classifiers: what online learning is measured against."""

from __future__ import annotations

from typing import Any, NoReturn

from labelrace.models import validation
from labelrace.models.banks import bank_of
from labelrace.models.base import OnlineClassifier
from labelrace.models.plst_core import PLST, State
from labelrace.models.race import RACEClassifier
from labelrace.typing import IntArray

__all__ = ["Offline", "OfflineRACEClassifier", "PLSTClassifier"]


class Offline:
    """Mixin of classifiers that learn by `fit` alone."""

    is_online = False

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> NoReturn:
        """Refuse: use `fit`."""
        raise NotImplementedError(f"{type(self).__name__} is offline: it learns all data at once, by fit.")

    def learn(self, ids: Any, Y: Any) -> NoReturn:
        """Refuse: use `fit`."""
        raise NotImplementedError(f"{type(self).__name__} is offline: it learns all data at once, by fit.")


class PLSTClassifier(Offline, OnlineClassifier):
    """Principal label space transformation: compression by the labels' principal directions. Offline.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int
        Number of directions.
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values.
    learner : "ridge", "sgd", a regressing bank of labelrace.learners, or a regressor with partial_fit
        The learners.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import PLSTClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> model = PLSTClassifier(n_components=2).fit(X, np.hstack([X, X]))
    >>> model.predict([[1.0, 0.0]])
    array([[1, 0, 1, 0]], dtype=int8)
    """

    def __init__(
        self,
        n_components: str | int = "log2",
        categorical_features: Any = None,
        *,
        learner: Any = "ridge",
        label_names: Any = None,
    ) -> None:
        self.n_components = n_components
        self.categorical_features = categorical_features
        self.learner = learner
        self.label_names = label_names

    def _algorithm(self) -> PLST:
        bank = bank_of(self.learner)
        if bank.task != "regression":
            raise ValueError(f"learner={self.learner!r} is a classifier: PLST needs a regressor, such as 'ridge'.")
        return PLST(bank)

    def _init(self, algorithm: PLST, n_values: IntArray, n_labels: int) -> State:
        return algorithm.init(n_values, n_labels, validation.component_count(self.n_components, n_labels))


class OfflineRACEClassifier(Offline, RACEClassifier):
    """RACE with all data in one batch, as in the paper's Table 4. Offline.

    Parameters
    ----------
    **parameters
        Those of `RACEClassifier`.
    """
