"""Curves over a stream, and the averages of tables, from checkpoints."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.typing import FloatArray


class RunningMeans:
    """Means of measures over the rows seen so far; batches on which a measure is NaN do not count in it."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = defaultdict(float)
        self._weights: dict[str, float] = defaultdict(float)

    def add(self, measures: dict[str, float], rows: float = 1) -> None:
        """Count a batch with as much weight as it has rows."""
        for name, value in measures.items():
            defined = not math.isnan(value)
            self._sums[name] += rows * value if defined else 0.0
            self._weights[name] += rows if defined else 0.0

    def values(self) -> dict[str, float]:
        """Return the means; NaN where nothing was defined."""
        return {
            name: total / self._weights[name] if self._weights[name] else math.nan for name, total in self._sums.items()
        }


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
    means = RunningMeans()
    for checkpoint in [checkpoint for checkpoint in tested if checkpoint.whole] or tested:
        means.add(checkpoint.measures)
    return means.values()


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
    points = []
    for last in range(len(tested)):
        means = RunningMeans()
        for checkpoint in tested[max(last + 1 - window, 0) : last + 1]:
            means.add(checkpoint.measures)
        points.append(means.values())
    return _by_measure(points)


def cumulative(checkpoints: Iterable[Checkpoint]) -> dict[str, FloatArray]:
    """Return for each measure the mean over all test batches so far, weighted by their rows, at each of them.

    Examples
    --------
    >>> points = [Checkpoint(1, 10, 20, {"micro_f1": 0.3}, {}), Checkpoint(2, 20, 25, {"micro_f1": 0.6}, {})]
    >>> cumulative(points)["micro_f1"].tolist()
    [0.3, 0.4]
    """
    means, points = RunningMeans(), []
    for checkpoint in checkpoints:
        if checkpoint.tested:
            means.add(checkpoint.measures, checkpoint.rows)
            points.append(means.values())
    return _by_measure(points)


def _by_measure(points: Sequence[dict[str, float]]) -> dict[str, FloatArray]:
    names = points[0] if points else ()
    return {name: np.array([point[name] for point in points]) for name in names}
