"""A bank of any estimator with ``partial_fit``: the paper's "any updateable classifier or regressor".

One clone of the estimator for each pseudo label, updated in a loop.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from labelrace.learners import columns
from labelrace.learners.bank import Bank, Task
from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["Adapter", "AdapterState"]

# Log odds of a certain prediction, and of an estimator that predicts no more than the class.
_CERTAIN = 700.0


class AdapterState(NamedTuple):
    """The estimators, one for each pseudo label."""

    estimators: tuple[Any, ...]


@dataclass(frozen=True)
class Adapter(Bank[AdapterState]):
    """Clones of one estimator, one for each pseudo label.

    Parameters
    ----------
    estimator : object
        A scikit-learn classifier or regressor with ``partial_fit``. A classifier's log odds come from
        ``decision_function``, else from ``predict_log_proba``, else from ``predict``.
    seed : int or None, default=None
        Seeds the estimators that take a ``random_state`` and have none, each with a number of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Perceptron
    >>> from labelrace.learners.adapter import Adapter
    >>> X, H = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    >>> bank = Adapter(Perceptron())
    >>> state = bank.update(bank.init(np.array([0]), n_components=1), X, H)
    >>> bank.predict(bank.derive(state), X) > 0
    array([[False],
           [ True]])
    """

    estimator: Any
    seed: int | None = None

    state_type: ClassVar[type] = AdapterState

    @property
    def task(self) -> Task:
        """What the estimator is: a classifier or a regressor."""
        return "classification" if is_classifier(self.estimator) else "regression"

    def init(self, n_values: IntArray, n_components: int) -> AdapterState:
        """Clone the estimator for every pseudo label."""
        estimators = tuple(clone(self.estimator) for _ in range(n_components))
        if self.seed is not None and self.estimator.get_params().get("random_state", 0) is None:
            for place, estimator in enumerate(estimators):
                estimator.set_params(random_state=self.seed + place)
        return AdapterState(estimators)

    def update(self, state: AdapterState, X: AnyMatrix, H: AnyMatrix) -> AdapterState:
        """Let every estimator learn its pseudo label; the state given stays as it was."""
        estimators = copy.deepcopy(state.estimators)
        for estimator, h in zip(estimators, columns.dense(H).T, strict=True):
            if self.task == "classification":
                estimator.partial_fit(X, h.astype(int), classes=np.array([0, 1]))
            else:
                estimator.partial_fit(X, h)
        return AdapterState(estimators)

    def derive(self, state: AdapterState) -> AdapterState:
        """Return the state: estimators predict by themselves."""
        return state

    def predict(self, derived: AdapterState, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all pseudo labels."""
        predict = _log_odds if self.task == "classification" else _value
        return np.column_stack([predict(estimator, X) for estimator in derived.estimators])


def _value(estimator: Any, X: AnyMatrix) -> FloatArray:
    return np.asarray(estimator.predict(X), dtype=float).ravel()


def _log_odds(estimator: Any, X: AnyMatrix) -> FloatArray:
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=float).ravel()
    if hasattr(estimator, "predict_log_proba"):
        # A probability of exactly 0 or 1 has infinite log odds; bounded, decoding stays finite.
        with np.errstate(divide="ignore", invalid="ignore"):
            zero, one = estimator.predict_log_proba(X).T
            return np.clip(np.nan_to_num(one - zero), -_CERTAIN, _CERTAIN)
    return np.where(np.asarray(estimator.predict(X)) > 0, _CERTAIN, -_CERTAIN)
