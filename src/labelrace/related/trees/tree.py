"""Trees as flat arrays: where rows go, and how a leaf becomes a split.

A node is a leaf or asks about one feature: is it at most a threshold, has it a certain value, or which of its values
has it. Children of a node stand side by side. While a batch is learned, nodes are lists that grow; between batches they
are arrays that can be saved. A forest is several roots in the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray, IntArray

LEAF, AT_MOST, EACH_VALUE, ONE_VALUE = 0.0, 1.0, 2.0, 3.0


class TreeArrays(NamedTuple):
    """The nodes of one or more trees."""

    kind: Annotated[FloatArray, "_n"]  # leaf, or how a node asks
    feature: Annotated[IntArray, "_n"]  # the feature that it asks about
    threshold: Annotated[FloatArray, "_n"]  # the threshold, or the value, or the number of values
    # The first of a node's children, or the index of a leaf among the leaves.
    child: Annotated[IntArray, "_n"]
    roots: Annotated[IntArray, "T"]  # the root of each tree

    def why_malformed(self, size: Callable[[str], int]) -> str | None:
        """Return why nodes are not those of trees; None if every way down ends at one of the leaves."""
        n_nodes = len(self.kind)
        is_leaf, counts = self.kind == LEAF, np.where(self.kind == EACH_VALUE, self.threshold, 2.0)
        if not np.isin(self.kind, [LEAF, AT_MOST, EACH_VALUE, ONE_VALUE]).all():
            return "nodes of an unknown kind"
        if not ((self.roots >= 0) & (self.roots < n_nodes)).all():
            return "roots that are no nodes"
        leaf, inner = self.child[is_leaf], np.flatnonzero(~is_leaf)
        if not ((leaf >= 0) & (leaf < size("L"))).all():
            return "unknown leaves"
        feature, child = self.feature[inner], self.child[inner]
        if not ((feature >= 0) & (feature < size("m"))).all():
            return "unknown features"
        # Children come after their parents, so that no way leads back.
        if not ((child > inner) & (counts[inner] >= 1) & (child + counts[inner] <= n_nodes)).all():
            return "children that are no nodes, or that come before their parents"
        return None


class Split(NamedTuple):
    """A question that a leaf may become."""

    kind: float
    feature: int
    threshold: float
    merit: float
    branches: Any  # what each child starts with, as many as there are children


def single_leaves(n_trees: int = 1) -> TreeArrays:
    """Make trees of one leaf each."""
    indices = np.arange(n_trees)
    return TreeArrays(np.zeros(n_trees), np.full(n_trees, -1), np.zeros(n_trees), indices, indices)


def route(nodes: TreeArrays, X: AnyMatrix, root: int) -> IntArray:
    """Find the node, a leaf, that each row reaches from a node.

    Examples
    --------
    >>> import numpy as np
    >>> kind, feature, child = np.array([AT_MOST, LEAF, LEAF]), np.array([0, -1, -1]), np.array([1, 0, 1])
    >>> nodes = TreeArrays(kind, feature, np.array([0.5, 0.0, 0.0]), child, np.array([0]))
    >>> route(nodes, np.array([[0.5], [0.6]]), 0)
    array([1, 2])
    """
    node = np.full(X.shape[0], root)
    features = np.unique(nodes.feature[nodes.kind != LEAF])
    if not len(features):
        return node
    values = X[:, features]
    values = values.toarray() if scipy.sparse.issparse(values) else values
    moving = np.flatnonzero(nodes.kind[node] != LEAF)
    while len(moving):
        here = node[moving]
        value = values[moving, np.searchsorted(features, nodes.feature[here])]
        node[moving] = nodes.child[here] + _branch(nodes.kind[here], nodes.threshold[here], value)
        moving = moving[nodes.kind[node[moving]] != LEAF]
    return node


def _branch(kind: FloatArray, threshold: FloatArray, value: FloatArray) -> IntArray:
    """Answer each node's question; a value that a node does not know takes the first branch."""
    known = np.where(value < threshold, value, 0.0)
    answer = np.where(kind == AT_MOST, value > threshold, np.where(kind == EACH_VALUE, known, value != threshold))
    return answer.astype(np.intp)


def hoeffding_bound(span: float, weight: float, delta: float) -> float:
    """Compute Hoeffding's bound on how far a mean of ``weight`` observations is from its expectation."""
    return float(np.sqrt(span * span * np.log(1.0 / delta) / (2.0 * weight)))


class TreeBuilder:
    """The nodes while a batch is learned; ``leaves`` holds a value for each leaf, which callers replace."""

    def __init__(self, nodes: TreeArrays, leaves: list[Any]) -> None:
        self.kind, self.feature = nodes.kind.tolist(), nodes.feature.tolist()
        self.threshold, self.child = nodes.threshold.tolist(), nodes.child.tolist()
        self.roots = nodes.roots.tolist()
        self.leaves = leaves

    def nodes(self) -> TreeArrays:
        """Return the nodes as arrays."""
        return TreeArrays(
            np.array(self.kind, dtype=float),
            np.array(self.feature, dtype=np.intp),
            np.array(self.threshold, dtype=float),
            np.array(self.child, dtype=np.intp),
            np.array(self.roots, dtype=np.intp),
        )

    def learn(self, root: int, X: AnyMatrix, rows: IntArray, learn_leaf: Callable[[int, IntArray], IntArray]) -> None:
        """Send rows down from a node; each leaf learns its rows in their order, and returns those after its split."""
        waiting = [(root, rows)] if len(rows) else []
        while waiting:
            start, rows = waiting.pop()
            node = route(self.nodes(), X[rows], start)
            order = np.argsort(node, kind="stable")
            reached, starts = np.unique(node[order], return_index=True)
            for leaf, group in zip(reached.tolist(), np.split(rows[order], starts[1:]), strict=True):
                rest = learn_leaf(leaf, group)
                if len(rest):
                    waiting.append((leaf, rest))

    def split(self, node: int, split: Split, children: list[Any]) -> None:
        """Turn a leaf into a question with these leaves below it; the first takes its index among the leaves."""
        index = self.child[node]
        self.kind[node], self.feature[node], self.threshold[node] = split.kind, split.feature, split.threshold
        self.child[node] = len(self.kind)
        self.leaves[index] = children[0]
        self._append_leaf(index)
        for each in children[1:]:
            self._append_leaf(len(self.leaves))
            self.leaves.append(each)

    def _append_leaf(self, index: int) -> None:
        """Append a node that is a leaf, with its index among the leaves."""
        self.kind.append(LEAF)
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.child.append(index)

    def restart(self, tree: int, leaf: Any) -> None:
        """Replace a tree by one leaf."""
        self.roots[tree] = len(self.kind)
        self._append_leaf(len(self.leaves))
        self.leaves.append(leaf)
        self._drop_unreachable_nodes()

    def _drop_unreachable_nodes(self) -> None:
        old, leaves, queue = self.nodes(), self.leaves, list(self.roots)
        self.kind, self.feature, self.threshold, self.child, self.leaves = [], [], [], [], []
        self.roots = list(range(len(queue)))
        # Nodes in the order in which they are reached, so that children stay side by side.
        for node in queue:
            kind, child = float(old.kind[node]), int(old.child[node])
            if kind == LEAF:
                self._append_leaf(len(self.leaves))
                self.leaves.append(leaves[child])
                continue
            n_children = int(old.threshold[node]) if kind == EACH_VALUE else 2
            self.kind.append(kind)
            self.feature.append(int(old.feature[node]))
            self.threshold.append(float(old.threshold[node]))
            self.child.append(len(queue))
            queue.extend(range(child, child + n_children))
