"""Loops over scores, to be compiled: what `labelrace.core.monitoring` and `labelrace.core.thresholds` have in NumPy."""

from __future__ import annotations

import numpy as np

from labelrace.core.compiled import kernel
from labelrace.typing import FloatArray

__all__ = ["count", "interpolate"]


@kernel
def count(
    scores: FloatArray,
    labels: FloatArray,
    offsets: FloatArray,
    threshold: float,
    floor: float,
    lowest: float,
    bins_per_unit: float,
    n_bins: int,
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, FloatArray]:
    """Count adjusted scores less offsets, and how well a rule chooses labels by them.

    Returns counts by bin of all scores, of those of present labels and of each row's best one; the rows without a
    label; the sum of the rows' F; and how much more often each label was chosen than present.
    """
    n, n_labels = scores.shape
    seen, present, best, surplus = np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_labels)
    n_empty, f1, z = 0.0, 0.0, np.empty(n_labels)
    for i in range(n):
        n_present, n_chosen, n_hits, absent, top = 0, 0, 0, 1.0, 0
        for j in range(n_labels):
            z[j] = scores[i, j] - offsets[j]
            top = j if z[j] > z[top] else top
        # A row without a label gets its best one, unless that is too low.
        threshold_here = threshold
        if not z[top] > threshold:
            threshold_here = np.inf if not z[top] > floor else z[top]
        for j in range(n_labels):
            place = int(min(max((z[j] - lowest) * bins_per_unit, 0.0), n_bins - 1.0))
            is_present, is_chosen = labels[i, j] > 0.0, z[j] > threshold_here or (j == top and z[j] == threshold_here)
            if labels[i, j] != labels[i, j]:
                # What is not known is absent as often as its score says.
                absent *= 1.0 - min(max(z[j], 0.0), 1.0)
                continue
            seen[place] += 1.0
            if is_present:
                present[place] += 1.0
                absent = 0.0
            n_present += is_present
            n_chosen += is_chosen
            n_hits += is_present and is_chosen
            surplus[j] += int(is_chosen) - int(is_present)
        best[int(min(max((z[top] - lowest) * bins_per_unit, 0.0), n_bins - 1.0))] += 1.0
        n_empty += absent
        f1 += 2.0 * n_hits / (n_chosen + n_present) if n_chosen + n_present else 1.0
    return seen, present, best, n_empty, f1, surplus


@kernel
def interpolate(scores: FloatArray, steps: FloatArray, lowest: float, bins_per_unit: float) -> FloatArray:
    """Read probabilities off those at the centres of bins, ``steps``, for scores of any rows, (n, c); at most 1."""
    likely, last = np.empty(scores.shape), len(steps) - 1
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            place = min(max((float(scores[i, j]) - lowest) * bins_per_unit, 0.0), float(last))
            below = min(int(place), last - 1)
            likely[i, j] = min((place - below) * (steps[below + 1] - steps[below]) + steps[below], 1.0)
    return likely
