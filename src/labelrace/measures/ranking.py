"""Ranking measures: how high an example's true labels stand among all labels, ordered by score.

Rank 1 is the best; `labelrace.measures.order` says how ties are broken. All but the ranking loss need only
the ranks of the true labels.
"""

from __future__ import annotations

import numpy as np

from labelrace.measures.order import RelevantRanks, count_below
from labelrace.typing import FloatArray, IntArray, SparseMatrix

__all__ = ["average_precision", "coverage", "ndcg_at_k", "one_error", "precision_at_k", "ranking_loss"]


def average_precision(relevant: RelevantRanks) -> float:
    """Mean over examples of the mean precision at the rank of each true label.

    For true labels at ranks `r_1 < … < r_m` that is the mean of `i / r_i`. Examples without labels are
    skipped; NaN when there are no others.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 0, 1]], scores=[[0.9, 0.8, 0.1, 0.5]], measures="average_precision")
    {'average_precision': 0.833...}
    """
    labelled = relevant.sizes > 0
    if not labelled.any():
        return float("nan")
    order = _order_in_row(relevant)
    total = np.bincount(relevant.rows, weights=order / relevant.ranks, minlength=len(labelled))
    return float((total[labelled] / relevant.sizes[labelled]).mean())


def coverage(relevant: RelevantRanks) -> float:
    """Mean number of steps down the ranking, from the top, until all true labels are passed.

    The worst rank of a true label minus 1; 0 for an example without labels.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 0, 1], [0, 0, 0, 0]], scores=[[0.9, 0.8, 0.1, 0.5]] * 2, measures="coverage")
    {'coverage': 1.0}
    """
    labelled = relevant.sizes > 0
    worst = relevant.ranks[relevant.starts[1:][labelled] - 1]
    return float((worst - 1).sum() / len(labelled))


def one_error(relevant: RelevantRanks) -> float:
    """Share of examples whose top-ranked label is not a true one.

    An example without labels has no true label at the top: it is an error, as in Mulan.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0], [0, 0]], scores=[[0.9, 0.1], [0.9, 0.1]], measures="one_error")
    {'one_error': 0.5}
    """
    n = len(relevant.sizes)
    return float((n - np.count_nonzero(relevant.ranks == 1)) / n)


def precision_at_k(relevant: RelevantRanks, k: int) -> float:
    """Mean over examples of the number of true labels among the `k` top-ranked, divided by `k`.

    With fewer than `k` labels in all, all are looked at and the division is still by `k`: the places that no
    label fills count as misses.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 1]], scores=[[0.9, 0.8, 0.1]], measures=["precision_at_1", "precision_at_2"])
    {'precision_at_1': 1.0, 'precision_at_2': 0.5}
    """
    return float(np.count_nonzero(relevant.ranks <= k) / (len(relevant.sizes) * k))


def ndcg_at_k(relevant: RelevantRanks, k: int) -> float:
    """Mean over examples of the discounted gain of the `k` top-ranked labels, relative to the best possible.

    A true label at rank `r ≤ k` gains `1 / log2(r + 1)`; the best possible ranking has true labels on top.
    An example without labels counts 0, as in scikit-learn. With fewer than `k` labels in all, all are used.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[0, 1, 0]], scores=[[0.9, 0.8, 0.1]], measures="ndcg_at_3")
    {'ndcg_at_3': 0.6309...}
    """
    n = len(relevant.sizes)
    actual = _discounted_gain(relevant.ranks, relevant.rows, n, k)
    ideal = _discounted_gain(_order_in_row(relevant), relevant.rows, n, k)
    labelled = relevant.sizes > 0
    return float((actual[labelled] / ideal[labelled]).sum() / n)


def ranking_loss(truth: SparseMatrix, scores: FloatArray) -> float:
    """Mean over examples of the share of pairs of a true and another label that are ordered wrongly.

    A pair is wrong unless the true label's score is the larger: equal scores are wrong, and there is no
    tolerance. Examples with all labels or none have no pairs and count 0. All this is as in scikit-learn's
    `label_ranking_loss`; Mulan's breaks ties by label index and differs where there are any.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0, 0]], scores=[[0.5, 0.5, 0.1]], measures="ranking_loss")
    {'ranking_loss': 0.5}
    """
    n_examples, n_labels = scores.shape
    rows, labels = truth.nonzero()
    sizes = np.diff(truth.indptr).astype(np.intp)
    # With the true labels out of the way at the bottom, only other labels are found above a score. One that
    # is itself minus infinity would find them too; hence the minimum.
    others = scores.copy()
    others[rows, labels] = -np.inf
    not_below = n_labels - count_below(np.sort(others, axis=1), rows, scores[rows, labels])
    wrong = np.bincount(rows, weights=np.minimum(not_below, (n_labels - sizes)[rows]), minlength=n_examples)
    pairs = sizes * (n_labels - sizes)
    return float(np.divide(wrong, pairs, out=np.zeros(n_examples), where=pairs > 0).mean())


def _order_in_row(relevant: RelevantRanks) -> IntArray:
    """Count through the true labels of each example from 1, best first."""
    return np.arange(1, len(relevant.ranks) + 1) - np.repeat(relevant.starts[:-1], relevant.sizes)


def _discounted_gain(ranks: IntArray, rows: IntArray, n: int, k: int) -> FloatArray:
    counted = ranks <= k
    # NumPy's types do not say that weights make the counts real.
    return np.bincount(rows[counted], weights=1 / np.log2(ranks[counted] + 1), minlength=n).astype(np.float64)
