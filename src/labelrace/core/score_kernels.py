"""Loops over the scores of monitored rows, to be compiled.

In NumPy, `labelrace.core.thresholds` has `bounds` and `interpolate`, and `labelrace.core.monitoring` has `count`.
Numbers they have settled are arguments: a compiled loop that is kept on disk would not notice that they have changed.
"""

from __future__ import annotations

import numpy as np

from labelrace.core.compiled import kernel
from labelrace.typing import FloatArray


@kernel
def bounds(
    seen: FloatArray,
    present: FloatArray,
    best: FloatArray,
    rows: float,
    empty_rows: float,
    n_present: float,
    lowest: float,
    width: float,
    least_share: float,
    largest_share: float,
    worth_of_share: float,
    few_present: float,
) -> tuple[float, float]:
    """Find the threshold for the cardinality, and the floor of empty rows, of a histogram that has rows.

    ``n_present`` is the sum of ``present`` as NumPy has it: where scores above several bins are as many, its rounding
    decides.
    """
    above, hits, share, most = 0.0, 0.0, 1.0, -np.inf
    if n_present >= few_present:
        for i in range(len(seen) - 1, -1, -1):
            above += seen[i]
            hits += present[i]
            here = above / n_present
            worth = 2.0 * hits / n_present / (here + 1.0) - worth_of_share * abs(here - 1.0)
            if least_share <= here <= largest_share and worth > most:
                share, most = here, worth
    threshold = with_above(seen, n_present * share, lowest, width)
    floor = with_above(best, rows - empty_rows, lowest, width) if empty_rows > 0.0 else -np.inf
    return threshold, floor


@kernel
def with_above(counts: FloatArray, wanted: float, lowest: float, width: float) -> float:
    """Find the score that has so many above it, evenly spread within a bin."""
    n_bins, above = len(counts), 0.0
    for i in range(n_bins - 1, -1, -1):
        above += counts[i]
    if wanted >= above > 0.0:
        return lowest - width
    if wanted > 0.0:
        above = 0.0
        for i in range(n_bins - 1, -1, -1):
            above += counts[i]
            if above >= wanted:
                return lowest + width * (i + (above - wanted) / counts[i])
    return lowest + width * n_bins


@kernel
def count(
    scores: FloatArray,
    labels: FloatArray,
    offsets: FloatArray,
    shares: FloatArray,
    rules: FloatArray,
    of_best: float,
    lowest: float,
    bins_per_unit: float,
    counts: FloatArray,
    n_empty: FloatArray,
    f1: FloatArray,
    surplus: FloatArray,
    n_present_of: FloatArray,
    errors: FloatArray,
) -> None:
    """Count adjusted scores less shares of the offsets, and how well rules, threshold and floor, choose labels by them.

    Added for each share are: to ``counts``, by bin, all scores, those of present labels and each row's best one; the
    rows without a label; the sum of the rows' F; and how much more often each label was chosen than present. Further
    how often each label was present, and the squared errors of each row's scores, clipped to [0, 1].
    """
    n, n_labels = scores.shape
    last_bin, z, lowered = counts.shape[2] - 1.0, np.empty(n_labels), np.empty(n)
    for i in range(n):
        highest = 0.0
        for j in range(n_labels):
            highest = max(highest, scores[i, j])
            likely, label = min(max(scores[i, j], 0.0), 1.0), labels[i, j]
            # Of what is not known, the error that is expected.
            errors[i] += (likely - label) * (likely - label) if label == label else likely * (1.0 - likely)
            n_present_of[j] += int(label > 0.0)
        lowered[i] = of_best * highest
    for s in range(len(shares)):
        seen, present, best = counts[s]
        for i in range(n):
            n_present, n_chosen, n_hits, absent, top = 0, 0, 0, 1.0, 0
            for j in range(n_labels):
                z[j] = scores[i, j] - lowered[i] - shares[s] * offsets[j]
                top = j if z[j] > z[top] else top
            # A row without a label gets its best one, unless that is too low.
            threshold, floor = rules[s]
            if not z[top] > threshold:
                threshold = np.inf if not z[top] > floor else z[top]
            for j in range(n_labels):
                label, place = labels[i, j], int(min(max((z[j] - lowest) * bins_per_unit, 0.0), last_bin))
                if label != label:
                    # What is not known is absent as often as its score says.
                    absent *= 1.0 - min(max(z[j], 0.0), 1.0)
                    continue
                seen[place] += 1.0
                if label > 0.0:
                    present[place] += 1.0
                    surplus[s, j] -= 1.0
                    n_present += 1
                    absent = 0.0
                if z[j] > threshold or (j == top and z[j] == threshold):
                    surplus[s, j] += 1.0
                    n_chosen += 1
                    n_hits += int(label > 0.0)
            best[int(min(max((z[top] - lowest) * bins_per_unit, 0.0), last_bin))] += 1.0
            n_empty[s] += absent
            f1[s] += 2.0 * n_hits / (n_chosen + n_present) if n_chosen + n_present else 1.0


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
