"""Labels and features that come later, in every model: exactly those of the model that knew them from the start."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from helpers.models import ONLINE_MODELS
from scipy import sparse
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import BinaryRelevanceClassifier, ClassifierChainsClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.exceptions import GrowthError
from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD
from labelrace.race import encoder
from labelrace.related.chains import Chains
from labelrace.related.constant import Constant
from labelrace.related.relevance import Relevance

ALGORITHMS = {
    "relevance": Relevance(NaiveBayes()),
    "binned": Relevance(NaiveBayes(numeric="binned")),
    "ridge": Relevance(Ridge()),
    "sgd": Relevance(SGD(rate=0.5, normalised=True)),
    "chains": Chains(NaiveBayes(), 2),
    "majority": Constant(majority=True),
    "negative": Constant(majority=False),
}


def schema(n_features, n_labels):
    return Schema(FeatureKinds.numbers(n_features), None, n_labels, None)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_wider_schema_grows_features_and_labels_together(algorithm):
    X, W = np.random.default_rng(1).normal(size=(60, 5)), np.random.default_rng(2).normal(size=(5, 5))
    state = algorithm.init(schema(3, 5), np.random.default_rng(0))
    for part in (slice(0, 12), slice(12, 30)):
        state = algorithm.update(state, X[part, :3], (X[part] @ W > 0.5).astype(float))
    old, rng = schema(3, 5), np.random.default_rng
    one_by_one = algorithm.grow(algorithm.grow(state, old, schema(5, 5), rng(0)), schema(5, 5), schema(5, 8), rng(0))
    for new, n_features, n_labels in ((schema(5, 8), 5, 8), (schema(5, 5), 5, 5), (schema(3, 8), 3, 8)):
        grown = algorithm.derive(algorithm.grow(state, old, new, rng(0)))
        scores = algorithm.scores(grown, X[:, :n_features])
        assert scores.shape == (60, n_labels)
        expected = algorithm.scores(algorithm.derive(one_by_one), X * (np.arange(5) < n_features))
        np.testing.assert_allclose(scores, expected[:, :n_labels], rtol=1e-9, atol=1e-9)
    # Where nothing is new, the state is what it was.
    assert algorithm.grow(state, old, schema(3, 5), rng(0)) is state


def test_algorithms_that_cannot_grow_say_so():
    adapted, rng = Relevance(Adapter(Perceptron())), np.random.default_rng(0)
    state = adapted.init(schema(2, 2), rng)
    for wider in (schema(3, 2), schema(2, 3), schema(3, 3)):
        with pytest.raises(GrowthError, match=r"The model cannot grow: .*Perceptron"):
            adapted.grow(state, schema(2, 2), wider, rng)


LABELS = list("abcdef")
ONLINE = ONLINE_MODELS


def assert_same(one, other, X, **options):
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), **options)
    np.testing.assert_array_equal(dense(one.predict(X)), dense(other.predict(X)))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.coo_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("name", ONLINE)
def test_a_wider_batch_adds_labels(data, name, convert):
    X, Y = data
    model = labelrace.make_model(name).partial_fit(X[:30], convert(Y[:30, :4]))
    twin = copy.deepcopy(model)
    model.partial_fit(X[30:], convert(Y[30:]))
    assert model.classes_.tolist() == list(range(6))
    assert model.label_names_ is None
    assert model.predict(X).shape == (60, 6)
    # As if they had been added before.
    assert_same(twin.add_labels(2).partial_fit(X[30:], Y[30:]), model, X, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_race_is_the_model_that_knew(data, bank, encoding):
    X, Y = data
    Y = np.where((np.arange(60) < 30)[:, None] & (np.arange(6) >= 4), 0, Y)
    grown = RACEClassifier(encoding=encoding, random_state=3, **bank).partial_fit(X[:30], Y[:30, :4])
    A, bias = grown.encoder_, grown.encoder_bias_
    grown.partial_fit(X[30:45], Y[30:45])
    rows = encoder.draw_rows(encoder.given(A, bias), np.arange(4, 6), np.random.default_rng(3))
    projection = np.vstack([A, rows]), bias + rows.sum(axis=0)
    if encoding == "adaptive":
        # With the coding of late labels, which a projection cannot tell: see test_race.py.
        knew = RACEClassifier(projection=(A, bias), encoding=encoding, **bank).partial_fit(X[:30], Y[:30, :4])
        knew.add_labels(2, rows)
    else:
        knew = RACEClassifier(projection=projection, **bank).partial_fit(X[:30], Y[:30])
    knew.partial_fit(X[30:45], Y[30:45])
    for model in (grown, knew):
        model.partial_fit(X[45:], Y[45:])
    np.testing.assert_allclose(grown.decoder_, knew.decoder_, rtol=1e-6, atol=1e-9)
    assert_same(grown, knew, X, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ONLINE)
def test_names_are_matched(data, name):
    X, Y = data
    # What is drawn for a new label is its name's, so that both have names.
    frame = pd.DataFrame(Y, columns=LABELS)
    plain = labelrace.make_model(name, **seeded(name)).partial_fit(X[:20], frame[:20][LABELS[:4]])
    named = labelrace.make_model(name, **seeded(name)).partial_fit(X[:20], pd.DataFrame(Y[:20, :4], columns=LABELS[:4]))
    # In another order, with new ones in between; then some left out.
    plain.partial_fit(X[20:40], frame[20:40])
    named.partial_fit(X[20:40], pd.DataFrame(Y[20:40], columns=LABELS)[list("aebdcf")])
    plain.partial_fit(X[40:], frame[40:] * np.isin(LABELS, ["b", "f"]))
    named.partial_fit(X[40:], pd.DataFrame(Y[40:], columns=LABELS)[["f", "b"]])
    assert list(named.label_names_) == LABELS
    assert_same(named, plain, X, rtol=1e-7, atol=1e-9)


def seeded(name):
    has_seed = "random_state" in labelrace.make_model(name).get_params()
    return {"random_state": 0} if has_seed else {}


def test_given_names_come_first(data):
    X, _ = data
    model = BinaryRelevanceClassifier(label_names=["a", "b"]).fit(X[:2], [{"z"}, {"b"}])
    assert list(model.label_names_) == ["a", "b", "z"]


@pytest.mark.parametrize("name", ONLINE)
def test_a_loaded_model_grows_the_same_way(data, name, tmp_path):
    X, Y = data
    # A seed that is nobody's choice must be kept, too.
    for parameters in ({}, seeded(name)):
        model = labelrace.make_model(name, **parameters).partial_fit(X[:20], Y[:20, :3])
        model.partial_fit(X[20:30], Y[20:30, :4])
        model.save(tmp_path / "model")
        twin = labelrace.load(tmp_path / "model")
        for one in (model, twin):
            one.partial_fit(X[30:45], Y[30:45]).partial_fit(X[45:], Y[45:])
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(
            labelrace.load(tmp_path / "model").decision_function(X), model.decision_function(X)
        )


def test_chains_that_were_given_grow_and_are_loaded(data, tmp_path):
    X, Y = data
    model = ClassifierChainsClassifier(orders=[[2, 0, 1]]).partial_fit(X[:30], Y[:30, :3]).partial_fit(X[30:], Y[30:])
    assert model._fitted.state.orders.tolist() == [[2, 0, 1, 3, 4, 5]]
    model.save(tmp_path / "model")
    assert_same(labelrace.load(tmp_path / "model"), model, X)


def test_seeds(data):
    X, Y = data

    def rows(random_state, **others):
        model = RACEClassifier(random_state=random_state, **others)
        return model.partial_fit(X, Y[:, :4]).partial_fit(X, Y).encoder_[4:]

    for make in (lambda: 5, lambda: np.random.default_rng(5), lambda: np.random.RandomState(5), lambda: np.int64(5)):
        np.testing.assert_array_equal(rows(make()), rows(make()))
    assert not np.array_equal(rows(5), rows(6))
    assert not np.array_equal(rows(None), rows(None))
    projection = np.eye(4)[:, :2], np.zeros(2)
    np.testing.assert_array_equal(rows(None, projection=projection), rows(None, projection=projection))


def test_models_that_cannot_grow_say_so_and_stay_as_they_were(data):
    X, Y = data
    model = BinaryRelevanceClassifier(learner=Perceptron()).partial_fit(X, Y[:, :4])
    before = dict(vars(model))
    for attempt, match in (
        (
            lambda: model.partial_fit(X, Y),
            "y has 6 labels, but BinaryRelevanceClassifier has learned with 4 and cannot .*",
        ),
        (lambda: model.add_labels(2), "cannot take new labels: "),
    ):
        with pytest.raises(GrowthError, match=f"{match}.*Perceptron"):
            attempt()
        assert vars(model) == before


def test_chains_do_not_outgrow_their_table(data, monkeypatch):
    X, Y = data
    monkeypatch.setattr("labelrace.base.algorithm._MOST_PAIRED", 4)
    model = ClassifierChainsClassifier().partial_fit(X, Y[:, :4])
    with pytest.raises(ValueError, match=r"y has 6 labels, .*l × l table.*use at most 4 labels"):
        model.partial_fit(X, Y)
    assert model.predict(X).shape == (60, 4)


def test_a_failure_after_growth_takes_it_back(data):
    X, Y = data
    model = RACEClassifier(random_state=0).partial_fit(X, pd.DataFrame(Y, columns=LABELS))
    before = dict(vars(model))
    for x, y in ((X, [{"z", 3}] * 60), (1e200 * X, [{"z"}] * 60), (sparse.csr_array(np.hstack([X, X])), [{"z"}] * 59)):
        with pytest.raises((ValueError, ArithmeticError)):
            model.partial_fit(x, y)
        assert all(vars(model)[name] is value for name, value in before.items())


def test_labels_that_are_not_known_reach_those_who_can_learn_them(data):
    X, Y = data
    assert not RACEClassifier().supports_missing_labels
    assert LabelRaceClassifier().supports_missing_labels
    hidden = np.where(np.arange(Y.size).reshape(Y.shape) % 3 == 0, np.nan, Y)
    by_dense, by_sparse, absent = (
        LabelRaceClassifier(random_state=0).fit(X, Y).partial_fit(X, y)
        for y in (hidden, sparse.csr_array(hidden), np.nan_to_num(hidden))
    )
    np.testing.assert_array_equal(by_sparse.decision_function(X), by_dense.decision_function(X))
    assert np.abs(absent.decision_function(X) - by_dense.decision_function(X)).max() > 0.01
    with pytest.raises(ValueError, match="got 2"):
        by_dense.partial_fit(X, hidden + 2)
