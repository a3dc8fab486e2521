"""The smallest algorithm there is, for tests of what surrounds every algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.growth import SUM
from labelrace.base.sparse import dense
from labelrace.typing import FloatArray


class FakeState(NamedTuple):
    """What the labels were multiplied by the features, summed over rows."""

    sums: Annotated[FloatArray, "m l", SUM]


@dataclass(frozen=True)
class FakeAlgorithm(Algorithm[FakeState]):
    """Scores a label by the rows that had it, less those that did not."""

    state_type = FakeState

    def update(self, state, X, Y, derived=None):
        return FakeState(state.sums + dense(X.T @ (2 * dense(Y) - 1)))

    def scores(self, derived, X):
        return X @ derived.sums


class FakeClassifier(OnlineClassifier):
    """A classifier without parameters of its own."""

    def _algorithm(self, seed):
        return FakeAlgorithm()
