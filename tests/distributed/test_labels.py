"""Shares of labels: what comes back is what one pass learns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import labelrace
from labelrace.distributed import fit
from labelrace.exceptions import MergeError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.streams.synthetic import SyntheticStream


def stream_with_everything():
    """Labels that appear late, in two generations, some unknown, and a drift."""
    one, other = (
        list(SyntheticStream(n_rows=n_rows, n_features=12, n_labels=40, seed=seed).batches(100))
        for n_rows, seed in ((3500, 1), (1500, 7))
    )
    parts = []
    for place, (X, Y) in enumerate(one + other):
        Y = Y.toarray()[:, : 25 if place < 8 else 31 if place < 22 else 40].astype(float)
        Y[place % 7, place % 3] = np.nan
        parts.append((X, Y))
    return parts


def test_the_default_in_shares_of_labels_is_that_of_one_pass(client):
    parts, steps = stream_with_everything(), []
    model, alone = (labelrace.LabelRaceClassifier(random_state=0, n_random_features=16) for _ in range(2))
    fit(model, parts, client=client, shard="labels", shares=2, rounds=8, batch_size=100, on_progress=steps.append)
    for X, Y in parts:
        alone.partial_fit(X, Y)
    assert alone.n_drifts_ > 0
    assert model.n_drifts_ == alone.n_drifts_
    X = np.vstack([X for X, _ in parts[::5]])
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert steps[-1].rows == 5000
    assert 0.3 < steps[-1].example_f1 < 1
    # Both go on in the same way: all of the state is there.
    for each in (model, alone):
        each.partial_fit(*parts[45])
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["obr", "ridge"])
def test_binary_relevance_in_shares_of_labels_is_that_of_one_pass(client, name):
    parts = [(X, csr_array(np.nan_to_num(Y))) for X, Y in stream_with_everything()[:12]]
    learner = "ridge" if name == "ridge" else NaiveBayes(numeric="binned")
    model, alone = (labelrace.BinaryRelevanceClassifier(learner=learner) for _ in range(2))
    fit(model, parts, client=client, shard="labels", shares=3, rounds=2)
    for X, Y in parts:
        alone.partial_fit(X, Y)
    X = np.vstack([X for X, _ in parts])
    expected = alone.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_what_cannot_be_shared_by_labels_is_refused(client):
    parts = stream_with_everything()[:3]
    with pytest.raises(MergeError, match="what it learns of a label depends on others"):
        fit(labelrace.make_model("occ"), [(X, Y[:, 3:]) for X, Y in parts], client=client, shard="labels")
    with pytest.raises(ValueError, match="shard must be 'rows' for a Tagger"):
        fit(labelrace.Tagger("tags"), [[]], client=client, shard="labels")
    with pytest.raises(ValueError, match="shard must be"):
        fit(labelrace.make_model("obr"), parts, client=client, shard="columns")
