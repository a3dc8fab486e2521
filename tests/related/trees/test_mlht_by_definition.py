"""The Hoeffding tree against one written row by row and label by label from its definition, split by split."""

from __future__ import annotations

import functools
import math
import operator
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from scipy.special import ndtr

from labelrace import MLHTClassifier
from labelrace.base.sparse import dense
from labelrace.related.trees.mlht import HoeffdingTree


def total(numbers):
    """Add from left to right, each sum rounded; the built-in ``sum`` compensates for rounding since Python 3.12."""
    return functools.reduce(operator.add, numbers, 0.0)


class NaiveTree:
    """A tree with majority label sets; sums are rounded as a program that learns row by row rounds them.

    Where entropy is taken of the rows, all rows are one more label, the last; gain is a share of the entropy.
    """

    def __init__(self, n_values, n_labels, grace, delta, tau, entropy):
        self.n_values, self.kind, self.by_rows = n_values, entropy, entropy == "rows"
        self.n_labels, self.settings = n_labels + self.by_rows, (grace, delta, tau)
        self.splits, self.root = [], self.leaf([0.0] * self.n_labels, {}, None)

    def leaf(self, mass, sets, leader):
        """Make a leaf; a numeric feature has count, mean, squared deviations, least and largest value of each label."""
        features = [{} for _ in self.n_values]
        return SimpleNamespace(
            mass=list(mass), tried=self.weight(mass), sets=sets, leader=leader, features=features, route=None
        )

    def weight(self, mass):
        return mass[-1] if self.by_rows else total(mass)

    def find(self, x):
        node = self.root
        while node.route is not None:
            node = node.children[node.route(x)]
        return node

    def predict(self, x):
        leader = self.find(x).leader
        return [float(j in (leader or ())) for j in range(self.n_labels - self.by_rows)]

    def learn(self, x, y):
        leaf, labels = self.find(x), tuple(np.flatnonzero(y))
        leaf.sets[labels] = leaf.sets.get(labels, 0) + 1
        if leaf.leader is None or leaf.sets[labels] > leaf.sets[leaf.leader]:
            leaf.leader = labels
        for j in (*labels, self.n_labels - 1) if self.by_rows else labels:
            leaf.mass[j] += 1
            for f, n_values in enumerate(self.n_values):
                if n_values:
                    leaf.features[f].setdefault(j, [0.0] * n_values)[int(x[f])] += 1
                    continue
                n, mean, spread, low, high = leaf.features[f].get(j, (0, 0.0, 0.0, x[f], x[f]))
                gap = x[f] - mean
                mean += gap / (n + 1)
                leaf.features[f][j] = n + 1, mean, spread + gap * (x[f] - mean), min(low, x[f]), max(high, x[f])
        weight = self.weight(leaf.mass)
        if weight - leaf.tried >= self.settings[0]:
            leaf.tried = weight
            if sum(each > 0 for each in leaf.mass) > 1:
                self.attempt(leaf, weight)

    def entropy(self, mass):
        total, bits = self.weight(mass), 0.0
        for each in mass[:-1] if self.by_rows else mass:
            share = min(each / total, 1.0) if total else 0.0
            for part in (share,) if self.kind == "occurrences" else (share, 1 - share):
                bits -= part * math.log2(part) if part > 0 else 0.0
        return bits

    def gain(self, leaf, branches):
        weights = [self.weight(branch) for branch in branches]
        if sum(weight > 0.01 * total(weights) for weight in weights) < 2:
            return -math.inf
        left = total(weight * self.entropy(branch) for weight, branch in zip(weights, branches, strict=True))
        return self.entropy(leaf.mass) - left / total(weights)

    def questions(self, leaf, f):
        """List the questions about a feature: branches, threshold or value, and route."""
        known = leaf.features[f]
        if self.n_values[f]:
            values = range(self.n_values[f])
            each = [[known[j][v] if j in known else 0.0 for j in range(self.n_labels)] for v in values]
            yield each, float(len(each)), lambda x: int(x[f])
            for v in values if len(each) > 2 else ():
                rest = [total(branch[j] for branch in each) - each[v][j] for j in range(self.n_labels)]
                yield [each[v], rest], float(v), lambda x, v=v: int(x[f] != v)
            return
        least, largest = min(k[3] for k in known.values()), max(k[4] for k in known.values())
        for i in range(1, 11) if largest > least else ():
            threshold, left = (largest - least) / 11 * i + least, [0.0] * self.n_labels
            for j, (n, mean, spread, low, high) in known.items():
                if threshold >= high:
                    left[j] = n
                elif threshold >= low:
                    left[j] = n * float(ndtr((threshold - mean) / math.sqrt(spread / (n - 1))))
            right = [known[j][0] - left[j] if j in known else 0.0 for j in range(self.n_labels)]
            yield [left, right], threshold, lambda x, threshold=threshold: int(x[f] > threshold)

    def attempt(self, leaf, weight):
        _, delta, tau = self.settings
        gains, chosen = [-math.inf], None
        for f in range(len(self.n_values)):
            best = -math.inf
            for branches, threshold, route in self.questions(leaf, f):
                gain = self.gain(leaf, branches)
                if gain > best:
                    best, question = gain, (f, threshold, branches, route)
            if best > -math.inf and best >= max(gains):
                chosen = question
            gains.append(best)
        span = math.log2(max(2, 1 + max(j for j in range(self.n_labels) if leaf.mass[j] > 0)))
        span = self.entropy(leaf.mass) if self.by_rows else span
        epsilon = math.sqrt(math.log(1 / delta) / (2 * weight))
        *_, second, first = sorted(gains)
        if self.by_rows:
            # Gains of nothing are none, and a tie is one of the shares.
            chosen, tau = chosen if first > 0 else None, tau * span
        epsilon *= span
        if chosen is not None and (first - second > epsilon or epsilon < tau):
            f, threshold, branches, route = chosen
            self.splits.append((f, threshold, first, weight))
            leaf.children = [self.leaf(branch, dict(leaf.sets), leaf.leader) for branch in branches]
            leaf.route = route


