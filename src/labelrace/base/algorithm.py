"""The protocol of an online multi-label algorithm: what every method offers to the shells around it.

An algorithm is a frozen dataclass of settings. Its methods are pure functions over a state, a NamedTuple of arrays:
`init` makes the state of a model that has seen nothing, `update` returns the state after a batch, `derive` computes
from a state what predicting needs, and `scores`, `predict` and `probabilities` read that. Nothing ever writes into a
state, so a caller that holds one can go back to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.special import expit

from labelrace.base import growth
from labelrace.base.growth import Moves
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
        """Add what other shares have gained, labels and features by name; ``columns`` as in `Fitted.merge`."""


class Shares(Protocol):
    """How a method that is not sums is learned in shares of the rows: see `labelrace.merging`."""

    def is_ready(self, start: Fitted) -> bool:
        """Return whether a model knows enough to be the common start of shares."""

    def gain(self, start: Fitted, end: Fitted, touched: IntArray | None = None) -> Any:
        """Return the `Gain` of a share; ``touched`` are the features that occurred in it, if they are known."""

    def join(self, start: Fitted, total: Any, batch: Batch | None = None) -> Fitted:
        """Make the model of a start and of the gain of all shares, and learn a batch that none of them has learned."""


class Part(ABC, Generic[S]):
    """Settings, and pure functions over a state: an algorithm, or learners within one.

    What the fields of a state declare (`labelrace.base.growth`) makes `take`, `emptied` and `merge` right for most.
    """

    state_type: ClassVar[Any]
    """The NamedTuple that holds a state; its annotations say what its fields are."""

    unmergeable: ClassVar[str] = "what they have learned depends on the order of the rows"
    """Why two states cannot be merged, where not all of their fields add."""

    unweighted: ClassVar[str | None] = "what it learns of a row is no sum, so a row cannot count more or less than once"
    """Why rows cannot have weights; None where `update` takes them, as a last argument ``row_weights``."""

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped; otherwise it is an error."""
        return False

    def parts(self) -> Mapping[str, Any]:
        """Return objects that move, empty or merge some fields themselves, by `take`, `emptied` and `merge`."""
        return {}

    def why_no_row_weights(self) -> str | None:
        """Return why rows cannot have weights, here or in a part; None if they can."""
        parts = (part.why_no_row_weights() for part in self.parts().values() if isinstance(part, Part))
        return self.unweighted or next(filter(None, parts), None)

    def field_types(self) -> Mapping[str, Any]:
        """Return the types of those fields of a state whose annotation leaves them open, by name."""
        return {name: part.state_type for name, part in self.parts().items() if hasattr(part, "state_type")}

    def take(self, state: S, moves: Moves) -> S:
        """Make the state of the same model with labels and features elsewhere: in another order, or with new ones.

        New labels were always absent, and new features always 0.
        """
        taken: S = growth.take(state, moves, **growth.functions(self.parts(), "take"))
        return taken

    def emptied(self, state: S) -> S:
        """Make the state that has learned nothing, but knows what a first batch settled: what `merge` can be added to.

        Only for what merges.
        """
        emptied: S = growth.empty(state, **growth.functions(self.parts(), "emptied"))
        return emptied

    def merge(self, one: S, other: S) -> S:
        """Join what two states learned, where `why_unmergeable` is None."""
        if not growth.adds(self.state_type, *self.parts()):
            raise NotImplementedError(self.unmergeable)
        merged: S = growth.add(one, other, **growth.functions(self.parts(), "merge"))
        return merged

    def why_unmergeable(self, one: S, other: S) -> str | None:
        """Return why two states cannot be merged exactly; None if `merge` does it."""
        parts = self.parts()
        if type(self).merge is Part.merge and not growth.adds(self.state_type, *parts):
            return self.unmergeable
        for name, part in parts.items():
            reason = part.why_unmergeable(getattr(one, name), getattr(other, name)) if isinstance(part, Part) else None
            if reason:
                return f"their {name} are {part!r}, and {reason}"
        differing = growth.differing(one, other, *parts)
        return f"their {differing} differ; let both start from one model" if differing else None

    @property
    def is_declared(self) -> bool:
        """Whether the fields of a state say enough for it to grow."""
        return type(self).take is not Part.take or growth.is_declared(
            self.state_type, *self.parts(), *self.field_types()
        )


class Algorithm(Part[S]):
    """Learns label sets batch by batch and predicts them."""

    learns_missing_labels: ClassVar[bool] = False
    """Whether a NaN in ``Y`` is a missing label; otherwise it is an error."""

    outgrown: ClassVar[str] = "one of them has outgrown its algorithm"
    """Why a model and one that has become its `successor` cannot be merged."""

    shares: ClassVar[Shares | None] = None
    """How a method that is not sums is learned in shares; None for sums."""

    def init(self, schema: Schema, rng: np.random.Generator) -> S:
        """Make the state of a model that has seen nothing; ``rng`` draws what the model draws.

        By default all is 0, of labels ``l`` and features ``m``.
        """
        state: S = growth.zeros(self.state_type, l=schema.n_labels, m=schema.n_features)
        return state

    @abstractmethod
    def update(self, state: S, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> S:
        """Learn a batch; ``derived``, if it is available, is what `derive` makes of the state.

        An algorithm that is not `unweighted` has a further argument: ``row_weights``, (n,), or None where all are 1.
        """

    def derive(self, state: S) -> Any:
        """Compute what predicting needs: by default the state."""
        return state

    @abstractmethod
    def scores(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Compute a score for every label, (n, l); higher is more likely."""

    def predict(self, derived: Any, X: AnyMatrix) -> BoolArray:
        """Decide which labels are present, (n, l): by default those with a positive score."""
        return self.scores(derived, X) > 0

    def probabilities(self, derived: Any, X: AnyMatrix) -> FloatArray:
        """Estimate the probability of every label, (n, l): by default the scores are log odds."""
        likely: FloatArray = expit(self.scores(derived, X))
        return likely

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

    def merge_models(self, one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join two models of this algorithm; ``columns`` as in `Fitted.merge`, which does it exactly."""
        return one.merge(other, columns)

    def why_not_shared(self, state: S) -> str | None:
        """Return why a model cannot be learned in shares of the rows; None if it can."""
        return self.why_unmergeable(state, state)

    def grow(self, state: S, old: Schema, new: Schema, rng: np.random.Generator) -> S:
        """Make the state of the same model with the features and labels of a wider schema.

        An algorithm that draws something for new labels defines this; ``rng`` starts the same whenever a model grows.
        """
        reason = self.why_no_new_features() if new.n_features > old.n_features else None
        if reason is None and new.n_labels > old.n_labels:
            reason = self.why_no_new_labels()
        if reason:
            raise GrowthError(f"The model cannot grow: {reason}.")
        moves = growth.to_grow(state, old.kinds, new.kinds, l=(old.n_labels, new.n_labels))
        return self.take(state, moves) if moves.sources else state

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for ``n_labels`` labels; None if there is."""
        return None

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added to a state; None if `grow` does it."""
        return None if self.is_declared else _START

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added to a state; None if `grow` does it."""
        return None if self.is_declared else _START

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
