"""Predictions that do not look at the features: the frequent labels, or none.

What a method must beat. ``majority`` predicts as many labels as a row of the last batch had on average, rounded down,
namely the most frequent ones so far; ``negative`` predicts none.

Cost: a batch ``|y|`` a row; state ``l``. Online, mergeable, growable, all exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from labelrace.base import growth, parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.growth import SUM
from labelrace.base.schema import Schema
from labelrace.base.sparse import weighted
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """How frequent labels are."""

    counts: Annotated[FloatArray, "l", SUM]  # rows with each label
    rows: Annotated[float, SUM]  # rows learned
    last_cardinality: float  # mean number of labels of a row in the last batch


class Derived(NamedTuple):
    """Each label's share of rows, and which labels are predicted."""

    frequency: FloatArray
    predicted: BoolArray


@dataclass(frozen=True)
class Constant(Algorithm[State]):
    """The algorithm."""

    majority: bool  # whether the most frequent labels are predicted, or none

    state_type = State
    unweighted = None
    skips_missing: ClassVar[bool] = True  # as no feature is looked at

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        return State(np.zeros(schema.n_labels), 0.0, 0.0)

    def update(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> State:
        """Count the labels of a batch."""
        counts = np.asarray(weighted(Y, row_weights).sum(axis=0), dtype=float)
        rows = float(Y.shape[0] if row_weights is None else row_weights.sum())
        return State(state.counts + counts, state.rows + rows, float(counts.sum() / rows))

    def derive(self, state: State) -> Derived:
        """Choose the labels to predict; of equally frequent ones the first."""
        predicted = np.zeros(len(state.counts), dtype=bool)
        if self.majority:
            most_frequent = np.argsort(-state.counts, kind="stable")
            predicted[most_frequent[: int(state.last_cardinality)]] = True
        return Derived(np.minimum(state.counts / state.rows, 1.0), predicted)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Return the labels' frequencies for every row; all zero if none is predicted anyway."""
        scores = derived.frequency if self.majority else np.zeros_like(derived.frequency)
        return np.tile(scores, (X.shape[0], 1))

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Return the predicted labels, the same for every row."""
        return np.broadcast_to(derived.predicted, (X.shape[0], len(derived.predicted))).copy()

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Return the labels' frequencies for every row."""
        return np.tile(derived.frequency, (X.shape[0], 1))

    def merge(self, one: State, other: State) -> State:
        """Add counts; the other one's rows are taken for the later ones."""
        last = other.last_cardinality if other.rows else one.last_cardinality
        merged: State = growth.add(one, other)
        return merged._replace(last_cardinality=last)


class ConstantClassifier(OnlineClassifier):
    """Predicts the same labels whatever the features: what any method must beat.

    Parameters
    ----------
    strategy : {"majority", "negative"}, default="majority"
        Predict the most frequent labels, as many as a row of the last batch had on average, rounded down; or none.

    See Also
    --------
    LabelRaceClassifier : The default.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import ConstantClassifier
    >>> Y = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0]])
    >>> ConstantClassifier().fit(np.zeros((3, 1)), Y).predict([[0.0]])
    array([[1, 0, 0]])
    """

    strategy: Literal["majority", "negative"] = "majority"

    def _algorithm(self, seed: int) -> Constant:
        parameters.check_choice("strategy", self.strategy, ("majority", "negative"))
        return Constant(majority=self.strategy == "majority")
