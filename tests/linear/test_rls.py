"""Recursive least squares against textbook formulas: full matrices, refitting without each row, label by label."""

from __future__ import annotations

import math
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from helpers.banks import add_features, assert_states_close
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.exceptions import DivergenceError
from labelrace.linear import blocks, rls
from labelrace.linear.rls import RLS
from labelrace.linear.warm_up import ALPHAS

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.lists(st.sampled_from([1, 2, 5, 40, 128, 300, 511, 600]), min_size=1, max_size=4)
FORMS = pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
KINDS = pytest.mark.parametrize("kind", ["sparse", "dense"])
# How sparse blocks are multiplied.
WAYS = {"dense": {"_DENSE_SHARE": 0.0}, "sparse": {"_DENSE_SHARE": 1.0}}


class Sparse:
    """Scaled sparse rows."""

    block = 128

    def __init__(self, m):
        self.width = m

    def learn(self, X, forgetting):
        pass

    def transform(self, X):
        damped = np.sign(X) * np.log(1 + np.abs(X))
        lengths = np.linalg.norm(damped, axis=1, keepdims=True)
        return damped / np.where(lengths > 0, lengths, 1)


class Dense:
    """Scaled dense rows with random features: all rows are kept, with their weights."""

    block = 64

    def __init__(self, m, n_random=0, seed=0):
        self.X, self.weights, self.length = np.zeros((0, m)), np.zeros(0), math.sqrt(m)
        self.directions, self.width = np.random.default_rng(seed).normal(size=(m, n_random)), m + n_random

    def learn(self, X, forgetting):
        self.X, self.weights = np.vstack([self.X, X]), np.append(forgetting * self.weights, np.ones(len(X)))

    def transform(self, X):
        mean = np.average(self.X, axis=0, weights=self.weights)
        spread = np.sqrt(np.average((self.X - mean) ** 2, axis=0, weights=self.weights))
        Z = np.clip((X - mean) / np.where(spread > 1e-12, spread, np.inf), -5, 5) / self.length
        if not self.directions.shape[1]:
            return Z
        random = np.abs(Z @ self.directions) - math.sqrt(2 / math.pi)
        return np.hstack([Z, random / math.sqrt(self.directions.shape[1])])


