"""The table of the measures, and one call for any set of them, doing only the work that the set needs.

To add a measure, write its function in the module of its kind and give it a line in `MEASURES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from labelrace.measures.example import (
    Confusion,
    confusion,
    f1,
    hamming_loss,
    jaccard,
    mean_over_examples,
    precision,
    recall,
    specificity,
    subset_accuracy,
)
from labelrace.measures.inputs import as_label_matrices, as_labels, as_scores, as_top
from labelrace.measures.label import macro, macro_auc, micro, micro_auc
from labelrace.measures.ranking import (
    RelevantRanks,
    average_precision,
    coverage,
    ndcg_at_k,
    one_error,
    precision_at_k,
    ranking_loss,
    ranks_in_top,
    relevant_ranks,
)
from labelrace.typing import AnyMatrix, FloatArray


@dataclass(frozen=True)
class Measure:
    """What there is to know of a measure.

    ``function`` computes it from a `Confusion` ("counts"); from the `RelevantRanks`, and `K` if the name ends in
    ``_at_K`` ("ranks"); or from the true labels and the scores ("scores").
    """

    function: Callable[..., float]
    of: Literal["counts", "ranks", "scores"]
    is_loss: bool = False  # whether lower values are better
    in_all: bool = True  # whether it is one of the measures of the original evaluation, which "all" stands for

    @property
    def needs_scores(self) -> bool:
        """Whether it needs scores, rather than predicted labels."""
        return self.of != "counts"


MEASURES: dict[str, Measure] = {
    "average_precision": Measure(average_precision, "ranks"),
    "coverage": Measure(coverage, "ranks", is_loss=True),
    "subset_accuracy": Measure(subset_accuracy, "counts"),
    "hamming_loss": Measure(hamming_loss, "counts", is_loss=True),
    "example_accuracy": Measure(mean_over_examples(jaccard), "counts"),
    "example_specificity": Measure(mean_over_examples(specificity), "counts"),
    "example_precision": Measure(mean_over_examples(precision), "counts"),
    "example_recall": Measure(mean_over_examples(recall), "counts"),
    "example_f1": Measure(mean_over_examples(f1), "counts"),
    "micro_auc": Measure(micro_auc, "scores"),
    "micro_specificity": Measure(micro(specificity), "counts"),
    "micro_precision": Measure(micro(precision), "counts"),
    "micro_recall": Measure(micro(recall), "counts"),
    "micro_f1": Measure(micro(f1), "counts"),
    "macro_auc": Measure(macro_auc, "scores"),
    "macro_specificity": Measure(macro(specificity), "counts"),
    "macro_precision": Measure(macro(precision), "counts"),
    "macro_recall": Measure(macro(recall), "counts"),
    "macro_f1": Measure(macro(f1), "counts"),
    "one_error": Measure(one_error, "ranks", is_loss=True, in_all=False),
    "ranking_loss": Measure(ranking_loss, "scores", is_loss=True, in_all=False),
    "precision_at_K": Measure(precision_at_k, "ranks", in_all=False),
    "ndcg_at_K": Measure(ndcg_at_k, "ranks", in_all=False),
}
ALL_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.in_all)
PAPER_MEASURES = ("example_accuracy", "example_f1", "hamming_loss", "macro_f1", "micro_f1")

_AT_K = re.compile(r"^(.*_at_)([1-9][0-9]*)$")


def evaluate(
    Y_true: Any,
    Y_pred: Any = None,
    scores: AnyMatrix | None = None,
    measures: str | Iterable[str] = "all",
    *,
    label_names: Sequence[Any] | None = None,
    top: Any = None,
) -> dict[str, float]:
    """Measure predicted labels, scores or both against the true labels.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (n, l), or list of sets
        The true labels: 0 or 1 for each row and label, or for each row a set (or list) of the names of its labels.
    Y_pred : array-like, sparse matrix or DataFrame of shape (n, l), or list of sets, default=None
        The predicted labels, in the same form. Used only if one of the measures needs them.
    scores : array-like of shape (n, l), default=None
        A score for each label, higher for more likely. Used only if one of the measures needs them.
    measures : str or iterable of str, default="all"
        `"all"`, `"paper"`, a measure's name, or several names, as `measure_names` takes them.
    label_names : sequence, default=None
        Where labels are given as sets: all labels, in the order of the columns of `scores`. By default those that
        occur, sorted; labels that neither occur nor are predicted then do not count in any measure.
    top : array-like of int, of shape (n, k), default=None
        The columns of the best labels of each row, best first; -1 where there are fewer. Where it is given,
        `precision_at_K` and `ndcg_at_K` up to `k` are computed from it instead of scores: an array of rows times labels
        is not needed.

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
    >>> evaluate([{"uk", "politics"}, {"sports"}], [{"uk"}, {"sports"}], measures="micro_f1")
    {'micro_f1': 0.8}
    >>> evaluate(Y_true, scores=[[0.9, 0.4, 0.3], [0.1, 0.8, 0.2]], measures=["coverage", "precision_at_1"])
    {'coverage': 1.0, 'precision_at_1': 1.0}
    >>> evaluate(Y_true, top=[[0, 1], [1, 2]], measures=["precision_at_1", "precision_at_2"])
    {'precision_at_1': 1.0, 'precision_at_2': 0.5}
    """
    chosen = {name: MEASURES[_entry(name)] for name in measure_names(measures)}
    for name, measure in chosen.items():
        argument, given = ("scores", scores) if measure.needs_scores else ("Y_pred", Y_pred)
        if given is None and (top is None or not needs_top(name)):
            raise ValueError(f"{argument} must be given to compute {name}, got None")
    batch = _Batch(*as_label_matrices(Y_true, Y_pred, label_names), scores, top)
    return {name: batch.value(name, measure) for name, measure in chosen.items()}


def measure_names(measures: str | Iterable[str] = "all") -> list[str]:
    """List the names of a set of measures.

    Parameters
    ----------
    measures : str or iterable of str, default="all"
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
        if _entry(name) not in MEASURES or name.endswith("_at_K"):
            raise ValueError(f"measures must be some of {', '.join(MEASURES)}, got {name!r}")
    return names


