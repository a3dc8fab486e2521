"""Trees, and the statistics of their leaves, against versions written straight from the definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import norm

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.related.trees import cut_points, label_statistics, tree
from labelrace.related.trees.tree import AT_MOST, EACH_VALUE, ONE_VALUE, Split, TreeBuilder


def rows_and_labels(n=120, m=4, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 1e3
    X[:, 1] = rng.integers(0, 3, n)
    Y = scipy.sparse.csr_array((rng.random((n, n_labels)) < 0.4).astype(float))
    return X, Y


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("cuts_at", [(), (1,), (50, 51, 90)])
def test_statistics_of_each_label(sparse, cuts_at):
    X, Y = rows_and_labels()
    kinds = FeatureKinds(np.array([0, 3, 0, 0]))
    found = label_statistics.empty(kinds, 3)
    for rows in np.split(np.arange(len(X)), cuts_at):
        part = scipy.sparse.csr_array(X[rows]) if sparse else X[rows]
        found = label_statistics.update(found, part, Y[rows].tocsc(), kinds)
    for label in range(3):
        own = X[Y.toarray()[:, label] == 1]
        numbers = own[:, [0, 2, 3]]
        assert found.rows[label] == len(own)
        np.testing.assert_allclose(found.mean[label], numbers.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.spread[label] / (len(own) - 1), numbers.var(axis=0, ddof=1), rtol=1e-9)
        np.testing.assert_array_equal(found.low[label], numbers.min(axis=0))
        np.testing.assert_array_equal(found.high[label], numbers.max(axis=0))
        np.testing.assert_array_equal(found.counts[label], [(own[:, 1] == value).sum() for value in (1, 2)])


def test_splits_by_definition():
    X, Y = rows_and_labels()
    kinds = FeatureKinds(np.array([0, 3, 0, 0]))
    statistics = label_statistics.update(label_statistics.empty(kinds, 3), X, Y.tocsc(), kinds)

    def entropy(masses):
        shares = masses[masses > 0] / masses.sum()
        return -(shares * np.log2(shares)).sum()

    def gain(branches):
        total = sum(branch.sum() for branch in branches)
        if sum(branch.sum() > 0.01 * total for branch in branches) < 2:
            return -np.inf
        return entropy(statistics.rows) - sum(branch.sum() / total * entropy(branch) for branch in branches)

    found = label_statistics.best_splits(
        statistics,
        kinds,
        entropy(statistics.rows),
        lambda masses: masses.sum(axis=0),
        lambda masses: np.apply_along_axis(entropy, 0, masses),
    )
    labels = [X[Y.toarray()[:, label] == 1] for label in range(3)]
    for feature in (0, 2, 3):
        low, high = (
            f(own[:, feature] for own in labels) for f in (lambda v: min(map(np.min, v)), lambda v: max(map(np.max, v)))
        )
        best = (-np.inf, None)
        for i in range(1, 11):
            threshold = low + (high - low) * i / 11
            left = np.array(
                [
                    0.0
                    if threshold < own[:, feature].min()
                    else len(own)
                    if threshold >= own[:, feature].max()
                    else len(own) * norm.cdf(threshold, own[:, feature].mean(), own[:, feature].std(ddof=1))
                    for own in labels
                ]
            )
            merit = gain([left, statistics.rows - left])
            if merit > best[0]:
                best = merit, threshold, left
        np.testing.assert_allclose(found.merit[feature], best[0], rtol=1e-9)
        np.testing.assert_allclose(found.threshold[feature], best[1], rtol=1e-12)
        sides = label_statistics.branches(statistics, kinds, feature, AT_MOST, found.threshold[feature])
        np.testing.assert_allclose(sides, [best[2], statistics.rows - best[2]], rtol=1e-9)
    values = np.array([[(own[:, 1] == value).sum() for own in labels] for value in range(3)], dtype=float)
    options = [(gain(values), EACH_VALUE, 3.0)]
    options += [(gain([values[v], values.sum(axis=0) - values[v]]), ONE_VALUE, float(v)) for v in range(3)]
    best = max(options, key=lambda option: option[0])
    np.testing.assert_allclose(found.merit[1], best[0], rtol=1e-9)
    assert (found.kind[1], found.threshold[1]) == best[1:]
    sides = label_statistics.branches(statistics, kinds, 1, EACH_VALUE, 3.0)
    np.testing.assert_array_equal(sides, values)
    sides = label_statistics.branches(statistics, kinds, 1, ONE_VALUE, 2.0)
    np.testing.assert_array_equal(sides, [values[2], values[0] + values[1]])


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_cuts_are_the_first_values_and_count_all_rows_below_them(batch):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 5, 300), np.zeros(300), rng.integers(0, 60, 300)])
    Y = scipy.sparse.csr_array((rng.random((300, 3)) < 0.4).astype(float))
    found = cut_points.empty(4, 3)
    for start in range(0, 300, batch):
        found = cut_points.update(found, X[start : start + batch], Y[start : start + batch])
    for feature, values in enumerate(X.T):
        first = sorted(list(dict.fromkeys(values))[: cut_points.MAX_CUTS])
        np.testing.assert_array_equal(found.at[feature][np.isfinite(found.at[feature])], first)
        below = np.cumsum(found.rows[feature])[: len(first)]
        np.testing.assert_array_equal(below, [(values <= cut).sum() for cut in first])
        sums = np.cumsum(found.sums[feature], axis=0)[: len(first)]
        np.testing.assert_array_equal(sums, [Y.toarray()[values <= cut].sum(axis=0) for cut in first])
    np.testing.assert_array_equal(found.rows.sum(axis=1), 300)
    assert cut_points.with_room(found, 60).rows.shape == (4, 61)


def test_rows_find_their_leaves():
    builder = TreeBuilder(tree.single_leaves(), ["root"])
    builder.split(0, Split(AT_MOST, 0, 0.5, 1.0, None), ["low", "high"])
    builder.split(2, Split(EACH_VALUE, 1, 3.0, 1.0, None), ["first", "second", "third"])
    builder.split(1, Split(ONE_VALUE, 1, 2.0, 1.0, None), ["is two", "is not"])
    shape = builder.nodes()
    X = np.array([[0.5, 2.0], [0.4, 1.0], [0.6, 0.0], [0.6, 1.0], [0.6, 2.0], [0.6, 7.0]])
    expected = ["is two", "is not", "first", "second", "third", "first"]
    for form in (np.asarray, scipy.sparse.csr_array):
        assert [builder.leaves[shape.child[node]] for node in tree.route(shape, form(X), 0)] == expected
    groups = {}

    def learn_leaf(node, rows):
        groups[builder.leaves[builder.child[node]]] = rows.tolist()
        return rows[:0]

    builder.learn(0, X, np.arange(6), learn_leaf)
    assert groups == {"is two": [0], "is not": [1], "first": [2, 5], "second": [3], "third": [4]}


def test_a_tree_of_a_forest_begins_anew():
    builder = TreeBuilder(tree.single_leaves(2), ["one", "two"])
    builder.split(0, Split(AT_MOST, 0, 0.5, 1.0, None), ["low", "high"])
    builder.split(1, Split(EACH_VALUE, 0, 3.0, 1.0, None), ["first", "second", "third"])
    builder.restart(0, "new")
    shape = builder.nodes()
    X = np.array([[0.0], [1.0], [2.0]])
    assert [builder.leaves[shape.child[node]] for node in tree.route(shape, X, builder.roots[0])] == ["new"] * 3
    names = [builder.leaves[shape.child[node]] for node in tree.route(shape, X, builder.roots[1])]
    assert names == ["first", "second", "third"]
    assert sorted(builder.leaves) == ["first", "new", "second", "third"]
    assert len(shape.kind) == 5
