"""PLST against scikit-learn's principal components and ridge regression; and models that learn all data at once."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import labelrace
from labelrace import PLSTClassifier
from labelrace.learners import sums
from labelrace.related.compression.plst import PLST

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
Y = (X @ RNG.normal(size=(6, 15)) + RNG.normal(size=(200, 15)) > 1).astype(float)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_equals_principal_components_and_ridge(make):
    model = PLSTClassifier(n_components=4, penalty=1.0, scaling="none").fit(X[:150], make(Y[:150]))
    principal = PCA(4).fit(Y[:150])
    codes = Ridge(alpha=1).fit(X[:150], principal.transform(Y[:150])).predict(X[150:])
    decoded = principal.inverse_transform(codes)
    np.testing.assert_allclose(model.decision_function(X[150:]), 2 * decoded - 1, atol=1e-9)
    predicted = model.predict(X[150:])
    predicted = predicted.toarray() if scipy.sparse.issparse(predicted) else predicted
    np.testing.assert_array_equal(predicted, decoded > 0.5)


@pytest.mark.parametrize("exact", [True, False], ids=["sparse table", "sketch"])
def test_many_labels_take_the_iterative_way(exact, monkeypatch):
    monkeypatch.setattr(sums, "_DENSE_CELLS", 10**5)
    labels = scipy.sparse.random_array((60, 2100), density=0.02, rng=1, format="csr")
    labels.data[:] = 1
    keeper = sums.Sums(exact_labels=10_000 if exact else 1000, sketch_size=80)
    monkeypatch.setattr(PLST, "keeper", keeper)
    model = PLSTClassifier(n_components=5, penalty=1.0, scaling="none").fit(X[:60], labels)
    principal = PCA(5, svd_solver="full").fit(labels.toarray())
    codes = Ridge(alpha=1).fit(X[:60], principal.transform(labels.toarray())).predict(X[60:])
    decoded = 2 * principal.inverse_transform(codes) - 1
    # 60 rows have rank 60: a sketch of 80 columns is exact.
    np.testing.assert_allclose(model.decision_function(X[60:]), decoded, atol=1e-7)


def test_the_wrong_form_moves_the_threshold_of_each_label():
    """With all directions, a label of frequency f is predicted from an estimate of 1 - 2f on."""
    wrong = labelrace.make_model("plst-meka", n_components=15).fit(X, Y)
    estimates = (
        PLSTClassifier(n_components=15, penalty=1e-8, scaling="columns").fit(X, Y).decision_function(X) + 1
    ) / 2
    np.testing.assert_array_equal(wrong.predict(X), estimates >= 1 - 2 * Y.mean(axis=0))


def test_offline_race_is_race_on_one_batch():
    offline = labelrace.make_model("race-offline", random_state=3).fit(X, Y)
    online = labelrace.make_model("race-cls-fixed", random_state=3).partial_fit(X, Y)
    np.testing.assert_array_equal(offline.decision_function(X), online.decision_function(X))
    assert labelrace.model_names(online=False) == ["race-offline"]
    with pytest.raises(AttributeError, match="partial_fit"):
        offline.partial_fit(X, Y)
