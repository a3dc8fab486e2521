"""The monitored sample: rows that are predicted before they are learned, and what they have shown.

Their scores are counted (`labelrace.decisions.thresholds`), which gives thresholds and probabilities; their errors go
to a detector of drift (`labelrace.decisions.drift`). Few rows wait until there are enough of them to be counted
together.

Each label has an offset, which grows where it was predicted more often than it was present, and is subtracted from its
scores. How much of the offsets is subtracted, nothing, half or all, is decided by the example F of recent rows; each of
the three has its own histogram.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from labelrace.decisions import drift, score_loops, thresholds
from labelrace.decisions.drift import DriftState
from labelrace.decisions.row_buffer import RowBuffer
from labelrace.decisions.thresholds import LabelHistograms, Rule, ScoreHistogram
from labelrace.typing import FloatArray, IntArray

# The monitored sample of a batch: scores at the most, and rows at the least. One of 10,000 scores and 32 rows follows a
# model that learns too slowly: it costs up to .004 of the example F on texts with hundreds of labels.
_MOST_SCORES, _FEWEST_ROWS = 40_000, 128
# Rows that are counted together at the least.
_COUNTED_TOGETHER = 32
# Shares of the offsets to choose from, and what all of them may cost in example F: macro F gains more.
SHARES = np.array([0.0, 0.5, 1.0])
_WORTH = 0.006
# How far offsets move for each surplus prediction in so many rows and occurrences, and how far at the most.
_STEP, _STEP_ROWS, _STEP_MORE, _MOST_OFFSET = 0.03, 1000.0, 20.0, 0.15
# Rows after which half of the labels' frequencies, and half of the recent example F, is forgotten.
_FREQUENCY_HALF_LIFE, _F1_HALF_LIFE = 1000.0, 500.0


class Histograms(NamedTuple):
    """Counts of scores less each of `SHARES` of the offsets: for each share a `ScoreHistogram`."""

    counts: Annotated[FloatArray, thresholds.COUNTS_AXES, ">=0"]  # by share, its ``seen``, ``present`` and ``best``
    rows: Annotated[float, ">=0"]
    empty_rows: Annotated[FloatArray, "3", ">=0"]  # by share: of labels that are not known, the score is believed

    def of(self, share: int) -> ScoreHistogram:
        """Return the histogram of one of the shares."""
        seen, present, best = self.counts[share]
        return ScoreHistogram(seen, present, best, self.rows, float(self.empty_rows[share]))


class Monitor(NamedTuple):
    """What was counted of monitored rows: scores, how often labels are present and chosen, and the F of the rows."""

    histograms: Histograms  # counts of the scores less none, half or all of the offsets
    offsets: Annotated[FloatArray, "o"]  # how far a label's scores are too high
    present: Annotated[FloatArray, "o", ">=0"]  # how often labels were present
    rows: Annotated[float, ">=0"]  # rows that ``present`` comes from, forgotten ones less
    f1: Annotated[FloatArray, "3"]  # sums of the rows' F, with each share of the offsets
    f1_rows: Annotated[float, ">=0"]  # rows that ``f1`` comes from, forgotten ones less


def new_monitor(n_labels: int) -> Monitor:
    """Make a monitor that has seen nothing."""
    return Monitor(
        _joined([thresholds.new_histogram()] * len(SHARES)),
        np.zeros(n_labels),
        np.zeros(n_labels),
        0.0,
        np.zeros(len(SHARES)),
        0.0,
    )


def _joined(histograms: list[ScoreHistogram]) -> Histograms:
    """Put the histograms of all shares together."""
    counts = np.array([histogram[:3] for histogram in histograms])
    return Histograms(counts, histograms[0].rows, np.array([histogram.empty_rows for histogram in histograms]))


def grow_monitor(watched: Monitor, n_labels: int) -> Monitor:
    """Add labels that were absent so far."""
    n_new = n_labels - len(watched.offsets)
    return watched._replace(offsets=np.pad(watched.offsets, (0, n_new)), present=np.pad(watched.present, (0, n_new)))


def _reordered(watched: Monitor, labels: IntArray) -> Monitor:
    """Put labels in another order."""
    return watched._replace(offsets=watched.offsets[labels], present=watched.present[labels])


def _added(one: Monitor, other: Monitor) -> Monitor:
    """Add what two models have counted; offsets are the mean, by the rows that each has seen."""
    a, b = one.histograms, other.histograms
    rows = one.rows + other.rows
    share = other.rows / rows if rows else 0.0
    return Monitor(
        Histograms(a.counts + b.counts, a.rows + b.rows, a.empty_rows + b.empty_rows),
        one.offsets + share * (other.offsets - one.offsets),
        one.present + other.present,
        rows,
        one.f1 + other.f1,
        one.f1_rows + other.f1_rows,
    )


def best_share(watched: Monitor) -> int:
    """Find the place of the share of the offsets with the best example F on recent rows."""
    return int(np.argmax(watched.f1 / max(watched.f1_rows, 1.0) + _WORTH * SHARES))


def monitor(
    watched: Monitor, scores: FloatArray, labels: FloatArray, *, compiled: bool = False
) -> tuple[Monitor, FloatArray]:
    """Take in the scores of some rows that were not learned yet, and their labels; NaN is a label not known.

    Returns also the errors of the rows (`drift.clipped_errors`). With ``compiled``, a compiled loop counts, which
    gives the same.
    """
    n = len(scores)
    count = _count_compiled if compiled and watched.histograms.rows else _count
    histograms, f1, surplus, present, errors = count(watched, scores, labels)
    keep = 0.5 ** (n / _FREQUENCY_HALF_LIFE)
    frequency, rows = keep * watched.present + present, keep * watched.rows + n
    step = _STEP * surplus[best_share(watched)] / (_STEP_ROWS * frequency / rows + _STEP_MORE)
    offsets = np.minimum(np.maximum(watched.offsets + step, -_MOST_OFFSET), _MOST_OFFSET)
    keep = 0.5 ** (n / _F1_HALF_LIFE)
    after = Monitor(histograms, offsets, frequency, rows, keep * watched.f1 + f1, keep * watched.f1_rows + n)
    return after, errors


class _Counts(NamedTuple):
    """What some rows show."""

    histograms: Histograms  # with their scores, less shares of the offsets
    f1: FloatArray  # (3,): sums of the rows' F, with each share
    surplus: FloatArray  # (3, l): how much more often labels were chosen than present, with each share
    present: FloatArray  # (l,): how often labels were present
    errors: FloatArray  # (n,): errors of the rows


def _count(watched: Monitor, scores: FloatArray, labels: FloatArray) -> _Counts:
    errors, scores = drift.clipped_errors(scores, labels), thresholds.adjusted(scores)
    known, present = ~np.isnan(labels), labels > 0
    histograms, f1, surplus = [], [], []
    for place, share in enumerate(SHARES):
        before = watched.histograms.of(place)
        z = scores - share * watched.offsets
        counted = thresholds.add_scores(before, z, labels)
        # Rows are judged by what was known before them, if anything was.
        rule = thresholds.make_rule("cardinality", before if before.rows else counted, None)
        chosen = thresholds.choose(rule, z) & known
        sizes = chosen.sum(axis=1) + present.sum(axis=1)
        of_rows = np.where(sizes > 0, 2.0 * (chosen & present).sum(axis=1) / np.maximum(sizes, 1), 1.0)
        histograms.append(counted)
        f1.append(of_rows.sum())
        surplus.append(chosen.sum(axis=0) - present.sum(axis=0))
    return _Counts(_joined(histograms), np.array(f1), np.array(surplus), present.sum(axis=0), errors)


def _count_compiled(watched: Monitor, scores: FloatArray, labels: FloatArray) -> _Counts:
    """Do as `_count`, where something was known before."""
    (n, n_labels), n_shares, before = scores.shape, len(SHARES), watched.histograms
    counts, n_empty, errors = np.empty_like(before.counts), np.empty(n_shares), np.empty(n)
    f1, surplus, present = np.empty(n_shares), np.zeros((n_shares, n_labels)), np.zeros(n_labels)
    keep = 0.5 ** (n / thresholds.HALF_LIFE)
    # As NumPy has the sum: where scores above several bins are as many as that, its rounding decides.
    known = before.counts, before.empty_rows, before.counts[:, 1].sum(axis=1), before.rows, keep
    written = counts, n_empty, f1, surplus, present, errors
    score_loops.count(scores, labels, watched.offsets, SHARES, *known, thresholds.SETTLED, *written)
    return _Counts(Histograms(counts, before.rows * keep + n, n_empty), f1, surplus, present, errors)


class Watch(NamedTuple):
    """All that a model knows of its monitored rows: the counts, the rows that are to be counted, and the errors."""

    monitor: Monitor  # counts of scores, and offsets, for thresholds and probabilities
    # Scores and labels of monitored rows that are not counted yet: an array, or a `RowBuffer` of them.
    waiting: Annotated[FloatArray, "2 _n o", "nan"]
    by_label: LabelHistograms  # counts for each label, where thresholds are the labels' own; otherwise of none
    drift: DriftState  # errors of recent batches


class Decision(NamedTuple):
    """How label sets are chosen: ``offsets`` are subtracted from the scores, then the rule is applied."""

    offsets: FloatArray
    rule: Rule


def begin(n_labels: int, *, by_label: bool = False) -> Watch:
    """Make what is known before the first row; ``by_label`` where thresholds are to be the labels' own."""
    return Watch(
        new_monitor(n_labels),
        _none(n_labels),
        thresholds.new_label_histograms(n_labels if by_label else 0),
        drift.empty(),
    )


