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
    learners, bank = derived.learners, algorithm.bank
    z = columns.dense(bank.see(learners, X))[0]
    values = bank.predict_seen(learners, z)
    decoder, names = model.decoder_, _column_names(model, learners.features.n_values)
    explained = []
    for label in wanted:
        beta = decoder[:, label]
        name = label if model.label_names_ is None else model.label_names_[label]
        added = z * (learners.weights @ beta)
        explained.append(_explanation(name, float(learners.intercepts @ beta), added, values * beta, names, n_features))
    return explained


def _explanation(
    label: Any, intercept: float, added: FloatArray, pseudo: FloatArray, names: list[Any], n: int
) -> Explanation:
    """Name the largest of what columns, features first and then bends, and pseudo labels add to a score."""
    of_features, bends = added[: len(names)], float(added[len(names) :].sum())
    carried = [(names[i], float(of_features[i])) for i in _largest(of_features, n)]
    return Explanation(
        label=label,
        score=float(pseudo.sum()),
        intercept=intercept,
        features=tuple(carried),
        other_features=float(of_features.sum()) - sum(amount for _, amount in carried),
        bends=bends,
        pseudo_labels=tuple((int(i), float(pseudo[i])) for i in _largest(pseudo, n)),
    )


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


def _column_names(model: Any, n_values: IntArray) -> list[Any]:
    """Name the columns of the design: features by name or index, nominal ones of several values with the value."""
    known = model._feature_names
    names = list(range(len(n_values))) if known is None else list(known)
    numeric = [names[i] for i in np.flatnonzero(n_values == 0)]
    nominal = [
        names[i] if n_values[i] == 2 else f"{names[i]}={value}"
        for i in np.flatnonzero(n_values)
        for value in range(1, n_values[i])
    ]
    return numeric + nominal
