"""From scores to label sets: one rule for each aim, read off the histograms of recent scores.

For the default, compressed labels and the linear models of `labelrace.related`. Other methods decide in `predict`, by
default where a score is positive.

Three things are read off a histogram (`labelrace.decisions.histogram`). The *threshold* is the score with about as many
scores above it as there are labels present: the predicted label cardinality is then near that of the stream. How near,
from a tenth less to a twelfth more, is decided by the micro F1 that the histogram has there. The *floor* is the score
below which a row's best label is not predicted, so that as many rows are left empty as are empty in truth. And the
share of present labels among the scores of a bin is their *probability* (`labelrace.decisions.calibration`).

Before they are counted, scores are *adjusted*. A tenth of the row's best score is subtracted from all of its scores: a
label that is far behind the best is rarely present, whatever its own score. And each label has an offset, which
`labelrace.decisions.monitoring` keeps.

=================== ==================================================================================================
aim                 rule
=================== ==================================================================================================
cardinality         scores above a threshold that keeps the predicted label cardinality near the observed one; a row
                    with none gets its best label, unless rows without labels are that common
hamming_loss        labels that are more likely present than absent
subset_accuracy     the same, but a row with none gets its best label as above
micro_f1            scores above the threshold with the best micro F1 on recent rows
macro_f1            scores above a threshold for each label, half-way from the common one to that with its best F1 on
                    recent rows: all the way gains little macro F1, and costs example F1; a row with none as above
example_f1,         for each row the number of best labels with the best expected measure, approximately, taking labels
example_accuracy    as independent given the row; no labels only if rows without labels were seen. If none were seen,
                    both aims choose alike
=================== ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labelrace.decisions import calibration
from labelrace.decisions.histogram import (
    COARSE,
    EDGES,
    N_BINS,
    WIDTH,
    LabelHistograms,
    ScoreHistogram,
    ScoreHistograms,
)
from labelrace.typing import BoolArray, FloatArray, IntArray

AIMS = (
    "cardinality", "hamming_loss", "subset_accuracy", "micro_f1", "macro_f1", "example_f1", "example_accuracy",
)  # fmt: skip
OF_BEST = 0.1
"""Share of the row's best score that is subtracted from all of them."""

# Rows that the common threshold counts for beside those of a label, and how far thresholds go to the labels' own.
_PRIOR_ROWS, _OWN_THRESHOLD = 20.0, 0.5
# Share of rows without labels from which on they are as likely as independent labels say; fewer make them less so.
_FEW_EMPTY = 0.01
# Fewest labels of a row that are sorted.
_FEWEST_SORTED = 32
# Labels predicted for each label that is present: at least, and at most.
_LEAST_SHARE, _LARGEST_SHARE = 0.9, 1.08
# What the micro F1 must gain for each 1.0 that this differs from one.
_WORTH_OF_SHARE = 0.02
# Bins of a gap between scores that a threshold is put into the middle of, and the share of scores that may be inside.
_WIDE_GAP, _NEARLY = 16, 0.005
# Present labels that a histogram must have counted for its micro F1 to be used.
_FEW_PRESENT = 100.0


