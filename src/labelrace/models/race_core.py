"""RACE on one page: encoder → learners → decoder.

The paper's Algorithm 1 as pure functions over one state. Labels are encoded into a few pseudo labels, a bank of online
learners learns to predict those from the features, and a least-squares decoder turns predicted pseudo labels back into
scores of all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from labelrace.core import decoder, encoder
from labelrace.core.algorithm import Algorithm
from labelrace.learners.bank import Bank
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Derived", "Race", "State"]


class State(NamedTuple):
    """Everything RACE remembers.

    Attributes
    ----------
    encoder : encoder.State
        The hyperplanes.
    learners : NamedTuple
        The bank's state.
    decoder : decoder.State
        The sums of the least-squares problem.
    """

    encoder: encoder.State
    learners: Any
    decoder: decoder.State


class Derived(NamedTuple):
    """What predicting needs: the learners' parameters and the decoder's ``β``."""

    learners: Any
    beta: FloatArray


@dataclass(frozen=True)
class Race(Algorithm[State]):
    """The algorithm's settings, and the algorithm.

    Parameters
    ----------
    bank : Bank
        The learners. Classifiers make it RACE by classification, with pseudo labels cut to 0/1; regressors make it
        RACE by regression.
    encoding : {"fixed", "adaptive"}
        Whether each batch but the first is encoded by the transpose of the decoder that met it.
    start : {"full", "first_batch"}
        Whether the decoder uses all of the pseudo labels' space or, as the paper's recursion does, what the first
        batch spans.
    ridge : float
        Added to the diagonal of the decoder's equations.
    forgetting : float
        What the decoder's sums are multiplied by before each batch.
    zero_score : {"absent", "present"}
        What a label with a score of exactly zero is.
    """

    bank: Bank[Any]
    encoding: Literal["fixed", "adaptive"] = "fixed"
    start: Literal["full", "first_batch"] = "full"
    ridge: float = 0.0
    forgetting: float = 1.0
    zero_score: Literal["absent", "present"] = "absent"

    def init(self, hyperplanes: encoder.State, n_values: IntArray) -> State:
        """Make the state of a model that has seen nothing."""
        n_labels, n_components = hyperplanes.A.shape
        learners = self.bank.init(n_values, n_components)
        return State(hyperplanes, learners, decoder.init(n_labels, n_components))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch; ``derived``, if it is at hand, saves adaptive encoding from solving for ``β`` again."""
        hyperplanes, learners, sums = state
        if self.encoding == "adaptive" and sums.rows > 0:
            beta = decoder.solve(sums, self.ridge) if derived is None else derived.beta
            hyperplanes = encoder.adapt(hyperplanes, beta)
        H = encoder.encode(hyperplanes, Y)
        if self.bank.task == "classification":
            H = (H >= 0).astype(float)
        learners = self.bank.update(learners, X, H)
        if self.start == "first_batch" and sums.basis is None:
            sums = sums._replace(basis=decoder.first_range(H))
        return State(hyperplanes, learners, decoder.update(sums, H, Y, self.forgetting))

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs."""
        return Derived(self.bank.derive(state.learners), decoder.solve(state.decoder, self.ridge))

    def hard_scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode hard pseudo labels; a tie of a pseudo label's two classes counts as 1."""
        predicted = self.bank.predict(derived.learners, X)
        if self.bank.task == "classification":
            predicted = (predicted >= 0).astype(float)
        return predicted @ derived.beta

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Decide labels by the sign of their hard scores."""
        scores = self.hard_scores(derived, X)
        return scores >= 0 if self.zero_score == "present" else scores > 0

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels' probabilities, or values."""
        predicted = self.bank.predict(derived.learners, X)
        if self.bank.task == "classification":
            predicted = expit(predicted)
        return predicted @ derived.beta

    def compact(self, state: State) -> State:
        """Return the same state in its smallest form, for keeping."""
        return state._replace(decoder=decoder.fold(state.decoder))

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Say why two models cannot be merged exactly; None if they can."""
        if self.encoding == "adaptive":
            return "with adaptive encoding, pseudo labels depend on what was learned before"
        if self.start == "first_batch":
            return "their decoders live in what each one's first batch spans; use start='full'"
        if self.forgetting < 1:
            return "forgetting depends on the order of the batches"
        reason = self.bank.why_unmergeable(one.learners, other.learners)
        if reason:
            return f"their learners are {self.bank!r}, and {reason}"
        if not all(map(np.array_equal, one.encoder[:3], other.encoder[:3])):
            return "their encoders differ; start both from one random_state or projection"
        return None

    def merge(self, one: State, other: State) -> State:
        """Join two models with the same fixed encoder, which learned different rows."""
        learners = self.bank.merge(one.learners, other.learners)
        return State(one.encoder, learners, decoder.merge(one.decoder, other.decoder))

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels that were absent so far; pseudo labels and their learners stay as they are.

        With adaptive encoding, too, rows without the new labels are encoded as if these did not exist.
        """
        return self.grow(state, encoder.draw_rows(state.encoder, n_labels - len(state.encoder.A), rng))

    def grow(self, state: State, rows: FloatArray) -> State:
        """Add labels, with the given rows of the encoder, that were absent so far."""
        grown = encoder.grow(state.encoder, rows)
        return State(grown, state.learners, decoder.grow(state.decoder, len(rows)))
