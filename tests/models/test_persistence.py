"""Models on disk: what is read is what was written, to the bit."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import RACEClassifier
from labelrace.core.categorical import CategoricalMask
from labelrace.exceptions import ModelFileError
from labelrace.learners.columns import dense
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

BANKS = {
    "naive_bayes": {},
    "binned": {"learner": NaiveBayes(numeric="binned", smoothing=0.5)},
    "sgd": {"method": "regression"},
    "weka": {"method": "regression", "learner": dataclasses.replace(SGD.weka(), first_epochs=5)},
    "ridge": {"method": "regression", "learner": Ridge(alpha=0.3)},
}
RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 5)).round(2)
X[:, 0] = RNG.integers(0, 3, 60)
# So many labels that the decoder's sums of sparse batches wait to be folded.
Y = (RNG.random((60, 50)) < 0.08).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def reloaded(model, path):
    model.save(path)
    return labelrace.load(path)


@pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("start", ["full", "first_batch"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_what_is_read_goes_on_like_what_was_written(path, bank, encoding, start, convert):
    model = RACEClassifier(
        encoding=encoding, start=start, categorical_features=[0], forgetting=0.9, ridge=0.01, random_state=0, **bank
    )
    model.partial_fit(convert(X[:20]), convert(Y[:20])).partial_fit(convert(X[20:30]), convert(Y[20:30]))
    scores = model.decision_function(X)
    twin = reloaded(model, path)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    for batch in (slice(30, 40), slice(40, 60)):
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(dense(twin.predict(X)), dense(model.predict(X)))
        np.testing.assert_array_equal(twin.encoder_, model.encoder_)
        for one in (model, twin):
            one.partial_fit(convert(X[batch]), convert(Y[batch]))
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
    assert twin.get_params() == model.get_params()


@pytest.mark.parametrize("name", labelrace.model_names())
def test_every_model_by_its_name(path, name):
    model = labelrace.make_model(name).fit(X, Y[:, :8])
    twin = reloaded(model, path)
    np.testing.assert_array_equal(dense(twin.predict(X)), dense(model.predict(X)))
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_missing_values_grown_labels_and_new_nominal_values(path):
    holes = X.copy()
    holes[3:9, 0], holes[5:12, 1], holes[20, 0] = np.nan, np.nan, 7
    for numeric in ("density", "binned"):
        model = RACEClassifier(learner=NaiveBayes(numeric=numeric), categorical_features=[0], random_state=0)
        model.partial_fit(holes[:15], Y[:15, :8]).partial_fit(holes[15:], Y[15:, :8]).add_labels(2)
        twin = reloaded(model, path)
        for one in (model, twin):
            one.partial_fit(holes, Y[:, :10])
        np.testing.assert_array_equal(twin.decision_function(holes), model.decision_function(holes))


def test_names_and_parameters_survive(path):
    A, b = RNG.normal(size=(4, 2)), RNG.normal(size=2)
    model = RACEClassifier(
        n_components=np.int64(2),
        projection=(A, b),
        categorical_features=CategoricalMask([4, 0, 0, 0, 0]),
        learner=NaiveBayes(numeric="binned", smoothing=0.25),
        label_names=np.array(["ä", "b", '"c"', "d"]),
        random_state=np.int32(5),
    )
    model.fit(pd.DataFrame(X, columns=["v", "wé", "x", "y", "z"]), Y[:, :4])
    twin = reloaded(model, path)
    given, found = model.get_params(), twin.get_params()
    assert list(given) == list(found)
    assert isinstance(found["categorical_features"], CategoricalMask)
    assert found["categorical_features"].n_values.tolist() == [4, 0, 0, 0, 0]
    for one, other in zip(given["projection"], found["projection"], strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(given["label_names"]) == list(found["label_names"])
    plain = set(given) - {"categorical_features", "projection", "label_names"}
    assert {name: given[name] for name in plain} == {name: found[name] for name in plain}
    assert type(found["learner"]) is NaiveBayes
    assert list(twin.label_names_) == list(model.label_names_) == ["ä", "b", '"c"', "d"]
    assert list(twin.feature_names_in_) == ["v", "wé", "x", "y", "z"]
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(pd.DataFrame(X, columns=list("abcde")))
    again = twin.fit(X, Y[:, :4])
    np.testing.assert_array_equal(again.decision_function(X), model.fit(X, Y[:, :4]).decision_function(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"label_names": pd.Index(list("abcd"))},
        {"label_names": ("a", "b", "c", "d")},
        {"categorical_features": range(1)},
        {"categorical_features": np.array([True, False, False, False, False])},
        {"categorical_features": [True, False, False, False, False]},
        {"categorical_features": np.array([0])},
        {"projection": (pd.DataFrame(np.eye(4)[:, :2]), pd.Series([0.0, 0.1]))},
        {"projection": [[[1, 0], [0, 1], [1, 1], [0, 0]], [0, 0]]},
        {"random_state": np.random.default_rng(0)},
        {"random_state": np.random.RandomState(0)},
        {"random_state": None},
        {"ridge": np.float32(0.5), "forgetting": 1},
    ],
)
def test_parameters_of_all_kinds_can_be_saved(path, parameters):
    model = RACEClassifier(**{"random_state": 0, **parameters}).fit(X, Y[:, :4])
    twin = reloaded(model, path)
    for one in (model, twin):
        one.partial_fit(X, Y[:, :4])
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_the_file_can_be_replaced_under_a_loaded_model(path):
    twin = reloaded(RACEClassifier(random_state=0).fit(X, Y), path)
    with path.open("r+b") as file:
        file.truncate(10)
    np.testing.assert_array_equal(twin.predict(X), RACEClassifier(random_state=0).fit(X, Y).predict(X))


def test_models_of_foreign_learners_are_not_saved(path):
    model = RACEClassifier(learner=Perceptron(), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="Perceptron cannot be saved: only arrays are written, never pickles"):
        model.save(path)
    assert not path.exists()
    with pytest.raises(ValueError, match=r"(?s)random_state=.*cannot be saved"):
        RACEClassifier(random_state=np.random.SeedSequence(1)).fit(X, Y).save(path)


def test_saving_that_fails_changes_nothing(tmp_path):
    model = RACEClassifier(random_state=0).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*models to write mine into: make it first"):
        model.save(tmp_path / "models" / "mine")
    assert all(vars(model)[name] is value for name, value in before.items())


def test_nothing_is_ever_unpickled(path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("unpickled")

    RACEClassifier(random_state=0).fit(X, Y).save(path)
    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    labelrace.load(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFileError):
        labelrace.load(path)


def test_a_class_of_ones_own_is_not_saved(tmp_path):
    class Mine(labelrace.RACEClassifier):
        pass

    X = np.eye(4)
    with pytest.raises(ValueError, match="model must be one of labelrace's own classifiers, got Mine"):
        Mine().fit(X, X).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
