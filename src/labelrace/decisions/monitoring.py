"""The monitored sample: rows that are predicted before they are learned, and what they have shown.

Their scores are counted (`labelrace.decisions.histogram`), which gives thresholds and probabilities; their errors go
to a detector of drift (`labelrace.decisions.drift`). Few rows wait until there are enough of them to be counted
together.

*Label sets.* Each label has an offset, which grows where it was predicted more often than it was present, and is
subtracted from its scores. How much of the offsets is subtracted, nothing, half or all, is decided by the example F1 of
recent rows.

*Ranking.* Offsets are good for label sets, and bad for the order of a row's labels. Scores of rare labels are shrunken
more than those of frequent ones. So labels are ranked by their scores, or by these over a small power of the labels'
frequencies, whichever has the better nDCG@5 on recent rows. Probabilities are those of the ranking, so that they are in
the same order.

Each of the four ways to adjust scores has its own histogram; the first, without offsets and power, serves both.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.decisions import drift, histogram, rules
from labelrace.decisions.drift import DriftState
from labelrace.decisions.histogram import LabelHistograms, ScoreHistograms
from labelrace.decisions.rules import Rule
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# The monitored sample of a batch: most scores, and fewest rows. One of 10,000 scores and 32 rows follows a model that
# learns too slowly: it costs up to .004 of the example F1 on texts with hundreds of labels.
_MOST_SCORES, _FEWEST_ROWS = 40_000, 128
# Fewest rows that are counted together.
_COUNTED_TOGETHER = 32
# Shares of the offsets to choose from, and what all of them may cost in example F1: macro F1 gains more.
SHARES = np.array([0.0, 0.5, 1.0])
_WORTH = 0.006
# Powers of the labels' frequencies to choose from, which scores are divided by to rank labels.
POWERS = np.array([0.0, 0.09])
# Labels of a row whose order counts, and rows after which half of the recent nDCG is forgotten.
_RANKED, _NDCG_HALF_LIFE = 5, 2000.0
# Labels of a row that might be among these, whatever the power.
_LIKELY = 24
_DISCOUNTS = 1.0 / np.log2(np.arange(2, _RANKED + 2))
# Rows after which half of the rows of each label is forgotten.
_LABEL_HALF_LIFE = 8000.0
# How far offsets move for a surplus prediction, by rows and occurrences, and how far they may go.
_STEP, _STEP_ROWS, _STEP_MORE, _MOST_OFFSET = 0.03, 1000.0, 20.0, 0.15
# Rows after which half of the labels' frequencies, and half of the recent example F1, is forgotten.
_FREQUENCY_HALF_LIFE, _F1_HALF_LIFE = 1000.0, 500.0


class Counts(NamedTuple):
    """What was counted: scores, how often labels are present and chosen, and the F1 of the rows."""

    # Counts of the scores less each of `SHARES` of the offsets, then over the second of `POWERS`.
    histograms: ScoreHistograms
    offsets: Annotated[FloatArray, "o"]  # how far a label's scores are too high
    present: Annotated[FloatArray, "o"]  # how often labels were present
    rows: float  # rows that ``present`` comes from, forgotten ones less
    f1: Annotated[FloatArray, "3"]  # sums of the rows' F1, with each share of the offsets
    f1_rows: float  # rows that ``f1`` comes from, forgotten ones less
    last_f1: Annotated[FloatArray, "_r"]  # F1 of the rows that were counted last
    ndcg: Annotated[FloatArray, "2"]  # sums of the rows' nDCG@5, with each of `POWERS`


class Monitor(NamedTuple):
    """What a model knows of its monitored rows: the counts, the rows that are to be counted, and the errors."""

    counts: Counts  # counts of scores, and offsets, for thresholds and probabilities
    waiting: Annotated[Array, "2 _n o", "float"]  # scores and labels of rows that are not counted yet
    by_label: LabelHistograms  # counts for each label, where thresholds are the labels' own; otherwise of none
    drift: DriftState  # errors of recent batches
    label_rows: Annotated[FloatArray, "o"]  # rows that had each label, of all that were learned, older ones less


class Decision(NamedTuple):
    """How label sets are chosen: ``offsets`` are subtracted from the scores, then the rule is applied."""

    offsets: FloatArray
    rule: Rule


class Ranking(NamedTuple):
    """How labels are ranked: by scores times ``factors``; the rule has the probabilities."""

    factors: FloatArray
    rule: Rule


def init(n_labels: int, *, by_label: bool = False) -> Monitor:
    """Make a monitor that has seen nothing; ``by_label`` where thresholds are to be the labels' own."""
    labels = histogram.init_labels(n_labels if by_label else 0)
    return Monitor(init_counts(n_labels), np.zeros((2, 0, n_labels)), labels, drift.init(), np.zeros(n_labels))


