"""The monitored sample: rows that are predicted before they are learned, and what they have shown.

Their scores are counted (`labelrace.decisions.histogram`), which gives thresholds and probabilities; their errors go
to a detector of drift (`labelrace.decisions.drift`). Few rows wait until there are enough of them to be counted
together.

Each label has an offset, which grows where it was predicted more often than it was present, and is subtracted from its
scores. How much of the offsets is subtracted, nothing, half or all, is decided by the example F1 of recent rows; each
of the three has its own histogram.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.decisions import drift, histogram, rules
from labelrace.decisions.drift import DriftState
from labelrace.decisions.histogram import LabelHistograms, ScoreHistograms
from labelrace.decisions.rules import Rule
from labelrace.typing import Array, BoolArray, FloatArray, IntArray

# The monitored sample of a batch: most scores, and fewest rows. One of 10,000 scores and 32 rows follows a model that
# learns too slowly: it costs up to .004 of the example F1 on texts with hundreds of labels.
_MOST_SCORES, _FEWEST_ROWS = 40_000, 128
# Fewest rows that are counted together.
_COUNTED_TOGETHER = 32
# Shares of the offsets to choose from, and what all of them may cost in example F1: macro F1 gains more.
SHARES = np.array([0.0, 0.5, 1.0])
_WORTH = 0.006
# How far offsets move for a surplus prediction, by rows and occurrences, and how far they may go.
_STEP, _STEP_ROWS, _STEP_MORE, _MOST_OFFSET = 0.03, 1000.0, 20.0, 0.15
# Rows after which half of the labels' frequencies, and half of the recent example F1, is forgotten.
_FREQUENCY_HALF_LIFE, _F1_HALF_LIFE = 1000.0, 500.0


class Counts(NamedTuple):
    """What was counted: scores, how often labels are present and chosen, and the F1 of the rows."""

    histograms: ScoreHistograms  # counts of the scores less each of `SHARES` of the offsets
    offsets: Annotated[FloatArray, "o"]  # how far a label's scores are too high
    present: Annotated[FloatArray, "o"]  # how often labels were present
    rows: float  # rows that ``present`` comes from, forgotten ones less
    f1: Annotated[FloatArray, "3"]  # sums of the rows' F1, with each share of the offsets
    f1_rows: float  # rows that ``f1`` comes from, forgotten ones less
    last_f1: Annotated[FloatArray, "_r"]  # F1 of the rows that were counted last


class Monitor(NamedTuple):
    """What a model knows of its monitored rows: the counts, the rows that are to be counted, and the errors."""

    counts: Counts  # counts of scores, and offsets, for thresholds and probabilities
    waiting: Annotated[Array, "2 _n o", "float"]  # scores and labels of rows that are not counted yet
    by_label: LabelHistograms  # counts for each label, where thresholds are the labels' own; otherwise of none
    drift: DriftState  # errors of recent batches


class Decision(NamedTuple):
    """How label sets are chosen: ``offsets`` are subtracted from the scores, then the rule is applied."""

    offsets: FloatArray
    rule: Rule


def init(n_labels: int, *, by_label: bool = False) -> Monitor:
    """Make a monitor that has seen nothing; ``by_label`` where thresholds are to be the labels' own."""
    labels = histogram.init_labels(n_labels if by_label else 0)
    return Monitor(init_counts(n_labels), np.zeros((2, 0, n_labels)), labels, drift.init())


def init_counts(n_labels: int) -> Counts:
    """Make counts of no rows."""
    histograms = ScoreHistograms.empty()
    return Counts(histograms, np.zeros(n_labels), np.zeros(n_labels), 0.0, np.zeros(len(SHARES)), 0.0, np.zeros(0))


