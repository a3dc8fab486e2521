"""A detector of drift, which tells whether the error has grown by more than chance.

Each batch gives its rows' mean error and the variance of that mean. They are kept for the last 32 batches. For every
way to call the last 1, 2, 4, … of them recent and those before it the past, the means of both are compared, as in
ADWIN (Bifet and Gavaldà, "Learning from time-changing data with adaptive windowing", 2007). Batches vary more than
their rows tell, so the noise of a batch is the larger of what its rows say and of what past batches show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.typing import FloatArray

__all__ = ["DriftState", "add", "empty", "found"]

_MOST = 32
# Rows that make a batch; smaller ones are put together.
_FEWEST_ROWS = 50.0
# Past batches there must be before anything is said.
_FEWEST_PAST = 3
# Standard errors that chance does not reach in thousands of tests.
_SURE = 5.0


class DriftState(NamedTuple):
    """Recent batches, the newest last.

    Attributes
    ----------
    means, variances, sizes : (n,) arrays
        Mean error of each batch, variance of that mean, and rows.
    """

    means: FloatArray
    variances: FloatArray
    sizes: FloatArray


def empty() -> DriftState:
    """Make a detector that has seen nothing."""
    return DriftState(np.zeros(0), np.zeros(0), np.zeros(0))


def add(state: DriftState, errors: FloatArray) -> DriftState:
    """Take in the errors of a batch's rows."""
    n = float(len(errors))
    mean, variance = float(errors.mean()), float(errors.var() / n)
    if len(state.sizes) and state.sizes[-1] < _FEWEST_ROWS:
        # The last batch is still too small to stand for itself.
        before, total = float(state.sizes[-1]), float(state.sizes[-1]) + n
        apart = (mean - state.means[-1]) ** 2 * before * n / total**3
        variance = (state.variances[-1] * before**2 + variance * n**2) / total**2 + apart
        mean = (state.means[-1] * before + mean * n) / total
        state, n = DriftState(*(part[:-1] for part in state)), total
    new = (mean, variance, n)
    return DriftState(*(np.append(part, value)[-_MOST:] for part, value in zip(state, new, strict=True)))


def found(state: DriftState) -> bool:
    """Tell whether recent errors are larger than past ones."""
    count = len(state.sizes)
    if count and state.sizes[-1] < _FEWEST_ROWS:
        return False
    recent = 1
    while count - recent >= _FEWEST_PAST:
        past_means = state.means[:-recent]
        spread = float(past_means.var(ddof=1))
        gap = float(state.means[-recent:].mean() - past_means.mean())
        # Batches on one side may be smaller than on the other, and their means less certain.
        overall = max(spread, float(state.variances.mean()))
        noise_recent = max(overall, float(state.variances[-recent:].mean()))
        noise_past = max(overall, float(state.variances[:-recent].mean()))
        if gap > _SURE * np.sqrt(noise_recent / recent + noise_past / len(past_means)):
            return True
        recent *= 2
    return False
