"""What RACE promises beside the paper's numbers: batches do not matter, models merge, labels may come later."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge as SklearnRidge

from labelrace import RACEClassifier
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD
from labelrace.race import encoder
from labelrace.race.classifier import Race

BANKS = {
    "naive_bayes": NaiveBayes(),
    "ridge": Ridge(),
    "sgd": SGD(rate=0.01, penalty=0.1),
    "normalised sgd": SGD(rate=0.5, normalised=True),
}
KEYS = np.arange(12)
KINDS = np.array([0, 0, 0, 2, 2])
MAKE = {"dense": np.array, "sparse": scipy.sparse.csr_array}


def some_rows(seed, n=60, n_labels=12):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.random((n, 2)) < 0.5])
    Y = X @ rng.normal(size=(5, n_labels)) + rng.normal(size=(n, n_labels)) > 1
    return X, Y.astype(float)


def learned(race, hyperplanes, X, Y, cuts=(), make=np.array):
    state = race.start_from(hyperplanes, KINDS)
    bounds = [0, *sorted(cuts), len(Y)]
    for start, stop in pairwise(bounds):
        if start < stop:
            state = race.update(state, make(X[start:stop]), make(Y[start:stop]))
    return state


def assert_same_model(race, one, other, X):
    a, b = race.derive(one), race.derive(other)
    np.testing.assert_allclose(a.beta, b.beta, rtol=0, atol=1e-9)
    np.testing.assert_allclose(race.scores(a, X), race.scores(b, X), rtol=0, atol=1e-7)
    np.testing.assert_allclose(race.hard_scores(a, X), race.hard_scores(b, X), rtol=0, atol=1e-7)


@pytest.mark.parametrize("bank", sorted(BANKS))
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 59), max_size=6), st.sampled_from(sorted(MAKE)))
def test_batches_do_not_matter(bank, seed, cuts, kind):
    X, Y = some_rows(seed)
    hyperplanes = encoder.draw(12, 4, np.random.default_rng(seed))
    race = Race(BANKS[bank])
    whole, pieces = learned(race, hyperplanes, X, Y), learned(race, hyperplanes, X, Y, cuts, MAKE[kind])
    assert_same_model(race, whole, pieces, X)


@pytest.mark.parametrize("kind", sorted(MAKE))
@pytest.mark.parametrize("bank", ["naive_bayes", "ridge"])
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 59))
def test_merging_is_learning_all(bank, kind, seed, cut):
    X, Y = some_rows(seed)
    hyperplanes = encoder.draw(12, 4, np.random.default_rng(seed))
    race = Race(BANKS[bank], ridge=0.1)
    one = learned(race, hyperplanes, X[:cut], Y[:cut], make=MAKE[kind])
    other = learned(race, hyperplanes, X[cut:], Y[cut:], make=MAKE[kind])
    assert_same_model(race, race.merge(one, other), learned(race, hyperplanes, X, Y), X)


@pytest.mark.parametrize("kind", sorted(MAKE))
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("learner", ["naive_bayes", "ridge", "sgd"])
def test_single_precision_features(learner, encoding, kind):
    """Numbers of four bytes are learned as the same numbers of eight."""
    X, Y = some_rows(4)
    narrow = X.astype(np.float32)
    method = "classification" if learner == "naive_bayes" else "regression"
    models = []
    for features in (MAKE[kind](narrow), MAKE[kind](narrow.astype(np.float64))):
        model = RACEClassifier(method=method, encoding=encoding, learner=learner, random_state=0)
        model.partial_fit(features[:20], Y[:20]).partial_fit(features[20:], Y[20:].astype(np.uint8))
        scores = model.decision_function(features)
        assert scores.dtype == np.float64
        models.append((model.decoder_, scores, model.predict(features)))
    for single, double in zip(*models, strict=True):
        np.testing.assert_array_equal(single, double)


@pytest.mark.parametrize("bank", sorted(BANKS))
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_beta_that_is_available_is_beta_solved_again(bank, encoding):
    X, Y = some_rows(5)
    race = Race(BANKS[bank], encoding)
    state = learned(race, encoder.draw(12, 4, np.random.default_rng(0)), X[:40], Y[:40], [20])
    with_it = race.update(state, X[40:], Y[40:], race.derive(state))
    without_it = race.update(state, X[40:], Y[40:])
    assert_same_model(race, with_it, without_it, X)
    same = np.array_equal(with_it.encoder.A, state.encoder.A)
    assert same == (encoding == "fixed")


def test_ties_count_as_one():
    """A pseudo label is 1 where its plane is met exactly, and where its two classes are equally likely."""
    race = Race(NaiveBayes())
    hyperplanes = encoder.given(np.array([[1.0], [1.0]]), np.array([0.0]))
    X, Y = np.array([[1.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    state = race.update(race.start_from(hyperplanes, np.array([2])), X, Y)
    assert state.decoder.gram.tolist() == [[1.0]]
    derived = race.derive(state)
    assert race.bank.predict(derived.learners, X[:1]).tolist() == [[0.0]]
    np.testing.assert_array_equal(race.hard_scores(derived, X[:1]), derived.beta)
    assert derived.beta.tolist() == [[1.0, -1.0]]


GROWING = {"naive Bayes": NaiveBayes(), "ridge": Ridge(), "sgd": SGD(rate=0.5, normalised=True)}


def late_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 6)) * (rng.random((80, 6)) < 0.7)
    Y = (X @ rng.normal(size=(6, 12)) + 0.3 * rng.normal(size=(80, 12)) > 0.5).astype(float)
    X[:40, 4:], Y[:40, 9:] = 0, 0
    return X, Y


def learn_two(race, state, X, Y, make):
    for part in (slice(0, 15), slice(15, 40)):
        state = race.update(state, make(X[part]), make(Y[part]))
    return state


def assert_same(race, one, other, X):
    a, b = race.derive(one), race.derive(other)
    np.testing.assert_allclose(a.beta, b.beta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(race.scores(a, X), race.scores(b, X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.8])
@pytest.mark.parametrize("start", ["full", "first_batch"])
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("bank", GROWING)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_labels_that_come_later(bank, kind, encoding, start, forgetting, seed):
    race, make = Race(GROWING[bank], encoding, start, 0.01, forgetting), MAKE[kind]
    X, Y = late_rows(seed)
    hyperplanes, n_values = encoder.draw(9, 4, np.random.default_rng(seed)), np.zeros(6, dtype=int)
    grown = learn_two(race, race.start_from(hyperplanes, n_values), X[:40], Y[:40, :9], make)
    # In two steps, as they would come.
    first_rows = encoder.draw_rows(hyperplanes, KEYS[9:10], np.random.default_rng(1))
    first = encoder.grow(hyperplanes, first_rows)
    later_rows = encoder.draw_rows(first, KEYS[10:12], np.random.default_rng(2))
    both = encoder.grow(first, later_rows)
    grown = race.grow_rows(race.grow_rows(grown, first_rows), later_rows)
    knew = learn_two(race, race.start_from(both, n_values), X[:40], Y[:40], make)
    assert_same(race, grown, knew, make(X))
    grown, knew = (learn_two(race, state, X[40:], Y[40:], make) for state in (grown, knew))
    assert_same(race, grown, knew, make(X))
    np.testing.assert_allclose(grown.encoder.A, knew.encoder.A, atol=1e-9)
    np.testing.assert_allclose(grown.encoder.bias, knew.encoder.bias, atol=1e-9)


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_rows_without_new_labels_are_learned_as_if_there_were_none(encoding):
    race, rng = Race(NaiveBayes(), encoding), np.random.default_rng(0)
    X, Y = late_rows(0)
    ungrown = learn_two(
        race, race.start_from(encoder.draw(9, 4, rng), np.zeros(6, dtype=int)), X[:40], Y[:40, :9], np.asarray
    )
    grown = race.grow_rows(ungrown, encoder.draw_rows(ungrown.encoder, KEYS[9:12], rng))
    absent = np.where(np.arange(12) < 9, Y[40:], 0.0)
    ungrown = learn_two(race, ungrown, X[40:], Y[40:, :9], np.asarray)
    grown = learn_two(race, grown, X[40:], absent, np.asarray)
    np.testing.assert_allclose(race.derive(grown).beta[:, :9], race.derive(ungrown).beta, atol=1e-9)
    for one, other in zip(grown.learners.moments[:3], ungrown.learners.moments[:3], strict=True):
        np.testing.assert_array_equal(one, other)


# Probabilities.


@pytest.mark.parametrize("kind", sorted(MAKE))
@pytest.mark.parametrize("method", ["classification", "regression"])
def test_probabilities_by_definition(method, kind, softly_clipped):
    """Decoded pseudo labels, least-squares estimates of -1 and 1, brought to [0, 1] and cut there."""
    rng = np.random.default_rng(7)
    X = (rng.random((300, 8)) < 0.4).astype(float)
    Y = (X @ rng.random((8, 12)) + 0.2 * rng.normal(size=(300, 12)) > 2).astype(float)
    planes = encoder.draw(12, 5, rng)
    race = Race(NaiveBayes() if method == "classification" else Ridge())
    n_values = np.full(8, 2 if method == "classification" else 0)
    state = learned_all(race, race.start_from(planes, n_values), X[:200], Y[:200], MAKE[kind])
    H = (2 * Y[:200] - 1) @ planes.A + planes.bias
    if method == "classification":
        H = (H >= 0).astype(float)
        Q = np.column_stack([bernoulli(X[:200], h, X[200:]) for h in H.T])
    else:
        Q = SklearnRidge(alpha=1).fit(X[:200], H).predict(X[200:])
    assert np.linalg.matrix_rank(H) == 5
    decoded = Q @ np.linalg.lstsq(H, 2 * Y[:200] - 1, rcond=None)[0]
    likely = race.probabilities(race.derive(state), MAKE[kind](X[200:]))
    np.testing.assert_allclose(likely, softly_clipped((decoded + 1) / 2), atol=1e-8)
    assert (decoded < -1).any()


def learned_all(race, state, X, Y, make):
    for start in range(0, len(X), 50):
        state = race.update(state, make(X[start : start + 50]), make(Y[start : start + 50]))
    return state


def bernoulli(X, h, queries):
    """P(h = 1) of each query, by counting."""
    joint = []
    for value in (0, 1):
        own = X[h == value]
        share = (own.sum(axis=0) + 1) / (len(own) + 2)
        joint.append((len(own) + 1) / (len(X) + 2) * np.where(queries == 1, share, 1 - share).prod(axis=1))
    return joint[1] / (joint[0] + joint[1])
