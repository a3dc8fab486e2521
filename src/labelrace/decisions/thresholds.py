"""From scores to probabilities and label sets: score histograms, calibration, and one rule for each aim.

Scores estimate the probability of a label by least squares: they lie around [0, 1], but nothing keeps them there, and
the scores of rare labels are small. So it is counted, over recent rows, how many scores fell into each of a few hundred
bins and how many of these labels were present. Older rows count for less: half after ``HALF_LIFE`` rows.

Three things are read off the histogram. The *threshold* is the score with about as many scores above it as there are
labels present: the predicted label cardinality is then near that of the stream. How near, from a tenth less to a
twelfth more, is decided by the micro F that the histogram has there. The *floor* is the score below which a row's best
label is not predicted, so that as many rows are left empty as are empty in truth. And the share of present labels among
the scores of a bin, made monotone by isotonic regression, is their calibrated *probability*.

Before they are counted, scores are *adjusted*. A tenth of the row's best score is subtracted from all of its scores: a
label that is far behind the best is rarely present, whatever its own score. And each label has an offset, which
`labelrace.decisions.monitor` keeps.

A rule turns these into label sets, one rule for each aim:

=================== ==================================================================================================
aim                 rule
=================== ==================================================================================================
cardinality         scores above a threshold that keeps the predicted label cardinality near the observed one; a row
                    with none gets its best label, unless rows without labels are that common
hamming_loss        labels that are more likely present than absent
subset_accuracy     the same, but a row with none gets its best label as above
micro_f1            scores above the threshold with the best micro F on recent rows
macro_f1            scores above a threshold for each label, with its best F on recent rows
example_f1,         for each row the number of best labels with the best expected measure, approximately, taking labels
example_accuracy    as independent given the row; no labels only if rows without labels were seen. If none were seen,
                    both aims choose alike
=================== ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from labelrace.typing import BoolArray, FloatArray, IntArray

AIMS = (
    "cardinality", "hamming_loss", "subset_accuracy", "micro_f1", "macro_f1", "example_f1", "example_accuracy",
)  # fmt: skip
# Coarser bins for the thresholds of single labels, and the rows that the common threshold counts for beside them.
_MERGED, _PRIOR_ROWS = 8, 20.0
# Share of rows without labels from which on they are as likely as independent labels say; fewer make them less so.
_FEW_EMPTY = 0.01
# Labels of a row that are put in order at the least.
_FEWEST_SORTED = 32
# Labels predicted for each label that is present: at the least, and at the most.
_LEAST_SHARE, _LARGEST_SHARE = 0.9, 1.08
# What the micro F must gain for each 1.0 that this differs from one.
_WORTH_OF_SHARE = 0.02
# Present labels that a histogram must have counted for its micro F to be used.
_FEW_PRESENT = 100.0
HALF_LIFE = 200.0
_LOW, _HIGH, _BINS = -0.5, 1.5, 512
_WIDTH = (_HIGH - _LOW) / _BINS
# As axes of saved arrays.
_BINS_AXIS, _MERGED_AXES = str(_BINS), f"o {_BINS // _MERGED}|0 {_BINS // _MERGED}"
COUNTS_AXES = f"3 3 {_BINS}"
EDGES = np.linspace(_LOW, _HIGH, _BINS + 1)
CENTRES = EDGES[:-1] + _WIDTH / 2
# Scores that each bin starts with, at their face value, so that a bin nobody has seen says something sensible.
_PRIOR = 0.05
# No probability is nearer to 0 or 1 than this: counts cannot tell more.
_SURE = 1e-6
OF_BEST = 0.1
"""Share of the row's best score that is subtracted from all of them."""

# What compiled loops must be told: where bins begin, how wide they are, and what settles the threshold.
SETTLED = (OF_BEST, _LOW, _WIDTH, _LEAST_SHARE, _LARGEST_SHARE, _WORTH_OF_SHARE, _FEW_PRESENT)


class ScoreHistogram(NamedTuple):
    """Counts over recent rows."""

    # Scores in each bin, and those of labels that were present.
    seen: Annotated[FloatArray, _BINS_AXIS, ">=0"]
    present: Annotated[FloatArray, _BINS_AXIS, ">=0"]
    best: Annotated[FloatArray, _BINS_AXIS, ">=0"]  # rows by the best of their scores
    # Rows, and rows without a label.
    rows: Annotated[float, ">=0"]
    empty_rows: Annotated[float, ">=0"]


