"""Weights in recursive least squares against textbook formulas, and in the default model."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import labelrace
from labelrace import LabelRaceClassifier, measures
from labelrace.linear import warm_up
from labelrace.linear.rls import RLS
from labelrace.linear.warm_up import ALPHAS
from labelrace.streams.synthetic import SyntheticStream

SEEDS = st.integers(0, 2**32 - 1)


def sparse_rows(rng, n, m=12):
    """Draw rows that are mostly zeros, whose scaling does not depend on other rows."""
    return np.where(rng.random((n, m)) < 0.25, rng.random((n, m)) + 0.1, 0.0)


def scaled(X):
    damped = np.log1p(X)
    lengths = np.linalg.norm(damped, axis=1, keepdims=True)
    return damped / np.where(lengths > 0, lengths, 1.0)


def weighted_ridge(X, H, weights, precision, start):
    """Minimise the weighted squared error plus the distance from the start; the intercept is the last column."""
    Z = np.hstack([scaled(X), np.ones((len(X), 1))])
    A = Z.T @ (weights[:, None] * Z) + np.diag(precision)
    return start + np.linalg.solve(A, Z.T @ (weights[:, None] * (H - Z @ start))), 1 / np.diag(np.linalg.inv(A))


def coefficients(state):
    return np.vstack([np.asarray(state.weights), state.intercepts])


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_weighted_ridge_regression_block_by_block(form, seed):
    rng = np.random.default_rng(seed)
    bank, n = RLS(alpha=0.3, n_random_features=0), int(rng.integers(257, 400))
    X, H = sparse_rows(rng, n + 100), rng.normal(size=(n + 100, 3))
    weights = np.exp(rng.normal(size=n + 100) * 2)
    state = bank.update(bank.init(np.zeros(12, int), 3), form(X[:n]), H[:n], weights[:n])
    expected, precision = weighted_ridge(X[:n], H[:n], weights[:n], np.append(np.full(12, 0.3), 1.0), np.zeros((13, 3)))
    np.testing.assert_allclose(coefficients(state), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(0.3 + np.asarray(state.extra_precision)[:, 0], precision[:-1], rtol=1e-6)
    np.testing.assert_allclose(1 + state.intercept_extra_precision[0], precision[-1], rtol=1e-6)
    state = bank.update(state, form(X[n:]), H[n:], weights[n:])
    expected, precision = weighted_ridge(X[n:], H[n:], weights[n:], precision, expected)
    np.testing.assert_allclose(coefficients(state), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(0.3 + np.asarray(state.extra_precision)[:, 0], precision[:-1], rtol=1e-6)
    np.testing.assert_allclose(1 + state.intercept_extra_precision[0], precision[-1], rtol=1e-6)


@pytest.mark.parametrize("binary", [False, True])
@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_a_weight_is_the_row_as_often_within_a_block(binary, seed):
    """Scores before the block decide what is an error: then the hinge is the same for both. A label is recent."""
    rng = np.random.default_rng(seed)
    bank = RLS(alpha=0.5, n_random_features=0, binary=binary)
    X, H = sparse_rows(rng, 340), (rng.random((340, 4)) < 0.3).astype(float)
    H[:300, 3] = 0.0
    start = bank.update(bank.init(np.zeros(12, int), 4), X[:300], H[:300])
    weights = rng.integers(1, 4, 40)
    again = 300 + np.repeat(np.arange(40), weights)
    one = bank.update(start, X[300:], H[300:], weights.astype(float))
    other = bank.update(start, X[again], H[again])
    assert (one.rows, other.rows) == (340.0, 300.0 + len(again))
    for name in ("weights", "intercepts", "extra_precision", "intercept_extra_precision", "is_recent_label"):
        values = (np.asarray(getattr(state, name), dtype=float) for state in (one, other))
        np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-9, err_msg=name)


@given(seed=SEEDS)
@settings(max_examples=25, deadline=None)
def test_leave_one_out_scores_and_the_penalty(seed):
    rng = np.random.default_rng(seed)
    Z, H = scaled(sparse_rows(rng, 25)), (rng.random((25, 3)) < 0.4).astype(float)
    H[:2] = 1.0
    weights = np.exp(rng.normal(size=25))
    design = np.hstack([Z, np.ones((25, 1))])

    def left_out(alpha):
        scores = np.empty_like(H)
        for row in range(25):
            v = np.where(np.arange(25) == row, 0.0, weights)
            A = design.T @ (v[:, None] * design) + np.diag(np.append(np.full(12, alpha), 1.0))
            scores[row] = design[row] @ np.linalg.solve(A, design.T @ (v[:, None] * H))
        return scores

    ridge = warm_up.solve(Z, H, 0.4, clip=True, row_weights=weights)
    np.testing.assert_allclose(ridge.leave_one_out_scores(H), left_out(0.4), rtol=1e-6, atol=1e-8)
    errors = [(weights[:, None] * np.square(H - np.clip(left_out(alpha), 0, 1))).sum() for alpha in ALPHAS]
    chosen = warm_up.solve(Z, H, None, clip=True, row_weights=weights).alpha
    assert errors[int(np.argmin(np.abs(1.25 * ALPHAS - chosen)))] <= min(errors) * (1 + 1e-6)


@pytest.mark.parametrize("dense", [False, True])
def test_the_start_is_the_same_in_one_batch_and_in_several(dense):
    """The weights of the first rows are kept with them, until there are enough; some batches have none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 12)) if dense else sparse_rows(rng, 64)
    Y, weights = (X @ rng.normal(size=(12, 4)) > 0).astype(float), rng.random(64) + 0.5
    weights[8:16] = 1.0
    weights[32:40] = 1.0
    bank = RLS(binary=True)
    several = bank.init(np.zeros(12, int), 4)
    for part in np.array_split(np.arange(64), 8):
        plain = (weights[part] == 1.0).all()
        several = bank.update(several, X[part], Y[part], *([] if plain else [weights[part]]))
    whole = bank.update(bank.init(np.zeros(12, int), 4), X, Y, weights)
    np.testing.assert_array_equal(several.warm_up.weights, weights)
    np.testing.assert_allclose(coefficients(several), coefficients(whole), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [20, 250])
