"""Why a label got its score: the parts of a linear model's sum.

A score is the intercept, plus what each feature adds, plus, on dense data, what the columns that bend add together.
Read the other way, it is the sum over pseudo labels of their predicted value times the decoder's entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelrace.learners import columns
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """The parts of a label's score.

    Attributes
    ----------
    label : str or int
        Name of the label, or its index where labels have no names.
    score : float
        The score before the threshold is subtracted; about the label's probability.
    intercept : float
        What the score would be if every feature were at its mean, or zero in sparse data.
    features : tuple of (name, float)
        The features that carried most, and what each adds.
    other_features : float
        What all other features add.
    bends : float
        What the columns that bend add; 0 for sparse data.
    pseudo_labels : tuple of (int, float)
        The pseudo labels that carried most: predicted value times the decoder's entry.
    """

    label: Any
    score: float
    intercept: float
    features: tuple[tuple[Any, float], ...]
    other_features: float
    bends: float
    pseudo_labels: tuple[tuple[int, float], ...]


def explain(model: Any, x: Any, labels: Any, n_features: int) -> list[Explanation]:
    """Take the scores of one row apart."""
    X = model._check_features([x] if isinstance(x, dict) else _one_row(x), reset=False)
    if X.shape[0] != 1:
        raise ValueError(f"x has {X.shape[0]} rows: give one.")
    derived, algorithm = model._fitted().derived, model._fitted().algorithm
    wanted = _wanted(model, labels, algorithm.predict(derived, X)[0])
    learners, decoder, n_values = derived.learners, model.decoder_, derived.learners.scaling.n_values
    z = columns.dense(algorithm.bank.transform(learners, X))[0]
    values = algorithm.bank.predict_transformed(learners, z)
    # Features come first, then bends; the columns that are zero, of sparse data nearly all, add nothing.
    used = np.flatnonzero(z)
    n_of_features = int(np.searchsorted(used, columns.width(n_values)))
    explained = []
    for label in wanted:
        beta = decoder[:, label]
        added, pseudo = z[used] * (learners.weights[used] @ beta), values * beta
        of_features, bends = np.split(added, [n_of_features])
        largest = _largest(of_features, n_features)
        explained.append(
            Explanation(
                label=label if model.label_names_ is None else model.label_names_[label],
                score=float(pseudo.sum()),
                intercept=float(learners.intercepts @ beta),
                features=tuple(
                    (_column_name(model._feature_names, n_values, int(used[i])), float(added[i])) for i in largest
                ),
                other_features=float(of_features.sum() - of_features[largest].sum()),
                bends=float(bends.sum()),
                pseudo_labels=tuple((int(i), float(pseudo[i])) for i in _largest(pseudo, n_features)),
            )
        )
    return explained


def _largest(amounts: FloatArray, n: int) -> IntArray:
    """Find the largest amounts by size, without those that are zero."""
    order = np.argsort(-np.abs(amounts), kind="stable")[:n]
    return order[amounts[order] != 0]


def _one_row(x: Any) -> Any:
    if hasattr(x, "to_frame"):
        # A row of a data frame: its index is the names of the columns.
        return x.to_frame().T
    return np.asarray(x, dtype=float)[None] if not hasattr(x, "shape") or len(x.shape) == 1 else x


def _wanted(model: Any, labels: Any, predicted: Array) -> list[int]:
    if labels is None:
        return [int(label) for label in np.flatnonzero(predicted)]
    known = {} if model.label_names_ is None else {name: place for place, name in enumerate(model.label_names_)}
    wanted = []
    for label in labels:
        place = known.get(label, label)
        if not isinstance(place, (int, np.integer)) or not 0 <= place < len(model.classes_):
            raise ValueError(f"labels holds {label!r}, which is no label of the model.")
        wanted.append(int(place))
    return wanted


def _column_name(names: Array | None, n_values: IntArray, column: int) -> Any:
    """Name a column of the design: the feature by name or index, a nominal one of several values with the value."""
    numeric, nominal = np.flatnonzero(n_values == 0), np.flatnonzero(n_values)
    if column < len(numeric):
        feature, value = int(numeric[column]), None
    else:
        ends = np.cumsum(n_values[nominal] - 1)
        place = int(np.searchsorted(ends, column - len(numeric), side="right"))
        feature = int(nominal[place])
        value = column - len(numeric) - int(ends[place]) + int(n_values[feature])
    name = feature if names is None else names[feature]
    return name if n_values[feature] in (0, 2) else f"{name}={value}"
