"""Stacked binary relevance against versions written straight from the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.batches import assert_new_labels_were_absent, small_batches

from labelrace import MBRChunksClassifier, MBRClassifier
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.related.relevance import BinaryRelevanceClassifier


@pytest.mark.parametrize("numeric", ["density", "binned"])
def test_a_stack_by_definition(numeric):
    """The second level is naive Bayes on one more binary feature for each label."""
    batches, bank = small_batches(6), NaiveBayes(numeric=numeric)
    first, model = BinaryRelevanceClassifier(learner=bank), MBRClassifier(learner=bank)
    said, truth = [], []
    for number, (X, Y) in enumerate(batches[:2]):
        if number:
            said.append(first.predict(X))
        first.partial_fit(X, Y)
        if not number:
            said.append(first.predict(X))
        truth.append(Y)
        model.partial_fit(X, Y)
    said, truth, rows = np.vstack(said), np.vstack(truth), batches[2][0]
    expected = first.decision_function(rows)
    for i, found in enumerate(first.predict(rows)):
        for j in range(5):
            for label, value in enumerate(found):
                likelihood = []
                for c in (1, 0):
                    same = truth[:, j] == c
                    likelihood.append(((said[same, label] == value).sum() + 1) / (same.sum() + 2))
                expected[i, j] += np.log(likelihood[0] / likelihood[1])
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-9, atol=1e-9)


def test_stacks_merge_by_adding():
    (X, Y), (X2, Y2), (rows, _) = small_batches(7)
    one, other = MBRClassifier().fit(X, Y), MBRClassifier().fit(X2, Y2)
    expected = one._fitted.state.together + other._fitted.state.together
    merged = one.merge(other)
    np.testing.assert_array_equal(merged._fitted.state.together, expected)
    np.testing.assert_array_equal(merged._fitted.state.learners.rows[-1], 60.0)
    assert np.isfinite(merged.decision_function(rows)).all()


def test_an_old_stack_is_dropped():
    batches = small_batches(8, n=120)
    model, newest = MBRChunksClassifier(n_stacks=2), MBRChunksClassifier(n_stacks=2, weights="static")
    for X, Y in batches:
        model.partial_fit(X, Y)
    for X, Y in batches[2:]:
        newest.partial_fit(X, Y)
    assert len(model._fitted.state.stacks.predicted) == 2
    for one, other in zip(model._fitted.state.stacks[1:], newest._fitted.state.stacks[1:], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "model",
    [MBRClassifier(), MBRChunksClassifier(n_stacks=2), MBRChunksClassifier(n_stacks=2, weights="static")],
    ids=repr,
)
def test_a_new_label_is_one_that_was_always_absent(model):
    assert_new_labels_were_absent(model)


def test_nominal_values_that_come_later(data):
    (X, Y), model = data, MBRChunksClassifier(categorical_features=[0])
    first = X[:, 0] < 2
    model.partial_fit(X[first], Y[first]).partial_fit(X[~first], Y[~first])
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MBRClassifier(learner="sgd"), "learner must be a NaiveBayes"),
        (MBRChunksClassifier(n_stacks=0), "n_stacks must be a whole number"),
        (MBRChunksClassifier(weights="none"), "weights must be one of"),
    ],
)
def test_wrong_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*small_batches()[0])


def test_stacks_of_the_newest_batches_cannot_be_merged():
    X, Y = small_batches()[0]
    with pytest.raises(ValueError, match="either's could be newer"):
        MBRChunksClassifier().fit(X, Y).merge(MBRChunksClassifier().fit(X, Y))
