"""A stream that is predicted and then learned, batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.sparse import dense


def predict_then_learn(model: Any, data: Any, size: int, method: str = "decision_function") -> tuple[Any, Any, Any]:
    """Predict every batch but the first, and learn it; return predictions, scores and the models before each batch."""
    predictions, scores, before = [], [], []
    for X, Y in data.batches(size):
        if hasattr(model, "classes_"):
            predictions.append(dense(model.predict(X)))
            scores.append(getattr(model, method)(X))
            before.append(model._fitted)
        model.partial_fit(X, Y)
    return np.vstack(predictions), np.vstack(scores), before
