"""Recursive least squares with new targets and features, on bad data, and from disk."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from helpers.banks import add_features, add_targets, assert_states_close
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.exceptions import DivergenceError
from labelrace.linear.rls import RLS

SEEDS = st.integers(0, 2**32 - 1)
FORMS = pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
KINDS = pytest.mark.parametrize("kind", ["sparse", "dense"])
CUTS = st.sampled_from([1, 3, 50, 127, 128, 150, 256])


def some_rows(seed, n, kind, m=12, k=3):
    """Make features and targets that depend on them; of sparse rows two values are not zero."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(n, m)) + (0 if kind == "sparse" else 10)
    if kind == "sparse":
        X *= rng.permuted(np.arange(m) < 2 + np.zeros((n, 1)), axis=1)
    return X, X @ rng.normal(size=(m, k)) + rng.normal(size=(n, k)) + 3


def assert_same(one, other):
    assert_states_close(one, other)
    np.testing.assert_array_equal(one.warm_up.target_values, other.warm_up.target_values)


def learn_cut(bank, X, H, cut, grow=lambda state: state, before=None, n_values=None):
    """Learn the rows up to a cut, grow, and learn the others."""
    first = (X, H) if before is None else before
    state = bank.init(np.zeros(first[0].shape[1], int) if n_values is None else n_values, first[1].shape[1])
    state = grow(bank.update(state, first[0][:cut], first[1][:cut]))
    return bank.update(state, X[cut:], H[cut:])


@settings(max_examples=12, deadline=None)
@given(SEEDS, CUTS, st.sampled_from(["sparse", "dense"]), st.sampled_from([None, 0.3]))
def test_new_targets_were_zero(seed, cut, kind, alpha):
    X, H = some_rows(seed, 300, kind)
    H[:cut, 1:] = 0.0
    bank = RLS(alpha=alpha, half_life=100.0, n_random_features=4)
    state = bank.update(bank.init(np.zeros(12, int), 1), X[:cut], H[:cut, :1])
    grown = add_targets(bank, state, 1, 3)
    known = bank.update(bank.init(np.zeros(12, int), 3), X[:cut], H[:cut])
    for weights in (grown.weights, known.weights, grown.intercepts, known.intercepts):
        assert (weights[..., 1:] == 0).all()
    assert_same(grown, known)
    assert_same(bank.update(grown, X[cut:], H[cut:]), bank.update(known, X[cut:], H[cut:]))


@settings(max_examples=12, deadline=None)
@given(SEEDS, CUTS, st.booleans(), st.sampled_from([None, 0.3]))
def test_new_sparse_features_were_zero(seed, cut, compressed, alpha):
    X, H = some_rows(seed, 300, "sparse")
    X[:cut, 9:] = 0.0
    make = scipy.sparse.csr_array if compressed else np.array
    bank = RLS(alpha=alpha, half_life=100.0)
    got = learn_cut(
        bank, make(X), H, cut, lambda state: add_features(bank, state, np.zeros(12, int)), (make(X[:, :9]), H)
    )
    assert_same(got, learn_cut(bank, make(X), H, cut))


def test_new_features_come_before_nominal_ones():
    rng = np.random.default_rng(0)
    n_values = np.array([3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 2])
    X = np.zeros((300, 11))
    X[:, 1] = rng.normal(size=300)
    X[:, [0, 4]] = rng.integers(0, [3, 4], size=(300, 2)) * (rng.random((300, 2)) < 0.4)
    X[150:, 9], X[150:, 10] = rng.normal(size=150), rng.integers(0, 2, 150)
    H = rng.normal(size=(300, 2)) + X[:, [0, 9]]
    bank = RLS()
    # What is said of features that are known does not count: the state knows them best.
    misled = np.where(np.arange(11) == 4, 9, n_values)
    got = learn_cut(
        bank, X, H, 150, lambda state: add_features(bank, state, misled), (X[:, :9], H), n_values=n_values[:9]
    )
    np.testing.assert_array_equal(got.scaling.kinds.n_values, n_values)
    assert_same(got, learn_cut(bank, X, H, 150, n_values=n_values))


