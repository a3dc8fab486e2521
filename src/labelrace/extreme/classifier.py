"""Hashed RACE: online classification with labels by the million, in a given amount of memory.

RACE with an encoder that is not stored, a decoder whose coefficients are never computed for all labels, and a table
of corrections:

*Codes.* A label has two of ``k`` pseudo labels, and signs, by hashing (`labelrace.extreme.codes`). Linear learners
predict them (`labelrace.linear.rls`).

*Decoder.* Least squares from the codes that were predicted before a row was learned
(`labelrace.extreme.decoder`). The best labels of a row are found without scoring all of them.

*Residual table.* For ``R`` candidates of a row (`labelrace.extreme.search`), the best by the decoder, those in the
postings of its rarest features (`labelrace.extreme.postings`) and, when learning, its true labels, a hash table of
weights corrects the score (`labelrace.extreme.residual_table`).

*Label sets.* Thresholds and probabilities come from the candidates of monitored rows, as those of the default do from
all labels (`labelrace.decisions.rules`): labels that are not among the candidates are not predicted, and are counted.

*Missing labels* do not change the table. The codes and the decoder learn the decoder's score in their place.

Costs: a row with ``z`` non-zeros takes ``O(z (k + R))`` to learn, and memory is ``4 (k (m + l) + slots)`` bytes; no
array of rows times labels is ever made, but by `decision_function` and `predict_proba`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import missing_labels, threads
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import as_rows, some_rows
from labelrace.decisions import drift, fork, histogram, monitoring, rules
from labelrace.decisions.drift import DriftState
from labelrace.decisions.fork import Comparison
from labelrace.decisions.histogram import ScoreHistogram
from labelrace.decisions.rules import Rule
from labelrace.extreme import codes as hashed_codes
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import label_lists, merge, postings, residual_table, search
from labelrace.extreme.blocks import CompiledSparseBlock
from labelrace.extreme.search import Candidates, Rows, SearchIndex
from labelrace.extreme.sizes import sizes_for
from labelrace.learners.bank import BankAlgorithm
from labelrace.linear import rls
from labelrace.linear.explanation import DecoderCoefficients
from labelrace.linear.rls import RLS, RLSState
from labelrace.linear.rls_classifier import RLSClassifier
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.linear.warm_up import WarmUp, split_first_batch
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Largest number of rows of a chunk that are monitored, as scoring takes longer than learning, and the largest weight of
# each in the counts: with these values thresholds follow a model that learns, without much noise.
_MAX_MONITORED, _MAX_ROW_WEIGHT = 64, 2.0
# Rows of a chunk, whose codes are all predicted before any of them is learned.
_CHUNK_ROWS = 512
# Labels in the head of each list, where a chunk is learned; see `label_lists.build_lists`.
_N_HEAD_TO_LEARN = 512
# Smallest share of the past that is kept after a chunk.
_MIN_KEPT = 1e-9
# The axes of the postings.
_POSTINGS = f"<=m {postings.LABELS_PER_FEATURE}"


class Fork(NamedTuple):
    """What the second model has of its own while it is not known whether a drift lasts; fields as in `State`."""

    learners: Annotated[RLSState, "own m", "t=c", "w=l"]
    decoder: code_decoder.State
    table: Annotated[Array, "slots 1", "float", VersionedRows]
    postings: Annotated[IntArray, _POSTINGS, "<l+1", VersionedRows]
    counts: ScoreHistogram
    counts_left_out: ScoreHistogram
    n_missed: float
    last_f1: Annotated[FloatArray, "_r"]
    drift: DriftState
    comparison: Comparison


class State(NamedTuple):
    """Everything the model remembers."""

    learners: Annotated[RLSState, "own m", "t=c", "w=l"]  # the linear models of the pseudo labels
    decoder: code_decoder.State  # sums over predicted codes and labels
    table: Annotated[Array, "slots 1", "float", VersionedRows]  # the residual table
    # Labels of the last rows with each feature, where labels are many and data is sparse; otherwise empty.
    postings: Annotated[IntArray, _POSTINGS, "<l+1", VersionedRows]
    counts: ScoreHistogram  # scores of candidates of monitored rows
    # The same for probabilities: scores of the first rows are those of a decoder that has not learned the row.
    counts_left_out: ScoreHistogram
    # Number of true labels of monitored rows that were not among their candidates, forgotten like the counts.
    n_missed: float
    last_f1: Annotated[FloatArray, "_r"]  # example F1 of the rows that were monitored last
    drift: DriftState  # errors of recent batches
    n_alarms: float  # alarms so far
    n_drifts: float  # drifts confirmed so far
    fork: tuple[Fork, ...]  # after an alarm a second model; see `labelrace.decisions.fork`

    def why_malformed(self, size: Callable[[str], int]) -> str | None:
        """Return why a file's arrays cannot be used: kernels read slots without checking that there are any."""
        return None if len(self.table) else "a table without slots"


