"""A bank of any estimator with ``partial_fit``: the paper's "any updateable classifier or regressor".

One clone of the estimator for each pseudo label, updated in a loop.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from labelrace.base import parameters, registry
from labelrace.base.feature_kinds import KindsLike
from labelrace.base.registry_entries import LEARNERS
from labelrace.base.sparse import dense
from labelrace.learners.bank import Bank, Task
from labelrace.typing import AnyMatrix, FloatArray

# Log odds of a certain prediction, and of an estimator that predicts no more than the class.
_CERTAIN = 700.0
# No prediction is larger.
_LARGEST = 1e100


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
    >>> from labelrace.base.feature_kinds import FeatureKinds
    >>> from labelrace.learners.adapter import Adapter
    >>> X, H = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    >>> bank = Adapter(Perceptron())
    >>> state = bank.update(bank.init(FeatureKinds.numbers(1), n_components=1), X, H)
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

    def init(self, kinds: KindsLike, n_components: int) -> AdapterState:
        """Clone the estimator for every pseudo label."""
        estimators = tuple(clone(self.estimator) for _ in range(n_components))
        if self.seed is not None and self.estimator.get_params().get("random_state", 0) is None:
            for number, estimator in enumerate(estimators):
                estimator.set_params(random_state=self.seed + number)
        return AdapterState(estimators)

    def why_no_row_weights(self) -> str | None:
        """Return why rows cannot have weights: where the estimator knows none."""
        takes = "sample_weight" in inspect.signature(self.estimator.partial_fit).parameters
        return None if takes else f"the partial_fit of {self.estimator!r} has no sample_weight"

    def update(
        self, state: AdapterState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None
    ) -> AdapterState:
        """Let every estimator learn its pseudo label; the state given stays as it was."""
        estimators = copy.deepcopy(state.estimators)
        weights = {} if row_weights is None else {"sample_weight": row_weights}
        for estimator, h in zip(estimators, dense(H).T, strict=True):
            if self.task == "classification":
                estimator.partial_fit(X, h.astype(int), classes=np.array([0, 1]), **weights)
            else:
                estimator.partial_fit(X, h, **weights)
        return AdapterState(estimators)

    def derive(self, state: AdapterState) -> AdapterState:
        """Return the state: estimators predict by themselves."""
        return state

    def predict(self, derived: AdapterState, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all pseudo labels."""
        is_odds = self.task == "classification"
        return np.column_stack(
            [_log_odds(one, X) if is_odds else _bounded(one.predict(X)) for one in derived.estimators]
        )


def _bounded(values: Any) -> FloatArray:
    """Make numbers finite that overflow in estimators of other libraries."""
    finite = np.nan_to_num(np.asarray(values, dtype=float).ravel(), nan=0.0)
    return np.clip(finite, -_LARGEST, _LARGEST)


def _log_odds(estimator: Any, X: AnyMatrix) -> FloatArray:
    if hasattr(estimator, "decision_function"):
        return _bounded(estimator.decision_function(X))
    if hasattr(estimator, "predict_log_proba"):
        # A probability of exactly 0 or 1 has infinite log odds; bounded, decoding stays finite.
        with np.errstate(divide="ignore", invalid="ignore"):
            zero, one = estimator.predict_log_proba(X).T
            return np.clip(np.nan_to_num(one - zero), -_CERTAIN, _CERTAIN)
    return np.where(np.asarray(estimator.predict(X)) > 0, _CERTAIN, -_CERTAIN)


# Normalised steps are stable on features of any scale.
_SETTINGS: dict[str, dict[str, Any]] = {"sgd": {"rate": 0.5, "normalised": True, "penalty": 0.0}}


def as_bank(learner: Any, task: Task | None = None, random_state: Any = None) -> Bank[Any]:
    """Make the bank that a ``learner`` parameter asks for.

    ``task`` is what it must be able to do, if that matters; a whole number as ``random_state`` seeds what draws.
    """
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    if isinstance(learner, str):
        parameters.check_choice("learner", learner, ("auto", *LEARNERS))
        if learner == "auto":
            learner = "sgd" if task == "regression" else "naive_bayes"
        kind, settings = registry.learner_class(learner), _SETTINGS.get(learner, {})
        if seed is not None and "seed" in {field.name for field in fields(kind)}:
            settings = settings | {"seed": seed}
        bank: Bank[Any] = kind(**settings)
    elif isinstance(learner, Bank):
        bank = learner
    elif hasattr(learner, "partial_fit") and hasattr(learner, "predict") and not isinstance(learner, type):
        bank = Adapter(learner, seed)
    else:
        raise ValueError(
            f"learner must be a name, a bank or an estimator that has partial_fit and predict, got {learner!r}."
        )
    if task is not None and bank.task != task:
        raise ValueError(f"learner must be made for {task}, got {learner!r}, which is for method={bank.task!r}.")
    return bank
