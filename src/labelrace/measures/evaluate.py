"""The table of the measures, and one call for any set of them, doing only the work that the set needs.

To add a measure, write its function in the module of its kind and give it a line in `MEASURES`. A measure of one's own
joins them by `register_measure`, or by an entry point of the group ``labelrace.measures``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal

from labelrace.base import plugins
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
from labelrace.measures.label import macro, macro_auc, macro_of_present, micro, micro_auc
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
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix


@dataclass(frozen=True)
class Measure:
    """What there is to know of a measure.

    ``function`` computes it from a `Confusion` ("counts"); from that and what labels count that are neither there nor
    predicted ("averages"); from the `RelevantRanks`, and `K` if the name ends in ``_at_K`` ("ranks"); from the true
    labels and the scores ("scores"); or from the true and the predicted labels ("labels").
    """

    function: Callable[..., float]
    of: Literal["counts", "averages", "ranks", "scores", "labels"]
    is_loss: bool = False  # whether lower values are better
    in_all: bool = True  # whether it is one of the measures of the original evaluation, which "all" stands for

    @property
    def needs_scores(self) -> bool:
        """Whether it needs scores, rather than predicted labels."""
        return self.of not in ("counts", "averages", "labels")


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
    "macro_precision": Measure(macro_of_present(precision), "averages"),
    "macro_recall": Measure(macro_of_present(recall), "averages"),
    "macro_f1": Measure(macro_of_present(f1), "averages"),
    "one_error": Measure(one_error, "ranks", is_loss=True, in_all=False),
    "ranking_loss": Measure(ranking_loss, "scores", is_loss=True, in_all=False),
    "precision_at_K": Measure(precision_at_k, "ranks", in_all=False),
    "ndcg_at_K": Measure(ndcg_at_k, "ranks", in_all=False),
}
_REGISTERED: dict[str, Measure] = {}
ENTRY_POINTS = "labelrace.measures"
ALL_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.in_all)
PAPER_MEASURES = ("example_accuracy", "example_f1", "hamming_loss", "macro_f1", "micro_f1")
_SETS = {"all": ALL_MEASURES, "paper": PAPER_MEASURES}

_AT_K = re.compile(r"^(.*_at_)([1-9][0-9]*)$")


def register_measure(
    name: str, function: Callable[..., float], *, needs_scores: bool = False, is_loss: bool = False
) -> None:
    """Give a measure of one's own a name, by which `evaluate`, `prequential` and the command know it.

    Parameters
    ----------
    name : str
        The name. It must be free, but a function that is defined again may be registered again.
    function : callable
        Called with the true and the predicted labels of a batch, two sparse (n, l) arrays of 0 and 1; returns a number.
    needs_scores : bool, default=False
        Whether it is called with the true labels and an (n, l) array of scores instead.
    is_loss : bool, default=False
        Whether lower values are better.

    Examples
    --------
    >>> register_measure("n_predicted", lambda Y_true, Y_pred: Y_pred.sum() / Y_pred.shape[0])
    >>> evaluate([[1, 0], [1, 1]], [[1, 1], [1, 1]], measures=["n_predicted", "hamming_loss"])
    {'n_predicted': 2.0, 'hamming_loss': 0.25}
    """
    own = {*MEASURES, "all", "paper", "auto"}
    plugins.check_new(name, function, own, {one: measure.function for one, measure in _REGISTERED.items()})
    if _AT_K.fullmatch(name) or "," in name:
        raise ValueError(f"name must not end in _at_K or hold a comma, got {name!r}: choose another one.")
    _REGISTERED[name] = Measure(function, "scores" if needs_scores else "labels", is_loss, in_all=False)


def _measure(name: str) -> Measure:
    """Return a measure by its name, or raise ValueError."""
    found = _find(name)
    if found is None:
        known = (*MEASURES, *_REGISTERED, *plugins.entry_points(ENTRY_POINTS))
        raise ValueError(f"measures must be some of {', '.join(known)}, got {name!r}")
    return found


def _find(name: str) -> Measure | None:
    """Return a measure by its name; None if there is none."""
    found = MEASURES.get(_entry(name)) or _REGISTERED.get(name)
    if found is None and name in plugins.entry_points(ENTRY_POINTS):
        function = plugins.entry_points(ENTRY_POINTS)[name].load()
        kinds = bool(getattr(function, "needs_scores", False)), bool(getattr(function, "is_loss", False))
        found = Measure(function, "scores" if kinds[0] else "labels", kinds[1], in_all=False)
    return None if name.endswith("_at_K") else found


def evaluate(
    Y_true: Any,
    Y_pred: Any = None,
    scores: AnyMatrix | None = None,
    measures: str | Iterable[str] = "all",
    *,
    label_names: Sequence[Any] | None = None,
    top: Any = None,
    zero_division: float | None = None,
) -> dict[str, float]:
    """Measure predicted labels, scores or both against the true labels.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or DataFrame of shape (n, l), or list of sets
        The true labels: 0 or 1 for each row and label, or for each row a set (or list) of the names of its labels.
        Columns of data frames are matched by name; names are the same in every Unicode form, and without spaces around.
    Y_pred : array-like, sparse matrix or DataFrame of shape (n, l), or list of sets, default=None
        The predicted labels, in the same form. Used only if one of the measures needs them.
    scores : array-like of shape (n, l), default=None
        A score for each label, higher for more likely. Used only if one of the measures needs them.
    measures : str or iterable of str, default="all"
        `"all"`, `"paper"`, a measure's name, or several names, as `measure_names` takes them. Of `"all"`, measures are
        left out that need predicted labels, or scores, which are not given.
    label_names : sequence, default=None
        Where labels are given as sets: all labels, in the order of the columns of `scores`. By default those that
        occur, sorted; labels that neither occur nor are predicted then do not count in any measure.
    top : array-like of int, of shape (n, k), default=None
        The columns of the best labels of each row, best first; -1 where there are fewer. Where it is given,
        `precision_at_K` and `ndcg_at_K` up to `k` are computed from it instead of scores: an array of rows times labels
        is not needed.
    zero_division : float, default=None
        What a label that is neither there nor predicted counts in macro precision, recall and F1. By default 0, as in
        scikit-learn; but 1 in the sets "all" and "paper", as in the original evaluation.

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
    >>> "micro_f1" in evaluate(Y_true, Y_pred), "coverage" in evaluate(Y_true, Y_pred)
    (True, False)
    >>> evaluate([{"uk", "politics"}, {"sports"}], [{"uk"}, {"sports"}], measures="micro_f1")
    {'micro_f1': 0.8}
    >>> evaluate(Y_true, scores=[[0.9, 0.4, 0.3], [0.1, 0.8, 0.2]], measures=["coverage", "precision_at_1"])
    {'coverage': 1.0, 'precision_at_1': 1.0}
    >>> evaluate(Y_true, top=[[0, 1], [1, 2]], measures=["precision_at_1", "precision_at_2"])
    {'precision_at_1': 1.0, 'precision_at_2': 0.5}
    """
    chosen = {name: _measure(name) for name in measure_names(measures)}
    given = {True: scores is not None, False: Y_pred is not None}
    lacking = [
        name
        for name, measure in chosen.items()
        if not given[measure.needs_scores] and (top is None or not needs_top(name))
    ]
    if lacking and (measures != "all" or len(lacking) == len(chosen)):
        argument = "scores" if chosen[lacking[0]].needs_scores else "Y_pred"
        named = [name for name in lacking if chosen[name].needs_scores == (argument == "scores")]
        raise ValueError(f"{argument} must be given to compute {', '.join(named)}, got None")
    counted = default_zero_division(measures) if zero_division is None else zero_division
    inputs = as_label_matrices(Y_true, Y_pred, scores, label_names)
    batch = _Batch(*inputs, top, _checked_division(counted))
    return {name: batch.value(name, measure) for name, measure in chosen.items() if name not in lacking}


def default_zero_division(measures: str | Iterable[str]) -> float:
    """Return what labels that are neither there nor predicted count: 1 in the sets of the original evaluation, else 0.

    Parameters
    ----------
    measures : str or iterable of str

    Returns
    -------
    float

    Examples
    --------
    >>> default_zero_division("paper"), default_zero_division("macro_f1")
    (1.0, 0.0)
    """
    return float(isinstance(measures, str) and measures in _SETS)


def uses_zero_division(measure: str) -> bool:
    """Return whether a measure depends on ``zero_division``.

    Parameters
    ----------
    measure : str

    Returns
    -------
    bool

    Examples
    --------
    >>> uses_zero_division("macro_f1"), uses_zero_division("micro_f1")
    (True, False)
    """
    return measure in MEASURES and MEASURES[measure].of == "averages"


def _checked_division(value: Any) -> float:
    if not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ValueError(f"zero_division must be a number from 0 to 1, got {value!r}")
    return float(value)


def measure_names(measures: str | Iterable[str] = "all") -> list[str]:
    """List the names of a set of measures.

    Parameters
    ----------
    measures : str or iterable of str, default="all"
        `"all"` for the 19 measures of the original evaluation, `"paper"` for the five of the paper's tables,
        one name, or several. Beyond the 19 there are `ranking_loss`, `one_error`, and `precision_at_K` and
        `ndcg_at_K` for any positive integer `K`.

    Returns
    -------
    list of str

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
        measures = _SETS.get(measures, (measures,))
    names = list(measures)
    for name in names:
        _measure(name)
    return names


