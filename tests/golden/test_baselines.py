"""Binary relevance with naive Bayes, and the model without labels, against runs of the authors' program."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.prequential import predict_then_learn

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


@pytest.mark.parametrize("name", RUNS)
def test_binary_relevance(recorded, assert_measures, name):
    """Recorded scores are probabilities; on the datasets of the paper round-off decides the order of saturated ones."""
    golden, data = recorded(f"{name}_OBR")
    model = labelrace.make_model("obr", categorical_features=data.categorical)
    predictions, probabilities, _ = predict_then_learn(model, data, int(golden["window"]), "predict_proba")
    np.testing.assert_allclose(probabilities, golden["conf"], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(predictions, golden["bip"])
    assert_measures(golden, dense(data.Y), golden["bip"], probabilities if "synthetic" in name else None)


@pytest.mark.parametrize("name", RUNS)
def test_no_labels(recorded, assert_measures, name):
    golden, data = recorded(f"{name}_Negative")
    predictions, scores, _ = predict_then_learn(labelrace.make_model("negative"), data, int(golden["window"]))
    assert not golden["bip"].any()
    assert not predictions.any()
    assert_measures(golden, dense(data.Y), predictions, scores)
