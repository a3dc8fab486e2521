"""What every online multi-label algorithm of the core offers to the shells around it.

An algorithm is a frozen dataclass of settings. Its methods are pure functions over a state, a NamedTuple of arrays; how
a state begins (``init``) is each algorithm's own affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from labelrace.exceptions import GrowthError
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Algorithm"]

S = TypeVar("S")

_START = "it has to know all of them from the start"


class Algorithm(ABC, Generic[S]):
    """Learns label sets batch by batch and predicts them."""

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        bank = getattr(self, "bank", None)
        return bank is None or bool(bank.skips_missing)

    @property
    def learns_partial_labels(self) -> bool:
        """Whether a NaN in ``Y`` is a label that is not known; otherwise it is an error."""
        return False

    @abstractmethod
    def update(self, state: S, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> S:
        """Learn a batch; ``derived``, if it is at hand, is what `derive` makes of the state."""

    @abstractmethod
    def derive(self, state: S) -> Any:
        """Compute what predicting needs."""

    @abstractmethod
    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute a score for every label, (n, l); higher is more likely."""

    @abstractmethod
    def predict(self, derived: Any, X: AnyMatrix) -> BoolArray:
        """Tell which labels are present, (n, l)."""

    def compact(self, state: S) -> S:
        """Return the same state in its smallest form, for keeping."""
        return state

    @abstractmethod
    def why_unmergeable(self, one: S, other: S) -> str | None:
        """Say why two states of this algorithm cannot be merged exactly; None if `merge` does it."""

    def merge(self, one: S, other: S) -> S:
        """Join what two states learned, where `why_unmergeable` is None."""
        raise NotImplementedError(self.why_unmergeable(one, other))

    def why_no_new_labels(self) -> str | None:
        """Say why labels cannot be added to a state; None if `grow_labels` does it."""
        return _START if type(self).grow_labels is Algorithm.grow_labels else None

    def grow_labels(self, state: S, n_labels: int, rng: np.random.Generator) -> S:
        """Make the state of the same model had it known ``n_labels`` labels, the new ones always absent.

        ``rng`` draws what the model draws for each label.
        """
        raise GrowthError(f"{type(self).__name__} cannot take new labels: {self.why_no_new_labels()}.")

    def why_no_new_features(self) -> str | None:
        """Say why features cannot be added to a state; None if `grow_features` does it."""
        bank = getattr(self, "bank", None)
        return _START if bank is None else bank.why_no_new_features()

    def grow_features(self, state: Any, n_values: IntArray) -> Any:
        """Make the state of the same model had it known features like ``n_values``, the new ones, last, always 0."""
        reason = self.why_no_new_features()
        if reason:
            raise GrowthError(f"{type(self).__name__} cannot take new features: {reason}.")
        bank: Any = self.bank  # type: ignore[attr-defined]
        return state._replace(learners=bank.grow_features(state.learners, n_values))
