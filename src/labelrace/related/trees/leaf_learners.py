"""What the leaves of a multi-label Hoeffding tree predict by: the most frequent label set, or naive Bayes.

Leaves that take label sets for classes are in `pruned_sets`.

A leaf learner is a frozen dataclass of pure functions. Its state is a NamedTuple of arrays of all leaves, stacked;
while a batch is learned each leaf has its own part, which children copy by sharing it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.sparse import dense
from labelrace.learners.naive_bayes.bank import NaiveBayes, NaiveBayesState
from labelrace.related import stacked_states, stored_rows
from labelrace.related.stacked_states import stack, unstack
from labelrace.related.stored_rows import StoredRows
from labelrace.related.trees.label_statistics import Leaf
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Log odds are clipped to this: probabilities beyond it hardly differ.
_MAX_LOG_ODDS = 30.0


class LeafLearner(ABC):
    """What a tree asks of its leaves' learners."""

    state_type: ClassVar[Any]

    @abstractmethod
    def init(self, kinds: FeatureKinds, n_labels: int, n_leaves: int) -> Any:
        """Make the state of leaves that have seen nothing."""

    @abstractmethod
    def unpack(self, state: Any, kinds: FeatureKinds, Y: AnyMatrix) -> tuple[Any, list[Any]]:
        """Return what leaves share while a batch is learned, and each leaf's part; ``kinds`` are then the tree's."""

    @abstractmethod
    def pack(self, shared: Any, parts: list[Any]) -> Any:
        """Make a state of the leaves' parts."""

    @abstractmethod
    def new_part(self, shared: Any) -> Any:
        """Make the part of a leaf that has seen nothing."""

    def child_part(self, part: Any, shared: Any) -> Any:
        """Return the part that a child begins with: by default its parent's."""
        return part

    @abstractmethod
    def update(self, part: Any, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, rows: IntArray, shared: Any) -> Any:
        """Learn rows of a leaf; ``leaf`` is what it had before, ``rows`` are their indices in the batch."""

    @abstractmethod
    def derive(self, state: Any, leaves: list[Any]) -> Any:
        """Compute what predicting needs."""

    def scores(self, derived: Any, leaf: int, X: AnyMatrix) -> FloatArray:
        """Compute the scores of rows that reached a leaf, by default the same for all; positive ones are predicted."""
        return np.tile(derived[leaf], (X.shape[0], 1))

    @abstractmethod
    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Turn scores into probabilities."""

    def votes(self, scores: FloatArray) -> FloatArray:
        """Turn scores into what a tree of an ensemble says, 0 to 1: by default probabilities."""
        return self.probabilities(scores)

    def take(self, state: Any, moves: Moves) -> Any:
        """Move labels and features, as the fields of the state declare; new ones were absent so far, or 0."""
        return growth.take(state, moves)


class MajorityState(NamedTuple):
    """Label sets, and how often each leaf saw them."""

    sets: Annotated[StoredRows, "_n=S", "_m=l"]  # the distinct label sets, in the order in which they came
    n_labels: Annotated[float, "=l"]  # number of labels
    seen: Annotated[FloatArray, "L S"]  # rows of each leaf with each label set
    leader: Annotated[IntArray, "L", "-1<S"]  # the most frequent set of each leaf, -1 if it has none
    began: Annotated[FloatArray, "L"]  # whether the leaf, or one that it comes from, has had a row


class BatchLabelSets(NamedTuple):
    """The distinct label sets, and which one each row of a batch has."""

    kinds: FeatureKinds
    sets: AnyMatrix
    of_row: IntArray


class SetLeaves(LeafLearner):
    """Leaves that predict a label set: a score is a label's share of rows, less one where the set does not have it."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Map scores, -1 to 1, to 0 to 1: labels of the set come before the others, both by their shares."""
        return (scores + 1.0) / 2.0

    def votes(self, scores: FloatArray) -> FloatArray:
        """Vote for the labels of the set."""
        return (scores > 0).astype(float)


