"""Learners and features that are added later: the bank is the one that had them from the start, always 0."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from helpers.banks import add_features, add_targets
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron

from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

BANKS = {
    "density": NaiveBayes(),
    "binned": NaiveBayes(numeric="binned"),
    "ridge": Ridge(),
    "ridge without a penalty": Ridge(alpha=0.0),
    "sgd": SGD(rate=0.5, normalised=True),
    "weka": replace(SGD.weka(), first_epochs=3),
}
MAKE = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}
# Numbers, a nominal feature with four values, a binary one; the last three are the ones that come later.
KINDS = np.array([0, 4, 0, 2, 0, 3, 2])
KNOWN = 4


def some_rows(seed, n_components=5):
    """Draw rows in which the later features and components are 0 in the first half."""
    rng = np.random.default_rng(seed)
    X = np.where(KINDS > 0, rng.integers(0, np.maximum(KINDS, 1), (40, len(KINDS))), rng.normal(3, 1, (40, len(KINDS))))
    X[rng.random(X.shape) < 0.3] = 0
    H = (rng.random((40, n_components)) < 0.4).astype(float)
    X[:20, KNOWN:], H[:20, 3:] = 0, 0
    return X, H


def learn(bank, state, X, H, make):
    for part in (slice(0, 12), slice(12, 20)):
        state = bank.update(state, make(X[part]), make(H[part]))
    return state


def assert_same(bank, one, other, X):
    predicted = (bank.predict(bank.derive(state), X) for state in (one, other))
    np.testing.assert_allclose(*predicted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", BANKS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_grown_bank_is_the_one_that_knew(name, kind, missing, seed):
    bank, make = BANKS[name], MAKE[kind]
    X, H = some_rows(seed)
    if missing and bank.skips_missing:
        X[3:6, :3], X[30, [0, 5, 6]] = np.nan, np.nan
    more_targets = add_targets(bank, learn(bank, bank.init(KINDS, 3), X[:20], H[:20, :3], make), 3, 5)
    more_features = add_features(bank, learn(bank, bank.init(KINDS[:KNOWN], 5), X[:20, :KNOWN], H[:20], make), KINDS)
    knew = learn(bank, bank.init(KINDS, 5), X[:20], H[:20], make)
    later = learn(bank, knew, X[20:], H[20:], make)
    for grown in (more_targets, more_features):
        assert_same(bank, grown, knew, make(X))
        assert_same(bank, learn(bank, grown, X[20:], H[20:], make), later, make(X))


@pytest.mark.parametrize("name", BANKS)
def test_growing_is_pure_and_works_before_anything_is_learned(name, assert_pure):
    bank = BANKS[name]
    X, H = some_rows(0)
    wider = assert_pure(partial(add_features, bank), bank.init(KINDS[:KNOWN], 3), KINDS)
    grown = assert_pure(partial(add_targets, bank), wider, 3, 5)
    assert_same(bank, learn(bank, grown, X, H, np.asarray), learn(bank, bank.init(KINDS, 5), X, H, np.asarray), X)
    later = learn(bank, bank.init(KINDS[:KNOWN], 3), X[:, :KNOWN], H[:, :3], np.asarray)
    assert_pure(partial(add_targets, bank), assert_pure(partial(add_features, bank), later, KINDS), 3, 5)


def test_a_bank_knows_best_how_many_values_known_features_have():
    bank, X = NaiveBayes(), np.array([[0.0], [7.0]])
    state = bank.update(bank.init(np.array([2]), 1), X, X > 0)
    assert add_features(bank, state, [2, 0]).kinds.n_values.tolist() == [8, 0]


def test_banks_that_cannot_grow_say_so():
    bank = Adapter(Perceptron())
    assert "Perceptron" in bank.why_no_new_components()
    assert "Perceptron" in bank.why_no_new_features()
    for other in BANKS.values():
        assert other.why_no_new_components() is other.why_no_new_features() is None


def test_ridge_does_not_grow_beyond_its_matrix():
    with pytest.raises(ValueError, match="at most 20000 feature columns"):
        add_features(Ridge(), Ridge().init(np.array([0]), 1), np.zeros(20_001, dtype=int))
