"""Calibration: whether a label that is given the probability 0.3 is present three times in ten.

All entries of all rows are pooled and sorted into bins of probability, equally wide. A `Reliability` holds sums only,
so that the counts of a stream are the sum over its batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.base import parameters
from labelrace.measures.inputs import as_labels_with_missing, as_probabilities
from labelrace.typing import AnyMatrix, FloatArray, IntArray


class Reliability(NamedTuple):
    """Counts of the entries in each bin of probability, and what follows from them."""

    entries: IntArray  # how many there are
    probability: FloatArray  # sum of their probabilities
    present: IntArray  # how many of them are present

    @property
    def edges(self) -> FloatArray:
        """Where bins begin and end; a probability on an edge is in the lower bin, as in scikit-learn."""
        return _edges(len(self.entries))

    @property
    def mean_probability(self) -> FloatArray:
        """Mean probability of each bin; NaN for an empty one."""
        return _ratio(self.probability, self.entries)

    @property
    def share_present(self) -> FloatArray:
        """Share of each bin's entries that are present; NaN for an empty one."""
        return _ratio(self.present, self.entries)

    @property
    def error(self) -> float:
        """Mean of `|share present - mean probability|`, bins weighted by their entries; NaN without any."""
        total = self.entries.sum()
        return float(np.abs(self.present - self.probability).sum() / total) if total else float("nan")


def expected_calibration_error(Y: AnyMatrix, P: AnyMatrix, n_bins: int = 15) -> float:
    """Compute how far probabilities are from the shares of labels that are present.

    Parameters
    ----------
    Y, P, n_bins
        As `reliability` takes them.

    Returns
    -------
    float
        Mean of `|share present - mean probability|` over bins, weighted by their entries: 0 for probabilities that
        mean what they say, at most 1. NaN where no entry is known.

    Examples
    --------
    >>> expected_calibration_error([[1, 0], [1, 0]], [[0.9, 0.2], [0.9, 0.2]])
    0.15...
    >>> expected_calibration_error([[1, 0], [1, float("nan")]], [[1.0, 0.0], [1.0, 0.7]])
    0.0
    """
    return reliability(Y, P, n_bins).error


def reliability(Y: AnyMatrix, P: AnyMatrix, n_bins: int = 15) -> Reliability:
    """Compare probabilities with the shares of labels that are present, bin by bin.

    Parameters
    ----------
    Y : array-like, sparse matrix or DataFrame of shape (n, l)
        The true labels, 0 or 1. NaN is a missing label, and does not count.
    P : array-like of shape (n, l)
        The probability of each label.
    n_bins : int, default=15
        How many bins, equally wide.

    Returns
    -------
    Reliability
        With ``edges``, ``entries``, ``probability`` and ``present``, for each bin.

    Raises
    ------
    ValueError
        If an argument is not two-dimensional or empty, if the two shapes differ, if `Y` holds other labels or `P`
        values outside [0, 1] or NaN, or if there is no bin.

    Examples
    --------
    >>> bins = reliability([[1, 0, 0, 1]], [[0.2, 0.4, 0.3, 0.9]], n_bins=2)
    >>> bins.edges.tolist(), bins.entries.tolist()
    ([0.0, 0.5, 1.0], [3, 1])
    >>> bins.mean_probability.round(3).tolist(), bins.share_present.round(3).tolist()
    ([0.3, 0.9], [0.333, 1.0])
    """
    edges = _edges(n_bins)
    labels, missing = as_labels_with_missing(Y, "Y")
    probabilities = as_probabilities(P, labels.shape).ravel()
    bins = np.searchsorted(edges[1:-1], probabilities)
    rows, columns = labels.nonzero()
    present = bins[rows.astype(np.intp) * labels.shape[1] + columns]
    given = np.delete(bins, missing), np.delete(probabilities, missing)
    return Reliability(
        np.bincount(given[0], minlength=n_bins),
        np.bincount(*given, minlength=n_bins).astype(np.float64),
        np.bincount(present, minlength=n_bins),
    )


def empty(n_bins: int = 15) -> Reliability:
    """Return the counts before the first batch."""
    size = len(_edges(n_bins)) - 1
    return Reliability(np.zeros(size, np.intp), np.zeros(size), np.zeros(size, np.intp))


def add(counts: Reliability, Y: AnyMatrix, P: AnyMatrix) -> Reliability:
    """Return the counts after a further batch, which `reliability` takes."""
    return merge(counts, reliability(Y, P, len(counts.entries)))


def merge(one: Reliability, other: Reliability) -> Reliability:
    """Return the counts of both, which must have the same number of bins."""
    if len(one.entries) != len(other.entries):
        raise ValueError(f"both must have as many bins, got {len(one.entries)} and {len(other.entries)}")
    return Reliability(one.entries + other.entries, one.probability + other.probability, one.present + other.present)


def _edges(n_bins: int) -> FloatArray:
    parameters.check_whole("n_bins", n_bins, 1)
    return np.linspace(0, 1, int(n_bins) + 1)


def _ratio(sums: FloatArray | IntArray, count: IntArray) -> FloatArray:
    return np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
