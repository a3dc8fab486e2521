"""Joining models of the default that learned different rows.

*In shares.* A share is a copy of a common model, the start, that learns a part of the rows: a worker of a distributed
fit. It holds out a few rows, and its result is a `Gain`: differences to the start that can be added, labels and
features by name, in any order. `join` makes one model of the start and the sum of the gains: on the line between the
mean of the shares and the sum of what they learned it takes the point with the least clipped squared error on the
held-out rows, computes the thresholds from the scores of these rows, and then learns them.

*Two models* that have no start in common are joined by `merge`, half-way on that line.

*The line.* The precision of `labelrace.linear.rls` is diagonal, so that precisions, and weights times precisions (the
*natural parameters* of a normal distribution), can be added up, column by column. Shares ``e = 1 … S`` start from
weights ``W₀`` with precision ``d₀`` and end with ``W_e`` and ``d_e``. Added up are the gains, ``d_e - d₀`` and
``d_e W_e - d₀ W₀``. Two joint models follow from the sums:

- the *sum of natural parameters*, ``W_nat = (Σ d_e W_e - (S-1) d₀ W₀) / (Σ d_e - (S-1) d₀)``, which would be right if
  columns were independent, and overshoots where they are not;
- the *mean* ``W_avg = Σ d_e W_e / Σ d_e``, which never overshoots, and lags behind. A column's mean is that of the
  shares in whose rows it occurred, only. For a column of one share both are the same.

The joint model lies between them, ``W_avg + τ_c (W_nat - W_avg)``. The sum overshoots where several shares make the
same correction to a column, so that a column is the closer to the sum the fewer shares it occurred in: in ``n`` of
``S``, ``τ_c = (1 - ρ) / (1 + (n - 1) ρ)``, where ``ρ`` is such that it is ``τ`` for ``n = S``. The precision is that of
``W_nat``.

*Forgetting.* While a share learns, it forgets the start by a factor ``f_e``; the joint model forgets it by all of them,
``Π f_e``, and the gains by as much as if the shares had learned one after the other.

Nothing of this is exact. Costs: ``O(c k)`` for ``c`` columns that occur in the rows of a share and ``k`` targets, for
each share and for the joint model; columns that do not occur have gained nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelrace.base.alignment import align, join_schemas
from labelrace.base.fitted import Fitted
from labelrace.base.schema import Batch, Schema
from labelrace.base.sparse import dense
from labelrace.decisions import drift, monitoring
from labelrace.exceptions import MergeError
from labelrace.linear import blocks
from labelrace.linear.rls import RLS, RLSState
from labelrace.linear.scaling import ScalingState
from labelrace.linear.versioned_rows import rows_of, with_rows
from labelrace.linear.warm_up import INTERCEPT_PRECISION, WarmUp
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from labelrace.linear.classifier import LabelRace, State

FRACTIONS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
"""Points on the line from the mean, 0, to the sum, 1, that are tried, for columns that occurred in all shares."""

# The point that is used where there are no held-out rows to choose it by.
HALF_WAY = 0.5


class Gain(NamedTuple):
    """What shares have learned since their start: differences that can be added."""

    schema: Schema  # names of labels and features; those of the start are first
    learners: WeightGain  # of the linear models
    # Alarms and confirmed drifts, in the share with most of them.
    n_alarms: float
    n_drifts: float

    def plus(self, other: Gain, columns: IntArray | None = None) -> Gain:
        """Add what other shares have gained, labels and features by name; ``columns`` as in `Fitted.merge`."""
        schema, labels, features = join_schemas(self.schema, other.schema, columns)
        one, two = self.grown(schema), other._realigned(schema, labels, features)
        learners = add_weights(one.learners, two.learners)
        return Gain(schema, learners, max(one.n_alarms, two.n_alarms), max(one.n_drifts, two.n_drifts))

    def grown(self, schema: Schema) -> Gain:
        """Append features and labels, with gains of zero."""
        return self._realigned(schema, np.arange(self.schema.n_labels), np.arange(self.schema.n_features))

    def _realigned(self, schema: Schema, labels: IntArray, features: IntArray) -> Gain:
        """Give labels and features the columns that they have in a wider schema."""
        is_same = schema.n_features == len(features) and np.array_equal(features, np.arange(len(features)))
        if not is_same and (self.learners.scaling.is_dense or not schema.kinds.all_numeric):
            raise MergeError(
                "The models cannot be merged: shares of dense or nominal features must have the same ones."
            )
        # Dense data and nominal features have other columns than features, but all shares have all of them.
        columns = np.arange(int(self.learners.touched.max(initial=-1)) + 1) if is_same else features
        learners = move_weights(self.learners, columns, labels, schema.n_labels)
        return self._replace(schema=schema, learners=learners)


def is_ready(start: Fitted) -> bool:
    """Return whether a model is past its warm-up, so that shares can start from it."""
    return not start.state.learners.warm_up.n_fitted


def gain(start: Fitted, end: Fitted, touched: IntArray | None = None) -> Gain:
    """Compute what a share has gained since the start.

    Parameters
    ----------
    start, end : Fitted
        The share before and after it has learned; both past their warm-up.
    touched : array, default=None
        Features that occurred in its rows, if known: the gains of others are zero.
    """
    start, algorithm = start.grow(end.schema), start.algorithm
    _refuse_outgrown(algorithm, start, end)
    one, two = start.state, end.state
    _refuse_incompatible(one, two)
    scaled = two.learners.scaling
    if touched is None or scaled.is_dense or not scaled.kinds.all_numeric:
        touched = np.arange(len(two.learners.weights))
    learners = weight_gain(end.algorithm.bank, one.learners, two.learners, touched)
    return Gain(end.schema, learners, two.n_alarms, two.n_drifts)


def join(start: Fitted, total: Gain, batch: Batch | None = None) -> Fitted:
    """Make the joint model of shares.

    Parameters
    ----------
    start : Fitted
        What all shares started from.
    total : Gain
        The sum of what the shares have gained.
    batch : Batch, default=None
        Rows that no share has learned, with the features and labels of the sum, and new ones behind them; without rows
        the joint model is half-way between the mean and the sum, and has the thresholds of the start.
    """
    total = total if batch is None else total.grown(batch.schema)
    start, algorithm = start.grow(total.schema), start.algorithm
    _refuse_outgrown(algorithm, start)
    both = joint_weights(start.state.learners, total.learners)
    # Of a fork, the model that predicts is joined.
    state = start.state._replace(n_alarms=total.n_alarms, n_drifts=total.n_drifts, fork=())
    if batch is None or batch.X.shape[0] == 0:
        return start.replace(total.schema, state._replace(learners=both.between(HALF_WAY)))
    joint = start.replace(total.schema, _choose_fraction(start.algorithm, state, both, batch.X, batch.Y))
    return joint.or_successor(total.schema)


def _choose_fraction(algorithm: LabelRace, state: State, both: Joint, X: AnyMatrix, Y: AnyMatrix) -> State:
    """Take the point between mean and sum with the least error on held-out rows, and learn these."""
    labels = np.asarray(dense(Y), dtype=float)
    values = list(both.values(algorithm.bank, X, FRACTIONS))
    best = int(np.argmin([drift.clipped_errors(scores, labels).sum() for scores in values]))
    joint = state._replace(learners=both.between(FRACTIONS[best]), monitor=monitoring.without_waiting(state.monitor))
    return algorithm.learn_held_out(joint, values[best], X, labels)


def merge(one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
    """Join two models that have no start in common but zero weights: half-way between mean and sum.

    Of the thresholds, what both have counted is added. ``columns`` as in `Fitted.merge`.
    """
    _refuse_incompatible(one.state, one.state)
    _refuse_incompatible(other.state, other.state)
    algorithm = one.algorithm
    one, other = align(one, other, columns)
    _refuse_outgrown(algorithm, one)
    for fitted in (one, other):
        if fitted.state.learners.warm_up.n_fitted:
            raise MergeError(
                "The models cannot be merged: one of them has learned too few rows; let it learn some hundred more."
            )
    start = one.replace(one.schema, one.algorithm.with_zero_weights(one.state))
    state = join(start, gain(start, one).plus(gain(start, other))).state
    monitor = monitoring.merge(one.state.monitor, other.state.monitor)
    return one.replace(one.schema, state._replace(monitor=monitor))


def _refuse_incompatible(one: State, other: State) -> None:
    """Raise `MergeError` if the weights of two states are not those of the same columns and targets."""
    reason = why_incompatible(one.learners, other.learners)
    if reason:
        raise MergeError(f"The models cannot be merged: {reason}.")


def _refuse_outgrown(algorithm: LabelRace, *models: Fitted) -> None:
    """Raise `MergeError` if a model has become that of compressed labels."""
    if any(fitted.algorithm != algorithm for fitted in models):
        raise MergeError(f"The models cannot be merged: {algorithm.outgrown}.")


class Forgetting(NamedTuple):
    """How much shares have forgotten of their start."""

    n_shares: float
    kept_sum: float  # sum of the shares' forgetting factors
    kept_product: float  # product of them

    def plus(self, other: Forgetting) -> Forgetting:
        """Add further shares."""
        return Forgetting(
            self.n_shares + other.n_shares, self.kept_sum + other.kept_sum, self.kept_product * other.kept_product
        )

    def kept_of_gains(self) -> float:
        """Compute the share of the gains, on average, that would be kept had the shares learned one after the other."""
        lost = self.n_shares - self.kept_sum
        return (1.0 - self.kept_product) / lost if lost > 1e-9 * self.n_shares else 1.0


class WeightGain(NamedTuple):
    """What shares have gained since the start."""

    touched: IntArray  # (c,): columns that have gained something, in order
    shares_per_column: FloatArray  # (c,): number of shares in which each of them has
    natural: Array  # (c, k): differences of natural parameters, weights times precisions
    precision: FloatArray  # (c, 2): differences of precisions, of all labels and of the recent ones
    # (k,) and (2,): the same for the intercepts.
    intercepts: FloatArray
    intercept_precision: FloatArray
    rows: float  # rows learned
    first_seen: FloatArray  # (k,): rows learned before each target was first other than 0, in the start and a share
    recent_since: float  # when the group of recent labels began
    scaling: ScalingState  # moments of the columns, pooled; those of the start are in each share's
    forgetting: Forgetting  # how much was forgotten of the start


class Joint(NamedTuple):
    """The two ends of the line between joint models, the mean and the sum: weights of some columns, and intercepts."""

    state: RLSState  # weights and intercepts of the start; all else is that of the joint model
    touched: IntArray  # (c,): the columns
    shares_per_column: FloatArray  # (c,): number of shares in whose rows each of them occurred
    n_shares: float
    start_weights: Array  # (c, k)
    sum_weights: Array
    mean_weights: Array
    sum_intercepts: FloatArray
    mean_intercepts: FloatArray

    def between(self, fraction: float) -> RLSState:
        """Return the model at a fraction of the line from mean to sum, for columns that occurred in all shares."""
        weights, intercepts = self._weights(fraction, slice(None)), self._intercepts(fraction)
        return self.state._replace(weights=with_rows(self.state.weights, self.touched, weights), intercepts=intercepts)

    def _weights(self, fraction: float, index: Any) -> Array:
        overlap = (1.0 - fraction) / (1.0 + (self.n_shares - 1.0) * fraction)
        part = (1.0 - overlap) / (1.0 + (self.shares_per_column[index] - 1.0) * overlap)
        mean = self.mean_weights[index]
        weights: Array = mean + part.astype(mean.dtype)[:, None] * (self.sum_weights[index] - mean)
        return weights

    def _intercepts(self, fraction: float) -> FloatArray:
        return self.mean_intercepts + fraction * (self.sum_intercepts - self.mean_intercepts)

    def values(self, bank: RLS, X: AnyMatrix, fractions: Sequence[float]) -> Iterator[FloatArray]:
        """Yield the predictions for rows of the models at some fractions of the line."""
        derived = bank.derive(self.state)
        Z = bank.transform(derived, X)
        start = bank.predict_transformed(derived, Z).astype(float) - self.state.intercepts
        here, index = blocks.without_empty_columns(Z[:, self.touched])
        for fraction in fractions:
            change = self._weights(fraction, index) - self.start_weights[index]
            yield start + np.asarray(here @ change) + self._intercepts(fraction)


def why_incompatible(one: RLSState, other: RLSState) -> str | None:
    """Return why two states do not have the same columns; None if they do."""
    a, b = one.scaling, other.scaling
    if a.is_dense != b.is_dense:
        return "one took its features for sparse, the other for dense; let both start from one model"
    if not np.array_equal(a.kinds.n_values, b.kinds.n_values):
        return "they know different values of nominal features; let both start from one model"
    if a.is_dense and not np.array_equal(a.directions, b.directions):
        return "their random features differ; let both start from one model"
    return None


def weight_gain(bank: RLS, start: RLSState, end: RLSState, touched: IntArray) -> WeightGain:
    """Compute what a share has gained since the start, which has the same columns and targets."""
    kept, recent = bank.forgetting_factor(int(end.rows - start.rows)), _recent_labels(start)
    before = start.alpha + kept * start.decay * rows_of(start.extra_precision, touched)
    after = end.alpha + end.decay * rows_of(end.extra_precision, touched)
    intercept_before, intercept_after = (
        INTERCEPT_PRECISION + kept * start.intercept_extra_precision,
        INTERCEPT_PRECISION + end.intercept_extra_precision,
    )
    if end.recent_since != start.recent_since:
        # The recent labels of the start have joined the others, and a new group of recent labels has begun.
        before[:, 1], intercept_before[1] = start.alpha, INTERCEPT_PRECISION
    natural = _scaled_columns(rows_of(end.weights, touched), after, recent)
    natural -= _scaled_columns(rows_of(start.weights, touched), before, recent)
    which = recent.astype(np.intp)
    return WeightGain(
        touched,
        np.ones(len(touched)),
        natural,
        after - before,
        end.intercepts * intercept_after[which] - start.intercepts * intercept_before[which],
        intercept_after - intercept_before,
        end.rows - start.rows,
        end.first_seen,
        end.recent_since,
        end.scaling,
        Forgetting(1.0, kept, kept),
    )


def move_weights(gains: WeightGain, new_columns: IntArray, targets: IntArray | None, n_targets: int) -> WeightGain:
    """Give columns and targets other positions, the targets among ``n_targets``; None keeps the targets."""
    touched = new_columns[gains.touched]
    if targets is not None and n_targets == len(targets) and np.array_equal(targets, np.arange(n_targets)):
        targets = None
    if targets is None and np.array_equal(touched, gains.touched):
        return gains
    order = np.argsort(touched)
    natural, intercepts, first_seen = gains.natural[order], gains.intercepts, gains.first_seen
    if targets is not None:
        wider = np.zeros((len(order), n_targets), natural.dtype), np.zeros(n_targets), np.full(n_targets, np.inf)
        wider[0][:, targets], wider[1][targets], wider[2][targets] = natural, intercepts, first_seen
        natural, intercepts, first_seen = wider
    return gains._replace(
        touched=touched[order],
        shares_per_column=gains.shares_per_column[order],
        natural=natural,
        precision=gains.precision[order],
        intercepts=intercepts,
        first_seen=first_seen,
    )


def add_weights(one: WeightGain, other: WeightGain) -> WeightGain:
    """Add what two groups of shares have gained, with the same targets."""
    touched = np.union1d(one.touched, other.touched)
    natural = np.zeros((len(touched), one.natural.shape[1]), one.natural.dtype)
    shares, precision = np.zeros(len(touched)), np.zeros((len(touched), 2))
    for part in (one, other):
        index = np.searchsorted(touched, part.touched)
        shares[index] += part.shares_per_column
        natural[index] += part.natural
        precision[index] += part.precision
    return WeightGain(
        touched,
        shares,
        natural,
        precision,
        one.intercepts + other.intercepts,
        one.intercept_precision + other.intercept_precision,
        one.rows + other.rows,
        np.minimum(one.first_seen, other.first_seen),
        max(one.recent_since, other.recent_since),
        _pooled(one.scaling, other.scaling),
        one.forgetting.plus(other.forgetting),
    )


def joint_weights(start: RLSState, gains: WeightGain) -> Joint:
    """Compute the joint models of shares from their start, with the same columns and targets, and what they gained."""
    forgetting, recent = gains.forgetting, _recent_labels(start)
    kept_of_gains, which = forgetting.kept_of_gains(), recent.astype(np.intp)
    known, weights = start.decay * rows_of(start.extra_precision, gains.touched), rows_of(start.weights, gains.touched)
    models, precisions = [], []
    # In the sum the start counts once, forgotten by all shares; in the mean once for each share that has the column.
    met = (gains.shares_per_column / forgetting.n_shares)[:, None]
    of_sum = 1.0, forgetting.kept_product, kept_of_gains, 1.0
    of_mean = forgetting.n_shares, forgetting.kept_sum, 1.0, met
    for times, kept, of_gains, part in (of_sum, of_mean):
        base = part * (times * start.alpha + kept * known)
        precision = np.maximum(base + of_gains * gains.precision, start.alpha)
        natural = _scaled_columns(weights, base, recent) + weights.dtype.type(of_gains) * gains.natural
        intercept_base = times * INTERCEPT_PRECISION + kept * start.intercept_extra_precision
        intercept_precision = np.maximum(intercept_base + of_gains * gains.intercept_precision, INTERCEPT_PRECISION)
        intercepts = start.intercepts * intercept_base[which] + of_gains * gains.intercepts
        models.append((_scaled_columns(natural, 1.0 / precision, recent), intercepts / intercept_precision[which]))
        precisions.append((precision, intercept_precision))
    precision, intercept_precision = precisions[0]
    decay = start.decay * forgetting.kept_product
    unused = rows_of(start.extra_precision, gains.touched)[:, 0] == 0.0
    state = start._replace(
        scaling=_with_joint_rows(gains.scaling, start.scaling, forgetting),
        extra_precision=with_rows(start.extra_precision, gains.touched, (precision - start.alpha) / decay),
        decay=decay,
        n_used_columns=start.n_used_columns + float(np.count_nonzero(unused & (precision[:, 0] > start.alpha))),
        intercept_extra_precision=intercept_precision - INTERCEPT_PRECISION,
        rows=start.rows + gains.rows,
        first_seen=np.minimum(start.first_seen, gains.first_seen),
        is_recent_label=recent & np.isfinite(gains.first_seen),
        recent_since=gains.recent_since,
        warm_up=WarmUp.empty(),
    )
    both = (models[0][0], models[1][0], models[0][1], models[1][1])
    return Joint(state, gains.touched, gains.shares_per_column, forgetting.n_shares, weights, *both)


def _recent_labels(start: RLSState) -> BoolArray:
    """Return which targets have the precision of recent labels: these, and those not yet seen."""
    return start.is_recent_label | np.isinf(start.first_seen)


def _scaled_columns(weights: Array, precision: FloatArray, recent: BoolArray) -> Array:
    """Multiply the weights of each column by its precision, or by that of recent labels for targets that are such."""
    factors = precision.astype(weights.dtype)
    product = weights * factors[:, :1]
    if recent.any():
        product[:, recent] = weights[:, recent] * factors[:, 1:]
    return product


def _pooled(one: ScalingState, other: ScalingState) -> ScalingState:
    """Pool the moments of two groups of shares."""
    if not one.is_dense:
        return one
    rows = one.rows + other.rows
    step, share = other.mean - one.mean, other.rows / np.maximum(rows, 1e-300)
    square = one.sum_squares + other.sum_squares + step**2 * (one.rows * share)
    return one._replace(rows=rows, mean=one.mean + share * step, sum_squares=square)


def _with_joint_rows(pooled: ScalingState, start: ScalingState, forgetting: Forgetting) -> ScalingState:
    """Give pooled moments the number of rows that the joint model has learned, with the start counted once."""
    if not pooled.is_dense:
        return start
    rows = forgetting.kept_product * start.rows + forgetting.kept_of_gains() * (
        pooled.rows - forgetting.kept_sum * start.rows
    )
    rows = np.where(pooled.rows > 0, np.maximum(rows, 1.0), 0.0)
    square = pooled.sum_squares * (rows / np.maximum(pooled.rows, 1e-300))
    return start._replace(rows=rows, mean=pooled.mean, sum_squares=square)
