"""RACE against the paper's algorithm as the authors' program runs it, written out naively: all four variants."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.sgd import SGD
from labelrace.race import encoder
from labelrace.race.classifier import Race

FIRST = 10
# Java's order of ten rows, shuffled with seed 1: printed by a Java program.
JAVA_ORDER_OF_TEN = [6, 9, 7, 8, 4, 2, 0, 3, 1, 5]
BANKS = {"classification": NaiveBayes(numeric="binned"), "regression": SGD.weka()}


class WekaNaiveBayes:
    """One pseudo label's classifier: keeps all rows and computes everything when asked."""

    def __init__(self, n_values):
        self.n_values, self.rows, self.labels = n_values, [], []

    def learn(self, X, h):
        if not self.rows:
            self.d = []
            for j in range(X.shape[1]):
                distinct = sorted(set(X[:, j]))
                self.d.append((distinct[-1] - distinct[0]) / (len(distinct) - 1) if len(distinct) > 1 else 0.01)
        self.rows += list(X)
        self.labels += list(h)

    def probability(self, j, x, label):
        own = [row[j] for row, its in zip(self.rows, self.labels, strict=True) if its == label]
        if self.n_values[j]:
            return (sum(value == x for value in own) + 1) / (len(own) + self.n_values[j]), True
        d = self.d[j]
        own = [round(value / d) * d for value in own]
        mean = sum(own) / len(own) if own else 0.0
        sd = math.sqrt(sum((value - mean) ** 2 for value in own) / len(own)) if own else 0.0
        s = max(d / 6, sd) if sd > 1e-10 else d / 6
        low, high = ((round(x / d) * d - mean + side) / s for side in (-d / 2, d / 2))
        # Far above the mean, the difference of two numbers near one: its digits are round-off.
        return max(ndtr(high) - ndtr(low), 1e-75), not 6 < low < 9

    def predict(self, row):
        """Return P(1), the hard prediction, and whether it is more than round-off that decides."""
        log, is_certain = [], True
        for label in (0, 1):
            log.append(math.log((self.labels.count(label) + 1) / (len(self.labels) + 2)))
            for j, x in enumerate(row):
                p, certain = self.probability(j, x, label)
                log[label] += math.log(p)
                is_certain &= certain
        one = 1 / (1 + math.exp(min(log[0] - log[1], 700)))
        return one, 0.0 if log[0] > log[1] else 1.0, is_certain and abs(log[0] - log[1]) > 1e-9


class WekaSGD:
    """One pseudo label's regressor."""

    def __init__(self, n_values):
        self.n_values, self.w = n_values, None

    def code(self, X):
        return np.array([[1 - x if t else x for x, t in zip(row, self.turned, strict=True)] for row in X])

    def step(self, x, y):
        z = y - (self.w @ x + self.b)
        self.w = self.w * (1 - 1e-4 * 1e-4 / FIRST) + 1e-4 * z * x
        self.b += 1e-4 * z

    def learn(self, X, h):
        order = list(range(len(X)))
        if self.w is None:
            self.w, self.b, self.turned = np.zeros(X.shape[1]), 0.0, []
            for j, values in enumerate(self.n_values):
                means = [h[X[:, j] == v].mean() if (X[:, j] == v).any() else h.mean() for v in (0, 1)]
                self.turned.append(values == 2 and means[0] > means[1])
            order = JAVA_ORDER_OF_TEN * 500
        X = self.code(X)
        for i in order:
            self.step(X[i], h[i])

    def predict(self, row):
        value = float(self.w @ self.code([row])[0] + self.b)
        return value, value, True


