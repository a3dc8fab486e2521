"""Online binary relevance: one learner for each label, independent of the others.

A bank of learners is what it needs, with the labels themselves in place of pseudo labels: 0/1 for classifiers, -1/1 for
regressors. All labels are learned by one product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from labelrace.algorithm import Algorithm
from labelrace.learners import columns
from labelrace.learners.bank import Bank
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Relevance", "State"]


class State(NamedTuple):
    """What the learners remember."""

    learners: Any


@dataclass(frozen=True)
class Relevance(Algorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : Bank
        The learners.
    """

    bank: Bank[Any]

    def init(self, n_values: IntArray, n_labels: int) -> State:
        """Make the state of learners that have seen nothing."""
        return State(self.bank.init(n_values, n_labels))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn a batch."""
        targets = Y if self.bank.task == "classification" else 2.0 * columns.dense(Y) - 1.0
        return State(self.bank.update(state.learners, X, targets))

    def derive(self, state: State) -> Any:
        """Compute what predicting needs."""
        return self.bank.derive(state.learners)

    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all labels."""
        return self.bank.predict(derived, X)

    def predict(self, derived: Any, X: AnyMatrix) -> BoolArray:
        """Mark the labels that are at least as likely as not."""
        return self.scores(derived, X) >= 0

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Say why two models cannot be merged exactly; None if they can."""
        reason = self.bank.why_unmergeable(one.learners, other.learners)
        if reason:
            return f"their learners are {self.bank!r}, and {reason}"
        return None

    def merge(self, one: State, other: State) -> State:
        """Join two models which learned different rows."""
        return State(self.bank.merge(one.learners, other.learners))