def sample(shape: tuple[int, int], most: int = _MOST_SCORES) -> slice | IntArray:
    """Choose the rows of a batch of labels, (n, l), that are monitored: up to ``most`` scores, from all over.

    Examples
    --------
    >>> sample((400, 10)), sample((400, 500))[:4].tolist()
    (slice(None, None, None), [0, 3, 6, 9])
    """
    n, n_labels = shape
    n_rows = min(n, max(_FEWEST_ROWS, most // max(n_labels, 1)))
    return slice(None) if n_rows == n else np.arange(n_rows) * n // n_rows


def observe(monitor: Monitor, scores: FloatArray, labels: FloatArray) -> Monitor:
    """Take in how some rows are predicted before they are learned; few rows wait until there are more."""
    if monitor.waiting.shape[1] or len(scores) < _COUNTED_TOGETHER:
        few = np.array([scores, labels], scores.dtype)
        waiting = np.concatenate([monitor.waiting, few], axis=1) if monitor.waiting.shape[1] else few
        if waiting.shape[1] < _COUNTED_TOGETHER:
            return monitor._replace(waiting=waiting)
        scores, labels = waiting.astype(float)
    return count_rows(monitor, scores, labels)._replace(waiting=monitor.waiting[:, :0])


def count_rows(monitor: Monitor, scores: FloatArray, labels: FloatArray) -> Monitor:
    """Count the scores of some rows, and note their errors."""
    by_label = monitor.by_label
    if len(by_label.seen):
        by_label = histogram.update_labels(by_label, rules.adjusted(scores), labels)
    counts, errors = update_counts(monitor.counts, scores, labels), drift.clipped_errors(scores, labels)
    return Monitor(counts, monitor.waiting, by_label, drift.update(monitor.drift, errors))


def update_counts(counts: Counts, scores: FloatArray, labels: FloatArray) -> Counts:
    """Count the scores of some rows that were not learned yet, and their labels; NaN is a label not known."""
    n, present = len(scores), labels > 0
    n_present = present.sum(axis=0)
    # Scores less each share of the offsets: (shares, n, l).
    z = rules.adjusted(scores) - SHARES[:, None, None] * counts.offsets
    histograms = histogram.update(counts.histograms, z, labels)
    # Rows are judged by what was known before them, if anything was.
    known = counts.histograms if counts.histograms.rows else histograms
    thresholds, floors = rules.cardinality_threshold(known), rules.empty_row_floor(known)
    chosen = rules.choose_above(z, thresholds[:, None, None], floors[:, None]) & ~np.isnan(labels)
    f1, share = example_f1(chosen, present, present.sum(axis=1)), best_share(counts)
    surplus = chosen[share].sum(axis=0) - n_present
    keep = 0.5 ** (n / _FREQUENCY_HALF_LIFE)
    frequency, rows = keep * counts.present + n_present, keep * counts.rows + n
    step = _STEP * surplus / (_STEP_ROWS * frequency / rows + _STEP_MORE)
    offsets = np.minimum(np.maximum(counts.offsets + step, -_MOST_OFFSET), _MOST_OFFSET)
    keep = 0.5 ** (n / _F1_HALF_LIFE)
    sums, f1_rows = keep * counts.f1 + f1.sum(axis=1), keep * counts.f1_rows + n
    return Counts(histograms, offsets, frequency, rows, sums, f1_rows, f1[share])


def example_f1(chosen: BoolArray, present: BoolArray, n_present: IntArray) -> FloatArray:
    """Compute the F1 of rows of which some labels are looked at, of all ``n_present`` that they have."""
    sizes = chosen.sum(axis=-1) + n_present
    return np.where(sizes > 0, 2.0 * (chosen & present).sum(axis=-1) / np.maximum(sizes, 1), 1.0)


def best_share(counts: Counts) -> int:
    """Find the index of the share of the offsets with the best example F1 on recent rows."""
    return int(np.argmax(counts.f1 / max(counts.f1_rows, 1.0) + _WORTH * SHARES))


def decide(monitor: Monitor, aim: str) -> Decision:
    """Read off what was counted how label sets are chosen for an aim of `labelrace.decisions.rules`."""
    # Thresholds of the labels' own leave nothing to the offsets.
    share = 0 if aim == "macro_f1" else best_share(monitor.counts)
    rule = rules.make_rule(aim, monitor.counts.histograms.of(share), monitor.by_label)
    return Decision(SHARES[share] * monitor.counts.offsets, rule)


def without_waiting(monitor: Monitor) -> Monitor:
    """Leave out rows that wait to be counted: their scores are those of another model."""
    return monitor._replace(waiting=monitor.waiting[:, :0])


def half_at_most(monitor: Monitor) -> Monitor:
    """Let no more than half of the offsets be taken, for now.

    Models that were joined from shares make all of them look cheaper than they are: on delicious they would cost .005
    of the example F1, of which monitored rows show half.
    """
    counts = monitor.counts
    f1 = counts.f1.copy()
    f1[-1] = min(f1[-1], f1[-2] - _WORTH * max(counts.f1_rows, 1.0))
    return monitor._replace(counts=counts._replace(f1=f1))


def merge(one: Monitor, other: Monitor) -> Monitor:
    """Add what the monitored rows of two models have shown; offsets are the mean, errors those of the first."""
    a, b = one.counts, other.counts
    rows = a.rows + b.rows
    share = b.rows / rows if rows else 0.0
    histograms = histogram.merge(a.histograms, b.histograms)
    offsets = a.offsets + share * (b.offsets - a.offsets)
    seen, present = one.by_label.seen + other.by_label.seen, one.by_label.present + other.by_label.present
    return Monitor(
        Counts(histograms, offsets, a.present + b.present, rows, a.f1 + b.f1, a.f1_rows + b.f1_rows, a.last_f1),
        one.waiting[:, :0],
        LabelHistograms(seen, present),
        one.drift,
    )
