"""One call for any set of measures, doing only the work that the set needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from labelrace.measures import example, label, ranking
from labelrace.measures.counts import Confusion, confusion
from labelrace.measures.inputs import as_labels, as_scores
from labelrace.measures.order import RelevantRanks, relevant_ranks
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix

__all__ = ["ALL_MEASURES", "PAPER_MEASURES", "evaluate", "measure_names"]

ALL_MEASURES = (
    "average_precision",
    "coverage",
    "subset_accuracy",
    "hamming_loss",
    "example_accuracy",
    "example_specificity",
    "example_precision",
    "example_recall",
    "example_f1",
    "micro_auc",
    "micro_specificity",
    "micro_precision",
    "micro_recall",
    "micro_f1",
    "macro_auc",
    "macro_specificity",
    "macro_precision",
    "macro_recall",
    "macro_f1",
)
PAPER_MEASURES = ("example_accuracy", "example_f1", "hamming_loss", "macro_f1", "micro_f1")

# Three kinds of measures, by what they are computed from.
_OF_COUNTS: dict[str, Callable[[Confusion], float]] = {
    "subset_accuracy": example.subset_accuracy,
    "hamming_loss": example.hamming_loss,
    "example_accuracy": example.example_accuracy,
    "example_specificity": example.example_specificity,
    "example_precision": example.example_precision,
    "example_recall": example.example_recall,
    "example_f1": example.example_f1,
    "micro_specificity": label.micro_specificity,
    "micro_precision": label.micro_precision,
    "micro_recall": label.micro_recall,
    "micro_f1": label.micro_f1,
    "macro_specificity": label.macro_specificity,
    "macro_precision": label.macro_precision,
    "macro_recall": label.macro_recall,
    "macro_f1": label.macro_f1,
}
_OF_RANKS: dict[str, Callable[[RelevantRanks], float]] = {
    "average_precision": ranking.average_precision,
    "coverage": ranking.coverage,
    "one_error": ranking.one_error,
}
_OF_SCORES: dict[str, Callable[[SparseMatrix, FloatArray], float]] = {
    "micro_auc": label.micro_auc,
    "macro_auc": label.macro_auc,
    "ranking_loss": ranking.ranking_loss,
}
_AT_K: dict[str, Callable[[RelevantRanks, int], float]] = {
    "precision": ranking.precision_at_k,
    "ndcg": ranking.ndcg_at_k,
}
_AT_K_NAME = re.compile(r"(precision|ndcg)_at_([1-9][0-9]*)")


def evaluate(
    Y_true: AnyMatrix,
    Y_pred: AnyMatrix | None = None,
    scores: AnyMatrix | None = None,
    measures: str | Iterable[str] = "all",
) -> dict[str, float]:
    """Measure predicted labels, scores or both against the true labels.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (n, l)
        The true labels, 0 or 1.
    Y_pred : array-like, sparse matrix or DataFrame of shape (n, l), optional
        The predicted labels, 0 or 1. Not looked at unless a measure asked for needs them.
    scores : array-like of shape (n, l), optional
        A score for each label, higher for more likely. Not looked at unless a measure asked for needs them.
    measures : str or iterable of str, default "all"
        `"all"`, `"paper"`, a measure's name, or several names, as `measure_names` takes them.

    Returns
    -------
    dict of str to float
        The value of each measure, in the order asked for; NaN where a measure is not defined on the batch.

    Raises
    ------
    ValueError
        If a measure is unknown or lacks the argument it needs, or if an argument is not two-dimensional, is
        empty, has another shape than `Y_true`, holds labels other than 0 and 1, or NaN scores.

    Examples
    --------
    >>> Y_true = [[1, 0, 1], [0, 1, 0]]
    >>> Y_pred = [[1, 0, 0], [0, 1, 0]]
    >>> evaluate(Y_true, Y_pred, measures="paper")
    {'example_accuracy': 0.75, 'example_f1': 0.833..., 'hamming_loss': 0.166...,
     'macro_f1': 0.666..., 'micro_f1': 0.8}
    >>> evaluate(Y_true, scores=[[0.9, 0.4, 0.3], [0.1, 0.8, 0.2]], measures=["coverage", "precision_at_1"])
    {'coverage': 1.0, 'precision_at_1': 1.0}
    """
    names = measure_names(measures)
    for name in names:
        if name in _OF_COUNTS:
            _require("Y_pred", Y_pred, name)
        else:
            _require("scores", scores, name)
    batch = _Batch(Y_true, Y_pred, scores)
    return {name: batch.value(name) for name in names}


def measure_names(measures: str | Iterable[str] = "all") -> list[str]:
    """List the names of a set of measures.

    Parameters
    ----------
    measures : str or iterable of str, default "all"
        `"all"` for the 19 measures of the original evaluation, `"paper"` for the five of the paper's tables,
        one name, or several. Beyond the 19 there are `ranking_loss`, `one_error`, and `precision_at_K` and
        `ndcg_at_K` for any positive integer `K`.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> measure_names("paper")
    ['example_accuracy', 'example_f1', 'hamming_loss', 'macro_f1', 'micro_f1']
    >>> measure_names("ndcg_at_5")
    ['ndcg_at_5']
    """
    if isinstance(measures, str):
        measures = {"all": ALL_MEASURES, "paper": PAPER_MEASURES}.get(measures, (measures,))
    names = list(measures)
    for name in names:
        if not _is_known(name):
            raise ValueError(f"unknown measure {name!r}; known are {', '.join(_known_names())}")
    return names


def _is_known(name: str) -> bool:
    return name in _OF_COUNTS or name in _OF_RANKS or name in _OF_SCORES or bool(_AT_K_NAME.fullmatch(name))


def _known_names() -> list[str]:
    further = [name for name in (*_OF_RANKS, *_OF_SCORES) if name not in ALL_MEASURES]
    return [*ALL_MEASURES, *further, *(f"{prefix}_at_K" for prefix in _AT_K)]


def _require(argument: str, value: AnyMatrix | None, measure: str) -> None:
    if value is None:
        raise ValueError(f"{measure} needs {argument}, which is not given")


class _Batch:
    """The checked inputs of one call, and what several measures share, made on first use."""

    def __init__(self, Y_true: AnyMatrix, Y_pred: AnyMatrix | None, scores: AnyMatrix | None) -> None:
        self._truth = as_labels(Y_true, "Y_true")
        self._Y_pred = Y_pred
        self._given_scores = scores

    @cached_property
    def _confusion(self) -> Confusion:
        return confusion(self._truth, as_labels(self._Y_pred, "Y_pred", self._truth.shape))

    @cached_property
    def _scores(self) -> FloatArray:
        return as_scores(self._given_scores, self._truth.shape)

    @cached_property
    def _ranks(self) -> RelevantRanks:
        return relevant_ranks(self._truth, self._scores)

    def value(self, name: str) -> float:
        """Compute one measure."""
        if name in _OF_COUNTS:
            return _OF_COUNTS[name](self._confusion)
        if name in _OF_SCORES:
            return _OF_SCORES[name](self._truth, self._scores)
        if match := _AT_K_NAME.fullmatch(name):
            return _AT_K[match[1]](self._ranks, int(match[2]))
        return _OF_RANKS[name](self._ranks)
