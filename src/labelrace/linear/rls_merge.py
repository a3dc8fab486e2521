"""Joining banks of recursive least squares that learned different rows from one start.

The precision of `labelrace.linear.rls` is diagonal, so that what a bank knows can be added up, column by column.
Shards ``e = 1 … S`` start from weights ``W₀`` with precision ``d₀`` and end with ``W_e`` and ``d_e``. Added up is what
each has gained, ``d_e - d₀`` and ``d_e W_e - d₀ W₀``. Two joint models follow from the sums:

- the *sum of natural parameters*, ``W_nat = (Σ d_e W_e - (S-1) d₀ W₀) / (Σ d_e - (S-1) d₀)``, which would be right if
  columns were independent, and overshoots where they are not;
- the *mean* ``W_avg = Σ d_e W_e / Σ d_e``, which never overshoots, and lags behind. A column's mean is that of the
  shards in whose rows it occurred: the others say nothing of it. What one shard alone has met is the same in both.

The joint model lies between them, ``W_avg + τ_c (W_nat - W_avg)``. What overshoots are corrections that several shards
make to the same columns, so that a column goes the farther to the sum the fewer have met it: of ``n`` among ``S``,
``τ_c = (1 - ρ) / (1 + (n - 1) ρ)``, where ``ρ`` is such that it is ``τ`` for ``n = S``. `labelrace.linear.joining`
finds ``τ``. The precision is that of ``W_nat``.

*Forgetting.* While a shard learns, the start fades for it by a factor ``f_e``; for the joint model it fades by all of
them, ``Π f_e``, and what the shards have gained fades by what it would have lost had they learned one after the other.

Nothing of this is exact. Costs: ``O(c k)`` for ``c`` columns that occur in the rows of a shard and ``k`` targets, for
each shard and for the joint model; columns that do not occur have gained nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelrace.linear import blocks as products
from labelrace.linear.rls import RLS, RLSState
from labelrace.linear.scaling import ScalingState
from labelrace.linear.versioned import rows_of, with_rows
from labelrace.linear.warm_up import INTERCEPT_PRECISION, WarmUp
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray


class Fading(NamedTuple):
    """How far the start has faded for shards."""

    shards: float  # number of shards
    kept: float  # sum of what each has kept of the start
    kept_of_all: float  # product of what each has kept of it

    def plus(self, other: Fading) -> Fading:
        """Add further shards."""
        return Fading(self.shards + other.shards, self.kept + other.kept, self.kept_of_all * other.kept_of_all)

    def of_gains(self) -> float:
        """Compute what would be left, on average, of what shards gained had they learned one after the other."""
        lost = self.shards - self.kept
        return (1.0 - self.kept_of_all) / lost if lost > 1e-9 * self.shards else 1.0


class Gains(NamedTuple):
    """What shards have gained since the start."""

    touched: IntArray  # (c,): columns that have gained something, in order
    shards: FloatArray  # (c,): number of shards in which each of them has
    natural: Array  # (c, k): differences of natural parameters
    precision: FloatArray  # (c, 2): differences of precisions, of all labels and of the recent ones
    # (k,) and (2,): the same for the intercepts.
    intercepts: FloatArray
    intercept_precision: FloatArray
    rows: float  # rows learned
    first_seen: FloatArray  # (k,): rows before each target was first other than 0, of the start and in a shard
    recent_since: float  # when the group of recent labels began
    scaling: ScalingState  # moments of the columns, pooled; those of the start are in each shard's
    fading: Fading  # how far the start has faded


class Joint(NamedTuple):
    """Two joint models: the sum's and the mean's weights of the columns ``touched``, and intercepts.

    ``state`` has the start's weights and intercepts, and all else of the joint model; ``known`` are the start's weights
    of those columns; ``shards`` is how many shards have met each of them, of ``n_shards``.
    """

    state: RLSState
    touched: IntArray
    shards: FloatArray
    n_shards: float
    known: Array
    of_sum: Array
    mean: Array
    intercepts_of_sum: FloatArray
    intercepts_mean: FloatArray

    def between(self, share: float) -> RLSState:
        """Return the model that is a share of the way from the mean to the sum, of columns that all shards have met."""
        weights, intercepts = self._weights(share, slice(None)), self._intercepts(share)
        return self.state._replace(weights=with_rows(self.state.weights, self.touched, weights), intercepts=intercepts)

    def _weights(self, share: float, places: Any) -> Array:
        overlap = (1.0 - share) / (1.0 + (self.n_shards - 1.0) * share)
        part = (1.0 - overlap) / (1.0 + (self.shards[places] - 1.0) * overlap)
        mean = self.mean[places]
        moved: Array = mean + part.astype(mean.dtype)[:, None] * (self.of_sum[places] - mean)
        return moved

    def _intercepts(self, share: float) -> FloatArray:
        return self.intercepts_mean + share * (self.intercepts_of_sum - self.intercepts_mean)

    def values(self, bank: RLS, X: AnyMatrix, shares: Sequence[float]) -> Iterator[FloatArray]:
        """Yield what the models that are some shares of the way predict for rows."""
        derived = bank.derive(self.state)
        Z = bank.transform(derived, X)
        start = bank.predict_transformed(derived, Z).astype(float) - self.state.intercepts
        here, places = products.without_empty_columns(Z[:, self.touched])
        for share in shares:
            change = self._weights(share, places) - self.known[places]
            yield start + np.asarray(here @ change) + self._intercepts(share)


def why_apart(one: RLSState, other: RLSState) -> str | None:
    """Return why the columns of two banks are not the same; None if they are."""
    a, b = one.scaling, other.scaling
    if bool(a.length) != bool(b.length):
        return "one took its features for sparse, the other for dense; let both start from one model"
    if not np.array_equal(a.n_values, b.n_values):
        return "they know different values of nominal features; let both start from one model"
    if a.length and not np.array_equal(a.directions, b.directions):
        return "their random features differ; let both start from one model"
    return None


def gain(bank: RLS, start: RLSState, end: RLSState, touched: IntArray) -> Gains:
    """Compute what a shard has gained since the start, which has the same columns and targets."""
    kept, recent = bank.factor(int(end.rows - start.rows)), _recent_labels(start)
    before = start.alpha + kept * start.decay * rows_of(start.extra_precision, touched)
    after = end.alpha + end.decay * rows_of(end.extra_precision, touched)
    intercept_before, intercept_after = (
        INTERCEPT_PRECISION + kept * start.intercept_extra_precision,
        INTERCEPT_PRECISION + end.intercept_extra_precision,
    )
    if end.recent_since != start.recent_since:
        # Labels that were recent are so no more, and another group of recent ones has begun.
        before[:, 1], intercept_before[1] = start.alpha, INTERCEPT_PRECISION
    natural = _times(rows_of(end.weights, touched), after, recent)
    natural -= _times(rows_of(start.weights, touched), before, recent)
    which = recent.astype(np.intp)
    return Gains(
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
        Fading(1.0, kept, kept),
    )


def moved(gains: Gains, columns: IntArray, targets: IntArray | None, n_targets: int) -> Gains:
    """Give columns and targets other places, among ``n_targets``; None keeps the targets."""
    places = columns[gains.touched]
    if targets is not None and n_targets == len(targets) and np.array_equal(targets, np.arange(n_targets)):
        targets = None
    if targets is None and np.array_equal(places, gains.touched):
        return gains
    order = np.argsort(places)
    natural, intercepts, first_seen = gains.natural[order], gains.intercepts, gains.first_seen
    if targets is not None:
        wider = np.zeros((len(order), n_targets), natural.dtype), np.zeros(n_targets), np.full(n_targets, np.inf)
        wider[0][:, targets], wider[1][targets], wider[2][targets] = natural, intercepts, first_seen
        natural, intercepts, first_seen = wider
    return gains._replace(
        touched=places[order],
        shards=gains.shards[order],
        natural=natural,
        precision=gains.precision[order],
        intercepts=intercepts,
        first_seen=first_seen,
    )


def added(one: Gains, other: Gains) -> Gains:
    """Add what two groups of shards have gained, with the same targets."""
    touched = np.union1d(one.touched, other.touched)
    natural = np.zeros((len(touched), one.natural.shape[1]), one.natural.dtype)
    shards, precision = np.zeros(len(touched)), np.zeros((len(touched), 2))
    for part in (one, other):
        places = np.searchsorted(touched, part.touched)
        shards[places] += part.shards
        natural[places] += part.natural
        precision[places] += part.precision
    return Gains(
        touched,
        shards,
        natural,
        precision,
        one.intercepts + other.intercepts,
        one.intercept_precision + other.intercept_precision,
        one.rows + other.rows,
        np.minimum(one.first_seen, other.first_seen),
        max(one.recent_since, other.recent_since),
        _pooled(one.scaling, other.scaling),
        one.fading.plus(other.fading),
    )


def joint(start: RLSState, gains: Gains) -> Joint:
    """Compute the joint models of shards from their start, with the same columns and targets, and what they gained."""
    fading, recent = gains.fading, _recent_labels(start)
    left, which = fading.of_gains(), recent.astype(np.intp)
    known, weights = start.decay * rows_of(start.extra_precision, gains.touched), rows_of(start.weights, gains.touched)
    models, precisions = [], []
    # Of the sum the start counts once, faded by all shards; of the mean once for each shard that has met the column.
    met = (gains.shards / fading.shards)[:, None]
    for times, kept, share, part in ((1.0, fading.kept_of_all, left, 1.0), (fading.shards, fading.kept, 1.0, met)):
        base = part * (times * start.alpha + kept * known)
        precision = np.maximum(base + share * gains.precision, start.alpha)
        natural = _times(weights, base, recent) + weights.dtype.type(share) * gains.natural
        intercept_base = times * INTERCEPT_PRECISION + kept * start.intercept_extra_precision
        intercept_precision = np.maximum(intercept_base + share * gains.intercept_precision, INTERCEPT_PRECISION)
        intercepts = start.intercepts * intercept_base[which] + share * gains.intercepts
        models.append((_times(natural, 1.0 / precision, recent), intercepts / intercept_precision[which]))
        precisions.append((precision, intercept_precision))
    precision, intercept_precision = precisions[0]
    decay = start.decay * fading.kept_of_all
    unused = rows_of(start.extra_precision, gains.touched)[:, 0] == 0.0
    state = start._replace(
        scaling=_of_rows(gains.scaling, start.scaling, fading),
        extra_precision=with_rows(start.extra_precision, gains.touched, (precision - start.alpha) / decay),
        decay=decay,
        in_use=start.in_use + float(np.count_nonzero(unused & (precision[:, 0] > start.alpha))),
        intercept_extra_precision=intercept_precision - INTERCEPT_PRECISION,
        rows=start.rows + gains.rows,
        first_seen=np.minimum(start.first_seen, gains.first_seen),
        is_recent_label=recent & np.isfinite(gains.first_seen),
        recent_since=gains.recent_since,
        warm_up=WarmUp.empty(),
    )
    both = (models[0][0], models[1][0], models[0][1], models[1][1])
    return Joint(state, gains.touched, gains.shards, fading.shards, weights, *both)


def _recent_labels(start: RLSState) -> BoolArray:
    """Tell which targets have the precision of recent labels: these, and those not yet seen."""
    return start.is_recent_label | np.isinf(start.first_seen)


def _times(weights: Array, precision: FloatArray, recent: BoolArray) -> Array:
    """Multiply weights by a number for each column, of their targets' generation."""
    factors = precision.astype(weights.dtype)
    product = weights * factors[:, :1]
    if recent.any():
        product[:, recent] = weights[:, recent] * factors[:, 1:]
    return product


def _pooled(one: ScalingState, other: ScalingState) -> ScalingState:
    """Pool the moments of two groups of shards."""
    if not one.length:
        return one
    rows = one.rows + other.rows
    step, share = other.mean - one.mean, other.rows / np.maximum(rows, 1e-300)
    square = one.square + other.square + step**2 * (one.rows * share)
    return one._replace(rows=rows, mean=one.mean + share * step, square=square)


def _of_rows(pooled: ScalingState, start: ScalingState, fading: Fading) -> ScalingState:
    """Let pooled moments come from as many rows as the joint model has learned, the start counted once."""
    if not pooled.length:
        return start
    rows = fading.kept_of_all * start.rows + fading.of_gains() * (pooled.rows - fading.kept * start.rows)
    rows = np.where(pooled.rows > 0, np.maximum(rows, 1.0), 0.0)
    square = pooled.square * (rows / np.maximum(pooled.rows, 1e-300))
    return start._replace(rows=rows, mean=pooled.mean, square=square)
