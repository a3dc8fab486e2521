"""Deep RBM features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from labelrace import BinaryRelevanceClassifier, RBMClassifier
from labelrace.related import rbm
from labelrace.related.rbm import train


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 6))
    return X, (X[:, :3] > 0.5).astype(int)


def units(total):
    """Return the units of a layer; the first is the bias."""
    result = 1 / (1 + np.exp(-total))
    result[0] = 1.0
    return result


def naive_machine(start, X, rate, minibatch, epochs):
    """Train a machine by contrastive divergence, row by row."""
    weights, before = start.copy(), np.zeros(start.shape)
    parts = [range(first, min(first + minibatch, len(X))) for first in range(0, len(X), minibatch)]
    for part in parts * epochs:
        step = np.zeros(start.shape)
        for row in part:
            x = np.append(1.0, X[row])
            z = units(x @ weights)
            again = units(z @ weights.T)
            step += np.outer(x, z) - np.outer(again, units(again @ weights))
        step = rate / len(parts) * (step / len(part) - 0.0002 * rate * weights)
        weights, before = weights + step + 0.1 * before, step
    return weights


def test_training_by_definition(rows):
    X, start = rows[0][:7], np.random.default_rng(1).normal(size=(7, 4))
    np.testing.assert_allclose(train(start, X, 0.5, 3, 2), naive_machine(start, X, 0.5, 3, 2), rtol=1e-12)


@pytest.mark.parametrize("n_first", [1, 25])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_odd_rows_by_definition(odd_rows, monkeypatch, n_first, form):
    """Machines on the first batch, whose range scales the features, and binary relevance on their hidden units."""
    X, Y = odd_rows(0, 40)
    starts = []

    def recorded(weights, *settings):
        starts.append(np.array(weights))
        return train(weights, *settings)

    monkeypatch.setattr(rbm, "train", recorded)
    model, edges = RBMClassifier(n_hidden=3, epochs=4, random_state=0), [0, n_first, n_first + 1, 40]
    learners = BinaryRelevanceClassifier()
    low, high = X[:n_first].min(axis=0), X[:n_first].max(axis=0)
    # Features that are constant there have no units, as they would have none if they came later.
    varies = high > low
    features = (X[:, varies] - low[varies]) / (high - low)[varies]
    for start, stop in pairwise(edges):
        model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
    for start in starts:
        assert not start[0].any()
        assert not start[:, 0].any()
        weights = naive_machine(start, features[:n_first], 0.1, 10, 4)
        features = np.array([units(np.append(1.0, x) @ weights)[1:] for x in features])
    assert [start.shape for start in starts] == [(varies.sum() + 1, 4), (4, 4)]
    for start, stop in pairwise(edges):
        learners.partial_fit(features[start:stop], Y[start:stop])
    expected = np.clip(learners.decision_function(features), -30, 30)
    np.testing.assert_allclose(model.decision_function(form(X)), expected, rtol=1e-5, atol=1e-7)


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
