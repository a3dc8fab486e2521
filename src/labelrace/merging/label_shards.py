"""One model learned in shares of its labels: each share reads all rows, and keeps the weights of some labels.

What learners know of the features does not depend on the labels, so that a share learns for its labels exactly what
one model of all labels would: the result is that of one pass, to round-off. Share ``s`` of ``S`` has the labels ``s``,
``s + S``, ``s + 2 S``, …, those that appear later included.

*Binary relevance* is put together as it is: labels share nothing but what is known of the features.

*The default* couples labels in three places.

- Its first rows choose the penalty over all labels; they are learned before the labels are shared.
- When labels that are new found a generation is told by the labels of the rows, which every share reads. For the labels
  of others a share has one target more, its first, that is always absent: its weights stay exactly 0, and it is young
  where one of the others is.
- Thresholds, and the detector of drift, see the scores of all labels, for some rows of each batch. A share returns its
  part of them (`Monitored`), and `watched` puts the parts together and counts them, batch by batch. Thresholds change
  nothing of what is learned. A drift does: then `watched` tells in which batch, and the shares learn these batches
  again, and forget in that one.

Costs: what depends on the features is done by every share, ``O(z b)`` for ``z`` non-zeros in blocks of ``b`` rows, and
so is reading; what depends on the labels, ``O(z l + n b l)``, is divided. So it pays where labels are many.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import missing_labels
from labelrace.base import validation as inputs
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.fitted import Fitted
from labelrace.base.schema import Schema
from labelrace.base.validation import Owner
from labelrace.decisions import drift
from labelrace.decisions import monitor as monitoring
from labelrace.decisions.monitor import Monitor
from labelrace.exceptions import MergeError
from labelrace.learners import design as columns
from labelrace.linear import rls, scaling
from labelrace.linear.classifier import LabelRace
from labelrace.linear.rls import RLSState
from labelrace.related.relevance import Relevance
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Never new, nor young by itself: the target that stands for the labels of other shares.
_OTHERS = 0.0


class Part(NamedTuple):
    """A share of a model's labels."""

    owner: Owner  # the model's class and algorithm
    schema: Schema  # that of all labels
    state: Any  # that of the share's own labels: a `RaceShare`, or the state of the algorithm
    # Which share, and of how many.
    share: int
    shares: int

    @property
    def labels(self) -> IntArray:
        """The places of the share's own labels."""
        return _labels(self.share, self.shares, self.schema.n_labels)


class RaceShare(NamedTuple):
    """Of the default: the learners of a share's labels behind that which stands for the others.

    ``first_rows`` and ``young`` are those of all labels.
    """

    learners: RLSState
    first_seen: FloatArray
    is_recent_label: BoolArray


class Monitored(NamedTuple):
    """Rows of a batch that were predicted before they were learned: a share's scores, and all labels, sparse.

    Only the first share has the labels; ``labels`` of the others is None.
    """

    scores: Array
    labels: AnyMatrix | None


class Watched(NamedTuple):
    """What monitored rows of all labels have shown, and the drifts found."""

    monitor: Monitor
    n_drifts: float


def _labels(share: int, shares: int, n_labels: int) -> IntArray:
    return np.arange(share, n_labels, shares)


def refuse(model: OnlineClassifier) -> None:
    """Refuse a fitted model that cannot be learned in shares of its labels.

    Raises
    ------
    MergeError
        With the reason.
    """
    fitted = model._checked_fitted()
    algorithm, reason = fitted.algorithm, None
    if isinstance(algorithm, LabelRace):
        reason = None if isinstance(fitted.algorithm, LabelRace) else "its labels are compressed; raise max_memory"
    elif not isinstance(algorithm, Relevance):
        reason = "what it learns of a label depends on others; use 'race', or binary relevance such as 'obr'"
    else:
        reason = algorithm.why_unmergeable(fitted.state, fitted.state)
    if reason:
        raise MergeError(f"{type(model).__name__} cannot be learned in shares of its labels: {reason}.")


def taken(model: OnlineClassifier, share: int, shares: int) -> Part:
    """Take a share of the labels of a fitted model; the default must be past its warm-up."""
    fitted = model._checked_fitted()
    algorithm, state = fitted.algorithm, fitted.state
    own, features = _labels(share, shares, fitted.schema.n_labels), np.arange(fitted.schema.n_features)
    part = Part(Owner(type(model).__name__, algorithm), fitted.schema, None, share, shares)
    if not isinstance(algorithm, LabelRace):
        return part._replace(state=algorithm.reordered(state, own, features))
    learners = state.learners
    weights = np.asarray(learners.weights)[:, own]
    with_others = np.hstack([np.zeros((len(weights), 1), weights.dtype), weights])
    own_learners = learners._replace(intercepts=np.append(0.0, learners.intercepts[own]))
    own_learners = rls.with_arrays(own_learners, weights=with_others)
    return part._replace(state=RaceShare(own_learners, learners.first_seen, learners.is_recent_label))


