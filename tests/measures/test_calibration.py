"""Calibration against scikit-learn, against loops, and batch by batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.calibration import calibration_curve

from labelrace.measures import expected_calibration_error, reliability
from labelrace.measures.calibration import add, empty, merge


def draw(seed=0, n_rows=40, n_labels=7, decimals=None):
    rng = np.random.default_rng(seed)
    P = rng.random((n_rows, n_labels)) ** 2
    if decimals is not None:
        P = P.round(decimals)  # many on an edge
    return (rng.random(P.shape) < P**1.5).astype(float), P


def by_loops(Y, P, n_bins):
    """Go through the entries one by one, straight from the definition; NaN is left out."""
    edges = [index / n_bins for index in range(n_bins + 1)]
    held = [[] for _ in range(n_bins)]
    for labels, probabilities in zip(Y, P, strict=True):
        for label, p in zip(labels, probabilities, strict=True):
            if label == label:
                index = next(b for b in range(n_bins) if p <= edges[b + 1] or b == n_bins - 1)
                held[index].append((label, p))
    total = sum(map(len, held))
    error = sum(abs(sum(label for label, _ in pairs) - sum(p for _, p in pairs)) for pairs in held)
    return held, error / total


@pytest.mark.parametrize("n_bins", [1, 2, 5, 10, 15])
@pytest.mark.parametrize("decimals", [None, 1])
def test_curve_is_that_of_scikit_learn(n_bins, decimals):
    Y, P = draw(decimals=decimals)
    share, mean = calibration_curve(Y.ravel(), P.ravel(), n_bins=n_bins)
    got = reliability(Y, P, n_bins)
    filled = got.entries > 0
    np.testing.assert_allclose(got.share_present[filled], share, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.mean_probability[filled], mean, rtol=0, atol=1e-12)
    assert np.isnan(got.share_present[~filled]).all()
    weights = got.entries[filled] / got.entries.sum()
    assert got.error == pytest.approx(np.sum(weights * np.abs(share - mean)), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.floats(0, 0.9))
def test_error_is_that_of_a_loop(seed, n_bins, hidden):
    Y, P = draw(seed, 6, 5)
    Y[np.random.default_rng(seed + 1).random(Y.shape) < hidden] = np.nan
    Y[0, 0] = 1
    held, error = by_loops(Y, P, n_bins)
    got = reliability(Y, P, n_bins)
    assert got.entries.tolist() == [len(pairs) for pairs in held]
    assert got.present.tolist() == [sum(label for label, _ in pairs) for pairs in held]
    assert got.error == pytest.approx(error, abs=1e-12)
    assert expected_calibration_error(Y, P, n_bins) == got.error


def test_known_values():
    perfect = [[1, 0], [0, 1]]
    assert expected_calibration_error(perfect, perfect) == 0
    assert expected_calibration_error(perfect, [[0, 1], [1, 0]]) == 1
    assert expected_calibration_error([[1], [0], [0], [0]], [[0.25]] * 4) == 0
    assert np.isnan(expected_calibration_error([[np.nan]], [[0.5]]))


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dok", "lil"])
def test_sparse_labels_are_dense_ones(form):
    Y, P = draw()
    Y[3, 2], Y[5, 0] = np.nan, np.nan
    expected = reliability(Y, P)
    given = sparse.coo_array(Y).asformat(form)
    before = given.copy()
    for a, b in zip(reliability(given, P), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(given.toarray(), before.toarray())


@pytest.mark.parametrize("convert", [np.ndarray.tolist, pd.DataFrame, lambda Y: Y.astype(object)])
def test_kinds_of_dense_labels(convert):
    Y, P = draw()
    assert expected_calibration_error(convert(Y), P) == expected_calibration_error(Y, P)
    assert expected_calibration_error(Y.astype(bool), P) == expected_calibration_error(Y, P)
    Y[0, 0] = np.nan
    assert expected_calibration_error(convert(Y), P) == expected_calibration_error(Y, P)


def test_a_stream_is_the_sum_of_its_batches():
    Y, P = draw(n_rows=100)
    known = empty()
    for start in range(0, 100, 30):
        known = add(known, Y[start : start + 30], P[start : start + 30])
    whole = reliability(Y, P)
    assert known.entries.tolist() == whole.entries.tolist()
    assert known.present.tolist() == whole.present.tolist()
    np.testing.assert_allclose(known.probability, whole.probability, rtol=1e-13)
    assert known.error == pytest.approx(whole.error, abs=1e-13)
    assert np.isnan(empty().error)
    with pytest.raises(ValueError, match="15 and 10"):
        merge(known, empty(10))


@pytest.mark.parametrize(
    ("Y", "P", "said"),
    [
        ([[1, 0]], [[0.5]], r"P must have the shape of Y, \(1, 2\), got \(1, 1\)"),
        ([1, 0], [[0.5, 0.5]], "Y must be two-dimensional"),
        ([[1, 2]], [[0.5, 0.5]], "Y must hold only 0 and 1"),
        ([["a", "b"]], [[0.5, 0.5]], "Y must hold only 0, 1 and NaN"),
        ([[1, 0]], [[0.5, 1.2]], r"P must hold probabilities, from 0 to 1, got values from 0\.5 to 1\.2"),
        ([[1, 0]], [[0.5, np.nan]], "P must hold probabilities, from 0 to 1, got NaN"),
        ([[1, 0]], sparse.csr_array([[0.5, 0.5]]), "P must be dense"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "Y must have examples and labels"),
        (sparse.csr_array([[2, 0]]), [[0.5, 0.5]], "Y must hold only 0 and 1"),
    ],
)
def test_refusals(Y, P, said):
    with pytest.raises(ValueError, match=said):
        reliability(Y, P)


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, True, "15"])
def test_bins_are_counted(n_bins):
    with pytest.raises(ValueError, match="n_bins"):
        reliability([[1]], [[0.5]], n_bins)
