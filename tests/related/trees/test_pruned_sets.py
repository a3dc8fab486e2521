"""Trees whose leaves take label sets for classes, beside trees written straight from the definition."""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.special import ndtr

import labelrace
from labelrace import MLHTClassifier
from labelrace.related.trees import mlht
from labelrace.related.trees.class_leaves import ClassLeaves
from labelrace.related.trees.pruned_sets import PrunedSetLeaves

# Rows are whole numbers, so that no rounding decides when a leaf tries to split.
GRACE, DELTA, TAU, WARM_UP, MOST = 59.5, 0.05, 0.2, 150, 4


def entropy(counts):
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


class NaiveTree:
    """MOA's Hoeffding tree, row by row; features with a number of values are nominal."""

    def __init__(self, mass, learner, n_values):
        self.mass, self.learner, self.n_values, self.tried = mass, learner, n_values, mass.sum()
        self.rows, self.labels, self.split = [], [], None

    def leaf(self, x):
        if self.split is None:
            return self
        route, children = self.split
        return children[route(x)].leaf(x)

    def learn(self, x, y):
        leaf = self.leaf(x)
        leaf.learner.learn(x, y, leaf.mass)
        leaf.mass = leaf.mass + y
        leaf.rows.append(x)
        leaf.labels.append(y)
        if leaf.mass.sum() - leaf.tried >= GRACE and (leaf.mass > 0).sum() >= 2:
            leaf.tried = leaf.mass.sum()
            leaf.try_split()

    def sides(self, feature, threshold):
        values, labels = np.array(self.rows)[:, feature], np.array(self.labels)
        left = np.zeros(len(self.mass))
        for j in range(len(left)):
            own = values[labels[:, j] == 1]
            if len(own) and threshold >= own.max():
                left[j] = len(own)
            elif len(own) and threshold >= own.min():
                left[j] = len(own) * ndtr((threshold - own.mean()) / own.std(ddof=1))
        return left, labels.sum(axis=0) - left

    def questions(self, feature):
        """List the questions about a feature: branches and routes."""
        values, labels = np.array(self.rows)[:, feature], np.array(self.labels)
        if not self.n_values[feature]:
            seen = values[labels.any(axis=1)]
            low, high = seen.min(), seen.max()
            for i in range(1, 11):
                at = low + (high - low) * i / 11
                yield self.sides(feature, at), lambda x, at=at: int(x[feature] > at)
            return
        each = [labels[values == value].sum(axis=0) for value in range(self.n_values[feature])]
        yield each, lambda x: int(x[feature])
        for value, own in enumerate(each) if len(each) > 2 else ():
            yield (own, sum(each) - own), lambda x, value=value: int(x[feature] != value)

    def gain(self, branches):
        sums = np.array([branch.sum() for branch in branches])
        if (sums > 0.01 * sums.sum()).sum() < 2:
            return -np.inf
        left = sum(each / sums.sum() * entropy(branch) for each, branch in zip(sums, branches, strict=True) if each)
        return entropy(self.mass) - left

    def try_split(self):
        # Not to split is an option, too, with no gain at all.
        gains, chosen = [-np.inf], None
        for feature in range(len(self.n_values)):
            best, question = -np.inf, None
            for branches, route in self.questions(feature):
                gain = self.gain(branches)
                if gain > best:
                    best, question = gain, (branches, route)
            if best >= max(gains):
                chosen = question
            gains.append(best)
        span = np.log2(max(2.0, 1.0 + np.flatnonzero(self.mass)[-1]))
        epsilon = np.sqrt(span**2 * np.log(1 / DELTA) / (2 * self.mass.sum()))
        *_, second, best = sorted(gains)
        if best > -np.inf and (best - second > epsilon or epsilon < TAU):
            branches, route = chosen
            self.split = route, [NaiveTree(branch, self.learner.child(), self.n_values) for branch in branches]


class NaiveClassLeaf:
    """Naive Bayes, or the most frequent class where that has been right more often."""

    def __init__(self, n_classes, n_values):
        self.n_values, self.rows_of, self.right = n_values, [[] for _ in range(n_classes)], [0, 0]

    def child(self):
        return NaiveClassLeaf(len(self.rows_of), self.n_values)

    def learn(self, x, y, mass):
        true = int(np.argmax(y))
        self.right[0] += mass.sum() > 0 and np.argmax(mass) == true
        self.right[1] += self.by_bayes(x) == true
        self.rows_of[true].append(x)

    def by_bayes(self, x):
        logs = []
        for rows in self.rows_of:
            logs.append(math.log(len(rows) + 1))
            for value, n_values, column in zip(x, self.n_values, np.reshape(rows, (-1, len(x))).T, strict=True):
                if n_values:
                    logs[-1] += math.log(((column == value).sum() + 1) / (len(rows) + n_values))
                    continue
                rounded = np.rint(column / 0.01) * 0.01
                mean, deviation = (rounded.mean(), max(rounded.std(), 0.01 / 6)) if rows else (0.0, 0.01 / 6)
                low, high = ndtr((np.rint(value / 0.01) * 0.01 - mean + np.array([-0.005, 0.005])) / deviation)
                logs[-1] += math.log(max(high - low, 1e-75))
        return int(np.argmax(logs))

    def predict(self, x, mass):
        return int(np.argmax(mass)) if self.right[0] > self.right[1] else self.by_bayes(x)


