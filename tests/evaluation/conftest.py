"""What the tests of evaluations share: small data, models that remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.streams import Dataset


def make_dataset(n_rows: int = 60, n_features: int = 5, n_labels: int = 6, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    Y = (X @ rng.normal(size=(n_features, n_labels)) > 0.5).astype(np.int8)
    features = tuple(f"x{number}" for number in range(n_features))
    labels = tuple(f"y{number}" for number in range(n_labels))
    return Dataset(X, csr_array(Y), features, labels, np.zeros(n_features, dtype=bool), "toy")


class Remembers:
    """A model that predicts the labels of the last row it learned, and remembers every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.lessons: list[Any] = []

    def partial_fit(self, X: Any, Y: Any) -> Remembers:
        self.calls.append(("learn", int(X[0, 0])))
        self.lessons.append(Y)
        dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
        self.last = np.nan_to_num(dense[-1]).astype(np.int8)
        return self

    def predict(self, X: Any) -> Any:
        self.calls.append(("predict", int(X[0, 0])))
        return np.tile(self.last, (X.shape[0], 1))

    def decision_function(self, X: Any) -> Any:
        self.calls.append(("scores", int(X[0, 0])))
        return np.tile(self.last.astype(float), (X.shape[0], 1))


def numbered_batches(sizes: list[int], n_labels: int = 4) -> list[tuple[Any, Any]]:
    """Return batches whose first feature is the number of the batch."""
    rng = np.random.default_rng(1)
    return [
        (np.full((size, 2), float(number)), (rng.random((size, n_labels)) < 0.5).astype(int))
        for number, size in enumerate(sizes)
    ]


@pytest.fixture
def data() -> Dataset:
    return make_dataset()


@pytest.fixture
def remembers() -> Remembers:
    return Remembers()


@pytest.fixture
def batches() -> Callable[..., list[tuple[Any, Any]]]:
    return numbered_batches


@pytest.fixture
def dataset() -> Callable[..., Dataset]:
    return make_dataset
