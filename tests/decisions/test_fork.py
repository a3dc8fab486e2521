"""Comparing the two models of a fork, and when rows have more labels than before; `tests/linear/test_fork.py` forks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelrace.decisions import fork
from labelrace.decisions.fork import Comparison

START = Comparison(0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_sums_and_their_standard_error(seed, sizes):
    """Written out: every row weighs half as much after 250 rows; the standard error is that of the weighted sum."""
    rng = np.random.default_rng(seed)
    comparison, values, weights = START, np.zeros(0), np.zeros(0)
    for size in sizes:
        some = rng.normal(0.1, 1.0, size)
        comparison = comparison.after(some)
        values, weights = np.append(values, some), np.append(weights * 0.5 ** (size / 250), np.ones(size))
    mean = weights @ values / weights.sum()
    assert comparison.rows == pytest.approx(weights.sum())
    assert comparison.differences == pytest.approx(weights @ values)
    assert comparison.standard_error == pytest.approx(np.sqrt(weights @ (values - mean) ** 2), abs=1e-9)


def differing(standard_errors, n=200):
    """Make differences with a sum of this number of standard errors."""
    noise = np.resize([1.0, -1.0], n)
    return START.after(noise + standard_errors / np.sqrt(n))


@pytest.mark.parametrize(("has_forgotten", "needed"), [(0.0, 3.0), (1.0, 1.5)])
def test_the_second_model_takes_over_only_when_it_is_better_by_more_than_chance(has_forgotten, needed):
    for standard_errors in (-9.0, 0.0, needed - 0.1, needed + 0.1, 9.0):
        comparison = differing(standard_errors)._replace(has_forgotten=has_forgotten)
        assert comparison.is_second_better() == (standard_errors > needed)
    assert not START._replace(has_forgotten=has_forgotten).is_second_better()


def test_after_a_change_the_lead_begins_anew():
    comparison = differing(5.0)._replace(rows_ahead=700.0)
    swapped = comparison.swapped()
    assert not swapped.is_second_better()
    assert (swapped.rows_ahead, swapped.has_forgotten) == (0.0, 1.0)
    assert swapped.swapped()._replace(rows_ahead=700.0) == comparison


@pytest.mark.parametrize(("standard_errors", "rows"), [(-2.0, 2000), (-0.5, 8000), (0.5, 8000)])
def test_the_other_model_is_dropped_when_one_has_been_better_for_long_enough(standard_errors, rows):
    comparison = differing(standard_errors)
    assert not comparison._replace(rows_ahead=rows - 1.0).is_decided()
    assert comparison._replace(rows_ahead=float(rows)).is_decided()


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.floats(0.01, 0.9))
def test_as_many_labels_as_before_are_no_surprise(seed, n, share):
    Y = np.random.default_rng(seed).random((n, 12)) < share
    assert not fork.has_more_labels(Y, float(Y.sum(axis=1).mean()))
    assert not fork.has_more_labels(np.zeros((n, 12)), 0.0)
    assert not fork.has_more_labels(Y, np.inf)


def test_rows_with_unusual_errors_count_half_for_the_model_that_remembers():
    assert fork._doubtful(START, 3, None) is None
    assert fork._doubtful(START._replace(recent_error=1.3), 3, None).tolist() == [0.5] * 3
    assert fork._doubtful(START._replace(recent_error=1.3), 2, np.array([2.0, 4.0])).tolist() == [1.0, 2.0]
