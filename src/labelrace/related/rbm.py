"""Deep RBM features: binary relevance on the hidden units of stacked restricted Boltzmann machines.

This compresses features, not labels. Each machine learns to reproduce its inputs through a few hidden units, by one
step of contrastive divergence without sampling: with a bias unit 0 that is 1 in both layers,

    z = σ(x W),  x' = σ(z Wᵀ),  z' = σ(x' W),
    Δ = rate / B · ((xᵀz - x'ᵀz') / b - cost · W),   W ← W + Δ + momentum · Δ_before,

for B minibatches of b rows, with a weight cost of .0002 times the rate. The next machine has these hidden units for
inputs. The first batch trains the machines; then they stay, as learners cannot follow features that move. Features are
scaled to [0, 1] by their range in the first batch; what is constant there, or comes later, is left out. Training costs
``epochs · n · m · h``, a later batch ``nnz(X) · h`` and what the learners cost.

References
----------
Read, J. and Perez-Cruz, F.: Deep learning for multi-label classification. arXiv:1502.05988 (2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from labelrace.base import parameters
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.decisions.calibration import soft_clip
from labelrace.learners.adapter import as_bank
from labelrace.learners.bank import Bank, BankAlgorithm
from labelrace.typing import AnyMatrix, FloatArray

_MOMENTUM = 0.1
_DECAY = 0.0002
_SPREAD = 0.2
# Log odds are clipped to this, since hidden units can be nearly constant.
_MAX_LOG_ODDS = 30.0
# Inputs that vary by less are constant.
_NARROWEST = 1e-100


class State(NamedTuple):
    """The machines and the learners on top of them."""

    kinds: FeatureKinds
    rows: float  # rows learned; the machines are untrained where there are none
    # What is subtracted from inputs, and what they are divided by; inputs of width 0 are left out.
    low: Annotated[FloatArray, "M"]
    width: Annotated[FloatArray, "M"]
    first: Annotated[FloatArray, "1+M 1+h"]  # weights of the first machine; unit 0 is the bias
    deeper: Annotated[FloatArray, "_d 1+h 1+h"]  # weights of the others
    learners: Annotated[Any, "own h", "t=l"]  # the bank's state


class Derived(NamedTuple):
    """What predicting needs: the machines, the first one's scaling multiplied out, and the learners."""

    kinds: FeatureKinds
    weights: FloatArray
    constant: FloatArray
    deeper: FloatArray
    learners: Any


