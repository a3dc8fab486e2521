"""iSOUP-Tree: a Hoeffding tree that regresses onto 0 and 1 for all labels at once.

A leaf keeps the rows of each label below every cut point of every feature (`cut_points`). Each time that a grace period
of rows has come, the merit of a cut is the mean over labels of the share of variance that it removes, 0 for a label
unless both sides have 5 % of the rows. The best feature is split if the second best's merit is smaller by more than
Hoeffding's bound allows for, or the bound is small. A label is present if its mean in the leaf is at least one half.

Leaves predict the mean, or with *linear* leaves each label by the mean or by a linear model (`leaf_linear`),
whichever has had the smaller absolute error in recent rows; children go on from their parent's. (The published
perceptron divides its weights by their sum after every step, so that it can never say much; this one does not.)

What differs from MOA's program: a label that is constant in a leaf has merit 0 (there it is 0/0, which ranks as best),
and what a child inherits from the split is kept separately, for predicting (there it enters the right branch twice).
`ISOUPTreeClassifier.moa` has both as MOA does.

A row costs ``m · (51 + |y|)``, an attempt ``51 · m · l``, predicting the depth of the tree. The state is ``leaves · m ·
c · l`` numbers for c cut points, at most 51: as many as a feature has values, if these are few.

References
----------
Osojnik, A., Panov, P. and Džeroski, S.: Multi-label classification via multi-target regression on data streams. Machine
Learning 106 (2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import growth, parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions.calibration import soft_clip
from labelrace.related import stacked_states
from labelrace.related.stacked_states import stack, unstack
from labelrace.related.trees import cut_points, leaf_linear, tree
from labelrace.related.trees.cut_points import CutPoints
from labelrace.related.trees.leaf_linear import FeatureMoments, LeafModel
from labelrace.related.trees.tree import AT_MOST, Split, TreeArrays, TreeBuilder
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Each side of a cut must have this share of the rows.
_LEAST_SHARE = 0.05


class Leaf(NamedTuple):
    """A leaf; in a state, all leaves, stacked."""

    # Rows since the leaf began, and those with each label.
    rows: Annotated[FloatArray, ""]
    sums: Annotated[FloatArray, "l"]
    # The same of the rows that the split gave it.
    old_rows: Annotated[FloatArray, ""]
    old_sums: Annotated[FloatArray, "l"]
    cuts: CutPoints  # the rows since the leaf began, by feature and value
    model: LeafModel  # the linear model; of no features, if leaves have none


class State(NamedTuple):
    """The tree."""

    kinds: FeatureKinds
    # The nodes, and the leaves among them.
    nodes: Annotated[TreeArrays, "T=1"]
    leaves: Annotated[Leaf, "stacked L"]
    moments: FeatureMoments  # statistics of the features, for linear models


class Derived(NamedTuple):
    """The nodes, each leaf's means, (L, l), and their linear models."""

    nodes: TreeArrays
    means: FloatArray
    models: LeafModel
    moments: FeatureMoments


