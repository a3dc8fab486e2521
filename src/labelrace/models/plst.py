"""Principal label space transformation (PLST): compression by the labels' principal directions. Offline.

Labels are centred and projected onto their ``k`` first right singular vectors, ``H = (Y - ȳ) V``; a regressor learns
``H`` from the features; predictions are decoded by ``Ĥ Vᵀ + ȳ`` and rounded. The singular vectors need all labels at
once, which is what RACE does without.

References
----------
Tai, F. and Lin, H.-T.: Multilabel classification with principal label space transformation. Neural Computation 24
(2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from labelrace import parameters
from labelrace.core.schema import Schema
from labelrace.core.thresholds import soft_clip
from labelrace.learners.adapter import as_bank
from labelrace.learners.bank import Bank, BankAlgorithm
from labelrace.models.base import OnlineClassifier
from labelrace.typing import AnyMatrix, BoolArray, FloatArray

__all__ = ["PLST", "PLSTClassifier", "State", "principal_directions"]


class State(NamedTuple):
    """What was learned.

    Attributes
    ----------
    directions : (l, k) array
        The first right singular vectors ``V`` of the centred labels.
    means : (l,) array
        Each label's share of rows, ``ȳ``.
    learners
        The bank's state.
    """

    directions: Annotated[FloatArray, "l k"]
    means: Annotated[FloatArray, "l"]
    learners: Annotated[Any, "t=k"]


class Derived(NamedTuple):
    """The learners' parameters and the decoder."""

    learners: Any
    directions: FloatArray
    means: FloatArray


@dataclass(frozen=True)
class PLST(BankAlgorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : Bank
        Regressors, for the projected labels.
    n_components : {"log2", "log2_squared"} or int
        Number of directions.
    """

    bank: Bank[Any]
    n_components: str | int = "log2"

    state_type = State
    is_online = False

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        n_labels, k = schema.n_labels, parameters.component_count(self.n_components, schema.n_labels)
        return State(np.zeros((n_labels, k)), np.zeros(n_labels), self.bank.init(schema.n_values, k))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn everything from one batch; there is no second."""
        means = np.asarray(Y.sum(axis=0), dtype=float) / Y.shape[0]
        directions = principal_directions(Y, means, state.directions.shape[1])
        H = Y @ directions - means @ directions
        return State(directions, means, self.bank.update(state.learners, X, H))

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs."""
        return Derived(self.bank.derive(state.learners), state.directions, state.means)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode; -1 is an absent, 1 a present label, so that the sign is the rounding."""
        predicted = self.bank.predict(derived.learners, X)
        return 2.0 * (predicted @ derived.directions.T + derived.means) - 1.0

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Round the decoded labels."""
        return self.scores(derived, X) > 0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Cut the decoded labels, least-squares estimates of 0 and 1, to [0, 1]."""
        return soft_clip((self.scores(derived, X) + 1.0) / 2.0)

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged: never, as each has its own directions."""
        return "each has learned directions of its own"

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added: there is no second batch."""
        return "it learns all data at once"


def principal_directions(Y: AnyMatrix, means: FloatArray, k: int) -> FloatArray:
    """Compute the first ``k`` right singular vectors of the centred labels, each with its largest entry positive.

    The smaller of the two Gram matrices is decomposed where that is cheap; otherwise the centred labels, never formed,
    go to Lanczos iterations.
    """
    n, n_labels = Y.shape
    if n_labels <= 2000:
        gram = Y.T @ Y
        gram = (gram.toarray() if scipy.sparse.issparse(gram) else gram) - n * np.outer(means, means)
        directions = np.linalg.eigh(gram)[1][:, ::-1][:, :k]
    else:
        ones = np.ones(n)
        centred = scipy.sparse.linalg.LinearOperator(
            (n, n_labels),
            matvec=lambda v: Y @ v.ravel() - ones * (means @ v.ravel()),
            rmatvec=lambda u: Y.T @ u.ravel() - means * u.sum(),
            dtype=np.float64,
        )
        _, sizes, rows = scipy.sparse.linalg.svds(centred, k=k, v0=np.ones(min(n, n_labels)))
        directions = rows[np.argsort(-sizes)].T
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return np.ascontiguousarray(directions * np.where(largest < 0, -1.0, 1.0))


class PLSTClassifier(OnlineClassifier):
    """Principal label space transformation: compression by the labels' principal directions. Offline.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of directions.
    learner : str, bank or estimator, default="ridge"
        The learners: "ridge", "sgd", a regressing bank of `labelrace.learners`, or a regressor with ``partial_fit``.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values.
    label_names : sequence of str or None, default=None
        Names of the labels, if ``y`` is not a data frame, whose columns have names.

    Attributes
    ----------
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Columns of the labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.

    See Also
    --------
    RACEClassifier : Compression by random directions, online.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import PLSTClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> model = PLSTClassifier(n_components=2).fit(X, np.hstack([X, X]))
    >>> model.predict([[1.0, 0.0]])
    array([[1., 0., 1., 0.]])
    """

    is_online = False

    def __init__(
        self,
        *,
        n_components: str | int = "log2",
        learner: Any = "ridge",
        categorical_features: Any = None,
        label_names: Any = None,
    ) -> None:
        self.n_components = n_components
        self.learner = learner
        self.categorical_features = categorical_features
        self.label_names = label_names

    def _algorithm(self, seed: int) -> PLST:
        bank = as_bank(self.learner)
        if bank.task != "regression":
            raise ValueError(f"learner must be a regressor, such as 'ridge', got {self.learner!r}.")
        return PLST(bank, self.n_components)
