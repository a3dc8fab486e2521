"""Scaled columns and random features, against loops over rows and columns and NumPy's moments."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.exceptions import DivergenceError
from labelrace.linear import scaling

SEEDS = st.integers(0, 2**32 - 1)
FORMS = pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])


def some_rng():
    return np.random.default_rng(0)


def unit_rows(X):
    """Damp every value and divide every row by its length, one by one."""
    rows = []
    for row in X:
        damped = [0.0 if math.isnan(x) else math.copysign(math.log(1 + abs(x)), x) for x in row]
        length = math.sqrt(sum(x * x for x in damped))
        rows.append([x / length if length else 0.0 for x in damped])
    return np.array(rows)


def weighted_moments(batches, forgetting):
    """Compute mean and variance of all rows, each weighted by what has been forgotten since."""
    weights = np.concatenate([np.full(len(X), forgetting**age) for age, X in enumerate(reversed(batches))][::-1])
    X = np.vstack(batches)
    mean = np.average(X, axis=0, weights=weights)
    return weights.sum(), mean, np.average((X - mean) ** 2, axis=0, weights=weights)


def dense_state(X, n_random=0, n_values=None):
    n_values = np.zeros(X.shape[1], int) if n_values is None else n_values
    return scaling.update(scaling.start(X, n_values, n_random, some_rng()), X)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(1, 20), st.integers(1, 30))
def test_sparse_rows_are_damped_and_of_length_one(seed, n, m):
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.2)
    X[rng.random((n, m)) < 0.05] = np.nan
    state, expected = scaling.init(np.zeros(m, int)), unit_rows(X)
    for form in (X, scipy.sparse.csr_array(X)):
        transformed = scaling.transform(state, form)
        assert scipy.sparse.issparse(transformed)
        np.testing.assert_allclose(transformed.toarray(), expected, rtol=1e-12, atol=1e-15)


@FORMS
def test_rows_of_nothing_stay_nothing(make):
    X = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    transformed = scaling.transform(scaling.init(np.zeros(2, int)), make(X)).toarray()
    np.testing.assert_array_equal(transformed, [[0, 0], [0, 1], [0, 0]])
    assert scaling.transform(scaling.init(np.zeros(2, int)), make(np.zeros((3, 2)))).nnz == 0


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e-200, 1e-162, 1e-150, 1e150, 1e300, 1.7e308])
def test_sparse_values_of_any_size_do_not_get_longer_than_one(value):
    """The square of 1e-200 is zero, and still no value may be divided by less than its row's length."""
    X = np.array([[value, 0.0, -value], [value, 0.0, 0.0]])
    transformed = scaling.transform(scaling.init(np.zeros(3, int)), X).toarray()
    assert np.abs(transformed).max() <= 1 + 1e-12
    assert (np.sign(transformed) == np.sign(X)).all()


def test_indicators_are_of_length_one_together():
    X = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 0.0], [np.nan, 1.0], [1.0, np.nan]])
    transformed = scaling.transform(scaling.init(np.array([3, 2])), X).toarray()
    half = math.sqrt(0.5)
    np.testing.assert_allclose(transformed, [[0, half, half], [0, 0, 1], [0, 0, 0], [0, 0, 1], [1, 0, 0]])


@FORMS
def test_kind_is_told_by_the_share_of_non_zeros(make):
    X = np.zeros((10, 10))
    X[:, :3] = 1.0
    assert scaling.start(make(X), np.zeros(10, int), 5, some_rng()).sqrt_n_columns == 0
    assert scaling.start(make(np.vstack([X] + 9 * [0 * X])), np.zeros(10, int), 5, some_rng()).sqrt_n_columns == 0
    X[0, 3] = np.nan
    # Rows of zeros tell nothing.
    X = np.vstack([0 * np.nan_to_num(X), X])
    state = scaling.start(make(X), np.zeros(10, int), 5, some_rng())
    assert state.sqrt_n_columns == pytest.approx(math.sqrt(10))
    assert state.directions.shape == (10, 5)
    assert scaling.n_columns(state) == 15


