"""Trees whose leaves take label sets for classes, beside trees written straight from the definition."""

from __future__ import annotations

import copy
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import norm

import labelrace
from labelrace import MLHTClassifier
from labelrace.related.trees import mlht
from labelrace.related.trees.pruned_sets import PrunedSetLeaves

# Rows are whole numbers, so that no rounding decides when a leaf tries to split.
GRACE, DELTA, TAU, WARM_UP, MOST = 59.5, 0.05, 0.2, 150, 4


def entropy(counts):
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


class NaiveTree:
    """MOA's Hoeffding tree, row by row: numeric features, label occurrences."""

    def __init__(self, mass, learner):
        self.mass, self.learner, self.tried = mass, learner, mass.sum()
        self.rows, self.labels, self.split = [], [], None

    def leaf(self, x):
        if self.split is None:
            return self
        feature, threshold, left, right = self.split
        return (left if x[feature] <= threshold else right).leaf(x)

    def learn(self, x, y):
        leaf = self.leaf(x)
        if leaf.learner:
            leaf.learner.learn(x, y)
        leaf.mass = leaf.mass + y
        leaf.rows.append(x)
        leaf.labels.append(y)
        if leaf.mass.sum() - leaf.tried >= GRACE and (leaf.mass > 0).sum() >= 2:
            leaf.tried = leaf.mass.sum()
            leaf.try_split()

    def left_of(self, feature, threshold):
        values, labels = np.array(self.rows)[:, feature], np.array(self.labels)
        left = np.zeros(len(self.mass))
        for j in range(len(left)):
            own = values[labels[:, j] == 1]
            if len(own) and threshold >= own.max():
                left[j] = len(own)
            elif len(own) and threshold >= own.min():
                left[j] = len(own) * norm.cdf((threshold - own.mean()) / own.std(ddof=1))
        return left, labels.sum(axis=0) - left

    def try_split(self):
        X, seen = np.array(self.rows), np.array(self.labels).any(axis=1)
        found = []
        for feature in range(X.shape[1]):
            low, high = X[seen, feature].min(), X[seen, feature].max()
            best = (-np.inf, 0.0)
            for i in range(1, 11):
                threshold = low + (high - low) * i / 11
                sides = self.left_of(feature, threshold)
                sums = np.array([side.sum() for side in sides])
                if (sums > 0.01 * sums.sum()).sum() < 2:
                    continue
                gain = entropy(self.mass) - sum(
                    each / sums.sum() * entropy(side) for each, side in zip(sums, sides, strict=True)
                )
                if gain > best[0]:
                    best = (gain, threshold)
            found.append((best[0], feature, best[1]))
        # Not to split is an option, too, with no gain at all.
        found = sorted([(-np.inf, -1, 0.0), *found])
        span = np.log2(max(2.0, 1.0 + np.flatnonzero(self.mass)[-1]))
        epsilon = np.sqrt(span**2 * np.log(1 / DELTA) / (2 * self.mass.sum()))
        (second, *_), (best, feature, threshold) = found[-2:]
        if best > -np.inf and (best - second > epsilon or epsilon < TAU):
            children = [NaiveTree(side, copy.deepcopy(self.learner)) for side in self.left_of(feature, threshold)]
            self.split = (feature, threshold, *children)


class NaivePrunedSets:
    """The most frequent label set, and from so many rows on a tree of classes."""

    def __init__(self):
        self.counts, self.leader, self.kept, self.classes, self.tree = Counter(), (), [], [], None

    def learn(self, x, y):
        y = tuple(np.flatnonzero(y))
        self.counts[y] += 1
        if self.leader not in self.counts or self.counts[y] > self.counts[self.leader]:
            self.leader = y
        if self.tree is not None:
            self.teach(x, y)
            return
        self.kept.append((x, y))
        if len(self.kept) == WARM_UP:
            least = 0
            while sum(count > least for count in self.counts.values()) > MOST:
                least += 1
            self.classes = [label_set for label_set, count in self.counts.items() if count > least]
            self.tree = NaiveTree(np.zeros(MOST), None)
            for row in self.kept:
                self.teach(*row)

    def teach(self, x, y):
        if y in self.classes:
            self.tree.learn(x, np.eye(MOST)[self.classes.index(y)])

    def predict(self, x):
        return self.classes[np.argmax(self.tree.leaf(x).mass)] if self.classes else self.leader


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(mlht, "PrunedSetLeaves", partial(PrunedSetLeaves, warm_up=WARM_UP, max_classes=MOST))


