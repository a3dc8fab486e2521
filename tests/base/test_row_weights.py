"""Weights of rows: a model counts a row as often as its weight says, or refuses weights and stays as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import labelrace
from labelrace import BinaryRelevanceClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.exceptions import DivergenceError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.sgd import SGD

REFUSING = {
    *("race-hashed", "bmad", "maniac", "arow", "adagrad-logistic", "adagrad-squared", "mbr-chunks", "mlknn", "rbm"),
    *("mlknn-prequential", "mwc", "mlht", "mlht-moa", "eaht", "isoup", "isoup-linear"),
}
# Every model is one or the other; the default counts squared errors, which tests/linear looks at.
SUPPORTING = [name for name in labelrace.model_names() if name not in REFUSING]
SUMS = [name for name in SUPPORTING if name != "race"]


def make(name, **parameters):
    if name.startswith("race-reg"):
        # The original passes over the first batch in an order of its own; without one, rows are learned in succession.
        parameters = {"learner": SGD(rate=0.5, normalised=True, penalty=0.0), **parameters}
    return labelrace.make_model(name, random_state=0, **parameters)


@pytest.fixture
def rows():
    """Return 80 rows of 5 features with 6 labels, and weights 0 to 3."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5)).round(1)
    Y = (X @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(80, 6)) > 0.4).astype(int)
    return X, Y, rng.integers(0, 4, 80)


def learn(model, X, Y, weights=None, n_batches=2):
    """Learn in some batches, or in one where the model is offline."""
    if not model.is_online:
        return model.fit(X, Y, sample_weight=weights)
    for part in np.array_split(np.arange(X.shape[0]), n_batches):
        model.partial_fit(X[part], Y[part], sample_weight=None if weights is None else weights[part])
    return model


def assert_same(one, other):
    """Compare everything that two models know, to the bit."""
    arrays, others = one.pack()[1], other.pack()[1]
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(np.asarray(array), np.asarray(others[name]), err_msg=name)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", SUMS)
def test_a_weight_is_the_row_as_often(name, form, rows):
    X, Y, weights = rows
    weighted, repeated = make(name), make(name)
    for part in np.array_split(np.arange(80), 2) if weighted.is_online else [np.arange(80)]:
        again = np.repeat(part, weights[part])
        if weighted.is_online:
            weighted.partial_fit(form(X[part]), form(Y[part]), sample_weight=weights[part])
            repeated.partial_fit(form(X[again]), form(Y[again]))
        else:
            weighted.fit(form(X), form(Y), sample_weight=weights)
            repeated.fit(form(X[again]), form(Y[again]))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["obr", "oecc", "race-cls-fixed", "ridge", "cplst", "faie", "kcca", "cl"])
def test_two_halves_are_a_whole(name, rows):
    X, Y, _ = rows
    whole, halves = make(name), make(name)
    whole.partial_fit(X, Y)
    for _ in range(2):
        halves.partial_fit(X, Y, sample_weight=np.full(80, 0.5))
    np.testing.assert_allclose(halves.predict_proba(X), whole.predict_proba(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SUPPORTING)
def test_ones_are_no_weights(name, rows):
    X, Y, _ = rows
    assert_same(learn(make(name), X, Y, np.ones(80)), learn(make(name), X, Y))


@pytest.mark.parametrize("name", SUPPORTING)
def test_a_row_of_weight_0_is_not_there(name, rows):
    X, Y, weights = rows
    there = weights > 0
    Y[~there, :3] = 1
    assert_same(
        learn(make(name), X, Y, there.astype(int), n_batches=1), learn(make(name), X[there], Y[there], n_batches=1)
    )
    assert_same(
        learn(make(name), X, Y, weights, n_batches=1),
        learn(make(name), X[there], Y[there], weights[there], n_batches=1),
    )


def test_what_only_a_row_of_weight_0_has_is_known():
    model = BinaryRelevanceClassifier().partial_fit([{"a": 1.0}, {"b": 2.0}], [{"x"}, {"y"}], sample_weight=[1, 0])
    assert model.label_names_.tolist() == ["x", "y"]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    known = BinaryRelevanceClassifier(label_names=["x", "y"]).fit(pd.DataFrame({"a": [1.0], "b": [0.0]}), [[1, 0]])
    np.testing.assert_array_equal(model.decision_function([{"a": 1.0}]), known.decision_function([{"a": 1.0}]))


@pytest.mark.parametrize("name", sorted(REFUSING))
def test_others_refuse_weights_and_stay_as_they_were(name, rows):
    X, Y, weights = rows
    model = make(name)
    assert not model.supports_row_weights
    message = f"sample_weight must be None for {type(model).__name__}, got weights: .+ Repeat rows .*'race'"
    for fit in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            fit(X, Y, sample_weight=weights)
    assert not model.is_fitted
    before = model.partial_fit(X, Y).fitted
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y, sample_weight=np.ones(80))
    assert model.fitted is before