class NaivePrunedSets:
    """The most frequent label set, and from a number of rows on a tree of classes; the first row of all is lost."""

    def __init__(self, n_values, Y):
        self.n_values, self.began = n_values, False
        # Classes are in the order in which their sets came, at whichever leaf.
        self.order = list(dict.fromkeys(tuple(np.flatnonzero(y)) for y in Y))
        self.counts, self.leader, self.kept, self.classes, self.tree = Counter(), None, [], [], None

    def child(self):
        return copy.deepcopy(self)

    def learn(self, x, y, mass):
        if not self.began:
            self.began = True
            return
        y = tuple(np.flatnonzero(y))
        if self.tree is not None:
            if y:
                self.teach(x, y)
            return
        self.counts[y] += 1
        if self.counts[y] > max(1, self.counts[self.leader]):
            self.leader = y
        self.kept.append((x, y))
        if len(self.kept) == WARM_UP:
            least = 0
            while sum(count > least for count in self.counts.values()) > MOST:
                least += 1
            self.classes = [label_set for label_set in self.order if self.counts[label_set] > least]
            self.tree = NaiveTree(np.zeros(MOST), NaiveClassLeaf(len(self.classes), self.n_values), self.n_values)
            for row in self.kept:
                self.teach(*row)

    def teach(self, x, y):
        if y in self.classes:
            self.tree.learn(x, np.eye(MOST)[self.classes.index(y)])

    def predict(self, x):
        if not self.classes:
            return self.leader or ()
        leaf = self.tree.leaf(x)
        return self.classes[leaf.learner.predict(x, leaf.mass)]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(mlht, "PrunedSetLeaves", partial(PrunedSetLeaves, warm_up=WARM_UP, max_classes=MOST))


def rows(seed, n=900):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([X[:, 0] > 0.3, X[:, 1] > 0, (X[:, 0] > 0.3) & (X[:, 2] > 0.5), X[:, 1] > 1.2])
    return X, (Y ^ (rng.random(Y.shape) < 0.05)).astype(int)


def nominal_rows(seed):
    """Draw rows with two nominal features, all of whose values the first batch has."""
    X, Y = rows(seed)
    rng = np.random.default_rng(seed)
    X = np.column_stack([X, rng.integers(0, 3, len(X)), rng.integers(0, 2, len(X))])
    X[0, 3:] = 2, 1
    return X, np.column_stack([Y[:, 0], X[:, 3] == 2, Y[:, 1] & (X[:, 4] == 1)]).astype(int)


@pytest.mark.parametrize(
    ("draw", "n_values"), [(rows, [0, 0, 0]), (nominal_rows, [0, 0, 0, 3, 2])], ids=["numeric", "nominal"]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_leaves_by_definition(small, seed, draw, n_values):
    X, Y = draw(seed)
    nominal = np.flatnonzero(n_values)
    model = MLHTClassifier.moa(
        leaf="pruned_sets",
        grace_period=GRACE,
        delta=DELTA,
        tau=TAU,
        categorical_features=nominal if len(nominal) else None,
    )
    naive = NaiveTree(np.zeros(Y.shape[1]), NaivePrunedSets(n_values, Y), n_values)
    n_split, ways, n_without = 0, Counter(), 0
    for start in range(0, len(X), 50):
        batch = slice(start, start + 50)
        if start:
            leaves = [naive.leaf(x) for x in X[batch]]
            expected = [
                np.isin(np.arange(Y.shape[1]), leaf.learner.predict(x))
                for leaf, x in zip(leaves, X[batch], strict=True)
            ]
            np.testing.assert_array_equal(model.predict(X[batch]), expected)
            n_split += sum(leaf is not naive for leaf in leaves)
            trees = [(leaf.learner.tree, x) for leaf, x in zip(leaves, X[batch], strict=True) if leaf.learner.tree]
            ways.update((made.split is not None, np.diff(made.leaf(x).learner.right)[0] >= 0) for made, x in trees)
            n_without += sum(
                leaf.learner.tree is not None and not y.any() for leaf, y in zip(leaves, Y[batch], strict=True)
            )
        model.partial_fit(X[batch], Y[batch])
        for x, y in zip(X[batch], Y[batch], strict=True):
            naive.learn(x, y)
    assert n_split
    assert n_without
    # Trees of classes have split, and their leaves predict in either way.
    assert ways[True, True]
    assert ways[True, False]


@pytest.mark.parametrize("sparse", [False, True])
def test_leaves_of_odd_rows_by_definition(small, odd_rows, sparse):
    """The first batches have one row each."""
    X, Y = odd_rows(0, 320, 4)
    form, n_labels = scipy.sparse.csr_array if sparse else np.asarray, Y.shape[1]
    model = MLHTClassifier.moa(leaf="pruned_sets", grace_period=GRACE, delta=DELTA, tau=TAU)
    n_values = [0] * X.shape[1]
    naive = NaiveTree(np.zeros(n_labels), NaivePrunedSets(n_values, Y), n_values)
    edges = [*range(5), *range(5, 320, 45), 320]
    for start, stop in pairwise(edges):
        if start:
            expected = [np.isin(np.arange(n_labels), naive.leaf(x).learner.predict(x)) for x in X[start:stop]]
            predicted = scipy.sparse.csr_array(model.predict(form(X[start:stop]))).toarray()
            np.testing.assert_array_equal(predicted, expected)
        model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
        for x, y in zip(X[start:stop], Y[start:stop], strict=True):
            naive.learn(x, y)


def test_scores_of_classes_give_probabilities():
    np.testing.assert_allclose(ClassLeaves().probabilities(np.log([[1.0, 3.0]]) - 900), [[0.25, 0.75]])


def test_sets_that_all_came_once_leave_none(small):
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
