"""Boolean matrix decomposition: the warm-up, what a basis can express, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import BMaDClassifier
from labelrace.exceptions import GrowthError, MergeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
# Labels come in groups, so that three basis sets express every label set.
GROUPS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
Y = ((X[:, :3] > 0.6) @ GROUPS > 0).astype(float)


@pytest.mark.parametrize("search", ["greedy", "local"])
def test_groups_of_labels_are_found(search):
    model = BMaDClassifier(n_components=3, search=search, random_state=0).fit(X, Y)
    assert {tuple(row) for row in model.basis_} == {tuple(row) for row in GROUPS.astype(float)}
    assert (model.predict(X) == Y).mean() > 0.9
    # A label is predicted where a code of its groups is.
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) >= 0)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_batches_of_the_warm_up_do_not_matter(make):
    whole = BMaDClassifier(warm_up=100).fit(make(X[:100]), make(Y[:100]))
    parts = BMaDClassifier(warm_up=100)
    for start in range(0, 100, 30):
        parts.partial_fit(make(X[start : min(start + 30, 100)]), make(Y[start : min(start + 30, 100)]))
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-9)
    waits = BMaDClassifier(warm_up=101).fit(make(X[:100]), make(Y[:100]))
    np.testing.assert_allclose(waits.decision_function(X), whole.decision_function(X), rtol=1e-9)


def test_the_basis_stays_after_the_warm_up(tmp_path):
    model = BMaDClassifier(warm_up=60).fit(X[:60], Y[:60])
    basis = model.basis_
    other = 1 - Y[60:]
    model.partial_fit(X[60:], other)
    np.testing.assert_array_equal(model.basis_, basis)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(labelrace.load(tmp_path / "model").decision_function(X), model.decision_function(X))
    assert model._fitted.state.buffer.values.size == 0


def test_new_labels_in_the_warm_up_are_exact():
    late = Y.copy()
    late[:50, 4:] = 0
    grown = BMaDClassifier(n_components=3).partial_fit(X[:50], late[:50, :4]).partial_fit(X[50:], late[50:])
    knew = BMaDClassifier(n_components=3).fit(X, late)
    np.testing.assert_allclose(grown.decision_function(X), knew.decision_function(X), rtol=1e-9)
    assert grown.basis_[:, 4:].any()


def test_a_seed_settles_the_local_search():
    labels = (RNG.random((120, 12)) < 0.3).astype(float)
    first, again, other = (
        BMaDClassifier(n_components=4, search="local", random_state=seed).fit(X, labels).basis_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_cannot_be_is_refused_with_a_reason():
    model = BMaDClassifier(warm_up=100).fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(GrowthError, match="after its warm-up of 100 rows: its basis stays"):
        model.partial_fit(X, np.hstack([Y, Y[:, :1]]))
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(MergeError, match="each has found a basis in its own first rows"):
        model.merge(BMaDClassifier(warm_up=100).fit(X, Y))
    for wrong, message in (
        ({"learner": "ridge"}, "learner must be a classifier"),
        ({"search": "random"}, "search must be one of 'greedy', 'local'"),
        ({"warm_up": 0}, "warm_up must be a whole number of at least 1"),
        ({"threshold": 2}, "threshold must be a number"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            BMaDClassifier(**wrong).fit(X, Y)