def test_stored_zeros_are_zeros():
    X = scipy.sparse.csr_array((np.zeros(4), ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    assert X.nnz == 4
    assert scaling.start(X, np.zeros(2, int), 5, some_rng()).sqrt_n_columns == 0


def test_an_outlier_changes_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1, 100]
    state = scaling.update(scaling.start(X, np.zeros(2, int), 0, some_rng()), X)
    spoilt = X[:100].copy()
    spoilt[7] = [1e200, -1e9]
    for n in (100, 1):
        learned = scaling.update(state, spoilt[8 - n :][:n] if n == 1 else spoilt)
        np.testing.assert_allclose(scaling.scale(learned), scaling.scale(state), rtol=0.7)
        assert (scaling.scale(learned) > scaling.scale(state)).all()
    # Where nothing has varied yet, nothing is an outlier.
    still = scaling.update(scaling.start(X, np.zeros(2, int), 0, some_rng()), np.ones((200, 2)))
    np.testing.assert_allclose(np.sqrt(scaling.update(still, X).sum_squares / 200), X.std(axis=0))


def test_outliers_and_empty_rows_among_the_first():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1, 100, 0] + [50, 0, 7]
    spoilt = X.copy()
    spoilt[[3, 70, 199]] = [[1e6, -1e90, 7], [1e9, 1e9, 1e9], [-1e6, 0, 0]]
    spoilt = np.vstack([np.zeros((100, 3)), spoilt])
    found, clean = dense_state(spoilt), dense_state(X)
    np.testing.assert_allclose(
        np.sqrt(found.sum_squares / found.rows)[:2], np.sqrt(clean.sum_squares / clean.rows)[:2], rtol=0.7
    )
    np.testing.assert_allclose(found.mean[:2], clean.mean[:2], atol=20)
    # Rare values of otherwise constant columns are none.
    rare = np.full((300, 1), 5.0)
    rare[[7, 9]] = 6.0
    np.testing.assert_allclose(dense_state(rare).sum_squares, 300 * rare.var())


def test_columns_that_start_late_have_moments_from_then_on():
    rng = np.random.default_rng(0)
    late = rng.normal([50, 0], size=(30, 2))
    X = np.column_stack([rng.normal(size=100), np.full(100, 0.1), np.zeros(100)])
    state = scaling.update(dense_state(X), X)
    batch = np.column_stack([rng.normal(size=40), np.full(40, 0.1), np.zeros(40)])
    batch[10:, 1:] = late
    state = scaling.update(state, batch)
    np.testing.assert_allclose(state.rows, [240, 30, 30])
    np.testing.assert_allclose(state.mean[1:], late.mean(axis=0))
    np.testing.assert_allclose(state.sum_squares[1:], 30 * late.var(axis=0))


def test_moments_that_recent_rows_contradict_are_revised():
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(600, 3)) * [1e3, 1, 1], rng.normal(size=(600, 3)) * [1, 1, 0.2]
    state = scaling.update(dense_state(wide), wide)
    assert scaling.with_recent_moments(state).recent_rows == 0
    state = scaling.update(scaling.with_recent_moments(state), narrow[:200])
    assert scaling.with_recent_moments(state) is state
    state = scaling.with_recent_moments(scaling.update(state, narrow[200:]))
    np.testing.assert_allclose(np.sqrt(state.sum_squares / state.rows), [1, 1, 0.77], rtol=0.15)
    np.testing.assert_allclose(state.rows, [256, 1800, 1800])


def test_sparse_data_that_becomes_dense():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(300, 10))
    state = scaling.start(np.zeros((600, 10)), np.zeros(10, int), 5, some_rng())
    for X in (np.zeros((600, 10)), dense * (rng.random(dense.shape) < 0.4), dense[:200]):
        state = scaling.update(state, X)
        assert not scaling.has_become_dense(state)
    assert scaling.has_become_dense(scaling.update(state, scipy.sparse.csr_array(dense)))


def test_columns_in_another_unit_are_scaled_anew():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    state = scaling.update(scaling.start(X, np.zeros(4, int), 0, some_rng()), X)
    other = X[:100] * [1000, 0.001, 1, 1] + [0, 0, 50, 0.5]
    other[3, 1] = np.nan
    scaled = scaling.rescale(state, other)
    np.testing.assert_allclose(scaled.mean[:3], np.nanmean(other, axis=0)[:3], rtol=0.05, atol=20)
    spread = np.sqrt(scaled.sum_squares / scaled.rows)
    np.testing.assert_allclose(spread[:3], [1000, 0.001, 1], rtol=0.5)
    # What has moved by less than chance may is as it was; so is everything where rows are few.
    assert (scaled.mean[3], scaled.sum_squares[3]) == pytest.approx((state.mean[3], state.sum_squares[3]))
    np.testing.assert_array_equal(scaling.rescale(state, other[:10]).sum_squares, state.sum_squares)