def needs_scores(measures: str | Iterable[str]) -> bool:
    """Return whether a measure, or one of a set of measures, needs scores rather than predicted labels.

    Parameters
    ----------
    measures : str or iterable of str

    Returns
    -------
    bool

    Examples
    --------
    >>> needs_scores("paper"), needs_scores(["micro_f1", "coverage"])
    (False, True)
    """
    return any(_measure(name).needs_scores for name in measure_names(measures))


def needs_top(measure: str) -> int:
    """Return how many of the best labels of a row a measure needs to know; 0 if they are not enough for it.

    Parameters
    ----------
    measure : str

    Returns
    -------
    int

    Examples
    --------
    >>> needs_top("ndcg_at_5"), needs_top("coverage")
    (5, 0)
    """
    at_k = _AT_K.fullmatch(measure)
    return int(at_k[2]) if at_k else 0


def is_loss(measure: str) -> bool:
    """Return whether lower values of a measure are better.

    Parameters
    ----------
    measure : str

    Returns
    -------
    bool

    Examples
    --------
    >>> is_loss("hamming_loss"), is_loss("micro_f1")
    (True, False)
    """
    found = _find(measure)
    return found is not None and found.is_loss


def _entry(name: str) -> str:
    """Return where a measure stands in the table: ``ndcg_at_5`` under ``ndcg_at_K``, others under their names."""
    return _AT_K.sub(r"\1K", name)