@dataclass(frozen=True)
class Rule:
    """What choosing label sets needs."""

    aim: str
    threshold: float  # the common threshold, which is subtracted from decision scores
    thresholds: FloatArray | float  # (l,) or float: the same, or each label's
    floor: float  # best score below which a row is left without labels
    empty_row_trust: float  # how far rows without labels are believed in, from 0, as none was seen, to 1
    counts: ScoreHistogram  # what the probabilities are read off

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of a label by the bin of its score; computed on demand."""
        return calibration.calibrate(self.counts)


def make_rule(aim: str, counts: ScoreHistogram, by_label: LabelHistograms | None, n_missed: float = 0.0) -> Rule:
    """Read off the histograms what the rule needs; those of single labels are for the aim "macro_f1".

    ``n_missed`` are labels that were present but not among those that had a score.
    """
    common, floor = map(float, threshold_and_floor(counts, n_missed))
    thresholds: FloatArray | float = common
    if aim in ("hamming_loss", "subset_accuracy"):
        even = int(np.searchsorted(calibration.calibrate(counts), 0.5))
        thresholds = common = float(EDGES[even])
    elif aim == "micro_f1":
        thresholds = common = float(EDGES[_best_f1(counts.seen, counts.present)])
    elif aim == "macro_f1":
        thresholds = common + _OWN_THRESHOLD * (_label_thresholds(counts, by_label) - common)
    empty_rows = min(1.0, counts.empty_rows / (_FEW_EMPTY * counts.rows)) if counts.rows else 1.0
    return Rule(aim, common, thresholds, floor, empty_rows, counts)


def threshold_and_floor(
    histogram: ScoreHistogram | ScoreHistograms, n_missed: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Find two scores: the common threshold, and the floor of a row's best score.

    Above the threshold are about as many scores as there were labels present, ``n_missed`` of them without a score.
    Below the floor are the best scores of as many rows as there were rows without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.decisions import histogram
    >>> scores, labels = np.array([[0.9, 0.4, 0.1], [0.8, 0.2, 0.0]]), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> threshold, floor = threshold_and_floor(histogram.update(histogram.init(), scores, labels))
    >>> bool(0.2 < threshold < 0.4), float(floor)
    (True, -inf)
    """
    seen, present, best, n_rows, n_empty = histogram
    above, hits, best_above = _counts_above(np.array([seen, present, best]))
    n_above = np.asarray(present.sum(axis=-1) + n_missed)
    for at, n_present in np.ndenumerate(n_above):
        if n_present < _FEW_PRESENT:
            continue
        # How many scores, as a share of the labels present, are to be above the threshold is told by their micro F1.
        shares = above[at][1:] / n_present
        near = slice(shares.searchsorted(_LEAST_SHARE), shares.searchsorted(_LARGEST_SHARE, side="right"))
        if near.start < near.stop:
            shares = shares[near]
            f1 = 2.0 * hits[at][1:][near] / n_present / (shares + 1.0)
            n_above[at] = n_present * shares[(f1 - _WORTH_OF_SHARE * np.abs(shares - 1.0)).argmax()]
    floors = _scores_with_above(best, best_above, np.asarray(n_rows - n_empty))
    floors = np.where(np.asarray(n_empty) > 0.0, floors, -np.inf if n_rows else np.inf)
    return _scores_with_above(seen, above, n_above), floors


def _counts_above(counts: FloatArray) -> FloatArray:
    """Count what is in the highest 0, 1, … bins."""
    above = np.zeros((*counts.shape[:-1], N_BINS + 1))
    np.add.accumulate(counts[..., ::-1], axis=-1, out=above[..., 1:])
    return above


def _scores_with_above(counts: FloatArray, above: FloatArray, n_above: FloatArray) -> FloatArray:
    """Find for each histogram the score with a given number of scores above it, which are spread evenly in a bin."""
    found = np.empty(n_above.shape)
    for at, n in np.ndenumerate(n_above):
        of_one, n_all = above[at], above[at][-1]
        # Where labels are told apart with ease, many scores have as many above them: the middle leaves room for change.
        nearly = max(_NEARLY * n, 0.5)
        low, high = of_one.searchsorted(n + nearly, side="right"), of_one.searchsorted(n - nearly)
        if n >= n_all > 0.0:
            found[at] = EDGES[0] - WIDTH
        elif n <= 0.0 or not n_all:
            found[at] = EDGES[-1]
        elif low - 1 - high >= _WIDE_GAP:
            found[at] = (EDGES[N_BINS + 1 - low] + EDGES[N_BINS - high]) / 2.0
        else:
            # The fewest bins with at least as many.
            n_bins = of_one.searchsorted(n)
            surplus, inside = of_one[n_bins] - n, counts[at][N_BINS - n_bins]
            found[at] = EDGES[N_BINS - n_bins] + WIDTH * (surplus / inside)
    return found


def _best_f1(seen: FloatArray, present: FloatArray) -> FloatArray:
    """Find the bin from which on to predict for the best F1, in the last axis; of equals the middle one."""
    predicted, hit = (np.cumsum(c[..., ::-1], axis=-1)[..., ::-1] for c in (seen, present))
    with np.errstate(invalid="ignore"):
        measure = np.nan_to_num(2.0 * hit / (predicted + hit[..., :1]))
    highest = measure.shape[-1] - 1 - np.argmax(measure[..., ::-1], axis=-1)
    return (np.argmax(measure, axis=-1) + highest + 1) // 2