def new_histogram() -> ScoreHistogram:
    """Make an empty histogram."""
    return ScoreHistogram(np.zeros(_BINS), np.zeros(_BINS), np.zeros(_BINS), 0.0, 0.0)


def bins(scores: FloatArray) -> FloatArray:
    """Find the bins that scores fall into; what lies outside counts as the outermost, and NaN as the lowest."""
    return np.fmin(np.fmax((scores - _LOW) * (1.0 / _WIDTH), 0), _BINS - 1).astype(np.int32)


def added_histograms(a: ScoreHistogram, b: ScoreHistogram) -> ScoreHistogram:
    """Add what two models have counted."""
    return ScoreHistogram(
        a.seen + b.seen, a.present + b.present, a.best + b.best, a.rows + b.rows, a.empty_rows + b.empty_rows
    )


def add_scores(
    histogram: ScoreHistogram, scores: FloatArray, labels: FloatArray, weight: float = 1.0
) -> ScoreHistogram:
    """Count the scores of some rows, and forget some of those before.

    Parameters
    ----------
    histogram : ScoreHistogram
    scores : (n, l) array
    labels : (n, l) array
        1 and 0, or NaN where it is not known whether the label is present.
    weight : float
        Rows that each of them stands for.

    Examples
    --------
    >>> import numpy as np
    >>> scores, labels = np.array([[0.9, 0.4, 0.1], [0.8, 0.2, 0.0]]), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> bool(0.2 < cardinality_threshold(add_scores(new_histogram(), scores, labels)) < 0.4)
    True
    """
    fallen = bins(scores)
    unknown = np.isnan(labels)
    if unknown.any():
        known = ~unknown
        seen, present = np.bincount(fallen[known], minlength=_BINS), np.bincount(fallen[labels == 1], minlength=_BINS)
        # What is not known is absent as often as its score says.
        absent = np.where(unknown, 1.0 - np.clip(scores, 0.0, 1.0), labels != 1)
        empty_rows = float(absent.prod(axis=1).sum())
    else:
        seen, present = np.bincount(fallen.ravel(), minlength=_BINS), np.bincount(fallen[labels > 0], minlength=_BINS)
        empty_rows = float((~labels.any(axis=1)).sum())
    best = np.bincount(fallen.max(axis=1), minlength=_BINS)
    counted: tuple[Any, ...] = (seen, present, best, len(scores), empty_rows)
    keep = 0.5 ** (weight * len(scores) / HALF_LIFE)
    return ScoreHistogram(*(before * keep + weight * new for before, new in zip(histogram, counted, strict=True)))


def cardinality_threshold(histogram: ScoreHistogram, n_missed: float = 0.0) -> float:
    """Find the score that has about as many scores above it as there were labels present, some without a score."""
    n_present = float(histogram.present.sum()) + n_missed
    return _with_above(histogram.seen, n_present * _best_share(histogram, n_present))


def _best_share(histogram: ScoreHistogram, n_present: float) -> float:
    """Find how many scores, as a share of the labels present, are to be above the threshold: by their micro F."""
    if n_present < _FEW_PRESENT:
        return 1.0
    shares = np.cumsum(histogram.seen[::-1]) / n_present
    f1 = 2.0 * np.cumsum(histogram.present[::-1]) / n_present / (shares + 1.0)
    near = np.flatnonzero((shares >= _LEAST_SHARE) & (shares <= _LARGEST_SHARE))
    if not len(near):
        return 1.0
    return float(shares[near[np.argmax(f1[near] - _WORTH_OF_SHARE * np.abs(shares[near] - 1.0))]])


def empty_row_floor(histogram: ScoreHistogram) -> float:
    """Find the score that has as many rows' best scores below it as there were rows without labels."""
    if not histogram.rows:
        return np.inf
    return _with_above(histogram.best, histogram.rows - histogram.empty_rows) if histogram.empty_rows else -np.inf