def rows(seed, n=900):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([X[:, 0] > 0.3, X[:, 1] > 0, (X[:, 0] > 0.3) & (X[:, 2] > 0.5), X[:, 1] > 1.2])
    return X, (Y ^ (rng.random(Y.shape) < 0.05)).astype(int)


@pytest.mark.parametrize("seed", [0, 1])
def test_leaves_by_definition(small, seed):
    X, Y = rows(seed)
    model = MLHTClassifier.moa(leaf="pruned_sets", grace_period=GRACE, delta=DELTA, tau=TAU)
    naive = NaiveTree(np.zeros(4), NaivePrunedSets())
    n_split = n_begun = 0
    for start in range(0, len(X), 50):
        batch = slice(start, start + 50)
        if start:
            leaves = [naive.leaf(x) for x in X[batch]]
            expected = [
                np.isin(np.arange(4), leaf.learner.predict(x)) for leaf, x in zip(leaves, X[batch], strict=True)
            ]
            np.testing.assert_array_equal(model.predict(X[batch]), expected)
            n_split = sum(leaf is not naive for leaf in leaves)
            n_begun += sum(leaf.learner.tree is not None and leaf.learner.tree.split is not None for leaf in leaves)
        model.partial_fit(X[batch], Y[batch])
        for x, y in zip(X[batch], Y[batch], strict=True):
            naive.learn(x, y)
    assert n_split
    assert n_begun > 100


@pytest.mark.parametrize("sparse", [False, True])
def test_leaves_of_odd_rows_by_definition(small, odd_rows, sparse):
    """The first batches have one row each."""
    X, Y = odd_rows(0, 500, 4)
    form, n_labels = scipy.sparse.csr_array if sparse else np.asarray, Y.shape[1]
    model = MLHTClassifier.moa(leaf="pruned_sets", grace_period=GRACE, delta=DELTA, tau=TAU)
    naive = NaiveTree(np.zeros(n_labels), NaivePrunedSets())
    edges = [*range(5), *range(5, 500, 45), 500]
    for start, stop in pairwise(edges):
        if start:
            expected = [np.isin(np.arange(n_labels), naive.leaf(x).learner.predict(x)) for x in X[start:stop]]
            predicted = scipy.sparse.csr_array(model.predict(form(X[start:stop]))).toarray()
            np.testing.assert_array_equal(predicted, expected)
        model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
        for x, y in zip(X[start:stop], Y[start:stop], strict=True):
            naive.learn(x, y)


def test_sets_that_all_came_once_leave_the_first(small):
    X, _ = rows(0, 200)
    Y = np.array([[(i >> j) & 1 for j in range(8)] for i in range(200)])
    model = MLHTClassifier.moa(leaf="pruned_sets", grace_period=10_000).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X[:3]), np.zeros((3, 8)))


def test_sparse_rows_growth_and_the_disk(small, tmp_path):
    X, Y = rows(2)
    X[np.abs(X) < 0.5] = 0.0
    options = {"leaf": "pruned_sets", "grace_period": GRACE, "delta": DELTA, "tau": TAU}
    dense, late = MLHTClassifier.moa(**options), MLHTClassifier.moa(**options)
    wide, labels = np.column_stack([X, np.where(np.arange(900) < 400, 0.0, X[:, 0] > 1)]), Y.copy()
    labels[:400, 3] = 0
    for start in range(0, 900, 100):
        batch = slice(start, start + 100)
        dense.partial_fit(wide[batch], labels[batch])
        if start == 200:
            late.save(tmp_path / "model")
            late = labelrace.load(tmp_path / "model")
        shown = (X[batch], labels[batch, :3]) if start < 400 else (wide[batch], labels[batch])
        if start == 400:
            late.save(tmp_path / "model")
            late = labelrace.load(tmp_path / "model")
        late.partial_fit(scipy.sparse.csr_array(shown[0]), shown[1])
    late.save(tmp_path / "model")
    np.testing.assert_allclose(
        dense.decision_function(wide), labelrace.load(tmp_path / "model").decision_function(wide)
    )
    assert any(len(made.nodes.kind) > 1 for made in late._fitted.state.learners.trees)