@dataclass(frozen=True)
class RBMFeatures(BankAlgorithm[State]):
    """The algorithm."""

    bank: Bank[Any]  # the learners
    # Hidden units of each machine, and machines.
    n_hidden: int
    n_layers: int
    rate: float  # learning rate
    # Rows of a minibatch, and times that the first batch is gone through.
    minibatch: int
    epochs: int

    state_type = State
    unmergeable = "each has hidden units of its own, from its first batch"
    skips_missing: ClassVar[bool] = False  # machines take no missing value, whatever the learners do

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Draw the machines, without bias."""
        m, units = schema.kinds.width, self.n_hidden + 1
        deeper = _SPREAD * rng.standard_normal((self.n_layers - 1, units, units))
        # Last, and a row for each input: whatever inputs come behind them, these are the same.
        first = _SPREAD * rng.standard_normal((m + 1, units))
        for weights in (first, *deeper):
            weights[0] = weights[:, 0] = 0.0
        learners = self.bank.init(FeatureKinds.numbers(self.n_hidden), schema.n_labels)
        return State(schema.kinds, 0.0, np.zeros(m), np.ones(m), first, deeper, learners)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Train the machines by the first batch; learn every batch."""
        if state.rows == 0:
            state, derived = self._train(state, X), None
        features = self._features(self._machines(state) if derived is None else derived, X)
        targets = Y if self.bank.task == "classification" else 2.0 * Y
        return state._replace(
            rows=state.rows + X.shape[0], learners=self.bank.update(state.learners, features, targets)
        )

    def _train(self, state: State, X: AnyMatrix) -> State:
        """Train one machine after the other."""
        inputs = state.kinds.dense_design(X)
        low = inputs.min(axis=0)
        width = inputs.max(axis=0) - low
        # The inverse of less would be infinite.
        width = np.where(width > _NARROWEST, width, 0.0)
        varies = np.flatnonzero(width > 0)
        inputs = (inputs[:, varies] - low[varies]) / width[varies]
        units = np.append(0, varies + 1)
        layers = [train(state.first[units], inputs, self.rate, self.minibatch, self.epochs)]
        for weights in state.deeper:
            inputs = hidden(layers[-1], inputs)
            layers.append(train(weights, inputs, self.rate, self.minibatch, self.epochs))
        first = np.zeros_like(state.first)
        first[units] = layers[0]
        deeper = np.stack(layers[1:]) if len(layers) > 1 else state.deeper
        return state._replace(low=low, width=width, first=first, deeper=deeper)

    def _machines(self, state: State) -> Derived:
        """Multiply the scaling into the first machine's weights, so that sparse rows stay sparse."""
        inverse = np.divide(1.0, state.width, out=np.zeros_like(state.width), where=state.width > 0)
        weights = state.first[1:, 1:] * inverse[:, None]
        constant = state.first[0, 1:] - state.low @ weights
        return Derived(state.kinds, weights, constant, state.deeper, None)

    def _features(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        features: FloatArray = expit(derived.kinds.design(X) @ derived.weights + derived.constant)
        for weights in derived.deeper:
            features = hidden(weights, features)
        return features

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs."""
        return self._machines(state)._replace(learners=self.bank.derive(state.learners))

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all labels."""
        predicted = self.bank.predict(derived.learners, self._features(derived, X))
        return (
            np.clip(predicted, -_MAX_LOG_ODDS, _MAX_LOG_ODDS) if self.bank.task == "classification" else predicted - 1.0
        )

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Turn log odds into probabilities; map the values of regressors, -1 to 1, into (0, 1)."""
        scores = self.scores(derived, X)
        return expit(scores) if self.bank.task == "classification" else soft_clip((scores + 1.0) / 2.0)

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where learners cannot."""
        return self.bank.why_no_new_components()

    def why_no_new_features(self) -> str | None:
        """Return None: machines do not look at features that were constant in the first batch, as new ones were."""
        return None


def hidden(weights: FloatArray, X: FloatArray) -> FloatArray:
    """Compute the hidden units of rows, without the bias."""
    result: FloatArray = expit(X @ weights[1:, 1:] + weights[0, 1:])
    return result


def train(weights: FloatArray, X: FloatArray, rate: float, minibatch: int, epochs: int) -> FloatArray:
    """Train a machine on rows in [0, 1], in their order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(2), 20, axis=0)
    >>> start = 0.2 * np.random.default_rng(0).standard_normal((3, 4))
    >>> weights = train(start, X, rate=1.0, minibatch=40, epochs=2000)
    >>> units = np.column_stack([np.ones(40), hidden(weights, X)])
    >>> bool(np.abs(1 / (1 + np.exp(-units @ weights[1:].T)) - X).mean() < 0.1)
    True
    """
    rows = np.column_stack([np.ones(len(X)), X])
    starts = range(0, len(X), minibatch)
    before = np.zeros_like(weights)
    for _ in range(epochs):
        for start in starts:
            x = rows[start : start + minibatch]
            z = _with_bias(x @ weights)
            again = _with_bias(z @ weights.T)
            gradient = (x.T @ z - again.T @ _with_bias(again @ weights)) / len(x)
            step = rate / len(starts) * (gradient - _DECAY * rate * weights)
            weights, before = weights + step + _MOMENTUM * before, step
    return weights


def _with_bias(inputs: FloatArray) -> FloatArray:
    units: FloatArray = expit(inputs)
    units[:, 0] = 1.0
    return units


class RBMClassifier(OnlineClassifier):
    """Binary relevance on deep RBM features: hidden units of stacked restricted Boltzmann machines.

    Parameters
    ----------
    n_hidden : int, default=10
        Hidden units of each machine.
    n_layers : int, default=2
        Number of machines, one on the hidden units of the other.
    learner : str, bank or estimator, default="auto"
        The learners on the hidden units: "auto", "naive_bayes", "sgd", "ridge", "rls", a bank of `labelrace.learners`,
        or an estimator with ``partial_fit``. "auto" is naive Bayes.
    rate : float, default=0.1
        Learning rate of the machines.
    minibatch : int, default=10
        Rows of a minibatch.
    epochs : int, default=100
        Times that the machines go through the first batch.
    random_state : int, Generator, RandomState or None, default=None
        What the machines' weights are drawn from.

    See Also
    --------
    BinaryRelevanceClassifier : The same learners on the features themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import RBMClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> RBMClassifier(random_state=0).fit(X, X).predict([[1.0, 0.0]])
    array([[1., 0.]])
    """

    n_hidden: int = 10
    n_layers: int = 2
    learner: Any = "auto"
    rate: float = 0.1
    minibatch: int = 10
    epochs: int = 100
    random_state: Any = None

    def _algorithm(self, seed: int) -> RBMFeatures:
        for name in ("n_hidden", "n_layers", "minibatch", "epochs"):
            parameters.check_whole(name, getattr(self, name), 1)
        parameters.check_number("rate", self.rate, 0, open_low=True)
        sizes = int(self.n_hidden), int(self.n_layers), float(self.rate), int(self.minibatch), int(self.epochs)
        return RBMFeatures(as_bank(self.learner), *sizes)
