r"""Confusion counts, the rates that follow from them, and the example-based measures.

Every measure of predicted label sets is a rate of one of three tables of counts (per example, per label, over all
cells), averaged over its entries. For an example with true labels `Y` and predicted labels `Z` out of `l`:
`tp = |Y ∩ Z|`, `fp = |Z \ Y|`, `fn = |Y \ Z|` and `tn = l - |Y ∪ Z|`. With both label matrices sparse, counting
costs O(nnz + n + l): true negatives are what remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from labelrace.typing import BoolArray, FloatArray, IntArray, SparseMatrix


class Counts(NamedTuple):
    """True and false positives and negatives, one entry per example, per label, or one for all cells."""

    tp: IntArray
    fp: IntArray
    fn: IntArray
    tn: IntArray


Rate: TypeAlias = Callable[[Counts], FloatArray]


class Confusion(NamedTuple):
    """The three tables of confusion counts of a batch."""

    per_example: Counts
    per_label: Counts
    pooled: Counts


def confusion(truth: SparseMatrix, predicted: SparseMatrix) -> Confusion:
    """Count agreements and errors of two canonical CSR label matrices."""
    n_examples, n_labels = truth.shape
    matrices = truth.multiply(predicted).tocsr(), predicted, truth
    # SciPy indexes with 32 bits where it can; counts are of one type.
    row_sizes = [np.diff(labels.indptr).astype(np.intp) for labels in matrices]
    column_sizes = [np.bincount(labels.indices, minlength=n_labels) for labels in matrices]
    per_example, per_label = _counts(row_sizes, n_labels), _counts(column_sizes, n_examples)
    return Confusion(per_example, per_label, Counts(*(count.sum(keepdims=True) for count in per_example)))


def _counts(sizes: Sequence[IntArray], total: int) -> Counts:
    both, predicted, true = sizes
    return Counts(tp=both, fp=predicted - both, fn=true - both, tn=total - predicted - true + both)


def is_absent(counts: Counts) -> BoolArray:
    """Return where nothing is there and nothing is predicted, `tp + fp + fn = 0`."""
    return counts.tp + counts.fp + counts.fn == 0


def precision(counts: Counts) -> FloatArray:
    """Compute `tp / (tp + fp)`; for 0/0, 1 where `tp + fp + fn = 0` and 0 elsewhere."""
    return _rate(counts.tp, counts.tp + counts.fp, is_absent(counts))


def recall(counts: Counts) -> FloatArray:
    """Compute `tp / (tp + fn)`; for 0/0, 1 where `tp + fp + fn = 0` and 0 elsewhere."""
    return _rate(counts.tp, counts.tp + counts.fn, is_absent(counts))


def f1(counts: Counts) -> FloatArray:
    """Compute `2 tp / (2 tp + fp + fn)`, the harmonic mean of precision and recall; 1 for 0/0."""
    tp, fp, fn, _ = counts
    return _rate(2 * tp, 2 * tp + fp + fn, is_absent(counts))


def jaccard(counts: Counts) -> FloatArray:
    """Compute `tp / (tp + fp + fn)`, intersection over union; 1 where the union is empty."""
    tp, fp, fn, _ = counts
    return _rate(tp, tp + fp + fn, is_absent(counts))


def specificity(counts: Counts) -> FloatArray:
    """Compute `tn / (tn + fp)`; for 0/0, 1 where `tn + fp + fn = 0` and 0 elsewhere."""
    _, fp, fn, tn = counts
    return _rate(tn, tn + fp, tn + fp + fn == 0)


def _rate(part: IntArray, whole: IntArray, perfect: BoolArray) -> FloatArray:
    """Divide where there is something to divide by; elsewhere 1 if `perfect`, else 0."""
    rate = perfect.astype(np.float64)
    return np.divide(part, whole, out=rate, where=whole > 0)


def subset_accuracy(confusion: Confusion) -> float:
    """Share of examples with exactly the right labels, `Y = Z`.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0], [1, 1]], [[1, 0], [0, 1]], measures="subset_accuracy")
    {'subset_accuracy': 0.5}
    """
    counts = confusion.per_example
    return float(np.mean(counts.fp + counts.fn == 0))


def hamming_loss(confusion: Confusion) -> float:
    """Share of wrong cells, mean of `(fp + fn) / l`; 0.25 where one cell of four is wrong."""
    counts = confusion.pooled
    return float(((counts.fp + counts.fn) / sum(counts)).item())


def mean_over_examples(rate: Rate) -> Callable[[Confusion], float]:
    """Return the measure that averages a rate over examples.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> Y_true, Y_pred = [[1, 1, 0], [0, 0, 0]], [[1, 0, 1], [0, 0, 0]]
    >>> evaluate(Y_true, Y_pred, measures=["example_precision", "example_recall", "example_f1"])
    {'example_precision': 0.75, 'example_recall': 0.75, 'example_f1': 0.75}
    """
    return lambda confusion: float(rate(confusion.per_example).mean())
