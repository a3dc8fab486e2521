"""Checks of single parameters, one by one; test_refused.py tries them where they are used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base import parameters

# A busy machine is slow now and then.
QUICK = settings(max_examples=50, deadline=None)


@pytest.mark.parametrize("good", [0, 0.5, 1, np.float32(0.5), np.int8(1)])
def test_numbers_in_a_range(good):
    parameters.check_number("x", good, 0, 1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, -np.inf, True, "1", None, [1], 1j])
def test_what_is_no_number_in_a_range(bad):
    with pytest.raises(ValueError, match=r"x must be a number of at least 0 and at most 1, got "):
        parameters.check_number("x", bad, 0, 1)
    with pytest.raises(ValueError, match="x must be a number above 0, got 0"):
        parameters.check_number("x", 0, 0, open_low=True)


@pytest.mark.parametrize("bad", ["c", None, 1, ["a"], b"a"])
def test_what_is_none_of_the_choices(bad):
    parameters.check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match="x must be one of 'a', 'b', got "):
        parameters.check_choice("x", bad, ("a", "b"))


@QUICK
@given(n_labels=st.integers(1, 10**6))
def test_numbers_of_components(n_labels):
    k = parameters.component_count("log2", n_labels)
    assert 1 <= k <= n_labels
    assert 2**k >= n_labels > 2 ** (k - 1) or n_labels == 1 == k
    assert parameters.component_count("log2_squared", n_labels) == min(k * k, n_labels)
    assert parameters.component_count(n_labels, n_labels) == n_labels
    with pytest.raises(
        ValueError, match=f"n_components must be at most the number of labels, {n_labels}, got {n_labels + 1}"
    ):
        parameters.component_count(n_labels + 1, n_labels)


def test_generators():
    generator = np.random.default_rng(0)
    assert parameters.generator(generator) is generator
    assert parameters.generator(1).random() == parameters.generator(np.int64(1)).random()
    state = np.random.RandomState(4)
    assert parameters.generator(state).random() != parameters.generator(state).random()
    for bad in ("dice", -1, 1.5, object()):
        with pytest.raises(ValueError, match=r"random_state must be a whole number of at least 0, .*got "):
            parameters.generator(bad)


@pytest.mark.parametrize("bad", [0, 1, "yes", None, 1.0])
def test_what_is_no_flag(bad):
    parameters.check_flag("x", True)
    parameters.check_flag("x", np.False_)
    with pytest.raises(ValueError, match=f"x must be True or False, got {bad!r}"):
        parameters.check_flag("x", bad)


@pytest.mark.parametrize("bad", [1, 2.0, True, "3", None, np.nan])
def test_what_is_no_whole_number_in_a_range(bad):
    for good in (2, 3, np.int8(2), np.uint64(9)):
        parameters.check_whole("x", good, 2)
    with pytest.raises(ValueError, match=f"x must be a whole number of at least 2, got {bad!r}"):
        parameters.check_whole("x", bad, 2)


def test_seeds():
    assert parameters.draw_seed(7) == parameters.draw_seed(np.int32(7)) == 7
    assert parameters.draw_seed(None) != parameters.draw_seed(None)
    assert parameters.draw_seed(np.random.default_rng(3)) == parameters.draw_seed(np.random.default_rng(3))
    assert parameters.draw_seed(np.random.RandomState(3)) == parameters.draw_seed(np.random.RandomState(3))
    # What a generator itself would draw next is left to others; its next seed is another one.
    rng, untouched = np.random.default_rng(3), np.random.default_rng(3)
    assert parameters.draw_seed(rng) != parameters.draw_seed(rng)
    assert rng.random() == untouched.random()
