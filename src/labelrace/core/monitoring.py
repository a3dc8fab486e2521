"""The monitored sample: rows that are predicted before they are learned, and what they have shown.

Their scores are counted (`labelrace.core.thresholds`), which gives thresholds, offsets and probabilities; their errors
go to a detector of drift (`labelrace.core.drift`). Few rows wait until there are enough of them to be counted together.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.core import drift, thresholds
from labelrace.core.drift import DriftState
from labelrace.core.thresholds import LabelHistograms, Monitor, Rule
from labelrace.typing import FloatArray, IntArray

__all__ = [
    "Decision",
    "Waiting",
    "Watch",
    "add",
    "add_together",
    "added",
    "begin",
    "counted_anew",
    "decide",
    "example_f1",
    "grow",
    "reordered",
    "sample",
]

# The monitored sample of a batch: scores at the most, and rows at the least.
_MOST_SCORES, _FEWEST_ROWS = 10_000, 32


class Waiting(NamedTuple):
    """Scores and labels of monitored rows, (n, l), until there are enough of them to be counted together."""

    scores: Annotated[FloatArray, "_n o"]
    labels: Annotated[FloatArray, "_n o", "nan"]


class Watch(NamedTuple):
    """What monitored rows have shown.

    Attributes
    ----------
    monitor : Monitor
        Counts of scores, and offsets, for thresholds and probabilities.
    waiting : Waiting
        Monitored rows that are not counted yet.
    by_label : LabelHistograms
        Counts for each label, where thresholds are the labels' own; otherwise of none.
    drift : DriftState
        Errors of recent batches.
    """

    monitor: Monitor
    waiting: Waiting
    by_label: LabelHistograms
    drift: DriftState


class Decision(NamedTuple):
    """How label sets are chosen: ``offsets`` are taken from the scores, then the rule is applied."""

    offsets: FloatArray
    rule: Rule


def begin(n_labels: int, *, by_label: bool = False) -> Watch:
    """Make what is known before the first row; ``by_label`` where thresholds are to be the labels' own."""
    return Watch(
        thresholds.new_monitor(n_labels),
        _none(n_labels),
        thresholds.new_label_histograms(n_labels if by_label else 0),
        drift.empty(),
    )


def _none(n_labels: int) -> Waiting:
    return Waiting(np.zeros((0, n_labels)), np.zeros((0, n_labels)))


def sample(shape: tuple[int, int], most: int = _MOST_SCORES) -> slice | IntArray:
    """Choose the rows of a batch of labels, (n, l), that are monitored: up to ``most`` scores, from all over.

    Examples
    --------
    >>> sample((100, 10)), sample((100, 500))[:4].tolist()
    (slice(None, None, None), [0, 3, 6, 9])
    """
    n, n_labels = shape
    n_rows = min(n, max(_FEWEST_ROWS, most // max(n_labels, 1)))
    return slice(None) if n_rows == n else np.arange(n_rows) * n // n_rows


def add(watch: Watch, scores: FloatArray, labels: FloatArray) -> Watch:
    """Take in how some rows are predicted before they are learned; few rows wait until there are more."""
    if len(watch.waiting.scores):
        scores = np.concatenate([watch.waiting.scores, scores])
        labels = np.concatenate([watch.waiting.labels, labels])
    if len(scores) < _FEWEST_ROWS:
        return watch._replace(waiting=Waiting(scores.astype(float, copy=False), labels))
    return add_together(watch, scores, labels)._replace(waiting=_none(scores.shape[1]))


def add_together(watch: Watch, scores: FloatArray, labels: FloatArray) -> Watch:
    """Count the scores of some rows, and note their errors."""
    if len(watch.by_label.seen):
        by_label = thresholds.add_label_scores(watch.by_label, thresholds.adjusted(scores), labels)
        watch = watch._replace(by_label=by_label)
    watched = drift.add(watch.drift, drift.clipped_errors(scores, labels))
    return watch._replace(monitor=thresholds.monitor(watch.monitor, scores, labels), drift=watched)


def grow(watch: Watch, n_labels: int) -> Watch:
    """Add labels that were absent so far."""
    n_new = n_labels - watch.waiting.labels.shape[1]
    by_label = watch.by_label
    return watch._replace(
        monitor=thresholds.grow_monitor(watch.monitor, n_labels),
        waiting=Waiting(*(np.pad(part, ((0, 0), (0, n_new))) for part in watch.waiting)),
        by_label=thresholds.grow_label_histograms(by_label, n_labels) if len(by_label.seen) else by_label,
    )


def reordered(watch: Watch, labels: IntArray) -> Watch:
    """Put labels in another order."""
    by_label = watch.by_label
    if len(by_label.seen):
        by_label = LabelHistograms(by_label.seen[labels], by_label.present[labels])
    return watch._replace(
        monitor=thresholds.reordered_monitor(watch.monitor, labels),
        waiting=Waiting(*(part[:, labels] for part in watch.waiting)),
        by_label=by_label,
    )


def counted_anew(watch: Watch) -> Watch:
    """Empty the histograms, as the scores of another model are to be counted; what is known of labels stays."""
    waiting = Waiting(*(part[:0] for part in watch.waiting))
    return watch._replace(monitor=thresholds.counted_anew(watch.monitor), waiting=waiting)


def added(one: Watch, other: Watch) -> Watch:
    """Add what the monitored rows of two models have shown; of the errors, those of the first."""
    a, b = one.by_label, other.by_label
    return one._replace(
        monitor=thresholds.added_monitors(one.monitor, other.monitor),
        waiting=Waiting(*(part[:0] for part in one.waiting)),
        by_label=LabelHistograms(a.seen + b.seen, a.present + b.present),
    )


def example_f1(watch: Watch) -> tuple[float, float]:
    """Return the sum of the F of recent rows, as they were predicted before they were learned, and how many."""
    monitor = watch.monitor
    return float(monitor.f1[thresholds.best_share(monitor)]), monitor.f1_rows


def decide(watch: Watch, aim: str) -> Decision:
    """Read off what was counted how label sets are chosen for an aim of `labelrace.core.thresholds`."""
    # Thresholds of the labels' own leave nothing to the offsets.
    share = 0 if aim == "macro_f1" else thresholds.best_share(watch.monitor)
    rule = thresholds.make_rule(aim, watch.monitor.histograms[share], watch.by_label)
    return Decision(thresholds.SHARES[share] * watch.monitor.offsets, rule)
