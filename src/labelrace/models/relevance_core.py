"""Online binary relevance: one learner for each label, independent of the others.

A bank of learners is what it needs, with the labels themselves in place of pseudo labels. All labels are learned by one
product. Regressors score an absent label -1 and a present one 1; they learn 0 and 2 and the 1 is taken off afterwards,
so that labels stay sparse and a label that was always absent has taught its learner nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labelrace.core.algorithm import Algorithm
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
        targets = Y if self.bank.task == "classification" else 2.0 * Y
        return State(self.bank.update(state.learners, X, targets))

    def derive(self, state: State) -> Any:
        """Compute what predicting needs."""
        return self.bank.derive(state.learners)

    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all labels."""
        predicted = self.bank.predict(derived, X)
        return predicted if self.bank.task == "classification" else predicted - 1.0

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

    def why_no_new_labels(self) -> str | None:
        """Say why labels cannot be added: where learners cannot."""
        return self.bank.why_no_new_components()

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels, with learners that have always seen them absent."""
        return State(self.bank.grow_components(state.learners, n_labels))
