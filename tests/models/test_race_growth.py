"""RACE with labels and features that come later: exactly the model that knew them, always absent, from the start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.core import encoder
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD
from labelrace.models.race import Race

BANKS = {"naive Bayes": NaiveBayes(), "ridge": Ridge(), "sgd": SGD(rate=0.5, normalised=True)}
MAKE = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}


def some_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 6)) * (rng.random((80, 6)) < 0.7)
    Y = (X @ rng.normal(size=(6, 12)) + 0.3 * rng.normal(size=(80, 12)) > 0.5).astype(float)
    X[:40, 4:], Y[:40, 9:] = 0, 0
    return X, Y


def learn(race, state, X, Y, make):
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
@pytest.mark.parametrize("bank", BANKS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_labels(bank, kind, encoding, start, forgetting, seed):
    race, make = Race(BANKS[bank], encoding, start, 0.01, forgetting), MAKE[kind]
    X, Y = some_rows(seed)
    hyperplanes, n_values = encoder.draw(9, 4, np.random.default_rng(seed)), np.zeros(6, dtype=int)
    grown = learn(race, race.start_from(hyperplanes, n_values), X[:40], Y[:40, :9], make)
    # In two steps, as they would come.
    grown = race.grow_labels(race.grow_labels(grown, 10, np.random.default_rng(1)), 12, np.random.default_rng(2))
    first = encoder.grow(hyperplanes, encoder.draw_rows(hyperplanes, 1, np.random.default_rng(1)))
    both = encoder.grow(first, encoder.draw_rows(first, 2, np.random.default_rng(2)))
    knew = learn(race, race.start_from(both, n_values), X[:40], Y[:40], make)
    assert_same(race, grown, knew, make(X))
    grown, knew = (learn(race, state, X[40:], Y[40:], make) for state in (grown, knew))
    assert_same(race, grown, knew, make(X))
    np.testing.assert_allclose(grown.encoder.A, knew.encoder.A, atol=1e-9)
    np.testing.assert_allclose(grown.encoder.bias, knew.encoder.bias, atol=1e-9)


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_rows_without_new_labels_are_learned_as_if_there_were_none(encoding):
    race, rng = Race(NaiveBayes(), encoding), np.random.default_rng(0)
    X, Y = some_rows(0)
    ungrown = learn(race, race.start_from(encoder.draw(9, 4, rng), np.zeros(6, dtype=int)), X[:40], Y[:40, :9], np.asarray)
    grown = race.grow_labels(ungrown, 12, rng)
    absent = np.where(np.arange(12) < 9, Y[40:], 0.0)
    ungrown = learn(race, ungrown, X[40:], Y[40:, :9], np.asarray)
    grown = learn(race, grown, X[40:], absent, np.asarray)
    np.testing.assert_allclose(race.derive(grown).beta[:, :9], race.derive(ungrown).beta, atol=1e-9)
    for one, other in zip(grown.learners.moments[:3], ungrown.learners.moments[:3], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("bank", BANKS)
def test_features(bank, kind, encoding):
    race, make, n_values = Race(BANKS[bank], encoding), MAKE[kind], np.zeros(6, dtype=int)
    X, Y = some_rows(3)
    hyperplanes = encoder.draw(12, 4, np.random.default_rng(3))
    grown = learn(race, race.start_from(hyperplanes, n_values[:4]), X[:40, :4], Y[:40], make)
    grown = race.grow_features(grown, n_values)
    knew = learn(race, race.start_from(hyperplanes, n_values), X[:40], Y[:40], make)
    assert_same(race, grown, knew, make(X))
    grown, knew = (learn(race, state, X[40:], Y[40:], make) for state in (grown, knew))
    assert_same(race, grown, knew, make(X))