def learned(part: Part, X: Any, y: Any, *, forgets: bool = False) -> tuple[Part, Monitored | None]:
    """Learn a batch of all labels for those of the share.

    Parameters
    ----------
    part : Part
    X, y : as for `OnlineClassifier.partial_fit`
    forgets : bool, default=False
        Whether there is a drift in this batch.

    Returns
    -------
    part : Part
    monitored : Monitored or None
        None where nothing is monitored.
    """
    batch = inputs.next_batch(X, y, part.schema, part.owner)
    part = _grown(part, batch.schema)
    algorithm, rows, labels = part.owner.algorithm, batch.X, batch.Y
    if not isinstance(algorithm, LabelRace):
        return part._replace(state=algorithm.update(part.state, rows, labels[:, part.labels])), None
    rows, labels = missing_labels.leave_out(rows, labels)
    if labels.shape[0] == 0:
        return part, None
    state, scores, some = _learned(algorithm, part, rows, labels, forgets)
    return part._replace(state=state), Monitored(scores, None if part.share else scipy.sparse.csr_array(labels[some]))


def _learned(
    algorithm: LabelRace, part: Part, X: AnyMatrix, Y: AnyMatrix, forgets: bool
) -> tuple[RaceShare, Array, IntArray | slice]:
    """Monitor and learn a batch of the default, as it does itself; return also the scores of the monitored rows."""
    bank, (learners, first_rows, young) = algorithm.bank, part.state
    if scaling.has_become_dense(learners.scaling):
        raise MergeError("What was taken for sparse data is dense, and the model has to begin anew: give arrays.")
    linear = bank.derive(learners)
    Z, some = bank.transform(linear, X), monitoring.sample(Y.shape)
    scores = bank.predict_transformed(linear, Z if isinstance(some, slice) else Z[some])[:, 1:]
    if forgets:
        learners = bank.forget(bank.rescale(learners, X), drift.KEPT)
    # The generations are those of all labels.
    present = np.asarray((Y > 0).sum(axis=0)).reshape(1, -1)
    of_all = bank._with_recent_labels(learners._replace(first_seen=first_rows, is_recent_label=young), present)
    own = part.labels
    learners = of_all._replace(
        first_seen=np.append(_OTHERS, of_all.first_seen[own]),
        is_recent_label=np.append(of_all.is_recent_label.any(), of_all.is_recent_label[own]),
    )
    targets = np.hstack([np.zeros((Y.shape[0], 1)), columns.dense(Y[:, own])])
    learners = bank.learn(learners, X, targets, gathered=None if forgets else bank.gather(learners, Z))
    if not algorithm._fits(int(learners.in_use), Y.shape[1]):
        raise MergeError("The weights of all labels exceed max_memory, and shares of labels do not compress: raise it.")
    return RaceShare(learners, of_all.first_seen, of_all.is_recent_label), scores, some


def _grown(part: Part, schema: Schema) -> Part:
    """Add features and labels that a batch brings."""
    old, wider = part.schema, part._replace(schema=schema)
    algorithm: Any = part.owner.algorithm
    state = part.state
    is_race, n_own = isinstance(algorithm, LabelRace), len(wider.labels)
    if schema.n_features > old.n_features:
        if is_race:
            state = state._replace(learners=algorithm.bank.grow_features(state.learners, schema.n_values))
        else:
            state = algorithm.grow_features(state, schema.n_values)
    if n_own > len(part.labels):
        if is_race:
            state = state._replace(learners=algorithm.bank.grow_components(state.learners, n_own + 1))
        else:
            state = algorithm.grow_labels(state, n_own)
    if is_race and schema.n_labels > old.n_labels:
        n_new = schema.n_labels - old.n_labels
        first_rows = np.pad(state.first_seen, (0, n_new), constant_values=np.inf)
        state = state._replace(first_seen=first_rows, is_recent_label=np.pad(state.is_recent_label, (0, n_new)))
    return wider._replace(state=state)


