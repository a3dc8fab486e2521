"""One model learned in shards: each starts from a common model, learns its rows, and what it gained is added up.

For models whose state is sums a shard starts from nothing (`OnlineClassifier.emptied`), what it gained is the model
that it has become, and adding is merging: exact. For the default, a shard starts from the common model, and `joining`
tells what it gained and how the sum becomes a model.
"""

from __future__ import annotations

import copy
from typing import Any

from labelrace.base import validation as inputs
from labelrace.base.estimator import OnlineClassifier
from labelrace.exceptions import MergeError
from labelrace.extreme.classifier import HashedRace
from labelrace.linear import joining
from labelrace.linear.classifier import LabelRace
from labelrace.linear.joining import Gain
from labelrace.typing import IntArray


def is_exact(model: OnlineClassifier) -> bool:
    """Tell whether shards of a fitted model become the model that learned all rows; otherwise it comes close."""
    return not isinstance(model._checked_fitted().algorithm, LabelRace)


def refuse(model: OnlineClassifier) -> None:
    """Refuse a fitted model that cannot be learned in shards.

    Raises
    ------
    MergeError
        With the reason.
    """
    fitted = model._checked_fitted()
    reason = fitted.algorithm.why_unmergeable(fitted.state, fitted.state) if is_exact(model) else None
    advice = "Use 'race', or a model that is sums."
    if isinstance(fitted.algorithm, HashedRace):
        reason = "its labels are compressed, and what shares learn of these cannot be added well"
        advice = "Learn it in one process, or use 'race' with a max_memory that all labels fit."
    if reason:
        raise MergeError(f"{type(model).__name__} cannot be learned in shares: {reason}. {advice}")


def has_started(model: OnlineClassifier) -> bool:
    """Tell whether a model knows enough to be a common start: the default must be past its warm-up."""
    return model.is_fitted and (is_exact(model) or not model._checked_fitted().state.learners.warm_up.n_used)


def started(start: OnlineClassifier) -> OnlineClassifier:
    """Return what a shard begins with."""
    return start.emptied() if is_exact(start) else copy.copy(start)


def gained(start: OnlineClassifier, end: OnlineClassifier, touched: IntArray | None = None) -> Any:
    """Return what a shard has gained; ``touched`` are the features that occurred in it, if that is known."""
    return end if is_exact(start) else joining.gain(start._checked_fitted(), end._checked_fitted(), touched)


def added(one: Any, other: Any, places: IntArray | None = None) -> Any:
    """Add what two shards have gained; ``places`` are those of the other one's features, if they have no names."""
    if isinstance(one, Gain):
        return joining.added(one, other, places)
    return copy.copy(one).merge(other, columns=places)


def joined(start: OnlineClassifier, total: Any, X: Any = None, y: Any = None, places: IntArray | None = None) -> Any:
    """Make the model of a start and what all shards have gained, and let it learn rows that were set aside.

    Parameters
    ----------
    start : classifier
        Is not changed.
    total : what `added` returned
    X, y : rows, default=None
        Rows that no shard has learned.
    places : array, default=None
        Those of the features, if they have no names and are not the start's.

    Returns
    -------
    classifier
    """
    model = copy.copy(start)
    if not isinstance(total, Gain):
        model.merge(total, columns=places)
        return model if X is None else model.partial_fit(X, y)
    fitted, batch = start._checked_fitted(), None
    if X is not None:
        batch = inputs.next_batch(X, y, total.schema, inputs.Owner(type(model).__name__, fitted.algorithm))
        total = joining.widened(total, batch.schema)
    rows = (None, None) if batch is None else (batch.X, batch.Y)
    model._fitted = joining.joined(fitted, total, *rows)
    return model
