"""The models that tests go through, small data that labels can be learned from, and every kind of learner."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

import labelrace
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.sgd import SGD

# One model of each code path: compressed labels and not, the paper's with both kinds of learners, sums of naive Bayes,
# sums that are compressed, linear models, a tree, neighbours, a constant.
FAMILIES = (
    "race",
    "race-hashed",
    "race-cls-adaptive",
    "race-reg-fixed",
    "oecc",
    "cplst",
    "arow",
    "mlht",
    "mlknn",
    "majority",
)
# What a test goes through that holds for every model: all of them with ``--all-models``, as in the gate. Services are
# killed and asked more often then.
ALL_MODELS = bool(os.environ.get("LABELRACE_ALL_MODELS"))
MODELS = labelrace.model_names() if ALL_MODELS else list(FAMILIES)

ONLINE_MODELS = [name for name in MODELS if name in labelrace.model_names(online=True)]

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


ODD = (
    "usual",
    "one label",
    "one feature",
    "never present",
    "always present",
    "no labels",
    "constant features",
    "equal features",
    "equal labels",
    "equal rows",
    "few sets",
)


@pytest.fixture(params=ODD)
def odd_rows(request):
    """Return a function that draws rows of 4 features and labels that depend on them, in which something is odd."""
    return partial(_odd_rows, request.param)


def _odd_rows(kind, seed, n=60, n_labels=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X @ rng.normal(size=(4, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0.4).astype(float)
    if kind == "one label":
        Y = Y[:, :1]
    elif kind == "one feature":
        X = X[:, :1]
    elif kind == "never present":
        Y[:, [0, 3]] = 0.0
    elif kind == "always present":
        Y[:, 2] = 1.0
    elif kind == "no labels":
        Y[::2] = 0.0
    elif kind == "constant features":
        X[:, 1], X[:, 2] = 3.0, 0.0
    elif kind == "equal features":
        X[:, 3] = X[:, 0]
    elif kind == "equal labels":
        Y[:, 1], Y[:, 2] = Y[:, 0], Y[:, 3]
    elif kind == "equal rows":
        X[n // 2 :], Y[n // 2 :] = X[: n - n // 2], Y[: n - n // 2]
    elif kind == "few sets":
        Y = Y[:3][rng.integers(0, 3, n)]
    return X, Y
