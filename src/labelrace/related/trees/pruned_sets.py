"""Leaves of a multi-label Hoeffding tree that take label sets for classes: pruned sets, as MOA's leaves have them.

The very first row is lost. For its next 1000 rows a leaf predicts its most frequent label set, none until one has come
twice, and keeps the rows. Then the sets that came more than P times become classes, with the least P that leaves at
most ten of them. A Hoeffding tree learns the classes from the rows kept, in their order, and from every row that
follows; its leaves predict by naive Bayes, or by the most frequent class (`class_leaves`). A row's label set is that of
its class in this tree. Rows with other sets are left out, and so are, of those that follow, rows without labels, even
if no label is one of the classes.

So do MOA's leaves, which are MEKA's. Three things are otherwise. The tree of classes splits as the tree above it does,
where that of MOA's leaves is Weka's. Where P leaves one set, or none, as others came equally often, MEKA lowers it
again, whatever number of classes that gives; here one set stays the only class, and without any the most frequent set
stays what is predicted. Where classes are equally likely, the one whose set came first is predicted.

References
----------
Read, J., Bifet, A., Holmes, G. and Pfahringer, B.: Scalable and efficient multi-label classification for evolving data
streams. Machine Learning 88 (2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense, stacked
from labelrace.related import stored_rows
from labelrace.related.stored_rows import StoredRows
from labelrace.related.trees import label_statistics
from labelrace.related.trees.class_leaves import ClassLeavesState
from labelrace.related.trees.label_statistics import Leaf
from labelrace.related.trees.leaf_learners import BatchLabelSets, MajorityLeaves, MajorityState, SetLeaves
from labelrace.related.trees.tree import TreeArrays
from labelrace.typing import AnyMatrix, FloatArray, IntArray

if TYPE_CHECKING:
    from labelrace.related.trees.mlht import HoeffdingTree


class ClassTree(NamedTuple):
    """The tree of classes of one leaf, as `mlht.State` has it."""

    kinds: FeatureKinds
    nodes: Annotated[TreeArrays, "T=1"]
    leaves: Annotated[Leaf, "stacked L"]
    learners: ClassLeavesState


class PrunedSetsState(NamedTuple):
    """What leaves know of label sets, and their trees of classes."""

    majority: MajorityState  # the distinct label sets, and how often each leaf saw them
    # The rows that leaves keep until they have classes, one leaf's after the other's.
    X: Annotated[StoredRows, "_n=b", "_m=m"]
    sets: Annotated[IntArray, "b", "<S"]  # the label set of each row that is kept
    starts: Annotated[IntArray, "L+1", "starts b"]  # where each leaf's rows start
    # The label sets that are classes of each leaf, -1 where there are fewer.
    classes: Annotated[IntArray, "L C", "-1<S"]
    trees: Annotated[tuple[ClassTree, ...], "own m C"]  # the tree of classes of each leaf


class _Part(NamedTuple):
    """One leaf, while a batch is learned."""

    majority: Any
    X: AnyMatrix
    sets: IntArray
    classes: IntArray
    tree: ClassTree


class _Derived(NamedTuple):
    """Scores of the most frequent sets, shares of labels, sets as rows, classes, and what trees of classes derive."""

    majority: FloatArray
    share: FloatArray
    sets: FloatArray
    classes: IntArray
    trees: list[Any]


@dataclass(frozen=True)
class PrunedSetLeaves(SetLeaves):
    """Predict the most frequent label set at first, then one of few by a Hoeffding tree of classes."""

    trees: HoeffdingTree  # the trees of classes, whose leaves are `ClassLeaves`
    warm_up: int = 1000  # rows of a leaf before it has classes
    max_classes: int = 10  # largest number of classes

    counter: ClassVar[MajorityLeaves] = MajorityLeaves(as_meka=True)
    state_type = PrunedSetsState

    def init(self, kinds: FeatureKinds, n_labels: int, n_leaves: int) -> PrunedSetsState:
        """Make leaves that have seen nothing."""
        part = self._empty(None, kinds)
        return PrunedSetsState(
            self.counter.init(kinds, n_labels, n_leaves),
            stored_rows.store(part.X),
            part.sets,
            np.zeros(n_leaves + 1, dtype=np.intp),
            np.tile(part.classes, (n_leaves, 1)),
            (part.tree,) * n_leaves,
        )

    def _empty(self, majority: Any, kinds: FeatureKinds) -> _Part:
        start = self.trees.init(Schema(kinds, None, self.max_classes, None), np.random.default_rng(0))
        no_rows, no_sets = np.zeros((0, len(kinds))), np.zeros(0, dtype=np.intp)
        return _Part(majority, no_rows, no_sets, np.full(self.max_classes, -1), ClassTree(*start))

    def unpack(self, state: PrunedSetsState, kinds: FeatureKinds, Y: AnyMatrix) -> tuple[BatchLabelSets, list[_Part]]:
        """Find the label sets of a batch, and unpack each leaf."""
        shared, counted = self.counter.unpack(state.majority, kinds, Y)
        rows, bounds = stored_rows.as_matrix(state.X, len(kinds)), state.starts.tolist()
        parts = [
            _Part(each, rows[start:stop], state.sets[start:stop], classes, tree)
            for each, start, stop, classes, tree in zip(
                counted, bounds[:-1], bounds[1:], state.classes, state.trees, strict=True
            )
        ]
        return shared, parts

    def pack(self, shared: BatchLabelSets, parts: list[_Part]) -> PrunedSetsState:
        """Put the leaves together."""
        return PrunedSetsState(
            self.counter.pack(shared, [part.majority for part in parts]),
            stored_rows.store(stacked([part.X for part in parts])),
            np.concatenate([part.sets for part in parts]),
            np.cumsum([0, *(len(part.sets) for part in parts)]),
            np.stack([part.classes for part in parts]),
            tuple(_widened(part.tree, shared.kinds) for part in parts),
        )

    def new_part(self, shared: BatchLabelSets) -> _Part:
        """Make a leaf that has seen nothing."""
        return self._empty(self.counter.new_part(shared), shared.kinds)

    def update(self, part: _Part, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, rows: IntArray, shared: Any) -> _Part:
        """Count label sets; keep rows until there are classes, then let their tree learn."""
        _, _, began = part.majority
        waiting = max(0, self.warm_up - int(part.majority[0].sum()))
        part = part._replace(majority=self.counter.update(part.majority, leaf, X, Y, rows, shared))
        if not began:
            X, Y, rows = X[1:], Y[1:], rows[1:]
        sets = shared.of_row[rows]
        if waiting:
            some = slice(0, waiting)
            sets_kept = np.concatenate([part.sets, sets[some]])
            part = part._replace(X=stacked([part.X, X[some]]), sets=sets_kept)
            if len(sets_kept) < self.warm_up:
                return part
            part = self._teach(self._with_classes(part), part.X, sets_kept)
            part = part._replace(X=part.X[:0], sets=sets_kept[:0])
        has_labels = waiting + np.flatnonzero(np.diff(Y.indptr)[waiting:])
        return self._teach(part, X[has_labels], sets[has_labels])

    def _with_classes(self, part: _Part) -> _Part:
        """Choose the classes by the rows kept."""
        chosen = frequent(np.bincount(part.sets), self.max_classes)
        classes = np.full(self.max_classes, -1)
        classes[: len(chosen)] = chosen
        learners = part.tree.learners._replace(n_classes=float(len(chosen)))
        return part._replace(classes=classes, tree=part.tree._replace(learners=learners))

    def _teach(self, part: _Part, X: AnyMatrix, sets: IntArray) -> _Part:
        """Let the tree of classes learn the rows that have one."""
        class_of = np.full(max(part.classes.max(), sets.max(initial=0)) + 2, -1)
        # What is no class is written into the last entry, which no set has.
        class_of[part.classes] = np.where(part.classes >= 0, np.arange(self.max_classes), -1)
        classes = class_of[sets]
        has_class = np.flatnonzero(classes >= 0)
        if not len(has_class):
            return part
        ones = (np.ones(len(has_class)), classes[has_class], np.arange(len(has_class) + 1))
        Y = scipy.sparse.csr_array(ones, shape=(len(has_class), self.max_classes))
        after = self.trees.update(self.trees.state_type(*part.tree), X[has_class], Y)
        return part._replace(tree=ClassTree(*after))

    def derive(self, state: PrunedSetsState, leaves: list[Any]) -> _Derived:
        """Compute shares of labels, and derive the trees of leaves that have classes."""
        majority = state.majority
        sets = dense(stored_rows.as_matrix(majority.sets, int(majority.n_labels)))
        trees = [
            self.trees.derive(self.trees.state_type(*tree)) if (classes >= 0).any() else None
            for tree, classes in zip(state.trees, state.classes, strict=True)
        ]
        share = (majority.seen @ sets + 1.0) / (majority.seen.sum(axis=1)[:, None] + 2.0)
        return _Derived(self.counter.derive(majority, leaves), share, sets, state.classes, trees)

    def scores(self, derived: _Derived, leaf: int, X: AnyMatrix) -> FloatArray:
        """Compute a label's share of rows, less one where the row's label set does not have it."""
        tree = derived.trees[leaf]
        if tree is None:
            return self.counter.scores(derived.majority, leaf, X)
        sets = derived.classes[leaf][np.argmax(self.trees.scores(tree, X), axis=1)]
        scores: FloatArray = derived.share[leaf] + derived.sets[sets] - 1.0
        return scores

    def take(self, state: PrunedSetsState, moves: Moves) -> PrunedSetsState:
        """Move labels and features; no set has a new label."""
        trees = tuple(_take_tree(tree, moves) for tree in state.trees)
        taken: PrunedSetsState = growth.take(state, moves, trees=lambda *_: trees)
        return taken


def frequent(counts: IntArray, max_classes: int) -> IntArray:
    """Return what came more than P times, with the least P that leaves at most ``max_classes``.

    Examples
    --------
    >>> import numpy as np
    >>> frequent(np.array([3, 1, 2, 2]), 3).tolist(), frequent(np.array([3, 1, 2, 2]), 2).tolist()
    ([0, 2, 3], [0])
    """
    limit = 0 if (counts > 0).sum() <= max_classes else np.sort(counts)[-max_classes - 1]
    return np.flatnonzero(counts > limit)


def _take_tree(tree: ClassTree, moves: Moves) -> ClassTree:
    """Move the features of a tree of classes; its labels are the classes, which stay."""
    sources = {axis: source for axis, source in moves.sources.items() if axis != "l"}
    taken: ClassTree = growth.take(tree, Moves(sources, moves.kinds), leaves=label_statistics.take)
    return taken


def _widened(tree: ClassTree, kinds: FeatureKinds) -> ClassTree:
    """Give a tree of classes room for new nominal values."""
    return tree if tree.kinds is kinds else _take_tree(tree, Moves(tree.kinds.moves(kinds), kinds))
