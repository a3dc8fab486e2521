"""Running moments: rows, mean and sum of squared deviations about the mean, of columns."""

from __future__ import annotations

from typing import Any

from labelrace.typing import FloatArray


def merge_moments(
    rows: Any, mean: FloatArray, spread: FloatArray, more_rows: Any, more_mean: FloatArray, more_spread: FloatArray
) -> tuple[Any, FloatArray, FloatArray]:
    """Join the moments of two parts about their common mean (Chan, Golub and LeVeque, 1979).

    Examples
    --------
    >>> import numpy as np
    >>> merge_moments(1, np.array([2.0]), np.array([0.0]), 2, np.array([5.0]), np.array([2.0]))
    (3, array([4.]), array([8.]))
    """
    total, gap = rows + more_rows, more_mean - mean
    return total, mean + gap * (more_rows / total), spread + more_spread + gap * gap * (rows * more_rows / total)