@dataclass(frozen=True)
class MajorityLeaves(SetLeaves):
    """Predict the most frequent label set; another takes the lead when it becomes strictly more frequent."""

    # Whether the very first row is lost and a set leads from its second row on, as in MOA's default leaves, which are
    # MEKA's (`pruned_sets`).
    as_meka: bool = False

    state_type = MajorityState

    def init(self, kinds: FeatureKinds, n_labels: int, n_leaves: int) -> MajorityState:
        """Make leaves that have seen nothing."""
        none = stored_rows.store(scipy.sparse.csr_array((0, n_labels)))
        leader = np.full(n_leaves, -1)
        return MajorityState(none, float(n_labels), np.zeros((n_leaves, 0)), leader, np.zeros(n_leaves))

    def unpack(self, state: MajorityState, kinds: FeatureKinds, Y: AnyMatrix) -> tuple[BatchLabelSets, list[Any]]:
        """Find the label sets of a batch, new ones behind those that are known."""
        known = stored_rows.as_matrix(state.sets, Y.shape[1])
        both = scipy.sparse.vstack([known, Y], format="csr")
        both.sort_indices()
        number_of: dict[bytes, int] = {}
        of_row = np.array(
            [
                number_of.setdefault(both.indices[start:stop].tobytes(), len(number_of))
                for start, stop in zip(both.indptr[:-1], both.indptr[1:], strict=True)
            ],
            dtype=np.intp,
        )
        _, first = np.unique(of_row, return_index=True)
        shared = BatchLabelSets(kinds, both[first], of_row[known.shape[0] :])
        room = len(first) - state.seen.shape[1]
        leaves = zip(state.seen, state.leader, state.began, strict=True)
        return shared, [(np.pad(seen, (0, room)), int(leader), float(began)) for seen, leader, began in leaves]

    def pack(self, shared: BatchLabelSets, parts: list[Any]) -> MajorityState:
        """Stack the leaves."""
        seen, leader, began = zip(*parts, strict=True)
        return MajorityState(
            stored_rows.store(shared.sets),
            float(shared.sets.shape[1]),
            np.stack(seen),
            np.array(leader, dtype=np.intp),
            np.array(began),
        )

    def new_part(self, shared: BatchLabelSets) -> Any:
        """Make a leaf that has seen nothing."""
        return np.zeros(shared.sets.shape[0]), -1, 0.0

    def update(self, part: Any, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, rows: IntArray, shared: BatchLabelSets) -> Any:
        """Count label sets, row by row, as the lead depends on their order."""
        seen, leader, began = part
        counts = seen.tolist()
        for number in shared.of_row[rows[1:] if self.as_meka and not began else rows].tolist():
            counts[number] += 1.0
            if counts[number] > (counts[leader] if leader >= 0 else float(self.as_meka)):
                leader = number
        return np.array(counts), leader, 1.0

    def derive(self, state: MajorityState, leaves: list[Any]) -> FloatArray:
        """Compute each leaf's scores: a label's share of rows, less one where the leading set does not have it."""
        sets = dense(stored_rows.as_matrix(state.sets, int(state.n_labels)))
        share = (state.seen @ sets + 1.0) / (state.seen.sum(axis=1)[:, None] + 2.0)
        has = np.vstack([sets, np.zeros((1, sets.shape[1]))])[state.leader]
        return share + has - 1.0


class BayesState(NamedTuple):
    """Naive Bayes for each label in every leaf, and how it has done."""

    learners: Annotated[NaiveBayesState, "t=l", "stacked L"]  # sums, of all leaves, stacked
    # Rows for which the label's share, and naive Bayes, were right about each label before they learned it.
    right: Annotated[FloatArray, "L 2 l"]


class _Derived(NamedTuple):
    learners: list[Any]
    use_bayes: Any
    prior: FloatArray


@dataclass(frozen=True)
class NaiveBayesLeaves(LeafLearner):
    """Predict each label by naive Bayes, or by its share of rows where that has been right at least as often."""

    bank: ClassVar[NaiveBayes] = NaiveBayes()

    state_type = BayesState

    def init(self, kinds: FeatureKinds, n_labels: int, n_leaves: int) -> BayesState:
        """Make leaves that have seen nothing."""
        return stack([BayesState(self.bank.init(kinds, n_labels), np.zeros((2, n_labels)))] * n_leaves)

    def unpack(self, state: BayesState, kinds: FeatureKinds, Y: AnyMatrix) -> tuple[BayesState, list[Any]]:
        """Unpack each leaf, with room for new nominal values."""
        known = state.learners.kinds
        if kinds is not known:
            state = self.take(state, Moves(known.moves(kinds), kinds))
        return BayesState(self.bank.init(kinds, Y.shape[1]), np.zeros((2, Y.shape[1]))), unstack(state)

    def pack(self, shared: BayesState, parts: list[Any]) -> BayesState:
        """Stack the leaves."""
        state: BayesState = stack(parts)
        return state

    def new_part(self, shared: BayesState) -> BayesState:
        """Make a leaf that has seen nothing."""
        return shared

    def update(
        self, part: BayesState, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, rows: IntArray, shared: Any
    ) -> BayesState:
        """Judge both ways to predict by the rows, then learn them."""
        right = part.right
        if part.learners.rows[-1] > 0:
            truth = dense(Y) > 0
            by_share = np.broadcast_to(2.0 * leaf.mass > leaf.rows, truth.shape)
            by_bayes = self.bank.predict(self.bank.derive(part.learners), X) > 0
            right = right + np.stack([(predicted == truth).sum(axis=0) for predicted in (by_share, by_bayes)])
        return BayesState(self.bank.update(part.learners, X, Y), right)

    def derive(self, state: BayesState, leaves: list[Any]) -> _Derived:
        """Derive naive Bayes, and the log odds of the shares."""
        learners = [self.bank.derive(part.learners) for part in unstack(state)]
        prior = np.stack([np.log((leaf.mass + 1.0) / np.maximum(leaf.rows - leaf.mass + 1.0, 1.0)) for leaf in leaves])
        return _Derived(learners, state.right[:, 1] > state.right[:, 0], prior)

    def scores(self, derived: _Derived, leaf: int, X: AnyMatrix) -> FloatArray:
        """Compute log odds, each label's by what predicts it better."""
        use, prior = derived.use_bayes[leaf], derived.prior[leaf]
        if not use.any():
            return np.tile(prior, (X.shape[0], 1))
        odds = np.clip(self.bank.predict(derived.learners[leaf], X), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        scores: FloatArray = np.where(use, odds, prior)
        return scores

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Turn log odds into probabilities."""
        result: FloatArray = expit(scores)
        return result

    def take(self, state: BayesState, moves: Moves) -> BayesState:
        """Move labels and features; both ways to predict were right about new labels."""
        taken: BayesState = growth.take(state, moves, learners=partial(stacked_states.take, self.bank.take))
        return taken
