"""Histograms of scores over recent rows: what thresholds and probabilities are read off.

Scores estimate the probability of a label by least squares: they lie around [0, 1], but nothing keeps them there, and
the scores of rare labels are small. So it is counted, over recent rows, how many scores fell into each of a few hundred
bins and how many of these labels were present. Older rows count for less: half after ``HALF_LIFE`` rows.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeVar

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

H = TypeVar("H", "ScoreHistogram", "ScoreHistograms")


class ScoreHistogram(NamedTuple):
    """Counts over recent rows."""

    # Scores in each bin, and those of labels that were present.
    seen: Annotated[FloatArray, _BINS_AXIS]
    present: Annotated[FloatArray, _BINS_AXIS]
    best: Annotated[FloatArray, _BINS_AXIS]  # rows by the best of their scores
    # Rows, and rows without a label.
    rows: float
    empty_rows: float


class ScoreHistograms(NamedTuple):
    """Four histograms of the same rows, whose scores are adjusted in as many ways."""

    # Each as in `ScoreHistogram`, with an axis before it.
    seen: Annotated[FloatArray, f"4 {_BINS_AXIS}"]
    present: Annotated[FloatArray, f"4 {_BINS_AXIS}"]
    best: Annotated[FloatArray, f"4 {_BINS_AXIS}"]
    rows: float
    empty_rows: Annotated[FloatArray, "4"]

    @classmethod
    def empty(cls) -> ScoreHistograms:
        """Make empty histograms."""
        none = np.zeros((4, N_BINS))
        return cls(none, none, none, 0.0, np.zeros(4))

    def of(self, index: int) -> ScoreHistogram:
        """Return one of the histograms."""
        seen, present, best = self.seen[index], self.present[index], self.best[index]
        return ScoreHistogram(seen, present, best, self.rows, float(self.empty_rows[index]))


def init() -> ScoreHistogram:
    """Make an empty histogram."""
    return ScoreHistogram(np.zeros(N_BINS), np.zeros(N_BINS), np.zeros(N_BINS), 0.0, 0.0)


def bins(scores: FloatArray) -> IntArray:
    """Find the bins that scores fall into; what lies outside counts as the outermost, and NaN as the lowest."""
    indices: IntArray = np.fmin(np.fmax((scores - LOW) * (1.0 / WIDTH), 0), N_BINS - 1).astype(np.int32)
    return indices


def update(histogram: H, scores: FloatArray, labels: FloatArray, weight: float = 1.0) -> H:
    """Count the scores of some rows, and forget some of those before.

    Parameters
    ----------
    histogram : ScoreHistogram or ScoreHistograms
    scores : (n, l) array, or (4, n, l) array for `ScoreHistograms`
    labels : (n, l) array
        1 and 0, or NaN where it is not known whether the label is present.
    weight : float
        Number of rows that each row stands for.
    """
    shape, size = histogram.seen.shape, histogram.seen.size
    # Bins of all histograms, one behind the other.
    cells = bins(scores) + np.arange(0, size, N_BINS, dtype=np.int32)[:, None, None]
    counted, unknown = cells, np.isnan(labels)
    empty_rows = np.count_nonzero(~labels.any(axis=1))
    if unknown.any():
        counted = cells[:, ~unknown]
        # What is not known is absent as often as its score says.
        absent = np.where(unknown, 1.0 - np.clip(scores, 0.0, 1.0), labels != 1)
        empty_rows = absent.prod(axis=-1).sum(axis=-1)
    n = labels.shape[0]
    keep = 0.5 ** (weight * n / HALF_LIFE)
    seen = np.bincount(counted.ravel(), minlength=size).reshape(shape)
    present = np.bincount(cells[:, labels > 0].ravel(), minlength=size).reshape(shape)
    best = np.bincount(cells.max(axis=-1).ravel(), minlength=size).reshape(shape)
    return type(histogram)(
        histogram.seen * keep + weight * seen,
        histogram.present * keep + weight * present,
        histogram.best * keep + weight * best,
        histogram.rows * keep + weight * n,
        histogram.empty_rows * keep + weight * empty_rows,
    )


def merge(a: H, b: H) -> H:
    """Add what two models have counted."""
    return type(a)(
        a.seen + b.seen, a.present + b.present, a.best + b.best, a.rows + b.rows, a.empty_rows + b.empty_rows
    )


class LabelHistograms(NamedTuple):
    """Counts for each label, (l, bins): of all scores, and of those where it was present."""

    seen: Annotated[FloatArray, _LABEL_AXES]
    present: Annotated[FloatArray, _LABEL_AXES]


def init_labels(n_labels: int) -> LabelHistograms:
    """Make an empty histogram for each label."""
    shape = (n_labels, N_BINS // COARSE)
    return LabelHistograms(np.zeros(shape), np.zeros(shape))


def update_labels(counts: LabelHistograms, scores: FloatArray, labels: FloatArray) -> LabelHistograms:
    """Count the scores of some rows for each label; NaN is a label not known."""
    n_labels, n_bins = counts.seen.shape
    cells = bins(scores) // COARSE + n_bins * np.arange(n_labels)
    seen = np.bincount(cells[~np.isnan(labels)], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    present = np.bincount(cells[labels == 1], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    # Single labels are rare: they are remembered longer than the stream as a whole.
    keep = 0.5 ** (len(scores) / (10 * HALF_LIFE))
    return LabelHistograms(counts.seen * keep + seen, counts.present * keep + present)
