"""Learners that learn one row at a time leave the states before as they were, and refuse what overflows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace.exceptions import DivergenceError
from labelrace.linear.rls import RLS


def stream(seed, kind, n, m=14, k=6, n_first=80):
    """Make rows with labels that come late, that are not known, and values that are missing, constant or far out."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(n, m)) + (0 if kind == "sparse" else 10)
    if kind == "sparse":
        X *= rng.random(X.shape) < 0.2
    else:
        # One column that begins to vary, and outliers.
        X[: n_first + 20, 0] = 3.0
        X[n_first:][rng.random((n - n_first, m)) < 0.01] *= 1e4
    Y = (X @ rng.normal(size=(m, k)) > np.median(X @ rng.normal(size=(m, k)))).astype(float)
    for late in range(3):
        Y[: n_first + 15 * (late + 1), k - 1 - late] = 0
        Y[n_first + 15 * (late + 1), k - 1 - late] = 1
    Y[rng.random(Y.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.02] = np.nan
    X[n_first + 5] = 0
    return X, Y


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_row_leaves_the_states_before_as_they_were(kind):
    """So is what another copy of one of them learns; and the row may be changed by its owner afterwards."""
    X, Y = stream(3, kind, 140)
    bank = RLS(single=True, binary=True)
    before = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    weights, extra_precision = np.array(before.weights), np.array(before.extra_precision)
    x, further = (scipy.sparse.csr_array(X[i : i + 1]) if kind == "sparse" else X[i : i + 1] for i in (90, 91))
    one = bank.learn(before, x, Y[90:91])
    learned = np.array(one.weights)
    assert (learned != weights).any()
    for _ in range(2):
        # The array holds the version of the first copy; the others go their own way.
        other = bank.learn(before, x, Y[90:91])
        np.testing.assert_array_equal(other.weights, learned)
    bank.learn(one, further, Y[91:92])
    if kind == "sparse":
        x.indices[:] = further.indices[:] = 0
    np.testing.assert_array_equal(one.weights, learned)
    np.testing.assert_array_equal(before.weights, weights)
    np.testing.assert_array_equal(before.extra_precision, extra_precision)


def test_what_overflows_is_refused():
    X, Y = stream(4, "dense", 140)
    X = np.nan_to_num(X)
    bank = RLS(binary=True, n_random_features=0)
    state = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    state = state._replace(intercepts=np.full_like(state.intercepts, np.inf))
    with np.errstate(invalid="ignore"), pytest.raises(DivergenceError, match="scale them down"):
        bank.learn(state, X[90:91], np.zeros((1, Y.shape[1])))
