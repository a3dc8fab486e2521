"""The four verbs, for models and for the tagger; see `labelrace.merging`.

A tagger's verbs are those of its model, with the words and tags beside it. While shares of a tagger learn, columns of
words are not reused: if no columns are left, new words are ignored.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labelrace.base.algorithm import Gain
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.fitted import Fitted
from labelrace.base.validation import EstimatorInfo, next_batch
from labelrace.exceptions import MergeError
from labelrace.tables import Tagger, merge
from labelrace.tables.state import TaggerState
from labelrace.typing import IntArray

Model: TypeAlias = OnlineClassifier | Tagger


class TaggerGain(NamedTuple):
    """What shares of a tagger have learned."""

    state: TaggerState  # differences of counts
    model: Fitted | Gain  # the gain of the model inside


def is_exact(model: Model) -> bool:
    """Return whether a fitted model, learned in shares, becomes the one that learned all rows; else it comes close."""
    return _fitted(model).algorithm.shares is None


def is_ready(model: Model) -> bool:
    """Return whether a model knows enough to be a common start: the default must be past its warm-up."""
    if not model.is_fitted:
        return False
    fitted = _fitted(model)
    return is_exact(model) or fitted.algorithm.shares.is_ready(fitted)


def refuse(model: Model) -> None:
    """Refuse a fitted model that cannot be learned in shares.

    Raises
    ------
    MergeError
        With the reason.
    """
    fitted = _fitted(model)
    reason = fitted.algorithm.why_not_shared(fitted.state)
    if reason:
        name = type(model.model_ if isinstance(model, Tagger) else model).__name__
        raise MergeError(
            f"{name} cannot be learned in shares: {reason}. Learn it in one process, or use 'race' with a max_memory "
            "that all labels fit."
        )


def start(model: Any) -> Any:
    """Return what a share begins with.

    Parameters
    ----------
    model : classifier or Tagger
        The common start of all shares.

    Returns
    -------
    classifier or Tagger
        A copy for the share to learn on.

    Examples
    --------
    >>> import labelrace
    >>> common = labelrace.make_model("ridge").fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    >>> share = start(common).partial_fit([[2.0]], [[1, 0]])
    >>> join(common, gain(common, share)).predict([[2.0]]).tolist()
    [[1, 0]]
    """
    if isinstance(model, Tagger):
        return model.exchanged(merge.keep_words(model.state), start(model.model_))
    return model.emptied() if is_exact(model) else copy.copy(model)


def gain(start: Model, end: Model, touched: IntArray | None = None) -> Any:
    """Return what a share has learned.

    Parameters
    ----------
    start : classifier or Tagger
        The common start.
    end : classifier or Tagger
        What the share has become.
    touched : array, default=None
        The features that occurred in the share, if they are known; a tagger knows them itself.

    Returns
    -------
    gain
        A value that can be pickled, for `add` and `join`.

    Examples
    --------
    It can be sent to whoever joins the model:

    >>> import pickle
    >>> import labelrace
    >>> common = labelrace.make_model("ridge").fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    >>> share = start(common).partial_fit([[2.0]] * 3, [[1, 0]] * 3)
    >>> sent = pickle.dumps(gain(common, share))
    >>> join(common, pickle.loads(sent)).predict([[2.0]]).tolist()
    [[1, 0]]
    """
    if isinstance(start, Tagger) and isinstance(end, Tagger):
        state = merge.since(start.state, end.state)
        words = np.flatnonzero(state.features.vocabulary.rows > 0)
        return TaggerGain(state, gain(start.model_, end.model_, words))
    one, two = _fitted(start), _fitted(end)
    return two if is_exact(start) else one.algorithm.shares.gain(one, two, touched)


def add(one: Any, other: Any, columns: IntArray | None = None) -> Any:
    """Add what two shares, or two groups of them, have gained.

    Parameters
    ----------
    one, other : what `gain` returned
        The rows of ``other`` are the later ones.
    columns : array, default=None
        Which column of the first one's features, or of further ones, each of the other one's is, where features have no
        names but that is known; a tagger knows it itself.

    Returns
    -------
    gain

    Examples
    --------
    >>> import labelrace
    >>> common = labelrace.make_model("ridge").fit([[0.0], [1.0]], [{"cold"}, {"warm"}])
    >>> shares = [start(common).partial_fit([[number]], [{name}]) for number, name in ((2.0, "hot"), (-1.0, "icy"))]
    >>> both = add(*(gain(common, share) for share in shares))
    >>> list(join(common, both).label_names_)
    ['cold', 'warm', 'hot', 'icy']
    """
    if isinstance(one, TaggerGain):
        state, words = merge.merge_states(one.state, other.state)
        columns = merge.model_columns(words, other.model.schema.n_features)
        return TaggerGain(state, add(one.model, other.model, columns))
    return one.merge(other, columns) if isinstance(one, Fitted) else one.plus(other, columns)


def join(start: Any, total: Any, X: Any = None, y: Any = None) -> Any:
    """Make the model of a start and of what all shares have gained.

    Parameters
    ----------
    start : classifier or Tagger
        The common start.
    total : what `add` returned
    X, y : rows as for ``partial_fit``, default=None
        Rows that no share has learned: they are learned last.

    Returns
    -------
    classifier or Tagger

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.streams.demo import demo_tickets
    >>> tickets = demo_tickets(1500)
    >>> common = labelrace.Tagger("tags", id="ticket", random_state=0).partial_fit(tickets[:600])
    >>> shares = [start(common).partial_fit(rows) for rows in (tickets[600:1000], tickets[1000:1400])]
    >>> total = add(*(gain(common, share) for share in shares))
    >>> join(common, total, tickets[1400:]).n_rows_
    1500
    """
    if isinstance(start, Tagger):
        return _join_tagger(start, total, X, y)
    fitted = _fitted(start)
    method, info = fitted.algorithm.shares, EstimatorInfo(type(start).__name__, fitted.algorithm)
    if method is None:
        joint = fitted.merge(total)
        joint = joint if X is None else joint.learn(next_batch(X, y, joint.schema, info))
    else:
        joint = method.join(fitted, total, None if X is None else next_batch(X, y, total.schema, info))
    return start.with_fitted(joint)


def _join_tagger(start: Tagger, total: TaggerGain, X: Any, y: Any) -> Tagger:
    # The words of the start come first in every share, so those of the model need no other columns.
    state, _ = merge.merge_states(start.state, total.state)
    if X is not None:
        table, tags = merge.as_one_batch(start, X, y)
        after, matrix, rows, truth = start.exchanged(merge.keep_words(state), start.model_).as_rows(table, tags)
        if rows:
            model = join(start.model_, total.model, matrix[rows], truth)
            return start.exchanged(merge.restore_seen(after, state), model)
    return start.exchanged(state, join(start.model_, total.model))


def _fitted(model: Model) -> Fitted:
    """Return what a model, or that of a tagger, knows."""
    inner: OnlineClassifier = model.model_ if isinstance(model, Tagger) else model
    return inner.fitted