def _none(n_labels: int) -> FloatArray:
    return np.zeros((2, 0, n_labels))


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


def add(watch: Watch, scores: FloatArray, labels: FloatArray, *, compiled: bool = False) -> Watch:
    """Take in how some rows are predicted before they are learned; few rows wait until there are more."""
    waiting: Any = watch.waiting
    n_rows = waiting.shape[1] + len(scores)
    if waiting.shape[1] or n_rows < _COUNTED_TOGETHER:
        buffer = waiting if type(waiting) is RowBuffer else RowBuffer.of(waiting, _COUNTED_TOGETHER)
        waiting = buffer.appended(scores, labels)
        if n_rows < _COUNTED_TOGETHER:
            return Watch(watch.monitor, waiting, watch.by_label, watch.drift)
        scores, labels = np.asarray(waiting)
    return add_together(watch, scores, labels, compiled=compiled)._replace(waiting=_none(scores.shape[1]))


def room_for_row(watch: Watch) -> tuple[RowBuffer, FloatArray] | None:
    """Make room for one more row that waits (`RowBuffer.with_room`); None if it is to be counted, or `add` must."""
    waiting: Any = watch.waiting
    is_ready = type(waiting) is RowBuffer and waiting.shape[1] + 1 < _COUNTED_TOGETHER
    return waiting.with_room() if is_ready else None


