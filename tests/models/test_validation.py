"""Checks of what users give, one by one; tests/estimators tries them where they are used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from labelrace import parameters
from labelrace.core.categorical import CategoricalMask
from labelrace.models import inputs

# A busy machine is slow now and then.
QUICK = settings(max_examples=50, deadline=None)


@pytest.mark.parametrize("good", [0, 0.5, 1, np.float32(0.5), np.int8(1)])
def test_numbers_in_a_range(good):
    parameters.check_number("x", good, 0, 1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, -np.inf, True, "1", None, [1], 1j])
def test_what_is_no_number_in_a_range(bad):
    with pytest.raises(ValueError, match=r"x=.* does not do: give a number at least 0 and at most 1"):
        parameters.check_number("x", bad, 0, 1)
    with pytest.raises(ValueError, match=r"x=0 does not do: give a number above 0\."):
        parameters.check_number("x", 0, 0, open_low=True)


@pytest.mark.parametrize("bad", ["c", None, 1, ["a"], b"a"])
def test_what_is_none_of_the_choices(bad):
    parameters.check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match=r"x must be one of 'a', 'b'"):
        parameters.check_choice("x", bad, ("a", "b"))


@QUICK
@given(n_labels=st.integers(1, 10**6))
def test_numbers_of_components(n_labels):
    k = parameters.component_count("log2", n_labels)
    assert 1 <= k <= n_labels
    assert 2**k >= n_labels > 2 ** (k - 1) or n_labels == 1 == k
    assert parameters.component_count("log2_squared", n_labels) == min(k * k, n_labels)
    assert parameters.component_count(n_labels, n_labels) == n_labels
    with pytest.raises(ValueError, match="fewer labels"):
        parameters.component_count(n_labels + 1, n_labels)


def test_numbers_of_values_of_nominal_features():
    names = np.array(["x", "y", "z"], dtype=object)
    for chosen in ([0, 2], [True, False, True], ["z", "x"], np.array(["x", "z"]), (-1, 0)):
        assert inputs.categorical_values(chosen, 3, names).tolist() == [2, 0, 2]
    assert inputs.categorical_values(CategoricalMask([5, 0, 1]), 3, None).tolist() == [5, 0, 2]
    assert inputs.categorical_values(None, 3, None).tolist() == [0, 0, 0]
    assert inputs.categorical_values("y", 3, names).tolist() == [0, 2, 0]
    assert inputs.categorical_values(1, 3, None).tolist() == [0, 2, 0]


def test_codes():
    n_values = np.array([2, 0, 2])
    good = np.array([[0, -1.5, 3], [np.nan, np.nan, 2.0**24 - 1]])
    inputs.check_codes(good, n_values)
    inputs.check_codes(sparse.csr_array(good), n_values)
    inputs.check_codes(-good, np.zeros(3, dtype=int))
    for code in (-1.0, 0.5, 2.0**24):
        for column in (0, 2):
            bad = good.copy()
            bad[0, column] = code
            for X in (bad, sparse.csr_array(bad)):
                with pytest.raises(ValueError, match="in a column of categorical_features"):
                    inputs.check_codes(X, n_values)


def test_generators():
    generator = np.random.default_rng(0)
    assert parameters.generator(generator) is generator
    assert parameters.generator(1).random() == parameters.generator(np.int64(1)).random()
    state = np.random.RandomState(4)
    assert parameters.generator(state).random() != parameters.generator(state).random()
    for bad in ("dice", -1, 1.5, object()):
        with pytest.raises(ValueError, match=r"random_state=.* does not do: give a whole number"):
            parameters.generator(bad)


def test_finite_numbers():
    good = np.array([[0.0, np.nan], [1.0, -2.0]])
    for X in (good, sparse.csr_array(good)):
        inputs.check_finite(X, allow_missing=True)
        with pytest.raises(ValueError, match="X contains NaN"):
            inputs.check_finite(X, allow_missing=False)
        with pytest.raises(ValueError, match="X contains infinity"):
            inputs.check_finite(X * np.inf if sparse.issparse(X) else np.fmax(X, np.inf), allow_missing=True)
