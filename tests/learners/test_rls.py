"""Recursive least squares against normal equations, block by block; its penalty against refitting without each row."""

import math
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.learners import rls
from labelrace.learners.rls import ALPHAS, RLS, best_alpha

SEEDS = st.integers(0, 2**32 - 1)
# How wide rows have to be for what is done with wide ones: never, or always, marking columns or sorting their indices.
WIDE = {
    "narrow": {"_FEW_COLUMNS": 10**9},
    "marked": {"_FEW_COLUMNS": 0, "_MAX_MARKED": 10**9},
    "sorted": {"_FEW_COLUMNS": 0, "_MAX_MARKED": 0},
    "very wide": {"_FEW_COLUMNS": 0, "_MAX_DENSE": 0},
}
SIZES = st.lists(st.sampled_from([1, 2, 5, 40, 127, 128, 129, 300]), min_size=1, max_size=5)
HALF_LIVES = st.sampled_from([(None,), (50.0,), (None, 200.0, 30.0)])
FORMS = pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
KINDS = pytest.mark.parametrize("kind", ["sparse", "dense"])


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

    def __init__(self, m, n_random=0, seed=0, length=None):
        self.X, self.weights, self.length = np.zeros((0, m)), np.zeros(0), length or math.sqrt(m)
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


class Loop:
    """One member: the minimiser of ``|H - Z w|² + |w - w_before|²_D``, with the intercept as a column of ones."""

    def __init__(self, alpha, half_life, make_features):
        self.alpha, self.half_life, self.make_features, self.buffer = alpha, half_life, make_features, None

    def begin(self, X, H):
        self.features = self.make_features()
        self.features.learn(X, 1.0)
        self.w = np.zeros((self.features.width + 1, H.shape[1]))
        self.D = np.diag([self.alpha] * self.features.width + [1.0])
        self.D0 = self.D.copy()
        self.blocks(X, H)
        self.buffer, self.n_used = ((X, H), len(X)) if len(X) < 128 else (None, None)

    def blocks(self, X, H):
        Z = np.column_stack([self.features.transform(X), np.ones(len(X))])
        n = self.features.block
        for start in range(0, len(Z), n):
            z, h = Z[start : start + n], H[start : start + n]
            self.w = np.linalg.inv(self.D + z.T @ z) @ (self.D @ self.w + z.T @ h)
            self.D = self.D + np.diag(np.diag(z.T @ z))

    def learn(self, X, H, fastest=None):
        if not hasattr(self, "features"):
            return self.begin(X, H)
        if self.buffer:
            self.buffer = np.vstack([self.buffer[0], X]), np.vstack([self.buffer[1], H])
            if len(self.buffer[0]) >= min(2 * self.n_used, 128):
                return self.begin(*self.buffer)
        self.forget(1.0 if self.half_life is None else 0.5 ** (len(X) / self.half_life))
        self.blocks(X, H)
        return self.features.learn(X, 1.0 if fastest is None else 0.5 ** (len(X) / fastest))

    def forget(self, keep):
        self.D = self.D0 + keep * (self.D - self.D0)

    def predict(self, X):
        return np.column_stack([self.features.transform(X), np.ones(len(X))]) @ self.w


