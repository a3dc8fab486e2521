"""Ridge regression from sums, against scikit-learn on all rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

from labelrace.learners.regression import Regression
from labelrace.learners.sums import Sums

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) * [1, 5, 0.1, 1, 2, 1] + [0, 50, 1, -3, 0, 7]
X[:, 5] = 7.0
Y = (X[:, :5] @ RNG.normal(size=(5, 4)) + RNG.normal(size=(120, 4)) > X[:, :5].sum(axis=1, keepdims=True) / 9) * 1.0


@pytest.fixture
def state():
    keeper = Sums()
    return keeper.update(keeper.update(keeper.init(6, 4), X[:50], Y[:50]), X[50:], Y[50:])


def fitted(regression, state):
    reading = regression.read(state)
    return reading, reading.fit(reading.cross(state.xy.dense, state.sum_y), state.sum_y)


def test_standardised_columns_and_a_free_intercept(state):
    _, linear = fitted(Regression(penalty=3.0), state)
    scaler = StandardScaler().fit(X)
    expected = Ridge(alpha=3.0).fit(scaler.transform(X), Y).predict(scaler.transform(X))
    np.testing.assert_allclose(linear.predict(X), expected, atol=1e-9)
    assert (linear.weights[5] == 0).all()


def test_unscaled_columns(state):
    _, linear = fitted(Regression(penalty=3.0, standardises=False), state)
    np.testing.assert_allclose(linear.predict(X), Ridge(alpha=3.0).fit(X, Y).predict(X), atol=1e-9)


def test_no_penalty(state):
    _, linear = fitted(Regression(penalty=0.0), state)
    np.testing.assert_allclose(linear.predict(X), LinearRegression().fit(X, Y).predict(X), atol=1e-8)


def test_a_penalised_intercept(state):
    reading, linear = fitted(Regression(penalty=0.1, standardises=False, penalises_intercept=True), state)
    ones = np.column_stack([np.ones(120), X])
    weights = np.linalg.solve(ones.T @ ones + 0.1 * np.eye(7), ones.T @ Y)
    np.testing.assert_allclose(linear.predict(X), ones @ weights, atol=1e-8)
    C = X.T @ Y
    hat = C.T @ np.linalg.solve(X.T @ X + 0.1 * np.eye(6), C)
    white = reading.factor.whiten(C)
    np.testing.assert_allclose(white.T @ white, hat, rtol=1e-8)
    np.testing.assert_allclose(reading.factor.unwhiten(white), np.linalg.solve(X.T @ X + 0.1 * np.eye(6), C), rtol=1e-6)


def test_the_penalty_is_that_of_generalised_cross_validation(state):
    """Against the definition, with the hat matrix of each candidate."""
    reading, linear = fitted(Regression(), state)
    Z = StandardScaler().fit_transform(X[:, :5])
    candidates = 10.0 ** np.arange(-5.0, 2.25, 0.5) * 120
    errors = []
    for penalty in candidates:
        hat = Z @ np.linalg.solve(Z.T @ Z + penalty * np.eye(5), Z.T)
        centred = Y - Y.mean(axis=0)
        errors.append(((centred - hat @ centred) ** 2).sum() / (120 - 1 - np.trace(hat)) ** 2)
    assert reading.penalty == pytest.approx(candidates[np.argmin(errors)])
    np.testing.assert_allclose(linear.predict(X), fitted(Regression(penalty=reading.penalty), state)[1].predict(X))


def test_noise_is_penalised_more_than_signal():
    rng, keeper = np.random.default_rng(1), Sums()
    signal = (X[:, :4] > X[:, :4].mean(axis=0)) * 1.0
    noise = (rng.random((120, 4)) < 0.5) * 1.0
    chosen = [Regression().read(keeper.update(keeper.init(6, 4), X, labels)).penalty for labels in (signal, noise)]
    assert chosen[0] < chosen[1]


@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_fewer_rows_than_columns(n_rows):
    keeper = Sums()
    state = keeper.update(keeper.init(6, 4), X[:n_rows], Y[:n_rows])
    _, linear = fitted(Regression(), state)
    assert np.isfinite(linear.predict(X)).all()
