"""The loops that check one row, to be compiled: they tell whether it is in order.

If it is not, `labelrace.models.inputs` checks it again, step by step, and says why.
"""

from __future__ import annotations

from labelrace.core.compiled import kernel
from labelrace.typing import FloatArray, IntArray


@kernel
def is_in_order(data: FloatArray, indices: IntArray, starts: IntArray, n_features: int, largest: float) -> bool:
    """Tell whether one compressed row has columns that rise and numbers that are not too large, nor missing."""
    n, before, squares = len(data), -1, 0.0
    if len(starts) != 2 or starts[0] != 0 or starts[1] != n or len(indices) != n:
        return False
    for i in range(n):
        if indices[i] <= before:
            return False
        before = indices[i]
        squares += data[i] * data[i]
    return before < n_features and squares <= largest * largest


@kernel
def are_labels(values: FloatArray, allow_missing: bool) -> bool:
    """Tell whether numbers are 0, 1, or missing if that is allowed."""
    n_wrong = 0
    for j in range(len(values)):
        value = values[j]
        n_wrong += int(value != 0.0) & int(value != 1.0) & int(value == value or not allow_missing)
    return n_wrong == 0
