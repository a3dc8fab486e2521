"""The bank of any estimator: as if every pseudo label had its own, fed batch by batch."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB

from labelrace.learners.adapter import Adapter

CLASSIFIERS = [
    SGDClassifier(loss="log_loss", random_state=0),
    SGDClassifier(loss="hinge", random_state=0),
    Perceptron(random_state=0),
    GaussianNB(),
    BernoulliNB(),
]
REGRESSORS = [SGDRegressor(random_state=0)]


class Certain:
    """A classifier that tells nothing but the class."""

    _estimator_type = "classifier"

    def get_params(self, deep=False):
        return {}

    def __sklearn_tags__(self):
        return Perceptron().__sklearn_tags__()

    def partial_fit(self, X, y, classes):
        self.majority = float(np.mean(y) > 0.5)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.majority)


def some_batches(sizes=(30, 20, 10), k=3):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(4, k))
    for n in sizes:
        X = rng.normal(size=(n, 4))
        yield X, X @ W + 0.5 * rng.normal(size=(n, k))


def learned(bank, batches):
    state = bank.init(np.zeros(4, int), 3)
    for X, H in batches:
        state = bank.update(state, X, H)
    return state


def named(estimator):
    return f"{type(estimator).__name__}-{getattr(estimator, 'loss', '')}"


def batches_for(bank):
    return [(X, (H > 0).astype(float) if bank.task == "classification" else H) for X, H in some_batches()]


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=named)
def test_estimators_one_by_one(estimator):
    bank = Adapter(estimator)
    assert bank.task == ("regression" if estimator in REGRESSORS else "classification")
    batches = batches_for(bank)
    X = batches[0][0]
    got = bank.predict(bank.derive(learned(bank, batches)), X)
    for c in range(3):
        own = clone(estimator)
        for rows, H in batches:
            own.partial_fit(rows, H[:, c], **({} if estimator in REGRESSORS else {"classes": [0, 1]}))
        np.testing.assert_array_equal(got[:, c] > 0, own.predict(X) > 0)
        if estimator in REGRESSORS:
            np.testing.assert_allclose(got[:, c], own.predict(X))
        elif hasattr(own, "predict_proba"):
            np.testing.assert_allclose(expit(got[:, c]), own.predict_proba(X)[:, 1], atol=1e-12)
        else:
            np.testing.assert_allclose(got[:, c], own.decision_function(X))


def test_classifier_that_tells_only_the_class():
    bank = Adapter(Certain())
    X = np.zeros((4, 2))
    state = bank.update(bank.init(np.zeros(2, int), 2), X, np.array([[0.0, 1.0]] * 4))
    got = expit(bank.predict(bank.derive(state), X))
    np.testing.assert_allclose(got, [[0.0, 1.0]] * 4, atol=1e-9)


def test_certain_probabilities_stay_finite():
    """Far away one class has a probability of zero, whose logarithm is minus infinity: no warning, no infinity."""
    X = np.array([[-1.0], [-1.1], [1.0], [1.1]])
    bank = Adapter(SGDClassifier(loss="log_loss", random_state=0))
    state = bank.update(bank.init(np.zeros(1, int), 1), X, np.array([[0.0], [0.0], [1.0], [1.0]]))
    got = bank.predict(bank.derive(state), 1e6 * X)
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(expit(got).ravel(), [0, 0, 1, 1])


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=named)
def test_old_state_predicts_as_before(estimator):
    bank = Adapter(estimator)
    batches = batches_for(bank)
    X, H = batches[0]
    kept = X.copy(), H.copy()
    state = learned(bank, batches[:1])
    before = bank.predict(bank.derive(state), X)
    later = bank.update(state, batches[1][0], 1 - batches[1][1])
    assert np.abs(bank.predict(bank.derive(later), X) - before).max() > 1e-6
    np.testing.assert_array_equal(bank.predict(bank.derive(state), X), before)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(H, kept[1])
    assert not hasattr(estimator, "classes_")
    assert not hasattr(estimator, "coef_")


def test_sparse_features():
    bank = Adapter(BernoulliNB())
    batches = batches_for(bank)
    sparse = [(scipy.sparse.csr_array(X), H) for X, H in batches]
    dense, got = (bank.predict(learned(bank, kind), kind[0][0]) for kind in (batches, sparse))
    np.testing.assert_allclose(got, dense, atol=1e-9)