def _with_above(counts: FloatArray, wanted: float) -> float:
    """Find the score that has so many above it, evenly spread within a bin."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [0.0]])
    if wanted >= above[0] > 0:
        return float(EDGES[0]) - _WIDTH
    if wanted <= 0:
        return float(EDGES[-1])
    # The last edge with at least as many above.
    edge = int(np.searchsorted(-above, -wanted, side="right")) - 1
    inside = counts[edge]
    return float(EDGES[edge] + _WIDTH * ((above[edge] - wanted) / inside if inside else 0.0))


def calibration(histogram: ScoreHistogram) -> FloatArray:
    """Compute the probability that a label with a score in each bin is present: rising from bin to bin."""
    face = np.clip(CENTRES, 0.0, 1.0)
    weight = histogram.seen + _PRIOR
    shares = isotonic_regression((histogram.present + _PRIOR * face) / weight, weights=weight).x
    return np.clip(shares, _SURE, 1.0 - _SURE)


def soft_clip(values: FloatArray) -> FloatArray:
    """Bring least-squares estimates of 0 and 1 into (0, 1), leaving those at least .001 inside as they are.

    Values outside keep their order: with a margin of .001, they fall towards 0 as ``margin² / (2 margin - value)``,
    and towards 1 likewise.

    Examples
    --------
    >>> import numpy as np
    >>> soft_clip(np.array([-1.0, 0.0, 0.4, 1.0, 2.0])).round(6)
    array([1.00000e-06, 5.00000e-04, 4.00000e-01, 9.99500e-01, 9.99999e-01])
    """
    margin = 1e-3
    low = margin**2 / (2 * margin - np.minimum(values, margin))
    high = 1.0 - margin**2 / (np.maximum(values, 1.0 - margin) - (1.0 - 2 * margin))
    return np.where(values < margin, low, np.where(values > 1.0 - margin, high, values))


def adjusted(scores: FloatArray, offsets: FloatArray | float = 0.0) -> FloatArray:
    """Take a share of the row's best score, and the labels' offsets, from all scores.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted(np.array([[0.9, 0.2, 0.0], [-0.1, -0.3, -0.2]])).round(2)
    array([[ 0.81,  0.11, -0.09],
           [-0.1 , -0.3 , -0.2 ]])
    """
    # Python's numbers, as NumPy's would make double precision of single; and not `max`, which is slower for one row.
    lowered = scores - OF_BEST * np.maximum(np.maximum.reduce(scores, axis=1, keepdims=True), 0.0)
    lowered -= offsets
    return lowered


class LabelHistograms(NamedTuple):
    """Counts for each label, (l, bins): of all scores, and of those where it was present."""

    seen: Annotated[FloatArray, _MERGED_AXES, ">=0"]
    present: Annotated[FloatArray, _MERGED_AXES, ">=0", "with seen"]


@dataclass(frozen=True)
class Rule:
    """What a rule needs."""

    aim: str
    threshold: float  # the common threshold, which is subtracted from decision scores
    thresholds: FloatArray | float  # (l,) or float: the same, or each label's
    floor: float  # best score below which a row is left without labels
    empty_row_trust: float  # how far rows without labels are believed in, from 0, as none was seen, to 1
    counts: ScoreHistogram  # what the probabilities are read off

    @cached_property
    def probabilities(self) -> FloatArray:
        """Of a label being present, by the bin of its score; computed when somebody asks."""
        return calibration(self.counts)


def new_label_histograms(n_labels: int) -> LabelHistograms:
    """Make empty histograms."""
    shape = (n_labels, len(CENTRES) // _MERGED)
    return LabelHistograms(np.zeros(shape), np.zeros(shape))


def grow_label_histograms(counts: LabelHistograms, n_labels: int) -> LabelHistograms:
    """Add labels without scores."""
    more = new_label_histograms(n_labels - len(counts.seen))
    return LabelHistograms(np.vstack([counts.seen, more.seen]), np.vstack([counts.present, more.present]))


def add_label_scores(counts: LabelHistograms, scores: FloatArray, labels: FloatArray) -> LabelHistograms:
    """Count the scores of some rows for each label; NaN is a label not known."""
    n_labels, n_bins = counts.seen.shape
    place = bins(scores) // _MERGED + n_bins * np.arange(n_labels)
    seen = np.bincount(place[~np.isnan(labels)], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    present = np.bincount(place[labels == 1], minlength=n_labels * n_bins).reshape(n_labels, n_bins)
    # Single labels are rare: they are remembered longer than the stream as a whole.
    keep = 0.5 ** (len(scores) / (10 * HALF_LIFE))
    return LabelHistograms(counts.seen * keep + seen, counts.present * keep + present)


def make_rule(aim: str, counts: ScoreHistogram, by_label: LabelHistograms | None, n_missed: float = 0.0) -> Rule:
    """Read off the histograms what the rule needs; those of single labels are for the aim "macro_f1".

    ``n_missed`` are labels that were present but not among those that had a score.
    """
    common = cardinality_threshold(counts, n_missed)
    thresholds: FloatArray | float = common
    if aim in ("hamming_loss", "subset_accuracy"):
        even = int(np.searchsorted(calibration(counts), 0.5))
        thresholds = common = float(EDGES[even])
    elif aim == "micro_f1":
        thresholds = common = float(EDGES[_best_f(counts.seen, counts.present)])
    elif aim == "macro_f1":
        thresholds = _label_thresholds(counts, by_label)
    empty_rows = min(1.0, counts.empty_rows / (_FEW_EMPTY * counts.rows)) if counts.rows else 1.0
    return Rule(aim, common, thresholds, empty_row_floor(counts), empty_rows, counts)


def _best_f(seen: FloatArray, present: FloatArray) -> FloatArray:
    """Find the bin from which on to predict for the best F, in the last axis; of equals the highest."""
    predicted, hit = (np.cumsum(c[..., ::-1], axis=-1)[..., ::-1] for c in (seen, present))
    with np.errstate(invalid="ignore"):
        measure = np.nan_to_num(2.0 * hit / (predicted + hit[..., :1]))
    return measure.shape[-1] - 1 - np.argmax(measure[..., ::-1], axis=-1)


def _label_thresholds(counts: ScoreHistogram, by_label: LabelHistograms | None) -> FloatArray:
    assert by_label is not None
    coarse = [c.reshape(-1, _MERGED).sum(axis=1) for c in (counts.seen, counts.present)]
    n_labels = len(by_label.seen)
    share = _PRIOR_ROWS / max(counts.rows, 1.0) / n_labels
    best = _best_f(by_label.seen + share * coarse[0], by_label.present + share * coarse[1])
    return EDGES[best * _MERGED]


def choose(rule: Rule, scores: FloatArray) -> BoolArray:
    """Tell which labels to predict, (n, l)."""
    if rule.aim in ("example_f1", "example_accuracy"):
        return _by_row(rule, scores)
    chosen = scores > rule.thresholds
    has_some = np.logical_or.reduce(chosen, axis=1)
    if rule.aim in ("cardinality", "subset_accuracy") and not np.logical_and.reduce(has_some):
        empty_rows = np.flatnonzero(~has_some)
        best = scores[empty_rows].argmax(axis=1)
        filled = scores[empty_rows, best] > rule.floor
        chosen[empty_rows[filled], best[filled]] = True
    return chosen


def calibration_of(rule: Rule) -> tuple[FloatArray, float, float]:
    """Return how likely labels are at the centres of bins, the first centre, and bins for each unit of the score."""
    lowest, highest = float(CENTRES[0]), float(CENTRES[-1])
    return rule.probabilities, lowest, (len(CENTRES) - 1) / (highest - lowest)


def probabilities(rule: Rule, scores: FloatArray) -> FloatArray:
    """Compute how likely labels are present, by how often labels with such scores were present recently.

    Between the centres of bins as `np.interp` does it, but bins are equally wide: nothing has to be searched.
    """
    steps, lowest, bins_per_unit = calibration_of(rule)
    last = len(steps) - 1
    # In double precision: where probabilities rise steeply, the rounding of single would be seen.
    place = (np.asarray(scores, dtype=float) - lowest) * bins_per_unit
    # Twice as fast as np.clip where there are few.
    np.minimum(np.maximum(place, 0, out=place), last, out=place)
    below = np.minimum(place.astype(np.intp), last - 1)
    place -= below
    # NaN has no place and stays NaN.
    low = steps.take(below, mode="clip")
    place *= steps.take(below + 1, mode="clip") - low
    place += low
    return np.minimum(place, 1.0, out=place)


def _by_row(rule: Rule, scores: FloatArray) -> BoolArray:
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

    The size is F's mean of both sizes, or accuracy's union. That comes close to the expected measure, for F where the
    size is that of rows with a label: others have no hits, whatever the size.
    """
    hits, sizes = np.cumsum(likely, axis=1), np.arange(1, likely.shape[1] + 1)
    if aim == "example_f1":
        return 2.0 * hits / (sizes + total / np.maximum(1.0 - none, 1e-300)[:, None])
    return hits / (sizes + total - hits)
