"""Banks of learners: a row of weight 2 is the row twice."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor

from labelrace import BinaryRelevanceClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.exceptions import DivergenceError
from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

SEEDS = st.integers(0, 2**32 - 1)
BANKS = {
    "density": NaiveBayes(),
    "binned": NaiveBayes(numeric="binned"),
    "ridge": Ridge(),
    "sgd": SGD(rate=0.01, penalty=0.0),
    "normalised": SGD(rate=0.5, normalised=True, penalty=0.0),
    "cumulative": SGD(rate=0.3, normalised=True, penalty=0.0, nominal_coding="cumulative"),
}


def learned(bank, X, H, *weights, kinds=None):
    kinds = FeatureKinds.numbers(X.shape[1]) if kinds is None else kinds
    return bank.derive(bank.update(bank.init(kinds, H.shape[1]), X, H, *weights))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", BANKS)
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_weight_is_the_row_as_often(name, form, seed):
    bank, rng = BANKS[name], np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    X, H = rng.normal(size=(n, 4)).round(1), (rng.random((n, 3)) < 0.4).astype(float)
    X[:, 0] = rng.integers(0, 3, n)
    kinds, weights = FeatureKinds(np.array([3, 0, 0, 0])), rng.integers(1, 5, n)
    again = np.repeat(np.arange(n), weights)
    if name == "cumulative":
        # Values are ranked by their means in the first batch, which rows count as they are.
        weights[:] = 2
        again = np.repeat(np.arange(n), 2)
    one = learned(bank, form(X), form(H), weights.astype(float), kinds=kinds)
    other = learned(bank, form(X[again]), form(H[again]), kinds=kinds)
    np.testing.assert_allclose(bank.predict(one, X), bank.predict(other, X), rtol=1e-7, atol=1e-8)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_ridge_is_weighted_ridge(seed):
    rng = np.random.default_rng(seed)
    X, H, weights = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.random(30) * 10
    bank = Ridge(alpha=0.7)
    mean, target = np.average(X, axis=0, weights=weights), np.average(H, axis=0, weights=weights)
    Z = X - mean
    solved = np.linalg.solve(Z.T @ (weights[:, None] * Z) + 0.7 * np.eye(4), Z.T @ (weights[:, None] * (H - target)))
    np.testing.assert_allclose(bank.predict(learned(bank, X, H, weights), X), target + Z @ solved, rtol=1e-7, atol=1e-9)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_sgd_takes_one_step_for_a_row_of_any_weight(seed):
    """Row by row, with a penalty that shrinks once a row, and steps that overshoot."""
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(70, 3)), rng.normal(size=70), rng.random(70) * 3
    rate, penalty = float(rng.choice([0.01, 0.2, 0.6])), 0.1
    X *= np.sqrt(1.2 / rate)
    w, c = np.zeros(3), 0.0
    for x, target, weight in zip(X, y, weights, strict=True):
        error, length = target - w @ x - c, 1 + x @ x
        step = weight * rate if rate * length > 1 else (1 - (1 - rate * length) ** weight) / length
        w, c = (1 - rate * penalty) * w + step * error * x, c + step * error
        if abs(error) > 1e6:
            return
    state = learned(SGD(rate=rate, penalty=penalty), X, y[:, None], weights)
    np.testing.assert_allclose(state.weights[:, 0], w, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.intercepts, [c], rtol=1e-6, atol=1e-9)


def test_normalised_steps_are_stable_at_any_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    H = X @ rng.normal(size=(3, 2))
    state = learned(SGD(rate=0.5, normalised=True, penalty=0.0), X, H, np.full(200, 1e6))
    np.testing.assert_allclose(SGD().predict(state, X), H, atol=1e-6)
    with pytest.raises(DivergenceError, match="SGD diverged"):
        learned(SGD(rate=10.0), X, H, np.full(200, 1e6))


def test_what_the_paper_shuffles_keeps_its_weights():
    rng = np.random.default_rng(0)
    X, H, weights = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), rng.random(50)
    bank = SGD(rate=0.01, first_epochs=3, shuffle_seed=1)
    heavy = weights > 0.5
    H[~heavy] = 100.0
    state = learned(bank, X, H, np.where(heavy, 1.0, 1e-12))
    assert np.abs(bank.predict(state, X)).max() < 5


@pytest.mark.parametrize("estimator", [SGDClassifier(random_state=0), SGDRegressor(random_state=0)], ids=repr)
def test_an_estimator_gets_the_weights(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y, weights = (X[:, 0] > 0).astype(int), rng.random(40) * 3
    bank = Adapter(estimator)
    assert bank.why_no_row_weights() is None
    state = bank.update(bank.init(FeatureKinds.numbers(3), 1), X, y[:, None].astype(float), weights)
    classes = {"classes": [0, 1]} if bank.task == "classification" else {}
    alone = type(estimator)(random_state=0).partial_fit(X, y, sample_weight=weights, **classes)
    np.testing.assert_array_equal(state.estimators[0].coef_, alone.coef_)


class WithoutWeights(Perceptron):
    """An estimator that knows no weights."""

    def partial_fit(self, X, y, classes=None):
        return super().partial_fit(X, y, classes)


def test_an_estimator_without_weights_refuses_them():
    model = BinaryRelevanceClassifier(learner=WithoutWeights())
    with pytest.raises(ValueError, match=r"BinaryRelevanceClassifier.*the partial_fit of WithoutWeights.*no sample_w"):
        model.fit(np.eye(2), np.eye(2), sample_weight=[1, 2])
