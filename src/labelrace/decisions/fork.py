"""A fork: after an alarm a model goes on twice, until it is known whether the drift lasts.

When errors grow (`labelrace.decisions.drift`), forgetting most of the past is right if the world has changed for good,
and a disaster if it has not; at the alarm nobody knows which. So the model goes on as two: one that remembers, and one
that forgets. Both learn all rows. The one that remembers predicts, until the other has the better example F1 on the
same monitored rows, by more than chance. It predicts again as soon as it is probably the better one: what is forgotten
does not come back. While its errors are unusual, rows count half when it learns them. Once one of them has predicted
for `DECIDED_AFTER` rows and is probably better, or for four times as many rows, the other one is dropped. If the one
that forgot is left, the drift is *confirmed*. Time and memory are double until then.

It is the F1 of label sets that is compared, not the errors: where labels are mixed up, the model that forgets has the
smaller errors, as it soon predicts next to nothing, but it is no better for anyone.

An algorithm that forks has these fields in its state, and a NamedTuple ``Fork`` of those that the second model has of
its own, and of `Comparison`:

=============== ======================================================================================================
``fork``        none or one ``Fork``: the second model
``n_alarms``    alarms so far
``n_drifts``    confirmed drifts so far
=============== ======================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from labelrace.base import growth
from labelrace.base.growth import Moves
from labelrace.base.sparse import batch_rows
from labelrace.decisions import drift
from labelrace.decisions.drift import DriftState
from labelrace.typing import AnyMatrix, FloatArray

# Rows for which one model must have been the better one for the other to be dropped.
DECIDED_AFTER = 2000.0
# How many times as long it takes where none is clearly better.
_UNCLEAR = 4.0
# Rows that are learned at once: the rows after them are a test of what both have learned.
_CHUNK_ROWS = 128
# Rows after which half of the differences of two models is forgotten. Standard errors that these must have for the
# model that forgets to take over, for the one that remembers to take over again, and for one to be dropped.
_HALF_LIFE = 250.0
_TO_FORGET, _TO_REMEMBER, _TO_DROP = 3.0, 1.5, 1.0
# How many times the usual error of the model that remembers is unusual, and what such rows count for when it learns
# them: they may be mistakes. Models of compressed labels have no weights of rows.
_UNUSUAL, _DOUBTFUL_WEIGHT = 1.2, 0.5
# How many times as many labels as in recent rows are a change, and the standard errors that it must have.
_MORE_LABELS, _VERY_SURE = 2.0, 5.0

S = TypeVar("S", bound=Any)


class Comparison(NamedTuple):
    """How much better the second model is than the one that predicts: differences of F1 on the same monitored rows."""

    # Sums over monitored rows, older ones less: of ones, of differences, and of their squares.
    rows: float
    differences: float
    squares: float
    rows_ahead: float  # rows since the model that predicts became the better one
    # Mean error of the model that remembers, before the alarm and in the rows that were counted last.
    usual_error: float
    recent_error: float
    has_forgotten: float  # whether the model that predicts is the one that forgets: 0 or 1

    def after(self, differences: FloatArray) -> Comparison:
        """Take in some rows."""
        keep = 0.5 ** (len(differences) / _HALF_LIFE)
        return self._replace(
            rows=keep * self.rows + len(differences),
            differences=keep * self.differences + float(differences.sum()),
            squares=keep * self.squares + float(differences @ differences),
        )

    @property
    def standard_error(self) -> float:
        """The standard error of the sum of differences."""
        return sqrt(max(self.squares - self.differences**2 / max(self.rows, 1.0), 0.0))

    def swapped(self) -> Comparison:
        """Return the same for the other model."""
        return self._replace(differences=-self.differences, rows_ahead=0.0, has_forgotten=1.0 - self.has_forgotten)

    def is_second_better(self) -> bool:
        """Return whether the second model is to predict from now on."""
        n_errors = _TO_REMEMBER if self.has_forgotten else _TO_FORGET
        return self.differences > max(n_errors * self.standard_error, 0.0)

    def is_decided(self) -> bool:
        """Return whether the second model can be dropped."""
        is_clear = -self.differences > _TO_DROP * self.standard_error
        return self.rows_ahead >= DECIDED_AFTER * (1.0 if is_clear else _UNCLEAR)


class Forking(Protocol[S]):
    """What an algorithm offers so that it can fork."""

    @property
    def fork_type(self) -> Any:
        """The NamedTuple of the second model."""

    @property
    def detects_drift(self) -> bool:
        """Whether alarms have an effect."""

    def learn_monitored(
        self, state: S, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> S:
        """Learn rows with one model, after their predictions were monitored."""

    def labels_per_row(self, state: S) -> float:
        """Return how many labels recent rows had on average; infinite where there were none."""

    def forget(self, state: S, X: AnyMatrix) -> S:
        """Forget most of the past; ``X`` are the rows that raised the alarm."""

    def last_f1(self, state: S) -> FloatArray:
        """Return the example F1 of the rows that were monitored last."""

    def detector(self, state: S) -> DriftState:
        """Return the detector of drift."""

    def with_detector(self, state: S, detector: DriftState) -> S:
        """Return the state with another detector."""


def update(
    algorithm: Forking[S],
    state: S,
    X: AnyMatrix,
    Y: AnyMatrix,
    derived: Any = None,
    row_weights: FloatArray | None = None,
) -> S:
    """Learn rows: with both models of a fork, or with one, which forks where they raise an alarm.

    What is monitored and compared are rows, whatever their weights.
    """
    is_large = X.shape[0] > _CHUNK_ROWS
    if state.fork or (is_large and has_more_labels(Y, algorithm.labels_per_row(state))):
        after = _learn_in_chunks(algorithm, state, X, Y, row_weights)
    else:
        after = algorithm.learn_monitored(state, X, Y, derived, row_weights)
    if state.fork or not algorithm.detects_drift:
        return after
    detector = algorithm.detector(after)
    is_alarm = drift.is_found(detector) and detector is not algorithm.detector(state)
    return _fork(algorithm, state, X, Y, row_weights) if is_alarm else after


def has_more_labels(Y: AnyMatrix, labels_per_row: float) -> bool:
    """Return whether rows have more than twice as many labels as recent ones had, by more than chance.

    After rows without labels, thresholds are too high for those that come. They follow faster where these rows are
    learned some at a time.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.random.default_rng(0).random((50, 10)) < 0.4
    >>> has_more_labels(Y, 4.0), has_more_labels(Y, 1.0)
    (False, True)
    """
    n_labels = np.asarray((Y > 0).sum(axis=1), dtype=float).ravel()
    mean = n_labels.mean()
    error = np.sqrt(np.square(n_labels - mean).sum()) / len(n_labels)
    return bool(mean > _MORE_LABELS * labels_per_row + _VERY_SURE * error)


def _fork(algorithm: Forking[S], state: S, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None) -> S:
    """Let a model go on twice, and learn the rows that have raised the alarm."""
    state = state._replace(n_alarms=state.n_alarms + 1.0)
    detector = algorithm.detector(state)
    comparison = Comparison(0.0, 0.0, 0.0, 0.0, float(np.average(detector.means, weights=detector.sizes)), np.inf, 0.0)
    forked = _forked(algorithm, state, algorithm.forget(state, X), comparison)
    after = _learn_in_chunks(algorithm, forked, X, Y, row_weights)
    if not after.fork:
        return after
    one, two = _restart(algorithm, after), _restart(algorithm, second(after))
    return _forked(algorithm, one, two, after.fork[0].comparison)


def _restart(algorithm: Forking[S], state: S) -> S:
    """Let the detector start over: the usual error is estimated again from here on."""
    return algorithm.with_detector(state, drift.init())


def _learn_in_chunks(algorithm: Forking[S], state: S, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None) -> S:
    """Learn rows some at a time; those of a fork with both models, which are compared, until that is decided."""
    n = X.shape[0]
    # Two chunks at least, so that one is a test of what was learned of the other.
    size = min(_CHUNK_ROWS, -(-n // 2))
    for start in range(0, n, size):
        here = slice(start, start + size)
        x, y, weights = batch_rows(here, X, Y, row_weights)
        if state.fork:
            state = _learn_both(algorithm, state, x, y, weights)
        else:
            state = algorithm.learn_monitored(state, x, y, row_weights=weights)
    return state


def _learn_both(algorithm: Forking[S], state: S, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None) -> S:
    """Learn rows with both models, and decide which one predicts from now on."""
    comparison: Comparison = state.fork[0].comparison
    before = algorithm.detector(state)
    of_memory = _doubtful(comparison, X.shape[0], row_weights)
    weights = (row_weights, of_memory) if comparison.has_forgotten else (of_memory, row_weights)
    rival = algorithm.learn_monitored(second(state), X, Y, row_weights=weights[1])
    state = algorithm.learn_monitored(state._replace(fork=()), X, Y, row_weights=weights[0])
    memory = algorithm.detector(rival if comparison.has_forgotten else state)
    comparison = comparison._replace(
        rows_ahead=comparison.rows_ahead + X.shape[0],
        recent_error=float(memory.means[-1]) if len(memory.means) else comparison.recent_error,
    )
    one, two = algorithm.last_f1(state), algorithm.last_f1(rival)
    # Both have counted the same rows, if they have counted any; a damaged file may tell otherwise.
    if algorithm.detector(state) is not before and len(one) == len(two):
        comparison = comparison.after(two - one)
    if comparison.is_second_better():
        state, rival, comparison = rival, state, comparison.swapped()
    if comparison.is_decided():
        return _restart(algorithm, state._replace(n_drifts=state.n_drifts + comparison.has_forgotten))
    if comparison.has_forgotten and drift.is_found(algorithm.detector(state)):
        # Another drift, while one model still remembers what was before the first.
        state = algorithm.forget(state._replace(n_alarms=state.n_alarms + 1.0), X)
    return _forked(algorithm, state, rival, comparison)


def _doubtful(comparison: Comparison, n_rows: int, row_weights: FloatArray | None) -> FloatArray | None:
    """Return the weights of rows for the model that remembers: as long as rows are unusual, they count for less."""
    if comparison.recent_error <= _UNUSUAL * comparison.usual_error:
        return row_weights
    return (np.ones(n_rows) if row_weights is None else row_weights) * _DOUBTFUL_WEIGHT


@dataclass(frozen=True)
class ForkPart:
    """Moves labels and features of second models, whose learners are those of a bank."""

    bank: Any

    def take(self, forks: tuple[Any, ...], moves: Moves) -> tuple[Any, ...]:
        """Move labels and features, as `labelrace.base.algorithm.Part.take` does."""
        return tuple(growth.take(each, moves, learners=self.bank.take) for each in forks)


def second(state: S) -> S:
    """Return the state of the second model of a fork."""
    own = {name: value for name, value in state.fork[0]._asdict().items() if name in state._fields}
    return state._replace(**own, fork=())


def _forked(algorithm: Forking[S], state: S, rival: S, comparison: Comparison) -> S:
    """Put a second model beside the one that predicts."""
    own = {name: getattr(rival, name) for name in algorithm.fork_type._fields if name != "comparison"}
    return state._replace(fork=(algorithm.fork_type(**own, comparison=comparison),))
