"""How useful it is to ask for the labels of a row: more, the worse its suggested label set is expected to be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def usefulness(likely: Mapping[Any, float], suggested: Collection[Any]) -> float:
    """Return one minus the expected F1 of a label set, approximately: expected hits over the mean of both sizes.

    Parameters
    ----------
    likely : dict from label to probability
        The most likely labels, with the suggested ones among them.
    suggested : collection of labels

    Examples
    --------
    >>> usefulness({"oven": 1.0, "egg": 0.0}, ["oven"])
    0.0
    >>> usefulness({"oven": 0.5, "egg": 0.5}, ["oven"])
    0.5
    >>> usefulness({"oven": 0.1}, [])
    1.0
    """
    hits = sum(likely.get(label, 0.0) for label in suggested)
    sizes = len(suggested) + sum(likely.values())
    return 1.0 - 2.0 * hits / sizes if sizes else 1.0
