"""Deep RBM features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace import BinaryRelevanceClassifier, RBMClassifier
from labelrace.models.rbm import hidden, trained


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 6))
    return X, (X[:, :3] > 0.5).astype(int)


def test_training_by_definition(rows):
    X = rows[0][:7]
    weights, before = np.random.default_rng(1).normal(size=(7, 4)), np.zeros((7, 4))
    expected = weights.copy()

    def units(total):
        result = 1 / (1 + np.exp(-total))
        result[0] = 1.0
        return result

    for part in (range(3), range(3, 6), range(6, 7)) * 2:
        step = np.zeros((7, 4))
        for row in part:
            x = np.append(1.0, X[row])
            z = units(x @ expected)
            again = units(z @ expected.T)
            step += np.outer(x, z) - np.outer(again, units(again @ expected))
        step = 0.5 / 3 * (step / len(part) - 0.0002 * 0.5 * expected)
        expected, before = expected + step + 0.1 * before, step
    np.testing.assert_allclose(trained(weights, X, 0.5, 3, 2), expected, rtol=1e-12)


def test_learners_see_the_hidden_units(rows):
    X, Y = rows
    model = RBMClassifier(random_state=0, epochs=5).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    state = model._fitted.state
    scaled = (X - X[:40].min(axis=0)) / np.ptp(X[:40], axis=0)
    features = hidden(state.deeper[0], hidden(state.first, scaled))
    by_hand = BinaryRelevanceClassifier().partial_fit(features[:40], Y[:40]).partial_fit(features[40:], Y[40:])
    np.testing.assert_allclose(
        model.decision_function(X), np.clip(by_hand.decision_function(features), -30, 30), rtol=1e-6, atol=1e-8
    )


def test_machines_stay_after_the_first_batch(rows):
    X, Y = rows
    model = RBMClassifier(random_state=0, epochs=5).partial_fit(X[:40], Y[:40])
    before = model._fitted.state
    after = model.partial_fit(X[40:], Y[40:])._fitted.state
    np.testing.assert_array_equal(after.first, before.first)
    np.testing.assert_array_equal(after.deeper, before.deeper)


def test_one_layer_and_regressors(rows):
    X, Y = rows
    model = RBMClassifier(n_layers=1, n_hidden=20, learner="ridge", random_state=0).fit(X, Y)
    assert (model.predict(X) == Y).mean() > 0.8


def test_new_labels_and_features_were_absent_so_far(rows):
    X, Y = scipy.sparse.csr_array(np.column_stack([rows[0], np.r_[np.zeros(40), np.ones(40)]])), rows[1].copy()
    Y[:40, 2] = 0
    late = RBMClassifier(random_state=0, epochs=5).partial_fit(X[:40, :6], Y[:40, :2]).partial_fit(X[40:], Y[40:])
    early = RBMClassifier(random_state=0, epochs=5).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    np.testing.assert_allclose(late.decision_function(X), early.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize(("name", "value"), [("n_hidden", 0), ("n_layers", 1.5), ("epochs", 0), ("rate", 0)])
def test_wrong_parameters(rows, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        RBMClassifier(**{name: value}).fit(*rows)