def add_together(watch: Watch, scores: FloatArray, labels: FloatArray, *, compiled: bool = False) -> Watch:
    """Count the scores of some rows, and note their errors."""
    if len(watch.by_label.seen):
        by_label = thresholds.add_label_scores(watch.by_label, thresholds.adjusted(scores), labels)
        watch = watch._replace(by_label=by_label)
    watched, errors = monitor(watch.monitor, scores, labels, compiled=compiled)
    return watch._replace(monitor=watched, drift=drift.add(watch.drift, errors))


def grow(watch: Watch, n_labels: int) -> Watch:
    """Add labels that were absent so far."""
    n_new = n_labels - watch.waiting.shape[2]
    by_label = watch.by_label
    return watch._replace(
        monitor=grow_monitor(watch.monitor, n_labels),
        waiting=np.pad(np.asarray(watch.waiting), ((0, 0), (0, 0), (0, n_new))),
        by_label=thresholds.grow_label_histograms(by_label, n_labels) if len(by_label.seen) else by_label,
    )


def reordered(watch: Watch, labels: IntArray) -> Watch:
    """Put labels in another order."""
    by_label = watch.by_label
    if len(by_label.seen):
        by_label = LabelHistograms(by_label.seen[labels], by_label.present[labels])
    return watch._replace(
        monitor=_reordered(watch.monitor, labels),
        waiting=np.asarray(watch.waiting)[:, :, labels],
        by_label=by_label,
    )


def half_at_most(watch: Watch) -> Watch:
    """Let no more than half of the offsets be taken, for now.

    Models that were joined from shares make all of them look cheaper than they are: on delicious they would cost .005
    of the example F, of which monitored rows show half.
    """
    f1 = watch.monitor.f1.copy()
    f1[-1] = min(f1[-1], f1[-2] - _WORTH * max(watch.monitor.f1_rows, 1.0))
    return watch._replace(monitor=watch.monitor._replace(f1=f1))


def without_waiting(watch: Watch) -> Watch:
    """Leave out rows that wait to be counted: their scores are those of another model."""
    return watch._replace(waiting=_none(watch.waiting.shape[2]))


def added(one: Watch, other: Watch) -> Watch:
    """Add what the monitored rows of two models have shown; of the errors, those of the first."""
    a, b = one.by_label, other.by_label
    return one._replace(
        monitor=_added(one.monitor, other.monitor),
        waiting=_none(one.waiting.shape[2]),
        by_label=LabelHistograms(a.seen + b.seen, a.present + b.present),
    )


def decide(watch: Watch, aim: str) -> Decision:
    """Read off what was counted how label sets are chosen for an aim of `labelrace.decisions.thresholds`."""
    # Thresholds of the labels' own leave nothing to the offsets.
    share = 0 if aim == "macro_f1" else best_share(watch.monitor)
    rule = thresholds.make_rule(aim, watch.monitor.histograms.of(share), watch.by_label)
    return Decision(SHARES[share] * watch.monitor.offsets, rule)