def init_counts(n_labels: int) -> Counts:
    """Make counts of no rows."""
    none = np.zeros(n_labels)
    return Counts(
        ScoreHistograms.empty(), none, none, 0.0, np.zeros(len(SHARES)), 0.0, np.zeros(0), np.zeros(len(POWERS))
    )


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
    """Record the scores of rows before they are learned; few rows wait until there are more."""
    if monitor.waiting.shape[1] or len(scores) < _COUNTED_TOGETHER:
        few = np.array([scores, labels], scores.dtype)
        waiting = np.concatenate([monitor.waiting, few], axis=1) if monitor.waiting.shape[1] else few
        if waiting.shape[1] < _COUNTED_TOGETHER:
            return monitor._replace(waiting=waiting)
        scores, labels = waiting
    return count_rows(monitor, scores, labels)._replace(waiting=monitor.waiting[:, :0])


def count_rows(monitor: Monitor, scores: FloatArray, labels: FloatArray) -> Monitor:
    """Count the scores of some rows, and note their errors."""
    by_label = monitor.by_label
    if len(by_label.seen):
        by_label = histogram.update_labels(by_label, rules.adjusted(scores), labels)
    return monitor._replace(
        counts=update_counts(monitor.counts, scores, labels, monitor.label_rows),
        by_label=by_label,
        drift=drift.update(monitor.drift, drift.clipped_errors(scores, labels)),
    )


def count_labels(monitor: Monitor, Y: AnyMatrix) -> Monitor:
    """Count the labels of all rows of a batch."""
    n, n_labels = Y.shape
    known = monitor.label_rows * 0.5 ** (n / _LABEL_HALF_LIFE)
    if scipy.sparse.issparse(Y):
        return monitor._replace(label_rows=known + np.bincount(Y.indices[Y.data > 0], minlength=n_labels))
    return monitor._replace(label_rows=known + np.count_nonzero(Y > 0, axis=0))


def ranking_factors(label_rows: FloatArray, power: float) -> FloatArray:
    """Compute what scores are multiplied by to rank labels: 1 for a label of the usual frequency, more for rare ones.

    Examples
    --------
    >>> ranking_factors(np.array([1.0, 10.0, 100.0]), 0.1).round(2)
    array([1.55, 1.23, 0.98])
    """
    logs = np.log(np.maximum(label_rows, 1.0))
    usual = float(label_rows @ logs) / max(float(label_rows.sum()), 1.0)
    return np.exp(power * (usual - logs))


