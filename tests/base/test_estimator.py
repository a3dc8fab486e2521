"""What every model predicts, in which form: against plain loops over scores and probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.fake import FakeClassifier
from helpers.memory import peak_of
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import accuracy_score

import labelrace
from labelrace import BinaryRelevanceClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.base.sparse import dense

LABELS = list("abcdef")
# The shell is the same for all: one that relies on every default, and those that find label sets in ways of their own.
MODELS = pytest.mark.parametrize("name", ["fake", "race", "race-hashed"])


def as_sets(Y, names=LABELS):
    return [{name for name, present in zip(names, row, strict=True) if present} for row in dense(Y)]


# Labels as a user may give them.
FORMS = {
    "dense": lambda Y: Y,
    "sparse": sparse.csr_array,
    "frame": lambda Y: pd.DataFrame(Y, columns=LABELS),
    "sets": as_sets,
}


def fitted(name, X, y):
    # Names of labels in sets would otherwise come in the order of their appearance.
    return seeded(name, label_names=LABELS if isinstance(y, list) else None).fit(X, y)


def seeded(name, **parameters):
    if name == "fake":
        return FakeClassifier(**parameters)
    return labelrace.make_model(name, random_state=0, **parameters)


@pytest.fixture(params=[None, 13], ids=["at once", "in blocks"])
def cells(request, monkeypatch):
    """Predict all rows at once, then two rows at a time."""
    if request.param is not None:
        monkeypatch.setattr("labelrace.base.fitted._CELLS", request.param)


# The form of what is predicted.


@MODELS
@pytest.mark.parametrize(
    ("dtype", "convert"),
    [
        *((dtype, np.asarray) for dtype in (bool, np.uint8, np.int64, np.float32)),
        *((dtype, sparse.csr_array) for dtype in (bool, np.int64, np.float64)),
        (np.int8, sparse.coo_matrix),
    ],
)
def test_predictions_are_of_the_type_of_the_labels(data, name, dtype, convert):
    X, Y = data
    predicted = seeded(name).fit(X, convert(Y.astype(dtype))).predict(X)
    assert predicted.dtype == dtype
    assert sparse.issparse(predicted) == (convert is not np.asarray)
    if sparse.issparse(predicted):
        assert predicted.format == "csr"
        assert isinstance(predicted, sparse.sparray)
        assert (predicted.data == 1).all()
    np.testing.assert_array_equal(dense(predicted), seeded(name).fit(X, Y).predict(X))


@MODELS
def test_other_labels_are_predicted_as_whole_numbers(data, name):
    X, Y = data
    for y in (Y.tolist(), pd.DataFrame(Y, columns=LABELS), pd.DataFrame(Y == 1), Y.astype(object), Y.astype(str)):
        predicted = seeded(name).fit(X, y).predict(X)
        assert type(predicted) is np.ndarray
        assert predicted.dtype == np.int64
    predicted = seeded(name).fit(X, as_sets(Y)).predict(X)
    assert isinstance(predicted, sparse.csr_array)
    assert predicted.dtype == np.int8


def test_the_first_batch_settles_the_form(data, tmp_path):
    X, Y = data
    first_dense = RACEClassifier(random_state=0).partial_fit(X, Y == 1).partial_fit(X, sparse.csr_array(Y))
    first_sparse = RACEClassifier(random_state=0).partial_fit(X, sparse.csr_array(Y == 1)).partial_fit(X, Y)
    for model in (first_dense, first_sparse):
        model.save(tmp_path / "model")
        for one in (model, labelrace.load(tmp_path / "model"), model.add_labels(1)):
            assert one.predict(X).dtype == np.bool_
            assert sparse.issparse(one.predict(X)) == (model is first_sparse)
    np.testing.assert_array_equal(dense(first_sparse.predict(X)), first_dense.predict(X))


# Labels by name.


@MODELS
@pytest.mark.parametrize("form", FORMS)
def test_labels_by_name(data, name, form, cells):
    X, Y = data
    model = fitted(name, X, FORMS[form](Y))
    predicted = dense(model.predict(X))
    assert predicted.shape == Y.shape
    np.testing.assert_array_equal(predicted == 1, model._fitted.algorithm.predict(model._fitted.derived, X))
    names = LABELS if form in ("frame", "sets") else range(6)
    found = model.predict_labels(X)
    assert found == as_sets(predicted, names)
    assert {type(label) for row in found for label in row} <= {str if form in ("frame", "sets") else int}
    assert model.predict_labels(X[:1]) == found[:1]


@MODELS
@pytest.mark.parametrize("form", FORMS)
def test_the_most_likely_labels(data, name, form, cells):
    """Against sorting. Some rows at a time and all at once differ by rounding, of "race" in single precision."""
    X, Y = data
    model, rounding = fitted(name, X, FORMS[form](Y)), 1e-5 if name == "race" else 1e-12
    names = LABELS if form in ("frame", "sets") else list(range(6))
    scores, likely = model.decision_function(X), model.predict_proba(X)
    for k in (1, 3, 6, 100, np.int64(2)):
        best = model.predict_top(X, k)
        assert {len(row) for row in best} == {min(k, 6)}
        assert {type(value) for row in best for _, value in row} == {float}
        columns = np.array([[names.index(label) for label, _ in row] for row in best])
        assert all(len(set(row)) == len(row) for row in columns.tolist())
        found = np.array([[value for _, value in row] for row in best])
        np.testing.assert_allclose(found, np.take_along_axis(likely, columns, axis=1), atol=rounding)
        np.testing.assert_allclose(found, -np.sort(-likely, axis=1)[:, : int(k)], atol=rounding)
        expected = -np.sort(-scores, axis=1)[:, : int(k)]
        np.testing.assert_allclose(np.take_along_axis(scores, columns, axis=1), expected, atol=rounding)


def test_of_equally_likely_labels_the_first_come_first(data, cells):
    X, _ = data
    # Each label is in every second row.
    Y = np.tile(np.arange(60)[:, None] % 2, 6)
    model = labelrace.make_model("negative").fit(X, Y)
    for k in (1, 3, 6):
        assert model.predict_top(X, k) == [[(label, 0.5) for label in range(k)]] * 60
    assert model.predict_labels(X) == [set()] * 60


def test_five_labels_are_listed_by_default(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    assert model.predict_top(X) == model.predict_top(X, 5) == model.predict_top(X, k=5)


@pytest.mark.parametrize("wrong", [0, -1, 1.0, True, "2", None])
def test_how_many_labels_cannot_be_listed(data, wrong):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=f"k must be a whole number of at least 1, got {wrong!r}"):
        model.predict_top(X, wrong)


# Memory.


@pytest.mark.parametrize("use", ["predict", "predict_labels", "predict_top"])
@pytest.mark.parametrize(
    "model",
    [RACEClassifier(random_state=0), BinaryRelevanceClassifier(), LabelRaceClassifier(n_components=16, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_no_array_of_rows_by_labels(monkeypatch, model, use):
    """Of 1000 rows and 4000 labels it would take 4 MB in bytes, and 32 MB in floats; a block of floats takes 0.5 MB."""
    monkeypatch.setattr("labelrace.base.fitted._CELLS", 2**16)
    rng, n_rows, n_labels = np.random.default_rng(0), 1000, 4000
    X = rng.normal(size=(n_rows, 3))
    cells = np.repeat(np.arange(200), 2), rng.integers(0, n_labels, 2 * 200)
    Y = sparse.csr_array((np.ones(400), cells), shape=(200, n_labels))
    Y.data[:] = 1
    model = clone(model).fit(X[:200], Y)
    # What is derived once is no part of it.
    assert model.predict_top(X[:1], 3)
    assert peak_of(lambda: getattr(model, use)(X)) < n_rows * n_labels


# Scores.


@MODELS
@pytest.mark.parametrize("form", FORMS)
def test_score_is_the_share_of_rows_that_are_right(data, name, form):
    X, Y = data
    y = FORMS[form](Y)
    model = fitted(name, X, y)
    right = (dense(model.predict(X)) == Y).all(axis=1)
    assert model.score(X, y) == right.mean()
    weights = np.arange(1.0, 61.0)
    assert model.score(X, y, sample_weight=weights) == pytest.approx((weights * right).sum() / weights.sum())
    assert model.score(X, dense(FORMS["dense"](Y))) == accuracy_score(Y, dense(model.predict(X)))


def test_score_in_any_form_and_order(data):
    X, Y = data
    model = RACEClassifier(n_components=6, method="regression", learner="ridge", label_names=LABELS).fit(X, Y)
    expected = (model.predict(X) == Y).all(axis=1).mean()
    assert 0 < expected < 1
    frame = pd.DataFrame(Y, columns=LABELS)
    for y in (Y, Y == 1, sparse.csc_array(Y), frame, frame[LABELS[::-1]], as_sets(Y), Y.tolist()):
        assert model.score(X, y) == expected
    # Rows of which a label is new are wrong, others are what they are.
    known = as_sets(Y)
    right = (model.predict(X) == Y).all(axis=1)
    new = [row | {"new"} if number % 2 else row for number, row in enumerate(known)]
    assert model.score(X, new) == (right & (np.arange(60) % 2 == 0)).mean()
    assert model.score(X, frame.assign(new=0)) == expected
    assert model.classes_.tolist() == list(range(6))
    assert model.score(X, model.predict_labels(X)) == 1.0
    with pytest.raises(ValueError, match="X and y must have the same number of rows, got 60 and 59"):
        model.score(X, known[1:])
    with pytest.raises(ValueError, match="y must hold 0 and 1, got 2"):
        model.score(X, 2 * Y)


# What is known.


@MODELS
def test_what_is_known_cannot_be_set(data, name):
    X, Y = data
    model = seeded(name)
    for attribute in ("n_features_in_", "classes_", "label_names_", "feature_names_in_"):
        assert not hasattr(model, attribute)
    model.fit(pd.DataFrame(X, columns=list("vwxyz")), pd.DataFrame(Y, columns=LABELS))
    assert model.n_features_in_ == 5
    assert model.classes_.tolist() == list(range(6))
    assert list(model.label_names_) == LABELS
    assert list(model.feature_names_in_) == list("vwxyz")
    for attribute in ("n_features_in_", "classes_", "label_names_", "feature_names_in_"):
        with pytest.raises(AttributeError):
            setattr(model, attribute, None)
    assert not hasattr(clone(model), "classes_")
    assert clone(model).get_params() == model.get_params()


@MODELS
def test_arguments_may_be_given_by_name(data, name):
    X, Y = data
    one = seeded(name).fit(X=X, y=Y)
    np.testing.assert_array_equal(one.decision_function(X=X), seeded(name).fit(X, Y).decision_function(X))
    other = seeded(name).partial_fit(X=X, y=Y, classes=None)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_labels_can_be_renamed():
    X, names = np.eye(4), [{"a"}, {"b"}, {"a", "b"}, set()]
    model = labelrace.BinaryRelevanceClassifier().fit(X, names)
    before = model.predict_proba(X)
    assert list(model.rename_labels({"a": "c"}).label_names_) == ["c", "b"]
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.partial_fit(X, [{"c"}] * 4)
    assert list(model.label_names_) == ["c", "b"]
    with pytest.raises(ValueError, match="names must be of labels that the model knows, got 'a'"):
        model.rename_labels({"a": "d"})
    with pytest.raises(ValueError, match="names must be distinct and new"):
        model.rename_labels({"c": "b"})
