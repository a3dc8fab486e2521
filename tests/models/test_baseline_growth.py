"""Labels and features that come later: exactly the model that knew them, always absent, from the start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron

from labelrace.core.schema import Schema
from labelrace.exceptions import GrowthError
from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD
from labelrace.models.chains import Chains
from labelrace.models.constant import Constant
from labelrace.models.plst import PLST
from labelrace.models.relevance import Relevance

MAKE = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}
ORDERS = np.array([[3, 1, 0, 2, 4], [0, 1, 2, 3, 4]])
RNG = np.random.default_rng(0)


def late(n_labels):
    """Put late labels at the end of every chain."""
    return np.hstack([ORDERS, np.tile(np.arange(5, n_labels), (2, 1))])


def schema(n_features, n_labels):
    return Schema(np.zeros(n_features, dtype=int), None, n_labels, None)


def begun(algorithm, n_features, n_labels):
    return algorithm.init(schema(n_features, n_labels), RNG)


# An algorithm, and how it begins with so many features and labels.
MODELS = {
    "relevance": (Relevance(NaiveBayes()), begun),
    "binned": (Relevance(NaiveBayes(numeric="binned")), begun),
    "ridge": (Relevance(Ridge()), begun),
    "sgd": (Relevance(SGD(rate=0.5, normalised=True)), begun),
    "chains": (Chains(NaiveBayes(), 2), lambda a, m, k: a.start_from(late(k), np.zeros(m, int))),
    "majority": (Constant(majority=True), begun),
    "negative": (Constant(majority=False), begun),
}


def some_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.7)
    Y = (X @ rng.normal(size=(5, 8)) + 0.3 * rng.normal(size=(60, 8)) > 0.5).astype(float)
    X[:30, 3:], Y[:30, 5:] = 0, 0
    return X, Y


def learn(algorithm, state, X, Y, make):
    for part in (slice(0, 12), slice(12, 30)):
        state = algorithm.update(state, make(X[part]), make(Y[part]))
    return state


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_growing_is_exact(name, kind, seed):
    (algorithm, begin), make = MODELS[name], MAKE[kind]
    assert algorithm.why_no_new_labels() is algorithm.why_no_new_features() is None
    X, Y = some_rows(seed)
    grown = learn(algorithm, begin(algorithm, 3, 5), X[:30, :3], Y[:30, :5], make)
    grown = algorithm.grow_labels(algorithm.grow_labels(grown, 6, RNG), 8, RNG)
    grown = algorithm.grow_features(grown, np.zeros(5, dtype=int))
    knew = learn(algorithm, begin(algorithm, 5, 8), X[:30], Y[:30], make)
    for _ in range(2):
        a, b = algorithm.derive(grown), algorithm.derive(knew)
        np.testing.assert_allclose(algorithm.scores(a, make(X)), algorithm.scores(b, make(X)), rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(algorithm.predict(a, make(X)), algorithm.predict(b, make(X)))
        grown, knew = (learn(algorithm, state, X[30:], Y[30:], make) for state in (grown, knew))


def test_what_cannot_grow_says_so():
    adapted, plst = Relevance(Adapter(Perceptron())), PLST(Ridge(), 1)
    state = begun(adapted, 2, 2)
    assert "Perceptron" in adapted.why_no_new_labels()
    with pytest.raises(GrowthError, match="Perceptron"):
        adapted.grow_labels(state, 3, RNG)
    with pytest.raises(GrowthError, match="The learners cannot take new features: .*Perceptron"):
        adapted.grow_features(state, np.zeros(3, dtype=int))
    with pytest.raises(GrowthError, match="PLST cannot take new labels: it has to know all of them from the start"):
        plst.grow_labels(begun(plst, 2, 2), 3, RNG)
