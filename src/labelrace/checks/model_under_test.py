"""The model under test, the data it learns and predicts, and how its results are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from sklearn.base import clone

from labelrace.typing import Array, FloatArray

Batch: TypeAlias = tuple[Any, Any]
Permute: TypeAlias = Callable[[Any, Array], Any]


class Sample(NamedTuple):
    """Two batches to learn, and rows to predict."""

    first: Batch
    second: Batch
    rows: FloatArray


def sample() -> Sample:
    """Draw data that labels can be learned from: 6 labels, no two equally frequent, of 5 features, many of them 0."""
    # With this seed every label is there and is not there in either batch, and some rows have no label.
    rng = np.random.default_rng(18)
    X = rng.normal(size=(60, 5)).round(3)
    X[rng.random(X.shape) < 0.3] = 0.0
    odds = X @ rng.normal(size=(5, 6)) + 0.3 * rng.normal(size=(60, 6))
    # Different shares of rows, so that nothing depends on how a model breaks ties of labels.
    limits = [np.quantile(odds[:, label], 0.3 + 0.1 * label) for label in range(6)]
    Y = (odds > limits).astype(float)
    return Sample((X[:25], Y[:25]), (X[25:45], Y[25:45]), X[45:])


@dataclass(frozen=True)
class ModelUnderTest:
    """An unfitted model, of which only copies learn, and how its copies are prepared for labels in another order."""

    model: Any
    permute: Permute

    @property
    def is_online(self) -> bool:
        """Whether the model learns batch by batch."""
        return bool(getattr(self.model, "is_online", hasattr(self.model, "partial_fit")))

    def fresh(self, seed: int = 1) -> Any:
        """Make an unfitted copy, with a seed wherever it has a ``random_state``."""
        try:
            twin = clone(self.model)
        except (TypeError, RuntimeError):
            # Not a scikit-learn estimator, or one that scikit-learn cannot clone.
            twin = copy.deepcopy(self.model)
        seeds = [name for name in parameters(twin) if name == "random_state" or name.endswith("__random_state")]
        return set_parameters(twin, **dict.fromkeys(seeds, seed))

    def learn(self, model: Any, X: Any, Y: Any) -> None:
        """Have a copy learn a batch; an offline one forgets what it learned before."""
        (model.partial_fit if self.is_online else model.fit)(X, Y)

    def fitted(self, *batches: Batch, seed: int = 1) -> Any:
        """Make a copy that has learned batches."""
        model = self.fresh(seed)
        for X, Y in batches:
            self.learn(model, X, Y)
        return model


def parameters(model: Any) -> dict[str, Any]:
    """List a model's parameters, those of its parts too; of a plain object, its attributes."""
    return dict(model.get_params()) if hasattr(model, "get_params") else dict(vars(model))


def set_parameters(model: Any, **values: Any) -> Any:
    """Set parameters, or a plain object's attributes, and return the model."""
    if hasattr(model, "set_params"):
        return model.set_params(**values)
    vars(model).update(values)
    return model


class Results(NamedTuple):
    """What a model predicts for some rows, as dense arrays."""

    predicted: Array
    scores: Array


def results(model: Any, X: Any) -> Results:
    """Return what a model predicts for some rows; in copies, as a model might write into its arrays later."""
    return Results(np.array(dense(model.predict(X))), np.array(model.decision_function(X)))


def dense(array: Any) -> Any:
    """Return a sparse array as a dense one, and others as they are."""
    return array.toarray() if scipy.sparse.issparse(array) else array


def require(condition: Any, message: str) -> None:
    """Fail with a message unless the condition holds. Unlike ``assert``, it also works under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def require_well_formed(actual: Results, n_rows: int, n_labels: int) -> None:
    """Require 0 and 1 predicted and finite scores, for every row and label."""
    for name, array in zip(("predict", "decision_function"), actual, strict=True):
        expected = (n_rows, n_labels)
        require(array.shape == expected, f"{name} returned the shape {array.shape} instead of {expected}")
    require(np.isin(actual.predicted, [0, 1]).all(), "predict returned values other than 0 and 1")
    require(np.isfinite(actual.scores).all(), "decision_function returned NaN or infinity")


def require_equal(actual: Results, expected: Results, when: str, tolerance: float = 0.0) -> None:
    """Require the same labels, and scores that differ by no more than a share of the largest score, or of 1."""
    for what, one, other in zip(("predictions", "scores"), actual, expected, strict=True):
        require(one.shape == other.shape, f"{when}, {what} are of shape {one.shape} instead of {other.shape}")
    differ = int((actual.predicted != expected.predicted).sum())
    require(differ == 0, f"{when}, {differ} of {expected.predicted.size} predicted labels differ")
    gap, size = (float(np.abs(array).max()) for array in (actual.scores - expected.scores, expected.scores))
    # NaN fails the comparison.
    require(gap <= tolerance * max(1.0, size), f"{when}, scores differ by up to {gap:.2g}")


def require_close(actual: Results, expected: Results, when: str) -> None:
    """Require the same results up to rounding, in single precision and before a solution."""
    require_equal(actual, expected, when, tolerance=2e-5)
