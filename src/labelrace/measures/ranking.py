"""Ranking measures: how high an example's true labels stand among all labels, ordered by score.

Rank 1 is the best. Ranks follow Mulan, which sorts with Weka: scores in ascending order form groups, greedily from the
smallest; a score belongs to the current group while it is less than 1e-6 above the group's smallest. Inside a group
labels stand by index. Rank 1 is the last label, so among ties the higher index ranks better. All measures but the
ranking loss need only the ranks of the true labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.typing import BoolArray, FloatArray, IntArray, SparseMatrix

_TOLERANCE = 1e-6


class RelevantRanks(NamedTuple):
    """The ranks of each example's true labels.

    Example `i` owns `ranks[starts[i]:starts[i + 1]]`, best first; rank 1 is the highest score.
    """

    ranks: IntArray
    starts: IntArray

    @property
    def sizes(self) -> IntArray:
        """How many true labels each example has."""
        return np.diff(self.starts)

    @property
    def rows(self) -> IntArray:
        """The example that each rank belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)


def relevant_ranks(truth: SparseMatrix, scores: FloatArray) -> RelevantRanks:
    """Rank the true labels of each example among all labels.

    Only rows where a true label is tied need to know which labels share its score; for all others a sort of
    the values and a search are enough, and faster than sorting indices.
    """
    n_examples, n_labels = scores.shape
    rows, labels = truth.nonzero()
    ordered = np.sort(scores, axis=1)
    position = count_below(ordered, rows, scores[rows, labels], or_equal=True) - 1
    ranks = n_labels - position

    tied_rows = np.zeros(n_examples, dtype=np.bool_)
    tied_rows[rows[_has_tied_neighbour(ordered, rows, position)]] = True
    if tied_rows.any():
        redo = tied_rows[rows]
        position = np.cumsum(tied_rows) - 1
        ranks[redo] = all_ranks(scores[tied_rows])[position[rows[redo]], labels[redo]]

    # Rows are in order already, so one sort of row and rank together sorts the ranks inside each row.
    offset = rows.astype(np.intp) * (n_labels + 1)
    return RelevantRanks(np.sort(offset + ranks) - offset, truth.indptr.astype(np.intp))


def ranks_in_top(truth: SparseMatrix, top: IntArray) -> RelevantRanks:
    """Rank the true labels of each example in a list of its best ones, (n, k); those not in it come behind all labels.

    Takes the memory of the lists, not of all labels. Columns below 0 stand for no label.
    """
    n_labels = truth.shape[1]
    starts = truth.indptr.astype(np.intp)
    rows = np.repeat(np.arange(len(top)), np.diff(starts))
    keys = rows * n_labels + truth.indices
    order = np.argsort(keys)
    queries = np.where(top >= 0, np.arange(len(top))[:, np.newaxis] * n_labels + top, -1)
    positions = np.searchsorted(keys[order], queries.ravel())
    hits = np.flatnonzero(np.append(keys[order], -2)[positions] == queries.ravel())
    ranks = np.full(len(keys), n_labels + 1)
    ranks[order[positions[hits]]] = hits % top.shape[1] + 1
    offset = rows * (n_labels + 2)
    return RelevantRanks(np.sort(offset + ranks) - offset, starts)


def all_ranks(scores: FloatArray) -> IntArray:
    """Rank all labels of each row."""
    n_labels = scores.shape[1]
    order = np.argsort(scores, axis=1)
    starts = _group_starts(np.take_along_axis(scores, order, axis=1))
    offset = np.cumsum(starts, axis=1) * n_labels
    # Sorting group and label together leaves each group in its place, with its labels by index.
    labels: IntArray = np.sort(offset + order, axis=1) - offset
    ranks = np.empty_like(labels)
    np.put_along_axis(ranks, labels, np.arange(n_labels, 0, -1)[np.newaxis], axis=1)
    return ranks


def count_below(ordered: FloatArray, rows: IntArray, values: FloatArray, *, or_equal: bool = False) -> IntArray:
    """Count, for each value, the entries of its row of `ordered` that are smaller (or equal).

    A bisection of all values at once; the rows of `ordered` ascend.
    """
    width = ordered.shape[1]
    precedes = np.less_equal if or_equal else np.less
    count = np.zeros(len(values), dtype=np.intp)
    for bit in reversed(range(width.bit_length())):
        probe = count + (1 << bit)
        inside = probe <= width
        entry = ordered[rows, np.minimum(probe, width) - 1]
        count = np.where(inside & precedes(entry, values), probe, count)
    return count


def _has_tied_neighbour(ordered: FloatArray, rows: IntArray, position: IntArray) -> BoolArray:
    """Return which sorted entries are tied with the one before or after them in their row."""
    last = ordered.shape[1] - 1
    value = ordered[rows, position]
    before = ordered[rows, np.maximum(position - 1, 0)]
    after = ordered[rows, np.minimum(position + 1, last)]
    tied: BoolArray = ((position > 0) & _tied(value, before)) | ((position < last) & _tied(after, value))
    return tied


def _group_starts(ordered: FloatArray) -> BoolArray:
    """Mark the entries of ascending rows that start a group."""
    changes = np.ones(ordered.shape, dtype=np.bool_)
    changes[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = changes.copy()
    starts[:, 1:] &= ~_tied(ordered[:, 1:], ordered[:, :-1])
    # Equal neighbours are one group. Near ties make a chain, one group only if its ends are tied too.
    chained = np.flatnonzero((starts != changes).any(axis=1))
    broken = chained[_has_long_chain(ordered[chained], starts[chained])]
    if len(broken) > 0:
        starts[broken] = _greedy_group_starts(ordered[broken])
    return starts


def _has_long_chain(ordered: FloatArray, starts: BoolArray) -> BoolArray:
    """Return which rows have an entry that is not tied with the start before it."""
    # Rows ascend, so the largest start so far is the latest.
    smallest = np.maximum.accumulate(np.where(starts, ordered, -np.inf), axis=1)
    return np.any(~_tied(ordered, smallest), axis=1)


def _greedy_group_starts(ordered: FloatArray) -> BoolArray:
    """Mark group starts from left to right, in all rows at once."""
    columns = np.ascontiguousarray(ordered.T)
    starts = np.zeros(columns.shape, dtype=np.bool_)
    smallest = columns[0].copy()
    starts[0] = True
    for column, start in zip(columns[1:], starts[1:], strict=True):
        np.logical_not(_tied(column, smallest), out=start)
        np.copyto(smallest, column, where=start)
    return starts.T


def _tied(larger: FloatArray, smaller: FloatArray) -> BoolArray:
    # Two equal infinities differ by NaN, two huge scores by infinity: neither deserves a warning.
    with np.errstate(invalid="ignore", over="ignore"):
        tied: BoolArray = (larger == smaller) | (larger - smaller < _TOLERANCE)
    return tied


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

    With fewer than `k` labels in all, all are looked at and the division is still by `k`: the positions that no
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