def needs_scores(measures: str | Iterable[str]) -> bool:
    """Return whether a measure, or one of a set of measures, needs scores rather than predicted labels.

    Examples
    --------
    >>> needs_scores("paper"), needs_scores(["micro_f1", "coverage"])
    (False, True)
    """
    return any(MEASURES[_entry(name)].needs_scores for name in measure_names(measures))


def needs_top(measure: str) -> int:
    """Return how many of the best labels of a row a measure needs to know; 0 if they are not enough for it.

    Examples
    --------
    >>> needs_top("ndcg_at_5"), needs_top("coverage")
    (5, 0)
    """
    at_k = _AT_K.fullmatch(measure)
    return int(at_k[2]) if at_k else 0


def is_loss(measure: str) -> bool:
    """Return whether lower values of a measure are better.

    Examples
    --------
    >>> is_loss("hamming_loss"), is_loss("micro_f1")
    (True, False)
    """
    entry = _entry(measure)
    return entry in MEASURES and MEASURES[entry].is_loss


def _entry(name: str) -> str:
    """Return where a measure stands in the table: ``ndcg_at_5`` under ``ndcg_at_K``, others under their names."""
    return _AT_K.sub(r"\1K", name)


class _Batch:
    """The checked inputs of one call, and what several measures share, made on first use."""

    def __init__(self, Y_true: AnyMatrix, Y_pred: AnyMatrix | None, scores: AnyMatrix | None, top: Any = None) -> None:
        self._truth = as_labels(Y_true, "Y_true")
        self._Y_pred = Y_pred
        self._given_scores = scores
        self._top = None if top is None else as_top(top, self._truth.shape)

    @cached_property
    def _confusion(self) -> Confusion:
        return confusion(self._truth, as_labels(self._Y_pred, "Y_pred", self._truth.shape))

    @cached_property
    def _scores(self) -> FloatArray:
        return as_scores(self._given_scores, self._truth.shape)

    @cached_property
    def _ranks(self) -> RelevantRanks:
        return relevant_ranks(self._truth, self._scores)

    @cached_property
    def _top_ranks(self) -> RelevantRanks:
        """The ranks in the lists of the best labels, or without lists those among all labels."""
        return self._ranks if self._top is None else ranks_in_top(self._truth, self._top)

    def value(self, name: str, measure: Measure) -> float:
        """Compute one measure."""
        if measure.of == "counts":
            return measure.function(self._confusion)
        if measure.of == "scores":
            return measure.function(self._truth, self._scores)
        k = needs_top(name)
        if not k:
            return measure.function(self._ranks)
        if self._top is not None and self._top.shape[1] < min(k, self._truth.shape[1]):
            raise ValueError(
                f"top must have at least {k} columns for {name}, got {self._top.shape[1]}; list more labels"
            )
        return measure.function(self._top_ranks, k)
