"""What linear models that learn row by row have in common: AROW and AdaGrad, for all labels at once.

Each label has weights and, for each weight, a second number that grows with what was learned, its extra precision: how
sure the model is of it, or how large its gradients were. A row changes the weights of the features that it has, for all
labels by the same few products. Features are scaled as `race` scales them (`labelrace.linear.scaling`), without random
features; there is an intercept, a feature that is always 1. Label sets are chosen as `race` chooses them
(`labelrace.decisions.monitoring`), from the scores that rows had before they were learned.

Cost: a row ``nnz(x) l``, to learn and to predict; the state ``2 m l``. Online; new labels and features start from
nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import missing_labels, threads
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions import monitoring, rules
from labelrace.decisions.monitoring import Decision, Monitor
from labelrace.exceptions import DivergenceError
from labelrace.learners.design import with_ones
from labelrace.linear import blocks, scaling
from labelrace.linear.scaling import ScalingState
from labelrace.linear.versioned_rows import VersionedRows, product_of, replaced_rows, rows_of, with_rows
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray


class State(NamedTuple):
    """Weights, the extra precision of each of them, and what monitored rows have shown."""

    scaling: ScalingState  # how columns are scaled
    # Of sparse data, `VersionedRows`.
    weights: Annotated[Array, "M+r l", "float"]
    extra_precision: Annotated[Array, "M+r l", "float"]
    # The same for the feature that is always 1.
    intercepts: Annotated[FloatArray, "l"]
    intercept_extra_precision: Annotated[FloatArray, "l"]
    rows: float  # rows learned so far
    monitor: Annotated[Monitor, "o=l"]  # what rows have shown before they were learned


class Derived(NamedTuple):
    """What predicting needs."""

    scaling: ScalingState
    scales: FloatArray
    weights: Array
    intercepts: FloatArray
    intercept_extra_precision: FloatArray  # 0 for labels of which nothing was ever known
    decision: Decision


class LinearAlgorithm(Algorithm[State]):
    """Linear models of all labels: a subclass is a step, and what turns its scores into numbers around [0, 1]."""

    state_type = State
    learns_missing_labels: ClassVar[bool] = True
    skips_missing: ClassVar[bool] = True  # a missing value counts as the mean, or as zero in sparse data

    @abstractmethod
    def step(
        self, x: FloatArray, y: FloatArray, score: FloatArray, weights: Array, extra_precision: Array
    ) -> tuple[Array, Array]:
        """Compute what is to be added to the weights and to their extra precision, (t, l), by a row.

        ``x`` are the ``t`` features that it has, ``y`` its labels, NaN where not known, and ``score`` what the model
        says of them.
        """

    @abstractmethod
    def likely(self, scores: FloatArray) -> FloatArray:
        """Turn scores into numbers around [0, 1]: 1/2 where the model cannot tell."""

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing; the first batch decides which columns it has."""
        return self._zeros(scaling.init(schema.kinds), schema.n_labels)

    def _zeros(self, scaled: ScalingState, n_labels: int) -> State:
        """Make the state of a model with zero weights on given columns."""
        m = scaling.n_columns(scaled)
        weights, extra_precision = (self._as_table(scaled, np.zeros((m, n_labels))) for _ in range(2))
        none = np.zeros(n_labels)
        return State(scaled, weights, extra_precision, none, none, 0.0, monitoring.init(n_labels))

    @staticmethod
    def _as_table(scaled: ScalingState, array: Array) -> Any:
        """Put an array that is used nowhere else into a table, where data is sparse."""
        return array if scaled.is_dense else VersionedRows.taking(array)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, row by row; rows without a known label are left out."""
        X, Y, _ = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        is_first = state.rows == 0
        known = state.scaling.kinds
        kinds = known.widened(X)
        if is_first:
            scaled = scaling.start(X, kinds, 0, np.random.default_rng(0))
            state = self._zeros(scaling.update(scaled, X), Y.shape[1])
        elif kinds is not known:
            state = self.take(state, Moves(known.moves(kinds), kinds))
        labels = np.asarray(dense(Y), dtype=float)
        with threads.limited(len(labels)):
            state, scores, some = self._learn_batch(state, scaling.transform(state.scaling, X), labels)
        add = monitoring.count_rows if is_first else monitoring.observe
        likely = self._likely_if_learned(scores, state.intercept_extra_precision)
        monitor = monitoring.count_labels(add(state.monitor, likely, labels[some]), labels)
        scaled = state.scaling if is_first else scaling.update(state.scaling, X)
        return state._replace(scaling=scaled, rows=state.rows + len(labels), monitor=monitor)

    def _learn_batch(self, state: State, Z: AnyMatrix, Y: FloatArray) -> tuple[State, FloatArray, IntArray]:
        """Learn rows on a copy of what they touch; return also the scores that some of them had before."""
        Z, touched = blocks.without_empty_columns(Z)
        before = [rows_of(array, touched) for array in (state.weights, state.extra_precision)]
        weights = np.vstack([before[0], state.intercepts])
        extra_precision = np.vstack([before[1], state.intercept_extra_precision])
        some = np.arange(len(Y))[monitoring.sample(Y.shape)]
        if state.rows == 0:
            # Of a model that has learned nothing, or next to nothing, scores say nothing.
            some = some[some >= len(Y) // 4]
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._learn_rows(weights, extra_precision, with_ones(Z), Y, set(some.tolist()))
            if not np.isfinite(weights.sum() + extra_precision.sum()):
                raise DivergenceError("The weights have overflowed: scale X down, or learn more slowly.")
        learned = state._replace(
            weights=replaced_rows(state.weights, touched, weights[:-1], before[0]),
            extra_precision=replaced_rows(state.extra_precision, touched, extra_precision[:-1], before[1]),
            intercepts=weights[-1].copy(),
            intercept_extra_precision=extra_precision[-1].copy(),
        )
        return learned, scores, some

    def _learn_rows(
        self, weights: Array, extra_precision: Array, Z: AnyMatrix, Y: FloatArray, some: set[int]
    ) -> FloatArray:
        """Write what rows teach into the arrays: one after the other, as each begins where the last one ended."""
        is_sparse, scores = scipy.sparse.issparse(Z), []
        for row, y in enumerate(Y):
            used: Any = slice(None)
            if is_sparse:
                here = slice(Z.indptr[row], Z.indptr[row + 1])
                x, used = Z.data[here], Z.indices[here]
            else:
                x = Z[row]
            w, g = weights[used], extra_precision[used]
            score = x @ w
            if row in some:
                scores.append(score)
            change, gain = self.step(x, y, score, w, g)
            weights[used] = w + change
            extra_precision[used] = g + gain
        return np.array(scores)

    def derive(self, state: State) -> Derived:
        """Read the thresholds off what was counted."""
        decision = monitoring.decide(state.monitor, "cardinality")
        scales, learned = scaling.scale(state.scaling), state.intercept_extra_precision
        return Derived(state.scaling, scales, state.weights, state.intercepts, learned, decision)

    def _likely_if_learned(self, scores: FloatArray, intercept_extra_precision: FloatArray) -> FloatArray:
        """Turn scores into numbers around [0, 1]: 0 for labels of which nothing was ever known.

        What the model cannot tell would be 1/2, and often the best score of a row, which all others are compared with.
        """
        return np.where(intercept_extra_precision > 0, self.likely(scores), 0.0)

    def _adjusted(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        Z = scaling.transform(derived.scaling, X, derived.scales)
        with threads.limited(Z.shape[0]):
            raw = product_of(Z, derived.weights) + derived.intercepts
        likely = self._likely_if_learned(raw, derived.intercept_extra_precision)
        return rules.adjusted(likely, derived.decision.offsets)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the adjusted scores; the threshold is at zero."""
        return self._adjusted(derived, X) - derived.decision.rule.threshold

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose as many labels as there were recently."""
        return rules.choose(derived.decision.rule, self._adjusted(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        return rules.probabilities(derived.decision.rule, self._adjusted(derived, X))

    def scores_and_probabilities(self, derived: Derived, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
        """Compute the adjusted scores once for both."""
        rule, adjusted = derived.decision.rule, self._adjusted(derived, X)
        return adjusted - rule.threshold, rules.probabilities(rule, adjusted)

    def parts(self) -> Mapping[str, Any]:
        """Return what knows how the scaling of features moves."""
        return {"scaling": scaling}

    def reset_features(self, state: State, features: IntArray) -> State:
        """Forget what was learned of features, if all are numeric."""
        if not state.scaling.kinds.all_numeric:
            return state
        zeros = np.zeros((len(features), len(state.intercepts)))
        return state._replace(
            scaling=scaling.reset(state.scaling, features),
            weights=with_rows(state.weights, features, zeros),
            extra_precision=with_rows(state.extra_precision, features, zeros),
        )


class LinearClassifier(OnlineClassifier):
    """What their classes have in common.

    Attributes
    ----------
    threshold_ : float
        The adjusted score above which a label is predicted; `decision_function` has it subtracted.
    """

    @property
    def threshold_(self) -> float:
        """The adjusted score above which a label is predicted."""
        return float(self.fitted.derived.decision.rule.threshold)