class Derived(NamedTuple):
    """What predicting needs."""

    learners: rls.Derived
    extra_precision: Any  # of the learners
    search_index: SearchIndex
    rule: Rule  # how label sets are chosen
    likely: Rule  # the same, with the probabilities


@dataclass(frozen=True)
class HashedRace(BankAlgorithm[State]):
    """The algorithm. It does not merge exactly; `labelrace.extreme.merge` merges well."""

    bank: RLS  # the learners of pseudo labels
    aim: str  # what label sets are chosen for; see `labelrace.decisions.rules`
    detects_drift: bool  # whether to forget when errors grow
    max_memory: float  # bytes for the state, by which it is made as large as it is
    n_components: int | None = None  # pseudo labels; None for as many as there is room for

    state_type = State
    learns_missing_labels = True
    unweighted = "the decoder and the residual table of compressed labels count every row once"

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing."""
        return self.empty(schema.kinds, schema.n_labels)

    def empty(self, kinds: FeatureKinds, n_labels: int, X: AnyMatrix | None = None) -> State:
        """Make the state of a model that has seen nothing, but is going to learn rows such as ``X``."""
        uses_postings = X is None or postings.are_useful(X, kinds, n_labels)
        sizes = sizes_for(self.max_memory, len(kinds), n_labels, self.n_components, uses_postings=uses_postings)
        return State(
            self.bank.init(kinds, sizes.n_components),
            code_decoder.init(n_labels, sizes.n_components),
            residual_table.init(sizes.n_slots),
            postings.init(),
            histogram.init(),
            histogram.init(),
            0.0,
            np.zeros(0),
            drift.init(),
            0.0,
            0.0,
            (),
        )

    def merge_models(self, one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join two models, half-way between the mean of their learners and the sum of what both know."""
        return merge.merge(one, other, columns)

    def why_not_shared(self, state: State) -> str | None:
        """Return why a model cannot be learned in shares: their tables cannot be added."""
        return "its labels are compressed, and what shares learn of these cannot be added well"

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch, after its predictions were monitored; rows without a known label are left out."""
        X, Y, _ = missing_labels.leave_out(X, Y)
        if Y.shape[0] == 0:
            return state
        Y = as_rows(Y).astype(float, copy=False)
        learners, X, Y, _ = self.bank.rows_to_learn(state.learners, X, Y)
        with threads.limited(X.shape[0]):
            if learners is not None:
                return self._learn_later_rows(state._replace(learners=learners), X, Y, derived)
            first, others = split_first_batch(X.shape[0])
            empty = self.empty(state.learners.scaling.kinds, Y.shape[1], X[first])
            started = self._learn_first_rows(empty, X[first], Y[first])
            return self._learn_later_rows(started, X[others], Y[others], None) if len(others) else started

    def _learn_first_rows(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        """Learn the first rows exactly; the decoder learns from their leave-one-out codes."""
        filled = missing_labels.without_zeros(missing_labels.fill_with_means(Y))
        k = len(state.decoder.total)
        codes = hashed_codes.encode(filled, k)
        learners, ridge = self.bank.fit_first_rows(state.learners, X, codes)
        U = ridge.leave_one_out_scores(codes)
        uses_postings = postings.are_useful(X, learners.scaling.kinds, Y.shape[1])
        state = state._replace(
            learners=learners._replace(warm_up=WarmUp.of(X, Y)),
            decoder=code_decoder.update(state.decoder, U, filled, uses_postings=uses_postings),
        )
        derived = self.derive(state)
        Z, learners = self.bank.transform(derived.learners, X), state.learners
        queries = code_decoder.queries(derived.search_index.decoder, U)
        index = derived.search_index._replace(table=search.NO_TABLE)
        found = search.find(index, Rows(queries, as_rows(Z), learners.extra_precision))
        lists = postings.update(state.postings, Z, learners.scaling.kinds, learners.extra_precision, Y)
        adjusted = Candidates(found.labels, rules.adjusted(found.scores))
        monitored = self._monitored(state._replace(postings=lists), adjusted, Y)
        return monitored._replace(counts_left_out=self._first_counts(found, queries, Y), drift=drift.init())

    def _first_counts(self, found: Candidates, queries: code_decoder.Queries, Y: AnyMatrix) -> ScoreHistogram:
        """Count the first rows for probabilities: the decoder, which has learned them, is far too sure of them.

        They count as much as the rows of a later chunk, so that they are not believed for longer.
        """
        labels = search.targets(found.labels, Y.indptr, Y.indices, Y.data)
        scores = rules.adjusted(code_decoder.leave_one_out_scores(found.scores, labels, queries))
        weight = min(1.0, _MAX_ROW_WEIGHT * _MAX_MONITORED / len(scores))
        return histogram.update(histogram.init(), scores, labels, weight)

    def _learn_later_rows(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None) -> State:
        """Learn a batch after the start, some rows at a time."""
        for first in range(0, X.shape[0], _CHUNK_ROWS):
            here = slice(first, first + _CHUNK_ROWS)
            whole = X.shape[0] <= _CHUNK_ROWS
            parts = (X, Y) if whole else (X[here], Y[here])
            state = fork.update(self, state, *parts, derived if first == 0 else None)
        return state

    def learn_monitored(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None, row_weights: Any = None
    ) -> State:
        """Monitor some rows, then learn them with one model: the table, the decoder, and the learners last.

        There are no ``row_weights``: see `unweighted`.
        """
        if derived is None:
            # Few rows are searched exactly here: short heads of lists are enough for them.
            linear, index = self.bank.derive(state.learners), self._search_index(state, n_head=_N_HEAD_TO_LEARN)
        else:
            linear, index = derived.learners, derived.search_index
        n = X.shape[0]
        Z = self.bank.transform(linear, X)
        gathered = self.bank.gather(state.learners, Z)
        predicted = self.bank.predict_transformed(linear, gathered.Z, gathered.weights)
        gathered, U = gathered._replace(scores=predicted), predicted.astype(float)
        extra_precision, columns = gathered.extra_precision, gathered.entry_columns()
        queries = code_decoder.queries(index.decoder, U)
        rows = Rows(queries, as_rows(Z), extra_precision, columns)
        n_monitored = min(n, _MAX_MONITORED)
        some = np.arange(n_monitored) * n // n_monitored
        in_pool = search.find_in_pool(index, rows)
        found = search.find(index, rows, some=some, in_pool=in_pool)
        state = self._monitored(state, found, some_rows(Y, some), min(n / n_monitored, _MAX_ROW_WEIGHT))
        precision = state.learners.alpha + state.learners.decay * extra_precision[:, 0]
        candidates = search.candidates_to_learn(index, rows, Y, in_pool)
        missing, n_known, filled = missing_labels.find(Y), None, Y
        if missing is not None:
            n_known = missing_labels.n_known_labels(Y, missing)
            decoder_scores = code_decoder.pair_scores(index.decoder, queries, missing.rows, missing.labels)
            filled = missing_labels.fill(Y, missing, np.clip(decoder_scores, 0.0, 1.0))
        filled = missing_labels.without_zeros(filled)
        table: Any = residual_table.learn(index.table, rows.Z, *candidates, precision, columns, n_known)
        keep = max(self.bank.forgetting_factor(n), _MIN_KEPT)
        codes = hashed_codes.encode(filled, U.shape[1])
        lists = postings.update(state.postings, Z, state.learners.scaling.kinds, extra_precision, Y, columns)
        uses_postings = len(lists) > 0
        return state._replace(
            postings=lists,
            learners=self.bank.learn(state.learners, X, codes, gathered=gathered, sparse_block=CompiledSparseBlock),
            decoder=code_decoder.update(state.decoder, U, filled, keep, queries.norms, uses_postings=uses_postings),
            table=table,
        )

    def find_candidates(self, derived: Derived, X: AnyMatrix, n_exact: int = search.N_EXACT) -> Candidates:
        """Find the candidates of rows and their scores, some rows at a time."""
        parts = []
        with threads.limited(X.shape[0]):
            for first in range(0, max(X.shape[0], 1), _CHUNK_ROWS):
                some = X if X.shape[0] <= _CHUNK_ROWS else X[first : first + _CHUNK_ROWS]
                Z, learners = self.bank.transform(derived.learners, some), derived.learners
                parts.append(search.predict(derived.search_index, learners, Z, derived.extra_precision, n_exact))
        return parts[0] if len(parts) == 1 else Candidates(*map(np.concatenate, zip(*parts, strict=True)))

    def _monitored(self, state: State, found: Candidates, Y: AnyMatrix, weight: float = 1.0) -> State:
        """Count the scores of rows that are not learned yet, and their true labels that are no candidates."""
        labels = search.targets(found.labels, Y.indptr, Y.indices, Y.data)
        n_present = np.diff(np.append(0, np.cumsum(Y.data == 1))[Y.indptr])
        n_missed = n_present - (labels == 1).sum(axis=1)
        keep = 0.5 ** (weight * len(labels) / histogram.HALF_LIFE)
        errors = drift.clipped_errors(found.scores, labels) + n_missed
        threshold, floor = rules.threshold_and_floor(state.counts, state.n_missed)
        chosen = rules.choose_above(found.scores, threshold, floor) & ~np.isnan(labels)
        return state._replace(
            last_f1=monitoring.example_f1(chosen, labels == 1, n_present),
            counts=histogram.update(state.counts, found.scores, labels, weight),
            counts_left_out=histogram.update(state.counts_left_out, found.scores, labels, weight),
            n_missed=float(state.n_missed * keep + weight * n_missed.sum()),
            drift=drift.update(state.drift, errors),
        )

    # --- Drift --------------------------------------------------------------------------------------------------------

    fork_type = Fork

    def forget(self, state: State, X: AnyMatrix) -> State:
        """Forget most of the past, and all of the table, after rows ``X`` have raised an alarm."""
        # The first rows are not learned again: they are part of what is forgotten.
        learners = self.bank.forget(self.bank.rescale(state.learners, X), drift.KEPT)._replace(warm_up=WarmUp.empty())
        return state._replace(
            learners=learners,
            decoder=code_decoder.forget(state.decoder, drift.KEPT),
            table=residual_table.init(len(state.table)),
            drift=drift.init(),
        )

    def labels_per_row(self, state: State) -> float:
        """Return how many labels recent rows had on average; infinite where there were none."""
        n_present = float(state.counts.present.sum()) + state.n_missed
        return n_present / state.counts.rows if state.counts.rows else np.inf

    def last_f1(self, state: State) -> FloatArray:
        """Return the example F1 of the rows that were monitored last."""
        return state.last_f1

    def detector(self, state: State) -> DriftState:
        """Return the detector of drift."""
        return state.drift

    def with_detector(self, state: State, detector: DriftState) -> State:
        """Return the state with another detector of drift."""
        return state._replace(drift=detector)

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def n_pseudo_labels(self, state: State) -> int:
        """Return the number of pseudo labels."""
        return len(state.decoder.total)

    def encoder(self, state: State) -> AnyMatrix:
        """Return the projection of labels to pseudo labels, (l, k)."""
        return hashed_codes.encoder_matrix(len(state.decoder.sums), len(state.decoder.total))

    def decoder_coefficients(self, derived: Derived, z: FloatArray, labels: IntArray) -> DecoderCoefficients:
        """Return how the scores of labels follow from pseudo labels and from the features of a row."""
        weights = residual_table.weights_of(derived.search_index.table, np.flatnonzero(z), labels).astype(float)
        return DecoderCoefficients(*code_decoder.coefficients(derived.search_index.decoder, labels), weights)

    def derive(self, state: State) -> Derived:
        """Solve for the decoder, list the labels for the search, and compute the thresholds from the histogram."""
        # Single labels have no thresholds of their own here: the common one with the best F1 is used instead.
        aim = "micro_f1" if self.aim == "macro_f1" else self.aim
        rule = rules.make_rule(aim, state.counts, None, state.n_missed)
        learners = self.bank.derive(state.learners)
        likely = replace(rule, counts=state.counts_left_out)
        return Derived(learners, state.learners.extra_precision, self._search_index(state), rule, likely)

    def _search_index(self, state: State, n_head: int = label_lists.N_HEAD) -> SearchIndex:
        """Solve for the decoder, and list the labels for the search."""
        decoder = code_decoder.derive(state.decoder)
        lists = label_lists.build_lists(decoder, state.decoder, n_head)
        return SearchIndex(decoder, lists, VersionedRows.of(state.postings), VersionedRows.of(state.table))

    def predict_sets(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Choose label sets by the rule for the aim, as a sparse array."""
        found = self.find_candidates(derived, X)
        chosen = rules.choose(derived.rule, found.scores)
        rows, columns = np.nonzero(chosen)
        labels = found.labels[rows, columns]
        n_labels = len(derived.search_index.decoder.sums)
        sets = scipy.sparse.coo_array((np.ones(len(rows), bool), (rows, labels)), shape=(X.shape[0], n_labels))
        return sets.tocsr()

    def predict_best(self, derived: Derived, X: AnyMatrix, k: int) -> tuple[IntArray, FloatArray]:
        """Find the ``k`` most likely labels of each row and their probabilities, best first."""
        found = self.find_candidates(derived, X, max(k, search.N_EXACT))
        return found.labels[:, :k], rules.probabilities(derived.likely, found.scores[:, :k])

    def _all_adjusted(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores of all labels; those of labels that are no candidates are lowered below these."""
        index, (_, _, weights, intercepts) = derived.search_index._replace(postings=postings.init()), derived.learners
        Z = as_rows(self.bank.transform(derived.learners, X))
        U = read_all((weights,), hashed_codes.predicted_codes, Z.indptr, Z.indices, Z.data, intercepts)
        rows = Rows(code_decoder.queries(index.decoder, U), Z, derived.extra_precision)
        found = search.find(index, rows)
        scores = code_decoder.all_scores(index.decoder, rows.queries).astype(float)
        np.put_along_axis(scores, found.labels, -np.inf, axis=1)
        ahead = scores.max(axis=1, keepdims=True) - found.scores.min(axis=1, keepdims=True)
        scores -= np.maximum(np.where(np.isfinite(ahead), ahead, 0.0), 0.0)
        np.put_along_axis(scores, found.labels, found.scores, axis=1)
        return scores

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the adjusted scores; the common threshold is at zero."""
        return self._all_adjusted(derived, X) - derived.rule.threshold

    decisions = scores
    """Label sets are chosen by the same scores."""

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Choose label sets by the rule for the aim, as an array of all labels."""
        sets: BoolArray = self.predict_sets(derived, X).toarray()
        return sets

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often candidates with such scores were present recently."""
        return rules.probabilities(derived.likely, self._all_adjusted(derived, X))

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features; labels that were absent so far have their codes already.

        Where the index of a known label or feature changes, the table, which hashes pairs of indices, is emptied.
        """
        taken: State = super().take(state, moves)
        labels = moves.source("l", len(state.decoder.sums))
        if _keeps_indices(labels) and _keeps_indices(moves.source("m", len(state.learners.scaling.kinds))):
            return taken
        # Of a fork, the model that predicts is kept: models move so only to be merged.
        lists = postings.renumbered(taken.postings, labels)
        return taken._replace(table=residual_table.init(len(state.table)), postings=lists, fork=())

    def reset_features(self, state: State, columns: IntArray) -> State:
        """Forget what the learners know of features whose columns were given to others; the table is not reset."""
        learners, lists = self.bank.reset_features(state.learners, columns), postings.reset(state.postings, columns)
        forks = tuple(
            each._replace(
                learners=self.bank.reset_features(each.learners, columns),
                postings=postings.reset(each.postings, columns),
            )
            for each in state.fork
        )
        return state._replace(learners=learners, postings=lists, fork=forks)

    def parts(self) -> Mapping[str, Any]:
        """Return what moves the learners, and those of a second model."""
        return {**super().parts(), "fork": fork.ForkPart(self.bank)}


def _keeps_indices(source: IntArray | None) -> bool:
    """Return whether entries of an axis stay where they were; new ones may come behind."""
    if source is None:
        return True
    known = source[source >= 0]
    return np.array_equal(known, np.arange(len(known))) and bool((source[: len(known)] >= 0).all())


class HashedRACEClassifier(RLSClassifier):
    """Online multi-label classification with very many labels, in a given amount of memory.

    Codes of labels by hashing, linear learners of the codes, a least-squares decoder whose best labels are found
    without scoring all of them, and a hash table that corrects their scores. What `LabelRaceClassifier` becomes where
    its labels do not fit its memory; use this one to have it from the start. See docs/guide/extreme.md.

    Parameters
    ----------
    max_memory : int, float or str, default="100MB"
        Memory for the state: bytes, or a number with a unit. The number of pseudo labels and the size of the table
        follow from it and from the features and labels of the first batch. Each later label or feature adds four bytes
        for each pseudo label.
    n_components : int or "auto", default="auto"
        Pseudo labels; "auto" for as many, from 16 to 128, as there is memory for; up to 256 with more than
        2,048 labels of rows whose features are common.
    optimise : str, default="cardinality"
        What label sets are to be good at, as for `LabelRaceClassifier`; "macro_f1" is "micro_f1" here.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random features.

    Attributes
    ----------
    n_components_ : int
        Pseudo labels.
    n_slots_ : int
        Slots of the table.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=3000, n_features=20, n_labels=30, seed=0)
    >>> model = labelrace.make_model("race-hashed", random_state=0)
    >>> print(f"{averages(prequential(model, stream))['example_f1']:.1f}")
    0.7
    """

    max_memory: float | str = "100MB"

    def _algorithm(self, seed: int) -> HashedRace:
        return HashedRace(*self._settings(self.half_life, seed, binary=False))

    @property
    def n_components_(self) -> int:
        """Pseudo labels."""
        return len(self.fitted.state.decoder.total)

    @property
    def n_slots_(self) -> int:
        """Slots of the table."""
        return len(self.fitted.state.table)
