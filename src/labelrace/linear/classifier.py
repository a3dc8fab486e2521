"""The default model: every label a linear model that scales, chooses its penalty and forgets by itself.

*Labels are their own targets* as long as the weights, labels times columns in use, fit a stated budget of memory. Above
it they are compressed, and the model becomes that of `labelrace.extreme.classifier` (`labelrace.extreme.compress`).

*Learners* are diagonal recursive least squares (`labelrace.linear.rls`), with an exact start.

*Missing labels have no effect on the weights*: their error is zero. Rows without a known label are left out.

*Monitoring before learning.* Some rows of each batch are predicted before they are learned; of the rows of the exact
start, the leave-one-out scores are taken. They are counted (`labelrace.decisions.monitor`): thresholds, offsets and
probabilities come from that. Their errors go to a detector (`labelrace.decisions.drift`); when it finds drift, most of
the past is forgotten at once.

Costs: a batch of ``n`` rows with ``z`` non-zeros takes ``O(z l + n b l + z b)`` for ``l`` labels and blocks of ``b``
rows, the weights are ``O(m l)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import missing_labels, parameters
from labelrace.base import validation as inputs
from labelrace.base.algorithm import Shares
from labelrace.base.compiled import is_available
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.fitted import Fitted
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense_floats
from labelrace.decisions import drift, thresholds
from labelrace.decisions import monitor as monitoring
from labelrace.decisions.monitor import Watch
from labelrace.decisions.thresholds import Rule
from labelrace.extreme import classifier as hashed
from labelrace.extreme import codes as hashed_codes
from labelrace.extreme import compress as move_to_codes
from labelrace.extreme import merge as hashed_merge
from labelrace.extreme.classifier import HashedRace
from labelrace.extreme.row_search import RowSearch
from labelrace.learners import design as columns
from labelrace.learners.bank import BankAlgorithm
from labelrace.linear import merge, rls, scaling, single_rows
from labelrace.linear.explanation import Explanation, explain
from labelrace.linear.rls import RLS, RLSState
from labelrace.linear.warm_up import WarmUp, first_rows
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Maximum number of scores of the first rows that are monitored.
_MOST_FIRST_SCORES = 1_000_000
# Number of single-row batches after which loops are compiled for them: compiling takes as long as some thousand rows.
_COMPILED_FROM = 1000.0


class State(NamedTuple):
    """Everything the model remembers."""

    # The linear models of the labels; without any where labels are compressed.
    learners: Annotated[RLSState, "t=o", "w=l"]
    watch: Watch  # what rows have shown that were predicted before they were learned
    n_drifts: Annotated[float, ">=0"]  # drifts found so far
    # Rows that came alone. When there were many, loops are compiled for them; what is computed depends on the rows, not
    # on the process that it is computed in.
    single_rows: Annotated[float, ">=0"]
    recent: move_to_codes.Recent  # recent rows, where labels might have to be compressed soon
    # The model that this one has become, if labels are compressed; otherwise empty.
    compressed: Annotated[tuple[hashed.State, ...], "o|l"]


class Derived(NamedTuple):
    """What predicting needs; ``offsets`` are subtracted from the scores. For compressed labels use ``compressed``."""

    learners: rls.Derived
    offsets: FloatArray
    rule: Rule
    compressed: hashed.Derived | None


@dataclass(frozen=True)
class LabelRace(BankAlgorithm[State]):
    """The algorithm. It does not merge exactly; `labelrace.linear.merge` merges well."""

    bank: RLS  # the learners of labels
    aim: str  # what label sets are chosen for; see `labelrace.decisions.thresholds`
    detects_drift: bool  # whether to forget when errors grow
    max_memory: float  # bytes of weights up to which nothing is compressed
    n_components: int | None  # pseudo labels, where labels are compressed; None for as many as there is room for

    state_type = State
    learns_missing_labels = True
    shares: ClassVar[Shares | None] = merge

    @cached_property
    def in_codes(self) -> HashedRace:
        """The algorithm of compressed labels."""
        bank = replace(self.bank, binary=False)
        return HashedRace(bank, self.aim, self.detects_drift, self.max_memory, self.n_components)

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing; the first batch tells whether labels are compressed."""
        return self._empty(schema.n_values, schema.n_labels)

    def _empty(self, n_values: IntArray, n_labels: int) -> State:
        """Make the state of a model that has seen nothing."""
        watch = monitoring.begin(n_labels, by_label=self.aim == "macro_f1")
        return State(self.bank.init(n_values, n_labels), watch, 0.0, 0.0, move_to_codes.no_rows(), ())

    def _wrapped(self, compressed: hashed.State) -> State:
        """Make the state of a model whose labels are compressed."""
        return self._empty(compressed.learners.scaling.n_values, 0)._replace(compressed=(compressed,))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        if state.compressed:
            [before] = state.compressed
            learned = self.in_codes.update(before, X, Y, None if derived is None else derived.compressed)
            return state if learned is before else self._wrapped(learned)
        X, Y = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        learners, X, Y = self.bank.rows_to_learn(state.learners, X, Y)
        if learners is not None:
            return self._continue(state._replace(learners=learners), X, Y, derived)
        return self._begin(state.learners.scaling.n_values, X, Y)

    def _begin(self, n_values: IntArray, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn a batch from nothing; where its weights would not fit the budget, with compressed labels."""
        first, others = first_rows(X.shape[0])
        state = self._empty(n_values, Y.shape[1])
        if not self.fits(self.bank.n_columns(state.learners, X[first]), Y.shape[1]):
            return self._wrapped(self.in_codes.update(self.in_codes.empty(n_values, Y.shape[1]), X, Y))
        begun = self._start(state, X[first], Y[first])
        return self._continue(begun, X[others], Y[others], None) if len(others) else begun

    def _start(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn the first rows exactly, and count the scores that each has without itself."""
        filled = missing_labels.fill_with_means(Y)
        start = self.bank.start(state.learners, X, filled)
        state = state._replace(learners=start.state._replace(warm_up=WarmUp.of(X, Y)))
        some = monitoring.sample(Y.shape, _MOST_FIRST_SCORES)
        watch = monitoring.add_together(state.watch, start.left_out(dense_floats(filled), some), dense_floats(Y[some]))
        return state._replace(watch=watch._replace(drift=drift.empty()))

    def is_compiled(self, state: State) -> bool:
        """Tell whether loops are compiled for single rows, as there have been many."""
        if state.compressed:
            return self.in_codes.is_compiled(state.compressed[0])
        return state.single_rows >= _COMPILED_FROM and is_available()

    def _continue_row(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Do as `_continue` for one row of numbers, without making matrices of it; the past is forgotten after it."""
        compiled, labels = self.is_compiled(state), dense_floats(Y)
        scales = None if derived is None else derived.learners.scales
        scores, learned = single_rows.learn(self.bank, state.learners, X, labels[0], scales, compiled=compiled)
        watch, is_drift = self.monitored(state.watch, scores[None], labels, compiled=compiled)
        if is_drift:
            learned = self.forgotten(learned, X)
        counts = state.n_drifts + is_drift, state.single_rows + 1.0
        return self._within_memory(State(learned, watch, *counts, state.recent, ()), X)

    def learn_row(self, state: State, X: AnyMatrix, Y: FloatArray, largest: float) -> State | None:
        """Do as `update` for one sparse row, in one call of compiled loops that check, predict and learn it.

        None where there is more to do: where labels are compressed or might have to be, where the rows that wait are to
        be counted, where the row is not in order or has a label for the first time.
        """
        learners, watch = state.learners, state.watch
        is_settled = learners.rows and not learners.warm_up.n_used and not learners.scaling.length
        if state.compressed or not is_settled or scaling.has_become_dense(learners.scaling):
            return None
        if self._is_nearly_full(learners.in_use + len(X.indices), Y.shape[1]):
            return None
        reserved = monitoring.room_for_row(watch)
        if reserved is None:
            return None
        waiting, room = reserved
        after = single_rows.learn_unchecked(self.bank, learners, X, Y[0], largest, room, waiting.shape[1] - 1)
        if after is None:
            waiting.withdraw()
            return None
        watch = Watch(watch.monitor, waiting, watch.by_label, watch.drift)  # type: ignore[arg-type]
        return State(after, watch, state.n_drifts, state.single_rows + 1.0, state.recent, ())

    def monitored(
        self, watch: Watch, scores: FloatArray, labels: FloatArray, *, compiled: bool = False
    ) -> tuple[Watch, bool]:
        """Take in how rows were predicted before they are learned, and tell whether that shows a drift."""
        after = monitoring.add(watch, scores, labels, compiled=compiled)
        is_drift = self.detects_drift and after.drift is not watch.drift and drift.found(after.drift, compiled=compiled)
        return (after._replace(drift=drift.empty()) if is_drift else after), is_drift

    def forgotten(self, learners: RLSState, X: AnyMatrix) -> RLSState:
        """Forget what a drift has made wrong."""
        return self.bank.forget(self.bank.rescale(learners, X), drift.KEPT)

    def _continue(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Monitor and learn a batch after the start."""
        if Y.shape[0] == 1 and columns.all_numeric(state.learners.scaling.n_values):
            return self._continue_row(state, X, Y, derived)
        linear = self.bank.derive(state.learners) if derived is None else derived.learners
        gathered = self.bank.gather(state.learners, self.bank.transform(linear, X))
        some = monitoring.sample(Y.shape)
        # Slices of sparse rows are slow to make, also of all.
        monitored, labels = (gathered.Z, Y) if isinstance(some, slice) else (gathered.Z[some], Y[some])
        scores = self.bank.predict_transformed(linear, monitored, gathered.weights)
        watch, is_drift = self.monitored(state.watch, scores, dense_floats(labels))
        learners = self.forgotten(state.learners, X) if is_drift else state.learners
        learned = self.bank.learn(learners, X, Y, gathered=None if is_drift else gathered)
        return self._within_memory(state._replace(learners=learned, watch=watch, n_drifts=state.n_drifts + is_drift), X)

    def fits(self, n_columns: int, n_labels: int) -> bool:
        """Tell whether the weights of so many columns and labels fit the budget, or compressing would gain nothing."""
        return n_labels <= (self.n_components or 1) or n_columns * n_labels * 4.0 <= self.max_memory

    def _is_nearly_full(self, in_use: float, n_labels: int) -> bool:
        """Tell whether weights take most of the budget."""
        return in_use * n_labels * 4.0 > move_to_codes.NEARLY_FULL * self.max_memory

    def _within_memory(self, state: State, X: AnyMatrix) -> State:
        """Keep recent rows where the budget is nearly full; compress the labels where it is exceeded."""
        n_labels, in_use = len(state.learners.intercepts), int(state.learners.in_use)
        if not self._is_nearly_full(in_use, n_labels):
            return state
        recent = move_to_codes.with_rows(state.recent, X)
        if self.fits(in_use, n_labels):
            return state._replace(recent=recent)
        return self._compress(state._replace(recent=recent))

    def _compress(self, state: State) -> State:
        """Compress the labels, by what the model says of recent rows."""
        learners, X = state.learners, move_to_codes.as_matrix(state.recent, state.learners)
        return self._wrapped(move_to_codes.compress(self.in_codes, learners, state.watch, state.n_drifts, X))

    def derive(self, state: State) -> Derived:
        """Read the thresholds off the histograms."""
        if state.compressed:
            inner = self.in_codes.derive(state.compressed[0])
            return Derived(inner.learners, np.zeros(0), inner.rule, inner)
        offsets, rule = monitoring.decide(state.watch, self.aim)
        linear = self.bank.derive(state.learners)
        return Derived(linear, offsets.astype(state.learners.weights.dtype), rule, None)

    def _adjusted(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        return thresholds.adjusted(self.bank.predict(derived.learners, X), derived.offsets)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the adjusted scores; the common threshold is at zero."""
        if derived.compressed is not None:
            return self.in_codes.scores(derived.compressed, X)
        return np.subtract(self._adjusted(derived, X), derived.rule.threshold, dtype=float)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim."""
        if derived.compressed is not None:
            return self.in_codes.predict(derived.compressed, X)
        return thresholds.choose(derived.rule, self._adjusted(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        if derived.compressed is not None:
            return self.in_codes.probabilities(derived.compressed, X)
        return thresholds.probabilities(derived.rule, self._adjusted(derived, X)).astype(float, copy=False)

    def scores_and_probabilities(self, derived: Derived, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
        """Compute the raw scores once for both."""
        if derived.compressed is not None:
            return super().scores_and_probabilities(derived, X)
        adjusted = self._adjusted(derived, X)
        likely = thresholds.probabilities(derived.rule, adjusted).astype(float, copy=False)
        return np.subtract(adjusted, derived.rule.threshold, dtype=float), likely

    def predict_sets(self, derived: Derived, X: AnyMatrix) -> AnyMatrix | None:
        """Choose label sets without scores of all labels, where these are compressed."""
        return None if derived.compressed is None else self.in_codes.predict_sets(derived.compressed, X)

    def predict_best(self, derived: Derived, X: AnyMatrix, k: int) -> tuple[IntArray, FloatArray] | None:
        """Find the most likely labels without scores of all labels, where these are compressed."""
        return None if derived.compressed is None else self.in_codes.predict_best(derived.compressed, X, k)

    def row_search(self, derived: Derived) -> RowSearch | None:
        """Return what finds the best labels of one row, where labels are compressed."""
        return None if derived.compressed is None else self.in_codes.row_search(derived.compressed)

    def merge_models(self, one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join two models half-way between the mean of their weights and the sum of what both know."""
        if one.state.compressed and other.state.compressed:
            one, other = hashed_merge.align(one, other, columns)
            both = hashed_merge.merge_states(self.in_codes.bank, *one.state.compressed, *other.state.compressed)
            return one.replaced(one.schema, self._wrapped(both))
        return merge.merge(one, other, columns)

    def why_not_shared(self, state: State) -> str | None:
        """Return why a model cannot be learned in shares: only if its labels are compressed."""
        return self.in_codes.why_not_shared(state.compressed[0]) if state.compressed else None

    def reordered(self, state: State, labels: IntArray, features: IntArray) -> State:
        """Put labels and features in another order."""
        if state.compressed:
            return self._wrapped(self.in_codes.reordered(state.compressed[0], labels, features))
        learners = self.bank.reordered(state.learners, labels, features)
        return state._replace(
            learners=learners, watch=monitoring.reordered(state.watch, labels), recent=move_to_codes.no_rows()
        )

    def forgotten_all(self, state: State) -> State:
        """Make a state of zero weights, with the same columns, scaling and penalty."""
        learners = self.bank.with_zeros(state.learners)
        return self._empty(learners.scaling.n_values, len(learners.intercepts))._replace(learners=learners)

    def settled(self, state: State, scores: FloatArray, labels: FloatArray, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Count the scores of rows that were set aside, and then learn them."""
        watch = monitoring.add_together(state.watch, scores, labels)
        # Labels' offsets move by as many rows as they do in a batch of one pass.
        some = monitoring.sample(labels.shape)
        few = monitoring.half_at_most(monitoring.add_together(state.watch, scores[some], labels[some]))
        watch = watch._replace(monitor=few.monitor._replace(histograms=watch.monitor.histograms))
        return self._within_memory(state._replace(watch=watch, learners=self.bank.learn(state.learners, X, Y)), X)

    def reset_features(self, state: State, columns: IntArray) -> State:
        """Forget what was learned of features whose columns stand for others now."""
        if state.compressed:
            return self._wrapped(self.in_codes.reset_features(state.compressed[0], columns))
        return state._replace(learners=self.bank.reset_features(state.learners, columns))

    def grow_features(self, state: State, n_values: IntArray) -> State:
        """Add features that have been 0 in all rows."""
        if state.compressed:
            return self._wrapped(self.in_codes.grow_features(state.compressed[0], n_values))
        return super().grow_features(state, n_values)

    def grow_labels(self, state: State, n_labels: int) -> State:
        """Add labels that were absent so far."""
        if state.compressed:
            return self._wrapped(self.in_codes.grow_labels(state.compressed[0], n_labels))
        if not self.fits(int(state.learners.in_use / move_to_codes.OVERFULL), n_labels) and state.learners.rows:
            # Weights of the new labels, which are far too many, are never made.
            return self.grow_labels(self._compress(state), n_labels)
        return state._replace(
            learners=self.bank.grow_components(state.learners, n_labels),
            watch=monitoring.grow(state.watch, n_labels),
        )


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
        "500MB". Above it labels are compressed, to a state that fits it; see docs/extreme.md.
    n_components : int or "auto", default="auto"
        Pseudo labels, where labels are compressed; "auto" for as many as there is memory for.
    half_life : float or None, default=8000.0
        Rows after which half of what was learned is forgotten; None for never.
    forgetting : float or None, default=None
        The same as a rate, if that is given: what is kept of the past after each row. 1 forgets nothing.
    detect_drift : bool, default=True
        Whether to forget nearly all when errors grow by more than chance.
    optimise : str, default="cardinality"
        What label sets are to be good at: "cardinality" (as many labels as there are; good at all measures),
        "example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss" or "subset_accuracy". Compressed labels
        have no thresholds of their own: there "macro_f1" is "micro_f1".
    alpha : float or "auto", default="auto"
        Penalty of the learners, where a row has length one, of at least 1e-5. "auto" is the best of a grid on the
        first rows.
    n_random_features : int, default=128
        Random features of dense data: absolute values along random directions. There are none where the first rows are
        clearly better predicted without them. 0 for linear models.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the encoder and of the random features.

    Attributes
    ----------
    n_components_ : int or None
        Pseudo labels that the labels are compressed to; None where they are not compressed.
    encoder_ : (l, K) sparse array
        The projection of labels to pseudo labels; the identity where they are not compressed.
    offsets_ : (l,) array
        What is subtracted from each label's score, because it was predicted too often.
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

    max_memory: float | str = "1GB"
    n_components: int | Literal["auto"] = "auto"
    half_life: float | None = 8000.0
    forgetting: float | None = None
    detect_drift: bool = True
    optimise: str = "cardinality"
    alpha: float | Literal["auto"] = "auto"
    n_random_features: int = 128
    random_state: Any = None

    def _algorithm(self, seed: int) -> LabelRace:
        in_codes = hashed.algorithm_of(self, parameters.rows_to_half(self.half_life, self.forgetting), seed)
        bank = replace(in_codes.bank, binary=True)
        return LabelRace(bank, in_codes.aim, in_codes.detects_drift, in_codes.max_memory, in_codes.n_components)

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
        return explain(fitted, X, labels, n_features)

    @property
    def _compressed(self) -> hashed.State | None:
        """The state of compressed labels; None where they are not."""
        states = self._checked_fitted().state.compressed
        return states[0] if states else None

    @property
    def n_components_(self) -> int | None:
        """Pseudo labels; None where labels are not compressed."""
        state = self._compressed
        return None if state is None else len(state.decoder.total)

    @property
    def encoder_(self) -> AnyMatrix:
        """The projection of labels to pseudo labels, (l, K), sparse."""
        n_labels, n_components = self._checked_fitted().schema.n_labels, self.n_components_
        if n_components is None:
            return scipy.sparse.eye_array(n_labels, format="csr")
        return hashed_codes.matrix(n_labels, n_components)

    @property
    def offsets_(self) -> FloatArray:
        """What is subtracted from each label's score; compressed labels have no offsets."""
        offsets: FloatArray = self._checked_fitted().derived.offsets
        return offsets if self._compressed is None else np.zeros(self._fitted.schema.n_labels)

    @property
    def threshold_(self) -> float:
        """The adjusted score that `decision_function` has subtracted; see the class."""
        return self._checked_fitted().derived.rule.threshold

    @property
    def alpha_(self) -> float:
        """The penalty of the learners."""
        state = self._compressed
        return self._checked_fitted().state.learners.alpha if state is None else state.learners.alpha

    @property
    def n_drifts_(self) -> int:
        """Drifts found so far."""
        state = self._compressed
        return int(self._checked_fitted().state.n_drifts if state is None else state.n_drifts)
