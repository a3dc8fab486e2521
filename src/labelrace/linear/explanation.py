"""Why a label got its score: the contributions that a linear model adds up.

A score is the intercept, plus the contribution of each feature, plus, on dense data, that of all random features. Where
labels are compressed, it is also the sum over pseudo labels of their predicted values times the decoder's coefficients,
plus an intercept and the contribution of the residual table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.linear import rls
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray


@dataclass(frozen=True)
class Explanation:
    """The contributions to a label's score.

    Attributes
    ----------
    label : str or int
        Name of the label, or its index where labels have no names.
    score : float
        The score before it is adjusted; about the label's probability.
    adjustment : float
        What is added to the score to get the decision, which is positive where the label is predicted: minus a share of
        the row's best score, minus the label's offset and the threshold.
    intercept : float
        What the score would be if every feature were at its mean, or zero in sparse data.
    features : tuple of (name, float)
        The features that contributed most, and their contributions.
    other_features : float
        The contribution of all other features.
    random_features : float
        The contribution of the random features; 0 for sparse data.
    pseudo_labels : tuple of (int, float)
        The pseudo labels that contributed most: predicted value times the decoder's coefficient.
    """

    label: Any
    score: float
    adjustment: float
    intercept: float
    features: tuple[tuple[Any, float], ...]
    other_features: float
    random_features: float
    pseudo_labels: tuple[tuple[int, float], ...]


class DecoderCoefficients(NamedTuple):
    """The scores of L labels as ``û β + c + z W``: û are k predicted pseudo labels, z the F non-zeros of a row."""

    beta: FloatArray  # (k, L)
    intercepts: FloatArray  # (L,): c
    table_weights: FloatArray  # (F, L): W, of the residual table


def explain(fitted: Fitted, X: AnyMatrix, labels: Any, n_features: int) -> list[Explanation]:
    """Explain the scores of one row for some labels; where ``labels`` is None, for those predicted."""
    algorithm, derived = fitted.algorithm, fitted.derived
    predicted = algorithm.predict(derived, X)[0]
    explained = np.flatnonzero(predicted) if labels is None else np.array(fitted.schema.columns_of(labels), np.intp)
    z = dense(algorithm.bank.transform(derived.learners, X))[0]
    decoder = algorithm.decoder_coefficients(derived, z, explained)
    decisions = algorithm.decisions(derived, X)[0]
    return _explain_labels(fitted.schema, derived.learners, decoder, z, decisions, explained, n_features)


def _explain_labels(
    schema: Schema,
    learners: rls.Derived,
    decoder: DecoderCoefficients | None,
    z: FloatArray,
    decisions: FloatArray,
    labels: IntArray,
    n_features: int,
) -> list[Explanation]:
    """Explain the scores of labels; ``z`` is the row as `RLS.transform` returns it.

    ``decoder`` is that of these labels, or None where labels are not compressed; ``decisions`` are the adjusted scores
    of all labels.
    """
    kinds = learners.scaling.kinds
    weights = np.asarray(learners.weights)
    values = z @ weights + learners.intercepts
    # Features come first, then random features; the columns that are zero, of sparse data nearly all, add nothing.
    used = np.flatnonzero(z)
    n_used_features = int(np.searchsorted(used, kinds.width))
    explained = []
    for index, label in enumerate(labels):
        beta = np.eye(1, len(values), label)[0] if decoder is None else decoder.beta[:, index]
        constant = 0.0 if decoder is None else float(decoder.intercepts[index])
        from_table = np.zeros(len(used)) if decoder is None else z[used] * decoder.table_weights[:, index]
        contributions, by_pseudo_label = z[used] * (weights[used] @ beta) + from_table, values * beta
        score = float(by_pseudo_label.sum() + from_table.sum()) + constant
        from_features, from_random = np.split(contributions, [n_used_features])
        largest = _largest(from_features, n_features)
        named = ((_column_name(schema.feature_names, kinds, int(used[i])), float(contributions[i])) for i in largest)
        explained.append(
            Explanation(
                label=schema.names_of([label])[0],
                score=score,
                adjustment=float(decisions[label]) - score,
                intercept=float(learners.intercepts @ beta) + constant,
                features=tuple(named),
                other_features=float(from_features.sum() - from_features[largest].sum()),
                random_features=float(from_random.sum()),
                pseudo_labels=tuple((int(i), float(by_pseudo_label[i])) for i in _largest(by_pseudo_label, n_features)),
            )
        )
    return explained


def _largest(contributions: FloatArray, n: int) -> IntArray:
    """Find the largest contributions by absolute value, without those that are zero."""
    order = np.argsort(-np.abs(contributions), kind="stable")[:n]
    return order[contributions[order] != 0]


def _column_name(names: Array | None, kinds: FeatureKinds, column: int) -> Any:
    """Name a column of the design: the feature by name or index, a nominal one of several values with the value."""
    if column < kinds.n_numeric:
        feature, value = int(kinds.numeric_features[column]), None
    else:
        indicator, ends = column - kinds.n_numeric, np.cumsum(kinds.nominal_values - 1)
        index = int(np.searchsorted(ends, indicator, side="right"))
        feature = int(kinds.nominal_features[index])
        value = indicator - int(ends[index]) + int(kinds.nominal_values[index])
    name = feature if names is None else names[feature]
    return name if kinds.n_values[feature] in (0, 2) else f"{name}={value}"
