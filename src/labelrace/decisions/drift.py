"""A detector of drift: whether the error has grown by more than chance.

Each batch gives its rows' mean error and the variance of that mean. They are kept for the last 32 batches. For every
way to call the last 1, 2, 4, … of them recent and those before it the past, the means of both are compared, as in
ADWIN (Bifet and Gavaldà, "Learning from time-changing data with adaptive windowing", 2007). Batches vary more than
their rows tell, so the noise of a batch is the larger of what its rows say and of what past batches show.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.typing import FloatArray, IntArray

# Share of the past that models keep when there was a drift.
KEPT = 0.02

# Batches that are kept.
_MOST = 32
# Rows that make a batch; smaller ones are put together.
_FEWEST_ROWS = 50.0
# Past batches there must be before anything is said.
_FEWEST_PAST = 3
# Standard errors that chance does not reach in thousands of tests.
_SURE = 5.0


class DriftState(NamedTuple):
    """Recent batches, the newest last."""

    # Mean error of each batch, variance of that mean, and rows.
    means: Annotated[FloatArray, "_n"]
    variances: Annotated[FloatArray, "_n"]
    sizes: Annotated[FloatArray, "_n"]


def init() -> DriftState:
    """Make a detector that has seen nothing."""
    return DriftState(np.zeros(0), np.zeros(0), np.zeros(0))


def clipped_errors(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Sum the squared errors of each row's scores, clipped to [0, 1]; what is expected where a label is missing (NaN).

    Of all labels together: labels that are added later, all absent so far, have added nothing to errors before.
    """
    likely = np.clip(scores, 0.0, 1.0)
    errors = np.square(likely - labels)
    sums: FloatArray = errors.sum(axis=1)
    if not np.isnan(sums).any():
        return sums
    return np.where(np.isnan(errors), likely * (1.0 - likely), errors).sum(axis=1)


def update(state: DriftState, errors: FloatArray) -> DriftState:
    """Take in the errors of a batch's rows."""
    n = float(len(errors))
    mean = float(errors.sum()) / n
    deviations = errors - mean
    variance = float(deviations @ deviations) / n**2
    means, variances, sizes = state
    if len(sizes) and sizes[-1] < _FEWEST_ROWS:
        # The last batch is still too small to stand for itself.
        before, total = float(sizes[-1]), float(sizes[-1]) + n
        between = (mean - means[-1]) ** 2 * before * n / total**3
        variance = (variances[-1] * before**2 + variance * n**2) / total**2 + between
        mean = (means[-1] * before + mean * n) / total
        means, variances, sizes, n = means[:-1], variances[:-1], sizes[:-1], total
    return DriftState(
        np.append(means[1 - _MOST :], mean),
        np.append(variances[1 - _MOST :], variance),
        np.append(sizes[1 - _MOST :], n),
    )


def is_found(state: DriftState) -> bool:
    """Return whether recent errors are larger than past ones."""
    count = len(state.sizes)
    if count <= _FEWEST_PAST or state.sizes[-1] < _FEWEST_ROWS:
        return False
    # The last batch against all before, the last two, the last four, …
    recent = 2 ** np.arange(int(np.log2(count - _FEWEST_PAST)) + 1)
    past = count - recent
    # From one of them, so that equal errors are nothing and not a rounding error.
    means = state.means - state.means[0]
    means_recent, means_past = _averages(means, past)
    variances, variances_past = _averages(state.variances, past)
    squares_past = _averages(means**2, past)[1] - means_past**2
    # Batches on one side may be smaller than on the other, and their means less certain.
    overall = np.maximum(squares_past * past / (past - 1), state.variances.mean())
    noise = np.maximum(overall, variances) / recent + np.maximum(overall, variances_past) / past
    return bool((means_recent - means_past > _SURE * np.sqrt(noise)).any())


def _averages(values: FloatArray, past: IntArray) -> tuple[FloatArray, FloatArray]:
    """Average the values from each of some positions on, and those before it."""
    before = np.cumsum(values)
    return (before[-1] - before[past - 1]) / (len(values) - past), before[past - 1] / past
