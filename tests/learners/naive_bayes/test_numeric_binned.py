"""Naive Bayes in the original's form against a loop: one row, one pseudo label, one feature at a time."""

import math

import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from labelrace.learners.naive_bayes.bank import NaiveBayes, numeric

SEEDS = st.integers(0, 2**32 - 1)
BANK = NaiveBayes(numeric="binned")


class NormalEstimator:
    """Weka's estimator of a numeric feature in one class."""

    def __init__(self, precision):
        self.d, self.s = precision, precision / 6
        self.n, self.sum, self.squares, self.mean = 0, 0.0, 0.0, 0.0

    def add(self, x):
        r = round(x / self.d) * self.d
        self.n, self.sum, self.squares = self.n + 1, self.sum + r, self.squares + r * r
        self.mean = self.sum / self.n
        sd = math.sqrt(abs(self.squares - self.mean * self.sum) / self.n)
        if sd > 1e-10:
            self.s = max(self.d / 6, sd)

    def probability(self, x):
        r = round(x / self.d) * self.d
        low, high = (r - self.mean - self.d / 2) / self.s, (r - self.mean + self.d / 2) / self.s
        # Far above the mean, one minus nearly nothing: which digits are left is a matter of round-off.
        certain = not 6 < low < 9
        return ndtr(high) - ndtr(low), certain


class DiscreteEstimator:
    """Weka's estimator of a nominal feature in one class."""

    def __init__(self, n_values):
        self.counts = [1] * n_values

    def add(self, x):
        self.counts[int(x)] += 1

    def probability(self, x):
        return self.counts[int(x)] / sum(self.counts), True


def precision_of(values):
    distinct = sorted({float(x) for x in values if not math.isnan(x)})
    return (distinct[-1] - distinct[0]) / (len(distinct) - 1) if len(distinct) > 1 else 0.01


class NaiveBayesUpdateable:
    """One of Weka's classifiers; the first batch fixes the precisions."""

    def __init__(self, n_values, first):
        self.class_counts = [1, 1]
        self.features = [
            [DiscreteEstimator(v) if v else NormalEstimator(precision_of(first[:, j])) for j, v in enumerate(n_values)]
            for _ in range(2)
        ]

    def add(self, row, label):
        self.class_counts[label] += 1
        for estimator, x in zip(self.features[label], row, strict=True):
            if not math.isnan(x):
                estimator.add(x)

    def log_odds(self, row):
        log, all_certain = [math.log(count / sum(self.class_counts)) for count in self.class_counts], True
        for label in (0, 1):
            for estimator, x in zip(self.features[label], row, strict=True):
                if not math.isnan(x):
                    p, certain = estimator.probability(x)
                    log[label] += math.log(max(p, 1e-75))
                    all_certain &= certain
        return log[1] - log[0], all_certain


def reference(n_values, X, H, first, queries):
    """Return log odds of the queries, and whether round-off leaves them their digits."""
    odds, certain = np.zeros((len(queries), H.shape[1])), np.zeros((len(queries), H.shape[1]), bool)
    for c in range(H.shape[1]):
        model = NaiveBayesUpdateable(n_values, X[:first])
        for row, h in zip(X, H[:, c], strict=True):
            model.add(row, int(h))
        for i, row in enumerate(queries):
            odds[i, c], certain[i, c] = model.log_odds(row)
    return odds, certain


def table(rng, n_values, n, missing):
    """Make codes, and numbers on a grid of eighths, so that their sums are exact in any order."""
    X = np.zeros((n, len(n_values)))
    for j, values in enumerate(n_values):
        X[:, j] = rng.integers(0, values, n) if values else np.round(8 * rng.normal(0, rng.choice([0.5, 4]), n)) / 8
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


@settings(max_examples=60, deadline=None)
@given(
    SEEDS,
    st.lists(st.sampled_from([0, 0, 2, 3, 5]), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.3]),
    st.lists(st.integers(1, 29), max_size=4),
    st.booleans(),
)
def test_weka_row_by_row(learn, seed, n_values, missing, cuts, sparse):
    rng = np.random.default_rng(seed)
    X, queries = table(rng, n_values, 30, missing), table(rng, n_values, 15, missing)
    H = (rng.random((30, 3)) < [0.5, 0.1, 0.0]).astype(float)
    make = scipy.sparse.csr_array if sparse else np.array
    got = BANK.predict(BANK.derive(learn(BANK, n_values, make(X), H, cuts)), make(queries))
    expected, certain = reference(n_values, X, H, min([*cuts, 30]), queries)
    np.testing.assert_allclose(got[certain], expected[certain], rtol=1e-6, atol=1e-6)


def test_most_of_the_above_is_certain():
    rng = np.random.default_rng(0)
    X = table(rng, [0, 0, 2], 30, 0.1)
    H = (rng.random((30, 3)) < [0.5, 0.1, 0.0]).astype(float)
    assert reference([0, 0, 2], X, H, 10, X)[1].mean() > 0.8


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans())
def test_precision_is_the_mean_step(seed, sparse):
    rng = np.random.default_rng(seed)
    X = table(rng, [0] * 4, int(rng.integers(1, 12)), 0.3)
    X[:, 0] = 2.5
    got = numeric.precision(scipy.sparse.csr_array(X) if sparse else X)
    expected = [precision_of(X[:, j]) if not np.isnan(X[:, j]).all() else 0.01 for j in range(4)]
    np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_rounding_is_half_to_even():
    width = np.array([0.5, 2.0])
    X = np.array([[0.25, 1.0], [0.75, 3.0], [-0.25, -5.0], [0.3, 5.1]])
    expected = [[0.0, 0.0], [1.0, 4.0], [0.0, -4.0], [0.5, 6.0]]
    np.testing.assert_allclose(numeric.rounded(X, width), expected)
    np.testing.assert_allclose(numeric.rounded(scipy.sparse.csr_array(X), width).toarray(), expected)


def test_precision_stays_that_of_the_first_batch(learn):
    """Later batches have finer values; they are rounded all the same."""
    X = np.array([[0.0], [1.0], [2.0], [0.4], [1.6], [1.4]])
    H = np.array([[0.0], [1.0], [1.0], [0.0], [1.0], [0.0]])
    coarse = np.array([[0.0], [1.0], [2.0], [0.0], [2.0], [1.0]])
    fine, rounded = (learn(BANK, [0], values, H, [3]) for values in (X, coarse))
    np.testing.assert_array_equal(fine.precision, [1.0])
    queries = np.array([[0.2], [0.9], [1.7], [30.0], [-30.0]])
    got = BANK.predict(BANK.derive(fine), queries)
    np.testing.assert_allclose(got, BANK.predict(BANK.derive(rounded), np.rint(queries)), atol=1e-12)
    # Where both classes are hopeless, each has the least probability there is, and the prior decides.
    np.testing.assert_allclose(got[3:], np.log((3 + 1) / (3 + 1)), atol=1e-12)


def test_bins_of_different_first_batches_do_not_merge():
    state = BANK.init(np.array([0, 2]), 1)
    other = state._replace(precision=state.precision + 1.0)
    assert "first batch" in BANK.why_unmergeable(state, other)
    assert BANK.why_unmergeable(state, state) is None
    assert NaiveBayes().why_unmergeable(state, other) is None
