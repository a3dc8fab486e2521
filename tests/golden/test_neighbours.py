"""Stacks and nearest neighbours against the reference numbers of the related systems."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.prequential import predict_then_learn

import labelrace
from labelrace import MBRChunksClassifier, MBRClassifier, MLkNNClassifier, MWCClassifier
from labelrace.base.sparse import dense
from labelrace.related.neighbours.points import to_points
from labelrace.related.neighbours.search import nearest, squared_distances

DATASETS = ["emotions", "CAL500", "enron"]
# Reference scores that were rounded to save room.
SINGLE = 2e-6


@pytest.mark.parametrize("name", DATASETS)
def test_stacks(rival, name):
    golden, data = rival(f"mbr_{name}")
    model = labelrace.make_model("mbr", categorical_features=data.categorical)
    assert isinstance(model, MBRClassifier)
    predicted, scores, _ = predict_then_learn(model, data, int(golden["batch"]))
    np.testing.assert_array_equal(predicted, golden["predicted"])
    np.testing.assert_allclose(scores, golden["logodds"], rtol=1e-7, atol=1e-7)
    state = model._fitted.state
    np.testing.assert_array_equal(state.together, golden["table"][1, 1])
    np.testing.assert_array_equal(state.predicted[:, None] - state.together, golden["table"][0, 1])
    first = labelrace.make_model("obr", categorical_features=data.categorical)
    predicted, scores, _ = predict_then_learn(first, data, int(golden["batch"]))
    np.testing.assert_array_equal(predicted, golden["base_predicted"])
    np.testing.assert_allclose(scores, golden["base_logodds"], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("weights", ["static", "dynamic", "newest"])
def test_stacks_of_chunks(rival, name, weights):
    """The newest stack alone has votes without weights."""
    golden, data = rival(f"mbr_chunks_{name}")
    how = {"weights": "static", "n_stacks": 1} if weights == "newest" else {"weights": weights}
    model = MBRChunksClassifier.paper(**how, categorical_features=data.categorical)
    batch, votes, predicted = int(golden["batch"]), [], []
    # CAL500 has many labels: half of it is enough, and quicker.
    for start in range(0, 300 if name == "CAL500" else data.X.shape[0], batch):
        X, Y = data.X[start : start + batch], data.Y[start : start + batch]
        if start:
            votes.append(model.decision_function(X))
            predicted.append(dense(model.predict(X[:5])))
        model.partial_fit(X, Y)
    votes = np.vstack(votes)
    expected = golden[f"{weights}_votes"][: len(votes)]
    if weights == "newest":
        # A stack that was never right about a label has no weight.
        votes = np.where(votes == 0, expected, np.sign(votes))
    np.testing.assert_allclose(votes, expected, rtol=0, atol=SINGLE)
    # Where the votes are even, rounding has decided.
    uneven = np.abs(expected) > 1e-5
    np.testing.assert_array_equal((votes >= 0)[uneven], (expected >= 0)[uneven])
    assert uneven.mean() > 0.97
    first = np.concatenate([votes[start : start + 5] for start in range(0, len(votes), batch)])
    np.testing.assert_array_equal(np.vstack(predicted), first >= 0)


@pytest.mark.parametrize("name", ["emotions", "CAL500"])
@pytest.mark.parametrize("form", ["mlknn", "mlknn_raw"])
def test_mlknn_to_the_last_bit(rival, name, form):
    """Mulan's program, and with features as they are the authors'; there are no ties."""
    golden, data = rival(f"{form}_{name}")
    train, test = golden["train"], golden["test"]
    model = MLkNNClassifier.paper(scale="range" if form == "mlknn" else "none")
    model.fit(data.X[train], data.Y[train])
    np.testing.assert_array_equal(model.predict_proba(data.X[test]), golden["confidence"])
    np.testing.assert_array_equal(dense(model.predict(data.X[test])), golden["predicted"])
    tables, k = model._fitted.derived, 10
    for table, name in ((tables.present, "cond"), (tables.absent, "cond_absent")):
        conditional = (1 + table) / (k + 1 + table.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(conditional, golden[name], rtol=1e-15)
    if form == "mlknn":
        scaled = to_points(tables.scale, data.X[test], tables.kinds, sparse=False)
        found = nearest(tables.points, scaled, k)
        np.testing.assert_array_equal(found, np.sort(golden["neighbours_numpy"], axis=1))
        squares = np.take_along_axis(squared_distances(tables.points, scaled), found, axis=1)
        np.testing.assert_allclose(np.sqrt(np.sort(squares, axis=1)), golden["neighbour_distance"], rtol=0, atol=1e-9)


def test_mlknn_counts_with_ties(rival):
    """Most rows of enron have a tie at the tenth neighbour: there the numbers of neighbours are compared."""
    golden, data = rival("mlknn_enron")
    train, test = golden["train"], golden["test"]
    model = MLkNNClassifier.paper(scale="range", categorical_features=data.categorical)
    fitted = model.fit(data.X[train], data.Y[train])._fitted
    counts = fitted.algorithm._counts_of(fitted.derived, data.X[test])
    np.testing.assert_array_equal(dense(counts), golden["counts_numpy"])
    in_training = fitted.algorithm._counts_within(fitted.derived.points, fitted.derived.labels)
    np.testing.assert_array_equal(dense(in_training), golden["train_counts_numpy"])


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize(("model", "form"), [("mlknn", "exact"), ("mlknn-prequential", "prequential")])
def test_mlknn_online(rival, name, model, form):
    golden, data = rival(f"knn_online_{name}")
    model = labelrace.make_model(model)
    predicted, scores, before = predict_then_learn(model, data, int(golden["batch"]), "predict_proba")
    expected = golden[f"mlknn_{form}_scores"]
    np.testing.assert_array_equal(scores.astype(expected.dtype), expected)
    clear = np.abs(expected - 0.5) > 1e-7
    np.testing.assert_array_equal(predicted[clear], (expected > 0.5)[clear])
    tables = before[-1].derived if form == "exact" else model._fitted.derived
    np.testing.assert_array_equal(tables.present, golden[f"mlknn_{form}_table_present"])
    np.testing.assert_array_equal(tables.absent, golden[f"mlknn_{form}_table_absent"])


@pytest.mark.parametrize("name", DATASETS)
def test_multiple_windows(rival, name):
    golden, data = rival(f"knn_online_{name}")
    predicted, shares, before = predict_then_learn(MWCClassifier(), data, int(golden["batch"]))
    np.testing.assert_array_equal(shares.astype(np.float32), golden["mwc_scores"])
    np.testing.assert_array_equal(predicted, golden["mwc_predicted"])
    thresholds = [fitted.state.thresholds for fitted in before]
    np.testing.assert_allclose(thresholds, golden["mwc_thresholds"], rtol=0, atol=1e-12)
