"""Small data that labels can be learned from, and every kind of learner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.sgd import SGD

BANKS = {
    "naive_bayes": {},
    "binned": {"learner": NaiveBayes(numeric="binned")},
    "sgd": {"method": "regression"},
    # Fewer epochs than the original's 500, to be quick.
    "weka": {"method": "regression", "learner": replace(SGD.weka(), first_epochs=5)},
    "ridge": {"method": "regression", "learner": "ridge"},
    "adapter": {"learner": Perceptron()},
}


@pytest.fixture(params=BANKS, ids=str)
def bank(request):
    """Return the parameters that choose each bank of learners in turn."""
    return dict(BANKS[request.param])


@pytest.fixture
def data():
    """Return 60 rows of 5 features, the first of which holds codes 0 to 2, and 6 labels that depend on them."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 5)).round(2)
    X[:, 0] = rng.integers(0, 3, 60)
    X[rng.random(X.shape) < 0.3] = 0
    Y = (X @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(60, 6)) > 0.4).astype(int)
    return X, Y


@pytest.fixture
def softly_clipped():
    """Return a function that brings estimates of 0 and 1 into (0, 1), one by one, as `soft_clip` defines it."""

    def one(value):
        if value < 0.001:
            return 1e-6 / (0.002 - value)
        return 1 - 1e-6 / (value - 0.998) if value > 0.999 else value

    return np.vectorize(one)
