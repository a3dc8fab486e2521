"""The default model: every label a linear model that scales, chooses its penalty and forgets by itself.

*Labels are their own targets* as long as the weights, labels times columns in use, fit a stated budget of memory. Above
it they are compressed as in the paper: a random encoder, learners of the pseudo labels, and a least-squares decoder.
The paper's ``H = T A + b`` with ``T = 2Y - 1`` is ``2 Y A`` plus a constant; learners with an intercept need no
constant, so they learn ``U = Y A``, and the decoder finds ``Y ≈ U β`` from ``Σ UᵀU`` and ``Σ UᵀY``. The random ``A`` is
turned, by one product with the first batch, towards what labels have in common.

*Learners* are diagonal recursive least squares (`labelrace.learners.rls`), with an exact start.

*Missing labels teach nothing*: their error is zero. Rows without a known label are left out.

*Monitoring before learning.* Some rows of each batch are predicted before they are learned; of the rows of the exact
start, the leave-one-out scores are taken. They are counted (`labelrace.core.thresholds`): thresholds, offsets and
probabilities come from that. Their errors go to a detector (`labelrace.core.drift`); when it finds drift, most of the
past is forgotten at once.

Costs: a batch of ``n`` rows with ``z`` non-zeros takes ``O(z l + n b l + z b)`` for ``l`` labels and blocks of ``b``
rows, the weights are ``O(m l)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from labelrace import parameters
from labelrace.core import decoder, drift, encoder, missing_labels, thresholds
from labelrace.core.drift import DriftState
from labelrace.core.schema import Schema
from labelrace.core.thresholds import LabelHistograms, Monitor, Rule
from labelrace.exceptions import MergeError
from labelrace.learners import columns, rls, scaling
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.rls import RLS, RLSState, WarmUp
from labelrace.models import inputs
from labelrace.models.base import OnlineClassifier
from labelrace.models.explanation import Explanation, explain
from labelrace.models.fitted import Fitted
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["LabelRace", "LabelRaceClassifier", "State"]

# The monitored sample of a batch: scores at the most, and rows at the least; of the start there are more.
_MOST_SCORES, _FEWEST_ROWS = 10_000, 32
_MOST_FIRST_SCORES = 1_000_000
# Scores that are computed at once where labels are filled in.
_MOST_FILLED = 4_000_000
# Share of the past that is kept when there was a drift.
_KEPT = 0.02
# Share of the past that a batch leaves in the decoder at the least, however long the batch and short the half-life.
_LEAST_KEPT = 1e-30
# Penalty of the decoder, relative to the mean square of a pseudo label.
_DECODER_RIDGE = 1e-3


class Waiting(NamedTuple):
    """Scores and labels of monitored rows, (n, l), until there are enough of them to be counted together."""

    scores: FloatArray
    labels: FloatArray


class State(NamedTuple):
    """Everything the model remembers.

    Attributes
    ----------
    encoder : encoder.State
        The projection, without columns where labels are not compressed; its bias is not used.
    learners : RLSState
        The linear models of the labels, or of the pseudo labels.
    decoder : decoder.State
        Sums over true pseudo labels and labels.
    monitor : Monitor
        Counts of scores, and offsets, for thresholds and probabilities.
    waiting : Waiting
        Monitored rows that are not counted yet.
    by_label : LabelHistograms
        Counts for each label, where thresholds are the labels' own.
    drift : DriftState
        Errors of recent batches.
    n_drifts : float
        Drifts found so far.
    """

    encoder: encoder.State
    learners: RLSState
    decoder: decoder.State
    monitor: Monitor
    waiting: Waiting
    by_label: LabelHistograms
    drift: DriftState
    n_drifts: float


class Derived(NamedTuple):
    """What predicting needs; ``beta`` is None where nothing is compressed, ``offsets`` are taken from the scores."""

    learners: rls.Derived
    beta: FloatArray | None
    offsets: FloatArray
    rule: Rule


@dataclass(frozen=True)
class LabelRace(BankAlgorithm[State]):
    """The algorithm.

    Parameters
    ----------
    bank : RLS
        The learners of labels.
    aim : str
        What label sets are chosen for; see `labelrace.core.thresholds`.
    detects_drift : bool
        Whether to forget when errors grow.
    max_memory : float
        Bytes of weights up to which nothing is compressed.
    n_components : int
        Pseudo labels, where labels are compressed.
    """

    bank: RLS
    aim: str
    detects_drift: bool
    max_memory: float
    n_components: int

    state_type = State
    learns_missing_labels = True

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing; the first batch tells whether labels are compressed."""
        return self._empty(_no_encoder(schema.n_labels), schema.n_values)

    def _empty(self, projection: encoder.State, n_values: IntArray) -> State:
        """Make the state of a model with this encoder that has seen nothing."""
        n_labels, n_components = projection.A.shape
        return State(
            projection,
            self.bank.init(n_values, n_components or n_labels),
            decoder.init(n_labels, n_components),
            thresholds.new_monitor(n_labels),
            Waiting(np.zeros((0, n_labels)), np.zeros((0, n_labels))),
            thresholds.new_label_histograms(n_labels if self.aim == "macro_f1" else 0),
            drift.empty(),
            0.0,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        X, Y = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        learners = state.learners
        if learners.rows == 0:
            first, others = rls.first_rows(X.shape[0])
            begun = self._begin(state, X[first], Y[first])
            return self.update(begun, X[others], Y[others]) if len(others) else begun
        if not learners.warm_up.n_used:
            return self._continue(state, X, Y, derived)
        buffer = learners.warm_up.with_batch(X, Y)
        if not buffer.is_due():
            continued = self._continue(state, X, Y, derived)
            return continued._replace(learners=continued.learners._replace(warm_up=buffer))
        # All begins anew, also the encoder, which is turned by more rows then.
        return self.update(self._empty(_no_encoder(Y.shape[1]), learners.scaling.n_values), *buffer.rows(X, Y.shape[1]))

    def _begin(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn the first rows exactly, and count the scores that each has without itself."""
        filled = missing_labels.fill_with_means(Y)
        if _is_uncompressed(state) and not self._fits(_columns_in_use(X, state, self.bank), Y.shape[1]):
            rng = np.random.default_rng([self.bank.seed, Y.shape[1]])
            drawn = encoder.turn(encoder.draw(Y.shape[1], self.n_components, rng), filled)
            state = self._empty(drawn, state.learners.scaling.n_values)
        U, sums = self._encoded(state, filled, 1.0)
        start = self._bank(state).start(state.learners, X, U)
        buffer = WarmUp.empty().with_batch(X, Y).used()
        state = state._replace(learners=start.state._replace(warm_up=buffer), decoder=sums)
        some = _monitored_rows(Y, _MOST_FIRST_SCORES)
        scores = self._decode(start.left_out(_dense(U), some), self._beta(state))
        return self._counted(state, scores, _dense(Y[some]))._replace(drift=drift.empty())

    def _continue(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Monitor and learn a batch after the start."""
        if derived is None:
            linear, beta = self.bank.derive(state.learners), self._beta(state)
        else:
            linear, beta = derived.learners, derived.beta
        Z = self.bank.transform(linear, X)
        some = _monitored_rows(Y)
        # Slices of sparse rows are slow to make, also of all.
        monitored, labels = (Z, Y) if isinstance(some, slice) else (Z[some], Y[some])
        before, scores = state, self._decode(self.bank.predict_transformed(linear, monitored), beta)
        state = self._monitor(state, scores, _dense(labels))
        if beta is not None:
            Y = self._filled(linear, beta, Z, Y)
        if self.detects_drift and state.drift is not before.drift and drift.found(state.drift):
            state, Z = self._forgotten(state, X), None
        U, sums = self._encoded(state, Y, max(self.bank.factor(X.shape[0]), _LEAST_KEPT))
        learners = self._bank(state).learn(state.learners, X, U, Z)
        return self._within_memory(state._replace(learners=learners, decoder=sums))

    def _encoded(self, state: State, Y: AnyMatrix, keep: float) -> tuple[AnyMatrix, decoder.State]:
        """Compute the targets of the learners, and what the decoder learns of them."""
        if _is_uncompressed(state):
            return Y, state.decoder
        U = Y @ state.encoder.A
        return U, decoder.update(state.decoder, U, Y, keep)

    def _bank(self, state: State) -> RLS:
        """Return the bank: pseudo labels are any numbers."""
        return self.bank if _is_uncompressed(state) else replace(self.bank, binary=False)

    def _monitor(self, state: State, scores: FloatArray, labels: FloatArray) -> State:
        """Record how some rows are predicted before they are learned; few rows wait until there are more."""
        if len(state.waiting.scores):
            scores = np.concatenate([state.waiting.scores, scores])
            labels = np.concatenate([state.waiting.labels, labels])
        if len(scores) < _FEWEST_ROWS:
            return state._replace(waiting=Waiting(scores.astype(float), labels))
        none = np.zeros((0, scores.shape[1]))
        return self._counted(state, scores, labels)._replace(waiting=Waiting(none, none))

    def _counted(self, state: State, scores: FloatArray, labels: FloatArray) -> State:
        """Count the scores of some rows."""
        if self.aim == "macro_f1":
            by_label = thresholds.add_label_scores(state.by_label, thresholds.adjusted(scores), labels)
            state = state._replace(by_label=by_label)
        watched = drift.add(state.drift, drift.clipped_errors(scores, labels))
        return state._replace(monitor=thresholds.monitor(state.monitor, scores, labels), drift=watched)

    def _forgotten(self, state: State, X: AnyMatrix) -> State:
        """Forget what a drift has made wrong."""
        learners = self.bank.forget(self.bank.rescale(state.learners, X), _KEPT)
        sums = decoder.forget(state.decoder, _KEPT)
        return state._replace(learners=learners, decoder=sums, drift=drift.empty(), n_drifts=state.n_drifts + 1.0)

    def _filled(self, learners: rls.Derived, beta: FloatArray, Z: AnyMatrix, Y: AnyMatrix) -> AnyMatrix:
        """Put predictions where labels are missing."""
        missing = missing_labels.find(Y)
        if missing is None:
            return Y
        rows, labels = missing
        values, n_rows = [], max(1, _MOST_FILLED // Y.shape[1])
        # Some rows at a time: all scores of a batch may be more than there is room for.
        for start in range(0, Y.shape[0], n_rows):
            here = slice(*np.searchsorted(rows, [start, start + n_rows]))
            scores = self.bank.predict_transformed(learners, Z[start : start + n_rows]) @ beta
            values.append(scores[rows[here] - start, labels[here]])
        return missing_labels.fill(Y, missing, np.concatenate(values))

    def _fits(self, n_columns: int, n_labels: int) -> bool:
        """Tell whether the weights of so many columns and labels fit the budget, or compressing would gain nothing."""
        return n_labels <= self.n_components or n_columns * n_labels * 4.0 <= self.max_memory

    def _within_memory(self, state: State) -> State:
        """Compress the labels where their weights have outgrown the budget."""
        n_labels = len(state.encoder.A)
        if not _is_uncompressed(state) or self._fits(int(state.learners.in_use), n_labels):
            return state
        # Of what labels have in common nothing is known: the decoder starts from rows with one label each.
        rng = np.random.default_rng([self.bank.seed, n_labels])
        frequencies = np.maximum(state.monitor.present, 1e-3)
        one_each = scipy.sparse.diags_array(np.sqrt(frequencies), format="csr")
        drawn = encoder.turn(encoder.draw(n_labels, self.n_components, rng), one_each)
        scaled = np.sqrt(frequencies)[:, None] * drawn.A
        sums = decoder.update(decoder.init(n_labels, self.n_components), scaled, one_each)
        learners = self.bank.project(state.learners, drawn.A)._replace(warm_up=WarmUp.empty())
        return state._replace(encoder=drawn, learners=learners, decoder=sums)

    def derive(self, state: State) -> Derived:
        """Solve for the decoder, and read the thresholds off the histograms."""
        # Thresholds of the labels' own leave nothing to the offsets.
        share = 0 if self.aim == "macro_f1" else thresholds.best_share(state.monitor)
        rule = thresholds.make_rule(self.aim, state.monitor.histograms[share], state.by_label)
        offsets = (thresholds.SHARES[share] * state.monitor.offsets).astype(state.learners.weights.dtype)
        return Derived(self.bank.derive(state.learners), self._beta(state), offsets, rule)

    def _beta(self, state: State) -> FloatArray | None:
        if _is_uncompressed(state):
            return None
        return decoder.solve_labels(state.decoder, _DECODER_RIDGE).astype(state.learners.weights.dtype, copy=False)

    def _raw(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the labels' scores: about their probabilities."""
        return self._decode(self.bank.predict(derived.learners, X), derived.beta)

    def _decode(self, U: FloatArray, beta: FloatArray | None) -> FloatArray:
        return U if beta is None else U @ beta

    def _adjusted(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        return thresholds.adjusted(self._raw(derived, X), derived.offsets)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the adjusted scores; the common threshold is at zero."""
        return np.subtract(self._adjusted(derived, X), derived.rule.threshold, dtype=float)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim."""
        return thresholds.choose(derived.rule, self._adjusted(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        return thresholds.probabilities(derived.rule, self._adjusted(derived, X)).astype(float, copy=False)

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged exactly; `labelrace.models.joining` merges them well."""
        return "what they have learned depends on the order of the rows"

    def reordered(self, state: State, labels: IntArray, features: IntArray) -> State:
        """Put labels and features in another order."""
        targets = labels if _is_uncompressed(state) else None
        sums, by_label = decoder.fold(state.decoder), state.by_label
        if len(by_label.seen):
            by_label = LabelHistograms(by_label.seen[labels], by_label.present[labels])
        return state._replace(
            encoder=state.encoder._replace(A=state.encoder.A[labels]),
            learners=self.bank.reordered(state.learners, targets, features),
            decoder=sums._replace(cross=sums.cross[labels]),
            monitor=thresholds.reordered_monitor(state.monitor, labels),
            waiting=Waiting(*(part[:, labels] for part in state.waiting)),
            by_label=by_label,
        )

    def forgotten_all(self, state: State) -> State:
        """Make a state of zero weights, with the same columns, encoder, scaling and penalty."""
        learners = state.learners
        zeros = self.bank.with_zeros(learners)
        return self._empty(state.encoder, learners.scaling.n_values)._replace(learners=zeros)

    def decoded(self, state: State, U: FloatArray) -> FloatArray:
        """Compute the labels' scores, before any threshold, from what learners predict."""
        return self._decode(U, self._beta(state))

    def settled(self, state: State, scores: FloatArray, labels: FloatArray, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Count the scores of rows that were set aside, and then learn them."""
        state = self._counted(state, scores, labels)
        if missing_labels.find(Y) is not None:
            Y = np.where(np.isnan(labels), scores, labels)
        U, sums = self._encoded(state, Y, max(self.bank.factor(X.shape[0]), _LEAST_KEPT))
        learners = self._bank(state).learn(state.learners, X, U)
        return self._within_memory(state._replace(learners=learners, decoder=sums))

    def reset_features(self, state: State, columns: IntArray) -> State:
        """Forget what was learned of features whose columns stand for others now."""
        return state._replace(learners=self.bank.reset_features(state.learners, columns))

    def grow(self, state: State, old: Schema, new: Schema, rng: np.random.Generator) -> State:
        """Make the state with the features and labels of a wider schema; what is drawn for a label is its name's."""
        if new.n_features > old.n_features:
            state = self.grow_features(state, new.n_values)
        if new.n_labels > old.n_labels:
            state = self._with_labels(state, new.label_keys()[old.n_labels :], rng)
        return state

    def grow_labels(self, state: State, n_labels: int, rng: np.random.Generator) -> State:
        """Add labels that were absent so far."""
        return self._with_labels(state, np.arange(len(state.encoder.A), n_labels, dtype=np.uint64), rng)

    def _with_labels(self, state: State, keys: Array, rng: np.random.Generator) -> State:
        """Add labels that were absent so far; where labels are compressed, their keys settle what is drawn for them."""
        n_new, n_labels = len(keys), len(state.encoder.A) + len(keys)
        if self.aim == "macro_f1":
            state = state._replace(by_label=thresholds.grow_label_histograms(state.by_label, n_labels))
        if _is_uncompressed(state):
            rows = np.zeros((n_new, 0))
            state = state._replace(learners=self.bank.grow_components(state.learners, n_labels))
        else:
            rows = encoder.draw_rows(state.encoder, keys, rng)
        return state._replace(
            encoder=encoder.grow(state.encoder, rows),
            decoder=decoder.grow(state.decoder, n_new),
            monitor=thresholds.grow_monitor(state.monitor, n_labels),
            waiting=Waiting(*(np.pad(part, ((0, 0), (0, n_new))) for part in state.waiting)),
        )


def _no_encoder(n_labels: int) -> encoder.State:
    """Make the encoder of labels that are not compressed."""
    return encoder.given(np.zeros((n_labels, 0)), np.zeros(0))


def _is_uncompressed(state: State) -> bool:
    """Tell whether labels are their own targets: there are no pseudo labels then."""
    return state.encoder.A.shape[1] == 0


def _columns_in_use(X: AnyMatrix, state: State, bank: RLS) -> int:
    """Count the columns that the first rows need weights for."""
    if scaling.is_sparse(X):
        return len(np.unique(scipy.sparse.csr_array(X).indices))
    return columns.width(state.learners.scaling.n_values) + bank.n_random_features


def _monitored_rows(Y: AnyMatrix, most: int = _MOST_SCORES) -> slice | IntArray:
    """Choose the rows of a batch that are monitored: from all over it, as it may be sorted."""
    n, n_labels = Y.shape
    n_rows = min(n, max(_FEWEST_ROWS, most // max(n_labels, 1)))
    return slice(None) if n_rows == n else np.arange(n_rows) * n // n_rows


def _dense(Y: AnyMatrix) -> FloatArray:
    return np.asarray(columns.dense(Y), dtype=float)


class LabelRaceClassifier(OnlineClassifier):
    """Online multi-label classification: the default that needs no tuning.

    Linear learners that scale their features, choose their penalty and forget by themselves, one for each label, or
    for each of RACE's pseudo labels where there is no room for all; a threshold that keeps the number of predicted
    labels near that of true ones; probabilities that are what they say; and a detector that makes the model forget
    faster after a drift. New labels and features may appear, and labels may be unknown (NaN) or late. See
    docs/default.md.

    Parameters
    ----------
    max_memory : int, float or str, default="1GB"
        Memory for the weights, four bytes for each label and column in use: bytes, or a number with a unit such as
        "500MB". Above it labels are compressed.
    n_components : int, default=64
        Pseudo labels, where labels are compressed.
    half_life : float or None, default=8000.0
        Rows after which half of what was learned is forgotten; None for never.
    forgetting : float or None, default=None
        The same as a rate, if that is given: what is kept of the past after each row. 1 forgets nothing.
    detect_drift : bool, default=True
        Whether to forget nearly all when errors grow by more than chance.
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
    n_components_ : int or None
        Pseudo labels that the labels are compressed to; None where they are not compressed.
    encoder_ : (l, K) array
        The projection of labels to pseudo labels; the identity where they are not compressed.
    decoder_ : (K, l) array
        The decoder.
    offsets_ : (l,) array
        What is taken from each label's score, as it was predicted too often.
    threshold_ : float
        The adjusted score with as many above it as there were labels recently; `decision_function` has it
        subtracted. Rules that choose by row or by label (`optimise`) do not use it.
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
    race 0.73
    race-cls-adaptive 0.46
    """

    def __init__(
        self,
        *,
        max_memory: float | str = "1GB",
        n_components: int = 64,
        half_life: float | None = 8000.0,
        forgetting: float | None = None,
        detect_drift: bool = True,
        optimise: str = "cardinality",
        alpha: float | Literal["auto"] = "auto",
        n_random_features: int = 128,
        categorical_features: Any = None,
        label_names: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_memory = max_memory
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
        bank = RLS(alpha, self._rows_to_half(), self.n_random_features, seed, single=True, binary=True)
        memory = parameters.memory_size("max_memory", self.max_memory)
        return LabelRace(bank, self.optimise, bool(self.detect_drift), memory, int(self.n_components))

    def _merged(self, one: Fitted, other: Fitted, columns: IntArray | None) -> Fitted:
        # Not at the top: joining knows this method, whose states it joins.
        from labelrace.models import joining

        if one.algorithm != other.algorithm:
            raise MergeError("The models cannot be merged: their parameters differ.")
        return joining.merged(one, other, columns)

    def _rows_to_half(self) -> float | None:
        if self.forgetting is None:
            return None if self.half_life is None else self.half_life
        parameters.check_number("forgetting", self.forgetting, 0, 1, open_low=True)
        return None if self.forgetting == 1 else float(np.log(0.5) / np.log(self.forgetting))

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
        decisions = fitted.algorithm.scores(fitted.derived, X)[0]
        return explain(fitted.schema, learners, fitted.derived.beta, z, decisions, wanted, n_features)

    @property
    def n_components_(self) -> int | None:
        """Pseudo labels; None where labels are not compressed."""
        return self._checked_fitted().state.encoder.A.shape[1] or None

    @property
    def encoder_(self) -> FloatArray:
        """The projection of labels to pseudo labels, (l, K)."""
        A: FloatArray = self._checked_fitted().state.encoder.A
        return A if A.shape[1] else np.eye(len(A))

    @property
    def offsets_(self) -> FloatArray:
        """What is taken from each label's score."""
        return self._checked_fitted().derived.offsets

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
