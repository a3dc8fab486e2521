"""Naive Bayes by densities against its description: normal classes, each with imagined rows like all rows."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from labelrace.learners.naive_bayes.bank import NaiveBayes

SEEDS = st.integers(0, 2**32 - 1)
CUTS = st.lists(st.integers(1, 39), max_size=5)


def mean_and_variance(values, weights):
    total = math.fsum(weights)
    mean = math.fsum(w * x for w, x in zip(weights, values, strict=True)) / total
    return mean, math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)) / total


def log_density(x, mean, variance):
    return -0.5 * math.log(2 * math.pi * variance) - (x - mean) ** 2 / (2 * variance)


def reference(X, h, row, smoothing):
    """Compute the log odds of one pseudo label and one row."""
    odds = math.log((sum(h) + 1) / (len(h) - sum(h) + 1))
    for j, x in enumerate(row):
        everything = [(value, label) for value, label in zip(X[:, j], h, strict=True) if not math.isnan(value)]
        values = [value for value, _ in everything]
        if math.isnan(x) or not values or max(values) == min(values):
            continue
        mean, variance = mean_and_variance(values, [1.0] * len(values))
        sd = math.sqrt(variance)
        for label, sign in ((1, 1), (0, -1)):
            own = [value for value, its in everything if its == label]
            # Two values one deviation from the mean have the mean and variance of all rows.
            rows, weights = [*own, mean - sd, mean + sd], [1.0] * len(own) + [smoothing / 2] * 2
            odds += sign * log_density(x, *mean_and_variance(rows, weights))
    return odds


def all_of_reference(X, H, queries, smoothing=1.0):
    return np.array([[reference(X, H[:, c], row, smoothing) for c in range(H.shape[1])] for row in queries])


def table(rng, n, d, missing=0.0):
    X = rng.normal(size=(n, d)) * rng.choice([0.3, 5], d) + rng.choice([0.0, 2.0], d)
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


def pseudo_labels(rng, n):
    """Make a balanced pseudo label, a rare one, one that is never 1 and one that is never 0."""
    return (rng.random((n, 4)) < [0.5, 0.1, 0.0, 1.0]).astype(float)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 4), CUTS, st.sampled_from([0.0, 0.3]), st.booleans(), st.sampled_from([1.0, 0.25, 7.0]))
def test_description(learn, seed, d, cuts, missing, sparse, smoothing):
    rng = np.random.default_rng(seed)
    X, queries, H = table(rng, 40, d, missing), table(rng, 10, d, missing), pseudo_labels(rng, 40)
    X[:, 0] = np.where(np.isnan(X[:, 0]), np.nan, 0.1)  # constant
    make = scipy.sparse.csr_array if sparse else np.array
    bank = NaiveBayes(smoothing=smoothing)
    got = bank.predict(bank.derive(learn(bank, [0] * d, make(X), H, cuts)), make(queries))
    np.testing.assert_allclose(got, all_of_reference(X, H, queries, smoothing), rtol=1e-7, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(SEEDS, CUTS, st.sampled_from([0.0, 0.2]))
def test_dense_and_sparse_batches_mix(learn, seed, cuts, missing):
    """The moments' shift is then that of a dense batch, or none, whichever came first."""
    rng = np.random.default_rng(seed)
    X, H = table(rng, 40, 3, missing), pseudo_labels(rng, 40)
    bank = NaiveBayes()
    expected = bank.predict(bank.derive(learn(bank, [0] * 3, X, H, cuts)), X)
    for first in (np.array, scipy.sparse.csr_array):
        then = scipy.sparse.csr_array if first is np.array else np.array
        state = bank.update(bank.init(np.zeros(3, int), 4), first(X[:7]), H[:7])
        derived = bank.derive(bank.update(state, then(X[7:]), H[7:]))
        for make in (first, then):
            np.testing.assert_allclose(bank.predict(derived, make(X)), expected, rtol=1e-8, atol=1e-8)


