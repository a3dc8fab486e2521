"""Histograms of scores over recent rows: what thresholds and probabilities are read off.

Scores estimate the probability of a label by least squares: they lie around [0, 1], but nothing keeps them there, and
the scores of rare labels are small. So it is counted, over recent rows, how many scores fell into each of a few hundred
bins and how many of these labels were present. Older rows count for less: half after ``HALF_LIFE`` rows.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.typing import FloatArray, IntArray

HALF_LIFE = 200.0
LOW, HIGH, N_BINS = -0.5, 1.5, 512
WIDTH = (HIGH - LOW) / N_BINS
EDGES = np.linspace(LOW, HIGH, N_BINS + 1)
CENTRES = EDGES[:-1] + WIDTH / 2
COARSE = 8
"""Bins that make one of the histograms of single labels."""

# As axes of saved arrays.
_BINS_AXIS, _LABEL_AXES = str(N_BINS), f"o {N_BINS // COARSE}|0 {N_BINS // COARSE}"


class ScoreHistogram(NamedTuple):
    """Counts over recent rows."""

    # Scores in each bin, and those of labels that were present.
    seen: Annotated[FloatArray, _BINS_AXIS, ">=0"]
    present: Annotated[FloatArray, _BINS_AXIS, ">=0"]
    best: Annotated[FloatArray, _BINS_AXIS, ">=0"]  # rows by the best of their scores
    # Rows, and rows without a label.
    rows: Annotated[float, ">=0"]
    empty_rows: Annotated[float, ">=0"]


def init() -> ScoreHistogram:
    """Make an empty histogram."""
    return ScoreHistogram(np.zeros(N_BINS), np.zeros(N_BINS), np.zeros(N_BINS), 0.0, 0.0)


def bins(scores: FloatArray) -> IntArray:
    """Find the bins that scores fall into; what lies outside counts as the outermost, and NaN as the lowest."""
    found: IntArray = np.fmin(np.fmax((scores - LOW) * (1.0 / WIDTH), 0), N_BINS - 1).astype(np.int32)
    return found


def update(histogram: ScoreHistogram, scores: FloatArray, labels: FloatArray, weight: float = 1.0) -> ScoreHistogram:
    """Count the scores of some rows, and forget some of those before.

    Parameters
    ----------
    histogram : ScoreHistogram
    scores : (n, l) array
    labels : (n, l) array
        1 and 0, or NaN where it is not known whether the label is present.
    weight : float
        Number of rows that each row stands for.
    """
    fallen, unknown = bins(scores), np.isnan(labels)
    if unknown.any():
        seen, present = np.bincount(fallen[~unknown], minlength=N_BINS), fallen[labels == 1]
        # What is not known is absent as often as its score says.
        absent = np.where(unknown, 1.0 - np.clip(scores, 0.0, 1.0), labels != 1)
        empty_rows = float(absent.prod(axis=1).sum())
    else:
        seen, present = np.bincount(fallen.ravel(), minlength=N_BINS), fallen[labels > 0]
        empty_rows = float((~labels.any(axis=1)).sum())
    keep = 0.5 ** (weight * len(scores) / HALF_LIFE)
    return ScoreHistogram(
        histogram.seen * keep + weight * seen,
        histogram.present * keep + weight * np.bincount(present, minlength=N_BINS),
        histogram.best * keep + weight * np.bincount(fallen.max(axis=1), minlength=N_BINS),
        histogram.rows * keep + weight * len(scores),
        histogram.empty_rows * keep + weight * empty_rows,
    )


def merge(a: ScoreHistogram, b: ScoreHistogram) -> ScoreHistogram:
    """Add what two models have counted."""
    return ScoreHistogram(
        a.seen + b.seen, a.present + b.present, a.best + b.best, a.rows + b.rows, a.empty_rows + b.empty_rows
    )


class LabelHistograms(NamedTuple):
    """Counts for each label, (l, bins): of all scores, and of those where it was present."""

    seen: Annotated[FloatArray, _LABEL_AXES, ">=0"]
    present: Annotated[FloatArray, _LABEL_AXES, ">=0", "with seen"]


def init_labels(n_labels: int) -> LabelHistograms:
    """Make an empty histogram for each label."""
    shape = (n_labels, N_BINS // COARSE)
    return LabelHistograms(np.zeros(shape), np.zeros(shape))


def grow_labels(counts: LabelHistograms, n_labels: int) -> LabelHistograms:
    """Add labels without scores."""
    more = init_labels(n_labels - len(counts.seen))
    return LabelHistograms(np.vstack([counts.seen, more.seen]), np.vstack([counts.present, more.present]))


def update_labels(counts: LabelHistograms, scores: FloatArray, labels: FloatArray) -> LabelHistograms:
    """Count the scores of some rows for each label; NaN is a label not known."""
    n_labels, n_bins = counts.seen.shape
    cells = bins(scores) // COARSE + n_bins * np.arange(n_labels)
    seen = np.bincount(cells[~np.isnan(labels)], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    present = np.bincount(cells[labels == 1], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    # Single labels are rare: they are remembered longer than the stream as a whole.
    keep = 0.5 ** (len(scores) / (10 * HALF_LIFE))
    return LabelHistograms(counts.seen * keep + seen, counts.present * keep + present)
