"""Linear models that learn row by row, against loops over rows and labels written from their definitions."""

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import AdaGradClassifier, AROWClassifier
from labelrace.exceptions import DivergenceError
from labelrace.linear import scaling

MODELS = [AROWClassifier(r=0.5), AdaGradClassifier(rate=0.2), AdaGradClassifier(loss="squared", rate=0.05)]
ALL = pytest.mark.parametrize("model", MODELS, ids=repr)


def textbook(model, Z, Y):
    """Learn rows one by one and label by label; return weights, the intercept's last, of each label."""
    Z = np.hstack([Z, np.ones((len(Z), 1))])
    weights = np.zeros((Z.shape[1], Y.shape[1]))
    for label in range(Y.shape[1]):
        w, variance, squares = np.zeros(Z.shape[1]), np.ones(Z.shape[1]), np.zeros(Z.shape[1])
        for x, y in zip(Z, Y[:, label], strict=True):
            if np.isnan(y):
                continue
            if isinstance(model, AROWClassifier):
                t = 2 * y - 1
                if t * (x @ w) < 1:
                    beta = 1 / (x**2 @ variance + model.r)
                    w = w + beta * (1 - t * (x @ w)) * t * variance * x
                    variance = variance - beta * (variance * x) ** 2
            else:
                said = 1 / (1 + np.exp(-(x @ w))) if model.loss == "logistic" else x @ w
                gradient = (said - y) * x
                squares = squares + gradient**2
                w = w - model.rate * gradient / (np.sqrt(squares) + 1e-8)
        weights[:, label] = w
    return weights


def some_data(kind, n=60, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) if kind == "dense" else rng.poisson(0.15, size=(n, 9)).astype(float)
    Y = (X @ rng.normal(size=(X.shape[1], 4)) + 0.3 * rng.normal(size=(n, 4)) > 0.5).astype(float)
    Y[rng.random(Y.shape) < missing] = np.nan
    return (scipy.sparse.csr_array(X) if kind == "sparse" else X), Y


@ALL
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_batch_is_the_textbook_row_by_row(model, kind, missing):
    X, Y = some_data(kind, missing=missing)
    state = model.fit(X, Y)._fitted.state
    Z = scaling.transform(state.scaling if kind == "sparse" else scaling_of(X), X)
    expected = textbook(model, Z.toarray() if kind == "sparse" else Z, Y)
    got = np.vstack([np.asarray(state.weights), state.intercepts])
    np.testing.assert_allclose(got, expected, atol=1e-12)


def scaling_of(X):
    start = scaling.start(X, np.zeros(X.shape[1], int), 0, np.random.default_rng(0))
    return scaling.update(start, X)


@ALL
def test_batches_of_sparse_rows_do_not_matter(model):
    """Also where features come later, and one by one."""
    X, Y = some_data("sparse")
    X = X.tolil()
    X[:30, 6:] = 0
    X = scipy.sparse.csr_array(X)
    whole = model.fit(X, Y)._fitted.state
    model.fit(X[:30, :6], Y[:30])
    for row in range(30, 60):
        model.partial_fit(X[[row]], Y[row : row + 1])
    state = model._fitted.state
    for one, other in zip(state[1:5], whole[1:5], strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-12)


@ALL
def test_a_new_label_changes_no_other_and_begins_there(model):
    X, Y = some_data("sparse")
    model.fit(X[:30], Y[:30, :3]).partial_fit(X[30:], Y[30:])
    grown = model._fitted.state
    np.testing.assert_allclose(
        np.asarray(grown.weights)[:, :3], np.asarray(model.fit(X, Y[:, :3])._fitted.state.weights)
    )
    born = model.fit(X[30:], Y[30:])._fitted.state
    np.testing.assert_allclose(np.asarray(grown.weights)[:, 3], np.asarray(born.weights)[:, 3])


@ALL
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_reset_features_are_forgotten(model, kind):
    X, Y = some_data(kind)
    state = model.fit(X, Y).reset_features([2, 5])._fitted.state
    assert not np.asarray(state.weights)[[2, 5]].any()
    assert not np.asarray(state.extra_precision)[[2, 5]].any()
    assert np.asarray(state.weights)[[0, 1]].all()


@ALL
def test_as_many_labels_as_there_are(model):
    X, Y = some_data("dense", n=1500)
    model.fit(X[:1000], Y[:1000])
    assert model.predict(X[1000:]).sum() == pytest.approx(Y[1000:].sum(), rel=0.15)
    likely = model.predict_proba(X[1000:])
    assert likely[Y[1000:] == 1].mean() > 2 * likely[Y[1000:] == 0].mean()


def test_what_overflows_is_refused_and_changes_nothing():
    X, Y = some_data("dense")
    model = AdaGradClassifier(loss="squared", rate=1e250).fit(X[:1], Y[:1])
    before = model._fitted
    with pytest.raises(DivergenceError, match="overflow"):
        model.partial_fit(X, Y)
    assert model._fitted is before


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("arow", {"r": 0}, "r must be"),
        ("adagrad-logistic", {"rate": -1.0}, "rate must be"),
        ("adagrad-squared", {"loss": "logistic"}, "has no parameter 'loss'"),
    ],
)
def test_wrong_parameters(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        labelrace.make_model(name, **parameters).fit(*some_data("dense"))


@pytest.mark.parametrize("name", ["arow", "adagrad-logistic", "adagrad-squared", "race", "race-hashed"])
@pytest.mark.parametrize("n_unknown", [1, 20])
def test_labels_of_which_nothing_is_ever_known_change_no_other_label(name, n_unknown):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 8))
    Y = (X @ rng.normal(size=(8, 4)) + 0.5 * rng.normal(size=(900, 4)) > 1) * 1.0
    scores = []
    for labels in (Y, np.hstack([Y, np.full((900, n_unknown), np.nan)])):
        model = labelrace.make_model(name, **({"random_state": 0} if "race" in name else {}))
        for start in range(0, 700, 100):
            model.partial_fit(X[start : start + 100], labels[start : start + 100])
        scores.append(model.decision_function(X[700:])[:, :4])
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