@settings(max_examples=50, deadline=None)
@given(
    SEEDS,
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.sampled_from([1.0, 0.9, 0.3]),
    st.sampled_from([0.0, 1e4]),
)
def test_moments_are_those_of_weighted_rows(seed, sizes, forgetting, offset):
    rng = np.random.default_rng(seed)
    batches = [offset + rng.normal(size=(n, 3)) * [1, 10, 0.1] + 0.1 * rng.normal() for n in sizes]
    state = scaling.start(batches[0], np.zeros(3, int), 0, some_rng())
    for X in batches:
        state = scaling.update(state, X, forgetting)
    rows, mean, variance = weighted_moments(batches, forgetting)
    np.testing.assert_allclose(state.rows, rows)
    np.testing.assert_allclose(state.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.sum_squares / state.rows, variance, rtol=1e-6, atol=1e-12)


@FORMS
def test_dense_columns_are_standardised_and_clipped(make):
    X = np.random.default_rng(1).normal(size=(200, 4)) * [1, 100, 1e-3, 1] + [0, 1e3, 0, -5]
    X[0, 0], X[1, 0] = 12.0, -12.0
    state = dense_state(make(X))
    expected = np.empty_like(X)
    for j in range(4):
        for i in range(200):
            z = (X[i, j] - X[:, j].mean()) / X[:, j].std()
            expected[i, j] = max(-5.0, min(5.0, z)) / 2
    transformed = scaling.transform(state, make(X))
    np.testing.assert_allclose(transformed, expected, atol=1e-9)
    assert transformed[:2, 0].tolist() == [2.5, -2.5]


def test_random_features_are_absolute_values_along_the_directions():
    X = np.random.default_rng(2).normal(size=(50, 3)) + 7
    state = dense_state(X, n_random=4)
    row = (X - X.mean(axis=0)) / X.std(axis=0) / math.sqrt(3)
    transformed = scaling.transform(state, X)
    np.testing.assert_allclose(transformed[:, :3], row, atol=1e-12)
    for d in range(4):
        along = sum(row[:, j] * state.directions[j, d] for j in range(3))
        np.testing.assert_allclose(transformed[:, 3 + d], (abs(along) - math.sqrt(2 / math.pi)) / 2, atol=1e-12)


def test_rows_and_their_random_features_are_of_length_near_one():
    """On normal data the mean of a random feature is zero, and together they are as long as the row."""
    X = np.random.default_rng(3).normal(size=(2000, 30)) * 9 + 4
    transformed = scaling.transform(dense_state(X, n_random=400), X)
    assert (transformed[:, :30] ** 2).sum(axis=1).mean() == pytest.approx(1, abs=0.02)
    assert transformed[:, 30:].mean(axis=0).mean() * math.sqrt(400) == pytest.approx(0, abs=0.02)
    assert (transformed[:, 30:] ** 2).sum(axis=1).mean() == pytest.approx(1 - 2 / math.pi, abs=0.05)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9, 1e-200])
def test_constant_columns_are_zero(constant):
    X = np.random.default_rng(4).normal(size=(60, 2))
    X[:, 1] = constant
    state = dense_state(X)
    assert (scaling.transform(state, X)[:, 1] == 0).all()
    np.testing.assert_array_equal(scaling.transform(state, X + np.array([0, 1]))[:, 1], 0)


def test_missing_values_are_the_mean():
    X = np.random.default_rng(5).normal(size=(80, 3)) + 100
    holes = np.random.default_rng(6).random(X.shape) < 0.2
    holed = np.where(holes, np.nan, X)
    state = dense_state(holed, n_random=5)
    means = np.nanmean(holed, axis=0)
    filled = np.where(holes, means, X)
    np.testing.assert_allclose(state.mean, means)
    np.testing.assert_allclose(state.sum_squares, ((filled - means) ** 2).sum(axis=0))
    np.testing.assert_allclose(scaling.transform(state, holed), scaling.transform(state, filled), atol=1e-12)
    again, known = scaling.update(state, holed), scaling.update(state, filled)
    np.testing.assert_allclose(again.mean, known.mean)
    np.testing.assert_allclose(again.sum_squares, known.sum_squares)