class Textbook:
    """One model for each target, by full matrices, with the intercept as a column of ones.

    A block gives the posterior of a Gaussian prior with a diagonal precision; its marginal variances are kept. Each
    target has its own precision: that of the group it is in.
    """

    def __init__(self, alpha, half_life, make_features, binary=False):
        self.alpha, self.half_life, self.make_features, self.binary = alpha, half_life, make_features, binary
        self.rows, self.kept = 0, None

    def learn(self, X, H):
        if self.rows == 0:
            n = min(len(X), 512)
            first = [i * len(X) // n for i in range(n)]
            others = [i for i in range(len(X)) if i not in set(first)]
            n_blocks = math.ceil(len(others) / 128)
            others = [i for block in range(n_blocks) for i in others[block::n_blocks]]
            self.begin(X[first], H[first])
            if others:
                self.go_on(X[others], H[others])
        elif self.kept is None:
            self.go_on(X, H)
        else:
            self.kept = np.vstack([self.kept[0], X]), np.vstack([self.kept[1], H])
            if len(self.kept[0]) >= 2 * self.used:
                self.rows = 0
                self.learn(*self.kept)
            else:
                kept, self.kept = self.kept, None
                self.go_on(X, H)
                self.kept = kept

    def begin(self, X, H):
        self.features = self.make_features()
        self.features.learn(X, 1.0)
        self.start = np.array([self.alpha] * self.features.width + [1.0])
        self.W = np.zeros((self.features.width + 1, H.shape[1]))
        self.D = {"old": self.start.copy()}
        self.group = ["old"] * H.shape[1]
        known = np.where(np.isnan(H), 0, H).sum(axis=0) / np.maximum((~np.isnan(H)).sum(axis=0), 1)
        filled = np.where(np.isnan(H), known, H)
        Z = np.column_stack([self.features.transform(X), np.ones(len(X))])
        self.block(Z, filled, hinge=False)
        self.rows = len(X)
        self.born = [0 if h.any() else None for h in filled.T]
        self.recent_since = -math.inf
        self.kept, self.used = ((X, H), len(X)) if 2 * len(X) <= 512 else (None, None)

    def go_on(self, X, H):
        Z = np.column_stack([self.features.transform(X), np.ones(len(X))])
        if self.binary:
            self.give_birth(H)
        for start in range(0, len(Z), self.features.block):
            here = slice(start, start + self.features.block)
            self.forget(self.factor(len(Z[here])))
            self.block(Z[here], H[here], hinge=self.binary)
        self.rows += len(X)
        self.features.learn(X, self.factor(len(X)))

    def give_birth(self, H):
        born = [j for j in range(H.shape[1]) if self.born[j] is None and (H[:, j] > 0).any()]
        if born and self.rows - self.recent_since >= 1000:
            for j, group in enumerate(self.group):
                if group == "recent" and self.rows - self.born[j] >= 750:
                    self.group[j] = "old"
            self.D["recent"], self.recent_since = self.start.copy(), self.rows
        for j in born:
            self.born[j], self.group[j] = self.rows, "recent"

    def factor(self, n):
        return 1.0 if self.half_life is None else 0.5 ** (n / self.half_life)

    def forget(self, keep):
        self.D = {name: self.start + keep * (D - self.start) for name, D in self.D.items()}

    def block(self, Z, H, hinge):
        E = H - Z @ self.W
        if hinge:
            E[(H == 0) & (E > 0) | (H == 1) & (E < 0) | np.isnan(H)] = 0.0
        for name, D in self.D.items():
            variance = np.linalg.inv(np.diag(D) + Z.T @ Z)
            for j, group in enumerate(self.group):
                if group == name:
                    self.W[:, j] += variance @ Z.T @ E[:, j]
            self.D[name] = 1.0 / np.diag(variance)

    def predict(self, X):
        return np.column_stack([self.features.transform(X), np.ones(len(X))]) @ self.W


def some_batches(seed, sizes, kind, m=12, k=3):
    """Make features and targets that depend on them; of sparse rows at most two values are not zero."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(m, k))
    for n in sizes:
        X = 2 * rng.normal(size=(n, m)) + (0 if kind == "sparse" else 10)
        if kind == "sparse":
            X *= rng.permuted(np.arange(m) < 2 + np.zeros((n, 1)), axis=1)
            X[rng.random(n) < 0.1] = 0.0
        yield X, X @ W + rng.normal(size=(n, k)) + 3


def labels_of(batches, seed, unknown=0.1):
    """Make labels of targets; the last one is born in the second batch or later."""
    rng = np.random.default_rng(seed)
    for number, (X, H) in enumerate(batches):
        Y = (np.median(H, axis=0) < H).astype(float)
        Y[:, -1] *= number > 0
        yield X, np.where(rng.random(Y.shape) < unknown, np.nan, Y)


def learned(bank, batches, make=np.array, n_values=None):
    n_values = np.zeros(batches[0][0].shape[1], int) if n_values is None else n_values
    state = bank.init(n_values, batches[0][1].shape[1])
    for X, H in batches:
        state = bank.update(state, make(X), H)
    return state


def assert_textbook(bank, state, textbook, queries, make):
    np.testing.assert_allclose(state.weights, textbook.W[:-1], atol=1e-7)
    np.testing.assert_allclose(bank.predict(bank.derive(state), make(queries)), textbook.predict(queries), atol=1e-7)
    groups = list(textbook.D)
    extra = np.vstack([np.asarray(state.extra_precision) * state.decay, state.intercept_extra_precision]).T[
        : len(groups)
    ]
    np.testing.assert_allclose(extra, [textbook.D[name] - textbook.start for name in groups], rtol=1e-6, atol=1e-6)
    assert state.is_recent_label.tolist() == [group == "recent" for group in textbook.group]


@settings(max_examples=30, deadline=None)
@given(
    SEEDS,
    SIZES,
    st.sampled_from([None, 200.0]),
    st.sampled_from([0.03, 1.0, 30.0]),
    st.booleans(),
    st.sampled_from(sorted(WAYS)),
    st.booleans(),
)
def test_textbook_on_sparse_rows(seed, sizes, half_life, alpha, compressed, way, binary):
    batches = list(some_batches(seed, sizes, "sparse"))
    batches = list(labels_of(batches, seed)) if binary else batches
    make = scipy.sparse.csr_array if compressed else np.array
    bank = RLS(alpha=alpha, half_life=half_life, binary=binary)
    textbook = Textbook(alpha, half_life, lambda: Sparse(12), binary)
    for X, H in batches:
        textbook.learn(X, H)
    with patch.multiple(blocks, **WAYS[way]):
        state = learned(bank, batches, make)
    assert_textbook(bank, state, textbook, batches[0][0], make)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(SEEDS, st.integers(1, 200))
def test_inverses_of_blocks_of_which_half_is_set(dtype, seed, n):
    rows = np.random.default_rng(seed).normal(size=(n, 60)).astype(dtype)
    whole = rows @ rows.T / 60 + np.eye(n, dtype=dtype)
    half = np.where(np.tri(n, dtype=bool), whole, np.nan).astype(dtype)
    found = blocks.inverse_of(half)
    np.testing.assert_allclose(found, np.linalg.inv(whole.astype(float)), atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("n", [2, 60, 128])
@pytest.mark.parametrize("index", [0, -1])
def test_blocks_that_have_no_inverse(n, index):
    broken = np.eye(n, dtype=np.float32)
    broken[index, index] = -1.0
    with pytest.raises(DivergenceError, match="X holds values so large"):
        blocks.inverse_of(broken)


@given(SEEDS, st.integers(0, 8), st.integers(1, 40))
def test_columns_that_occur_in_the_order_of_their_first_use(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    z = scipy.sparse.csr_array(rng.random((n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < 0.2))
    found, columns = blocks.without_empty_columns(z)
    assert list(columns) == list(dict.fromkeys(z.indices.tolist()))
    whole = np.zeros(z.shape)
    whole[:, columns] = found.toarray() if scipy.sparse.issparse(found) else found
    np.testing.assert_array_equal(whole, z.toarray())


@settings(max_examples=30, deadline=None)
@given(SEEDS, SIZES, st.sampled_from([None, 200.0]), st.sampled_from([0, 7]), st.booleans(), st.booleans())
def test_textbook_on_dense_rows(seed, sizes, half_life, n_random, compressed, binary):
    batches = list(some_batches(seed, sizes, "dense", m=4))
    batches = list(labels_of(batches, seed)) if binary else batches
    make = scipy.sparse.csr_array if compressed else np.array
    bank = RLS(alpha=0.3, half_life=half_life, n_random_features=n_random, seed=5, binary=binary)
    textbook = Textbook(0.3, half_life, lambda: Dense(4, n_random, 5), binary)
    for X, H in batches:
        textbook.learn(X, H)
    with patch.object(rls, "_CLEARLY_BETTER", 0.0):
        state = learned(bank, batches, make)
    assert_textbook(bank, state, textbook, batches[0][0], make)


@KINDS
def test_textbook_row_by_row(kind):
    """With labels that are recent or not known, and rows of nothing but zeros."""
    rng, m = np.random.default_rng(4), 12 if kind == "sparse" else 6
    batches = [(X, (H > 3).astype(float)) for X, H in some_batches(4, [300] + [1] * 80, kind, m=m)]
    for number, (_, Y) in enumerate(batches):
        Y[:, -1] *= number > 30
        Y[rng.random(Y.shape) < 0.1] = np.nan
    make = scipy.sparse.csr_array if kind == "sparse" else np.array
    bank = RLS(alpha=0.3, half_life=100.0, n_random_features=3, seed=5, binary=True)
    textbook = Textbook(0.3, 100.0, lambda: Sparse(m) if kind == "sparse" else Dense(m, 3, 5), True)
    for X, H in batches:
        textbook.learn(X, H)
    with patch.object(rls, "_CLEARLY_BETTER", 0.0):
        state = learned(bank, batches, make)
    assert_textbook(bank, state, textbook, batches[0][0], make)
    assert state.is_recent_label.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("binary", "kind"), [(True, "linear"), (False, "linear"), (True, "products"), (False, "products")]
)
def test_random_features_where_they_are_of_use(binary, kind):
    """Where they are left out, the model is the one that never had them."""
    rng, m, n_random = np.random.default_rng(0), *((30, 0) if kind == "linear" else (6, 40))
    X = rng.normal(size=(400, m))
    H = X @ rng.normal(size=(m, 4)) / m**0.5 if kind == "linear" else X[:, :4] * X[:, 1:5]
    H = (H > 0.8).astype(float) if binary else H
    found, expected = (RLS(n_random_features=n, seed=1, binary=binary) for n in (40, n_random))
    states = [bank.update(bank.init(np.zeros(m, int), 4), X, H) for bank in (found, expected)]
    assert states[0].scaling.directions.shape == (m, n_random)
    assert_states_close(*states)
    # More rows, and features that come later.
    states = [add_features(found, found.update(state, X, H), np.zeros(m + 2, int)) for state in states]
    more = rng.normal(size=(300, m + 2))
    assert_states_close(*(found.update(state, more, H[:300]) for state in states))


@pytest.mark.parametrize("every", [250, 400, 600])
def test_groups_of_recent_labels(every):
    """A label is born every `every` rows; each is recent for a while and then joins the old ones."""
    X, Y = (np.vstack(parts) for parts in zip(*some_batches(3, [5000], "sparse", k=14), strict=True))
    Y = (Y > 3).astype(float)
    for label in range(2, 14):
        Y[: 300 + every * (label - 2), label] = 0.0
    bank = RLS(alpha=0.5, half_life=1000.0, binary=True)
    textbook, state, were_recent = (
        Textbook(0.5, 1000.0, lambda: Sparse(12), True),
        bank.init(np.zeros(12, int), 14),
        set(),
    )
    for start in range(0, 5000, 100):
        batch = slice(start, start + 100)
        textbook.learn(X[batch], Y[batch])
        state = bank.update(state, X[batch], Y[batch])
        were_recent |= set(np.flatnonzero(state.is_recent_label))
    assert_textbook(bank, state, textbook, X[:50], np.array)
    n_born = 2 + min(12, -(-4700 // every))
    assert were_recent == {
        label for label in range(2, n_born) if 300 + every * (label - 2) >= 400 and Y[:, label].any()
    }
    assert not state.is_recent_label[[0, 1]].any()
    assert (~state.is_recent_label[list(were_recent)]).any()


def test_a_label_that_is_born_changes_no_other():
    batches = list(labels_of(some_batches(4, [600, 300, 300], "sparse", k=4), 4))
    bank = RLS(alpha=0.5, half_life=1000.0, binary=True)
    born = learned(bank, batches)
    never = learned(bank, [(X, np.column_stack([Y[:, :-1], np.zeros(len(Y))])) for X, Y in batches])
    np.testing.assert_array_equal(born.weights[:, :-1], never.weights[:, :-1])
    np.testing.assert_array_equal(born.intercepts[:-1], never.intercepts[:-1])
    assert not never.weights[:, -1].any()
    assert np.abs(born.weights[:, -1]).max() > 0.01


def test_a_late_label_is_learned_as_by_a_model_that_begins_with_it():
    """But for the exact start: nothing that was learned before makes it slower."""
    [(X, H)] = some_batches(5, [6000], "sparse")
    Y = (H[:, :1] > 3).astype(float) @ np.ones((1, 2))
    Y[:4000, 1] = 0.0
    bank = RLS(alpha=0.5, binary=True)
    late = learned(bank, [(X[i : i + 250], Y[i : i + 250]) for i in range(0, 5000, 250)])
    fresh = learned(bank, [(X[i : i + 250], Y[i : i + 250]) for i in range(4000, 5000, 250)])
    errors = [
        np.square(bank.predict(bank.derive(state), X[5000:])[:, 1] - Y[5000:, 1]).mean() for state in (late, fresh)
    ]
    assert errors[0] < 1.1 * errors[1]
    old = learned(RLS(alpha=0.5), [(X[i : i + 250], Y[i : i + 250]) for i in range(0, 5000, 250)])
    assert np.square(bank.predict(bank.derive(old), X[5000:])[:, 1] - Y[5000:, 1]).mean() > 1.5 * errors[1]


@pytest.mark.parametrize("n", [1, 2, 60, 512])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_the_start_is_ridge_regression(n, alpha):
    """The penalty of the intercept is 1: that of a column of ones times the root of α, where all have penalty α."""
    [(X, H)] = some_batches(0, [n], "sparse")
    Z = np.column_stack([Sparse(12).transform(X), np.full(n, math.sqrt(alpha))])
    ridge = sklearn.linear_model.Ridge(alpha=alpha, fit_intercept=False, solver="svd").fit(Z, H)
    state = learned(RLS(alpha=alpha), [(X, H)])
    np.testing.assert_allclose(state.weights, ridge.coef_[:, :-1].T, atol=1e-9)
    np.testing.assert_allclose(state.intercepts, math.sqrt(alpha) * ridge.coef_[:, -1], atol=1e-9)


def refitted(Z, H, alpha):
    """Fit as often as there are rows, each time without one, and predict that one."""
    Z, scores = np.column_stack([Z, np.ones(len(Z))]), []
    penalty = np.diag([alpha] * (Z.shape[1] - 1) + [1.0])
    for i in range(len(Z)):
        z, h = np.delete(Z, i, axis=0), np.delete(H, i, axis=0)
        scores.append(Z[i] @ np.linalg.solve(z.T @ z + penalty, z.T @ h))
    return np.array(scores)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(2, 25), st.sampled_from([0.0, 1.0, 5.0, 20.0]), st.booleans(), st.booleans())
def test_the_penalty_is_that_of_refitting_without_each_row(seed, n, noise, compressed, binary):
    [(X, H)] = some_batches(seed, [n], "sparse", m=8)
    H = H + noise * np.random.default_rng(seed).normal(size=H.shape)
    H = (H > 3).astype(float) if binary else H
    Z = Sparse(8).transform(X)
    scores = [refitted(Z, H, alpha) for alpha in ALPHAS]
    errors = [np.square((np.clip(s, 0, 1) if binary else s) - H).sum() for s in scores]
    bank = RLS(binary=binary)
    state, ridge = bank.fit_first_rows(
        bank.init(np.zeros(8, int), 3), (scipy.sparse.csr_array if compressed else np.array)(X), H
    )
    index = int(np.argmin(np.abs(1.25 * ALPHAS - state.alpha)))
    assert state.alpha == pytest.approx(1.25 * ALPHAS[index])
    assert errors[index] <= min(errors) * (1 + 1e-6)
    np.testing.assert_allclose(ridge.leave_one_out_scores(H), refitted(Z, H, state.alpha), atol=1e-7)
    np.testing.assert_allclose(
        ridge.leave_one_out_scores(H, np.array([1, 0])), refitted(Z, H, state.alpha)[[1, 0]], atol=1e-7
    )


def test_every_penalty_is_the_best_somewhere():
    """The test above would be empty if one penalty always won."""
    chosen = set()
    for seed in range(12):
        for noise in (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0):
            [(X, _)] = some_batches(seed, [40], "sparse", m=8)
            rng = np.random.default_rng(seed)
            H = Sparse(8).transform(X) @ rng.normal(size=(8, 3)) + noise * rng.normal(size=(40, 3))
            chosen.add(round(learned(RLS(), [(X, H)]).alpha / 1.25, 2))
    assert chosen == set(ALPHAS)


def test_of_equals_the_largest():
    X = np.zeros((10, 3))
    assert learned(RLS(), [(X, np.arange(20.0).reshape(10, 2))]).alpha == 1.25 * max(ALPHAS)


def test_one_row_tells_nothing():
    [batch] = some_batches(0, [1], "sparse")
    assert min(ALPHAS) < learned(RLS(), [batch]).alpha / 1.25 < max(ALPHAS)


@pytest.mark.parametrize("alpha", [None, 1.0])
@pytest.mark.parametrize("sizes", [[300], [3, 4, 200], [1] * 40, [600, 100]])
def test_form_of_sparse_rows_does_not_matter(alpha, sizes):
    batches = list(some_batches(1, sizes, "sparse"))
    bank = RLS(alpha=alpha, half_life=100.0)
    assert_states_close(learned(bank, batches), learned(bank, batches, scipy.sparse.csr_array))


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.lists(st.sampled_from([640, 768, 1024]), unique=True), st.booleans())
def test_cuts_between_blocks_do_not_matter(seed, cuts, compressed):
    [(X, H)] = some_batches(seed, [1200], "sparse")
    bank, make = RLS(alpha=0.3, half_life=500.0), scipy.sparse.csr_array if compressed else np.array
    parts = [(X[i:j], H[i:j]) for i, j in pairwise([0, 512, *sorted(cuts), 1200])]
    assert_states_close(learned(bank, parts, make), learned(bank, [(X[:512], H[:512]), (X[512:], H[512:])], make))


@FORMS
@KINDS
def test_rows_one_by_one_begin_as_rows_at_once(make, kind):
    """The last beginning is with 512 rows: penalty, moments and weights are those of one batch."""
    [(X, H)] = some_batches(3, [512], kind)
    bank = RLS(n_random_features=6, half_life=40.0)
    at_once = learned(bank, [(X, H)], make)
    one_by_one = learned(bank, [(X[i : i + 1], H[i : i + 1]) for i in range(512)], make)
    assert one_by_one.alpha == at_once.alpha
    assert_states_close(one_by_one, at_once)
    np.testing.assert_allclose(one_by_one.scaling.mean, at_once.scaling.mean)
    assert one_by_one.warm_up.n_fitted == at_once.warm_up.n_fitted == 0
    assert len(one_by_one.warm_up.values) == 0


def test_rows_are_kept_until_they_would_be_too_many():
    [(X, H)] = some_batches(4, [600], "sparse")
    bank = RLS()
    state, used = bank.init(np.zeros(12, int), 3), []
    for i in range(511):
        state = bank.update(state, X[i : i + 1], H[i : i + 1])
        used.append(state.warm_up.n_fitted)
        assert len(state.warm_up.indptr) == i + 2
    assert sorted(set(used)) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert bank.update(state, X[511:], H[511:]).warm_up.n_fitted == 0
    assert learned(bank, [(X[:257], H[:257])]).warm_up.n_fitted == 0
    assert learned(bank, [(X[:256], H[:256])]).warm_up.n_fitted == 256


def test_transformed_rows_can_be_given():
    batches = list(some_batches(6, [600, 50], "dense"))
    bank = RLS()
    state = learned(bank, batches[:1])
    X, H = batches[1]
    derived = bank.derive(state)
    transformed = bank.transform(derived, X)
    gathered = bank.gather(state, transformed)
    assert_states_close(bank.learn(state, X, H, gathered=gathered), bank.update(state, X, H))
    np.testing.assert_array_equal(bank.predict_transformed(derived, transformed), bank.predict(derived, X))


def test_sparse_targets_are_targets():
    batches = [(X, np.where(np.abs(H) < 2, 0.0, H)) for X, H in some_batches(7, [150, 500, 100], "sparse")]
    bank = RLS()
    state = bank.init(np.zeros(12, int), 3)
    for X, H in batches:
        state = bank.update(state, X, scipy.sparse.csr_array(H))
    assert_states_close(state, learned(bank, batches))


@pytest.mark.parametrize("keep", [0.02, 0.5, 1.0])
def test_forgetting_at_once(keep):
    batches = list(some_batches(8, [600, 100], "sparse"))
    bank, textbook = RLS(alpha=0.3), Textbook(0.3, None, lambda: Sparse(12))
    state = bank.forget(learned(bank, batches[:1]), keep)
    np.testing.assert_array_equal(state.weights, learned(bank, batches[:1]).weights)
    textbook.learn(*batches[0])
    textbook.forget(keep)
    textbook.learn(*batches[1])
    assert_textbook(bank, bank.update(state, *batches[1]), textbook, batches[0][0], np.array)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@KINDS
def test_stable_at_any_scale(kind, scale):
    batches = [(scale * X, H) for X, H in some_batches(10, [300, 300], kind)]
    bank = RLS()
    got = bank.predict(bank.derive(learned(bank, batches)), batches[1][0])
    assert np.abs(got).max() < 10 * np.abs(batches[1][1]).max()


@KINDS
def test_single_precision_is_the_same_to_six_digits(kind):
    batches = list(some_batches(3, [600, 40, 300], kind))
    banks = [RLS(alpha=0.3, half_life=300.0, n_random_features=8, single=single) for single in (False, True)]
    make = scipy.sparse.csr_array if kind == "sparse" else np.array
    double, single = (learned(bank, batches, make) for bank in banks)
    assert single.weights.dtype == np.float32
    for bank, state in zip(banks, (double, single), strict=True):
        assert bank.derive(state).weights.dtype == state.weights.dtype
        assert bank.transform(bank.derive(state), make(batches[0][0])).dtype == state.weights.dtype
    queries = make(batches[1][0])
    expected = banks[0].predict(banks[0].derive(double), queries)
    got = banks[1].predict(banks[1].derive(single), queries)
    np.testing.assert_allclose(got, expected, atol=5e-5 * np.abs(expected).max())
    assert (got != expected).any()
