"""The default model: RACE with learners, thresholds and a memory that fit themselves to the stream.

The frame is the paper's: random encoder, online learners of pseudo labels, least-squares decoder. What differs:

*Codes from the empty set.* The paper's ``H = T A + b`` with ``T = 2Y - 1`` is ``2 Y A`` plus a constant, the code of a
row without labels. Learners with an intercept need no constant: they learn ``U = Y A``, and the decoder finds
``Y ≈ U β`` from ``Σ UᵀU`` and ``Σ UᵀY``. A label that was never there has left no trace in any of these, so that one
that appears later is added exactly. The random ``A`` is turned, by one product with the first batch, towards what
labels have in common, which is worth twice the pseudo labels. Where labels are few, nothing is compressed: ``A`` and
``β`` are the identity.

*Learners.* Diagonal recursive least squares (`labelrace.learners.rls`), several members if they are to forget at
several speeds. Members are weighted by their squared error of late; all being linear, that is one model again.

*What is not known does not teach.* Rows of which nothing is known are left out; another unknown label is filled in by
what the model predicts of it, so that its error is next to nothing.

*Looking before learning.* Some rows of each batch are predicted before they are learned. Their scores and labels are
counted (`labelrace.core.tally`): thresholds and probabilities come from that. Their errors go to a detector
(`labelrace.core.drift`); when it finds drift, most of the past is forgotten at once, or, of several members,
the worst is replaced by a copy of the best that forgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelrace.core import decoder, drift, encoder, rules, tally
from labelrace.core import missing_labels as unknown
from labelrace.core.algorithm import Algorithm
from labelrace.learners import columns, rls
from labelrace.learners.rls import RLS, RLSState
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Derived", "Ensemble", "State"]

# Scores of a batch that are looked at before it is learned, at the most; and rows, at the least.
_MOST_SCORES, _FEWEST_ROWS = 10_000, 32
# Scores that are computed at once where labels are filled in.
_MOST_FILLED = 4_000_000
# What the first batch's own scores count for: the model that made them had seen the batch.
_FIRST = 0.1
# Share of the past that is kept when there was a drift.
_KEPT = 0.02
# Share of the past that a batch leaves in the decoder at the least, however long the batch and short the half-life.
_LEAST_KEPT = 1e-30
# Rows after which half of a member's errors are forgotten, and how sharply members are told apart by them.
_ERRORS_HALF_LIFE, _SHARPNESS = 500.0, 20.0
# Penalty of the decoder, relative to the mean square of a pseudo label.
_DECODER_RIDGE = 1e-3


class State(NamedTuple):
    """Everything the model remembers.

    Attributes
    ----------
    encoder : encoder.State
        The projection; its bias is not used.
    learners : RLSState
        The members' linear models of the pseudo labels.
    decoder : decoder.State
        Sums over true pseudo labels and labels.
    errors : (E,) array
        Squared error of each member, of late; a row's is that of its labels together.
    tally : Tally
        Counts of scores, for thresholds and probabilities.
    by_label : LabelTally
        The same for each label, where thresholds are the labels' own.
    drift : DriftState
        Errors of recent batches.
    n_drifts : float
        Drifts found so far.
    """

    encoder: encoder.State
    learners: RLSState
    decoder: decoder.State
    errors: FloatArray
    tally: tally.Tally
    by_label: rules.LabelTally
    drift: drift.DriftState
    n_drifts: float


class Derived(NamedTuple):
    """What predicting needs; ``beta`` is None where nothing is compressed."""

    learners: rls.Derived
    beta: FloatArray | None
    chooser: rules.Chooser


@dataclass(frozen=True)
class Ensemble(Algorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : RLS
        The learners.
    aim : str
        What label sets are chosen for; see `labelrace.core.rules`.
    detects_drift : bool
        Whether to forget when errors grow.
    most_plain : int
        Labels up to which nothing is compressed.
    """

    bank: RLS
    aim: str
    detects_drift: bool
    most_plain: int

    @property
    def learns_partial_labels(self) -> bool:
        """NaN in ``Y`` is a label that is not known."""
        return True

    def init(self, projection: encoder.State, n_values: IntArray) -> State:
        """Make the state of a model that has seen nothing."""
        n_labels, n_components = projection.A.shape
        return State(
            projection,
            self.bank.init(n_values, n_components),
            decoder.init(n_labels, n_components),
            np.zeros(len(self.bank.half_lives)),
            tally.empty(),
            rules.empty_labels(n_labels if self.aim == "macro_f1" else 0),
            drift.empty(),
            0.0,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after a look at what is predicted for it; rows of which no label is known are left out."""
        X, Y = unknown.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        if _plain(state):
            # Few labels: one conversion costs less than any use of sparse ones.
            Y = _dense(Y)
        if state.learners.rows[0] == 0:
            return self._begin(state, X, Y)
        derived = self.derive(state) if derived is None else derived
        Z = self.bank.transform(derived.learners, X)
        state, filled = self._look(state, derived, Z, Y), self._filled(derived, Z, Y)
        if self.detects_drift and drift.found(state.drift):
            return self._start_counting(self._learn(self._react(state, X), X, filled), X, Y)
        return self._learn(state, X, filled, Z)

    def _begin(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn the first batch, of which nothing could be predicted."""
        filled = unknown.fill_with_means(Y)
        if not _plain(state):
            state = state._replace(encoder=encoder.turn(state.encoder, filled))
        return self._start_counting(self._learn(state, X, filled), X, Y)

    def _start_counting(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Count the scores of a batch just learned, and nothing before: too good to be true, so they count for less."""
        some = _some_rows(Y)
        counts = tally.add(tally.empty(), self._raw(self.derive(state), X[some]), _dense(Y[some]))
        faded = tally.Tally(*(_FIRST * part for part in counts))  # type: ignore[arg-type]
        return state._replace(tally=faded, drift=drift.empty())

    def _learn(self, state: State, X: AnyMatrix, Y: AnyMatrix, Z: AnyMatrix | None = None) -> State:
        # The decoder forgets as the member does that forgets least, and never all.
        keep = max(float(self.bank.factors(Y.shape[0]).max()), _LEAST_KEPT)
        if _plain(state):
            U = np.asarray(Y)
            sums = decoder.update_plain(state.decoder, U, keep)
        else:
            U = Y @ state.encoder.A
            sums = decoder.update(state.decoder, U, Y, keep)
        return state._replace(learners=self.bank.update(state.learners, X, U, Z), decoder=sums)

    def _look(self, state: State, derived: Derived, Z: AnyMatrix, Y: AnyMatrix) -> State:
        """Take down how some rows of a batch are predicted."""
        some = _some_rows(Y)
        Z, labels = Z[some], _dense(Y[some])
        scores = self._decoded(derived, Z)
        if self.aim == "macro_f1":
            state = state._replace(by_label=rules.add_labels(state.by_label, scores, labels))
        if len(state.errors) > 1:
            state = state._replace(errors=self._member_errors(state, derived, Z, labels))
        watched = drift.add(state.drift, _errors(scores, labels))
        return state._replace(tally=tally.add(state.tally, scores, labels), drift=watched)

    def _member_errors(self, state: State, derived: Derived, Z: AnyMatrix, labels: FloatArray) -> FloatArray:
        members = [derived._replace(learners=member) for member in self.bank.members(state.learners)]
        # Of all labels together: labels that are added later, all absent so far, have added nothing to errors before.
        new = [labels.shape[1] * np.nanmean(np.square(self._decoded(member, Z) - labels)) for member in members]
        keep = 0.5 ** (len(labels) / _ERRORS_HALF_LIFE) if state.errors.any() else 0.0
        return keep * state.errors + (1.0 - keep) * np.array(new)

    def _react(self, state: State, X: AnyMatrix) -> State:
        """Forget what a drift has made wrong."""
        state = state._replace(n_drifts=state.n_drifts + 1.0, learners=self.bank.rescale(state.learners, X))
        if len(state.errors) == 1:
            learners, sums = self.bank.forget(state.learners, _KEPT), decoder.forget(state.decoder, _KEPT)
            return state._replace(learners=learners, decoder=sums)
        worst, best = int(state.errors.argmax()), int(state.errors.argmin())
        return state._replace(learners=self.bank.replace(state.learners, worst, best, _KEPT))

    def _filled(self, derived: Derived, Z: AnyMatrix, Y: AnyMatrix) -> AnyMatrix:
        """Put predictions where labels are not known."""
        missing = unknown.find(Y)
        if missing is None:
            return Y
        rows, labels = missing
        values, n_rows = [], max(1, _MOST_FILLED // Y.shape[1])
        # Some rows at a time: all scores of a batch may be more than there is room for.
        for start in range(0, Y.shape[0], n_rows):
            here = slice(*np.searchsorted(rows, [start, start + n_rows]))
            scores = self._decoded(derived, Z[start : start + n_rows])
            values.append(scores[rows[here] - start, labels[here]])
        return unknown.fill(Y, missing, np.concatenate(values))

    def derive(self, state: State) -> Derived:
        """Average the members, solve for the decoder, and read the thresholds off the counts."""
        learners = self.bank.derive(state.learners, _shares(state.errors))
        chooser = rules.make(self.aim, state.tally, state.by_label)
        if _plain(state):
            return Derived(learners, None, chooser)
        beta = decoder.solve_labels(state.decoder, _DECODER_RIDGE)
        return Derived(learners, beta.astype(learners.weights.dtype, copy=False), chooser)

    def _raw(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels: about the labels' probabilities."""
        return self._decoded(derived, self.bank.transform(derived.learners, X))

    def _decoded(self, derived: Derived, Z: AnyMatrix) -> FloatArray:
        U = self.bank.predict_transformed(derived.learners, Z)
        return U if derived.beta is None else U @ derived.beta

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels; the common threshold is at zero."""
        return np.subtract(self._raw(derived, X), derived.chooser.threshold, dtype=float)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim."""
        return rules.choose(derived.chooser, self._raw(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute how likely each label is, by what scores were worth of late."""
        return rules.probabilities(derived.chooser, self._raw(derived, X)).astype(float, copy=False)

    def compact(self, state: State) -> State:
        """Return the same state in its smallest form, for keeping."""
        return state._replace(decoder=decoder.fold(state.decoder))

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Say why two models cannot be merged."""
        return "what they have learned depends on the order of the rows"

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels that were absent so far: as pseudo labels of their own while these are few."""
        n_known = len(state.encoder.A)
        if self.aim == "macro_f1":
            state = state._replace(by_label=rules.grow_labels(state.by_label, n_labels))
        n_own = min(n_labels, self.most_plain) if _plain(state) else n_known
        if n_own > n_known:
            state = state._replace(
                encoder=encoder.identity(n_own),
                learners=self.bank.grow_components(state.learners, n_own),
                decoder=decoder.grow(decoder.grow_components(state.decoder, n_own), n_own - n_known),
            )
        n_new = n_labels - n_own
        if n_new > 0:
            grown = encoder.grow(state.encoder, encoder.draw_rows(state.encoder, n_new, rng))
            state = state._replace(encoder=grown, decoder=decoder.grow(state.decoder, n_new))
        return state


def _plain(state: State) -> bool:
    """Tell whether labels are their own pseudo labels: there are fewer of the latter otherwise."""
    n_labels, n_components = state.encoder.A.shape
    return n_labels == n_components


def _shares(errors: FloatArray) -> FloatArray:
    """Weigh the members: one with an error larger by a tenth counts for about a seventh."""
    if not errors.any():
        return np.full(len(errors), 1.0 / len(errors))
    weights = (errors.min() / errors) ** _SHARPNESS if errors.min() > 0 else (errors == 0).astype(float)
    return weights / weights.sum()


def _errors(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Sum the squared errors of each row, with what is expected where the label is not known.

    Of all labels together: labels that are added later, all absent so far, have added nothing to errors before.
    """
    errors = np.square(scores - labels)
    sums = errors.sum(axis=1)
    if not np.isnan(sums).any():
        return sums
    likely = np.clip(scores, 0.0, 1.0)
    return np.where(np.isnan(errors), likely * (1.0 - likely), errors).sum(axis=1)


def _some_rows(Y: AnyMatrix) -> slice | IntArray:
    """Choose the rows of a batch to look at: from all over it, as it may be in an order."""
    n, n_labels = Y.shape
    n_rows = min(n, max(_FEWEST_ROWS, _MOST_SCORES // max(n_labels, 1)))
    return slice(None) if n_rows == n else np.arange(n_rows) * n // n_rows


def _dense(Y: AnyMatrix) -> FloatArray:
    return np.asarray(columns.dense(Y), dtype=float)