class NaiveRace:
    """The algorithm; ``A`` has one row a label."""

    def __init__(self, method, encoding, A, bias, n_values):
        self.method, self.encoding, self.A, self.bias = method, encoding, A, bias
        make = WekaNaiveBayes if method == "classification" else WekaSGD
        self.learners = [make(n_values) for _ in bias]
        self.M = None

    def learn(self, X, Y):
        T = 2 * Y - 1
        if self.M is not None and self.encoding == "adaptive":
            self.A = self.beta.T
        H = T @ self.A + self.bias
        if self.method == "classification":
            H = np.where(H >= 0, 1.0, 0.0)
        for c, learner in enumerate(self.learners):
            learner.learn(X, H[:, c])
        if self.M is None:
            U, s, Vt = np.linalg.svd(H.T @ H)
            threshold = max(len(s) * s[0] * 2.0**-52, 2.0**-511)
            self.M = Vt.T @ np.diag([1 / v if v > threshold else 0.0 for v in s]) @ U.T
            self.beta = self.M @ H.T @ T
        else:
            self.M = self.M - self.M @ H.T @ np.linalg.inv(np.eye(len(H)) + H @ self.M @ H.T) @ H @ self.M
            self.beta = self.beta + self.M @ H.T @ (T - H @ self.beta)

    def predict(self, X):
        """Return hard and soft scores, which rows are more than round-off, and which have no pseudo label."""
        predicted = [[learner.predict(row) for learner in self.learners] for row in X]
        soft, hard, certain = np.array(predicted, dtype=float).transpose(2, 0, 1)
        return hard @ self.beta, soft @ self.beta, certain.all(axis=1), ~hard.any(axis=1)


def some_batches(rng, sizes, n_labels):
    """Make two numeric features, on a grid of eighths, and two binary ones, with labels that follow from them."""
    for n in sizes:
        X = np.column_stack([np.round(8 * rng.normal(size=(n, 2))) / 8, rng.random((n, 2)) < 0.5])
        Y = X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n, n_labels)) > 0.5
        yield X, Y.astype(float)


def assert_same_run(method, encoding, batches, A, bias, make=np.array):
    """Run both, comparing after every batch; return how many rows were compared."""
    n_values = [0, 0, 2, 2]
    race = Race(BANKS[method], encoding, start="first_batch")
    state = race.start_from(encoder.given(A, bias), np.array(n_values))
    naive = NaiveRace(method, encoding, A, bias, n_values)
    compared = 0
    for number, (X, Y) in enumerate(batches):
        if number:
            derived = race.derive(state)
            hard, soft, certain, nothing = naive.predict(X)
            got_hard, got_soft = race.hard_scores(derived, make(X)), race.scores(derived, make(X))
            np.testing.assert_allclose(got_hard[certain], hard[certain], rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(got_soft[certain], soft[certain], rtol=1e-6, atol=1e-6)
            clear = certain[:, None] & ((np.abs(hard) > 1e-9) | nothing[:, None])
            np.testing.assert_array_equal((got_hard >= 0)[clear], (hard >= 0)[clear])
            compared += certain.sum()
        naive.learn(X, Y)
        state = race.update(state, make(X), make(Y))
        scale = max(1.0, np.abs(naive.beta).max())
        np.testing.assert_allclose(race.derive(state).beta, naive.beta, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(state.encoder.A, naive.A, rtol=0, atol=1e-7 * scale)
        np.testing.assert_array_equal(state.encoder.bias, bias)
    return compared


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("method", sorted(BANKS))
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.integers(3, 6),
    k=st.sampled_from([2, 3]),
    sizes=st.lists(st.integers(1, 8), max_size=3),
)
def test_small_runs(method, encoding, seed, n_labels, k, sizes):
    rng = np.random.default_rng(seed)
    batches = list(some_batches(rng, [FIRST, *sizes], n_labels))
    hyperplanes = encoder.draw(n_labels, k, rng)
    assert_same_run(method, encoding, batches, hyperplanes.A, hyperplanes.bias)


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("method", sorted(BANKS))
@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_longer_run(method, encoding, make):
    rng = np.random.default_rng(1)
    batches = list(some_batches(rng, [FIRST, 20, 20, 7], 8))
    hyperplanes = encoder.draw(8, 3, rng)
    assert assert_same_run(method, encoding, batches, hyperplanes.A, hyperplanes.bias, make) > 25


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_rank_deficient_first_batch(encoding):
    """Two pseudo labels that are equal in the first batch, and not later; a third that is always 0 in it."""
    rng = np.random.default_rng(2)
    batches = list(some_batches(rng, [FIRST, 20, 20], 6))
    A = rng.normal(size=(6, 4))
    A[:, 1] = A[:, 0]
    bias = np.array([0.1, 0.1, 0.2, -20.0])
    A[5, 1] += 3.0
    bias[1] += 3.0
    batches[0][1][:, 5] = 0.0
    A[5, 3] += 40.0
    first, later = ((2 * Y - 1) @ A + bias >= 0 for _, Y in batches[:2])
    assert (np.linalg.matrix_rank(first), np.linalg.matrix_rank(later)) == (2, 4)
    assert assert_same_run("classification", encoding, batches, A, bias) > 20
