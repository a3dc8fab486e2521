"""The default model: every label a linear model that scales, chooses its penalty and forgets by itself.

*Each label has a linear model of its own* as long as the weights, labels times columns in use, fit ``max_memory``.
Above it the model becomes that of compressed labels (`labelrace.extreme.classifier`), its `LabelRace.successor`.

*Learners* are diagonal recursive least squares (`labelrace.linear.rls`), with an exact start.

*Weights of rows* multiply their squared errors; what is monitored are rows, whatever their weights.

*Missing labels have no effect on the weights*: their error is zero. Rows without a known label are left out.

*Monitoring before learning.* Some rows of each batch are predicted before they are learned; of the rows of the exact
start, the leave-one-out scores are taken. They are counted (`labelrace.decisions.monitoring`): thresholds, offsets and
probabilities come from that. Their errors go to a detector (`labelrace.decisions.drift`); when they grow by much more
than chance, that is an alarm: the model goes on as two, one that remembers and one that has forgotten most of the
past, until it is known which is better (`labelrace.decisions.fork`).

Costs: a batch of ``n`` rows with ``z`` non-zeros takes ``O(z l + n b l + z b)`` for ``l`` labels and blocks of ``b``
rows, the weights are ``O(m l)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, overload

import numpy as np
import scipy.sparse

from labelrace.base import frames, missing_labels, parameters, threads, validation
from labelrace.base.algorithm import Algorithm, Shares
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.schema import Schema
from labelrace.base.sparse import batch_rows, dense_floats, with_last_rows
from labelrace.decisions import drift, fork, monitoring, rules
from labelrace.decisions.drift import DriftState
from labelrace.decisions.fork import Comparison
from labelrace.decisions.monitoring import Monitor, Ranking
from labelrace.decisions.rules import Rule
from labelrace.learners.bank import BankAlgorithm
from labelrace.linear import merge, rls, scaling
from labelrace.linear.explanation import Explanation, explain
from labelrace.linear.rls import RLS, RLSState
from labelrace.linear.rls_classifier import RLSClassifier
from labelrace.linear.warm_up import WarmUp, split_first_batch
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Largest number of scores of the first rows that are monitored.
_MAX_FIRST_SCORES = 1_000_000
# Recent rows are kept once the weights take this share of the budget, and at most this number; the decoder of the
# successor is fitted to what the model predicts for them.
_KEEP_ROWS_FROM, _MAX_RECENT_ROWS = 0.5, 1024
# New labels may exceed the budget by this factor: it is better to compress after they have been learned.
_MAX_OVERRUN = 1.25


class RecentRows(NamedTuple):
    """Recent rows, as CSR arrays; empty while there is room for more weights."""

    values: Annotated[FloatArray, "_z"]
    indices: Annotated[IntArray, "_z", "<m"]
    indptr: Annotated[IntArray, "_n+1", "starts _z"]

    @classmethod
    def empty(cls) -> RecentRows:
        """Make a buffer without rows."""
        return cls(np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp))

    def with_rows(self, X: AnyMatrix) -> RecentRows:
        """Append rows, and leave out the oldest."""
        return RecentRows(*with_last_rows(self, X, _MAX_RECENT_ROWS))

    def matrix(self, learners: RLSState) -> AnyMatrix:
        """Make a matrix of the rows, sparse if the data is."""
        rows = scipy.sparse.csr_array(tuple(self), (len(self.indptr) - 1, len(learners.scaling.kinds)))
        return rows.toarray() if learners.scaling.is_dense else rows


class Fork(NamedTuple):
    """What the second model has of its own while it is not known whether a drift lasts."""

    learners: RLSState
    monitor: Monitor
    comparison: Comparison


class State(NamedTuple):
    """Everything the model remembers."""

    learners: Annotated[RLSState, "t=l", "w=l"]  # the linear models of the labels
    monitor: Annotated[Monitor, "o=l"]  # what rows have shown that were predicted before they were learned
    n_alarms: float  # alarms so far
    n_drifts: float  # drifts confirmed so far
    recent_rows: RecentRows  # recent rows, where labels might have to be compressed soon
    fork: Annotated[tuple[Fork, ...], "t=l", "w=l", "o=l"]  # after an alarm a second model; see `decisions.fork`


class Derived(NamedTuple):
    """What predicting needs: label sets come from scores less ``offsets`` by the rule, all else from the ranking."""

    learners: rls.Derived
    offsets: FloatArray
    rule: Rule
    ranking: Ranking


@dataclass(frozen=True)
class LabelRace(BankAlgorithm[State]):
    """The algorithm. It does not merge exactly; `labelrace.linear.merge` merges well."""

    bank: RLS  # the learners of labels
    aim: str  # what label sets are chosen for; see `labelrace.decisions.rules`
    detects_drift: bool  # whether to forget when errors grow
    max_memory: float  # bytes of weights up to which nothing is compressed
    n_components: int | None  # pseudo labels, where labels are compressed; None for as many as there is room for

    state_type = State
    learns_missing_labels = True
    unweighted = None
    outgrown = "labels are compressed in one of them only; give both a max_memory that all labels fit, or neither"
    shares: ClassVar[Shares | None] = merge

    # --- Learning -----------------------------------------------------------------------------------------------------

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing."""
        return self._empty(schema.kinds, schema.n_labels)

    def _empty(self, kinds: FeatureKinds, n_labels: int) -> State:
        monitor = monitoring.init(n_labels, by_label=self.aim == "macro_f1")
        return State(self.bank.init(kinds, n_labels), monitor, 0.0, 0.0, RecentRows.empty(), ())

    def update(
        self,
        state: State,
        X: AnyMatrix,
        Y: AnyMatrix,
        derived: Derived | None = None,
        row_weights: FloatArray | None = None,
    ) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        X, Y, row_weights = missing_labels.leave_out(X, Y, row_weights)
        if Y.shape[0] == 0:
            return state
        learners, X, Y, row_weights = self.bank.rows_to_learn(state.learners, X, Y, row_weights)
        with threads.limited(X.shape[0]):
            if learners is None:
                return self._learn_first_batch(state.learners.scaling.kinds, X, Y, row_weights)
            return fork.update(self, state._replace(learners=learners), X, Y, derived, row_weights)

    def _learn_first_batch(
        self, kinds: FeatureKinds, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None
    ) -> State:
        """Learn the first batch; where its weights would not fit the budget, only keep it for the successor."""
        first, others = split_first_batch(X.shape[0])
        of_first = batch_rows(first, X, Y, row_weights)
        state = self._empty(kinds, Y.shape[1])
        if not self._fits(self.bank.n_columns(state.learners, of_first[0]), Y.shape[1]):
            return state._replace(learners=state.learners._replace(warm_up=WarmUp.empty().with_batch(X, Y)))
        started = self._learn_first_rows(state, *of_first)
        if not len(others):
            return started
        X, Y, row_weights = batch_rows(others, X, Y, row_weights)
        return fork.update(self, started, X, Y, None, row_weights)

    def _learn_first_rows(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None
    ) -> State:
        """Learn the first rows exactly, and monitor their leave-one-out scores."""
        filled = missing_labels.fill_with_means(Y)
        learners, ridge = self.bank.fit_first_rows(state.learners, X, filled, row_weights)
        some = monitoring.sample(Y.shape, _MAX_FIRST_SCORES)
        scores, labels = ridge.leave_one_out_scores(dense_floats(filled), some), dense_floats(Y)
        monitor = monitoring.count_rows(monitoring.count_labels(state.monitor, labels), scores, labels[some])
        monitor = monitor._replace(drift=drift.init())
        return state._replace(learners=learners._replace(warm_up=WarmUp.of(X, Y, row_weights)), monitor=monitor)

    def learn_monitored(
        self,
        state: State,
        X: AnyMatrix,
        Y: AnyMatrix,
        derived: Derived | None = None,
        row_weights: FloatArray | None = None,
    ) -> State:
        """Learn rows with one model, after the predictions of some of them were monitored."""
        learners, labels = state.learners, dense_floats(Y)
        scales = None if derived is None else derived.learners.scales
        gathered = self.bank.gather(learners, scaling.transform(learners.scaling, X, scales))
        some = monitoring.sample(labels.shape)
        are_all = isinstance(some, slice)
        # Slicing sparse rows is slow, even a slice of all rows.
        scores = np.asarray((gathered.Z if are_all else gathered.Z[some]) @ gathered.weights)
        scores += learners.intercepts.astype(scores.dtype)
        monitor = monitoring.count_labels(monitoring.observe(state.monitor, scores, labels[some]), Y)
        if are_all:
            gathered = gathered._replace(scores=scores)
        learners = self.bank.learn(learners, X, labels, row_weights, gathered=gathered)
        return self._with_recent_rows(state._replace(learners=learners, monitor=monitor), X)

    # --- Drift --------------------------------------------------------------------------------------------------------

    fork_type = Fork

    def forget(self, state: State, X: AnyMatrix) -> State:
        """Forget most of the past, after rows ``X`` have raised an alarm; the detector starts over."""
        learners = self.bank.forget(self.bank.rescale(state.learners, X), drift.KEPT)
        # The first rows are not learned again: they are part of what is forgotten.
        learners = learners._replace(warm_up=WarmUp.empty())
        return self.with_detector(state._replace(learners=learners), drift.init())

    def labels_per_row(self, state: State) -> float:
        """Return how many labels recent rows had on average; infinite where there were none."""
        histograms = state.monitor.counts.histograms
        return float(histograms.present[0].sum()) / histograms.rows if histograms.rows else np.inf

    def last_f1(self, state: State) -> FloatArray:
        """Return the example F1 of the rows that were monitored last."""
        return state.monitor.counts.last_f1

    def detector(self, state: State) -> DriftState:
        """Return the detector of drift."""
        return state.monitor.drift

    def with_detector(self, state: State, detector: DriftState) -> State:
        """Return the state with another detector of drift."""
        return state._replace(monitor=state.monitor._replace(drift=detector))

    def learn_held_out(self, state: State, scores: FloatArray, X: AnyMatrix, labels: FloatArray) -> State:
        """Count the scores of rows that were held out while models were merged, and then learn them."""
        monitor = monitoring.count_rows(state.monitor, scores, labels)
        # Labels' offsets move by as many rows as they do in a batch of one pass.
        some = monitoring.sample(labels.shape)
        few = monitoring.half_at_most(monitoring.count_rows(state.monitor, scores[some], labels[some]))
        monitor = monitor._replace(counts=few.counts._replace(histograms=monitor.counts.histograms))
        monitor = monitoring.count_labels(monitor, labels)
        with threads.limited(X.shape[0]):
            learners = self.bank.learn(state.learners, X, labels)
        return self._with_recent_rows(state._replace(monitor=monitor, learners=learners), X)

    def with_zero_weights(self, state: State) -> State:
        """Make a state of zero weights, with the same columns, scaling and penalty."""
        learners = self.bank.with_zero_weights(state.learners)
        return self._empty(learners.scaling.kinds, len(learners.intercepts))._replace(learners=learners)

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def derive(self, state: State) -> Derived:
        """Compute the thresholds from the histograms."""
        (offsets, rule), ranking = monitoring.decide(state.monitor, self.aim), monitoring.rank(state.monitor)
        dtype = state.learners.weights.dtype
        ranking = ranking._replace(factors=ranking.factors.astype(dtype))
        return Derived(self.bank.derive(state.learners), offsets.astype(dtype), rule, ranking)

    def _adjusted(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores that label sets are chosen by."""
        return rules.adjusted(self.bank.predict(derived.learners, X), derived.offsets)

    def _ranked(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores that labels are ranked by."""
        return rules.adjusted(self.bank.predict(derived.learners, X) * derived.ranking.factors)

    def decisions(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores that label sets are chosen by; the common threshold is at zero."""
        return np.subtract(self._adjusted(derived, X), derived.rule.threshold, dtype=float)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores that labels are ranked by; as many are above zero as there were labels recently."""
        return np.subtract(self._ranked(derived, X), derived.ranking.rule.threshold, dtype=float)

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim."""
        return rules.choose(derived.rule, self._adjusted(derived, X))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        return rules.probabilities(derived.ranking.rule, self._ranked(derived, X))

    def scores_and_probabilities(self, derived: Derived, X: AnyMatrix) -> tuple[FloatArray, FloatArray]:
        """Compute the raw scores once for both."""
        ranked, rule = self._ranked(derived, X), derived.ranking.rule
        return np.subtract(ranked, rule.threshold, dtype=float), rules.probabilities(rule, ranked)

    # --- Memory -------------------------------------------------------------------------------------------------------

    @cached_property
    def successor(self) -> Algorithm[Any]:
        """The algorithm of compressed labels, for more weights than fit the budget."""
        # Imported here: few need it, and it imports this module.
        from labelrace.extreme.classifier import HashedRace

        bank = replace(self.bank, binary=False)
        return HashedRace(bank, self.aim, self.detects_drift, self.max_memory, self.n_components)

    def successor_state(self, state: State, schema: Schema) -> Any | None:
        """Compress the labels where the weights of those of a schema do not fit the budget; otherwise None."""
        learners, n_labels = state.learners, schema.n_labels
        if not learners.rows:
            kept = learners.warm_up
            if len(kept.indptr) == 1:
                return None
            X, Y = kept.rows(scipy.sparse.csr_array((0, schema.n_features)), n_labels)
            return self.successor.update(self.successor.empty(learners.scaling.kinds, n_labels), X, Y)  # type: ignore[attr-defined]
        is_growing = n_labels > len(learners.intercepts)
        if self._fits(learners.n_used_columns / _MAX_OVERRUN if is_growing else learners.n_used_columns, n_labels):
            return None
        from labelrace.extreme.compress import compress

        return compress(self.successor, state)  # type: ignore[arg-type]

    def _fits(self, n_columns: float, n_labels: int) -> bool:
        """Return whether the weights of columns and labels fit the budget, or compressing would gain nothing."""
        return n_labels <= (self.n_components or 1) or int(n_columns) * n_labels * 4.0 <= self.max_memory

    def _with_recent_rows(self, state: State, X: AnyMatrix) -> State:
        """Keep recent rows where weights take most of the budget."""
        n_weights = int(state.learners.n_used_columns) * len(state.learners.intercepts)
        if n_weights * 4.0 <= _KEEP_ROWS_FROM * self.max_memory:
            return state
        return state._replace(recent_rows=state.recent_rows.with_rows(X))

    # --- Merging ------------------------------------------------------------------------------------------------------

    def merge_models(self, one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join two models half-way between the mean of their weights and the sum of what both know."""
        return merge.merge(one, other, columns)

    def why_not_shared(self, state: State) -> str | None:
        """Return why a model cannot be learned in shares: it can."""
        return None

    # --- Labels and features ------------------------------------------------------------------------------------------

    def reset_features(self, state: State, columns: IntArray) -> State:
        """Forget what was learned of features whose columns were given to others."""
        forks = tuple(each._replace(learners=self.bank.reset_features(each.learners, columns)) for each in state.fork)
        return state._replace(learners=self.bank.reset_features(state.learners, columns), fork=forks)

    def parts(self) -> Mapping[str, Any]:
        """Return what moves the learners, and those of a second model."""
        return {**super().parts(), "fork": fork.ForkPart(self.bank)}

    # --- What the classifier shows ------------------------------------------------------------------------------------

    def n_pseudo_labels(self, state: State) -> None:
        """Return the number of pseudo labels: labels are not compressed."""
        return

    def encoder(self, state: State) -> AnyMatrix:
        """Return the projection of labels to pseudo labels: labels are their own."""
        return scipy.sparse.eye_array(len(state.learners.intercepts), format="csr")

    def decoder_coefficients(self, derived: Derived, z: FloatArray, labels: IntArray) -> None:
        """Return how scores follow from pseudo labels (`explanation.DecoderCoefficients`): they are the same."""
        return


class LabelRaceClassifier(RLSClassifier):
    """Online multi-label classification: the default that needs no tuning.

    Linear learners that scale their features, choose their penalty and forget by themselves, one for each label, or
    for each of RACE's pseudo labels where there is no room for all; a threshold that keeps the number of predicted
    labels near that of true ones; probabilities that are what they say; and a detector after whose alarm a model that
    forgets is tried beside the one that remembers. New labels and features may appear, and labels may be unknown (NaN)
    or late. See docs/guide/default.md.

    Parameters
    ----------
    max_memory : int, float or str, default="1GB"
        Memory for the weights, four bytes for each label and column in use: bytes, or a number with a unit such as
        "500MB". Above it labels are compressed: codes, decoder and table fit it, counters add some 0.1 MB, which shows
        below 10 MB; see docs/guide/extreme.md.
    n_components : int or "auto", default="auto"
        Pseudo labels, where labels are compressed; "auto" for as many as there is memory for.
    forgetting : float or None, default=None
        `half_life` as a rate, if that is given: what is kept of the past after each row. 1 forgets nothing.
    optimise : str, default="cardinality"
        What label sets are to be good at: "cardinality" (as many labels as there are; good at all measures),
        "example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss" or "subset_accuracy". Compressed labels
        have no thresholds of their own: there "macro_f1" is "micro_f1".
    random_state : int, Generator, RandomState or None, default=None
        Seed of the encoder and of the random features.

    Attributes
    ----------
    n_components_ : int or None
        Pseudo labels that the labels are compressed to; None where they are not compressed.
    encoder_ : (l, K) sparse array
        The projection of labels to pseudo labels; the identity where they are not compressed.
    offsets_ : (l,) array
        What is subtracted from each label's score to choose label sets, because it was predicted too often.
    threshold_ : float
        The adjusted score, less offsets, with as many above it as there were labels recently. Rules that choose by row
        or by label (`optimise`) do not use it. `decision_function` and `predict_proba` are for ranking: they use no
        offsets, and are above 0 for about as many labels.
    alpha_ : float
        The penalty.

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
    forgetting: float | None = None

    def _algorithm(self, seed: int) -> LabelRace:
        half_life = parameters.rows_to_half(self.half_life, self.forgetting)
        return LabelRace(*self._settings(half_life, seed, binary=True))

    @overload
    def explain(self, x: Any, labels: Any = None, n_features: int = 10) -> list[Explanation]: ...
    @overload
    def explain(self, x: Any, labels: Any = None, n_features: int = 10, *, as_frame: bool) -> Any: ...
    def explain(self, x: Any, labels: Any = None, n_features: int = 10, *, as_frame: bool = False) -> Any:
        """Explain the scores of a row's labels.

        Parameters
        ----------
        x : array-like, sparse matrix, data frame or dict of one row
        labels : sequence of label indices or names, or None
            The labels to explain; None for those predicted.
        n_features : int
            Number of features to list for each label: those that contributed most.
        as_frame : bool, default=False
            Whether to return a data frame with the columns label, feature and contribution, of the library of ``x``.

        Returns
        -------
        list of Explanation, or data frame
            In the order of the labels. The contributions in each add up to its score.

        Examples
        --------
        >>> import labelrace
        >>> rows = [{"sun": 1.0}, {"rain": 1.0}, {"sun": 1.0, "wind": 1.0}, {"rain": 1.0, "wind": 1.0}] * 50
        >>> y = [{"dry"}, {"wet"}, {"dry", "kites"}, {"wet", "kites"}] * 50
        >>> model = labelrace.LabelRaceClassifier(random_state=0).fit(rows, y)
        >>> [why] = model.explain({"rain": 1.0, "wind": 1.0}, ["kites"], n_features=1)
        >>> why.features[0][0]
        'wind'
        """
        parameters.check_whole("n_features", n_features, 1)
        fitted, X = self._rows(validation.one_row(x))
        if X.shape[0] != 1:
            raise ValueError(f"x must be one row, got {X.shape[0]}.")
        explained = explain(fitted, X, labels, n_features)
        return frames.explanation_frame({one.label: one.features for one in explained}, x) if as_frame else explained

    @property
    def n_components_(self) -> int | None:
        """Pseudo labels; None where labels are not compressed."""
        fitted = self.fitted
        n_components: int | None = fitted.algorithm.n_pseudo_labels(fitted.state)
        return n_components

    @property
    def encoder_(self) -> AnyMatrix:
        """The projection of labels to pseudo labels, (l, K), sparse."""
        fitted = self.fitted
        return fitted.algorithm.encoder(fitted.state)

    @property
    def offsets_(self) -> FloatArray:
        """What is subtracted from each label's score; compressed labels have no offsets."""
        fitted = self.fitted
        offsets: FloatArray = getattr(fitted.derived, "offsets", np.zeros(fitted.schema.n_labels))
        return offsets

    @property
    def threshold_(self) -> float:
        """The adjusted score above which labels are predicted; see the class."""
        return self.fitted.derived.rule.threshold

    @property
    def alpha_(self) -> float:
        """The penalty of the learners."""
        return self.fitted.state.learners.alpha