def test_large_mean_beside_a_small_spread(learn):
    """Around a million with a deviation of one: as around zero."""
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(60, 3)) * 64) / 64
    H = pseudo_labels(rng, 60)
    bank = NaiveBayes()
    expected = all_of_reference(Z, H, Z)
    for make, cuts in ((np.array, []), (np.array, [1]), (np.array, [20, 40]), (scipy.sparse.csr_array, [20, 40])):
        derived = bank.derive(learn(bank, [0] * 3, make(Z + 1e6), H, cuts))
        for form in (np.array, scipy.sparse.csr_array):
            np.testing.assert_allclose(bank.predict(derived, form(Z + 1e6)), expected, rtol=1e-6, atol=1e-6)


def test_a_large_mean_and_sparse_batches_after_a_dense_one(learn):
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(60, 3)) * 64) / 64
    H = pseudo_labels(rng, 60)
    bank = NaiveBayes()
    state = bank.update(learn(bank, [0] * 3, Z[:20] + 1e6, H[:20]), scipy.sparse.csr_array(Z[20:] + 1e6), H[20:])
    np.testing.assert_allclose(bank.predict(bank.derive(state), Z + 1e6), all_of_reference(Z, H, Z), atol=1e-6)


@pytest.mark.parametrize("offsets", [(0.0, 0.0), (1e6, 1e6 + 3), (0.0, 1e4), (-50.0, 50.0)])
def test_merging_is_learning_all_rows(learn, offsets):
    """Also where the two learned about very different values, and so keep their sums about different shifts."""
    rng = np.random.default_rng(1)
    X, H = np.round(rng.normal(size=(60, 3)) * 64) / 64, pseudo_labels(rng, 60)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:25] += offsets[0]
    X[25:] += offsets[1]
    bank = NaiveBayes()
    one, other = learn(bank, [0] * 3, X[:25], H[:25]), learn(bank, [0] * 3, X[25:], H[25:])
    expected = all_of_reference(X - offsets[0], H, X - offsets[0])
    for merged in (bank.merge(one, other), bank.merge(other, one)):
        np.testing.assert_allclose(bank.predict(bank.derive(merged), X), expected, rtol=1e-6, atol=1e-6)


def test_merging_with_nothing(learn):
    rng = np.random.default_rng(2)
    X, H = rng.normal(size=(40, 3)) + 1e6, pseudo_labels(rng, 40)
    bank = NaiveBayes()
    nothing, state = bank.init(np.zeros(3, int), 4), learn(bank, [0] * 3, X, H)
    expected = bank.predict(bank.derive(state), X)
    for merged in (bank.merge(state, nothing), bank.merge(nothing, state)):
        np.testing.assert_allclose(bank.predict(bank.derive(merged), X), expected, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e6, 1e-9])
@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_constant_feature_says_nothing(learn, value, make):
    rng = np.random.default_rng(3)
    X, H = table(rng, 40, 2), pseudo_labels(rng, 40)
    with_constant = np.column_stack([X, np.full(40, value)])
    bank = NaiveBayes()
    expected = bank.predict(bank.derive(learn(bank, [0] * 2, X, H)), X)
    derived = bank.derive(learn(bank, [0] * 3, make(with_constant), H, [7, 20]))
    np.testing.assert_allclose(bank.predict(derived, make(with_constant)), expected, atol=1e-8)
    elsewhere = np.column_stack([X, np.full(40, value + 1)])
    np.testing.assert_allclose(bank.predict(derived, make(elsewhere)), expected, atol=1e-8)


def test_scikit_learn_where_there_are_many_rows(learn):
    """With many rows of both classes, imagined ones weigh little."""
    rng = np.random.default_rng(4)
    h = (rng.random(4000) < 0.3).astype(float)
    X = rng.normal(size=(4000, 3)) * np.where(h[:, None] > 0, [1, 2, 0.5], 1.0) + h[:, None] * [0.5, 0.0, -1.0]
    theirs = GaussianNB().fit(X, h).predict_log_proba(X[:200])
    bank = NaiveBayes()
    ours = bank.predict(bank.derive(learn(bank, [0] * 3, X, h[:, None], [1000])), X[:200]).ravel()
    np.testing.assert_allclose(ours, theirs[:, 1] - theirs[:, 0], atol=0.05, rtol=0.02)