def some_batches(seed, sizes, kind, m=12, k=3):
    """Make features and targets that depend on them; of sparse rows at most two values are not zero."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(m, k))
    for n in sizes:
        X = 2 * rng.normal(size=(n, m)) + (0 if kind == "sparse" else 10)
        if kind == "sparse":
            X[:, rng.permutation(m)[2:]] = 0.0
            X[rng.random(n) < 0.1] = 0.0
        yield X, X @ W + rng.normal(size=(n, k)) + 3


def looped(batches, alpha, half_lives, make_features):
    loops = [Loop(alpha, half_life, make_features) for half_life in half_lives]
    fastest = min((h for h in half_lives if h is not None), default=None)
    for X, H in batches:
        for loop in loops:
            loop.learn(X, H, fastest)
    return loops


def learned(bank, batches, make=np.array, n_values=None):
    n_values = np.zeros(batches[0][0].shape[1], int) if n_values is None else n_values
    state = bank.init(n_values, batches[0][1].shape[1])
    for X, H in batches:
        state = bank.update(state, make(X), H)
    return state


def assert_states_close(one, other, rtol=1e-9):
    for name in ("alpha", "weights", "intercepts", "precision", "rows"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-9, err_msg=name)


def assert_loops(bank, state, loops, queries, make):
    for member, loop in zip(bank.members(state), loops, strict=True):
        np.testing.assert_allclose(member.weights, loop.w[:-1], atol=1e-7)
        np.testing.assert_allclose(bank.predict(member, make(queries)), loop.predict(queries), atol=1e-7)
    precision = [np.append(d, n) for d, n in zip(state.precision, state.rows, strict=True)]
    np.testing.assert_allclose(precision, [np.diag(loop.D - loop.D0) for loop in loops], atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(SEEDS, SIZES, HALF_LIVES, st.sampled_from([0.03, 1.0, 30.0]), st.booleans(), st.sampled_from(sorted(WIDE)))
def test_loop_on_sparse_rows(seed, sizes, half_lives, alpha, compressed, wide):
    batches = list(some_batches(seed, sizes, "sparse"))
    make = scipy.sparse.csr_array if compressed else np.array
    bank = RLS(alpha=alpha, half_lives=half_lives)
    loops = looped(batches, alpha, half_lives, lambda: Sparse(12))
    with patch.multiple(rls, **WIDE[wide]):
        state = learned(bank, batches, make)
    assert_loops(bank, state, loops, batches[0][0], make)


@pytest.mark.parametrize("wide", sorted(WIDE))
@pytest.mark.parametrize("width", [13, 100])
def test_columns_that_are_left_out(wide, width):
    with patch.multiple(rls, **WIDE[wide]):
        z = scipy.sparse.random_array((5, width), density=0.03 if width == 100 else 0.3, format="csr", rng=3)
        left, places = rls._without_empty_columns(z)
        empty, none = rls._without_empty_columns(scipy.sparse.csr_array((5, width)))
    whole = np.zeros(z.shape)
    whole[:, places] = left.toarray()
    np.testing.assert_array_equal(whole, z.toarray())
    if wide != "narrow" and width == 100:
        assert left.shape[1] == len(np.unique(z.indices)) < 100
        assert empty.shape == (5, 0)
        assert len(none) == 0


@settings(max_examples=40, deadline=None)
@given(SEEDS, SIZES, HALF_LIVES, st.sampled_from([0.03, 1.0, 30.0]), st.sampled_from([0, 7]), st.booleans())
def test_loop_on_dense_rows(seed, sizes, half_lives, alpha, n_random, compressed):
    batches = list(some_batches(seed, sizes, "dense", m=4))
    make = scipy.sparse.csr_array if compressed else np.array
    bank = RLS(alpha=alpha, half_lives=half_lives, n_random_features=n_random, seed=5)
    loops = looped(batches, alpha, half_lives, lambda: Dense(4, n_random, 5))
    assert_loops(bank, learned(bank, batches, make), loops, batches[0][0], make)


@pytest.mark.parametrize("n", [1, 2, 60, 128])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_one_block_is_ridge_regression(n, alpha):
    """The penalty of the intercept is 1: that of a column of ones times the root of α, where all have penalty α."""
    [(X, H)] = some_batches(0, [n], "sparse")
    Z = np.column_stack([Sparse(12).transform(X), np.full(n, math.sqrt(alpha))])
    ridge = sklearn.linear_model.Ridge(alpha=alpha, fit_intercept=False, solver="svd").fit(Z, H)
    bank = RLS(alpha=alpha)
    state = learned(bank, [(X, H)])
    np.testing.assert_allclose(state.weights[0], ridge.coef_[:, :-1].T, atol=1e-9)
    np.testing.assert_allclose(state.intercepts[0], math.sqrt(alpha) * ridge.coef_[:, -1], atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.lists(st.sampled_from([128, 256, 384, 512]), unique=True), st.booleans())
def test_cuts_between_blocks_do_not_matter(seed, cuts, compressed):
    [(X, H)] = some_batches(seed, [600], "sparse")
    bank, make = RLS(alpha=0.3), scipy.sparse.csr_array if compressed else np.array
    bounds = [0, *sorted(cuts), 600]
    parts = [(X[i:j], H[i:j]) for i, j in pairwise(bounds)]
    assert_states_close(learned(bank, parts, make), learned(bank, [(X, H)], make))


@pytest.mark.parametrize("alpha", [None, 1.0])
@pytest.mark.parametrize("sizes", [[300], [3, 4, 200], [1] * 40])
def test_form_of_sparse_rows_does_not_matter(alpha, sizes):
    batches = list(some_batches(1, sizes, "sparse"))
    bank = RLS(alpha=alpha, half_lives=(None, 100.0))
    assert_states_close(learned(bank, batches), learned(bank, batches, scipy.sparse.csr_array))


def test_columns_too_many_to_be_made_dense(monkeypatch):
    batches = list(some_batches(2, [300, 100], "sparse"))
    expected = learned(RLS(), batches, scipy.sparse.csr_array)
    monkeypatch.setattr(rls, "_MAX_DENSE", 1)
    assert_states_close(learned(RLS(), batches, scipy.sparse.csr_array), expected)


@FORMS
@KINDS
def test_rows_one_by_one_begin_as_rows_at_once(make, kind):
    """The last beginning is with 128 rows: penalty, moments and weights are those of one batch."""
    [(X, H)] = some_batches(3, [128], kind)
    bank = RLS(n_random_features=6, half_lives=(None, 40.0))
    at_once = learned(bank, [(X, H)], make)
    one_by_one = learned(bank, [(X[i : i + 1], H[i : i + 1]) for i in range(128)], make)
    assert one_by_one.alpha == at_once.alpha
    assert_states_close(one_by_one, at_once)
    np.testing.assert_allclose(one_by_one.scaling.mean, at_once.scaling.mean)
    assert len(one_by_one.warm_up.targets) == len(at_once.warm_up.targets) == 0
    assert one_by_one.warm_up.n_used == 0


def test_rows_are_kept_until_there_are_128():
    [(X, H)] = some_batches(4, [200], "sparse")
    bank = RLS()
    state, used = bank.init(np.zeros(12, int), 3), []
    for i in range(127):
        state = bank.update(state, X[i : i + 1], H[i : i + 1])
        used.append(state.warm_up.n_used)
        assert len(state.warm_up.targets) == i + 1
    assert sorted(set(used)) == [1, 2, 4, 8, 16, 32, 64]
    # A batch that fills up more than is needed is all learned with it.
    assert_states_close(bank.update(state, X[127:], H[127:]), learned(bank, [(X, H)]))


@KINDS
def test_penalty_is_chosen_on_the_first_256_rows(kind):
    """Rows after them are pure noise, which asks for a larger penalty."""
    rng = np.random.default_rng(5)
    [(X, H)] = some_batches(5, [2000], kind)
    H[256:] = 100 * rng.normal(size=(1744, 3))
    bank = RLS(n_random_features=3)
    alpha = learned(bank, [(X[:256], H[:256])]).alpha
    assert learned(bank, [(X, H)]).alpha == alpha < 10.0
    assert learned(bank, [(X[256:], H[256:])]).alpha > alpha


@KINDS
def test_transformed_rows_can_be_given(kind):
    batches = list(some_batches(6, [150, 50], kind))
    bank = RLS()
    state = learned(bank, batches[:1])
    X, H = batches[1]
    derived = bank.derive(state)
    transformed = bank.transform(derived, X)
    assert_states_close(bank.update(state, X, H, transformed), bank.update(state, X, H))
    np.testing.assert_array_equal(bank.predict_transformed(derived, transformed), bank.predict(derived, X))


def test_sparse_targets_are_targets():
    [(X, H)] = some_batches(7, [150], "sparse")
    H[np.abs(H) < 2] = 0.0
    bank = RLS()
    state = bank.update(bank.init(np.zeros(12, int), 3), X, scipy.sparse.csr_array(H))
    assert_states_close(state, learned(bank, [(X, H)]))


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(["sparse", "dense"]))
def test_shares_weigh_the_members_predictions(seed, kind):
    batches = list(some_batches(seed, [150, 100], kind))
    bank = RLS(half_lives=(None, 100.0, 10.0), n_random_features=3)
    state, X = learned(bank, batches), batches[1][0]
    shares = np.random.default_rng(seed).dirichlet(np.ones(3))
    each = [bank.predict(member, X) for member in bank.members(state)]
    assert np.abs(each[0] - each[2]).max() > 1e-3
    got = bank.predict(bank.derive(state, shares), X)
    np.testing.assert_allclose(got, sum(s * e for s, e in zip(shares, each, strict=True)), atol=1e-9)
    np.testing.assert_allclose(bank.predict(bank.derive(state), X), np.mean(each, axis=0), atol=1e-9)


@pytest.mark.parametrize("keep", [0.02, 0.5, 1.0])
def test_forgetting_at_once(keep):
    batches = list(some_batches(8, [150, 100], "sparse"))
    bank = RLS(alpha=0.3)
    state = bank.forget(learned(bank, batches[:1]), keep)
    np.testing.assert_array_equal(state.weights, learned(bank, batches[:1]).weights)
    [loop] = looped(batches[:1], 0.3, [None], lambda: Sparse(12))
    loop.forget(keep)
    loop.learn(*batches[1])
    assert_loops(bank, bank.update(state, *batches[1]), [loop], batches[0][0], np.array)


def test_replaced_member_is_a_copy_that_forgets():
    bank = RLS(half_lives=(None, 100.0, 10.0))
    state = learned(bank, list(some_batches(9, [150, 100], "sparse")))
    new = bank.replace(state, 2, 0, 0.25)
    for name, keep in [("weights", 1.0), ("intercepts", 1.0), ("precision", 0.25), ("rows", 0.25)]:
        before, after = getattr(state, name), getattr(new, name)
        np.testing.assert_array_equal(after[2], keep * before[0], err_msg=name)
        np.testing.assert_array_equal(after[:2], before[:2], err_msg=name)
        assert not np.array_equal(before[2], after[2])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@KINDS
def test_stable_at_any_scale(kind, scale):
    batches = [(scale * X, H) for X, H in some_batches(10, [300, 300], kind)]
    bank = RLS()
    got = bank.predict(bank.derive(learned(bank, batches)), batches[1][0])
    assert np.abs(got).max() < 10 * np.abs(batches[1][1]).max()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("half_lives", [(None,), (None, 300.0)])
def test_single_precision_is_the_same_to_six_digits(kind, half_lives):
    batches = list(some_batches(3, [200, 40, 300], kind))
    banks = [RLS(alpha=0.3, half_lives=half_lives, n_random_features=8, single=single) for single in (False, True)]
    make = scipy.sparse.csr_array if kind == "sparse" else np.array
    double, single = (learned(bank, batches, make) for bank in banks)
    assert single.weights.dtype == np.float32
    for bank, state in zip(banks, (double, single), strict=True):
        assert bank.derive(state).weights.dtype == state.weights.dtype
        assert bank.transform(bank.derive(state), make(batches[0][0])).dtype == state.weights.dtype
    queries = make(batches[1][0])
    expected = banks[0].predict(banks[0].derive(double), queries)
    got = banks[1].predict(banks[1].derive(single), queries)
    np.testing.assert_allclose(got, expected, atol=2e-5 * np.abs(expected).max())
    assert (got != expected).any()


def left_out_errors(Z, H, alpha):
    """Fit as often as there are rows, each time without one, and predict that one; targets from their means."""
    H, errors = H - H.mean(axis=0), []
    for i in range(len(Z)):
        z, h = np.delete(Z, i, axis=0), np.delete(H, i, axis=0)
        errors.append(H[i] - Z[i] @ np.linalg.inv(z.T @ z + alpha * np.eye(Z.shape[1])) @ z.T @ h)
    return np.sum(np.square(errors))


def unit_rows(seed, n, noise):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    return Z, Z @ rng.normal(size=(6, 2)) + noise * rng.normal(size=(n, 2)) + 5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 25), st.sampled_from([0.0, 0.3, 1.0, 3.0]), st.booleans())
def test_refitting_without_each_row(seed, n, noise, compressed):
    Z, H = unit_rows(seed, n, noise)
    errors = [left_out_errors(Z, H, alpha) for alpha in ALPHAS]
    got = best_alpha(scipy.sparse.csr_array(Z) if compressed else Z, H)
    assert errors[list(ALPHAS).index(got)] <= min(errors) * (1 + 1e-9)


@pytest.mark.parametrize(("n", "cuts"), [(255, [0, 255]), (256, [0, 128, 256]), (300, [0, 150, 300])])
def test_many_rows_are_judged_in_blocks(n, cuts):
    """Rows on either side of a cut are of opposite meaning: only who cuts there finds that they tell something."""
    Z, H = unit_rows(1, n, 0.3)
    H[cuts[-2] :] *= -1.0
    errors = [sum(left_out_errors(Z[a:b], H[a:b], alpha) for a, b in pairwise(cuts)) for alpha in ALPHAS]
    assert best_alpha(Z, H) == ALPHAS[np.argmin(errors)]
    if len(cuts) > 2:
        assert best_alpha(Z, H) != ALPHAS[np.argmin([left_out_errors(Z, H, alpha) for alpha in ALPHAS])]


def test_every_penalty_is_the_best_somewhere():
    """The test above would be empty if one penalty always won."""
    noises = [0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0]
    chosen = {best_alpha(*unit_rows(seed, 25, noise)) for seed in range(20) for noise in noises}
    assert chosen == set(ALPHAS)


def test_of_equals_the_largest():
    Z, H = unit_rows(0, 10, 1.0)
    assert best_alpha(Z, np.full((10, 2), 0.25)) == max(ALPHAS)
    assert best_alpha(np.zeros((10, 3)), H) == max(ALPHAS)


def test_one_row_tells_nothing():
    assert min(ALPHAS) < best_alpha(*unit_rows(0, 1, 1.0)) < max(ALPHAS)


def test_targets_that_are_always_zero_have_no_say():
    for seed in range(20):
        Z, H = unit_rows(seed, 25, seed / 10)
        assert best_alpha(Z, np.hstack([H, np.zeros((25, 3))])) == best_alpha(Z, H)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200, 1e308])
def test_targets_of_any_size(size):
    Z, H = unit_rows(1, 20, 0.5)
    assert best_alpha(Z, size * (H / 10)) in ALPHAS
