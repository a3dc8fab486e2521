"""Binary relevance with naive Bayes, and the model without labels, against runs of the authors' program."""

from __future__ import annotations

import numpy as np
import pytest

import labelrace
from labelrace.base.sparse import dense

RUNS = [
    "synthetic-binary_w50",
    "synthetic-mixed_w45",
    "synthetic-numeric_w60",
    "CAL500_w50",
    "emotions_w100",
    "enron_w100",
]


def prequential(model, data, batches, method):
    """Predict every batch but the first, and learn it; return predictions and scores."""
    predictions, scores = [], []
    for start, stop in batches:
        if start:
            predictions.append(dense(model.predict(data.X[start:stop])))
            scores.append(getattr(model, method)(data.X[start:stop]))
        model.partial_fit(data.X[start:stop], data.Y[start:stop])
    return np.concatenate(predictions), np.concatenate(scores)


@pytest.mark.parametrize("name", RUNS)
def test_binary_relevance(recorded, assert_measures, name):
    """Recorded scores are probabilities; on the datasets of the paper round-off decides the order of saturated ones."""
    golden, data = recorded(f"{name}_OBR")
    model = labelrace.make_model("obr", categorical_features=data.categorical)
    predictions, probabilities = prequential(model, data, golden["batches"], "predict_proba")
    np.testing.assert_allclose(probabilities, golden["conf"], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(predictions, golden["bip"])
    assert_measures(golden, dense(data.Y), golden["bip"], probabilities if "synthetic" in name else None)


@pytest.mark.parametrize("name", RUNS)
def test_no_labels(recorded, assert_measures, name):
    golden, data = recorded(f"{name}_Negative")
    predictions, scores = prequential(labelrace.make_model("negative"), data, golden["batches"], "decision_function")
    assert not golden["bip"].any()
    assert not predictions.any()
    assert_measures(golden, dense(data.Y), predictions, scores)