def test_the_list_is_complete():
    assert {name for name in labelrace.model_names() if not make(name).supports_row_weights} == REFUSING


WRONG = {
    "few": ([1.0] * 79, r"got the shape \(79,\)"),
    "a matrix": (np.ones((80, 1)), r"got the shape \(80, 1\)"),
    "a number": (2.0, r"got the shape \(\)"),
    "text": (["much"] * 80, r"got \['much'"),
    "ragged": ([[1.0], 2.0], r"got \[\[1.0\]"),
    "negative": ([1.0, -0.5] * 40, "got -0.5"),
    "NaN": ([1.0, np.nan] * 40, "got nan"),
    "infinity": ([1.0, np.inf] * 40, "got inf"),
}


@pytest.mark.parametrize("name", ["race", "obr", "ridge"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_weights(name, case, rows):
    X, Y, _ = rows
    wrong, message = WRONG[case]
    model = make(name)
    message = f"sample_weight must be a list of 80 finite numbers of at least 0, a weight for each row, {message}"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, sample_weight=wrong)
    before = model.fit(X, Y).fitted
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y, sample_weight=wrong)
    assert model.fitted is before


def test_no_row_that_counts_and_rows_that_count_too_much(rows):
    X, Y, _ = rows
    with pytest.raises(ValueError, match="sample_weight must be above 0 for at least one row, got only zeros"):
        LabelRaceClassifier().fit(X, Y, sample_weight=np.zeros(80))
    with pytest.raises(DivergenceError, match=r"sample_weight must hold numbers up to 1e\+12, got 1e\+200"):
        LabelRaceClassifier().fit(X, Y, sample_weight=np.full(80, 1e200))


@pytest.mark.parametrize(
    "form",
    [list, pd.Series, np.float32, lambda weights: weights.astype(object)],
    ids=["list", "series", "float32", "object"],
)
def test_forms_of_weights(form, rows):
    X, Y, weights = rows
    assert_same(learn(make("obr"), X, Y, weights, 1), make("obr").fit(X, Y, sample_weight=form(weights)))


def test_a_refused_batch_takes_nothing_from_a_generator(rows):
    X, Y, _ = rows
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    with pytest.raises(ValueError, match="sample_weight"):
        RACEClassifier(random_state=rng).fit(X, Y, sample_weight=[1.0])
    assert rng.bit_generator.state == state


def test_weights_of_rows_with_missing_values_and_codes(rows):
    X, Y, weights = rows
    X[:, 0] = np.abs(X[:, 0]).round()
    X[::7, 1:3], X[::5, 0] = np.nan, np.nan
    again = np.repeat(np.arange(80), weights)
    for learner in (NaiveBayes(), NaiveBayes(numeric="binned")):
        one, other = (BinaryRelevanceClassifier(learner=learner, categorical_features=[0]) for _ in range(2))
        one.fit(X, Y, sample_weight=weights)
        other.fit(X[again], Y[again])
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-9, atol=1e-9)


def test_weights_need_not_be_whole_numbers_nor_sum_to_much(rows):
    """The paper's naive Bayes has no smoothing: a label that all rows have must not be told by round-off."""
    X, Y, _ = rows
    Y[:, 0] = 1
    small = np.random.default_rng(0).random(80) / 200
    model = make("obr").fit(X, Y, sample_weight=small)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.predict(X)[:, 0].all()
    present, bins = Y[:, 1] > 0, model.fitted.derived.numeric
    means = np.average(np.rint(X / bins.precision) * bins.precision, axis=0, weights=small * present)
    np.testing.assert_allclose(bins.means[1, 1], means)


def test_compressed_labels_take_no_weights():
    """The default becomes compressed labels with a first batch, with new labels, and with new columns."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((120, 200), density=0.05, rng=rng, format="csr")
    Y, weights = (rng.random((120, 30)) < 0.1).astype(int), np.full(120, 2.0)
    message = "sample_weight must be None for this batch: with it the model becomes another one, and .*residual table"
    model = LabelRaceClassifier(max_memory=2000, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, sample_weight=weights)
    assert not model.is_fitted
    known = LabelRaceClassifier(max_memory=40_000, random_state=0).fit(X, Y[:, :20], sample_weight=weights)
    before = known.fitted
    wider = np.hstack([Y, Y, Y])
    with pytest.raises(ValueError, match=message):
        known.partial_fit(X, wider, sample_weight=weights)
    assert known.fitted is before
    known.partial_fit(X, wider)
    assert known.n_components_ is not None
    with pytest.raises(ValueError, match="sample_weight must be None for LabelRaceClassifier"):
        known.partial_fit(X, wider, sample_weight=weights)
