"""What scores have been worth lately: counts in bins, from which thresholds and probabilities are read.

Scores estimate the probability of a label by least squares: they lie around [0, 1], but nothing keeps them there, and
rare labels' scores are small. So it is counted, over the rows of late, how many scores fell into each of a few hundred
bins and how many of these labels were present. Older rows count for less: half after ``HALF_LIFE``.

Three things are read off the counts. The *threshold* is the score that has as many scores above it as there are labels
present: the predicted label cardinality is then that of the stream. The *floor* is the score below which a row's best
label is not predicted, so that as many rows are left empty as are empty in truth. And the share of present labels
among the scores of a bin, made to rise by isotonic regression, is their *probability*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from labelrace.typing import FloatArray

__all__ = ["CENTRES", "Tally", "add", "bins", "empty", "floor", "probabilities", "threshold"]

HALF_LIFE = 200.0
_LOW, _HIGH, _BINS = -0.5, 1.5, 512
_WIDTH = (_HIGH - _LOW) / _BINS
EDGES = np.linspace(_LOW, _HIGH, _BINS + 1)
CENTRES = EDGES[:-1] + _WIDTH / 2
# Scores that each bin starts with, at their face value, so that a bin nobody has seen says something sensible.
_PRIOR = 0.05


class Tally(NamedTuple):
    """Counts over the rows of late.

    Attributes
    ----------
    seen, present : (bins,) arrays
        Scores in each bin, and those of labels that were present.
    best : (bins,) array
        Rows by the best of their scores.
    rows, bare : float
        Rows, and rows without a label.
    """

    seen: FloatArray
    present: FloatArray
    best: FloatArray
    rows: float
    bare: float


def empty() -> Tally:
    """Make a tally of nothing."""
    return Tally(np.zeros(_BINS), np.zeros(_BINS), np.zeros(_BINS), 0.0, 0.0)


def bins(scores: FloatArray) -> FloatArray:
    """Find the bins that scores fall into; what lies outside counts as the outermost."""
    return np.clip((scores - _LOW) * (1.0 / _WIDTH), 0, _BINS - 1).astype(np.int32)


def add(tally: Tally, scores: FloatArray, labels: FloatArray) -> Tally:
    """Count the scores of some rows.

    Parameters
    ----------
    tally : Tally
    scores : (n, l) array
    labels : (n, l) array
        1 and 0, or NaN where it is not known whether the label is present.

    Examples
    --------
    >>> import numpy as np
    >>> scores, labels = np.array([[0.9, 0.4, 0.1], [0.8, 0.2, 0.0]]), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> bool(0.2 < threshold(add(empty(), scores, labels)) < 0.4)
    True
    """
    keep = 0.5 ** (len(scores) / HALF_LIFE)
    fallen = bins(scores)
    unknown = np.isnan(labels)
    if unknown.any():
        known = ~unknown
        seen, present = np.bincount(fallen[known], minlength=_BINS), np.bincount(fallen[labels == 1], minlength=_BINS)
        # What is not known is absent as often as its score says.
        absent = np.where(unknown, 1.0 - np.clip(scores, 0.0, 1.0), labels != 1)
        bare = float(absent.prod(axis=1).sum())
    else:
        seen, present = np.bincount(fallen.ravel(), minlength=_BINS), np.bincount(fallen[labels > 0], minlength=_BINS)
        bare = float((~labels.any(axis=1)).sum())
    best = np.bincount(fallen.max(axis=1), minlength=_BINS)
    return Tally(
        tally.seen * keep + seen,
        tally.present * keep + present,
        tally.best * keep + best,
        tally.rows * keep + len(scores),
        tally.bare * keep + bare,
    )


def threshold(tally: Tally) -> float:
    """Find the score that has as many scores above it as there were labels present."""
    return _with_above(tally.seen, float(tally.present.sum()))


def floor(tally: Tally) -> float:
    """Find the score that has as many rows' best scores below it as there were rows without labels."""
    if not tally.rows:
        return np.inf
    return _with_above(tally.best, tally.rows - tally.bare) if tally.bare else -np.inf


def _with_above(counts: FloatArray, wanted: float) -> float:
    """Find the score that has so many above it, evenly spread within a bin."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [0.0]])
    if wanted >= above[0] > 0:
        return float(EDGES[0]) - _WIDTH
    if wanted <= 0:
        return float(EDGES[-1])
    # The last edge with at least as many above.
    edge = int(np.searchsorted(-above, -wanted, side="right")) - 1
    inside = counts[edge]
    return float(EDGES[edge] + _WIDTH * ((above[edge] - wanted) / inside if inside else 0.0))


def probabilities(tally: Tally) -> FloatArray:
    """Compute the probability that a label with a score in each bin is present: rising from bin to bin."""
    face = np.clip(CENTRES, 0.0, 1.0)
    weight = tally.seen + _PRIOR
    return np.asarray(isotonic_regression((tally.present + _PRIOR * face) / weight, weights=weight).x)
