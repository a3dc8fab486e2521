"""Joining models of the default that learned different rows from one start: sums of what each has gained.

A shard starts from a common model, learns its rows but for a few, and becomes a `Gain`: differences to the start that
can be added, by name, in any tree. `joined` makes a model of the start and the sum: on the line between the mean of
the shards and the sum of what they know (`labelrace.linear.rls_merge`) it takes the point with the least clipped
squared error on the rows that were set aside, reads the thresholds off the scores of these rows, and then learns them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.base.fitted import Fitted, aligned, joint_schema
from labelrace.base.schema import Schema
from labelrace.decisions import drift
from labelrace.decisions import monitor as monitoring
from labelrace.exceptions import MergeError
from labelrace.learners import design as columns
from labelrace.linear import rls_merge
from labelrace.linear.classifier import LabelRace, State
from labelrace.linear.rls_merge import Gains, Joint
from labelrace.typing import AnyMatrix, IntArray

SHARES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
"""Points between the mean and the sum that are tried, for columns that all shards have met."""

# The point where there are no rows to choose it by.
_WITHOUT_ROWS = 0.5


class Gain(NamedTuple):
    """What shards have learned since their start."""

    schema: Schema  # names of labels and features; those of the start are first
    learners: Gains  # of the linear models
    n_drifts: float  # drifts found, in the shard that found most


def gain(start: Fitted, end: Fitted, touched: IntArray | None = None) -> Gain:
    """Compute what a shard has gained since the start.

    Parameters
    ----------
    start, end : Fitted
        The shard before and after it has learned; both past their warm-up.
    touched : array, default=None
        Features that occurred in its rows, if that is known: others have gained nothing.
    """
    start = start.grown(end.schema)
    one, two = start.state, end.state
    _refuse_apart(one, two)
    scaled = two.learners.scaling
    if touched is None or scaled.length or not columns.all_numeric(scaled.n_values):
        touched = np.arange(len(two.learners.weights))
    learners = rls_merge.gain(end.algorithm.bank, one.learners, two.learners, touched)
    return Gain(end.schema, learners, two.n_drifts)


def added(one: Gain, other: Gain, places: IntArray | None = None) -> Gain:
    """Add what two groups of shards have gained, labels and features by name; ``places`` as in `Fitted.merged`."""
    schema, labels, features = joint_schema(one.schema, other.schema, places)
    known = np.arange(one.schema.n_labels), np.arange(one.schema.n_features)
    a, b = _moved(one, schema, *known), _moved(other, schema, labels, features)
    learners = rls_merge.added(a.learners, b.learners)
    return Gain(schema, learners, max(a.n_drifts, b.n_drifts))


def widened(gains: Gain, schema: Schema) -> Gain:
    """Add features and labels, behind the others, that nothing was gained for."""
    return _moved(gains, schema, np.arange(gains.schema.n_labels), np.arange(gains.schema.n_features))


def _moved(part: Gain, schema: Schema, labels: IntArray, features: IntArray) -> Gain:
    """Give labels and features the places that they have in a wider schema."""
    is_same = schema.n_features == len(features) and np.array_equal(features, np.arange(len(features)))
    if not is_same and (part.learners.scaling.length or not columns.all_numeric(schema.n_values)):
        raise MergeError("The models cannot be merged: shards of dense or nominal features must have the same ones.")
    # The columns of dense data and of nominal features are not the features, but all of them are there.
    places = np.arange(int(part.learners.touched.max(initial=-1)) + 1) if is_same else features
    learners = rls_merge.moved(part.learners, places, labels, schema.n_labels)
    return part._replace(schema=schema, learners=learners)


def joined(start: Fitted, gains: Gain, X: AnyMatrix | None = None, Y: AnyMatrix | None = None) -> Fitted:
    """Make the joint model of shards.

    Parameters
    ----------
    start : Fitted
        What all shards started from.
    gains : Gain
        The sum of what the shards have gained.
    X, Y : matrices of n rows, default=None
        Rows that no shard has learned, with all columns of the sum's schema; without them the joint model is half-way
        between the mean and the sum, and has the thresholds of the start.
    """
    start = start.grown(gains.schema)
    algorithm: LabelRace = start.algorithm
    both = rls_merge.joint(start.state.learners, gains.learners)
    state = start.state._replace(n_drifts=gains.n_drifts)
    if X is None or Y is None or X.shape[0] == 0:
        return start.replaced(gains.schema, state._replace(learners=both.between(_WITHOUT_ROWS)))
    found = _searched(algorithm, state, both, X, Y)
    return start.replaced(gains.schema, found).or_successor(gains.schema)


def _searched(algorithm: LabelRace, state: State, both: Joint, X: AnyMatrix, Y: AnyMatrix) -> State:
    """Take the point between mean and sum with the least error on some rows, and learn these."""
    labels = np.asarray(columns.dense(Y), dtype=float)
    values = list(both.values(algorithm.bank, X, SHARES))
    best = int(np.argmin([drift.clipped_errors(scores, labels).sum() for scores in values]))
    found = state._replace(learners=both.between(SHARES[best]), monitor=monitoring.without_waiting(state.monitor))
    return algorithm.learn_held_out(found, values[best], labels, X, Y)


def merged(one: Fitted, other: Fitted, places: IntArray | None = None) -> Fitted:
    """Join two models that have no start in common but zero weights: half-way between mean and sum.

    Of the thresholds, what both have counted is added.
    """
    _refuse_apart(one.state, one.state)
    _refuse_apart(other.state, other.state)
    algorithm = one.algorithm
    one, other = aligned(one, other, places)
    if one.algorithm != algorithm:
        raise MergeError(f"The models cannot be merged: {algorithm.outgrown}.")
    for fitted in (one, other):
        if fitted.state.learners.warm_up.n_used:
            raise MergeError("The models cannot be merged: one of them has learned too few rows; let it learn 257.")
    start = one.replaced(one.schema, one.algorithm.with_zero_weights(one.state))
    state = joined(start, added(gain(start, one), gain(start, other))).state
    monitor = monitoring.merge(one.state.monitor, other.state.monitor)
    return one.replaced(one.schema, state._replace(monitor=monitor))


def _refuse_apart(one: State, other: State) -> None:
    """Refuse states whose weights are not those of the same columns and targets."""
    reason = rls_merge.why_apart(one.learners, other.learners)
    if reason:
        raise MergeError(f"The models cannot be merged: {reason}.")
