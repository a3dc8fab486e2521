"""Multi-label Hoeffding tree (MLHT): a tree that splits a leaf when its rows have shown which feature is best.

A leaf keeps statistics of every feature over each label's rows (`label_statistics`). Once enough has come
since the last attempt, the gain of the best feature is compared with that of the second best: if it is larger by more
than Hoeffding's bound, or the bound is small, the leaf splits. Children start with the label counts that the split
expects, and with a copy of their parent's leaf learner.

Two forms are offered. *As in MOA*, to the split: a leaf's weight is its number of label occurrences, and entropy is
that of their distribution (or MOA's intended multi-label entropy of the same shares); leaves predict their most
frequent label set or, as by MOA's default, one of few by a tree of their own (`pruned_sets`). *By rows*, the default:
entropy is that of each label's share of rows, as Clare and King define it, which takes a count of rows and statistics
of all rows; gain is a share of the leaf's entropy; leaves hold naive Bayes for each label, which predicts where it has
been right more often than the label's share.

Rows between two attempts are learned at once. A row costs ``m · |y|`` (by rows also ``m · l`` for naive Bayes), an
attempt ``10 · m · l`` normal probabilities, predicting the depth of the tree and the leaf learner. The state is
``leaves · m · l`` numbers, four times.

References
----------
Read, J., Bifet, A., Holmes, G. and Pfahringer, B.: Scalable and efficient multi-label classification for evolving data
streams. Machine Learning 88 (2012).
Clare, A. and King, R.: Knowledge discovery in multi-label phenotype data. PKDD (2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.special import entr

from labelrace.base import parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.learners import design
from labelrace.related.stacked_states import stack, unstack
from labelrace.related.trees import label_statistics, tree
from labelrace.related.trees.class_leaves import ClassLeaves
from labelrace.related.trees.label_statistics import Leaf
from labelrace.related.trees.leaf_learners import LeafLearner, MajorityLeaves, NaiveBayesLeaves
from labelrace.related.trees.pruned_sets import PrunedSetLeaves
from labelrace.related.trees.tree import Split, TreeArrays, TreeBuilder
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# What children begin with is no whole number, and sums of it are rounded.
_ROUNDING = 1e-9


class State(NamedTuple):
    """The tree, or trees."""

    kinds: FeatureKinds
    nodes: Annotated[TreeArrays, "T=@n_trees"]  # the nodes
    leaves: Annotated[Leaf, "stacked L", "c=l+@by_rows"]
    learners: Any  # the state of what leaves predict by


class Derived(NamedTuple):
    """The nodes, and what each leaf's learner derives."""

    nodes: TreeArrays
    learners: Any


