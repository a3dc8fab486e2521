"""Why a label got its score: the parts of a linear model's sum.

A score is the intercept, plus what each feature adds, plus, on dense data, what the random features add together.
Read the other way, where labels are compressed, it is the sum over pseudo labels of their predicted value times the
decoder's entry, plus a constant and what the table of pairs of features and labels adds.
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
    """The parts of a label's score.

    Attributes
    ----------
    label : str or int
        Name of the label, or its index where labels have no names.
    score : float
        The score before it is adjusted; about the label's probability.
    adjustment : float
        What is added to the score for the decision, which is positive where the label is predicted: less a share of the
        row's best score, the label's offset and the threshold.
    intercept : float
        What the score would be if every feature were at its mean, or zero in sparse data.
    features : tuple of (name, float)
        The features that carried most, and what each adds.
    other_features : float
        What all other features add.
    random_features : float
        What the random features add; 0 for sparse data.
    pseudo_labels : tuple of (int, float)
        The pseudo labels that carried most: predicted value times the decoder's entry.
    """

    label: Any
    score: float
    adjustment: float
    intercept: float
    features: tuple[tuple[Any, float], ...]
    other_features: float
    random_features: float
    pseudo_labels: tuple[tuple[int, float], ...]


class Decoder(NamedTuple):
    """The scores of some labels as ``û β + c + z W``: β, (k, L), c, (L,), and W, (F, L), of the non-zeros of ``z``."""

    beta: FloatArray
    constants: FloatArray
    weights: FloatArray


def explain(fitted: Fitted, X: AnyMatrix, labels: Any, n_features: int) -> list[Explanation]:
    """Take the scores of one row apart, of some labels or of those predicted, where ``labels`` is None."""
    algorithm, derived = fitted.algorithm, fitted.derived
    predicted = algorithm.predict(derived, X)[0]
    explained = np.flatnonzero(predicted) if labels is None else np.array(fitted.schema.columns_of(labels), np.intp)
    z = dense(algorithm.bank.transform(derived.learners, X))[0]
    decoder = algorithm.decoder_of(derived, z, explained)
    decisions = algorithm.scores(derived, X)[0]
    return _parts(fitted.schema, derived.learners, decoder, z, decisions, explained, n_features)


def _parts(
    schema: Schema,
    learners: rls.Derived,
    decoder: Decoder | None,
    z: FloatArray,
    decisions: FloatArray,
    labels: IntArray,
    n_features: int,
) -> list[Explanation]:
    """Take the scores apart; ``z`` is what the learners make of the row.

    ``decoder`` is of these labels, or None where labels are their own pseudo labels; ``decisions`` are the scores of
    all labels, adjusted.
    """
    kinds = learners.scaling.kinds
    weights = np.asarray(learners.weights)
    values = z @ weights + learners.intercepts
    # Features come first, then random features; the columns that are zero, of sparse data nearly all, add nothing.
    used = np.flatnonzero(z)
    n_of_features = int(np.searchsorted(used, kinds.width))
    explained = []
    for index, label in enumerate(labels):
        beta = np.eye(1, len(values), label)[0] if decoder is None else decoder.beta[:, index]
        constant = 0.0 if decoder is None else float(decoder.constants[index])
        further = np.zeros(len(used)) if decoder is None else z[used] * decoder.weights[:, index]
        added, pseudo = z[used] * (weights[used] @ beta) + further, values * beta
        score = float(pseudo.sum() + further.sum()) + constant
        of_features, of_random = np.split(added, [n_of_features])
        largest = _largest(of_features, n_features)
        named = ((_column_name(schema.feature_names, kinds, int(used[i])), float(added[i])) for i in largest)
        explained.append(
            Explanation(
                label=schema.names_of([label])[0],
                score=score,
                adjustment=float(decisions[label]) - score,
                intercept=float(learners.intercepts @ beta) + constant,
                features=tuple(named),
                other_features=float(of_features.sum() - of_features[largest].sum()),
                random_features=float(of_random.sum()),
                pseudo_labels=tuple((int(i), float(pseudo[i])) for i in _largest(pseudo, n_features)),
            )
        )
    return explained


def _largest(amounts: FloatArray, n: int) -> IntArray:
    """Find the largest amounts by size, without those that are zero."""
    order = np.argsort(-np.abs(amounts), kind="stable")[:n]
    return order[amounts[order] != 0]


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
