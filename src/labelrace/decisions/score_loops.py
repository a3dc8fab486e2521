"""Loops over the scores of monitored rows, and over their errors, to be compiled.

The same in NumPy: `bounds` is `cardinality_threshold` and `empty_row_floor` of `labelrace.decisions.thresholds`, and
`interpolate` its `probabilities`; `count` is `_count` of `labelrace.decisions.monitor`; `errors_have_grown` is `found`
of `labelrace.decisions.drift`. Numbers they have settled are arguments: a compiled loop that is kept on disk would not
notice that they have changed.
"""

from __future__ import annotations

import numpy as np

from labelrace.base.compiled import kernel
from labelrace.typing import FloatArray


@kernel
def bounds(
    seen: FloatArray,
    present: FloatArray,
    best: FloatArray,
    rows: float,
    empty_rows: float,
    n_present: float,
    settled: tuple[float, ...],
) -> tuple[float, float]:
    """Find the threshold for the cardinality, and the floor of empty rows, of a histogram that has rows.

    ``n_present`` is the sum of ``present`` as NumPy has it: where scores above several bins are as many, its rounding
    decides. ``settled`` is `labelrace.decisions.thresholds.SETTLED`.
    """
    _, lowest, width, least_share, largest_share, worth_of_share, few_present = settled
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
    before: FloatArray,
    empty_before: FloatArray,
    n_present_before: FloatArray,
    rows: float,
    keep: float,
    settled: tuple[float, ...],
    counts: FloatArray,
    n_empty: FloatArray,
    f1: FloatArray,
    surplus: FloatArray,
    n_present: FloatArray,
    errors: FloatArray,
) -> None:
    """Add the scores of rows, adjusted and less shares of the offsets, to histograms, of which ``keep`` is kept.

    A histogram is counts by bin of all scores, of those of present labels and of each row's best one, and the rows
    without a label. Written for each share are further the sum of the rows' F, as labels are chosen by the histogram
    before, and how much more often labels were chosen than present; and `look_at`'s. Where nothing is said of it, what
    is written to must be zero.
    """
    of_best, lowest, width = settled[:3]
    lowered = np.empty(len(scores))
    look_at(scores, labels, of_best, lowered, n_present, errors)
    for s in range(len(shares)):
        seen, present, best = before[s]
        threshold, floor = bounds(seen, present, best, rows, empty_before[s], n_present_before[s], settled)
        counts[s] = before[s] * keep
        taken, rule = shares[s] * offsets, (threshold, floor, lowest, 1.0 / width)
        absent, f1[s] = count_share(scores, labels, lowered, taken, rule, counts[s], surplus[s])
        n_empty[s] = empty_before[s] * keep + absent


@kernel
def look_at(
    scores: FloatArray,
    labels: FloatArray,
    of_best: float,
    lowered: FloatArray,
    n_present: FloatArray,
    errors: FloatArray,
) -> None:
    """Write how far each row's scores are lowered by its best one, and the squared errors of scores clipped to [0, 1].

    Added to is how often labels are present.
    """
    n, n_labels = scores.shape
    for i in range(n):
        highest, error = 0.0, 0.0
        for j in range(n_labels):
            highest = max(highest, scores[i, j])
            likely, label = min(max(scores[i, j], 0.0), 1.0), labels[i, j]
            # Of what is not known, the error that is expected.
            error += (likely - label) * (likely - label) if label == label else likely * (1.0 - likely)
            n_present[j] += int(label > 0.0)
        lowered[i], errors[i] = of_best * highest, error


@kernel
def count_share(
    scores: FloatArray,
    labels: FloatArray,
    lowered: FloatArray,
    offsets: FloatArray,
    rule: tuple[float, float, float, float],
    counts: FloatArray,
    surplus: FloatArray,
) -> tuple[float, float]:
    """Count the scores less one share of the offsets; return how many rows are empty, and the sum of the rows' F."""
    (n, n_labels), n_empty, f1 = scores.shape, 0.0, 0.0
    bound, floor, lowest, bins_per_unit = rule
    last_bin, z, (seen, present, best) = counts.shape[1] - 1.0, np.empty(n_labels), counts
    for i in range(n):
        n_present, n_chosen, n_hits, absent, top = 0, 0, 0, 1.0, 0
        for j in range(n_labels):
            z[j] = scores[i, j] - lowered[i] - offsets[j]
        for j in range(n_labels):
            top = j if z[j] > z[top] else top
        # A row without a label gets its best one, unless that is too low.
        threshold = bound
        if not z[top] > bound:
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
                surplus[j] -= 1.0
                n_present += 1
                absent = 0.0
            if z[j] > threshold or (j == top and z[j] == threshold):
                surplus[j] += 1.0
                n_chosen += 1
                n_hits += int(label > 0.0)
        best[int(min(max((z[top] - lowest) * bins_per_unit, 0.0), last_bin))] += 1.0
        n_empty += absent
        f1 += 2.0 * n_hits / (n_chosen + n_present) if n_chosen + n_present else 1.0
    return n_empty, f1


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


@kernel
def errors_have_grown(means: FloatArray, variances: FloatArray, fewest_past: int, sure: float) -> bool:
    """Tell whether the last 1, 2, 4, … of some mean errors are larger than those before, by so many standard errors."""
    count, n_recent = len(means), 1
    total = 0.0
    for i in range(count):
        total += variances[i]
    while n_recent <= count - fewest_past:
        n_past = count - n_recent
        past, squares, past_variance, recent, recent_variance = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(n_past):
            # From one of them, so that equal errors are nothing and not a rounding error.
            mean = means[i] - means[0]
            past += mean / n_past
            squares += mean * mean / n_past
            past_variance += variances[i] / n_past
        for i in range(n_past, count):
            recent += (means[i] - means[0]) / n_recent
            recent_variance += variances[i] / n_recent
        overall = max((squares - past * past) * n_past / (n_past - 1), total / count)
        noise = max(overall, recent_variance) / n_recent + max(overall, past_variance) / n_past
        if recent - past > sure * np.sqrt(noise):
            return True
        n_recent *= 2
    return False