@dataclass(frozen=True)
class HoeffdingTree(Algorithm[State]):
    """The algorithm."""

    leaf_learner: LeafLearner  # what leaves predict by
    # "rows", "occurrences", "intended": of which shares entropy is taken: each label's of the rows; or of the label
    # occurrences, as a distribution, or each label's.
    entropy: str
    grace: float  # weight that must come between two attempts to split a leaf
    delta: float  # probability with which a split may be the wrong one
    tau: float  # a bound from which on features count as equal
    n_trees: int = 1  # roots in the state, for ensembles

    state_type: ClassVar[Any] = State
    unmergeable = "each tree has splits of its own"

    @property
    def by_rows(self) -> bool:
        """Whether weights are rows, rather than label occurrences."""
        return self.entropy == "rows"

    def parts(self) -> Mapping[str, Any]:
        """Return what knows the leaves, and what they predict by."""
        return {"leaves": label_statistics, "learners": self.leaf_learner}

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of trees of one leaf each."""
        leaf = self.new_leaf(schema.kinds, schema.n_labels)
        leaves = stack([leaf] * self.n_trees)
        learners = self.leaf_learner.init(schema.kinds, schema.n_labels, self.n_trees)
        return State(schema.kinds, tree.single_leaves(self.n_trees), leaves, learners)

    def new_leaf(self, kinds: FeatureKinds, n_labels: int) -> Leaf:
        """Make a leaf that has seen nothing."""
        zero = np.zeros(())
        return Leaf(np.zeros(n_labels), zero, zero, label_statistics.empty(kinds, n_labels + self.by_rows))

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn a batch."""
        Y = scipy.sparse.csr_array(Y)
        return self.learn_rows(state, X, Y, [np.arange(X.shape[0])])

    def learn_rows(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, rows: list[IntArray], restarted: Sequence[int] = ()
    ) -> State:
        """Let each tree learn some rows, in their order; those of ``restarted`` begin again from one leaf."""
        kinds, leaves = state.kinds.widened(X), state.leaves
        if kinds is not state.kinds:
            leaves = label_statistics.take(leaves, Moves(state.kinds.moves(kinds), kinds))
        shared, learners = self.leaf_learner.unpack(state.learners, kinds, Y)
        builder = TreeBuilder(state.nodes, list(zip(unstack(leaves), learners, strict=True)))
        for each in restarted:
            builder.restart(each, (self.new_leaf(kinds, Y.shape[1]), self.leaf_learner.new_part(shared)))
        batch = _Batch(X, Y, kinds, shared)
        for root, chosen in zip(builder.roots, rows, strict=True):
            builder.learn(root, X, chosen, partial(self._learn_leaf, builder, batch))
        grown, taught = zip(*builder.leaves, strict=True)
        packed = self.leaf_learner.pack(shared, list(taught))
        return State(kinds, builder.nodes(), stack(list(grown)), packed)

    def _learn_leaf(self, builder: TreeBuilder, batch: _Batch, node: int, rows: IntArray) -> IntArray:
        """Learn the rows of a leaf until it splits; return those that are left for its children."""
        index = builder.child[node]
        steps = np.ones(len(rows)) if self.by_rows else np.diff(batch.Y.indptr)[rows]
        while len(rows):
            leaf, learner = builder.leaves[index]
            due = self._due(leaf, batch.Y, rows, steps)
            stop = len(rows) if due is None else due + 1
            X, Y = batch.X[rows[:stop]], batch.Y[rows[:stop]]
            learner = self.leaf_learner.update(learner, leaf, X, Y, rows[:stop], batch.shared)
            leaf = self._with_rows(leaf, X, Y, batch.kinds)
            rows, steps = rows[stop:], steps[stop:]
            if due is not None:
                leaf = leaf._replace(tried=np.asarray(self._weight(leaf)))
                split = self._choose_split(leaf, batch.kinds)
                if split is not None:
                    children = [self._child(branch, batch.kinds) for branch in split.branches]
                    inherited = self.leaf_learner.child_part(learner, batch.shared)
                    builder.split(node, split, [(child, inherited) for child in children])
                    break
            builder.leaves[index] = (leaf, learner)
        return rows

    def _due(self, leaf: Leaf, Y: AnyMatrix, rows: IntArray, steps: FloatArray) -> int | None:
        """Find the first row with which enough weight has come for an attempt to split; None if there is none."""
        enough = np.flatnonzero(self._weight(leaf) - leaf.tried + np.cumsum(steps) >= self.grace - _ROUNDING)
        if not len(enough):
            return None
        first = int(enough[0])
        if self.by_rows or _in_order(_added(leaf.mass, Y[rows[: first + 1]])) - leaf.tried >= self.grace:
            return first
        # MOA compares rounded sums; where they fall short by the last digit the next row with a label is the first.
        later = enough[(steps[enough] > 0) & (enough > first)]
        return int(later[0]) if len(later) else None

    def _weight(self, leaf: Leaf) -> float:
        return float(leaf.rows) if self.by_rows else _in_order(leaf.mass)

    def _with_rows(self, leaf: Leaf, X: AnyMatrix, Y: AnyMatrix, kinds: FeatureKinds) -> Leaf:
        counted = design.with_ones(Y) if self.by_rows else Y
        statistics = label_statistics.update(leaf.statistics, X, counted.tocsc(), kinds, in_order=not self.by_rows)
        return Leaf(_added(leaf.mass, Y), leaf.rows + Y.shape[0], leaf.tried, statistics)

    def _child(self, branch: FloatArray, kinds: FeatureKinds) -> Leaf:
        """Make a child that starts with the expected rows of each label."""
        mass, rows = (branch[:-1], branch[-1]) if self.by_rows else (branch, branch.sum())
        empty = self.new_leaf(kinds, len(mass))
        leaf = empty._replace(mass=mass, rows=np.asarray(rows))
        return leaf._replace(tried=np.asarray(self._weight(leaf)))

    def _choose_split(self, leaf: Leaf, kinds: FeatureKinds) -> Split | None:
        """Choose the split to be made; None if it is too early to say."""
        seen = np.flatnonzero(leaf.mass > 0)
        if len(seen) < (1 if self.by_rows else 2):
            return None
        whole = np.append(leaf.mass, leaf.rows) if self.by_rows else leaf.mass
        entropy = float(self._entropy(whole[:, None])[0])
        # By rows, gain is a share of the entropy that there is; otherwise bits, of which this is the largest number.
        span = 1.0 if self.by_rows else np.log2(max(2.0, 1.0 + seen[-1]))
        if self.by_rows and entropy <= 0:
            return None
        scale = entropy if self.by_rows else 1.0
        splits = label_statistics.best_splits(leaf.statistics, kinds, entropy, self._branch_weight, self._entropy)
        merits = splits.merit / scale
        # Of equal merits the feature with the higher number.
        order = np.argsort(merits, kind="stable")
        best, second = merits[order[-1]], merits[order[-2]] if len(order) > 1 else -np.inf
        epsilon = tree.hoeffding_bound(float(span), self._weight(leaf), self.delta)
        if best == -np.inf or (self.by_rows and best <= 0) or not (best - second > epsilon or epsilon < self.tau):
            return None
        feature = int(order[-1])
        kind, threshold = float(splits.kind[feature]), float(splits.threshold[feature])
        expected = label_statistics.branches(leaf.statistics, kinds, feature, kind, threshold)
        return Split(kind, feature, threshold, float(splits.merit[feature]), expected)

    def _branch_weight(self, branches: FloatArray) -> FloatArray:
        weights: FloatArray = branches[-1] if self.by_rows else branches.sum(axis=0)
        return weights

    def _entropy(self, branches: FloatArray) -> FloatArray:
        """Compute the entropy, in bits, of the labels along the first axis."""
        weights = self._branch_weight(branches)
        labels = branches[:-1] if self.by_rows else branches
        share = np.clip(labels / np.where(weights > 0, weights, 1.0), 0.0, 1.0)
        bits = entr(share) if self.entropy == "occurrences" else entr(share) + entr(1.0 - share)
        result: FloatArray = np.where(weights > 0, bits.sum(axis=0), 0.0) / np.log(2.0)
        return result

    def derive(self, state: State) -> Derived:
        """Derive every leaf's learner."""
        leaves = unstack(state.leaves)
        return Derived(state.nodes, self.leaf_learner.derive(state.learners, leaves))

    def tree_scores(self, derived: Derived, X: AnyMatrix, root: int) -> FloatArray:
        """Compute one tree's scores: each leaf's learner for the rows that reach it."""
        leaf = derived.nodes.child[tree.route(derived.nodes, X, root)]
        order = np.argsort(leaf, kind="stable")
        reached, starts = np.unique(leaf[order], return_index=True)
        parts = [
            self.leaf_learner.scores(derived.learners, index, X[rows])
            for index, rows in zip(reached.tolist(), np.split(order, starts[1:]), strict=True)
        ]
        result = np.empty((X.shape[0], parts[0].shape[1]))
        result[order] = np.vstack(parts)
        return result

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the scores of the only tree."""
        return self.tree_scores(derived, X, int(derived.nodes.roots[0]))

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Turn scores into probabilities, as the leaf learner has them."""
        return self.leaf_learner.probabilities(self.scores(derived, X))


