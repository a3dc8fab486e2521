"""What every online multi-label algorithm of the core offers to the shells around it.

An algorithm is a frozen dataclass of settings. Its methods are pure functions over a state, a NamedTuple of arrays; how
a state begins (``init``) is each algorithm's own affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from labelrace.typing import AnyMatrix, BoolArray, FloatArray

__all__ = ["Algorithm"]

S = TypeVar("S")


class Algorithm(ABC, Generic[S]):
    """Learns label sets batch by batch and predicts them."""

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        bank = getattr(self, "bank", None)
        return bank is None or bool(bank.skips_missing)

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
