"""A detector of drift, which tells whether the error has grown by more than chance.

Each batch gives its rows' mean error and the variance of that mean. They are kept for the last 32 batches. For every
way to call the last 1, 2, 4, … of them recent and those before it the past, the means of both are compared, as in
ADWIN (Bifet and Gavaldà, "Learning from time-changing data with adaptive windowing", 2007). Batches vary more than
their rows tell, so the noise of a batch is the larger of what its rows say and of what past batches show.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.decisions import score_loops
from labelrace.typing import FloatArray, IntArray

# Share of the past that models keep when there was a drift.
KEPT = 0.02

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
    variances: Annotated[FloatArray, "_n", ">=0"]
    sizes: Annotated[FloatArray, "_n", ">0"]


def empty() -> DriftState:
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


def add(state: DriftState, errors: FloatArray) -> DriftState:
    """Take in the errors of a batch's rows."""
    n = float(len(errors))
    mean = float(errors.sum()) / n
    apart = errors - mean
    variance = float(apart @ apart) / n**2
    if len(state.sizes) and state.sizes[-1] < _FEWEST_ROWS:
        # The last batch is still too small to stand for itself.
        before, total = float(state.sizes[-1]), float(state.sizes[-1]) + n
        between = (mean - state.means[-1]) ** 2 * before * n / total**3
        variance = (state.variances[-1] * before**2 + variance * n**2) / total**2 + between
        mean = (state.means[-1] * before + mean * n) / total
        state, n = DriftState(*(part[:-1] for part in state)), total
    new = (mean, variance, n)
    return DriftState(*(np.concatenate((part[1 - _MOST :], [value])) for part, value in zip(state, new, strict=True)))


def found(state: DriftState, *, compiled: bool = False) -> bool:
    """Tell whether recent errors are larger than past ones; with ``compiled``, by a compiled loop."""
    count = len(state.sizes)
    if count <= _FEWEST_PAST or state.sizes[-1] < _FEWEST_ROWS:
        return False
    if compiled:
        return score_loops.errors_have_grown(state.means, state.variances, _FEWEST_PAST, _SURE)
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
    """Average the values after and before each of some places."""
    before = np.cumsum(values)
    return (before[-1] - before[past - 1]) / (len(values) - past), before[past - 1] / past
