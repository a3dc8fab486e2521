"""Rows and small models for the tests of the default, in `tests/linear`."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from labelrace import LabelRaceClassifier

M = 6
# Learners work in single precision.
ROUNDED = 1e-5


def rows(seed, n=300, n_labels=8, *, sparse_rows=False, turned=False):
    """Make rows whose labels depend on them; in turned ones features mean other labels."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(99).normal(size=(M, n_labels))[:, :: -1 if turned else 1]
    X = rng.normal(size=(n, M))
    if sparse_rows:
        X[:, 1:] *= rng.random((n, M - 1)) < 0.1
    Y = X @ W + 0.4 * rng.normal(size=(n, n_labels)) > 2
    return (sparse.csr_array(X) if sparse_rows else X + 2), Y.astype(int)


def small(**parameters):
    """Make a model with few random features."""
    return LabelRaceClassifier(**{"random_state": 0, "n_random_features": 10, **parameters})