def watched(
    model: OnlineClassifier,
    before: Watched | None,
    batches: Sequence[Sequence[Monitored | None]],
    forgets: Collection[int] = (),
) -> tuple[Watched | None, int | None]:
    """Count the monitored rows of some batches, for all labels.

    Parameters
    ----------
    model : classifier
        That the labels were taken from.
    before : Watched or None
        What monitored rows have shown before; None for what the model knows.
    batches : sequence of sequences of Monitored
        For each batch what each share has returned, in the order of the shares.
    forgets : collection of int, default=()
        The batches with a drift that the shares knew of.

    Returns
    -------
    watched : Watched or None
        None of a model that watches nothing.
    drift : int or None
        The first batch with a drift that the shares did not know of: they have to learn again.
    """
    fitted = model._checked_fitted()
    algorithm = fitted.algorithm
    if not isinstance(algorithm, LabelRace):
        return None, None
    monitor, n_drifts = before or Watched(fitted.state.monitor, fitted.state.n_drifts)
    for place, parts in enumerate(batches):
        if parts[0] is None:
            continue
        labels = np.asarray(columns.dense(parts[0].labels), dtype=float)
        scores = np.empty(labels.shape, parts[0].scores.dtype)
        for share, part in enumerate(parts):
            scores[:, share :: len(parts)] = part.scores  # type: ignore[union-attr]
        if labels.shape[1] > len(monitor.counts.offsets):
            monitor = monitoring.grow(monitor, labels.shape[1])
        known, monitor = monitor.drift, monitoring.observe(monitor, scores, labels)
        is_drift = algorithm.detects_drift and monitor.drift is not known and drift.is_found(monitor.drift)
        monitor = monitor._replace(drift=drift.init()) if is_drift else monitor
        n_drifts += is_drift
        if is_drift and place not in forgets:
            return None, place
    return Watched(monitor, n_drifts), None


def assembled(model: OnlineClassifier, parts: Sequence[Part], known: Watched | None) -> Any:
    """Put shares together to a model of all labels.

    Parameters
    ----------
    model : classifier
        That the labels were taken from; is not changed.
    parts : sequence of Part
        All shares, in their order.
    known : Watched or None
        As `watched` returned it.
    """
    fitted = model._checked_fitted()
    algorithm, schema = fitted.algorithm, parts[0].schema
    order = np.argsort(np.concatenate([part.labels for part in parts]))
    if isinstance(algorithm, LabelRace):
        state = _race(fitted, parts, order, known)
    else:
        # What is as long as the labels are many is found by taking one label twice.
        features = np.arange(schema.n_features)
        once, twice = (algorithm.reordered(parts[0].state, np.zeros(n, np.intp), features) for n in (1, 2))
        state = _together([part.state for part in parts], once, twice, order)
    whole = copy.copy(model)
    whole._fitted = fitted.replaced(schema, state)
    return whole


def _race(fitted: Fitted, parts: Sequence[Part], order: IntArray, known: Watched | None) -> Any:
    """Put the learners of the default together."""
    first: RaceShare = parts[0].state
    learners = [part.state.learners for part in parts]
    weights = np.hstack([np.asarray(each.weights)[:, 1:] for each in learners])[:, order]
    whole = rls.with_arrays(first.learners, weights=weights)._replace(
        intercepts=np.concatenate([each.intercepts[1:] for each in learners])[order],
        first_seen=first.first_seen,
        is_recent_label=first.is_recent_label,
    )
    before = fitted.state
    monitor, n_drifts = known or Watched(before.monitor, before.n_drifts)
    n_labels = parts[0].schema.n_labels
    if n_labels > len(monitor.counts.offsets):
        monitor = monitoring.grow(monitor, n_labels)
    return before._replace(learners=whole, monitor=monitor, n_drifts=n_drifts)


def _together(parts: list[Any], once: Any, twice: Any, order: IntArray) -> Any:
    """Put the labels' entries of states one behind the other; ``once`` and ``twice`` are of one and of two labels."""
    if isinstance(once, tuple):
        fields = [_together(each, one, two, order) for one, two, *each in zip(once, twice, *parts, strict=True)]
        return type(once)(*fields) if hasattr(once, "_fields") else tuple(fields)
    if not isinstance(once, np.ndarray) or once.shape == twice.shape:
        return parts[0]
    [axis] = np.flatnonzero(np.array(once.shape) != np.array(twice.shape))
    # Behind the labels there may be what all of them share, such as counts of all rows.
    n_shared = once.shape[axis] - 1
    ends = [part.shape[axis] - n_shared for part in parts]
    own = [np.take(part, np.arange(end), axis) for part, end in zip(parts, ends, strict=True)]
    shared = np.take(parts[0], np.arange(ends[0], ends[0] + n_shared), axis)
    return np.concatenate([np.take(np.concatenate(own, axis), order, axis), shared], axis)
