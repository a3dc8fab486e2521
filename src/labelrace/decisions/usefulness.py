"""How useful it is to ask for the labels of a row: more, the worse its suggested label set is expected to be.

Rows of which nothing is known are expected to be predicted worst, but they are often odd, and teach little of others.
So they count for less: by the number of labels that they are expected to have, where that is below one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def usefulness(likely: Mapping[Any, float], suggested: Collection[Any]) -> float:
    """Return one minus the expected F1 of a label set, times the expected number of labels, at most one.

    The expected F1 is approximately the expected hits over the mean of both sizes.

    Parameters
    ----------
    likely : dict from label to probability
        The most likely labels, with the suggested ones among them.
    suggested : collection of labels

    Returns
    -------
    float
        From 0, not worth asking, to 1.

    Examples
    --------
    >>> usefulness({"oven": 1.0, "egg": 0.0}, ["oven"])
    0.0
    >>> usefulness({"oven": 0.5, "egg": 0.5}, ["oven"])
    0.5
    >>> usefulness({"oven": 0.1}, [])
    0.1
    """
    n_hit, n_likely = sum(likely.get(label, 0.0) for label in suggested), sum(likely.values())
    if not n_likely:
        return 0.0
    return min(1.0, n_likely) * (1.0 - 2.0 * n_hit / (len(suggested) + n_likely))