def update_counts(counts: Counts, scores: FloatArray, labels: FloatArray, label_rows: FloatArray) -> Counts:
    """Count the scores of some rows that were not learned yet, and their labels; NaN is a label not known.

    ``label_rows`` tells how frequent labels are.
    """
    n, present, unknown = len(scores), labels > 0, np.isnan(labels)
    n_present = present.sum(axis=0)
    # Scores less each share of the offsets, then over a power of the frequencies: (4, n, l).
    n_shares, dtype = len(SHARES), scores.dtype
    factors = ranking_factors(label_rows, POWERS[1]).astype(dtype)
    plain, for_ranking = rules.adjusted(np.array([scores, scores * factors]))
    for_sets = plain - (SHARES[:, None, None] * counts.offsets).astype(dtype)
    z = np.concatenate([for_sets, for_ranking[None]])
    histograms = histogram.update(counts.histograms, z, labels)
    # Rows are judged by what was known before them, if anything was.
    known = counts.histograms if counts.histograms.rows else histograms
    thresholds, floors = rules.threshold_and_floor(known)
    chosen = rules.choose_above(for_sets, thresholds[:n_shares, None, None], floors[:n_shares, None]) & ~unknown
    ndcg = _ndcg(scores, factors, present, unknown)
    f1, share = example_f1(chosen, present, present.sum(axis=1)), best_share(counts)
    surplus = chosen[share].sum(axis=0) - n_present
    keep = 0.5 ** (n / _FREQUENCY_HALF_LIFE)
    frequency, rows = keep * counts.present + n_present, keep * counts.rows + n
    step = _STEP * surplus / (_STEP_ROWS * frequency / rows + _STEP_MORE)
    offsets = np.minimum(np.maximum(counts.offsets + step, -_MOST_OFFSET), _MOST_OFFSET)
    keep = 0.5 ** (n / _F1_HALF_LIFE)
    sums, f1_rows = keep * counts.f1 + f1.sum(axis=1), keep * counts.f1_rows + n
    ndcg = 0.5 ** (n / _NDCG_HALF_LIFE) * counts.ndcg + ndcg.sum(axis=1)
    return Counts(histograms, offsets, frequency, rows, sums, f1_rows, f1[share], ndcg)


def _ndcg(scores: FloatArray, factors: FloatArray, present: BoolArray, unknown: BoolArray) -> FloatArray:
    """Compute the nDCG@5 of rows, (2, n), whose labels are ranked by scores, and by scores times factors.

    Of a row without a label it is 0. Few labels have a chance to be among the first: only these are ranked.
    """
    n_likely, n_ranked = min(_LIKELY, scores.shape[1]), min(_RANKED, scores.shape[1])
    ideal = np.append(0.0, np.cumsum(_DISCOUNTS))[np.minimum(present.sum(axis=1), n_ranked)]
    likely = np.argpartition(-scores, n_likely - 1, axis=1)[:, :n_likely]
    highest = np.take_along_axis(np.where(unknown, -np.inf, scores), likely, axis=1)
    order = np.argsort([-highest, -highest * factors[likely]], axis=-1)[..., :n_ranked]
    hits = np.take_along_axis(np.take_along_axis(present, likely, axis=1)[None], order, axis=-1)
    return hits @ _DISCOUNTS[:n_ranked] / np.maximum(ideal, 1.0)


def example_f1(chosen: BoolArray, present: BoolArray, n_present: IntArray) -> FloatArray:
    """Compute the F1 of rows of which some labels are looked at, of all ``n_present`` that they have."""
    sizes = chosen.sum(axis=-1) + n_present
    return np.where(sizes > 0, 2.0 * (chosen & present).sum(axis=-1) / np.maximum(sizes, 1), 1.0)


def best_share(counts: Counts) -> int:
    """Find the index of the share of the offsets with the best example F1 on recent rows."""
    return int(np.argmax(counts.f1 / max(counts.f1_rows, 1.0) + _WORTH * SHARES))


def decide(monitor: Monitor, aim: str) -> Decision:
    """Compute the decision rule for an aim of `labelrace.decisions.rules` from the counts."""
    # Thresholds of the labels' own leave nothing to the offsets.
    share = 0 if aim == "macro_f1" else best_share(monitor.counts)
    rule = rules.make_rule(aim, monitor.counts.histograms.of(share), monitor.by_label)
    return Decision(SHARES[share] * monitor.counts.offsets, rule)


def rank(monitor: Monitor) -> Ranking:
    """Compute the ranking of the labels and their probabilities from the counts."""
    best = int(np.argmax(monitor.counts.ndcg))
    rule = rules.make_rule("cardinality", monitor.counts.histograms.of(-1 if best else 0), None)
    return Ranking(ranking_factors(monitor.label_rows, POWERS[best]), rule)


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
    f1, ndcg = (a.f1 + b.f1, a.f1_rows + b.f1_rows, a.last_f1), a.ndcg + b.ndcg
    return Monitor(
        Counts(histograms, offsets, a.present + b.present, rows, *f1, ndcg),
        one.waiting[:, :0],
        LabelHistograms(seen, present),
        one.drift,
        one.label_rows + other.label_rows,
    )
