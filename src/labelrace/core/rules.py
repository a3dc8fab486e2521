"""Which labels to predict, given their scores: one rule for each aim.

=================== ==================================================================================================
aim                 rule
=================== ==================================================================================================
cardinality         scores above a threshold that keeps the predicted label cardinality near the observed one; a row
                    with none gets its best label, unless rows without labels are that common
hamming_loss        labels that are more likely present than absent
subset_accuracy     the same, but a row with none gets its best label as above
micro_f1            scores above the threshold with the best micro F on the rows of late
macro_f1            scores above a threshold of each label's own, with its best F on the rows of late
example_f1,         for each row the number of best labels with the best expected measure, nearly, taking labels as
example_accuracy    independent given the row; none only where rows without labels were seen. Where they were not, both
                    aims choose alike
=================== ==================================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.core import tally
from labelrace.core.tally import Tally
from labelrace.typing import BoolArray, FloatArray, IntArray

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
# Share of rows without labels from which on they are as likely as independent labels say; fewer make them less so.
_FEW_BARE = 0.01
# Labels of a row that are put in order at the least.
_FEWEST_SORTED = 32


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
    bare : float
        How much to believe in rows without labels, from 0, as none was seen, to 1.
    probabilities : (bins,) array
        Of a label being present, by its score.
    """

    aim: str
    threshold: float
    thresholds: FloatArray | float
    floor: float
    bare: float
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
    bare = min(1.0, counts.bare / (_FEW_BARE * counts.rows)) if counts.rows else 1.0
    return Chooser(aim, common, thresholds, tally.floor(counts), bare, likely)


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
    if chooser.aim in ("cardinality", "subset_accuracy") and not has_some.all():
        bare = np.flatnonzero(~has_some)
        best = scores[bare].argmax(axis=1)
        filled = scores[bare, best] > chooser.floor
        chosen[bare[filled], best[filled]] = True
    return chosen


def probabilities(chooser: Chooser, scores: FloatArray) -> FloatArray:
    """Compute how likely labels are present, by what such scores were worth of late.

    Between the centres of bins as `np.interp` does it, but bins are equally wide: nothing has to be searched.
    """
    steps, last = chooser.probabilities, len(tally.CENTRES) - 1
    # Python's numbers, as NumPy's would make double precision of single.
    lowest, highest = float(tally.CENTRES[0]), float(tally.CENTRES[-1])
    place = (scores - lowest) * (last / (highest - lowest))
    np.clip(place, 0, last, out=place)
    below = np.minimum(place.astype(np.intp), last - 1)
    place -= below
    place *= np.diff(steps).take(below)
    place += steps.take(below)
    return np.minimum(place, 1.0, out=place)


def _by_row(chooser: Chooser, scores: FloatArray) -> BoolArray:
    likely = probabilities(chooser, scores)
    total = likely.sum(axis=1, keepdims=True)
    none = chooser.bare * (1.0 - likely).prod(axis=1)
    # Few labels of many can pay, so that only the best need to be in order; where more might, all are.
    n_best = min(scores.shape[1], max(_FEWEST_SORTED, int(8 * total.max())))
    order = _best_first(scores, n_best)
    expected = _expected(chooser.aim, np.take_along_axis(likely, order, axis=1), total, none)
    if n_best < scores.shape[1] and (2.0 * total[:, 0] > n_best * expected.max(axis=1)).any():
        order = _best_first(scores, scores.shape[1])
        expected = _expected(chooser.aim, np.take_along_axis(likely, order, axis=1), total, none)
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

    The size is F's mean of both sizes, or accuracy's union. That comes close to the expected measure, for F where the
    size is that of rows with a label: others have no hits, whatever the size.
    """
    hits, sizes = np.cumsum(likely, axis=1), np.arange(1, likely.shape[1] + 1)
    if aim == "example_f1":
        return 2.0 * hits / (sizes + total / np.maximum(1.0 - none, 1e-300)[:, None])
    return hits / (sizes + total - hits)
