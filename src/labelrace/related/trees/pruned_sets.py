"""Leaves of a multi-label Hoeffding tree that take label sets for classes: pruned sets.

For its first 1000 rows a leaf predicts its most frequent label set, and keeps the rows. Then the sets that came more
than P times become classes, with the least P that leaves ten of them at the most; rows with other sets are left out.
A Hoeffding tree learns the classes from the rows kept, in their order, and from every row that follows. A row's label
set is that of its class in this tree, which at each leaf is the one with the most rows. Where no set is left as a
class, as all sets came equally often, the most frequent set stays what is predicted.

MOA's leaves, which are MEKA's, do so. That rows with pruned sets are left out, and that the tree of classes predicts
the most frequent class, are choices.

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

from labelrace.base.linalg import stacked
from labelrace.base.schema import Schema
from labelrace.learners import design as columns
from labelrace.related import stored_rows
from labelrace.related.stored_rows import StoredRows
from labelrace.related.trees import label_statistics
from labelrace.related.trees.label_statistics import Leaf
from labelrace.related.trees.leaf_learners import LabelSets, LeafLearner, Majority, MajorityLeaves, SetLeaves
from labelrace.related.trees.tree import Shape
from labelrace.typing import AnyMatrix, FloatArray, IntArray

if TYPE_CHECKING:
    from labelrace.related.trees.mlht import HoeffdingTree


class Tree(NamedTuple):
    """The tree of classes of one leaf, as `mlht.State` has it, without learners."""

    n_values: Annotated[IntArray, "m", "values"]
    shape: Annotated[Shape, "T=1"]
    leaves: Annotated[Leaf, "stacked L"]


class PrunedSets(NamedTuple):
    """What leaves know of label sets, and their trees of classes."""

    majority: Majority  # the distinct label sets, and how often each leaf saw them
    # The rows that leaves keep until they have classes, one leaf's after the other's.
    X: Annotated[StoredRows, "_n=b", "_m=m"]
    sets: Annotated[IntArray, "b", "<S"]  # the label set of each row that is kept
    starts: Annotated[IntArray, "L+1", "starts b"]  # where each leaf's rows start
    # The label sets that are classes of each leaf, -1 where there are fewer.
    classes: Annotated[IntArray, "L C", "-1<S"]
    trees: Annotated[tuple[Tree, ...], "each L", "own m C"]  # the tree of classes of each leaf


class _Part(NamedTuple):
    """One leaf, while a batch is learned."""

    majority: Any
    X: AnyMatrix
    sets: IntArray
    classes: IntArray
    tree: Tree


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
    most: int = 10  # classes at the most

    counter: ClassVar[MajorityLeaves] = MajorityLeaves()
    state_type = PrunedSets

    def init(self, n_values: IntArray, n_labels: int, n_leaves: int) -> PrunedSets:
        """Make leaves that have seen nothing."""
        part = self._empty(None, n_values)
        return PrunedSets(
            self.counter.init(n_values, n_labels, n_leaves),
            stored_rows.store(part.X),
            part.sets,
            np.zeros(n_leaves + 1, dtype=np.intp),
            np.tile(part.classes, (n_leaves, 1)),
            (part.tree,) * n_leaves,
        )

    def _empty(self, majority: Any, n_values: IntArray) -> _Part:
        begun = self.trees.init(Schema(n_values, None, self.most, None), np.random.default_rng(0))
        nothing = Tree(begun.n_values, begun.shape, begun.leaves)
        return _Part(
            majority, np.zeros((0, len(n_values))), np.zeros(0, dtype=np.intp), np.full(self.most, -1), nothing
        )

    def unpacked(self, state: PrunedSets, n_values: IntArray, Y: AnyMatrix) -> tuple[LabelSets, list[_Part]]:
        """Find the label sets of a batch, and take the leaves apart."""
        shared, counted = self.counter.unpacked(state.majority, n_values, Y)
        kept, bounds = stored_rows.as_matrix(state.X, len(n_values)), state.starts.tolist()
        parts = [
            _Part(each, kept[start:stop], state.sets[start:stop], classes, made)
            for each, start, stop, classes, made in zip(
                counted, bounds[:-1], bounds[1:], state.classes, state.trees, strict=True
            )
        ]
        return shared, parts

    def packed(self, shared: LabelSets, parts: list[_Part]) -> PrunedSets:
        """Put the leaves together."""
        return PrunedSets(
            self.counter.packed(shared, [part.majority for part in parts]),
            stored_rows.store(stacked([part.X for part in parts])),
            np.concatenate([part.sets for part in parts]),
            np.cumsum([0, *(len(part.sets) for part in parts)]),
            np.stack([part.classes for part in parts]),
            tuple(_widened(part.tree, shared.n_values) for part in parts),
        )

    def fresh(self, shared: LabelSets) -> _Part:
        """Make a leaf that has seen nothing."""
        return self._empty(self.counter.fresh(shared), shared.n_values)

    def learned(self, part: _Part, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, places: IntArray, shared: Any) -> _Part:
        """Count label sets; keep rows until there are classes, then let their tree learn."""
        waiting, sets = max(0, self.warm_up - int(part.majority[0].sum())), shared.of_row[places]
        part = part._replace(majority=self.counter.learned(part.majority, leaf, X, Y, places, shared))
        if waiting:
            some = slice(0, waiting)
            sets_kept = np.concatenate([part.sets, sets[some]])
            part = part._replace(X=stacked([part.X, X[some]]), sets=sets_kept)
            if len(sets_kept) < self.warm_up:
                return part
            classes = np.full(self.most, -1)
            chosen = frequent(np.bincount(sets_kept), self.most)
            classes[: len(chosen)] = chosen
            part = self._taught(part._replace(classes=classes), part.X, sets_kept)
            part = part._replace(X=part.X[:0], sets=sets_kept[:0])
        return self._taught(part, X[waiting:], sets[waiting:])

    def _taught(self, part: _Part, X: AnyMatrix, sets: IntArray) -> _Part:
        """Let the tree of classes learn the rows that have one."""
        class_of = np.full(max(part.classes.max(), sets.max(initial=0)) + 2, -1)
        # What is no class is written into the last place, which no set has.
        class_of[part.classes] = np.where(part.classes >= 0, np.arange(self.most), -1)
        found = class_of[sets]
        has_class = np.flatnonzero(found >= 0)
        if not len(has_class):
            return part
        ones = (np.ones(len(has_class)), found[has_class], np.arange(len(has_class) + 1))
        Y = scipy.sparse.csr_array(ones, shape=(len(has_class), self.most))
        after = self.trees.update(self._state(part.tree), X[has_class], Y)
        return part._replace(tree=Tree(after.n_values, after.shape, after.leaves))

    def _state(self, made: Tree) -> Any:
        return self.trees.state_type(*made, Classes(float(len(made.leaves.rows))))

    def derive(self, state: PrunedSets, leaves: list[Any]) -> _Derived:
        """Compute shares of labels, and derive the trees of leaves that have classes."""
        majority = state.majority
        sets = columns.dense(stored_rows.as_matrix(majority.sets, int(majority.n_labels)))
        trees = [
            self.trees.derive(self._state(made)) if (classes >= 0).any() else None
            for made, classes in zip(state.trees, state.classes, strict=True)
        ]
        share = (majority.seen @ sets + 1.0) / (majority.seen.sum(axis=1)[:, None] + 2.0)
        return _Derived(self.counter.derive(majority, leaves), share, sets, state.classes, trees)

    def scores(self, derived: _Derived, leaf: int, X: AnyMatrix) -> FloatArray:
        """Compute a label's share of rows, less one where the row's label set does not have it."""
        made = derived.trees[leaf]
        if made is None:
            return self.counter.scores(derived.majority, leaf, X)
        sets = derived.classes[leaf][np.argmax(self.trees.scores(made, X), axis=1)]
        scores: FloatArray = derived.share[leaf] + derived.sets[sets] - 1.0
        return scores

    def grow_labels(self, state: PrunedSets, n_labels: int) -> PrunedSets:
        """Add labels that no set has."""
        return state._replace(majority=self.counter.grow_labels(state.majority, n_labels))

    def grow_features(self, state: PrunedSets, n_values: IntArray) -> PrunedSets:
        """Add features that were 0 so far."""
        trees = (
            Tree(n_values, made.shape, label_statistics.grow_leaves(made.leaves, n_values)) for made in state.trees
        )
        return state._replace(trees=tuple(trees))


def frequent(counts: IntArray, most: int) -> IntArray:
    """Return what came more than P times, with the least P that leaves so many at the most.

    Examples
    --------
    >>> import numpy as np
    >>> frequent(np.array([3, 1, 2, 2]), 3).tolist(), frequent(np.array([3, 1, 2, 2]), 2).tolist()
    ([0, 2, 3], [0])
    """
    limit = 0 if (counts > 0).sum() <= most else np.sort(counts)[-most - 1]
    return np.flatnonzero(counts > limit)


def _widened(made: Tree, n_values: IntArray) -> Tree:
    """Give a tree of classes room for new nominal values."""
    return Tree(n_values, made.shape, label_statistics.widen_leaves(made.leaves, made.n_values, n_values))


class Classes(NamedTuple):
    """How many leaves there are."""

    n_leaves: float


@dataclass(frozen=True)
class ClassLeaves(LeafLearner):
    """Predict the class with the most rows at a leaf, those that it began with included; there is nothing to learn."""

    state_type = Classes

    def init(self, n_values: IntArray, n_labels: int, n_leaves: int) -> Classes:
        """Make leaves."""
        return Classes(float(n_leaves))

    def unpacked(self, state: Classes, n_values: IntArray, Y: AnyMatrix) -> tuple[None, list[Any]]:
        """Return nothing for each leaf."""
        return None, [None] * int(state.n_leaves)

    def packed(self, shared: None, parts: list[Any]) -> Classes:
        """Count the leaves."""
        return Classes(float(len(parts)))

    def fresh(self, shared: None) -> None:
        """Make a leaf."""

    def learned(self, part: Any, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, places: IntArray, shared: Any) -> None:
        """Leave it to the tree, which counts classes."""

    def derive(self, state: Classes, leaves: list[Any]) -> FloatArray:
        """Compute each leaf's shares of classes."""
        mass = np.stack([leaf.mass for leaf in leaves])
        shares: FloatArray = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1.0)
        return shares

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the shares."""
        return scores
