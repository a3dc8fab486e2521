"""What the tests of evaluations share: small data, models that remember what they were asked, reference files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
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


@pytest.fixture(scope="session")
def golden() -> Callable[[str], dict[str, Any]]:
    """Return reference results, or skip the test."""

    def load(name: str) -> dict[str, Any]:
        path = Path(os.environ.get("LABELRACE_GOLDEN", ""), f"{name}.npz")
        if not path.is_file():
            pytest.skip(f"no {path.name} in the folder LABELRACE_GOLDEN")
        with np.load(path) as file:
            return dict(file)

    return load


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """Return the path of a real dataset, or skip the test."""

    def find(name: str) -> Path:
        for folder in filter(None, os.environ.get("LABELRACE_DATA", "").split(os.pathsep)):
            path = Path(folder, f"{name}.arff")
            if path.is_file():
                return path
        pytest.skip(f"no {name}.arff in the folders of LABELRACE_DATA")

    return find