def _label_thresholds(counts: ScoreHistogram, by_label: LabelHistograms | None) -> FloatArray:
    assert by_label is not None
    coarse = [c.reshape(-1, COARSE).sum(axis=1) for c in (counts.seen, counts.present)]
    n_labels = len(by_label.seen)
    share = _PRIOR_ROWS / max(counts.rows, 1.0) / n_labels
    best = _best_f1(by_label.seen + share * coarse[0], by_label.present + share * coarse[1])
    return EDGES[best * COARSE]


def adjusted(scores: FloatArray, offsets: FloatArray | float = 0.0) -> FloatArray:
    """Subtract a share of the row's best score, and the labels' offsets, from all scores.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted(np.array([[0.9, 0.2, 0.0], [-0.1, -0.3, -0.2]])).round(2)
    array([[ 0.81,  0.11, -0.09],
           [-0.1 , -0.3 , -0.2 ]])
    """
    # Python's numbers, as NumPy's would make double precision of single; and not `max`, which is slower for one row.
    lowered = scores - OF_BEST * np.maximum(np.maximum.reduce(scores, axis=-1, keepdims=True), 0.0)
    lowered -= offsets
    return lowered


def probabilities(rule: Rule, scores: FloatArray) -> FloatArray:
    """Compute how likely labels are present, by how often labels with such scores were present recently."""
    return calibration.interpolate(rule.probabilities, scores)


def choose(rule: Rule, scores: FloatArray) -> BoolArray:
    """Decide which labels to predict, (n, l), by their adjusted scores."""
    if rule.aim in ("example_f1", "example_accuracy"):
        return _choose_by_row(rule, scores)
    if rule.aim in ("cardinality", "subset_accuracy", "macro_f1"):
        return choose_above(scores, rule.thresholds, rule.floor)
    return scores > rule.thresholds


def choose_above(scores: FloatArray, thresholds: FloatArray | float, floor: FloatArray | float) -> BoolArray:
    """Choose the labels with scores above a threshold; a row with none gets its best label, if it is above the floor.

    Parameters
    ----------
    scores : (n, l) array, or (w, n, l) array of scores that are adjusted in several ways
    thresholds, floor : float or array
        Arrays, for such scores, have the shapes (w, 1, 1) and (w, 1).
    """
    chosen: BoolArray = scores > thresholds
    has_some = np.logical_or.reduce(chosen, axis=-1)
    if not np.logical_and.reduce(has_some, axis=None):
        empty_rows = np.nonzero(~has_some)
        best = (*empty_rows, scores[empty_rows].argmax(axis=-1))
        chosen[best] = scores[best] > np.broadcast_to(floor, has_some.shape)[empty_rows]
    return chosen


def _choose_by_row(rule: Rule, scores: FloatArray) -> BoolArray:
    """Choose for each row the number of best labels with the best expected measure."""
    likely = probabilities(rule, scores)
    total = likely.sum(axis=1, keepdims=True)
    none = rule.empty_row_trust * (1.0 - likely).prod(axis=1)
    # Few labels of many can pay, so that only the best need to be in order; where more might, all are.
    n_best = min(scores.shape[1], max(_FEWEST_SORTED, int(8 * total.max())))
    order = _best_first(scores, n_best)
    expected = _expected(rule.aim, np.take_along_axis(likely, order, axis=1), total, none)
    if n_best < scores.shape[1] and (2.0 * total[:, 0] > n_best * expected.max(axis=1)).any():
        order = _best_first(scores, scores.shape[1])
        expected = _expected(rule.aim, np.take_along_axis(likely, order, axis=1), total, none)
    count = 1 + np.argmax(expected, axis=1)
    # A row is best left alone where having no label is likelier than what the best set promises.
    count[none > expected.max(axis=1)] = 0
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(order.shape[1]) < count[:, None], axis=1)
    return chosen


def _best_first(scores: FloatArray, n_best: int) -> IntArray:
    """List the best labels of each row, in order; of equals the first."""
    if n_best == scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")
    best = np.sort(np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _expected(aim: str, likely: FloatArray, total: FloatArray, none: FloatArray) -> FloatArray:
    """Compute what the first 1, 2, 3, … labels are worth: expected hits over expected size.

    The size is F1's mean of both sizes, or accuracy's union. That comes close to the expected measure, for F1 where the
    size is that of rows with a label: others have no hits, whatever the size.
    """
    hits, sizes = np.cumsum(likely, axis=1), np.arange(1, likely.shape[1] + 1)
    if aim == "example_f1":
        return 2.0 * hits / (sizes + total / np.maximum(1.0 - none, 1e-300)[:, None])
    return hits / (sizes + total - hits)
