"""Naive Bayes on nominal features, and on mixtures of both kinds."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB

import labelrace
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.learners.naive_bayes.bank import NaiveBayes, nominal

SEEDS = st.integers(0, 2**32 - 1)
FORMS = st.sampled_from(["density", "binned"])


def nominal_reference(n_values, X, h, row):
    """Compute the log odds of one pseudo label and one row from Laplace's probabilities."""
    odds = math.log((sum(h) + 1) / (len(h) - sum(h) + 1))
    for j, x in enumerate(row):
        if math.isnan(x):
            continue
        for label, sign in ((1, 1), (0, -1)):
            own = [value for value, its in zip(X[:, j], h, strict=True) if its == label and not math.isnan(value)]
            odds += sign * math.log((sum(value == x for value in own) + 1) / (len(own) + n_values[j]))
    return odds


def codes(rng, n_values, n, missing=0.0):
    X = np.column_stack([rng.integers(0, values, n) for values in n_values]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def pseudo_labels(rng, n):
    return (rng.random((n, 3)) < [0.5, 0.1, 0.0]).astype(float)


@settings(max_examples=60, deadline=None)
@given(
    SEEDS,
    st.lists(st.sampled_from([2, 2, 3, 6]), min_size=1, max_size=5),
    st.lists(st.integers(1, 29), max_size=4),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    FORMS,
)
def test_laplace_s_probabilities(learn, seed, n_values, cuts, missing, sparse, form):
    rng = np.random.default_rng(seed)
    X, queries, H = codes(rng, n_values, 30, missing), codes(rng, n_values, 10, missing), pseudo_labels(rng, 30)
    make = scipy.sparse.csr_array if sparse else np.array
    bank = NaiveBayes(numeric=form)
    got = bank.predict(bank.derive(learn(bank, n_values, make(X), H, cuts)), make(queries))
    expected = [[nominal_reference(n_values, X, H[:, c], row) for c in range(3)] for row in queries]
    np.testing.assert_allclose(got, expected, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.permutations([0, 2, 0, 3, 2]), st.sampled_from([0.0, 0.2]), FORMS)
def test_mixture_is_the_sum_of_its_parts(learn, seed, n_values, missing, form):
    """Log odds of independent features add up; the prior counts once."""
    rng = np.random.default_rng(seed)
    n_values = np.array(n_values)
    X, H = codes(rng, np.maximum(n_values, 1), 30, missing), pseudo_labels(rng, 30)
    X[:, n_values == 0] += rng.normal(size=(30, 2)).round(2)
    bank = NaiveBayes(numeric=form)
    prior = np.log((H.sum(axis=0) + 1) / (30 - H.sum(axis=0) + 1))
    expected = np.tile(prior, (30, 1))
    for j in range(len(n_values)):
        alone = learn(bank, n_values[[j]], X[:, [j]], H, [9])
        expected += bank.predict(bank.derive(alone), X[:, [j]]) - prior
    for make in (np.array, scipy.sparse.csr_array):
        together = learn(bank, n_values, make(X), H, [9])
        np.testing.assert_allclose(bank.predict(bank.derive(together), make(X)), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("m", [1, 31, 33, 4096, 4100])
def test_binary_features_as_in_scikit_learn(learn, m):
    """Many features: their logarithms are taken of products and in blocks."""
    rng = np.random.default_rng(m)
    X = (rng.random((60, m)) < rng.random(m)).astype(float)
    h = (rng.random(60) < 0.4).astype(float)
    theirs = BernoulliNB(alpha=1.0).fit(X, h)
    log = theirs.predict_joint_log_proba(X) - theirs.class_log_prior_
    expected = log[:, 1] - log[:, 0] + math.log((h.sum() + 1) / (61 - h.sum()))
    bank = NaiveBayes()
    for make in (np.array, scipy.sparse.csr_array):
        state = learn(bank, [2] * m, make(X), h[:, None], [13])
        np.testing.assert_allclose(bank.predict(bank.derive(state), make(X)).ravel(), expected, rtol=1e-9, atol=1e-9)


def test_counts_of_a_billion_do_not_overflow():
    """32 features of which one class has a billion rows and the other none, and the same the other way round."""
    many = 1e9
    counts = nominal.Counts(np.tile([[0.0, many]], (40, 1)), np.full(40, many), None)
    odds = nominal.log_odds(counts, FeatureKinds(np.full(40, 2)), np.array([many, many, 2 * many]))
    log = math.log(many + 1)
    np.testing.assert_allclose(odds.weights, np.tile([[-2 * log, 2 * log]], (40, 1)))
    np.testing.assert_allclose(odds.constant, [40 * log, -40 * log])


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans(), st.sampled_from([0.0, 0.2]), st.booleans())
def test_values_that_appear_later(learn, seed, sparse, missing, with_numeric):
    """Value 3 of the second feature comes in the third batch: then as if four values had been known."""
    rng = np.random.default_rng(seed)
    X, H = codes(rng, [2, 4, 3], 40, missing), pseudo_labels(rng, 40)
    X[:20, 1] = np.minimum(X[:20, 1], 1)
    X[20, 1] = 3
    X[0, 2] = 2
    told, untold = [2, 4, 3], [2, 2, 2]
    if with_numeric:
        X, told, untold = np.column_stack([rng.normal(size=40).round(1), X]), [0, *told], [0, *untold]
    make = scipy.sparse.csr_array if sparse else np.array
    bank = NaiveBayes()
    early, late = (bank.derive(learn(bank, kinds, make(X), H, [10, 20])) for kinds in (told, untold))
    np.testing.assert_array_equal(late.kinds.n_values, told)
    np.testing.assert_allclose(bank.predict(late, make(X)), bank.predict(early, make(X)), atol=1e-9)


def test_merging_is_learning_all_rows(learn):
    """Also where the two know different values of a feature, and only one of them saw missing ones."""
    rng = np.random.default_rng(0)
    X, H = codes(rng, [2, 4, 3], 50), pseudo_labels(rng, 50)
    X[:20, 1:] = np.minimum(X[:20, 1:], 1)
    X[20, 1:] = 3, 2
    X[30:35, 0] = np.nan
    X = np.column_stack([X, rng.normal(size=50)])
    bank = NaiveBayes()
    kinds = [2, 2, 2, 0]
    expected = bank.predict(bank.derive(learn(bank, kinds, X, H)), X)
    one, other = learn(bank, kinds, X[:20], H[:20]), learn(bank, kinds, X[20:], H[20:])
    for merged in (bank.merge(one, other), bank.merge(other, one)):
        np.testing.assert_allclose(bank.predict(bank.derive(merged), X), expected, atol=1e-9)
    again = bank.update(bank.merge(one, other), X, H)
    twice = learn(bank, kinds, np.vstack([X, X]), np.vstack([H, H]))
    np.testing.assert_allclose(bank.predict(bank.derive(again), X), bank.predict(bank.derive(twice), X), atol=1e-9)


@pytest.mark.parametrize("form", ["density", "binned"])
def test_nothing_learned_says_nothing(form):
    bank = NaiveBayes(numeric=form)
    derived = bank.derive(bank.init(np.array([2, 3]), 2))
    np.testing.assert_allclose(bank.predict(derived, np.array([[1.0, 2.0], [0.0, np.nan]])), 0, atol=1e-12)


def test_feature_that_is_always_missing(learn):
    rng = np.random.default_rng(1)
    X, H = np.column_stack([codes(rng, [2], 20), rng.normal(size=(20, 1)).round(1)]), pseudo_labels(rng, 20)
    lost = np.full((20, 2), np.nan)
    for form in ("density", "binned"):
        bank = NaiveBayes(numeric=form)
        expected = bank.predict(bank.derive(learn(bank, [2, 0], X, H)), X)
        for make in (np.array, scipy.sparse.csr_array):
            wide = make(np.column_stack([X, lost]))
            state = learn(bank, [2, 0, 3, 0], wide, H)
            np.testing.assert_allclose(bank.predict(bank.derive(state), wide), expected, atol=1e-9)


def test_round_off_says_nothing():
    """A feature whose values differ in their last digit is constant: it would decide everything otherwise."""
    Y = np.arange(40)[:, None] % 4 == 0
    X = np.where(Y, 0.4, np.nextafter(0.4, 1.0))
    model = labelrace.BinaryRelevanceClassifier().fit(X, Y)
    np.testing.assert_allclose(model.predict_proba([[0.4], [np.nextafter(0.4, 1.0)]]), 0.25, atol=0.02)
