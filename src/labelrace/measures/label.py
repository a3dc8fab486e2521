"""Label-based measures: macro averages over labels, micro pools the cells of all labels.

Macro averages run over every label, also one that a batch neither has nor is predicted to have. The original evaluation
counts such a label as 1, scikit-learn as 0: ``zero_division`` says which. The areas under the ROC curve skip what they
are not defined for, and are NaN when nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelrace.measures.example import Confusion, Rate, is_absent
from labelrace.measures.ranking import count_below
from labelrace.typing import FloatArray, SparseMatrix


def micro(rate: Rate) -> Callable[[Confusion], float]:
    """Return the measure that computes a rate over all cells.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 0, 0]], measures="micro_f1")
    {'micro_f1': 0.5}
    """
    return lambda confusion: float(rate(confusion.pooled).item())


def macro(rate: Rate) -> Callable[[Confusion], float]:
    """Return the measure that averages a rate over labels.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0], [1, 1]], [[1, 1], [0, 0]], measures="macro_specificity")
    {'macro_specificity': 0.0}
    """
    return lambda confusion: float(rate(confusion.per_label).mean())


def macro_of_present(rate: Rate) -> Callable[[Confusion, float], float]:
    """Return the measure that averages a rate over labels, where absent labels have none.

    A label that is neither there nor predicted counts ``zero_division``.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> Y_true, Y_pred = [[1, 0, 0, 0], [1, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 0, 0]]
    >>> [evaluate(Y_true, Y_pred, measures="macro_f1", zero_division=value) for value in (0, 1)]
    [{'macro_f1': 0.25}, {'macro_f1': 0.75}]
    """

    def measure(confusion: Confusion, zero_division: float) -> float:
        counts = confusion.per_label
        return float(np.where(is_absent(counts), zero_division, rate(counts)).mean())

    return measure


def micro_auc(truth: SparseMatrix, scores: FloatArray) -> float:
    """Area under the ROC curve of all cells: the chance that a relevant one outscores an irrelevant one.

    Equal scores count half. NaN when all cells or none are relevant.

    Notes
    -----
    With `P` relevant and `N` irrelevant cells, `P N` times the area is `Σ (#below + #equal / 2)` over the
    relevant cells. Counted among all cells instead of the irrelevant ones, the sum grows by `P² / 2`: of any
    two relevant cells one is below the other, or each is half below. So no cell needs a rank, only one sort.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 0]], scores=[[0.5, 0.1, 0.5]], measures="micro_auc")
    {'micro_auc': 0.75}
    """
    positives = truth.nnz
    negatives = scores.size - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    ordered = np.sort(scores, axis=None)
    # Looking values up in order keeps the search in cache.
    values = np.sort(scores[truth.nonzero()])
    below = np.searchsorted(ordered, values, side="left").sum()
    not_above = np.searchsorted(ordered, values, side="right").sum()
    return float(((below + not_above) / 2 - positives**2 / 2) / (positives * negatives))


def macro_auc(truth: SparseMatrix, scores: FloatArray) -> float:
    """Mean over labels of the area under the label's ROC curve.

    Equal scores count half. Labels that all examples or none have are skipped; NaN when none is left.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 1], [0, 1]], scores=[[0.9, 0.3], [0.2, 0.1]], measures="macro_auc")
    {'macro_auc': 1.0}
    """
    n_examples, n_labels = scores.shape
    rows, labels = truth.nonzero()
    by_label = np.sort(scores, axis=0).T
    values = scores[rows, labels]
    below = count_below(by_label, labels, values)
    not_above = count_below(by_label, labels, values, or_equal=True)
    positives = np.bincount(labels, minlength=n_labels)
    defined = (positives > 0) & (positives < n_examples)
    if not defined.any():
        return float("nan")
    # The same sum as micro_auc's, one for each label.
    wins = np.bincount(labels, weights=(below + not_above) / 2, minlength=n_labels) - positives**2 / 2
    return float((wins[defined] / (positives * (n_examples - positives))[defined]).mean())
