"""Numeric and nominal columns against loops over the cells."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.sparse import dense
from labelrace.learners import design as columns

KINDS = st.lists(st.sampled_from([0, 2, 2, 3, 5]), min_size=1, max_size=6)
SEEDS = st.integers(0, 2**32 - 1)


def table(seed, n_values, missing=0.0, beyond=0):
    """Make rows of numbers and codes; ``beyond`` makes codes exceed what is declared."""
    rng = np.random.default_rng(seed)
    X = np.zeros((int(rng.integers(1, 8)), len(n_values)))
    for j, values in enumerate(n_values):
        X[:, j] = rng.integers(0, values + beyond, len(X)) if values else np.round(rng.normal(size=len(X)), 1)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


def naive_design(X, n_values):
    """List numeric cells, then one indicator for each value but the first of every nominal cell."""
    rows = []
    for row in X:
        numeric = [x for x, values in zip(row, n_values, strict=True) if values == 0]
        coded = [
            float(x == value) for x, values in zip(row, n_values, strict=True) for value in range(1, values) if values
        ]
        rows.append(numeric + coded)
    return np.array(rows).reshape(len(X), -1)


@settings(max_examples=80, deadline=None)
@given(SEEDS, KINDS, st.sampled_from([0, 2]))
def test_design(seed, kinds, beyond):
    n_values = np.array(kinds)
    X = table(seed, kinds, beyond=beyond)
    expected = naive_design(X, kinds)
    np.testing.assert_array_equal(dense(FeatureKinds(n_values).design(X)), expected)
    sparse = FeatureKinds(n_values).design(scipy.sparse.csr_array(X))
    assert scipy.sparse.issparse(sparse)
    np.testing.assert_array_equal(dense(sparse), expected)
    assert FeatureKinds(n_values).width == expected.shape[1]


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.lists(st.sampled_from([2, 3, 5]), min_size=1, max_size=5), st.sampled_from([0, 2]))
def test_indicators(seed, kinds, beyond):
    codes = table(seed, kinds, missing=0.2, beyond=beyond)
    expected = naive_design(codes, kinds)
    for given_codes in (codes, scipy.sparse.csr_array(codes)):
        np.testing.assert_array_equal(dense(FeatureKinds(np.array(kinds)).indicators(given_codes)), expected)


def test_numeric_and_nominal_columns_are_told_apart():
    n_values, X = np.array([0, 2, 0, 3]), np.arange(8.0).reshape(2, 4)
    for given_X in (X, scipy.sparse.csr_array(X)):
        np.testing.assert_array_equal(dense(FeatureKinds(n_values).numeric(given_X)), X[:, [0, 2]])
        np.testing.assert_array_equal(dense(FeatureKinds(n_values).nominal(given_X)), X[:, [1, 3]])
    assert (FeatureKinds(np.array([0, 0])).all_numeric, FeatureKinds(n_values).all_numeric) == (True, False)
    assert (FeatureKinds(np.array([2, 3])).all_nominal, FeatureKinds(n_values).all_nominal) == (True, False)


@pytest.mark.parametrize("kinds", [[0, 0], [2, 2], [3, 0, 2], [4, 0, 1, 2, 4, 3]])
def test_value_groups_find_the_indicators_of_the_design(kinds):
    n_values, found = np.array(kinds), []
    for features, places in FeatureKinds(n_values).value_groups:
        for feature, of_feature in zip(features, places, strict=True):
            for value, index in enumerate(of_feature, start=1):
                X = np.zeros((1, len(kinds)))
                X[0, feature] = value
                expected = np.zeros(FeatureKinds(n_values).width)
                expected[index] = 1
                np.testing.assert_array_equal(dense(FeatureKinds(n_values).design(X))[0], expected)
                assert FeatureKinds(n_values).value_order[index] == value
                found.append(index)
    assert sorted(found) == list(range((n_values == 0).sum(), FeatureKinds(n_values).width))


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_missing_values_are_filled_by_the_mean_or_the_most_frequent_value(make):
    """Of values that are equally frequent the first is taken; a column that is always missing becomes 0."""
    nan = np.nan
    X = [[1.0, 0, 2, nan, nan, 1], [nan, 1, nan, nan, nan, 0], [3.0, nan, 2, nan, nan, nan], [5.0, 1, 0, nan, nan, nan]]
    n_values = np.array([0, 3, 4, 0, 3, 2])
    values = columns.fill_values(make(np.array(X)), FeatureKinds(n_values))
    np.testing.assert_allclose(values, [3, 1, 2, 0, 0, 0])
    expected = np.where(np.isnan(X), [3, 1, 2, 0, 0, 0], X)
    np.testing.assert_array_equal(dense(columns.filled(make(np.array(X)), values)), expected)


@settings(max_examples=80, deadline=None)
@given(SEEDS, KINDS, st.sampled_from([0, 3]), st.sampled_from([0.0, 0.3]))
def test_kinds_are_widened_by_the_values_that_occur(seed, kinds, beyond, missing):
    X = table(seed, kinds, missing, beyond)
    expected = list(kinds)
    for j, values in enumerate(kinds):
        for x in X[:, j]:
            if values and not math.isnan(x):
                expected[j] = max(expected[j], int(x) + 1)
    n_values = np.array(kinds)
    for given_X in (X, scipy.sparse.csr_array(X)):
        np.testing.assert_array_equal(FeatureKinds(n_values).widened(given_X).n_values, expected)
    np.testing.assert_array_equal(n_values, kinds)


@settings(max_examples=60, deadline=None)
@given(SEEDS, KINDS, st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_missing_and_without(seed, kinds, share):
    X = table(seed, kinds, share)
    is_missing = np.array([[math.isnan(x) for x in row] for row in X])
    for given_X in (X, scipy.sparse.csr_array(X)):
        absent = columns.missing(given_X)
        if not is_missing.any():
            assert absent is None
            continue
        np.testing.assert_array_equal(dense(absent), is_missing)
        expected = [[0.0 if math.isnan(x) else x for x in row] for row in X]
        np.testing.assert_array_equal(dense(columns.without(given_X, absent)), expected)


def test_numbers_that_overflow_are_not_missing():
    X = np.array([[1e308, 1e308], [1e308, -1e308]])
    assert columns.missing(X) is None
    assert columns.missing(np.array([[np.inf, -np.inf]])) is None


def test_counting_the_missing():
    H = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    X = np.array([[np.nan, 1.0], [np.nan, 2.0], [0.0, np.nan]])
    first = columns.add_missing(None, columns.missing(X), H)
    np.testing.assert_array_equal(first, [[2, 1, 2], [0, 1, 1]])
    sparse = scipy.sparse.csr_array(X)
    np.testing.assert_array_equal(columns.add_missing(first, columns.missing(sparse), H), [[4, 2, 4], [0, 2, 2]])
    assert columns.add_missing(first, None, H) is first
    assert columns.add_or_none(None, None) is None