@pytest.mark.parametrize("half_life", [None, 100.0])
def test_new_dense_features_are_learned(half_life):
    """They were 0 in all rows: their weights and precision start from nothing, the others stay what they were."""
    X, H = some_rows(1, 900, "dense", m=6)
    X[:600, 4:] = 0.0
    bank = RLS(alpha=0.3, n_random_features=0, half_life=half_life)
    before = bank.update(bank.init(np.zeros(4, int), 3), X[:600, :4], H[:600])
    grown = add_features(bank, before, np.zeros(6, int))
    np.testing.assert_array_equal(grown.weights[:4], before.weights)
    np.testing.assert_array_equal(grown.extra_precision[:4], before.extra_precision)
    assert not grown.weights[4:].any()
    assert not grown.extra_precision[4:].any()
    for start in (600, 750):
        grown = bank.update(grown, X[start : start + 150], H[start : start + 150])
    assert np.abs(grown.weights[4:]).min() > 1e-3
    assert grown.extra_precision[4:, 0].min() > 1e-3


@KINDS
@pytest.mark.parametrize("n", [0, 5, 200])
def test_new_features_change_no_prediction(kind, n):
    X, H = some_rows(2, 250, kind)
    bank = RLS(half_life=20.0, n_random_features=7)
    state = bank.init(np.zeros(12, int), 3)
    state = bank.update(state, X[:n], H[:n]) if n else state
    grown = add_features(bank, state, np.array([0] * 12 + [0, 3]))
    before = bank.predict(bank.derive(state), X)
    after = bank.predict(bank.derive(grown), np.hstack([X, np.zeros((250, 2))]))
    np.testing.assert_allclose(after, before, atol=1e-12)
    # It learns on, also where the first rows are begun with again.
    more = bank.update(grown, np.hstack([X, np.ones((250, 2))]), H)
    assert np.isfinite(bank.predict(bank.derive(more), np.hstack([X, np.ones((250, 2))]))).all()


@FORMS
@pytest.mark.parametrize("sizes", [[200], [50], [1] * 20])
def test_missing_values_in_sparse_rows_are_zeros(make, sizes):
    X, H = some_rows(3, sum(sizes), "sparse")
    holes = np.random.default_rng(4).random(X.shape) < 0.05
    states = []
    for filled in (np.where(holes, np.nan, X), np.where(holes, 0.0, X)):
        bank, start = RLS(), 0
        state = bank.init(np.zeros(12, int), 3)
        for n in sizes:
            state = bank.update(state, make(filled[start : start + n]), H[start : start + n])
            start += n
        states.append((state, bank.predict(bank.derive(state), make(filled))))
    np.testing.assert_allclose(states[0][1], states[1][1], atol=1e-12)
    assert_same(states[0][0], states[1][0])


@pytest.mark.parametrize("sizes", [[200, 100], [1] * 40 + [150]])
def test_missing_values_in_dense_rows_are_means(sizes):
    X, H = some_rows(5, sum(sizes), "dense")
    X[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    bank, start = RLS(n_random_features=5), 0
    state = bank.init(np.zeros(12, int), 3)
    for n in sizes:
        state = bank.update(state, X[start : start + n], H[start : start + n])
        start += n
    derived = bank.derive(state)
    got = bank.predict(derived, X)
    filled = np.where(np.isnan(X), state.scaling.mean, X)
    np.testing.assert_allclose(got, bank.predict(derived, filled), atol=1e-9)
    # The mean of some hundred values is near that of the distribution: missing ones have not drawn it to zero.
    assert np.abs(state.scaling.mean - 10).max() < 1


@FORMS
@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e150, 1e155, 1e200, 1.7e308])
@pytest.mark.parametrize("sizes", [[200], [60, 60, 60]])
@pytest.mark.parametrize("of", ["X", "H"])
@KINDS
def test_values_of_any_size_are_refused_or_learned(make, kind, size, sizes, of):
    X, H = some_rows(7, sum(sizes), kind)
    if of == "X":
        X[:, 3] *= size / np.abs(X[:, 3]).max()
    else:
        H *= size / np.abs(H).max()
    bank, start = RLS(n_random_features=5, half_life=20.0), 0
    state = bank.init(np.zeros(12, int), 3)
    try:
        for n in sizes:
            state = bank.update(state, make(X[start : start + n]), H[start : start + n])
            start += n
    except DivergenceError:
        assert size > 1e153
    assert np.isfinite(np.asarray(state.weights)).all()
    assert np.isfinite(np.asarray(state.extra_precision)).all()
    assert size > 1e200 or np.isfinite(bank.predict(bank.derive(state), make(X))).all()


