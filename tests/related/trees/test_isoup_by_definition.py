"""iSOUP-Tree with mean leaves against one written from its definition, with a search tree of cuts for each feature."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from labelrace import ISOUPTreeClassifier

MOST_CUTS = 51


class SearchTree:
    """At most 51 cuts, first come, each with rows and label sums of those that passed it and are not above it."""

    def __init__(self):
        self.root, self.size = None, 0

    def add(self, value, y):
        fresh = SimpleNamespace(cut=value, rows=1, sums=y.copy(), below=None, above=None)
        if self.root is None:
            self.root, self.size = fresh, 1
            return
        node = self.root
        while True:
            if value <= node.cut:
                node.rows, node.sums = node.rows + 1, node.sums + y
                if value == node.cut:
                    return
            side = "below" if value < node.cut else "above"
            if getattr(node, side) is None:
                if self.size < MOST_CUTS:
                    setattr(node, side, fresh)
                    self.size += 1
                return
            node = getattr(node, side)

    def cuts(self, node, rows, sums):
        """Yield each cut with the rows and sums of what is not above it, in order."""
        if node is not None:
            yield from self.cuts(node.below, rows, sums)
            rows, sums = rows + node.rows, sums + node.sums
            yield node.cut, rows, sums
            yield from self.cuts(node.above, rows, sums)


def variance(rows, total):
    """Compute the variance of a label, 0 or 1, with n - 1."""
    return (total - total * total / rows) / (rows - 1) if rows > 1 else 0.0


class NaiveTree:
    """A label that is constant in a leaf has no merit; what a child inherits counts in its means alone."""

    def __init__(self, n_features, n_labels, grace, delta, tau):
        self.n_features, self.n_labels, self.settings = n_features, n_labels, (grace, delta, tau)
        self.splits, self.root = [], self.leaf(0, np.zeros(n_labels))

    def leaf(self, old_rows, old_sums):
        trees = [SearchTree() for _ in range(self.n_features)]
        zero = np.zeros(self.n_labels)
        return SimpleNamespace(old=(old_rows, old_sums), rows=0, sums=zero, trees=trees, question=None)

    def find(self, x):
        node = self.root
        while node.question is not None:
            feature, cut = node.question
            node = node.children[int(x[feature] > cut)]
        return node

    def mean(self, x):
        leaf = self.find(x)
        return (leaf.old[1] + leaf.sums) / (leaf.old[0] + leaf.rows)

    def learn(self, x, y):
        leaf = self.find(x)
        leaf.rows, leaf.sums = leaf.rows + 1, leaf.sums + y
        for value, tree in zip(x, leaf.trees, strict=True):
            tree.add(value, y)
        if leaf.rows % self.settings[0] == 0:
            self.attempt(leaf)

    def merit(self, leaf, rows, sums):
        n, others = leaf.rows, leaf.rows - rows
        if min(rows, others) < 0.05 * n:
            return 0.0
        total = 0.0
        for of_all, below in zip(leaf.sums, sums, strict=True):
            whole = variance(n, of_all)
            left = rows * variance(rows, below) + others * variance(others, of_all - below)
            total += 1 - left / n / whole if whole > 0 else 0.0
        return total / self.n_labels

    def attempt(self, leaf):
        _, delta, tau = self.settings
        best = []
        for feature, tree in enumerate(leaf.trees):
            cuts = tree.cuts(tree.root, 0, np.zeros(self.n_labels))
            # The first of the cuts with the largest merit.
            best.append(max(((self.merit(leaf, r, s), feature, cut, r, s) for cut, r, s in cuts), key=lambda c: c[0]))
        *_, second, first = sorted([(0.0,), *best], key=lambda c: c[0])
        epsilon = math.sqrt(math.log(1 / delta) / (2 * leaf.rows))
        if first[0] > 0 and (second[0] / first[0] < 1 - epsilon or epsilon < tau):
            _, feature, cut, rows, sums = first
            self.splits.append((feature, cut))
            leaf.children = [self.leaf(rows, sums), self.leaf(leaf.rows - rows, leaf.sums - sums)]
            leaf.question = feature, cut


@pytest.mark.parametrize("kind", ["numeric", "sparse", "binary", "constant"])
@pytest.mark.parametrize("n_features", [1, 4])
def test_means_by_definition(kind, n_features):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(700, n_features))
    if kind == "sparse":
        X *= rng.random(X.shape) < 0.5
    if kind == "binary":
        X = (X > 0.5).astype(float)
    Y = np.where(X > 0, 1.0, -1.0) @ rng.normal(size=(n_features, 5)) + rng.normal(size=(700, 5)) > 0.5
    if kind == "constant":
        Y[:, 0], Y[:, 1], X[:, -1] = 0, 1, X[:, -1] if n_features == 1 else 3.0
    Y = Y.astype(float)
    form = scipy.sparse.csr_array if kind == "sparse" else np.asarray
    model, naive = ISOUPTreeClassifier(grace_period=50, delta=0.05, tau=0.2), NaiveTree(n_features, 5, 50, 0.05, 0.2)
    for start, stop in [(0, 60), (60, 61), (61, 400), (400, 700)]:
        if start:
            expected = [2.0 * naive.mean(x) - 1.0 for x in X[start:stop]]
            np.testing.assert_allclose(model.decision_function(form(X[start:stop])), expected, rtol=0, atol=1e-9)
        model.partial_fit(form(X[start:stop]), Y[start:stop])
        for x, y in zip(X[start:stop], Y[start:stop], strict=True):
            naive.learn(x, y)
    assert naive.splits
