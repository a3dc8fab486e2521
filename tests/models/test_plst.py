"""PLST against scikit-learn's principal components and ridge regression."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import labelrace
from labelrace import PLSTClassifier
from labelrace.learners.columns import dense
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.models.plst import principal_directions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
Y = (X @ RNG.normal(size=(6, 15)) + RNG.normal(size=(200, 15)) > 1).astype(float)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_equals_principal_components_and_ridge(make, softly_clipped):
    model = PLSTClassifier(n_components=4).fit(X[:150], make(Y[:150]))
    principal = PCA(4).fit(Y[:150])
    codes = Ridge(alpha=1).fit(X[:150], principal.transform(Y[:150])).predict(X[150:])
    decoded = principal.inverse_transform(codes)
    np.testing.assert_allclose(model.decision_function(X[150:]), 2 * decoded - 1, atol=1e-9)
    np.testing.assert_array_equal(dense(model.predict(X[150:])), decoded > 0.5)
    np.testing.assert_allclose(model.predict_proba(X[150:]), softly_clipped(decoded), atol=1e-9)
    assert decoded.min() < 0
    assert decoded.max() > 1


def test_many_labels_take_the_iterative_way():
    labels = scipy.sparse.random_array((60, 2100), density=0.02, rng=1, format="csr")
    labels.data[:] = 1
    means = labels.mean(axis=0)
    directions = principal_directions(labels, means, 5)
    _, _, expected = np.linalg.svd(labels.toarray() - means, full_matrices=False)
    np.testing.assert_allclose(np.abs((directions * expected[:5].T).sum(axis=0)), 1, atol=1e-8)
    assert (directions[np.abs(directions).argmax(axis=0), range(5)] > 0).all()


def test_it_is_offline():
    model = labelrace.make_model("plst")
    assert not hasattr(model, "partial_fit")
    assert "plst" in labelrace.model_names(online=False)
    first = model.fit(X[:100], Y[:100]).decision_function(X)
    again = model.fit(X, Y).fit(X[:100], Y[:100]).decision_function(X)
    np.testing.assert_array_equal(first, again)


def test_needs_a_regressor():
    with pytest.raises(ValueError, match="learner must be a regressor, such as 'ridge', got NaiveBayes"):
        PLSTClassifier(learner=NaiveBayes()).fit(X, Y)


def test_offline_race_is_race_on_one_batch():
    offline = labelrace.make_model("race-offline", random_state=3).fit(X, Y)
    online = labelrace.make_model("race-cls-fixed", random_state=3).partial_fit(X, Y)
    np.testing.assert_array_equal(offline.decision_function(X), online.decision_function(X))
    with pytest.raises(AttributeError, match="partial_fit"):
        offline.partial_fit(X, Y)


def test_iterations_show_each_batch_several_times():
    thrice = labelrace.make_model("race-cls-adaptive-iter3", random_state=3)
    loop = labelrace.make_model("race-cls-adaptive", random_state=3)
    for part in (slice(0, 80), slice(80, 200)):
        thrice.partial_fit(X[part], Y[part])
        for _ in range(3):
            loop.partial_fit(X[part], Y[part])
    np.testing.assert_array_equal(thrice.decision_function(X), loop.decision_function(X))