class _Batch:
    """The checked inputs of one call, and what several measures share, made on first use."""

    def __init__(
        self, Y_true: AnyMatrix, Y_pred: AnyMatrix | None, scores: AnyMatrix | None, top: Any, zero_division: float
    ) -> None:
        self._truth = as_labels(Y_true, "Y_true")
        self._Y_pred = Y_pred
        self._given_scores = scores
        self._top = None if top is None else as_top(top, self._truth.shape)
        self._zero_division = zero_division

    @cached_property
    def _predicted(self) -> SparseMatrix:
        return as_labels(self._Y_pred, "Y_pred", self._truth.shape)

    @cached_property
    def _confusion(self) -> Confusion:
        return confusion(self._truth, self._predicted)

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
        if measure.of == "averages":
            return measure.function(self._confusion, self._zero_division)
        if measure.of in ("scores", "labels"):
            given = self._scores if measure.of == "scores" else self._predicted
            return float(measure.function(self._truth, given))
        k = needs_top(name)
        if not k:
            return measure.function(self._ranks)
        if self._top is not None and self._top.shape[1] < min(k, self._truth.shape[1]):
            raise ValueError(
                f"top must have at least {k} columns for {name}, got {self._top.shape[1]}; list more labels"
            )
        return measure.function(self._top_ranks, k)