def test_column_that_is_always_missing():
    X = np.random.default_rng(7).normal(size=(30, 2))
    X[:, 1] = np.nan
    state = dense_state(X, n_random=3)
    assert np.isfinite(scaling.transform(state, X)).all()
    assert (scaling.transform(state, X)[:, 1] == 0).all()


@pytest.mark.parametrize("value", [1e-300, 1e-160, 1e100, 1e150, 1e155, 1e200, 1.7e308])
def test_dense_values_of_any_size_are_refused_or_finite(value):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3)) + 1
    huge = X.copy()
    huge[:, 1] *= value / 10
    try:
        state = dense_state(huge, n_random=5)
    except DivergenceError:
        assert value > 1e152
    else:
        assert value < 1e160
        assert np.isfinite(scaling.transform(state, huge)).all()
    # At predicting, nothing is added up: what is too large is clipped.
    assert np.isfinite(scaling.transform(dense_state(X, n_random=5), huge)).all()


N_VALUES = st.lists(st.sampled_from([0, 2, 3, 4]), min_size=1, max_size=4)


def mixed(rng, n_values, n):
    """Draw rows of numeric and nominal features without a zero in the numeric ones."""
    return np.column_stack([rng.integers(0, v, n) if v else rng.normal(size=n) + 9 for v in n_values]).astype(float)


def grow(state, n_values):
    """Add features behind the others."""
    kinds = FeatureKinds(np.asarray(n_values))
    return scaling.take(state, Moves(state.kinds.moves(kinds), kinds))


def positions(before, after):
    """Find the columns of known features among those of more: all numbers come first, then the indicators."""
    (known, wanted) = (
        [(f, 0) for f, v in enumerate(values) if v == 0] + [(f, i) for f, v in enumerate(values) for i in range(1, v)]
        for values in (before, after)
    )
    return [wanted.index(column) for column in known]


@settings(max_examples=50, deadline=None)
@given(SEEDS, N_VALUES, N_VALUES, st.integers(0, 3))
def test_features_that_were_zero(seed, before, after, n_random):
    """Rows look as they did, wherever the new columns are; with moments as if zeros had been learned."""
    rng = np.random.default_rng(seed)
    before = [0, *before]
    wide = np.array(before + after)
    X = mixed(rng, before, 30)
    n_old, padded = np.array(before), np.hstack([X, np.zeros((30, len(after)))])
    m_old, m_new = FeatureKinds(n_old).width, FeatureKinds(wide).width
    state = scaling.update(scaling.start(X, n_old, n_random, rng), X)
    grown = grow(state, wide)
    transformed, then = scaling.transform(grown, padded), scaling.transform(state, X)
    column = positions(n_old, wide)
    np.testing.assert_array_equal(transformed[:, column], then[:, :m_old])
    np.testing.assert_allclose(transformed[:, m_new:], then[:, m_old:], atol=1e-12)
    np.testing.assert_array_equal(np.delete(transformed[:, :m_new], column, axis=1), 0)
    none = np.zeros(m_new)
    known = grown._replace(
        rows=none, mean=none, sum_squares=none, recent_rows=0.0, recent_mean=none, recent_sum_squares=none
    )
    known = scaling.update(known, padded)
    for got, expected in zip(grown[1:], known[1:], strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_sparse_features_that_were_zero():
    X = np.zeros((3, 10))
    X[:, 1] = [1, 0, 4]
    state = scaling.start(X, np.zeros(10, int), 5, some_rng())
    grown = grow(state, np.zeros(12, int))
    padded = np.hstack([X, np.zeros((3, 2))])
    np.testing.assert_array_equal(
        scaling.transform(grown, padded).toarray()[:, :10], scaling.transform(state, X).toarray()
    )
    assert scaling.n_columns(grown) == 12


@FORMS
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_nothing_given_is_changed(assert_pure, make, share):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 10)) * (rng.random((20, 10)) < share)
    X[0, 0] = np.nan
    state = assert_pure(scaling.start, make(X), np.zeros(10, int), 3, some_rng())
    assert state.is_dense == (share > 0.5)
    learned = assert_pure(scaling.update, state, make(X))
    assert_pure(scaling.update, learned, make(X), 0.5)
    assert_pure(scaling.transform, learned, make(X))
    assert_pure(grow, learned, np.zeros(12, int))
