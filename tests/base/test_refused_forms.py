"""Forms of input that once ended in an error of another library, or in the wrong answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import labelrace

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), (RNG.random((30, 3)) < 0.4).astype(int)
TOO_LARGE = np.array([[10**400, 1]] * 30, dtype=object)


@pytest.fixture
def model():
    return labelrace.LabelRaceClassifier(random_state=0).fit(X, Y)


REFUSED = {
    "a name twice": (pd.DataFrame(X, columns=["a", "a"]), Y, "distinct"),
    "a number too large for a float": (TOO_LARGE, Y, "too large to be a float"),
    "a label too large for a float": (X, np.array([[10**400] * 3] * 30, dtype=object), "y must hold 0 and 1"),
    "sets among missing ones": (X, pd.Series([{"a"}, None, *[{"b"}] * 28]), "in row 1: leave out"),
    "text among missing ones": (X, pd.DataFrame({"a": ["x", None, *[1] * 28], "b": [1] * 30}), "y must hold 0 and 1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_batches(model, what):
    features, labels, message = REFUSED[what]
    before = model._fitted
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match=message):
            learn(features, labels)
    assert model._fitted is before


@pytest.mark.parametrize("columns", [None, "a", [1.5], [2], [-1], [[0]]])
def test_columns_to_forget(model, columns):
    before = model._fitted
    with pytest.raises(ValueError, match="columns must be"):
        model.reset_features(columns)
    assert model._fitted is before


def test_names_that_are_no_dict_of_text():
    model = labelrace.make_model("majority", label_names=["a", "b", "c"]).fit(X, Y)
    for names in ([("a", "b")], None, {"a": None}, {"a": 5}):
        with pytest.raises(ValueError, match="names must be a dict"):
            model.rename_labels(names)
    assert list(model.label_names_) == ["a", "b", "c"]


@pytest.mark.parametrize("value", [True, 3, [[["x"]]], ["x"], [float("nan")]])
def test_lists_of_numbers(value):
    for name in ("uniforms", "selected"):
        with pytest.raises(ValueError, match=f"{name} must be a list of finite numbers"):
            labelrace.make_model("cssp", **{name: value}).fit(X, Y)
    for name in ("cs", "cl"):
        with pytest.raises(ValueError, match="encoder must be a matrix of finite numbers"):
            labelrace.make_model(name, encoder=value).fit(X, Y)


def test_one_row_as_a_list(model):
    named = labelrace.LabelRaceClassifier(random_state=0).fit([{"a": a, "b": b} for a, b in X.tolist()], Y)
    for row in (X[0], X[:1], X[0].tolist(), X[:1].tolist()):
        assert [one.score for one in model.explain(row, [0, 1])] == [one.score for one in model.explain(X[:1], [0, 1])]
    row = {"a": X[0, 0], "b": X[0, 1]}
    assert [one.score for one in named.explain([row], [0])] == [one.score for one in named.explain(row, [0])]
    with pytest.raises(ValueError, match="X must hold numbers"):
        model.explain(["x", "y"])


def test_the_score_of_a_single_sparse_label():
    one = sparse.csr_array(Y[:, :1])
    model = labelrace.make_model("obr").fit(X, one)
    right = (model.predict(X).toarray() == Y[:, :1]).mean()
    assert model.score(X, one) == model.score(X, Y[:, :1]) == pytest.approx(right)