def stream(kind, seed, n=1200, m=4, n_labels=6):
    """Draw rows, and the number of values of each feature."""
    rng = np.random.default_rng(seed)
    X, n_values = rng.normal(size=(n, m)), [0] * m
    if kind == "nominal":
        n_values = [0, 2, 3, 4]
        X[:, 1:] = [rng.integers(0, n_values[1:]) for _ in range(n)]
        X[0, 1:] = np.array(n_values[1:]) - 1
    if kind == "sparse":
        X *= rng.random(X.shape) < 0.3
    if kind == "constant":
        X[:, 1], X[:, 2] = 2.0, X[:, 0]
    Y = np.where(X > 0, 1, -1) @ rng.normal(size=(m, n_labels)) + rng.normal(size=(n, n_labels)) > 0.7
    if kind == "late labels":
        Y[:, 0], Y[:, 1], Y[: n // 2, 2:] = 0, 1, 0
    return X, Y.astype(float), n_values


@pytest.mark.parametrize("entropy", ["occurrences", "intended", "rows"])
@pytest.mark.parametrize("kind", ["numeric", "nominal", "sparse", "constant", "late labels"])
def test_splits_and_predictions_by_definition(kind, entropy, monkeypatch):
    """The grace period is off the weights that occur, so that rounding does not decide when a leaf tries to split."""
    made, choose = [], HoeffdingTree._choose_split

    def chosen(self, leaf, *others):
        split = choose(self, leaf, *others)
        if split is not None:
            made.append((split.feature, split.threshold, split.merit, self._weight(leaf)))
        return split

    monkeypatch.setattr(HoeffdingTree, "_choose_split", chosen)
    form = scipy.sparse.csr_array if kind == "sparse" else np.asarray
    for seed in range(2):
        X, Y, n_values = stream(kind, seed)
        settings = {"grace_period": 49.5, "delta": 0.05, "tau": 0.2, "entropy": entropy}
        nominal = np.flatnonzero(n_values)
        model = MLHTClassifier.moa(categorical_features=nominal if len(nominal) else None, **settings)
        naive = NaiveTree(n_values, Y.shape[1], 49.5, 0.05, 0.2, entropy)
        made.clear()
        for start, stop in [(0, 100), (100, 101), (101, 700), (700, 1200)]:
            if start:
                expected = [naive.predict(x) for x in X[start:stop]]
                np.testing.assert_array_equal(dense(model.predict(form(X[start:stop]))), expected)
            model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
            for x, y in zip(X[start:stop], Y[start:stop], strict=True):
                naive.learn(x, y)
        # Leaves are learned one after the other, so that within a batch the order of their splits is another.
        assert naive.splits
        np.testing.assert_allclose(
            sorted(made, key=lambda s: s[2]), sorted(naive.splits, key=lambda s: s[2]), rtol=1e-9
        )
