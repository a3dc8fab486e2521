"""Curves and averages."""

import math

import numpy as np
import pytest

from labelrace.evaluation import Checkpoint, averages, cumulative, windowed


def points(values, sizes=None, whole=None):
    sizes = sizes or [10] * len(values)
    whole = whole or [True] * len(values)
    ends = np.cumsum(sizes).tolist()
    return [
        Checkpoint(number, end - size, end, {"a": value, "b": 1.0}, {}, whole=full)
        for number, (value, end, size, full) in enumerate(zip(values, ends, sizes, whole, strict=True), start=1)
    ]


def test_averages_leave_out_partial_batches():
    assert averages(points([0.2, 0.4, 9.0], whole=[True, True, False])) == pytest.approx({"a": 0.3, "b": 1.0})


def test_a_partial_batch_is_better_than_none():
    assert averages(points([0.7], whole=[False])) == {"a": 0.7, "b": 1.0}


def test_nan_does_not_count():
    assert averages(points([math.nan, 0.4])) == {"a": 0.4, "b": 1.0}
    assert math.isnan(averages(points([math.nan]))["a"])
    np.testing.assert_allclose(windowed(points([math.nan, 0.4, 0.2]), 2)["a"], [math.nan, 0.4, 0.3])
    np.testing.assert_allclose(cumulative(points([0.4, math.nan, 0.2]))["a"], [0.4, 0.4, 0.3])


def test_against_numpy():
    rng = np.random.default_rng(0)
    values, sizes = rng.random(30), rng.integers(1, 20, 30)
    given = points(values.tolist(), sizes.tolist())
    expected = [values[max(0, last - 6) : last + 1].mean() for last in range(30)]
    np.testing.assert_allclose(windowed(given, 7)["a"], expected)
    np.testing.assert_allclose(cumulative(given)["a"], np.cumsum(values * sizes) / np.cumsum(sizes))
    assert averages(given)["a"] == pytest.approx(values.mean())


def test_untested_batches_do_not_count():
    untested = Checkpoint(0, 0, 10, {}, {}, tested=False)
    given = [untested, *points([0.5])]
    assert averages(given) == {"a": 0.5, "b": 1.0}
    assert len(windowed(given)["a"]) == len(cumulative(given)["a"]) == 1


def test_nothing_gives_nothing():
    assert averages([]) == windowed([]) == cumulative([]) == {}


def test_window_must_hold_a_batch():
    with pytest.raises(ValueError, match="window"):
        windowed([], 0)
