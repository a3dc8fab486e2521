"""Which labels to predict, given their scores: one rule for each aim.

=================== ==================================================================================================
aim                 rule
=================== ==================================================================================================
cardinality         scores above a threshold that keeps the predicted label cardinality near the observed one; a row
                    with none gets its best label, unless rows without labels are that common
hamming_loss,       labels that are more likely present than absent
subset_accuracy
micro_f1            scores above the threshold with the best micro F on the rows of late
macro_f1            scores above a threshold of each label's own, with its best F on the rows of late
example_f1,         for each row the number of best labels with the best expected measure, nearly, taking labels as
example_accuracy    independent given the row
=================== ==================================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.decision import tally
from labelrace.decision.tally import Tally
from labelrace.typing import BoolArray, FloatArray

__all__ = [
    "AIMS",
    "Chooser",
    "LabelTally",
    "add_labels",
    "choose",
    "empty_labels",
    "grow_labels",
    "make",
    "probabilities",
]

AIMS = (
    "cardinality", "hamming_loss", "subset_accuracy", "micro_f1", "macro_f1", "example_f1", "example_accuracy",
)  # fmt: skip
# Coarser bins for the thresholds of single labels, and the rows that the common threshold counts for beside them.
_MERGED, _PRIOR_ROWS = 8, 20.0


class LabelTally(NamedTuple):
    """Counts for each label, (l, bins): of all scores, and of those where it was present."""

    seen: FloatArray
    present: FloatArray


class Chooser(NamedTuple):
    """What a rule needs.

    Attributes
    ----------
    aim : str
    threshold : float
        The common threshold; decision scores are taken from it.
    thresholds : (l,) array or float
        The same, or each label's.
    floor : float
        Best score below which a row is left without labels.
    probabilities : (bins,) array
        Of a label being present, by its score.
    """

    aim: str
    threshold: float
    thresholds: FloatArray | float
    floor: float
    probabilities: FloatArray


def empty_labels(n_labels: int) -> LabelTally:
    """Make counts of nothing."""
    shape = (n_labels, len(tally.CENTRES) // _MERGED)
    return LabelTally(np.zeros(shape), np.zeros(shape))


def grow_labels(counts: LabelTally, n_labels: int) -> LabelTally:
    """Add labels that nothing is known of."""
    more = empty_labels(n_labels - len(counts.seen))
    return LabelTally(np.vstack([counts.seen, more.seen]), np.vstack([counts.present, more.present]))


def add_labels(counts: LabelTally, scores: FloatArray, labels: FloatArray) -> LabelTally:
    """Count the scores of some rows for each label; NaN is a label not known."""
    n_labels, n_bins = counts.seen.shape
    place = tally.bins(scores) // _MERGED + n_bins * np.arange(n_labels)
    seen = np.bincount(place[~np.isnan(labels)], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    present = np.bincount(place[labels == 1], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    # Single labels are rare: they are remembered longer than the stream as a whole.
    keep = 0.5 ** (len(scores) / (10 * tally.HALF_LIFE))
    return LabelTally(counts.seen * keep + seen, counts.present * keep + present)


def make(aim: str, counts: Tally, by_label: LabelTally) -> Chooser:
    """Read off the counts what the rule needs."""
    common, likely = tally.threshold(counts), tally.probabilities(counts)
    thresholds: FloatArray | float = common
    if aim in ("hamming_loss", "subset_accuracy"):
        even = int(np.searchsorted(likely, 0.5))
        thresholds = common = float(tally.EDGES[even])
    elif aim == "micro_f1":
        thresholds = common = float(tally.EDGES[_best_f(counts.seen, counts.present)])
    elif aim == "macro_f1":
        thresholds = _label_thresholds(counts, by_label)
    return Chooser(aim, common, thresholds, tally.floor(counts), likely)


def _best_f(seen: FloatArray, present: FloatArray) -> FloatArray:
    """Find the bin from which on to predict for the best F, in the last axis; of equals the highest."""
    predicted, hit = (np.cumsum(c[..., ::-1], axis=-1)[..., ::-1] for c in (seen, present))
    with np.errstate(invalid="ignore"):
        measure = np.nan_to_num(2.0 * hit / (predicted + hit[..., :1]))
    return measure.shape[-1] - 1 - np.argmax(measure[..., ::-1], axis=-1)


def _label_thresholds(counts: Tally, by_label: LabelTally) -> FloatArray:
    coarse = [c.reshape(-1, _MERGED).sum(axis=1) for c in (counts.seen, counts.present)]
    n_labels = len(by_label.seen)
    share = _PRIOR_ROWS / max(counts.rows, 1.0) / n_labels
    best = _best_f(by_label.seen + share * coarse[0], by_label.present + share * coarse[1])
    return tally.EDGES[best * _MERGED]


def choose(chooser: Chooser, scores: FloatArray) -> BoolArray:
    """Tell which labels to predict, (n, l)."""
    if chooser.aim in ("example_f1", "example_accuracy"):
        return _by_row(chooser, scores)
    chosen = scores > chooser.thresholds
    has_some = chosen.any(axis=1)
    if chooser.aim == "cardinality" and not has_some.all():
        bare = np.flatnonzero(~has_some)
        best = scores[bare].argmax(axis=1)
        filled = scores[bare, best] > chooser.floor
        chosen[bare[filled], best[filled]] = True
    return chosen


def probabilities(chooser: Chooser, scores: FloatArray) -> FloatArray:
    """Compute how likely labels are present, by what such scores were worth of late."""
    return np.interp(scores, tally.CENTRES, chooser.probabilities)


def _by_row(chooser: Chooser, scores: FloatArray) -> BoolArray:
    likely = probabilities(chooser, scores)
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(likely, order, axis=1), axis=1)
    sizes, total = np.arange(1, scores.shape[1] + 1), hits[:, -1:]
    with np.errstate(divide="ignore"):
        log_none = np.log1p(-np.minimum(likely, 1.0)).sum(axis=1, keepdims=True)
    # Expected hits over expected size: of F's mean of both sizes, or of accuracy's union. That comes close to the
    # expected measure, for F where the size is that of rows with a label: others have no hits, whatever the size.
    if chooser.aim == "example_f1":
        expected = 2.0 * hits / (sizes + total / np.maximum(-np.expm1(log_none), 1e-300))
    else:
        expected = hits / (sizes + total - hits)
    count = 1 + np.argmax(expected, axis=1)
    # A row is best left alone where having no label is likelier than what the best set promises.
    count[np.exp(log_none[:, 0]) > expected.max(axis=1)] = 0
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order, sizes <= count[:, None], axis=1)
    return chosen
