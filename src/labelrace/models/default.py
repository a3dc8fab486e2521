"""The default model: every label a linear model that scales, chooses its penalty and forgets by itself.

*Labels are their own targets* as long as the weights, labels times columns in use, fit a stated budget of memory. Above
it they are compressed as in the paper: a random encoder, learners of the pseudo labels, and a least-squares decoder.
The paper's ``H = T A + b`` with ``T = 2Y - 1`` is ``2 Y A`` plus a constant; learners with an intercept need no
constant, so they learn ``U = Y A``, and the decoder finds ``Y ≈ U β`` from ``Σ UᵀU`` and ``Σ UᵀY``. The random ``A`` is
turned, by one product with the first batch, towards what labels have in common.

*Learners* are diagonal recursive least squares (`labelrace.learners.rls`), with an exact start.

*Missing labels teach nothing*: their error is zero. Rows without a known label are left out.

*Monitoring before learning.* Some rows of each batch are predicted before they are learned; of the rows of the exact
start, the leave-one-out scores are taken. They are counted (`labelrace.core.monitoring`): thresholds, offsets and
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
from labelrace.core import decoder, drift, encoder, missing_labels, monitoring, thresholds
from labelrace.core.monitoring import Watch
from labelrace.core.schema import Schema
from labelrace.core.thresholds import Rule
from labelrace.exceptions import MergeError
from labelrace.learners import columns, rls
from labelrace.learners.bank import BankAlgorithm
from labelrace.learners.rls import RLS, RLSState
from labelrace.learners.warm_up import WarmUp, first_rows
from labelrace.models import inputs
from labelrace.models.base import OnlineClassifier
from labelrace.models.explanation import Explanation, explain
from labelrace.models.fitted import Fitted
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["LabelRace", "LabelRaceClassifier", "State"]

# Scores of the start that are monitored at the most.
_MOST_FIRST_SCORES = 1_000_000
# Share of the past that is kept when there was a drift.
_KEPT = 0.02
# Share of the past that a batch leaves in the decoder at the least, however long the batch and short the half-life.
_LEAST_KEPT = 1e-30
# Penalty of the decoder, relative to the mean square of a pseudo label.
_DECODER_RIDGE = 1e-3


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
    watch : Watch
        What rows have shown that were predicted before they were learned.
    n_drifts : float
        Drifts found so far.
    """

    encoder: encoder.State
    learners: RLSState
    decoder: decoder.State
    watch: Watch
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
            monitoring.begin(n_labels, by_label=self.aim == "macro_f1"),
            0.0,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        X, Y = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        if self.bank.must_begin_anew(state.learners):
            state = self._empty(_no_encoder(Y.shape[1]), state.learners.scaling.n_values)
        learners = state.learners
        if learners.rows == 0:
            first, others = first_rows(X.shape[0])
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
        if _is_uncompressed(state) and not self._fits(self.bank.n_columns(state.learners, X), Y.shape[1]):
            rng = np.random.default_rng([self.bank.seed, Y.shape[1]])
            drawn = encoder.turn(encoder.draw(Y.shape[1], self.n_components, rng), filled)
            state = self._empty(drawn, state.learners.scaling.n_values)
        U, sums = self._encoded(state, filled, 1.0)
        start = self._bank(state).start(state.learners, X, U)
        buffer = WarmUp.empty().with_batch(X, Y).used()
        state = state._replace(learners=start.state._replace(warm_up=buffer), decoder=sums)
        some = monitoring.sample(Y.shape, _MOST_FIRST_SCORES)
        scores = self._decode(start.left_out(_dense(U), some), self._beta(state))
        watch = monitoring.add_together(state.watch, scores, _dense(Y[some]))
        return state._replace(watch=watch._replace(drift=drift.empty()))

    def _continue_row(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Do as `_continue` for one row of numbers whose labels are not compressed, without making matrices of it."""
        row = self.bank.row(state.learners, X, None if derived is None else derived.learners.scales)
        before, labels = state.watch, _dense(Y)
        state = state._replace(watch=monitoring.add(before, row.scores[None], labels))
        if self._found_drift(before, state.watch):
            state = self._forgotten(state, X)
        return self._within_memory(state._replace(learners=self.bank.learn_row(state.learners, X, row, labels[0])))

    def _found_drift(self, before: Watch, after: Watch) -> bool:
        return self.detects_drift and after.drift is not before.drift and drift.found(after.drift)

    def _continue(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Monitor and learn a batch after the start."""
        if X.shape[0] == 1 and _is_uncompressed(state) and columns.all_numeric(state.learners.scaling.n_values):
            return self._continue_row(state, X, Y, derived)
        if derived is None:
            linear, beta = self.bank.derive(state.learners), self._beta(state)
        else:
            linear, beta = derived.learners, derived.beta
        Z = self.bank.transform(linear, X)
        some = monitoring.sample(Y.shape)
        # Slices of sparse rows are slow to make, also of all.
        monitored, labels = (Z, Y) if isinstance(some, slice) else (Z[some], Y[some])
        before, scores = state.watch, self._decode(self.bank.predict_transformed(linear, monitored), beta)
        state = state._replace(watch=monitoring.add(before, scores, _dense(labels)))
        if beta is not None:
            Y = missing_labels.fill_with_scores(Y, lambda rows: self.bank.predict_transformed(linear, Z[rows]) @ beta)
        if self._found_drift(before, state.watch):
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

    def _forgotten(self, state: State, X: AnyMatrix) -> State:
        """Forget what a drift has made wrong."""
        learners = self.bank.forget(self.bank.rescale(state.learners, X), _KEPT)
        sums = decoder.forget(state.decoder, _KEPT)
        watch = state.watch._replace(drift=drift.empty())
        return state._replace(learners=learners, decoder=sums, watch=watch, n_drifts=state.n_drifts + 1.0)

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
        frequencies = np.maximum(state.watch.monitor.present, 1e-3)
        one_each = scipy.sparse.diags_array(np.sqrt(frequencies), format="csr")
        drawn = encoder.turn(encoder.draw(n_labels, self.n_components, rng), one_each)
        scaled = np.sqrt(frequencies)[:, None] * drawn.A
        sums = decoder.update(decoder.init(n_labels, self.n_components), scaled, one_each)
        learners = self.bank.project(state.learners, drawn.A)._replace(warm_up=WarmUp.empty())
        return state._replace(encoder=drawn, learners=learners, decoder=sums)

    def derive(self, state: State) -> Derived:
        """Solve for the decoder, and read the thresholds off the histograms."""
        offsets, rule = monitoring.decide(state.watch, self.aim)
        linear = self.bank.derive(state.learners)
        return Derived(linear, self._beta(state), offsets.astype(state.learners.weights.dtype), rule)

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

    def scores_and_probabilities(self, derived: Derived, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
        """Compute the raw scores once for both."""
        adjusted = self._adjusted(derived, X)
        likely = thresholds.probabilities(derived.rule, adjusted).astype(float, copy=False)
        return np.subtract(adjusted, derived.rule.threshold, dtype=float), likely

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged exactly; `labelrace.models.joining` merges them well."""
        return "what they have learned depends on the order of the rows"

    def reordered(self, state: State, labels: IntArray, features: IntArray) -> State:
        """Put labels and features in another order."""
        targets = labels if _is_uncompressed(state) else None
        sums = decoder.fold(state.decoder)
        return state._replace(
            encoder=state.encoder._replace(A=state.encoder.A[labels]),
            learners=self.bank.reordered(state.learners, targets, features),
            decoder=sums._replace(cross=sums.cross[labels]),
            watch=monitoring.reordered(state.watch, labels),
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
        state = state._replace(watch=monitoring.add_together(state.watch, scores, labels))
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
        if _is_uncompressed(state):
            rows = np.zeros((n_new, 0))
            state = state._replace(learners=self.bank.grow_components(state.learners, n_labels))
        else:
            rows = encoder.draw_rows(state.encoder, keys, rng)
        return state._replace(
            encoder=encoder.grow(state.encoder, rows),
            decoder=decoder.grow(state.decoder, n_new),
            watch=monitoring.grow(state.watch, n_labels),
        )


def _no_encoder(n_labels: int) -> encoder.State:
    """Make the encoder of labels that are not compressed."""
    return encoder.given(np.zeros((n_labels, 0)), np.zeros(0))


def _is_uncompressed(state: State) -> bool:
    """Tell whether labels are their own targets: there are no pseudo labels then."""
    return state.encoder.A.shape[1] == 0


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
