"""Propensity-scored precision: what hits are worth where rare labels are often missing from the truth.

With very many labels, nobody can name all that apply to a row, and rare ones are left out most. Jain, Prabhu and Varma
("Extreme multi-label loss functions for recommendation, tagging, ranking and other missing label applications", KDD
2016) estimate the chance that a label which applies was noted, its *propensity*, from its count ``N`` in ``n`` rows,

    p = 1 / (1 + C exp(-a log(N + b))),    C = (log n - 1) (b + 1)^a,

and count a hit as ``1 / p``. As there, the sum is divided by the largest that the row's labels allow, over all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base import parameters
from labelrace.measures.inputs import as_labels, as_top
from labelrace.typing import AnyMatrix, FloatArray


def propensities(counts: Any, n_rows: float, a: float = 0.55, b: float = 1.5) -> FloatArray:
    """Estimate how likely each label is noted where it applies.

    Parameters
    ----------
    counts : (l,) array-like
        Rows that have each label, of those learned from.
    n_rows : float
        How many those are, at least 3.
    a, b : float, default=0.55 and 1.5
        The paper's values; 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon.

    Returns
    -------
    (l,) array

    Examples
    --------
    >>> propensities([0, 10, 1000], n_rows=10_000).round(2)
    array([0.08, 0.22, 0.77])
    """
    parameters.check_number("n_rows", n_rows, 3)
    C = (np.log(n_rows) - 1.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + C * (np.asarray(counts, dtype=float) + b) ** -a), dtype=float)


def propensity_scored_precision(Y_true: AnyMatrix, top: Any, propensity: Any) -> float:
    """Measure the best labels of rows, with a hit worth one over its label's propensity.

    Parameters
    ----------
    Y_true : (n, l) array or sparse matrix of 0 and 1
        True labels.
    top : (n, k) array-like of int
        Columns of the ``k`` labels that are ranked best in each row, as `predict_top` gives them.
    propensity : (l,) array-like
        What `propensities` gives.

    Returns
    -------
    float
        From 0 to 1, NaN if no row has a label.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 1], [0, 1, 0]])
    >>> propensity_scored_precision(Y, [[2], [0]], [0.9, 0.5, 0.1]).__round__(3)
    0.833
    """
    Y, worth = as_labels(Y_true, "Y_true"), 1.0 / np.asarray(propensity, dtype=float)
    best = as_top(top, Y.shape)
    if worth.shape != (Y.shape[1],):
        raise ValueError(f"propensity must have an entry for each of {Y.shape[1]} labels, got {worth.shape}.")
    rows, labels = Y.nonzero()
    entries = (np.arange(len(best))[:, None] * Y.shape[1] + best)[best >= 0]
    hit = np.isin(entries, rows.astype(np.intp) * Y.shape[1] + labels)
    # The best that could be reached: of each row the labels that are worth most.
    order = np.lexsort((-worth[labels], rows))
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    most = worth[labels[order]][rank < best.shape[1]].sum()
    return float(worth[best[best >= 0][hit]].sum() / most) if len(rows) else float("nan")
