"""Small batches of numbers and labels, and what models of several folders must make of them."""

from __future__ import annotations

import numpy as np


def small_batches(seed=0, n=90, m=4, n_labels=5, batch=30, whole=False):
    """Make batches; features that are few whole numbers, of a range of 4, have many ties that rounding leaves alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    Y = (X @ rng.normal(size=(m, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0.5).astype(float)
    if whole:
        X = np.clip((1.5 * X).round() + 2.0, 0.0, 4.0)
        X[0], X[1] = 0.0, 4.0
    return [(X[start : start + batch], Y[start : start + batch]) for start in range(0, n, batch)]


def assert_new_labels_were_absent(model):
    """Compare a model that learns of two labels late with one that had them, always absent, from the start."""
    late, early = model, type(model)(**model.get_params())
    for number, (X, Y) in enumerate(small_batches(3)):
        Y = Y.copy()
        if number < 2:
            Y[:, 3:] = 0.0
            late.partial_fit(X, Y[:, :3])
        else:
            late.partial_fit(X, Y)
        early.partial_fit(X, Y)
    rows = small_batches(4)[0][0]
    np.testing.assert_allclose(late.decision_function(rows), early.decision_function(rows), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(late.predict(rows), early.predict(rows))
