"""What every bank of learners offers.

A bank is a frozen dataclass: its fields are the learners' settings, its methods are pure functions over a state, a
NamedTuple of arrays. `Bank.derive` turns the raw sums of a state into what predicting needs; callers keep that until
the state changes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from labelrace.base.algorithm import Algorithm, Part
from labelrace.base.feature_kinds import KindsLike
from labelrace.typing import AnyMatrix, FloatArray

Task = Literal["classification", "regression"]
S = TypeVar("S")


class Bank(Part[S]):
    """Many learners on the same ``X``, one for each column of ``H``.

    A bank of classifiers predicts the log odds of every pseudo label being 1, a bank of regressors its value.
    """

    @property
    @abstractmethod
    def task(self) -> Task:
        """Whether the pseudo labels to learn are 0/1 or real."""

    @abstractmethod
    def init(self, kinds: KindsLike, n_components: int) -> S:
        """Make the state of learners that have seen nothing; numbers of values do as kinds of features, too."""

    @abstractmethod
    def update(self, state: S, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None) -> S:
        """Learn the rows of ``X`` with their pseudo labels ``H``, and weights if the bank is not `unweighted`."""

    @abstractmethod
    def derive(self, state: S) -> Any:
        """Compute from the state what `predict` needs."""

    @abstractmethod
    def predict(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute the log odds, or values, of all pseudo labels."""

    def why_no_new_components(self) -> str | None:
        """Return why learners that have seen nothing but 0 cannot be added; None if they can."""
        return None if self.is_declared else f"{self!r} cannot be given the past of a label that was always absent"

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added to a state; None if they can."""
        return None if self.is_declared else f"{self!r} is fixed to the features that it started with"


class BankAlgorithm(Algorithm[S]):
    """An algorithm whose learners are a bank: what it can take, the bank says.

    Its state has a field ``learners``.
    """

    bank: Bank[Any]

    def parts(self) -> Mapping[str, Any]:
        """Return the bank, which knows its state."""
        return {"learners": self.bank}

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        return bool(self.bank.skips_missing)

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added: where the learners cannot take them."""
        return self.bank.why_no_new_features()
