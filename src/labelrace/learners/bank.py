"""What every bank of learners offers.

A bank is a frozen dataclass: its fields are the learners' settings, its methods are pure functions over a state, a
NamedTuple of arrays. `Bank.derive` turns the raw sums of a state into what predicting needs; callers keep that until
the state changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar

from labelrace.base.algorithm import Algorithm
from labelrace.exceptions import GrowthError
from labelrace.typing import AnyMatrix, FloatArray, IntArray

Task = Literal["classification", "regression"]
S = TypeVar("S")


class Bank(ABC, Generic[S]):
    """Many learners on the same ``X``, one for each column of ``H``.

    A bank of classifiers predicts the log odds of every pseudo label being 1, a bank of regressors its value.
    """

    state_type: ClassVar[type]
    """The NamedTuple class of the states; its annotations say how a saved state is restored."""

    @property
    def skips_missing(self) -> bool:
        """Whether NaN in ``X`` is allowed, as a missing value."""
        return False

    @property
    @abstractmethod
    def task(self) -> Task:
        """Whether the pseudo labels to learn are 0/1 or real."""

    def why_unmergeable(self, one: S, other: S) -> str | None:
        """Say why two states cannot be merged exactly; None if they can."""
        return "what they have learned depends on the order of the rows"

    def emptied(self, state: S) -> S:
        """Make the state that has learned nothing, but knows what a first batch settled; for banks that `merge`."""
        raise NotImplementedError

    def reordered(self, state: S, targets: IntArray | None, features: IntArray) -> S:
        """Put targets and features in another order, the new first is the old ``features[0]``; None keeps targets.

        Only for banks that `merge`.
        """
        raise NotImplementedError

    @abstractmethod
    def init(self, n_values: IntArray, n_components: int) -> S:
        """Make the state of learners that have seen nothing.

        ``n_values`` has one entry for each feature: the number of values of a nominal one, 0 for a numeric one.
        """

    @abstractmethod
    def update(self, state: S, X: AnyMatrix, H: AnyMatrix) -> S:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""

    @abstractmethod
    def derive(self, state: S) -> Any:
        """Compute from the state what `predict` needs."""

    @abstractmethod
    def predict(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all pseudo labels."""

    def merge(self, one: S, other: S) -> S:
        """Join what two states learned, where `why_unmergeable` is None."""
        raise NotImplementedError(self.why_unmergeable(one, other))

    def why_no_new_components(self) -> str | None:
        """Say why learners that have seen nothing but 0 cannot be added; None if they can."""
        grows = type(self).grow_components is not Bank.grow_components
        return None if grows else f"{self!r} cannot be given the past of a label that was always absent"

    def grow_components(self, state: S, n_components: int) -> S:
        """Make the state of ``n_components`` learners; the new ones, last, have seen no pseudo label but 0."""
        raise GrowthError(f"The learners cannot become more: {self.why_no_new_components()}.")

    def why_no_new_features(self) -> str | None:
        """Say why features cannot be added to a state; None if they can."""
        grows = type(self).grow_features is not Bank.grow_features
        return None if grows else f"{self!r} is fixed to the features that it started with"

    def grow_features(self, state: S, n_values: IntArray) -> S:
        """Make the state of the same learners had they known more features, which were always 0.

        ``n_values`` is as for `init`, with the new features last; those of known features are ignored.
        """
        raise GrowthError(f"The learners cannot take new features: {self.why_no_new_features()}.")


class BankAlgorithm(Algorithm[S]):
    """An algorithm whose learners are a bank: what it can take, the bank tells.

    Its state has a field ``learners``.
    """

    bank: Bank[Any]

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        return bool(self.bank.skips_missing)

    def field_types(self) -> Mapping[str, Any]:
        """Return the type of the learners' state."""
        return {"learners": self.bank.state_type}

    def why_unmergeable(self, one: S, other: S) -> str | None:
        """Return why two states cannot be merged exactly: where there is no `merge`, or the learners cannot."""
        reason = super().why_unmergeable(one, other)
        if reason:
            return reason
        reason = self.bank.why_unmergeable(one.learners, other.learners)  # type: ignore[attr-defined]
        return f"their learners are {self.bank!r}, and {reason}" if reason else None

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added: where the learners cannot take them."""
        return self.bank.why_no_new_features()

    def grow_features(self, state: S, n_values: IntArray) -> S:
        """Add features that have been 0 in all rows, to the learners."""
        grown: Any = self.bank.grow_features(state.learners, n_values)  # type: ignore[attr-defined]
        return state._replace(learners=grown)  # type: ignore[attr-defined]
