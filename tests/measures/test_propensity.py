"""Propensity-scored precision against its formula, row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from labelrace.measures import propensities, propensity_scored_precision


@pytest.mark.parametrize("k", [1, 3, 5])
def test_is_the_papers(k):
    rng = np.random.default_rng(k)
    Y = (rng.random((30, 12)) < 0.25).astype(int)
    Y[4] = 0
    p = propensities(Y.sum(axis=0), 30)
    for label, count in enumerate(Y.sum(axis=0)):
        C = (math.log(30) - 1) * 2.5**0.55
        assert p[label] == pytest.approx(1 / (1 + C * math.exp(-0.55 * math.log(count + 1.5))))
    top = np.argsort(rng.random((30, 12)), axis=1)[:, :k]
    got = sum(1 / p[label] for row in range(30) for label in top[row] if Y[row, label])
    most = sum(sum(sorted((1 / p[label] for label in np.flatnonzero(Y[row])), reverse=True)[:k]) for row in range(30))
    for truth in (Y, scipy.sparse.csr_array(Y)):
        assert propensity_scored_precision(truth, top, p) == pytest.approx(got / most)
    assert math.isnan(propensity_scored_precision(np.zeros((2, 12)), top[:2], p))


def test_wrong_shapes():
    with pytest.raises(ValueError, match="top must have a list of labels for each of 2 rows"):
        propensity_scored_precision(np.eye(2), [[1]], [0.5, 0.5])
    with pytest.raises(ValueError, match="propensity must have an entry for each of 2 labels"):
        propensity_scored_precision(np.eye(2), [[1], [0]], [0.5])
    with pytest.raises(ValueError, match="n_rows must be a number of at least 3"):
        propensities([1], 1)
