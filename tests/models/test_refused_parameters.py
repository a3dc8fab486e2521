"""Parameters that do not do: a clear error when learning starts, which leaves the model as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Perceptron, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelrace import RACEClassifier
from labelrace.core.categorical import CategoricalMask
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

A, B = np.linspace(-1, 1, 12).reshape(6, 2), np.array([0.1, -0.2])

WRONG = {
    # Words.
    "method": ({"method": "cls"}, "method must be one of 'classification', 'regression', got 'cls'"),
    "method None": ({"method": None}, "method must be one of .*, got None"),
    "encoding": ({"encoding": "random"}, "encoding must be one of 'fixed', 'adaptive', got 'random'"),
    "start": ({"start": "empty"}, "start must be one of 'full', 'first_batch', got 'empty'"),
    "zero_score": ({"zero_score": 1}, "zero_score must be one of 'absent', 'present', got 1"),
    "learner": ({"learner": "bayes"}, "learner must be one of 'auto', 'naive_bayes', 'sgd', 'ridge', 'rls', got 'bayes'"),
    "n_components": ({"n_components": "sqrt"}, "n_components must be 'log2', 'log2_squared' or .*, got 'sqrt'"),
    # Numbers.
    "no components": ({"n_components": 0}, "n_components must be 'log2', 'log2_squared' or a whole number.*, got 0"),
    "half a component": ({"n_components": 2.5}, "n_components must be .*, got 2.5"),
    "a true component": ({"n_components": True}, "n_components must be .*, got True"),
    "no number": ({"n_components": None}, "n_components must be .*, got None"),
    "too many": ({"n_components": 7}, "n_components must be at most the number of labels, 6, got 7"),
    "ridge": ({"ridge": -0.1}, "ridge must be a number of at least 0.*, got -0.1"),
    "ridge NaN": ({"ridge": np.nan}, "ridge must be .*, got nan"),
    "ridge infinite": ({"ridge": np.inf}, "ridge must be .*, got inf"),
    "ridge text": ({"ridge": "1"}, "ridge must be .*, got '1'"),
    "forgetting 0": ({"forgetting": 0}, "forgetting must be a number above 0 and at most 1.*, got 0"),
    "forgetting above 1": ({"forgetting": 1.01}, "forgetting must be .*, got 1.01"),
    "forgetting negative": ({"forgetting": -0.5}, "forgetting must be .*, got -0.5"),
    "iterations": ({"iterations": 0}, "iterations must be a whole number of at least 1.*, got 0"),
    "random_state text": ({"random_state": "dice"}, "random_state must be .*, got 'dice'"),
    "random_state negative": ({"random_state": -1}, "random_state must be .*, got -1"),
    # Encoders.
    "no pair": ({"projection": A}, r"projection must be a pair \(A, b\)"),
    "a number": ({"projection": 3}, r"projection must be a pair \(A, b\)"),
    "text": ({"projection": "AB"}, r"projection must be a pair \(A, b\)"),
    "three": ({"projection": (A, B, B)}, r"projection must be a pair \(A, b\)"),
    "labels": ({"projection": (A[:5], B)}, r"projection.*shapes \(6, k\) and \(k,\) for 6 labels, got \(5, 2\)"),
    "bias": ({"projection": (A, B[:1])}, r"projection must be a pair.*got \(6, 2\) and \(1,\)"),
    "transposed": ({"projection": (A.T, B)}, r"projection must be a pair.*got \(2, 6\)"),
    "no columns": ({"projection": (A[:, :0], B[:0])}, r"projection must be a pair.*got \(6, 0\)"),
    "wide": ({"projection": (np.eye(6, 7), np.zeros(7))}, "projection must have at most as many pseudo labels as labels, 6, got 7"),
    "NaN": ({"projection": (np.where(A > 0, np.nan, A), B)}, "projection must hold finite numbers, got NaN or infinity"),
    "infinite bias": ({"projection": (A, np.array([0.1, np.inf]))}, "projection must hold finite numbers, got NaN or infinity"),
    # Learners.
    "no partial_fit": ({"learner": LogisticRegression()}, "learner must be .*that has partial_fit and predict, got LogisticRegression"),
    "pipeline": ({"learner": make_pipeline(StandardScaler(), Perceptron())}, "that has partial_fit"),
    "class of banks": ({"learner": SGD, "method": "regression"}, "that has partial_fit"),
    "sgd": ({"learner": "sgd"}, "learner must be made for classification, got 'sgd', which is for method='regression'"),
    "ridge bank": ({"learner": Ridge()}, r"learner must be made for classification, got Ridge\("),
    "regressor": ({"learner": SGDRegressor()}, r"learner must be made for classification, got SGDRegressor\("),
    "bayes": ({"learner": NaiveBayes(), "method": "regression"}, r"learner must be made for regression, got NaiveBayes\(.*method='classification'"),
    "classifier": ({"learner": Perceptron(), "method": "regression"}, r"learner must be made for regression, got Perceptron\("),
    # Nominal features.
    "short mask": (
        {"categorical_features": [True, False]},
        r"categorical_features must be a mask .*each of the 5 features of X, got shape \(2,\)",
    ),
    "long mask": ({"categorical_features": CategoricalMask([2] * 6)}, r"categorical_features must be a mask .*5 features.*, got shape \(6,\)"),
    "index": ({"categorical_features": [0, 5]}, "categorical_features has an index out of range: X has 5 features"),
    "negative index": ({"categorical_features": [-6]}, "categorical_features has an index out of range"),
    "fractions": ({"categorical_features": [0.5]}, "categorical_features must be a mask, indices or names"),
    "names": ({"categorical_features": ["colour"]}, "categorical_features has names, but X has none"),
    "a name": ({"categorical_features": "colour"}, "categorical_features has names, but X has none"),
    "no codes": ({"categorical_features": [1]}, "X must hold codes .* in a column of categorical_features, got .*OrdinalEncoder"),
    # Names.
    "short names": ({"label_names": list("abcde")}, "label_names has 5 names, but y has 6 labels"),
    "same names": ({"label_names": list("abcdea")}, "Label names must be distinct"),
    "one text": ({"label_names": "abcdef"}, "label_names must be a list of names.*, got 'abcdef'"),
    "a count": ({"label_names": 6}, "label_names must be .*, got 6"),
}


@pytest.mark.parametrize(("parameters", "match"), WRONG.values(), ids=WRONG)
def test_wrong_parameters_are_named_when_learning_starts(data, parameters, match):
    X, Y = data
    model = RACEClassifier(**parameters)
    before = dict(vars(model))
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match=match):
            learn(X, Y)
        assert vars(model) == before


@pytest.mark.parametrize(("parameters", "match"), WRONG.values(), ids=WRONG)
def test_fit_with_parameters_made_wrong_keeps_what_was_learned(data, parameters, match):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    expected = model.predict(X), model.decision_function(X)
    model.set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), expected[1])
    if "zero_score" not in parameters:
        np.testing.assert_array_equal(model.predict(X), expected[0])


def test_tags_and_repr_do_not_stumble_over_wrong_parameters():
    for parameters, _ in WRONG.values():
        model = RACEClassifier(**parameters)
        assert not model.__sklearn_tags__().input_tags.allow_nan or "learner" not in parameters
        assert repr(model).startswith("RACEClassifier(")


def test_names_of_columns_that_do_not_exist(data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    model = RACEClassifier(categorical_features=["v", "colour", "shape"])
    with pytest.raises(ValueError, match="categorical_features names columns that X does not have: colour, shape"):
        model.fit(frame, Y)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize("code", [0.5, -1.0, 1e12, 1e300])
def test_nominal_columns_hold_codes_in_every_batch(data, convert, code, bank):
    X, Y = data
    wrong = X.copy()
    wrong[3, 0] = code
    model = RACEClassifier(categorical_features=[0], random_state=0, **bank)
    match = rf"X must hold codes .* in a column of categorical_features, got {code:g}".replace("+", r"\+")
    with pytest.raises(ValueError, match=match):
        model.partial_fit(convert(wrong), Y)
    model.partial_fit(convert(X), Y)
    fitted, scores = model._fitted, model.decision_function(convert(X))
    for use in (lambda: model.partial_fit(convert(wrong), Y), lambda: model.predict(convert(wrong))):
        with pytest.raises(ValueError, match=match):
            use()
        assert model._fitted is fitted
    np.testing.assert_array_equal(model.decision_function(convert(X)), scores)


def test_data_frames_of_labels_with_equal_names(data):
    X, Y = data
    with pytest.raises(ValueError, match="Label names must be distinct"):
        RACEClassifier().fit(X, pd.DataFrame(Y, columns=list("abcdea")))


def test_ridge_refuses_what_would_fill_the_memory():
    X = sparse.csr_array((3, 100_000))
    with pytest.raises(ValueError, match=r"ridge learner keeps an m × m matrix.*use learner='sgd'"):
        RACEClassifier(method="regression", learner="ridge").fit(X, np.eye(3))
