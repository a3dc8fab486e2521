"""Features that come later, and rows that name their features."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import BinaryRelevanceClassifier, RACEClassifier
from labelrace.exceptions import GrowthError
from labelrace.learners.naive_bayes import NaiveBayes

ONLINE = labelrace.model_names(online=True)
FEATURES = list("vwxyz")
# The lead model's features bend; when they become more, it is not the one that knew them.
EXACT = [name for name in ONLINE if name != "race"]


def dicts(X, names=FEATURES):
    return [{name: value for name, value in zip(names, row, strict=True) if value} for row in X.tolist()]


def seeded(name, **parameters):
    has_seed = "random_state" in labelrace.make_model(name).get_params()
    return labelrace.make_model(name, **({"random_state": 0} if has_seed else {}), **parameters)


def assert_same(one, other, X, Z=None, **options):
    options = options or {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X if Z is None else Z), **options)


@pytest.mark.parametrize("name", ONLINE)
def test_wider_sparse_rows_add_features(data, name):
    X, Y = data
    Z = np.where((np.arange(60) < 30)[:, None] & (np.arange(5) >= 3), 0, X)
    grown, knew = seeded(name), seeded(name)
    grown.partial_fit(sparse.csr_array(Z[:30, :3]), Y[:30]).partial_fit(sparse.coo_matrix(Z[30:]), Y[30:])
    assert grown.n_features_in_ == 5
    assert np.isfinite(grown.decision_function(X)).all()
    if name in EXACT:
        knew.partial_fit(sparse.csr_array(Z[:30]), Y[:30]).partial_fit(sparse.csr_array(Z[30:]), Y[30:])
        assert_same(grown, knew, X)


def test_every_bank_or_a_clear_refusal(data, bank):
    X, Y = data
    grown = RACEClassifier(random_state=0, **bank).partial_fit(X[:30, :3], Y[:30])
    before = dict(vars(grown))
    if isinstance(bank.get("learner"), Perceptron):
        with pytest.raises(GrowthError, match=r"X has 5 features, but RACEClassifier is expecting 3.*Perceptron"):
            grown.partial_fit(sparse.csr_array(X), Y)
        assert vars(grown) == before
        return
    knew = RACEClassifier(random_state=0, **bank)
    knew.partial_fit(np.hstack([X[:30, :3], np.zeros((30, 2))]), Y[:30]).partial_fit(X[30:], Y[30:])
    assert_same(grown.partial_fit(sparse.csr_array(X[30:]), Y[30:]), knew, X)


def test_features_that_come_later_are_nominal_where_all_are(data):
    X, Y = np.abs(data[0]).round(), data[1]
    X[30:, 3] = 4
    model = BinaryRelevanceClassifier(categorical_features=[0, 1, 2]).partial_fit(X[:30, :3], Y[:30]).partial_fit(sparse.csr_array(X), Y)
    assert model._fitted.schema.n_values[3:].tolist() == [5, int(X[:, 4].max()) + 1]
    with pytest.raises(ValueError, match="in a column of categorical_features"):
        model.partial_fit(sparse.csr_array(np.hstack([X, X + 0.5])), Y)
    assert model.n_features_in_ == 5
    mixed = (
        BinaryRelevanceClassifier(categorical_features=[0])
        .partial_fit(X[:30, :3], Y[:30])
        .partial_fit(sparse.csr_array(X + 0.5 * (X > 9)), Y)
    )
    assert mixed._fitted.schema.n_values[1:].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ONLINE)
def test_dicts_are_sparse_rows_with_names(data, name):
    X, Y = data
    by_name, by_place = seeded(name), seeded(name)
    rows = dicts(X)
    order = list(dict.fromkeys(key for row in rows for key in row))
    places = [FEATURES.index(key) for key in order]
    n_first = len({key for row in rows[:1] for key in row})
    assert 0 < n_first < 5
    by_name.partial_fit(rows[:1], Y[:1]).partial_fit(rows[1:], Y[1:])
    Z = sparse.csr_array(X[:, places])
    by_place.partial_fit(Z[:1, :n_first], Y[:1]).partial_fit(Z[1:], Y[1:])
    assert list(by_name.feature_names_in_) == order
    assert by_name.n_features_in_ == 5
    assert_same(by_name, by_place, rows, Z)
    # What nobody has learned says nothing; what is not there is 0.
    assert_same(by_name, by_name, [{**row, "unheard of": 1e9} for row in rows], rows)
    assert by_name.predict([{}]).shape == (1, 6)
    assert list(by_name.feature_names_in_) == order
    with pytest.raises(ValueError, match=r"X has 7 features"), pytest.warns(UserWarning, match="feature names"):
        by_name.predict(sparse.csr_array(np.ones((2, 7))))
    # So does a column behind those that are known, but only a sparse one: dense rows have all of theirs.
    wider = sparse.hstack([Z, 1e9 * np.ones((Z.shape[0], 2))], format="csr")
    assert_same(by_place, by_place, wider, Z)
    with pytest.raises(ValueError, match=r"X has 7 features"):
        by_place.predict(wider.toarray())


def test_dicts_and_data_frames_go_together(data, tmp_path):
    X, Y = data
    frame = pd.DataFrame(X, columns=FEATURES)
    by_frame, by_dict, mixed = (RACEClassifier(categorical_features=["v"], random_state=0) for _ in range(3))
    by_frame.partial_fit(frame[:30], Y[:30]).partial_fit(frame[30:], Y[30:])
    mixed.partial_fit(frame[:30], Y[:30]).partial_fit(dicts(X[30:])[::-1], Y[30:][::-1])
    by_dict.partial_fit([dict.fromkeys(FEATURES, 0.0), *dicts(X)], np.vstack([0 * Y[:1], Y]))
    assert list(by_dict.feature_names_in_) == FEATURES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(mixed, by_frame, dicts(X), frame)
        mixed.save(tmp_path / "model")
        loaded = labelrace.load(tmp_path / "model")
        for model in (mixed, loaded):
            model.partial_fit([{"new": 2, "v": 1}], Y[:1])
        np.testing.assert_array_equal(loaded.decision_function(dicts(X)), mixed.decision_function(dicts(X)))
    assert list(loaded.feature_names_in_) == [*FEATURES, "new"]
    with pytest.raises(ValueError, match=r"X has 7 features without names.*give rows as dicts"):
        loaded.partial_fit(sparse.csr_array(np.ones((1, 7))), Y[:1])


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([{"a": np.inf}], "X contains infinity"),
        ([{"a": np.nan}], "X contains NaN"),
        ([{"a": "red"}], "X holds 'red'"),
        ([{"b": -np.inf, "a": 1}], "X contains infinity"),
    ],
)
def test_dicts_that_are_refused(data, rows, match):
    _, Y = data
    model = RACEClassifier(method="regression", learner="ridge", random_state=0)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(rows, Y[:1])
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X must name at least one feature"):
        model.partial_fit([{}, {}], Y[:2])
    model.partial_fit([{"a": 1}, {"a": 2}], Y[:2])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.partial_fit(rows, Y[:1])
    assert all(vars(model)[name] is value for name, value in before.items())


def test_missing_values_and_codes_in_dicts(data):
    _, Y = data
    model = BinaryRelevanceClassifier(categorical_features=["a"], learner=NaiveBayes()).partial_fit(
        [{"a": 1, "b": 0.5}, {"b": np.nan}], Y[:2]
    )
    assert np.isfinite(model.decision_function([{"a": 0, "b": np.nan}])).all()
    for ask in (model.predict, lambda X: model.partial_fit(X, Y[:1])):
        with pytest.raises(ValueError, match="in a column of categorical_features"):
            ask([{"a": 0.5}])


def test_unnamed_features_stay_unnamed(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    for ask in (model.predict, lambda rows: model.partial_fit(rows, Y)):
        with pytest.raises(ValueError, match="features learned so far have no names"):
            ask(dicts(X))
    # Starting anew, anything goes.
    assert list(model.fit([{"a": 1}, {"b": 1}], Y[:2]).feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
