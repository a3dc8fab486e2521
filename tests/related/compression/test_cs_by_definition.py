"""The decoders of compressed sensing against loops written from their definitions, rows and labels one by one."""

from __future__ import annotations

import numpy as np
import pytest

from labelrace import CompressedSensingClassifier
from labelrace.related.compression.cs import cosamp, matching_pursuit


def naive_pursuit(A, h, s):
    """Return what matching pursuit finds, and how far the best entry was ahead of the next one at the closest."""
    chosen, values, residual, lead = [], np.zeros(0), h, np.inf
    for _ in range(s):
        if np.linalg.norm(residual) < 1e-10 * np.linalg.norm(h):
            break
        likeness = np.abs(A @ residual)
        likeness[chosen] = -1.0
        *_, second, first = np.sort(np.append(likeness, 0.0))
        lead = min(lead, (first - second) / first)
        chosen.append(int(likeness.argmax()))
        values = np.linalg.lstsq(A[chosen].T, h, rcond=None)[0]
        residual = h - A[chosen].T @ values
    found = np.zeros(len(A))
    found[chosen] = values
    return found, lead


def naive_cosamp(A, h, s):
    """Return what CoSaMP finds."""
    found = np.zeros(len(A))
    for _ in range(20):
        alike = np.argsort(-np.abs(A @ (h - found @ A)), kind="stable")[: 2 * s]
        candidates = sorted({*alike.tolist(), *np.flatnonzero(found).tolist()})
        fitted = np.zeros(len(A))
        fitted[candidates] = np.linalg.lstsq(A[candidates].T, h, rcond=None)[0]
        kept = np.argsort(-np.abs(fitted), kind="stable")[:s]
        before, found = found, np.zeros(len(A))
        found[kept] = fitted[kept]
        if np.abs(found - before).max() <= 1e-12 * np.abs(found).max():
            break
    return found


def encoder(rng, n_labels, k):
    A = rng.normal(size=(n_labels, k))
    return A / np.linalg.norm(A, axis=1, keepdims=True)


@pytest.mark.parametrize(("n_labels", "k", "s"), [(1, 1, 1), (5, 8, 3), (30, 6, 4), (12, 3, 5), (4, 2, 4)])
def test_decoders_by_definition(n_labels, k, s):
    """Also with more entries to be found than there are projections."""
    rng = np.random.default_rng(n_labels)
    A, H = encoder(rng, n_labels, k), rng.normal(size=(20, k))
    for row, h in zip(matching_pursuit(H, A, s), H, strict=True):
        np.testing.assert_allclose(row, naive_pursuit(A, h, s)[0], rtol=1e-9, atol=1e-9)
    for row, h in zip(cosamp(H, A, s), H, strict=True):
        np.testing.assert_allclose(row, naive_cosamp(A, h, s), rtol=1e-9, atol=1e-9)


def test_a_pursuit_after_one_or_two_rows():
    """A model of one row with two labels predicts multiples of ``a + b``, to which both are equally near: a tie."""
    rng, ties = np.random.default_rng(5), 0
    for n in (1, 2) * 20:
        A, X, Y = encoder(rng, 8, 5), rng.normal(size=(n, 3)), (rng.random((n, 8)) < 0.4).astype(float)
        Y[:, 0], rows = 1.0, rng.normal(size=(4, 3))
        model = CompressedSensingClassifier.paper(n_components=5, encoder=A).partial_fit(X, Y)
        with_ones = np.hstack([np.ones((n, 1)), X])
        weights = np.linalg.solve(with_ones.T @ with_ones + 0.1 * np.eye(4), with_ones.T @ Y @ A)
        for h, scores in zip(np.hstack([np.ones((4, 1)), rows]) @ weights, model.decision_function(rows), strict=True):
            expected, lead = naive_pursuit(A, h, int(np.ceil(Y.sum() / n)))
            ties += lead < 1e-9
            if lead >= 1e-9:
                np.testing.assert_allclose((scores + 1) / 2, expected, rtol=1e-8, atol=1e-8)
    assert 0 < ties < 40


def test_labels_are_sought_whatever_the_number_of_projections():
    """Three labels a row and two projections: three labels are kept, not two."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), np.zeros((40, 8))
    for row in Y:
        row[rng.choice(8, 3, replace=False)] = 1.0
    A = encoder(rng, 8, 2)
    model = CompressedSensingClassifier.paper(n_components=2, encoder=A, decoder="cosamp").partial_fit(X, Y)
    np.testing.assert_array_equal((model.decision_function(X) != -1).sum(axis=1), 3)