@dataclass(frozen=True)
class ISOUPTree(Algorithm[State]):
    """The algorithm."""

    grace: int  # rows of a leaf between two attempts to split it
    delta: float  # probability with which a split may be the wrong one
    tau: float  # a bound from which on features count as equal
    linear: bool  # whether leaves have linear models
    as_moa: bool  # whether constant labels and inherited rows count as in MOA's program

    state_type = State
    unmergeable = "each tree has splits of its own"

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make a tree of one leaf that has seen nothing."""
        m, n_labels = schema.n_features, schema.n_labels
        leaf = _new_leaf(m, np.zeros(()), np.zeros(n_labels), leaf_linear.empty(m if self.linear else -1, n_labels))
        moments = FeatureMoments(np.zeros(()), np.zeros(m), np.zeros(m))
        return State(schema.kinds, tree.single_leaves(), stack([leaf]), moments)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Learn a batch."""
        Y = scipy.sparse.csr_array(Y)
        builder = TreeBuilder(state.nodes, unstack(state.leaves))
        moments = leaf_linear.add_rows(state.moments, X) if self.linear else state.moments
        Z = leaf_linear.standardise(moments, X) if self.linear else None
        builder.learn(builder.roots[0], X, np.arange(X.shape[0]), partial(self._learn_leaf, builder, _Batch(X, Y, Z)))
        room = max(leaf.cuts.at.shape[1] for leaf in builder.leaves)
        leaves = [leaf._replace(cuts=cut_points.with_room(leaf.cuts, room)) for leaf in builder.leaves]
        return State(state.kinds.widened(X), builder.nodes(), stack(leaves), moments)

    def _learn_leaf(self, builder: TreeBuilder, batch: _Batch, node: int, rows: IntArray) -> IntArray:
        """Learn the rows of a leaf until it splits; return those that are left for its children."""
        index = builder.child[node]
        while len(rows):
            leaf: Leaf = builder.leaves[index]
            stop = self.grace - int(leaf.rows) % self.grace
            part, rows = rows[:stop], rows[stop:]
            labels = batch.Y[part]
            if batch.Z is not None:
                leaf = leaf._replace(model=leaf_linear.update(leaf.model, _mean(leaf), batch.Z[part], labels))
            cuts = cut_points.update(leaf.cuts, dense(batch.X[part]), labels)
            leaf = leaf._replace(rows=leaf.rows + len(part), sums=leaf.sums + labels.sum(axis=0), cuts=cuts)
            builder.leaves[index] = leaf
            split = self._choose_split(leaf) if len(part) == stop else None
            if split is not None:
                m = batch.X.shape[1]
                children = [_new_leaf(m, held, sums, leaf.model) for held, sums in split.branches]
                builder.split(node, split, children)
                break
        return rows

    def _choose_split(self, leaf: Leaf) -> Split | None:
        """Choose the split to be made; None if it is too early to say."""
        merit, cut = self._merits(leaf)
        order = np.argsort(merit, kind="stable")
        feature = int(order[-1])
        best, second = merit[feature], merit[order[-2]] if len(order) > 1 else 0.0
        epsilon = tree.hoeffding_bound(1.0, float(leaf.rows), self.delta)
        with np.errstate(divide="ignore", invalid="ignore"):
            is_better = bool(second / best < 1.0 - epsilon)
        if not (is_better or epsilon < self.tau) or (not self.as_moa and not best > 0):
            return None
        column = int(cut[feature])
        left = leaf.cuts.rows[feature, : column + 1].sum(), leaf.cuts.sums[feature, : column + 1].sum(axis=0)
        total = self._total(leaf)
        branches = [left, (total[0] - left[0], total[1] - left[1])]
        return Split(AT_MOST, feature, float(leaf.cuts.at[feature, column]), float(best), branches)

    def _total(self, leaf: Leaf) -> tuple[FloatArray, FloatArray]:
        """Return the rows, and those with each label, that a split divides."""
        if self.as_moa:
            return leaf.rows + leaf.old_rows, leaf.sums + leaf.old_sums
        return leaf.rows, leaf.sums

    def _merits(self, leaf: Leaf) -> tuple[FloatArray, IntArray]:
        """Compute the merit of each feature's best cut, the lowest of equals, and which one it is."""
        rows, sums = self._total(leaf)
        below = np.cumsum(leaf.cuts.rows[:, :-1], axis=1)
        above = rows - below
        sums_below = np.cumsum(leaf.cuts.sums[:, :-1], axis=1)
        whole = _variance(rows, sums)
        parts = below[:, :, None] * _variance(below[:, :, None], sums_below)
        parts += above[:, :, None] * _variance(above[:, :, None], sums - sums_below)
        with np.errstate(divide="ignore", invalid="ignore"):
            removed = 1.0 - parts / rows / whole
        if not self.as_moa:
            removed[:, :, ~(whole > 0)] = 0.0
        enough = (below >= _LEAST_SHARE * rows) & (above >= _LEAST_SHARE * rows)
        merit = np.where(enough[:, :, None], removed, 0.0).mean(axis=2)
        merit = np.where(np.isfinite(leaf.cuts.at), merit, -np.inf)
        # NaN, of MOA's constant labels, is never larger than another merit; but it stays if it comes first.
        best = np.where(np.isnan(merit), -np.inf, merit).argmax(axis=1)
        best = np.where(np.isnan(merit[:, 0]), 0, best)
        return merit[np.arange(len(merit)), best], best

    def derive(self, state: State) -> Derived:
        """Compute the leaves' means."""
        means = np.stack([_mean(leaf) for leaf in unstack(state.leaves)])
        return Derived(state.nodes, means, state.leaves.model, state.moments)

    def _values(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of the leaves that rows reach, about 0 to 1."""
        leaf = derived.nodes.child[tree.route(derived.nodes, X, int(derived.nodes.roots[0]))]
        result = derived.means[leaf]
        if self.linear:
            Z, models = leaf_linear.standardise(derived.moments, X), unstack(derived.models)
            for index in np.unique(leaf):
                rows = leaf == index
                result[rows] = leaf_linear.predict(models[index], derived.means[index], Z[rows])
        return result

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Stretch the leaves' values to -1 to 1, so that 0 is even odds."""
        return 2.0 * self._values(derived, X) - 1.0

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels of at least one half."""
        return self._values(derived, X) >= 0.5

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Bring the leaves' values into (0, 1)."""
        return soft_clip(self._values(derived, X))

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features; new labels have merit 0 everywhere, which leaves the best split the best."""
        taken: State = growth.take(state, moves, leaves=partial(stacked_states.take, _take_leaf))
        return taken

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: as in MOA, a constant label makes all splits arbitrary."""
        return "in MOA's form a label that is constant makes splits arbitrary" if self.as_moa else None

    def why_no_new_features(self) -> str | None:
        """Return why features cannot be added: as in MOA, splits may be worth less than nothing."""
        return "in MOA's form a feature that is constant can be the best one" if self.as_moa else None


class _Batch(NamedTuple):
    """A batch, and its features as linear models see them; None if there are none."""

    X: AnyMatrix
    Y: AnyMatrix
    Z: FloatArray | None


def _new_leaf(n_features: int, rows: FloatArray, sums: FloatArray, model: LeafModel) -> Leaf:
    """Make a leaf that begins with what a split gives it, and with its parent's model."""
    cuts = cut_points.empty(n_features, len(sums))
    return Leaf(np.zeros(()), np.zeros(len(sums)), np.asarray(rows, dtype=float), sums, cuts, model)


def _take_leaf(leaf: Leaf, moves: Moves) -> Leaf:
    """Move labels and features of a leaf; new features have been 0 in all of its rows."""
    taken: Leaf = growth.take(leaf, moves)
    features = moves.source("m", len(leaf.cuts.at))
    if features is None:
        return taken
    return taken._replace(cuts=cut_points.with_zeros(taken.cuts, features < 0, taken.rows, taken.sums))


def _mean(leaf: Leaf) -> FloatArray:
    """Compute the share of a leaf's rows that have each label."""
    return (leaf.sums + leaf.old_sums) / max(float(leaf.rows + leaf.old_rows), 1.0)


def _variance(rows: FloatArray, sums: FloatArray) -> FloatArray:
    """Compute the variance of 0 and 1, given the number of ones, with n - 1; 0 of less than two rows."""
    spread = sums - sums * sums / np.maximum(rows, 1.0)
    return np.where(rows > 1, spread / np.where(rows > 1, rows - 1.0, 1.0), 0.0)


class ISOUPTreeClassifier(OnlineClassifier):
    """iSOUP-Tree: a Hoeffding tree that splits where the labels' variances fall most.

    Parameters
    ----------
    leaf : {"mean", "linear"}, default="mean"
        What leaves predict: each label's mean, or by a linear model where that has had the smaller error.
    grace_period : int, default=200
        Rows of a leaf between two attempts to split it.
    delta : float, default=1e-7
        Probability with which a split may be the wrong one.
    tau : float, default=0.05
        Bound from which on features count as equally good, and the best is taken.
    constant_labels : {"no_merit", "moa"}, default="no_merit"
        What a label counts that is constant in a leaf: nothing, or as in MOA's program, where what children inherit is
        not kept separately, either.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values; they are compared as numbers.

    See Also
    --------
    MLHTClassifier : A tree that splits by the entropy of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import ISOUPTreeClassifier
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> model = ISOUPTreeClassifier(tau=0.1).fit(X, X > 0.5)
    >>> model.predict([[0.9, 0.2]])
    array([[ True, False]])
    """

    leaf: Literal["mean", "linear"] = "mean"
    grace_period: int = 200
    delta: float = 1e-7
    tau: float = 0.05
    constant_labels: Literal["no_merit", "moa"] = "no_merit"

    @classmethod
    def moa(cls, **others: Any) -> Self:
        """Make the tree as MOA has it with mean leaves; ``others`` are further parameters."""
        return cls(**{"constant_labels": "moa", **others})

    def _algorithm(self, seed: int) -> ISOUPTree:
        parameters.check_choice("leaf", self.leaf, ("mean", "linear"))
        parameters.check_whole("grace_period", self.grace_period, 1)
        parameters.check_number("delta", self.delta, 0, 1, open_low=True)
        parameters.check_number("tau", self.tau, 0)
        parameters.check_choice("constant_labels", self.constant_labels, ("no_merit", "moa"))
        linear, as_moa = self.leaf == "linear", self.constant_labels == "moa"
        return ISOUPTree(int(self.grace_period), float(self.delta), float(self.tau), linear, as_moa)
