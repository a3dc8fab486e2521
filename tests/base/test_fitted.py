"""Models that learned different rows become the model that learned all of them, or say why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, SGDClassifier

from labelrace import RACEClassifier
from labelrace.base.fitted import _most_likely_first
from labelrace.base.sparse import dense
from labelrace.exceptions import MergeError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge

MERGEABLE = {
    "naive_bayes": {},
    "ridge": {"method": "regression", "learner": "ridge"},
    "both ridges": {"method": "regression", "learner": Ridge(alpha=0.1), "ridge": 0.5},
}


@pytest.mark.parametrize("parameters", MERGEABLE.values(), ids=MERGEABLE)
@pytest.mark.parametrize("convert_x", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("convert_y", [np.asarray, sparse.csr_array])
def test_merging_is_learning_everything(data, parameters, convert_x, convert_y):
    X, Y = convert_x(data[0]), convert_y(data[1])
    parts = slice(0, 15), slice(15, 40), slice(40, 60)
    models = [RACEClassifier(random_state=0, **parameters).partial_fit(X[part], Y[part]) for part in parts]
    others = [dict(vars(model)) for model in models[1:]]
    scores = [model.decision_function(X) for model in models[1:]]
    whole = RACEClassifier(random_state=0, **parameters).fit(X, Y)
    merged = models[0].merge(models[1]).merge(models[2])
    assert merged is models[0]
    np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(merged.decoder_, whole.decoder_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(dense(merged.predict(X)), dense(whole.predict(X)))
    for model, before, score in zip(models[1:], others, scores, strict=True):
        assert all(vars(model)[name] is value for name, value in before.items())
        np.testing.assert_array_equal(model.decision_function(X), score)
    for model in (merged, whole):
        model.partial_fit(X[:10], Y[:10])
    np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-9)


def test_a_dense_part_and_a_sparse_part(data):
    X, Y = data
    for parameters in MERGEABLE.values():
        merged = RACEClassifier(random_state=0, **parameters).fit(X[:30] + 5, Y[:30])
        merged.merge(
            RACEClassifier(random_state=0, **parameters).fit(sparse.csr_array(X[30:]), sparse.csr_array(Y[30:]))
        )
        whole = RACEClassifier(random_state=0, **parameters).fit(np.vstack([X[:30] + 5, X[30:]]), Y)
        np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-8)


def test_nominal_values_and_missing_values_that_only_one_part_has(data):
    X, Y = data
    X = X.copy()
    X[40:, 0] = X[40:, 0] + 3
    X[45:50, 1] = np.nan
    X[50:55, 0] = np.nan
    for order in ((slice(0, 40), slice(40, 60)), (slice(40, 60), slice(0, 40))):
        models = [RACEClassifier(categorical_features=[0], random_state=0).fit(X[part], Y[part]) for part in order]
        merged = models[0].merge(models[1])
        whole = RACEClassifier(categorical_features=[0], random_state=0).fit(X, Y)
        np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-9)


def test_models_that_have_grown(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).fit(X[p], Y[p, :4]).add_labels(2) for p in (slice(30), slice(30, 60)))
    whole = RACEClassifier(random_state=0).fit(X, Y[:, :4]).add_labels(2).partial_fit(X[30:], Y[30:])
    one.merge(other.partial_fit(X[30:], Y[30:]))
    np.testing.assert_allclose(one.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-9)


def model_of(data, features=5, labels=6, frame=False, names=None, rows=60, **parameters):
    X, Y = data[0][:rows, :features], data[1][:rows, :labels]
    X = pd.DataFrame(X, columns=list("vwxyz")[:features]) if frame else X
    return RACEClassifier(**{"random_state": 0, "label_names": names, **parameters}).fit(X, Y)


PERCEPTRON = Perceptron()
DIFFERENT = {
    "decoder's ridge": ({}, {"ridge": 1.0}, "their parameters differ"),
    "smoothing": ({}, {"learner": NaiveBayes(smoothing=2.0)}, "their parameters differ"),
    "method": ({}, {"method": "regression"}, "their parameters differ"),
    "learners of the users": ({"learner": Perceptron()}, {"learner": SGDClassifier()}, "their parameters differ"),
    "feature names": ({}, {"frame": True}, "the features of one of them have no names"),
    "labels": ({"n_components": 2}, {"n_components": 2, "labels": 5}, "their encoders differ"),
    "label names": ({"names": list("abcdef")}, {"names": list("abcdeg")}, "their encoders differ"),
    "names of one": ({"names": list("abcdef")}, {}, "the labels of one of them have no names"),
    "encoders": ({}, {"random_state": 1}, "their encoders differ; let both start from one model, random_state or"),
    "first batch": (
        {"start": "first_batch"},
        {"start": "first_batch", "rows": 5},
        "what each one's first batch spans; let both start from one model",
    ),
    "bins": (
        {"learner": NaiveBayes(numeric="binned")},
        {"learner": NaiveBayes(numeric="binned"), "rows": 5},
        "bins of their numeric features come from each one's first",
    ),
}
ALIKE = {
    "adaptive": ({"encoding": "adaptive"}, "with adaptive encoding, pseudo labels depend on what was learned before"),
    "forgetting": ({"forgetting": 0.9}, "forgetting depends on the order of the batches"),
    "sgd": ({"method": "regression"}, r"their learners are SGD\(.*depends on the order of the rows"),
    "adapter": ({"learner": PERCEPTRON}, r"their learners are Adapter\(.*depends on the order of the rows"),
}
REFUSED = DIFFERENT | {name: (parameters, parameters, reason) for name, (parameters, reason) in ALIKE.items()}


@pytest.mark.parametrize(("one", "other", "reason"), REFUSED.values(), ids=REFUSED)
def test_why_not(data, one, other, reason):
    one, other = model_of(data, **one), model_of(data, **other)
    before = dict(vars(one)), dict(vars(other))
    with pytest.raises(MergeError, match=f"The models cannot be merged.*: .*{reason}"):
        one.merge(other)
    for model, attributes in zip((one, other), before, strict=True):
        assert all(vars(model)[name] is value for name, value in attributes.items())


@pytest.mark.parametrize("parameters", MERGEABLE.values(), ids=MERGEABLE)
def test_features_that_are_nominal_in_one_model_only(data, parameters):
    one, other = model_of(data, categorical_features=[0], **parameters), model_of(data, **parameters)
    for models in ((one, other), (other, one)):
        with pytest.raises(MergeError, match="merged exactly"):
            models[0].merge(models[1])


def test_linear_learners_that_know_different_nominal_values(data):
    X, Y = data
    more = X.copy()
    more[0, 0] = 5
    one, other = (
        RACEClassifier(method="regression", learner="ridge", categorical_features=[0], random_state=0).fit(part, Y)
        for part in (X, more)
    )
    with pytest.raises(MergeError, match="merged exactly"):
        one.merge(other)


def test_what_is_no_model(data):
    model = model_of(data)
    with pytest.raises(MergeError, match="other must be a RACEClassifier, got Perceptron"):
        model.merge(Perceptron())
    with pytest.raises(NotFittedError):
        model.merge(RACEClassifier())


@pytest.mark.parametrize("equal", [1, 2, 5])
def test_fewer_best_labels_are_the_first_of_more(equal):
    rng = np.random.default_rng(0)
    likely, scores = (rng.integers(0, equal, size=(200, 40)).astype(float) for _ in range(2))
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    expected = np.lexsort((-scores, -likely), axis=1)
    for k in range(1, 41):
        np.testing.assert_array_equal(_most_likely_first(likely, scores, k), expected[:, :k])
