"""The best of some scores, in order: the small loops that the search for candidates is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.extreme.kernels import kernel


@kernel()
def is_among(label: Any, labels: Any) -> Any:
    """Return whether a label is one of some labels."""
    n_same = 0
    for other in labels:
        n_same += other == label
    return n_same > 0


@kernel()
def insert(labels: Any, scores: Any, label: Any, score: Any) -> None:
    """Insert a label among others, by descending score; the last one drops out."""
    j = len(labels) - 1
    while j and scores[j - 1] < score:
        labels[j], scores[j] = labels[j - 1], scores[j - 1]
        j -= 1
    labels[j], scores[j] = label, score


@kernel()
def keep_best(scores: Any, indices: Any, count: Any, n_best: Any) -> None:
    """Bring the ``n_best`` largest of the first ``count`` scores to the front, with their indices (quickselect)."""
    low, high = 0, count - 1
    while low < high:
        pivot, left, right = scores[(low + high) >> 1], low, high
        while left <= right:
            while scores[left] > pivot:
                left += 1
            while scores[right] < pivot:
                right -= 1
            if left <= right:
                scores[left], scores[right] = scores[right], scores[left]
                indices[left], indices[right] = indices[right], indices[left]
                left, right = left + 1, right - 1
        if n_best - 1 <= right:
            high = right
        elif n_best - 1 >= left:
            low = left
        else:
            return


@kernel()
def sort_best(scores: Any, indices: Any, count: Any) -> None:
    """Sort the first scores, and their indices, by descending score; equal ones by index."""
    for i in range(1, count):
        score, index, j = scores[i], indices[i], i
        while j and (scores[j - 1] < score or (scores[j - 1] == score and indices[j - 1] > index)):
            scores[j], indices[j], j = scores[j - 1], indices[j - 1], j - 1
        scores[j], indices[j] = score, index


@kernel()
def none_above(scores: Any, least: Any) -> Any:
    """Return whether no score is above ``least``; False where ``least`` is not positive, as that is not checked."""
    if not least > 0:
        return False
    # The bits of positive floats are ordered as integers, of which the largest is found more quickly.
    bits, top = scores.view(np.int32), np.int32(0)
    for i in range(len(bits)):
        top = max(top, bits[i])
    return top <= np.float32(least).view(np.int32)
