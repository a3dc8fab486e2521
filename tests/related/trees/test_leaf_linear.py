"""Linear models in leaves."""

from __future__ import annotations

import numpy as np

from labelrace.related.trees import leaf_linear
from labelrace.related.trees.leaf_linear import FeatureMoments


def test_statistics_do_not_depend_on_the_cuts():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 100.0
    found = FeatureMoments(np.zeros(()), np.zeros(3), np.zeros(3))
    for part in np.split(X, [1, 20]):
        found = leaf_linear.add_rows(found, part)
    np.testing.assert_allclose(found.mean, X.mean(axis=0))
    np.testing.assert_allclose(found.spread / 50, X.var(axis=0))
    Z = leaf_linear.standardise(found, X)
    np.testing.assert_allclose(Z[:, :3].std(axis=0), 1.0)
    np.testing.assert_array_equal(Z[:, 3], 1.0)


def test_constant_features_become_zero():
    X = np.column_stack([np.full(5, 7.0), np.arange(5.0)])
    found = leaf_linear.add_rows(FeatureMoments(np.zeros(()), np.zeros(2), np.zeros(2)), X)
    np.testing.assert_array_equal(leaf_linear.standardise(found, X)[:, 0], 0.0)


def test_one_block_from_nothing_is_ridge_regression():
    rng = np.random.default_rng(1)
    Z, Y = rng.normal(size=(40, 4)), rng.normal(size=(40, 2))
    found = leaf_linear.update(leaf_linear.empty(3, 2), np.zeros(2), Z, Y)
    expected = np.linalg.solve(Z.T @ Z + leaf_linear._PENALTY * np.eye(4), Z.T @ Y)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10)


def test_the_better_of_mean_and_model_predicts():
    rng = np.random.default_rng(2)
    Z = np.column_stack([rng.normal(size=(300, 2)), np.ones(300)])
    Y = np.column_stack([Z[:, 0] > 0, rng.random(300) < 0.02]).astype(float)
    model, mean = leaf_linear.empty(2, 2), np.array([0.5, 0.0])
    for part in np.split(np.arange(300), 10):
        model = leaf_linear.update(model, mean, Z[part], Y[part])
    assert (model.errors[1] < model.errors[0]).tolist() == [True, False]
    values = leaf_linear.predict(model, mean, Z)
    np.testing.assert_array_equal(values[:, 1], 0.0)
    assert ((values[:, 0] > 0.5) == Y[:, 0]).mean() > 0.9
