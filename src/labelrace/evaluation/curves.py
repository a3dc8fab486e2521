"""Curves over a stream, and the averages of tables, from checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.typing import FloatArray


def averages(checkpoints: Iterable[Checkpoint]) -> dict[str, float]:
    """Average each measure over the whole test batches, as in the paper's tables.

    A last batch with fewer rows does not count, unless no other was tested. A batch on which a measure is NaN does
    not count in that measure.

    Examples
    --------
    >>> points = [
    ...     Checkpoint(1, 100, 200, {"micro_f1": 0.4}, {}),
    ...     Checkpoint(2, 200, 300, {"micro_f1": 0.6}, {}),
    ...     Checkpoint(3, 300, 302, {"micro_f1": 0.0}, {}, whole=False),
    ... ]
    >>> averages(points)
    {'micro_f1': 0.5}
    >>> averages(points[2:])
    {'micro_f1': 0.0}
    """
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    counted = [checkpoint for checkpoint in tested if checkpoint.whole] or tested
    return {name: float(running_means(line)[-1]) for name, line in _by_measure(counted).items()}


def windowed(checkpoints: Iterable[Checkpoint], window: int = 10) -> dict[str, FloatArray]:
    """Return for each measure the mean over the last `window` test batches, at each of them.

    The first values are means of as many batches as there are. A batch on which a measure is NaN does not count.

    Examples
    --------
    >>> points = [Checkpoint(t, 10 * t, 10 * t + 10, {"micro_f1": t / 8}, {}) for t in range(1, 5)]
    >>> windowed(points, window=2)["micro_f1"].tolist()
    [0.125, 0.1875, 0.3125, 0.4375]
    """
    if window < 1:
        raise ValueError(f"window must be at least 1 batch, got {window!r}")
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    return {name: running_means(line, window=window) for name, line in _by_measure(tested).items()}


def cumulative(checkpoints: Iterable[Checkpoint]) -> dict[str, FloatArray]:
    """Return for each measure the mean over all test batches so far, weighted by their rows, at each of them.

    Examples
    --------
    >>> points = [Checkpoint(1, 10, 20, {"micro_f1": 0.3}, {}), Checkpoint(2, 20, 25, {"micro_f1": 0.6}, {})]
    >>> cumulative(points)["micro_f1"].tolist()
    [0.3, 0.4]
    """
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    rows = np.array([checkpoint.rows for checkpoint in tested], dtype=float)
    return {name: running_means(line, rows) for name, line in _by_measure(tested).items()}


def running_means(values: FloatArray, weights: FloatArray | float = 1.0, window: int | None = None) -> FloatArray:
    """Return the weighted means of the last `window` values along the last axis, or of all values so far.

    A value that is NaN does not count; where nothing counts the mean is NaN.
    """
    defined = ~np.isnan(values)
    sums = np.cumsum(np.where(defined, values * weights, 0.0), axis=-1)
    totals = np.cumsum(np.where(defined, weights, 0.0), axis=-1)
    if window is not None and window < values.shape[-1]:
        sums[..., window:] -= sums[..., :-window].copy()
        totals[..., window:] -= totals[..., :-window].copy()
    return np.divide(sums, totals, out=np.full(values.shape, np.nan), where=totals > 0)


def _by_measure(checkpoints: Sequence[Checkpoint]) -> dict[str, FloatArray]:
    names = checkpoints[0].measures if checkpoints else ()
    return {name: np.array([checkpoint.measures[name] for checkpoint in checkpoints]) for name in names}