def test_all_rows_twice_are_rows_of_weight_2_in_the_start_of_the_default(n):
    """Scaling does not count weights, but the same ones for all rows would make no difference to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    Y = (X @ rng.normal(size=(6, 4)) > 0.5).astype(int)
    settled = {"alpha": 1.0, "n_random_features": 0, "random_state": 0}
    one = LabelRaceClassifier(**settled).fit(X, Y, sample_weight=np.full(n, 2.0))
    other = LabelRaceClassifier(**settled).fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)))
    for name in ("weights", "intercepts", "extra_precision"):
        values = (np.asarray(getattr(model.fitted.state.learners, name)) for model in (one, other))
        np.testing.assert_allclose(*values, rtol=1e-3, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("size", [1e-300, 1e-90, 1e-12, 1e6, 1e12])
def test_weights_of_any_size(size):
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(1500, 4)), sparse_rows(rng, 1500)):
        Y = (X[:, :3] > X.mean(axis=0)[:3]).astype(int)
        weights = np.where(rng.random(1500) < 0.5, 1.0, size)
        model = LabelRaceClassifier(random_state=0)
        for part in np.array_split(np.arange(1500), 6):
            model.partial_fit(X[part], Y[part], sample_weight=weights[part])
        assert model.fitted.state.learners.weights.dtype == np.float32
        assert measures.evaluate(Y, model.predict(X), measures="micro_f1")["micro_f1"] > 0.8


def test_heavy_rows_win():
    """Half of the rows have wrong labels, and little weight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    Y, is_wrong = (X[:, :3] > 0).astype(int), rng.random(3000) < 0.5
    given_y = np.where(is_wrong[:, None], 1 - Y, Y)
    model = LabelRaceClassifier(detect_drift=False, random_state=0)
    for part in np.array_split(np.arange(3000), 10):
        model.partial_fit(X[part], given_y[part], sample_weight=np.where(is_wrong, 0.01, 1.0)[part])
    scores = model.decision_function(X)
    assert measures.evaluate(Y, scores > 0, measures="micro_f1")["micro_f1"] > 0.9


def test_weights_near_one_are_hardly_weights_also_while_a_model_is_forked():
    stream = SyntheticStream(n_rows=6000, n_features=10, n_labels=8, drift="sudden", seed=1)
    with_weights, without = (LabelRaceClassifier(random_state=0) for _ in range(2))
    for X, Y in stream.batches(300):
        with_weights.partial_fit(X, Y, sample_weight=np.full(len(X), 1.0 + 1e-9))
        without.partial_fit(X, Y)
    assert with_weights.n_alarms_ == without.n_alarms_ > 0
    assert (with_weights.predict(X) != without.predict(X)).mean() < 0.01


def test_rows_without_a_known_label_are_left_out_with_their_weights():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 4)), rng.random(60)
    Y = (X[:, :3] > 0).astype(float)
    Y[::4] = np.nan
    known = ~np.isnan(Y[:, 0])
    one = LabelRaceClassifier(random_state=0).fit(X, Y, sample_weight=weights)
    other = LabelRaceClassifier(random_state=0).fit(X[known], Y[known], sample_weight=weights[known])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_weights_of_the_first_rows_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    Y, weights = (X[:, :3] > 0).astype(int), rng.random(40)
    model = LabelRaceClassifier(random_state=0).fit(X[:20], Y[:20], sample_weight=weights[:20])
    model.save(tmp_path / "model.safetensors")
    loaded = labelrace.load(tmp_path / "model.safetensors")
    for one in (model, loaded):
        one.partial_fit(X[20:], Y[20:], sample_weight=weights[20:])
    np.testing.assert_array_equal(model.decision_function(X), loaded.decision_function(X))
