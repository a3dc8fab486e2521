"""Probabilities: the share of present labels among recent scores of the same size, and estimates clipped to (0, 1)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from labelrace.decisions.histogram import CENTRES, HIGH, LOW, ScoreHistogram
from labelrace.typing import Array, FloatArray

# Scores that each bin starts with, at their face value, so that an empty bin says something sensible.
_PRIOR = 0.05
# Scores that a share is taken of: of fewer, the highest ones would be too sure.
_FEWEST_SCORES = 100.0
# No probability is nearer to 0 or 1 than this: counts cannot tell more.
_SURE = 1e-6
FIRST_CENTRE = float(CENTRES[0])
BINS_PER_UNIT = (len(CENTRES) - 1) / (float(CENTRES[-1]) - FIRST_CENTRE)


def calibrate(histogram: ScoreHistogram) -> FloatArray:
    """Compute the probability that a label with a score in each bin is present: rising from bin to bin.

    Bins with few scores are put together, from the highest scores on, until there are enough of them. Shares that fall
    from group to group are averaged (isotonic regression), and between groups probabilities rise evenly. So equal
    probabilities are those of equal scores.

    Examples
    --------
    >>> from labelrace.decisions import histogram
    >>> likely = calibrate(histogram.init())
    >>> bool((np.diff(likely) > 0).all()), float(interpolate(likely, np.array([0.3]))[0].round(3))
    (True, 0.3)
    """
    face = np.clip(CENTRES, 0.0, 1.0)
    if histogram.seen.sum() < _FEWEST_SCORES:
        return _strictly_rising(face)
    weight = histogram.seen + _PRIOR
    groups = (np.cumsum(weight[::-1])[::-1] / _FEWEST_SCORES).astype(np.intp)
    sums = _sums_of_runs(groups, weight, histogram.present + _PRIOR * face, weight * CENTRES)
    shares = isotonic_regression(sums[1] / sums[0], weights=sums[0]).x
    n_scores, n_present, sum_of_scores = _sums_of_runs(shares, *sums)
    shares = n_present / n_scores
    # Beyond the outermost groups, half-way to what is certain.
    known = np.concatenate([[shares[0] / 2.0], shares, [(1.0 + shares[-1]) / 2.0]])
    at = np.concatenate([[LOW], sum_of_scores / n_scores, [HIGH]])
    return _strictly_rising(np.interp(CENTRES, at, known))


def _strictly_rising(probabilities: FloatArray) -> FloatArray:
    """Make non-decreasing probabilities strictly increasing, and keep them inside (0, 1)."""
    slope = _SURE * (CENTRES - LOW) / (HIGH - LOW)
    return np.clip(probabilities, _SURE, 1.0 - 2.0 * _SURE) + slope


def _sums_of_runs(keys: Array, *values: FloatArray) -> list[FloatArray]:
    """Add up values over runs of equal keys."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return [np.add.reduceat(value, starts) for value in values]


def interpolate(probabilities: FloatArray, scores: FloatArray) -> FloatArray:
    """Read the probabilities of scores off those at the centres of bins.

    As `np.interp` does it, but bins are equally wide: nothing has to be searched.
    """
    last = len(probabilities) - 1
    # In double precision: where probabilities rise steeply, the rounding of single would be seen.
    position = np.subtract(scores, FIRST_CENTRE, dtype=float)
    position *= BINS_PER_UNIT
    # Twice as fast as np.clip where there are few.
    np.minimum(np.maximum(position, 0, out=position), last, out=position)
    below = np.minimum(position.astype(np.intp), last - 1)
    position -= below
    # NaN has no position and stays NaN.
    low = probabilities.take(below, mode="clip")
    position *= probabilities.take(below + 1, mode="clip") - low
    position += low
    return np.minimum(position, 1.0, out=position)


def soft_clip(values: FloatArray) -> FloatArray:
    """Bring least-squares estimates of 0 and 1 into (0, 1), leaving those at least .001 inside as they are.

    Values outside keep their order: with a margin of .001, they fall towards 0 as ``margin² / (2 margin - value)``,
    and towards 1 likewise.

    Examples
    --------
    >>> import numpy as np
    >>> soft_clip(np.array([-1.0, 0.0, 0.4, 1.0, 2.0])).round(6)
    array([1.00000e-06, 5.00000e-04, 4.00000e-01, 9.99500e-01, 9.99999e-01])
    """
    margin = 1e-3
    low = margin**2 / (2 * margin - np.minimum(values, margin))
    high = 1.0 - margin**2 / (np.maximum(values, 1.0 - margin) - (1.0 - 2 * margin))
    return np.where(values < margin, low, np.where(values > 1.0 - margin, high, values))
