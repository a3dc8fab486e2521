"""What an alarm does to a model, uncompressed and compressed: a drift is confirmed, a disturbance costs little."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import HashedRACEClassifier, LabelRaceClassifier
from labelrace.base.sparse import dense
from labelrace.measures import evaluate

MAKE = {
    "dense": lambda: LabelRaceClassifier(n_random_features=10, random_state=0),
    "sparse": lambda: LabelRaceClassifier(random_state=0),
    "compressed": lambda: HashedRACEClassifier(max_memory="1MB", random_state=0),
}
KINDS = pytest.mark.parametrize("kind", MAKE)


N_LABELS, N_WORDS = 20, 160


def stream(kind, n_rows=6000, drift=False):
    """Make texts of words that their labels have, six each, among others; after a drift, labels have other words."""
    rng = np.random.default_rng(1)
    Y = rng.random((n_rows, N_LABELS)) < 0.1
    X = (rng.random((n_rows, N_WORDS)) < 0.05).astype(float)
    for label in range(N_LABELS):
        words = np.arange(6 * label, 6 * label + 6)
        said = Y[:, label, None] & (rng.random((n_rows, 6)) < 0.5)
        if drift:
            X[n_rows // 2 :, (words + 48) % 120] += said[n_rows // 2 :]
            said[n_rows // 2 :] = False
        X[:, words] += said
    X = X + 0.1 * rng.normal(size=X.shape) if kind == "dense" else scipy.sparse.csr_array(X)
    return X, Y.astype(int)


def learn(model, X, Y, size=200):
    """Learn batches, and return the example F1 of each before it is learned."""
    values = []
    for start in range(0, X.shape[0], size):
        x, y = X[start : start + size], Y[start : start + size]
        if model.is_fitted:
            values.append(evaluate(y, dense(model.predict(x)), measures="example_f1")["example_f1"])
        model.partial_fit(x, y)
    return values


def forked(kind, rows=2000):
    """Make a model that has just had an alarm, because labels are mixed up, and rows to go on with."""
    X, Y = stream(kind)
    model = MAKE[kind]()
    learn(model, X[:rows], Y[:rows])
    mixed = np.random.default_rng(0).permutation(rows)
    for start in range(0, rows, 200):
        model.partial_fit(X[start : start + 200], Y[mixed[start : start + 200]])
        if model.n_alarms_:
            assert model.fitted.state.fork
            return model, X[rows:], Y[rows:]
    raise AssertionError("there was no alarm")


@KINDS
def test_mixed_up_labels_cost_little(kind):
    X, Y = stream(kind)
    undisturbed = MAKE[kind]()
    expected = learn(undisturbed, X, Y)
    assert undisturbed.n_alarms_ == 0
    model = MAKE[kind]()
    learn(model, X[:3000], Y[:3000])
    learn(model, X[:1000], Y[np.random.default_rng(0).permutation(1000)])
    assert model.n_alarms_ == 1
    found = learn(model, X[3000:], Y[3000:])
    # From the second batch after them on.
    assert np.mean(found[1:]) > (0.95 if kind == "compressed" else 0.97) * np.mean(expected[15:])
    assert model.n_drifts_ == 0
    assert not model.fitted.state.fork


@KINDS
def test_a_drift_that_lasts_is_confirmed(kind):
    X, Y = stream(kind, n_rows=8000, drift=True)
    model = MAKE[kind]()
    found = learn(model, X, Y)
    assert model.n_drifts_ == 1
    assert not model.fitted.state.fork
    assert np.mean(found[25:]) > 0.93 * np.mean(found[10:19])


def test_without_detection_nothing_forks():
    X, Y = stream("dense", drift=True)
    model = LabelRaceClassifier(detect_drift=False, random_state=0)
    learn(model, X, Y)
    assert model.n_alarms_ == model.n_drifts_ == 0


@KINDS
def test_a_fork_goes_on_from_a_file_as_it_was(kind, tmp_path):
    model, X, Y = forked(kind)
    model.save(tmp_path / "model")
    twin = labelrace.load(tmp_path / "model")
    assert twin.fitted.state.fork[0].comparison == model.fitted.state.fork[0].comparison
    for one in (model, twin):
        learn(one, X[:3000], Y[:3000])
    np.testing.assert_array_equal(dense(twin.predict_proba(X[3000:])), dense(model.predict_proba(X[3000:])))
    assert twin.n_drifts_ == model.n_drifts_


@KINDS
def test_labels_and_features_can_be_added_to_a_fork(kind):
    model, X, Y = forked(kind)
    before = model.decision_function(X[:50])
    wider = scipy.sparse.hstack([scipy.sparse.csr_array(X), X[:, :3]], format="csr") if kind != "dense" else X
    Y = np.hstack([Y, Y[:, :2]])
    model.partial_fit(wider[:1], Y[:1])
    second = model.fitted.state.fork[0].learners
    assert len(second.scaling.kinds) == wider.shape[1]
    assert len(second.first_seen) == 22 or kind == "compressed"
    assert np.abs(model.decision_function(wider[:50])[:, :20] - before).max() < 0.2
    learn(model, wider, Y)
    assert not model.fitted.state.fork


@KINDS
def test_of_a_fork_the_model_that_predicts_is_merged(kind):
    model, X, Y = forked(kind)
    alone = model.with_fitted(model.fitted.replace(model.fitted.schema, model.fitted.state._replace(fork=())))
    other = MAKE[kind]()
    learn(other, X, Y)
    both, expected = model.merge(other), alone.merge(other)
    assert not both.fitted.state.fork
    np.testing.assert_array_equal(both.decision_function(X[:50]), expected.decision_function(X[:50]))


def test_of_a_fork_the_model_that_predicts_is_compressed():
    X, Y = stream("sparse")
    model = LabelRaceClassifier(max_memory=4 * N_WORDS * 25, n_components=8, random_state=0)
    learn(model, X[:2000], Y[:2000])
    learn(model, X[:1000], Y[np.random.default_rng(0).permutation(1000)])
    assert model.fitted.state.fork
    assert model.n_components_ is None
    model.partial_fit(X[2000:2200], np.tile(Y[2000:2200], 3))
    assert model.n_components_ == 8
    assert (model.n_alarms_, model.fitted.state.fork) == (1, ())
    assert np.mean(learn(model, X[2200:], np.tile(Y[2200:], 3))) > 0.2


@KINDS
def test_rows_one_by_one_and_those_that_are_forgotten(kind):
    """A fork learns single rows and waits with them; features that are given to others are forgotten by both."""
    model, X, Y = forked(kind)
    for row in range(40):
        model.partial_fit(X[row : row + 1], Y[row : row + 1])
    assert model.fitted.state.fork
    after = model.fitted.reset_features(np.array([0, 5]))
    for state in (after.state, *after.state.fork):
        assert not np.asarray(state.learners.weights)[[0, 5]].any()


@KINDS
def test_labels_come_back_as_fast_as_they_went(kind):
    """After 1,000 rows without labels, one batch with labels is enough to predict about as many again."""
    X, Y = stream(kind)
    model = MAKE[kind]()
    learn(model, X[:3000], Y[:3000], 500)
    before = dense(model.predict(X[5000:])).sum()
    learn(model, X[:1000], np.zeros_like(Y[:1000]), 500)
    assert dense(model.predict(X[5000:])).sum() < 0.2 * before
    learn(model, X[3000:3500], Y[3000:3500], 500)
    assert 0.75 * before < dense(model.predict(X[5000:])).sum() < (1.6 if kind == "compressed" else 1.35) * before
