"""The model under check, the data it is shown, and how its results are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from labelrace.typing import Array, FloatArray

__all__ = [
    "Batch",
    "Permute",
    "Results",
    "Sample",
    "Subject",
    "demand",
    "demand_close",
    "demand_equal",
    "demand_well_formed",
    "parameters",
    "results",
    "sample",
    "set_parameters",
]

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
    # Different shares of rows, so that nothing hangs on how a model breaks ties of labels.
    limits = [np.quantile(odds[:, label], 0.3 + 0.1 * label) for label in range(6)]
    Y = (odds > limits).astype(float)
    return Sample((X[:25], Y[:25]), (X[25:45], Y[25:45]), X[45:])


@dataclass(frozen=True)
class Subject:
    """An unfitted model, never taught itself, and how a permutation of the labels is made known to its copies."""

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
            # Not a scikit-learn estimator, or not quite.
            twin = copy.deepcopy(self.model)
        seeds = [name for name in parameters(twin) if name == "random_state" or name.endswith("__random_state")]
        return set_parameters(twin, **dict.fromkeys(seeds, seed))

    def learn(self, model: Any, X: Any, Y: Any) -> None:
        """Teach a copy a batch; an offline one forgets what it learned before."""
        (model.partial_fit if self.is_online else model.fit)(X, Y)

    def learned(self, *batches: Batch, seed: int = 1) -> Any:
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
        model.set_params(**values)
    else:
        for name, value in values.items():
            setattr(model, name, value)
    return model


class Results(NamedTuple):
    """What a model says about some rows."""

    predicted: Array
    scores: Array


def results(model: Any, X: Any) -> Results:
    """Ask a model for all it says about some rows; in copies, as a model might write into its arrays later."""
    return Results(np.array(model.predict(X)), np.array(model.decision_function(X)))


def demand(is_so: Any, otherwise: str) -> None:
    """Fail with what happened, unless it is so. Unlike ``assert``, it is there under ``python -O`` too."""
    if not is_so:
        raise AssertionError(otherwise)


def demand_well_formed(found: Results, n_rows: int, n_labels: int) -> None:
    """Demand 0 and 1 predicted and finite scores, for every row and label."""
    for name, array in zip(("predict", "decision_function"), found, strict=True):
        expected = (n_rows, n_labels)
        demand(array.shape == expected, f"{name} returned the shape {array.shape} instead of {expected}")
    demand(np.isin(found.predicted, [0, 1]).all(), "predict returned values other than 0 and 1")
    demand(np.isfinite(found.scores).all(), "decision_function returned NaN or infinity")


def demand_equal(found: Results, expected: Results, when: str) -> None:
    """Demand the same results to the last bit."""
    _demand_same_labels(found, expected, when)
    gap = _largest_gap(found, expected, when)
    demand(gap == 0, f"{when}, scores differ by up to {gap:.2g}")


def demand_close(found: Results, expected: Results, when: str) -> None:
    """Demand the same labels, and the same scores but for rounding."""
    _demand_same_labels(found, expected, when)
    gap = _largest_gap(found, expected, when)
    size = max(1.0, float(np.abs(expected.scores).max()))
    demand(gap <= 1e-6 * size, f"{when}, scores differ by up to {gap:.2g}")


def _demand_same_labels(found: Results, expected: Results, when: str) -> None:
    _demand_same_shape(found.predicted, expected.predicted, f"{when}, predictions")
    differ = int((found.predicted != expected.predicted).sum())
    demand(differ == 0, f"{when}, {differ} of {expected.predicted.size} predicted labels differ")


def _largest_gap(found: Results, expected: Results, when: str) -> float:
    """Measure how far scores are apart; NaN, which is near nothing, fails either demand."""
    _demand_same_shape(found.scores, expected.scores, f"{when}, scores")
    return float(np.abs(found.scores - expected.scores).max())


def _demand_same_shape(found: Array, expected: Array, what: str) -> None:
    demand(found.shape == expected.shape, f"{what} are of shape {found.shape} instead of {expected.shape}")
