"""Batches that cannot be learned: a clear error each, and the model is as if the call had not been made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from labelrace import RACEClassifier
from labelrace.exceptions import DivergenceError
from labelrace.learners.sgd import SGD

LABELS = list("abcdef")


def changed(array, value):
    array = array.astype(np.result_type(array, type(value)))
    array[3, 1] = value
    return array


def text_in(X, column):
    frame = pd.DataFrame(X, columns=["age", "colour", "size", "weight", "width"])
    frame[column] = np.where(frame[column] > 0, "red", "blue")
    return frame


WRONG_Y = {
    "2": (lambda X, Y: (X, changed(Y, 2)), "y must hold 0 and 1, got 2"),
    "-1": (lambda X, Y: (X, changed(Y, -1)), "y must hold 0 and 1, got -1"),
    "2.0": (lambda X, Y: (X, changed(Y, 2.0)), "y must hold 0 and 1, got 2"),
    "half": (lambda X, Y: (X, changed(Y, 0.5)), "y must hold 0 and 1, got 0.5: continuous"),
    "infinity": (lambda X, Y: (X, changed(Y, np.inf)), "y must hold 0 and 1, got inf"),
    "NaN": (lambda X, Y: (X, changed(Y, np.nan)), "y contains NaN.*leave out rows.*'race'"),
    "sparse 2": (lambda X, Y: (X, sparse.csr_array(changed(Y, 2))), "y must hold 0 and 1, got 2"),
    "sparse -1": (lambda X, Y: (X, sparse.coo_matrix(changed(Y, -1))), "y must hold 0 and 1, got -1"),
    "sparse half": (lambda X, Y: (X, sparse.csc_array(changed(Y, 0.5))), "y must hold 0 and 1, got 0.5"),
    "sparse NaN": (lambda X, Y: (X, sparse.csr_matrix(changed(Y, np.nan))), "y contains NaN"),
    "sparse complex": (lambda X, Y: (X, sparse.csr_array(Y * 1j)), "y must hold 0 and 1, got values of type complex"),
    "sparse 1-d": (lambda X, Y: (X, sparse.coo_array(Y[:, 0])), "y must have two dimensions.*got 1"),
    "text": (lambda X, Y: (X, np.where(Y, "yes", "no")), "y must hold 0 and 1, got text or objects.*set of names"),
    "objects": (lambda X, Y: (X, np.where(Y, "yes", None)), "y must hold 0 and 1.*objects"),
    "dates": (lambda X, Y: (X, Y.astype("M8[D]")), "y must hold 0 and 1, got values of type datetime64"),
    "missing": (lambda X, Y: (X, pd.DataFrame(Y).astype("Int64").mask(Y > 0)), "y must hold 0 and 1"),
    "ragged": (
        lambda X, Y: (X, [[1] * (1 + i % 2) for i in range(len(Y))]),
        "y must be a matrix.*sets or lists of names",
    ),
    "sets of numbers": (lambda X, Y: (X, [{1, 2}] * len(Y)), "y has 1 as the name of a label: names are text"),
    "fewer sets": (
        lambda X, Y: (X, [{"a"}] * (len(Y) - 1)),
        "X and y must have the same number of rows|labels learned so far have no",
    ),
    "1-d": (lambda X, Y: (X, Y[:, 0]), r"y must have two dimensions.*use y.reshape\(-1, 1\)"),
    "series": (lambda X, Y: (X, pd.Series(Y[:, 0])), r"y must have two dimensions.*use y.reshape\(-1, 1\)"),
    "3-d": (lambda X, Y: (X, Y[None]), "y must have two dimensions.*got 3"),
    "None": (lambda X, Y: (X, None), "requires y to be passed, but the target y is None"),
    "fewer rows": (lambda X, Y: (X, Y[1:]), "X and y must have the same number of rows, got 60 and 59"),
    "fewer sparse rows": (lambda X, Y: (X, sparse.csr_array(Y[1:])), "X and y must have the same number of rows"),
}
WRONG_X = {
    "empty": (lambda X, Y: (X[:0], Y[:0]), r"0 sample\(s\)"),
    "empty, sparse": (lambda X, Y: (sparse.csr_array(X[:0]), sparse.csr_array(Y[:0])), r"0 sample\(s\)"),
    "no features": (lambda X, Y: (X[:, :0], Y), "0 feature"),
    "1-d": (lambda X, Y: (X[:, 0], Y), "Expected 2D array"),
    "infinity": (lambda X, Y: (changed(X, np.inf), Y), "X contains infinity"),
    "both infinities": (lambda X, Y: (changed(X, np.inf) - changed(0 * X, np.inf)[::-1], Y), "X contains infinity"),
    "sparse infinity": (lambda X, Y: (sparse.csr_array(changed(X, -np.inf)), Y), "X contains infinity"),
    "text": (lambda X, Y: (X.astype(str), Y), "X must hold numbers, got text.*OrdinalEncoder"),
    "text among objects": (lambda X, Y: (changed(X.astype(object), "red"), Y), "X must hold numbers, got text.*'red'.*OrdinalEncoder"),
    "list of text": (lambda X, Y: (X.astype(str).tolist()[:1] + [["red"] * 5] * 59, Y), "X must hold numbers, got text.*OrdinalEncoder"),
    "text in a data frame": (lambda X, Y: (text_in(X, "colour"), Y), "X must hold numbers, got text in a numeric column: 'colour'"),
    "objects in a data frame": (
        lambda X, Y: (text_in(X, "size").astype(object), Y),
        "X must hold numbers, got text in a numeric column: 'size'. Encode.*categorical_features",
    ),
}
LATER = {
    "fewer features": (lambda X, Y: (X[:, :4], Y), "X has 4 features, but RACEClassifier is expecting 5"),
    "more dense features": (
        lambda X, Y: (np.hstack([X, X]), Y),
        "X has 10 features, but RACEClassifier is expecting 5",
    ),
    "fewer sparse features": (lambda X, Y: (sparse.csr_array(X[:, 1:]), Y), "X has 4 features"),
    "infinity in a new feature": (
        lambda X, Y: (sparse.csr_array(np.hstack([X, np.full((60, 1), np.inf)])), Y),
        "X contains infinity|cannot take new ones",
    ),
    "dicts": (lambda X, Y: ([{"age": 1}] * 60, Y), "features learned so far have no names"),
    "fewer labels": (lambda X, Y: (X, Y[:, :5]), "y has 5 labels, but the model has learned with 6.*behind them"),
    "more sparse labels": (lambda X, Y: (X, sparse.csr_array(np.hstack([Y, Y]))), "y has 12 labels.*with 6.*names"),
    "no labels": (lambda X, Y: (X, Y[:, :0]), "y must have at least one label"),
    "a name twice": (lambda X, Y: (X, pd.DataFrame(Y, columns=list("abcdee"))), "names must be distinct"),
    "new names and wrong values": (
        lambda X, Y: (X, pd.DataFrame(2 * Y, columns=list("uvwxyz"))),
        "y must hold 0 and 1",
    ),
}


def expect_refusal(model, call, match, error=ValueError):
    before = dict(model.__dict__)
    with pytest.raises(error, match=match):
        call()
    assert list(model.__dict__) == list(before)
    assert all(model.__dict__[name] is value for name, value in before.items())


@pytest.mark.parametrize(("wrong", "match"), [*WRONG_Y.values(), *WRONG_X.values()], ids=[*WRONG_Y, *WRONG_X])
@pytest.mark.parametrize("learner", ["naive_bayes", "ridge"])
def test_wrong_batches_leave_the_model_as_it_was(data, wrong, match, learner):
    X, Y = data
    method = "regression" if learner == "ridge" else "classification"
    model = RACEClassifier(method=method, learner=learner, random_state=0)
    expect_refusal(model, lambda: model.partial_fit(*wrong(X, Y)), match)
    expect_refusal(model, lambda: model.fit(*wrong(X, Y)), match)
    model.partial_fit(X[:30], Y[:30]).partial_fit(sparse.csr_array(X[30:]), sparse.csr_array(Y[30:]))
    scores = model.decision_function(X)
    expect_refusal(model, lambda: model.partial_fit(*wrong(X, Y)), match)
    expect_refusal(model, lambda: model.fit(*wrong(X, Y)), match)
    np.testing.assert_array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize(("wrong", "match"), LATER.values(), ids=LATER)
def test_later_batches_must_look_like_the_first(data, bank, wrong, match):
    X, Y = data
    model = RACEClassifier(random_state=0, **bank).partial_fit(X, pd.DataFrame(Y, columns=LABELS))
    scores = model.decision_function(X)
    expect_refusal(model, lambda: model.partial_fit(*wrong(X, Y)), match)
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_feature_names_must_stay(data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    model = RACEClassifier(random_state=0).partial_fit(frame, Y)
    other = frame[list("zyxwv")]
    expect_refusal(model, lambda: model.partial_fit(other, Y), "feature names should match")
    expect_refusal(model, lambda: model.predict(other), "feature names should match")


@pytest.mark.parametrize(("wrong", "match"), [WRONG_X[name] for name in WRONG_X if name != "no features"])
def test_wrong_rows_are_not_predicted_either(data, wrong, match):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    for predict in (model.predict, model.decision_function, model.predict_proba):
        expect_refusal(model, lambda predict=predict: predict(wrong(X, Y)[0]), match)
    expect_refusal(model, lambda: model.predict(X[:, :3]), "X has 3 features")


@pytest.mark.parametrize("learner", ["sgd", "ridge", SGDClassifier()], ids=str)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_only_naive_bayes_takes_missing_values(data, learner, convert):
    X, Y = data
    X = convert(X)
    holes = convert(changed(data[0], np.nan))
    method = "regression" if isinstance(learner, str) else "classification"
    model = RACEClassifier(method=method, learner=learner, random_state=0)
    expect_refusal(model, lambda: model.partial_fit(holes, Y), "X contains NaN")
    model.fit(X, Y)
    expect_refusal(model, lambda: model.partial_fit(holes, Y), "X contains NaN")
    expect_refusal(model, lambda: model.predict(holes), "X contains NaN")
    naive = RACEClassifier(random_state=0).partial_fit(holes, Y).partial_fit(X, Y)
    assert np.isfinite(naive.decision_function(holes)).all()


@pytest.mark.parametrize(
    "use", ["predict", "decision_function", "predict_proba", "add_labels", "save", "encoder_", "decoder_", "merge"]
)
def test_nothing_works_before_learning(data, use, tmp_path):
    X, Y = data
    model = RACEClassifier()
    arguments = {"add_labels": (2,), "save": (tmp_path / "model",), "merge": (RACEClassifier().fit(X, Y),)}
    call = (
        (lambda: getattr(model, use)) if use.endswith("_") else lambda: getattr(model, use)(*arguments.get(use, (X,)))
    )
    expect_refusal(model, call, "not fitted yet", NotFittedError)
    assert not list(tmp_path.iterdir())


def test_a_failure_inside_learning_leaves_the_model_as_it_was(data):
    X, Y = (np.vstack([part, part]) for part in data)
    model = RACEClassifier(method="regression", learner=SGD(rate=1.0), random_state=0)
    expect_refusal(model, lambda: model.partial_fit(1e3 * X, Y), "SGD diverged.*StandardScaler", DivergenceError)
    model.partial_fit(0.1 * X, Y)
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    for rows in (slice(120), slice(40)):
        batch = 1e3 * X[rows], Y[rows]
        expect_refusal(model, lambda batch=batch: model.partial_fit(*batch), "SGD diverged", DivergenceError)
    expect_refusal(model, lambda: model.fit(1e3 * X, Y), "SGD diverged", DivergenceError)
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_a_learner_of_the_users_that_fails_leaves_the_model_as_it_was(data):
    class Moody(SGDClassifier):
        def partial_fit(self, X, y, classes=None):
            super().partial_fit(X, y, classes=classes)
            if X[0, 0] == 13:
                raise RuntimeError("not today")
            return self

    X, Y = data
    model = RACEClassifier(learner=Moody(random_state=0), random_state=0).partial_fit(X, Y)
    scores = model.decision_function(X)
    expect_refusal(model, lambda: model.partial_fit(np.full_like(X, 13), Y), "not today", RuntimeError)
    np.testing.assert_array_equal(model.decision_function(X), scores)