def _added(mass: FloatArray, Y: AnyMatrix) -> FloatArray:
    """Add rows of labels one after the other, so that sums are rounded alike however batches are cut."""
    total: FloatArray = np.add.accumulate(np.vstack([mass, dense(Y)]))[-1]
    return total


def _in_order(values: FloatArray) -> float:
    """Sum values from the first to the last, as MOA does."""
    return float(np.add.accumulate(values)[-1])


class _Batch(NamedTuple):
    """A batch, and what leaf learners share while it is learned."""

    X: AnyMatrix
    Y: AnyMatrix
    kinds: FeatureKinds
    shared: Any


class TreeClassifier(OnlineClassifier):
    """What the classes of one tree and of several have in common.

    Parameters
    ----------
    leaf : {"naive_bayes", "majority", "pruned_sets"}, default="naive_bayes"
        What leaves predict: each label by naive Bayes or by its share, whichever has been right more often; or the most
        frequent label set; or, as in MOA, the most frequent label set for a leaf's first 1000 rows and then one of up
        to ten frequent ones, chosen by a Hoeffding tree that takes them for classes. MOA's leaves lose their first row
        and predict no label until a set has come twice.
    entropy : {"rows", "occurrences", "intended"}, default="rows"
        Of which shares entropy is taken: of each label's share of the rows; of the distribution of the label
        occurrences, as MOA does; or of each label's share of the label occurrences, as MOA means to.
    grace_period : float, default=200
        Rows that must come between two attempts to split a leaf; label occurrences, if entropy is taken of them.
    delta : float, default=1e-7
        Probability with which a split may be the wrong one.
    tau : float, default=0.05
        Bound from which on features count as equally good, and the best is taken.
    """

    leaf: Literal["naive_bayes", "majority", "pruned_sets"] = "naive_bayes"
    entropy: Literal["rows", "occurrences", "intended"] = "rows"
    grace_period: float = 200
    delta: float = 1e-7
    tau: float = 0.05

    def _trees(self, n_trees: int) -> HoeffdingTree:
        """Check the parameters, and make the algorithm of ``n_trees`` trees."""
        parameters.check_choice("leaf", self.leaf, ("naive_bayes", "majority", "pruned_sets"))
        parameters.check_choice("entropy", self.entropy, ("rows", "occurrences", "intended"))
        parameters.check_number("grace_period", self.grace_period, 0, open_low=True)
        parameters.check_number("delta", self.delta, 0, 1, open_low=True)
        parameters.check_number("tau", self.tau, 0)
        numbers = float(self.grace_period), float(self.delta), float(self.tau)
        learner: LeafLearner = NaiveBayesLeaves() if self.leaf == "naive_bayes" else MajorityLeaves()
        if self.leaf == "pruned_sets":
            learner = PrunedSetLeaves(HoeffdingTree(ClassLeaves(), "occurrences", *numbers))
        return HoeffdingTree(learner, self.entropy, *numbers, n_trees)


class MLHTClassifier(TreeClassifier):
    """Multi-label Hoeffding tree: splits where the rows so far have shown which feature is best.

    See Also
    --------
    EaHTClassifier : Ten such trees.
    ISOUPTreeClassifier : A tree that splits by the variance of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import MLHTClassifier
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> model = MLHTClassifier().fit(X, X > 0.5)
    >>> model.predict([[0.9, 0.2]])
    array([[ True, False]])
    """

    @classmethod
    def moa(cls, **others: Any) -> Self:
        """Make MOA's tree with majority label sets in the leaves; ``leaf="pruned_sets"`` has those of its default.

        ``others`` are further parameters.
        """
        return cls(**{"leaf": "majority", "entropy": "occurrences", **others})

    def _algorithm(self, seed: int) -> HoeffdingTree:
        return self._trees(1)
