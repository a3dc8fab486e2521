r"""Example-based measures: each example is judged by its predicted label set, then examples are averaged.

For an example with true labels `Y` and predicted labels `Z` out of `l`: `tp = |Y ∩ Z|`, `fp = |Z \ Y|`,
`fn = |Y \ Z|` and `tn = l - |Y ∪ Z|`. `labelrace.measures.counts` gives the value of each 0/0.
"""

from __future__ import annotations

import numpy as np

from labelrace.measures.counts import Confusion, f1, jaccard, precision, recall, specificity

__all__ = [
    "example_accuracy",
    "example_f1",
    "example_precision",
    "example_recall",
    "example_specificity",
    "hamming_loss",
    "subset_accuracy",
]


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
    """Share of wrong cells, mean of `(fp + fn) / l`.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 0], [1, 1]], [[1, 0], [0, 1]], measures="hamming_loss")
    {'hamming_loss': 0.25}
    """
    counts = confusion.pooled
    return float(((counts.fp + counts.fn) / sum(counts)).item())


def example_accuracy(confusion: Confusion) -> float:
    """Mean of `|Y ∩ Z| / |Y ∪ Z|`; 1 where both are empty.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]], measures="example_accuracy")
    {'example_accuracy': 0.75}
    """
    return float(jaccard(confusion.per_example).mean())


def example_specificity(confusion: Confusion) -> float:
    """Mean of `tn / (tn + fp)`: of the labels an example lacks, the share not predicted."""
    return float(specificity(confusion.per_example).mean())


def example_precision(confusion: Confusion) -> float:
    """Mean of `|Y ∩ Z| / |Z|`: of the labels predicted, the share that is right."""
    return float(precision(confusion.per_example).mean())


def example_recall(confusion: Confusion) -> float:
    """Mean of `|Y ∩ Z| / |Y|`: of the labels an example has, the share predicted."""
    return float(recall(confusion.per_example).mean())


def example_f1(confusion: Confusion) -> float:
    """Mean of `2 |Y ∩ Z| / (|Y| + |Z|)`; 1 where both are empty.

    Examples
    --------
    >>> from labelrace.measures import evaluate
    >>> evaluate([[1, 1, 0], [0, 0, 0]], [[1, 0, 1], [0, 0, 0]], measures="example_f1")
    {'example_f1': 0.75}
    """
    return float(f1(confusion.per_example).mean())
