"""Ranks of methods over datasets, and whether they differ by more than chance.

References
----------
Demšar, J.: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from labelrace.typing import FloatArray

# Values that differ only by the order in which they were summed are ties, when rounded to this number of digits.
TIE_DIGITS = 12


def rank(
    values: npt.ArrayLike,
    *,
    lower_is_better: bool = False,
    ties: Literal["min", "average"] = "min",
    digits: int | None = None,
) -> FloatArray:
    """Rank methods, 1 for the best, on each dataset.

    Parameters
    ----------
    values : array-like of shape (…, methods)
        Ranked along the last axis. A method without a value, NaN, ranks after all that have one.
    lower_is_better : bool, default=False
        See `labelrace.measures.is_loss`.
    ties : {"min", "average"}, default="min"
        Whether methods with the same value share the better rank, as in the paper's tables, or the mean of their ranks.
    digits : int or None, default=None
        Digits to round to before ranking. The paper ranks what it prints: 2 digits.

    Returns
    -------
    array of the shape of ``values``

    Examples
    --------
    >>> rank([0.22, 0.21, 0.214, 0.19]).tolist()
    [1.0, 3.0, 2.0, 4.0]
    >>> rank([0.22, 0.21, 0.214, 0.19], digits=2).tolist()
    [1.0, 2.0, 2.0, 4.0]
    >>> rank([0.22, 0.21, 0.214, 0.19], digits=2, ties="average").tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    costs = np.array(values, dtype=np.float64)
    if digits is not None:
        costs = costs.round(digits)
    if not lower_is_better:
        costs = -costs
    costs[np.isnan(costs)] = np.inf
    ranks: FloatArray = stats.rankdata(costs, method=ties, axis=-1).astype(np.float64)
    return ranks


class Friedman(NamedTuple):
    """Friedman's test of whether methods differ at all, with average ranks and Nemenyi's critical difference.

    Methods whose average ranks differ by less than the critical difference do not differ at the 5 % level.

    Attributes
    ----------
    statistic, p_value : float
        Friedman's chi-squared, and how likely one as large is where methods do not differ.
    average_ranks : (methods,) array
        The mean rank of each method, 1 for the best.
    critical_difference : float
        As `critical_difference` computes it.
    """

    statistic: float
    p_value: float
    average_ranks: FloatArray
    critical_difference: float


def friedman(values: npt.ArrayLike, *, lower_is_better: bool = False, digits: int | None = None) -> Friedman:
    """Test whether methods differ over datasets by more than chance.

    Parameters
    ----------
    values : array-like of shape (datasets, methods)
        At least 3 methods on 2 datasets.
    lower_is_better, digits
        As `rank` takes them. Methods with the same value share the mean of their ranks.

    Returns
    -------
    Friedman

    Examples
    --------
    >>> result = friedman([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.8, 0.7, 0.6], [0.5, 0.4, 0.3]])
    >>> print(f"{result.statistic:.1f} {result.p_value:.3f}")
    8.0 0.018
    """
    ranks = rank(values, lower_is_better=lower_is_better, ties="average", digits=digits)
    if ranks.ndim != 2 or ranks.shape[0] < 2 or ranks.shape[1] < 3:
        raise ValueError(
            f"values must hold at least 3 methods on 2 datasets for Friedman's test, got shape {ranks.shape}"
        )
    n_datasets, n_methods = ranks.shape
    means: FloatArray = ranks.mean(axis=0)
    difference = critical_difference(n_methods, n_datasets)
    if (ranks == ranks[0, 0]).all():  # all tie everywhere, where the statistic would be 0/0
        return Friedman(0.0, 1.0, means, difference)
    result = stats.friedmanchisquare(*ranks.T)
    return Friedman(float(result.statistic), float(result.pvalue), means, difference)


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference.

    Two methods differ at level `alpha` where their average ranks, with ``ties="average"``, differ by as much.

    Parameters
    ----------
    n_methods, n_datasets : int
    alpha : float, default=0.05

    Returns
    -------
    float

    Examples
    --------
    >>> print(f"{critical_difference(n_methods=4, n_datasets=14):.2f}")
    1.25
    """
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(f"there must be 2 methods and a dataset at least, got {n_methods} and {n_datasets}")
    quantile = stats.studentized_range.isf(alpha, n_methods, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))
