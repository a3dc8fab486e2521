"""The default model: RACE with learners, thresholds and a memory that fit themselves to the stream.

The frame is the paper's: random encoder, online learners of pseudo labels, least-squares decoder. What differs:

*Codes from the empty set.* The paper's ``H = T A + b`` with ``T = 2Y - 1`` is ``2 Y A`` plus a constant, the code of a
row without labels. Learners with an intercept need no constant: they learn ``U = Y A``, and the decoder finds
``Y ≈ U β`` from ``Σ UᵀU`` and ``Σ UᵀY``. A label that was never there has left no trace in any of these, so that one
that appears later is added exactly. The random ``A`` is turned, by one product with the first batch, towards what
labels have in common, which is worth twice the pseudo labels. Where labels are few, nothing is compressed: ``A`` and
``β`` are the identity.

*Learners.* Diagonal recursive least squares (`labelrace.learners.rls`), several members if they are to forget at
several speeds. Members are weighted by their recent squared error; all being linear, that is one model again.

*Missing labels teach nothing.* Rows without a known label are left out; another missing label is filled in by what the
model predicts of it, so that its error is next to nothing.

*Monitoring before learning.* Some rows of each batch are predicted before they are learned. Their scores and labels are
counted (`labelrace.core.thresholds`): thresholds and probabilities come from that. Their errors go to a detector
(`labelrace.core.drift`); when it finds drift, most of the past is forgotten at once, or, of several members, the worst
is replaced by a copy of the best that forgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from labelrace import parameters
from labelrace.core import decoder, drift, encoder, missing_labels, thresholds
from labelrace.core.drift import DriftState
from labelrace.core.schema import Schema
from labelrace.core.thresholds import LabelHistograms, Rule, ScoreHistogram
from labelrace.learners import columns, rls
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.rls import RLS, RLSState
from labelrace.models import inputs
from labelrace.models.base import OnlineClassifier
from labelrace.models.explanation import Explanation, explain
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["LabelRace", "LabelRaceClassifier", "State"]

# The monitored sample of a batch: scores at the most, and rows at the least.
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
        Recent squared error of each member; a row's is that of its labels together.
    histogram : ScoreHistogram
        Counts of scores, for thresholds and probabilities.
    by_label : LabelHistograms
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
    histogram: ScoreHistogram
    by_label: LabelHistograms
    drift: DriftState
    n_drifts: float


class Derived(NamedTuple):
    """What predicting needs; ``beta`` is None where nothing is compressed."""

    learners: rls.Derived
    beta: FloatArray | None
    rule: Rule


@dataclass(frozen=True)
class LabelRace(BankAlgorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : RLS
        The learners.
    aim : str
        What label sets are chosen for; see `labelrace.core.thresholds`.
    detects_drift : bool
        Whether to forget when errors grow.
    max_uncompressed : int
        Labels up to which nothing is compressed.
    n_components : int
        Pseudo labels, where labels are compressed.
    """

    bank: RLS
    aim: str
    detects_drift: bool
    max_uncompressed: int
    n_components: int

    state_type = State
    learns_missing_labels = True

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing; few labels are their own pseudo labels."""
        if schema.n_labels <= self.max_uncompressed:
            return self.start_from(encoder.identity(schema.n_labels), schema.n_values)
        return self.start_from(encoder.draw(schema.n_labels, self.n_components, rng), schema.n_values)

    def start_from(self, projection: encoder.State, n_values: IntArray) -> State:
        """Make the state of a model with this encoder that has seen nothing."""
        n_labels, n_components = projection.A.shape
        return State(
            projection,
            self.bank.init(n_values, n_components),
            decoder.init(n_labels, n_components),
            np.zeros(len(self.bank.half_lives)),
            thresholds.new_histogram(),
            thresholds.new_label_histograms(n_labels if self.aim == "macro_f1" else 0),
            drift.empty(),
            0.0,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        X, Y = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        if _is_uncompressed(state):
            # Few labels: one conversion costs less than any use of sparse ones.
            Y = _dense(Y)
        if state.learners.rows[0] == 0:
            return self._begin(state, X, Y)
        derived = self.derive(state) if derived is None else derived
        Z = self.bank.transform(derived.learners, X)
        state, filled = self._monitor(state, derived, Z, Y), self._filled(derived, Z, Y)
        if self.detects_drift and drift.found(state.drift):
            return self._start_counting(self._learn(self._react(state, X), X, filled), X, Y)
        return self._learn(state, X, filled, Z)

    def _begin(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn the first batch, of which nothing could be predicted."""
        filled = missing_labels.fill_with_means(Y)
        if not _is_uncompressed(state):
            state = state._replace(encoder=encoder.turn(state.encoder, filled))
        return self._start_counting(self._learn(state, X, filled), X, Y)

    def _start_counting(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Count the scores of a batch just learned, and nothing before: too good to be true, so they count for less."""
        some = _monitored_rows(Y)
        scores = self._raw(self.derive(state), X[some])
        counts = thresholds.add_scores(thresholds.new_histogram(), scores, _dense(Y[some]))
        faded = ScoreHistogram(*(_FIRST * part for part in counts))  # type: ignore[arg-type]
        return state._replace(histogram=faded, drift=drift.empty())

    def _learn(self, state: State, X: AnyMatrix, Y: AnyMatrix, Z: AnyMatrix | None = None) -> State:
        # The decoder forgets as the member does that forgets least, and never all.
        keep = max(float(self.bank.factors(Y.shape[0]).max()), _LEAST_KEPT)
        if _is_uncompressed(state):
            U = np.asarray(Y)
            sums = decoder.update_uncompressed(state.decoder, U, keep)
        else:
            U = Y @ state.encoder.A
            sums = decoder.update(state.decoder, U, Y, keep)
        return state._replace(learners=self.bank.update(state.learners, X, U, Z), decoder=sums)

    def _monitor(self, state: State, derived: Derived, Z: AnyMatrix, Y: AnyMatrix) -> State:
        """Record how some rows of a batch are predicted before they are learned."""
        some = _monitored_rows(Y)
        Z, labels = Z[some], _dense(Y[some])
        scores = self._decoded(derived, Z)
        if self.aim == "macro_f1":
            state = state._replace(by_label=thresholds.add_label_scores(state.by_label, scores, labels))
        if len(state.errors) > 1:
            state = state._replace(errors=self._member_errors(state, derived, Z, labels))
        watched = drift.add(state.drift, _errors(scores, labels))
        return state._replace(histogram=thresholds.add_scores(state.histogram, scores, labels), drift=watched)

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
        """Put predictions where labels are missing."""
        missing = missing_labels.find(Y)
        if missing is None:
            return Y
        rows, labels = missing
        values, n_rows = [], max(1, _MOST_FILLED // Y.shape[1])
        # Some rows at a time: all scores of a batch may be more than there is room for.
        for start in range(0, Y.shape[0], n_rows):
            here = slice(*np.searchsorted(rows, [start, start + n_rows]))
            scores = self._decoded(derived, Z[start : start + n_rows])
            values.append(scores[rows[here] - start, labels[here]])
        return missing_labels.fill(Y, missing, np.concatenate(values))

    def derive(self, state: State) -> Derived:
        """Average the members, solve for the decoder, and read the thresholds off the histograms."""
        learners = self.bank.derive(state.learners, _shares(state.errors))
        rule = thresholds.make_rule(self.aim, state.histogram, state.by_label)
        if _is_uncompressed(state):
            return Derived(learners, None, rule)
        beta = decoder.solve_labels(state.decoder, _DECODER_RIDGE)
        return Derived(learners, beta.astype(learners.weights.dtype, copy=False), rule)

    def _raw(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels: about the labels' probabilities."""
        return self._decoded(derived, self.bank.transform(derived.learners, X))

    def _decoded(self, derived: Derived, Z: AnyMatrix) -> FloatArray:
        U = self.bank.predict_transformed(derived.learners, Z)
        return U if derived.beta is None else U @ derived.beta

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels; the common threshold is at zero."""
        return np.subtract(self._raw(derived, X), derived.rule.threshold, dtype=float)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim."""
        return thresholds.choose(derived.rule, self._raw(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        return thresholds.probabilities(derived.rule, self._raw(derived, X)).astype(float, copy=False)

    def compact(self, state: State) -> State:
        """Return the same state in its smallest form, for saving."""
        return state._replace(decoder=decoder.fold(state.decoder))

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged."""
        return "what they have learned depends on the order of the rows"

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels that were absent so far: as pseudo labels of their own while these are few."""
        n_known = len(state.encoder.A)
        if self.aim == "macro_f1":
            state = state._replace(by_label=thresholds.grow_label_histograms(state.by_label, n_labels))
        n_own = min(n_labels, self.max_uncompressed) if _is_uncompressed(state) else n_known
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


def _is_uncompressed(state: State) -> bool:
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
    """Sum the squared errors of each row, with what is expected where the label is missing.

    Of all labels together: labels that are added later, all absent so far, have added nothing to errors before.
    """
    errors = np.square(scores - labels)
    sums = errors.sum(axis=1)
    if not np.isnan(sums).any():
        return sums
    likely = np.clip(scores, 0.0, 1.0)
    return np.where(np.isnan(errors), likely * (1.0 - likely), errors).sum(axis=1)


def _monitored_rows(Y: AnyMatrix) -> slice | IntArray:
    """Choose the rows of a batch that are monitored: from all over it, as it may be sorted."""
    n, n_labels = Y.shape
    n_rows = min(n, max(_FEWEST_ROWS, _MOST_SCORES // max(n_labels, 1)))
    return slice(None) if n_rows == n else np.arange(n_rows) * n // n_rows


def _dense(Y: AnyMatrix) -> FloatArray:
    return np.asarray(columns.dense(Y), dtype=float)


class LabelRaceClassifier(OnlineClassifier):
    """Online multi-label classification by label compression: the default that needs no tuning.

    RACE's random encoder and least-squares decoder around linear learners that scale their features, choose their
    penalty and forget by themselves; a threshold that keeps the number of predicted labels near that of true ones;
    probabilities that are what they say; and a detector that makes the model forget faster after a drift. New labels
    and features may appear, and labels may be unknown (NaN) or late. See docs/default.md.

    Parameters
    ----------
    n_components : int, default=64
        Pseudo labels. Up to twice as many labels are not compressed.
    half_life : float, None or sequence of these, default=2000.0
        Rows after which half of what was learned is forgotten; None for never. Several make an ensemble of members
        that forget at these speeds, weighted by their recent errors; the decoder forgets as the slowest does.
    forgetting : float, None or sequence of floats, default=None
        The same as a rate, if that is given: what is kept of the past after each row. 1 forgets nothing.
    detect_drift : bool, default=True
        Whether to forget nearly all when errors grow by more than chance; of several members, the worst is then
        replaced.
    optimise : str, default="cardinality"
        What label sets are to be good at: "cardinality" (as many labels as there are; good at all measures),
        "example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss" or "subset_accuracy".
    alpha : float or "auto", default="auto"
        Penalty of the learners, where a row has length one, of at least 1e-5. "auto" is the best of a grid on the
        first rows.
    n_random_features : int, default=128
        Random features of dense data: absolute values along random directions. 0 for linear models.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values.
    label_names : sequence of str or None, default=None
        Names of the labels, if ``y`` does not bring them.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the encoder and of the random features.

    Attributes
    ----------
    encoder_ : (l, K) array
        The projection of labels to pseudo labels.
    decoder_ : (K, l) array
        The decoder.
    threshold_ : float
        The score with as many scores above it as there were labels recently; `decision_function` has it subtracted.
        Rules that choose by row or by label (`optimise`) do not use it.
    alpha_ : float
        The penalty.
    n_drifts_ : int
        Drifts found so far.
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Columns of the labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.

    See Also
    --------
    RACEClassifier : The paper's algorithm.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=3000, n_features=20, n_labels=30, seed=0)
    >>> for name in ("race", "race-cls-adaptive"):
    ...     model = labelrace.make_model(name, random_state=0)
    ...     print(name, f"{averages(prequential(model, stream))['example_f1']:.2f}")
    race 0.72
    race-cls-adaptive 0.46
    """

    def __init__(
        self,
        *,
        n_components: int = 64,
        half_life: Any = 2000.0,
        forgetting: Any = None,
        detect_drift: bool = True,
        optimise: str = "cardinality",
        alpha: float | Literal["auto"] = "auto",
        n_random_features: int = 128,
        categorical_features: Any = None,
        label_names: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.half_life = half_life
        self.forgetting = forgetting
        self.detect_drift = detect_drift
        self.optimise = optimise
        self.alpha = alpha
        self.n_random_features = n_random_features
        self.categorical_features = categorical_features
        self.label_names = label_names
        self.random_state = random_state

    def _algorithm(self, seed: int) -> LabelRace:
        parameters.check_whole("n_components", self.n_components, 1)
        parameters.check_choice("optimise", self.optimise, thresholds.AIMS)
        parameters.check_flag("detect_drift", self.detect_drift)
        if isinstance(self.alpha, str):
            parameters.check_choice("alpha", self.alpha, ("auto",))
        alpha = None if isinstance(self.alpha, str) else self.alpha
        bank = RLS(alpha, self._half_lives(), self.n_random_features, seed, single=True)
        n_components = int(self.n_components)
        return LabelRace(bank, self.optimise, bool(self.detect_drift), 2 * n_components, n_components)

    def _half_lives(self) -> tuple[float | None, ...]:
        if self.forgetting is None:
            return _several("half_life", self.half_life, "a number of rows, None")
        rates = _several("forgetting", self.forgetting, "a number above 0 and up to 1")
        for rate in rates:
            parameters.check_number("forgetting", rate, 0, 1, open_low=True)
        return tuple(None if rate == 1 else float(np.log(0.5) / np.log(rate)) for rate in rates)

    def explain(self, x: Any, labels: Any = None, n_features: int = 10) -> list[Explanation]:
        """Tell what carried the scores of a row's labels.

        Parameters
        ----------
        x : array-like, sparse matrix, data frame or dict of one row
        labels : sequence of label indices or names, or None
            The labels to explain; None for those predicted.
        n_features : int
            Features to name for each label, those that carried most.

        Returns
        -------
        list of Explanation
            In the order of the labels. The parts of each add up to its score.
        """
        parameters.check_whole("n_features", n_features, 1)
        fitted, X = self._rows(inputs.one_row(x))
        if X.shape[0] != 1:
            raise ValueError(f"x must be one row, got {X.shape[0]}.")
        predicted = fitted.algorithm.predict(fitted.derived, X)[0]
        wanted = np.flatnonzero(predicted) if labels is None else fitted.schema.places_of(labels)
        bank, learners = fitted.algorithm.bank, fitted.derived.learners
        z = columns.dense(bank.transform(learners, X))[0]
        return explain(fitted.schema, learners, self.decoder_, z, wanted, n_features)

    @property
    def encoder_(self) -> FloatArray:
        """The projection of labels to pseudo labels, (l, K)."""
        return self._checked_fitted().state.encoder.A

    @property
    def decoder_(self) -> FloatArray:
        """The decoder, (K, l)."""
        beta: FloatArray | None = self._checked_fitted().derived.beta
        return np.eye(self._fitted.schema.n_labels) if beta is None else beta

    @property
    def threshold_(self) -> float:
        """The score above which a label is predicted."""
        return self._checked_fitted().derived.rule.threshold

    @property
    def alpha_(self) -> float:
        """The penalty of the learners."""
        return self._checked_fitted().state.learners.alpha

    @property
    def n_drifts_(self) -> int:
        """Drifts found so far."""
        return int(self._checked_fitted().state.n_drifts)


def _several(name: str, value: Any, what: str) -> tuple[Any, ...]:
    """List the values of a parameter that may be one or several."""
    is_one = isinstance(value, str) or np.ndim(value) == 0
    values = (value,) if is_one else tuple(value)
    if not values:
        raise ValueError(f"{name} must be {what}, or several of these, got none.")
    return values
