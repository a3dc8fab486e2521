"""The protocol of an online multi-label algorithm: what every method offers to the shells around it.

An algorithm is a frozen dataclass of settings. Its methods are pure functions over a state, a NamedTuple of arrays:
`init` makes the state of a model that has seen nothing, `update` returns the state after a batch, `derive` computes
from a state what predicting needs, and `scores`, `predict` and `probabilities` read that. Nothing ever writes into a
state, so whoever holds one can go back to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from labelrace.base.schema import Batch, Schema
from labelrace.exceptions import GrowthError
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from labelrace.base.fitted import Fitted

S = TypeVar("S")

_START = "it has to know all of them from the start"
# Labels that a table of all pairs of them may have: 20,000 make 3.2 GB.
_MOST_PAIRED = 20_000


class Gain(Protocol):
    """What shares of the rows have gained since their common start, where that is not sums."""

    @property
    def schema(self) -> Schema:
        """Names of labels and features; those of the start come first."""

    def plus(self, other: Self, columns: IntArray | None = None) -> Self:
        """Add what other shares have gained, labels and features by name; ``columns`` as in `Fitted.merged`."""


class Shares(Protocol):
    """How a method that is not sums is learned in shares of the rows: see `labelrace.merging`."""

    def is_ready(self, start: Fitted) -> bool:
        """Return whether a model knows enough to be the common start of shares."""

    def gain(self, start: Fitted, end: Fitted, touched: IntArray | None = None) -> Any:
        """Return the `Gain` of a share; ``touched`` are the features that occurred in it, if they are known."""

    def join(self, start: Fitted, total: Any, batch: Batch | None = None) -> Fitted:
        """Make the model of a start and of the gain of all shares, and learn a batch that none of them has learned."""


class Algorithm(ABC, Generic[S]):
    """Learns label sets batch by batch and predicts them."""

    state_type: ClassVar[Any]
    """The NamedTuple that holds a state."""

    learns_missing_labels: ClassVar[bool] = False
    """Whether a NaN in ``Y`` is a missing label; otherwise it is an error."""

    unmergeable: ClassVar[str] = "what they have learned depends on the order of the rows"
    """Why two states cannot be merged, if there is no `merge`."""

    outgrown: ClassVar[str] = "one of them has outgrown its algorithm"
    """Why a model and one that has become its `successor` cannot be merged."""

    shares: ClassVar[Shares | None] = None
    """How a method that is not sums is learned in shares; None for sums."""

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        return False

    def field_types(self) -> Mapping[str, Any]:
        """Return the types of those fields of a state whose annotation leaves them open, by name."""
        return {}

    @abstractmethod
    def init(self, schema: Schema, rng: np.random.Generator) -> S:
        """Make the state of a model that has seen nothing; ``rng`` draws what the model draws."""

    @abstractmethod
    def update(self, state: S, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> S:
        """Learn a batch; ``derived``, if it is available, is what `derive` makes of the state."""

    @abstractmethod
    def derive(self, state: S) -> Any:
        """Compute what predicting needs."""

    @abstractmethod
    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute a score for every label, (n, l); higher is more likely."""

    def predict(self, derived: Any, X: AnyMatrix) -> BoolArray:
        """Decide which labels are present, (n, l): by default those with a positive score."""
        return self.scores(derived, X) > 0

    @abstractmethod
    def probabilities(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Estimate the probability of every label, (n, l)."""

    def predict_sets(self, derived: Any, X: AnyMatrix) -> AnyMatrix | None:
        """Decide which labels are present, as a sparse array; None where that takes no less than `predict`."""
        return None

    def predict_best(self, derived: Any, X: AnyMatrix, k: int) -> tuple[IntArray, FloatArray] | None:
        """Find the most likely labels of each row and their probabilities, (n, k) each, best first.

        None where that takes no less than `probabilities`.
        """
        return None

    def scores_and_probabilities(self, derived: Any, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
        """Compute `scores` and `probabilities`; an algorithm that can do both at less cost defines this."""
        return self.scores(derived, X), self.probabilities(derived, X)

    def why_unmergeable(self, one: S, other: S) -> str | None:
        """Return why two states of this algorithm cannot be merged exactly; None if `merge` does it."""
        return self.unmergeable if type(self).merge is Algorithm.merge else None

    def merge(self, one: S, other: S) -> S:
        """Join what two states learned, where `why_unmergeable` is None."""
        raise NotImplementedError(self.why_unmergeable(one, other))

    def merge_models(self, one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join two models of this algorithm; ``columns`` as in `Fitted.merged`, which does it exactly."""
        return one.merged(other, columns)

    def why_not_shared(self, state: S) -> str | None:
        """Return why a model cannot be learned in shares of the rows; None if it can."""
        return self.why_unmergeable(state, state)

    def emptied(self, state: S) -> S:
        """Make the state that has learned nothing, but knows what a first batch settled: what `merge` can be added to.

        Only for algorithms that `merge`.
        """
        raise NotImplementedError

    def reordered(self, state: S, labels: IntArray, features: IntArray) -> S:
        """Make the state of the same model with its labels and features in another order.

        The new first label is the old ``labels[0]``, and so on. Only for algorithms that `merge`.
        """
        raise NotImplementedError

    def grow(self, state: S, old: Schema, new: Schema, rng: np.random.Generator) -> S:
        """Make the state of the same model with the features and labels of a wider schema.

        An algorithm that draws something for new labels defines this; ``rng`` starts the same whenever a model grows.
        """
        if new.n_features > old.n_features:
            state = self.grow_features(state, new.n_values)
        if new.n_labels > old.n_labels:
            state = self.grow_labels(state, new.n_labels)
        return state

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for so many labels; None if there is."""
        return None

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added to a state; None if `grow_labels`, or a `grow` of its own, does it."""
        kind = type(self)
        return _START if (kind.grow_labels, kind.grow) == (Algorithm.grow_labels, Algorithm.grow) else None

    def grow_labels(self, state: S, n_labels: int) -> S:
        """Make the state of the same model had it known ``n_labels`` labels, the new ones, last, always absent."""
        raise GrowthError(f"{type(self).__name__} cannot take new labels: {self.why_no_new_labels()}.")

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added to a state; None if `grow_features` does it."""
        return _START if type(self).grow_features is Algorithm.grow_features else None

    def grow_features(self, state: S, n_values: IntArray) -> S:
        """Make the state of the same model had it known features like ``n_values``, the new ones, last, always 0."""
        raise GrowthError(f"{type(self).__name__} cannot take new features: {self.why_no_new_features()}.")

    @property
    def successor(self) -> Algorithm[Any] | None:
        """The algorithm that a model changes to once it has outgrown this one; None for most."""
        return None

    def successor_state(self, state: S, schema: Schema) -> Any | None:
        """Return the `successor`'s state where it is to take over; None as long as this algorithm goes on.

        Asked after each update, and with a wider schema before a model grows.
        """
        return None

    def reset_features(self, state: S, columns: IntArray) -> S:
        """Forget what was learned of features whose columns stand for others now.

        An algorithm that does not define this learns on from what it knows of them.
        """
        return state


def why_no_table(what: str, n_labels: int) -> str | None:
    """Return why there is no room for a table of all pairs of labels, which ``what`` names; None if there is."""
    if n_labels <= _MOST_PAIRED:
        return None
    size = f"which would be {8e-9 * n_labels**2:.0f} GB"
    return f"{what} an l × l table, {size}; use at most {_MOST_PAIRED} labels, or RACEClassifier"