def test_weights_that_overflow_are_refused():
    """Rows that are nearly alike, with targets far apart, ask for weights larger than these, and no intercept."""
    X, H = np.zeros((2, 8)), np.array([[1.0], [-1.0]])
    X[:, :2] = [[1.0, 1.2], [1.2, 1.0]]
    bank = RLS(alpha=1e-6)
    empty = bank.init(np.zeros(8, int), 1)
    small = bank.update(empty, X, H)
    assert np.abs(small.weights).max() > 5
    assert np.abs(small.intercepts).max() < 1e-6
    with pytest.raises(DivergenceError, match="scale them down"):
        bank.update(empty, X, 5e307 * H)


def test_refused_batch_leaves_the_state():
    X, H = some_rows(8, 200, "dense")
    bank = RLS()
    state = bank.update(bank.init(np.zeros(12, int), 3), X, H)
    before = bank.predict(bank.derive(state), X)
    with pytest.raises(DivergenceError):
        bank.update(state, X, np.full_like(H, 1e308))
    np.testing.assert_array_equal(bank.predict(bank.derive(state), X), before)


@pytest.mark.parametrize("n", [1, 5, 200, 700])
def test_rows_of_nothing_teach_the_intercept(n):
    """Ridge regression of the mean with penalty 1; the weights stay zero."""
    H = np.random.default_rng(9).normal(size=(n, 2)) + 4
    bank = RLS()
    state = bank.update(bank.init(np.zeros(3, int), 2), np.zeros((n, 3)), H)
    np.testing.assert_allclose(state.intercepts, H.sum(axis=0) / (1 + n))
    np.testing.assert_allclose(state.intercept_extra_precision[0], n)
    np.testing.assert_array_equal(state.weights, 0)


@FORMS
@KINDS
@pytest.mark.parametrize("n", [20, 150])
def test_nothing_given_is_changed(assert_pure, make, kind, n):
    X, H = some_rows(10, n, kind)
    bank = RLS(n_random_features=4, half_life=20.0)
    state = assert_pure(bank.update, bank.init(np.zeros(12, int), 3), make(X), H)
    before = bank.predict(bank.derive(state), make(X))
    assert_pure(bank.update, state, make(X), H)
    assert_pure(bank.update, state, make(X[:3]), H[:3])
    assert_pure(bank.forget, state, 0.5)
    assert_pure(partial(add_targets, bank), state, 3, 5)
    assert_pure(partial(add_features, bank), state, np.zeros(14, int))
    np.testing.assert_array_equal(assert_pure(bank.predict, assert_pure(bank.derive, state), make(X)), before)


@FORMS
def test_rows_that_are_kept_are_copies(make):
    """Who gives a batch may write over it afterwards."""
    X, H = some_rows(11, 60, "sparse")
    bank = RLS()
    expected = learn_cut(bank, make(X), H, 20)
    given, targets = make(X[:20]), H[:20].copy()
    state = bank.update(bank.init(np.zeros(12, int), 3), given, targets)
    given *= 0
    targets *= 0
    assert_same(bank.update(state, make(X[20:]), H[20:]), expected)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"alpha": 0.0}, "alpha"), ({"alpha": math.inf}, "alpha"), ({"half_life": 0}, "half_life"),
     ({"n_random_features": -1}, "n_random_features"), ({"n_random_features": 1.5}, "n_random_features")],
)  # fmt: skip
def test_refused_settings(settings, name):
    with pytest.raises(ValueError, match=name):
        RLS(**settings)
