"""Batches and parameters that cannot be used: a clear error each, and the model is as if the call had not been made."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelrace import BinaryRelevanceClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.exceptions import DivergenceError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

LABELS = list("abcdef")
PREDICTING = ("predict", "decision_function", "predict_proba", "predict_labels", "predict_top")


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
    "half": (lambda X, Y: (X, changed(Y, 0.5)), "y must hold 0 and 1, got 0.5: continuous"),
    "NaN": (lambda X, Y: (X, changed(Y, np.nan)), "y contains NaN.*leave out rows.*'race'"),
    "sparse half": (lambda X, Y: (X, sparse.csc_array(changed(Y, 0.5))), "y must hold 0 and 1, got 0.5"),
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
    "a name twice": (lambda X, Y: (X, pd.DataFrame(Y, columns=list("abcdea"))), "Label names must be distinct"),
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
    "text among objects": (
        lambda X, Y: (changed(X.astype(object), "red"), Y),
        "X must hold numbers, got text.*'red'.*OrdinalEncoder",
    ),
    "list of text": (
        lambda X, Y: (X.astype(str).tolist()[:1] + [["red"] * 5] * 59, Y),
        "X must hold numbers, got text.*OrdinalEncoder",
    ),
    "text in a data frame": (
        lambda X, Y: (text_in(X, "colour"), Y),
        "X must hold numbers, got text in a numeric column: 'colour'",
    ),
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
    for predict in (getattr(model, use) for use in PREDICTING):
        expect_refusal(model, lambda predict=predict: predict(wrong(X, Y)[0]), match)
        expect_refusal(model, lambda predict=predict: predict(X[:, :3]), "X has 3 features")


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


@pytest.mark.parametrize("use", [*PREDICTING, "add_labels", "save", "encoder_", "decoder_", "merge"])
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


A, B = np.linspace(-1, 1, 12).reshape(6, 2), np.array([0.1, -0.2])

WRONG = {
    # Words.
    "method": ({"method": "cls"}, "method must be one of 'classification', 'regression', got 'cls'"),
    "encoding": ({"encoding": "random"}, "encoding must be one of 'fixed', 'adaptive', got 'random'"),
    "start": ({"start": "empty"}, "start must be one of 'full', 'first_batch', got 'empty'"),
    "zero_score": ({"zero_score": 1}, "zero_score must be one of 'absent', 'present', got 1"),
    "learner": (
        {"learner": "bayes"},
        "learner must be one of 'auto', 'naive_bayes', 'sgd', 'ridge', 'rls', got 'bayes'",
    ),
    "n_components": ({"n_components": "sqrt"}, "n_components must be 'log2', 'log2_squared' or .*, got 'sqrt'"),
    # Numbers.
    "no components": ({"n_components": 0}, "n_components must be 'log2', 'log2_squared' or a whole number.*, got 0"),
    "half a component": ({"n_components": 2.5}, "n_components must be .*, got 2.5"),
    "a true component": ({"n_components": True}, "n_components must be .*, got True"),
    "no number": ({"n_components": None}, "n_components must be .*, got None"),
    "too many": ({"n_components": 7}, "n_components must be at most the number of labels, 6, got 7"),
    "ridge": ({"ridge": -0.1}, "ridge must be a number of at least 0.*, got -0.1"),
    "forgetting 0": ({"forgetting": 0}, "forgetting must be a number above 0 and at most 1.*, got 0"),
    "forgetting above 1": ({"forgetting": 1.01}, "forgetting must be .*, got 1.01"),
    "iterations": ({"iterations": 2.7}, r"iterations must be a whole number of at least 1.*, got 2\.7"),
    "random_state text": ({"random_state": "dice"}, "random_state must be .*, got 'dice'"),
    # Encoders.
    "no pair": ({"projection": A}, r"projection must be a pair \(A, b\)"),
    "a number": ({"projection": 3}, r"projection must be a pair \(A, b\)"),
    "text": ({"projection": "AB"}, r"projection must be a pair \(A, b\)"),
    "three": ({"projection": (A, B, B)}, r"projection must be a pair \(A, b\)"),
    "labels": ({"projection": (A[:5], B)}, r"projection.*shapes \(6, k\) and \(k,\) for 6 labels, got \(5, 2\)"),
    "bias": ({"projection": (A, B[:1])}, r"projection must be a pair.*got \(6, 2\) and \(1,\)"),
    "transposed": ({"projection": (A.T, B)}, r"projection must be a pair.*got \(2, 6\)"),
    "no columns": ({"projection": (A[:, :0], B[:0])}, r"projection must be a pair.*got \(6, 0\)"),
    "wide": (
        {"projection": (np.eye(6, 7), np.zeros(7))},
        "projection must have at most as many pseudo labels as labels, 6, got 7",
    ),
    "NaN": (
        {"projection": (np.where(A > 0, np.nan, A), B)},
        "projection must hold finite numbers, got NaN or infinity",
    ),
    "infinite bias": (
        {"projection": (A, np.array([0.1, np.inf]))},
        "projection must hold finite numbers, got NaN or infinity",
    ),
    # Learners.
    "no partial_fit": (
        {"learner": LogisticRegression()},
        "learner must be .*that has partial_fit and predict, got LogisticRegression",
    ),
    "no predict": ({"learner": StandardScaler()}, "that has partial_fit and predict, got StandardScaler"),
    "pipeline": ({"learner": make_pipeline(StandardScaler(), Perceptron())}, "that has partial_fit"),
    "class of banks": ({"learner": SGD, "method": "regression"}, "that has partial_fit"),
    "sgd": ({"learner": "sgd"}, "learner must be made for classification, got 'sgd', which is for method='regression'"),
    "ridge bank": ({"learner": Ridge()}, r"learner must be made for classification, got Ridge\("),
    "regressor": ({"learner": SGDRegressor()}, r"learner must be made for classification, got SGDRegressor\("),
    "bayes": (
        {"learner": NaiveBayes(), "method": "regression"},
        r"learner must be made for regression, got NaiveBayes\(.*method='classification'",
    ),
    "classifier": (
        {"learner": Perceptron(), "method": "regression"},
        r"learner must be made for regression, got Perceptron\(",
    ),
    # Nominal features.
    "short mask": (
        {"categorical_features": [True, False]},
        r"categorical_features must be a mask .*each of the 5 features of X, got shape \(2,\)",
    ),
    "long mask": (
        {"categorical_features": CategoricalMask([2] * 6)},
        r"categorical_features must be a mask .*5 features.*, got shape \(6,\)",
    ),
    "index": ({"categorical_features": [0, 5]}, "categorical_features has an index out of range: X has 5 features"),
    "negative index": ({"categorical_features": [-6]}, "categorical_features has an index out of range"),
    "fractions": ({"categorical_features": [0.5]}, "categorical_features must be a mask, indices or names"),
    "names": ({"categorical_features": ["colour"]}, "categorical_features has names, but X has none"),
    "a name": ({"categorical_features": "colour"}, "categorical_features has names, but X has none"),
    "no codes": (
        {"categorical_features": [1]},
        "X must hold codes .* in a column of categorical_features, got .*OrdinalEncoder",
    ),
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
    for learn in (model.partial_fit, model.fit):
        expect_refusal(model, lambda learn=learn: learn(X, Y), match)
    # What was learned before they were made wrong is kept.
    model = RACEClassifier(random_state=0).fit(X, Y)
    scores = model.decision_function(X)
    model.set_params(**parameters)
    expect_refusal(model, lambda: model.fit(X, Y), match)
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_names_of_columns_that_do_not_exist(data):
    X, Y = data
    model = RACEClassifier(categorical_features=["v", "colour", "shape"])
    with pytest.raises(ValueError, match="categorical_features names columns that X does not have: colour, shape"):
        model.fit(pd.DataFrame(X, columns=list("vwxyz")), Y)


@pytest.mark.parametrize(
    "change",
    [
        {"ridge": 5.0},
        {"zero_score": "present"},
        {"method": "regression", "learner": "ridge"},
        {"projection": (np.ones((6, 2)), np.ones(2))},
        {"label_names": LABELS},
    ],
)
def test_changed_parameters_need_a_new_start(data, change, tmp_path):
    X, Y = data
    model = RACEClassifier(projection=(np.eye(6)[:, :2], np.zeros(2)), random_state=0).fit(X, Y)
    model.set_params(projection=(np.eye(6)[:, :2], np.zeros(2))).partial_fit(X, Y)
    before = model.decision_function(X)
    model.set_params(**change)
    for call in (lambda: model.partial_fit(X, Y), lambda: model.save(tmp_path / "model")):
        with pytest.raises(ValueError, match="Parameters were changed after fitting"):
            call()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not list(tmp_path.iterdir())
    assert model.fit(X, Y).decision_function(X).shape == before.shape


def test_tags_and_repr_do_not_stumble_over_wrong_parameters():
    for parameters, _ in WRONG.values():
        model = RACEClassifier(**parameters)
        assert not model.__sklearn_tags__().input_tags.allow_nan or "learner" not in parameters
        assert repr(model).startswith("RACEClassifier(")


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize("code", [0.5, -1.0, 1e12, 1e300])
def test_nominal_columns_hold_codes_in_every_batch(data, convert, code, bank):
    X, Y = data
    wrong = X.copy()
    wrong[3, 0] = code
    model = RACEClassifier(categorical_features=[0], random_state=0, **bank)
    got = re.escape(f"{code:g}")
    match = rf"X must hold codes .* in a column of categorical_features, got {got}|X must have at most 65,536 values"
    with pytest.raises(ValueError, match=match):
        model.partial_fit(convert(wrong), Y)
    model.partial_fit(convert(X), Y)
    fitted, scores = model._fitted, model.decision_function(convert(X))
    for use in (lambda: model.partial_fit(convert(wrong), Y), lambda: model.predict(convert(wrong))):
        with pytest.raises(ValueError, match=match):
            use()
        assert model._fitted is fitted
    np.testing.assert_array_equal(model.decision_function(convert(X)), scores)


def test_seed_reaches_any_learner(data):
    X, Y = data

    def scores(seed):
        model = RACEClassifier(random_state=seed, projection=(np.eye(6)[:, :3], np.zeros(3)), learner=SGDClassifier())
        return model.fit(X, Y).decision_function(X)

    np.testing.assert_array_equal(scores(0), scores(0))
    assert (scores(0) != scores(1)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NaiveBayes(numeric="bogus"), "numeric must be one of .*, got 'bogus'"),
        (lambda: NaiveBayes(smoothing=0), "smoothing must be .*, got 0"),
        (lambda: Ridge(alpha=-1), "alpha must be .*, got -1"),
        (lambda: SGD(rate=0), "rate must be .*, got 0"),
        (lambda: SGD(penalty=-1), "penalty must be .*, got -1"),
        (lambda: SGD(first_epochs=0), "first_epochs must be .*, got 0"),
    ],
)
def test_settings_of_learners(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_codes_of_a_wider_batch_are_checked_too():
    model = BinaryRelevanceClassifier(categorical_features=[0]).fit(sparse.csr_array([[1.0], [0.0]]), [[1], [0]])
    before = model.decision_function([[1.0]])
    for code in (2.5, -3.0, 2.0**24 + 5):
        with pytest.raises(ValueError, match="in a column of categorical_features"):
            model.partial_fit(sparse.csr_array([[code, 1.0]]), [[1]])
    np.testing.assert_array_equal(model.decision_function([[1.0]]), before)


def test_a_refused_first_batch_draws_nothing(data):
    X, Y = data
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    model = RACEClassifier(random_state=one)
    with pytest.raises(ValueError, match="same number of rows"):
        model.fit(X, Y[:-1])
    np.testing.assert_array_equal(model.fit(X, Y).encoder_, RACEClassifier(random_state=other).fit(X, Y).encoder_)
    state = np.random.RandomState(3)
    before = state.get_state()[1].copy()
    with pytest.raises(ValueError, match="y must hold 0 and 1"):
        RACEClassifier(random_state=state).fit(X, 2 * Y + 3)
    np.testing.assert_array_equal(state.get_state()[1], before)


def test_a_score_needs_known_labels(data):
    X, Y = data
    model = LabelRaceClassifier(random_state=0).fit(X, Y)
    missing = np.where(np.arange(Y.size).reshape(Y.shape) == 4, np.nan, Y)
    with pytest.raises(ValueError, match="no missing labels"):
        model.score(X, missing)


def test_what_a_model_shows_of_its_state_is_read_only(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    for shown in (model.encoder_, model.encoder_bias_, model.decoder_):
        with pytest.raises(ValueError, match="read-only"):
            shown[...] = 7
