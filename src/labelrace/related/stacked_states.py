"""Several states of one kind as one: every array has one more axis, the first.

So the leaves of a tree, or the members of an ensemble, are saved and checked as one state. What all of them share, the
kinds of the features, is there once and has no further axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves


def stack(states: list[Any]) -> Any:
    """Stack NamedTuples array by array; where one has None and another an array, None counts as zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from typing import NamedTuple
    >>> class Sums(NamedTuple):
    ...     rows: float
    ...     totals: np.ndarray
    >>> both = stack([Sums(1.0, np.ones(2)), Sums(4.0, np.zeros(2))])
    >>> both.totals.shape, unstack(both)[1].rows
    ((2, 2), np.float64(4.0))
    """
    if isinstance(states[0], FeatureKinds):
        return states[0]
    if isinstance(states[0], tuple):
        fields = states[0]._fields  # type: ignore[attr-defined]
        return type(states[0])(*(stack([getattr(each, field) for each in states]) for field in fields))
    known = [state for state in states if state is not None]
    return np.stack([np.zeros_like(known[0]) if state is None else state for state in states]) if known else None


def unstack(stacked: Any) -> list[Any]:
    """Take stacked NamedTuples apart, along the first axis of their arrays."""

    def part(value: Any, index: int) -> Any:
        if value is None or isinstance(value, FeatureKinds):
            return value
        if isinstance(value, tuple):
            return type(value)(*(part(inner, index) for inner in value))
        return value[index]

    return [part(stacked, index) for index in range(next(_lengths(stacked)))]


def _lengths(stacked: Any) -> Iterator[int]:
    """Yield the lengths of the arrays' first axis, which are all the same."""
    for value in stacked:
        if value is None or isinstance(value, FeatureKinds):
            continue
        if isinstance(value, tuple):
            yield from _lengths(value)
        else:
            yield len(value)


def take(function: Callable[[Any, Moves], Any], stacked: Any, moves: Moves) -> Any:
    """Move the axes of stacked NamedTuples, each by a function."""
    return stack([function(state, moves) for state in unstack(stacked)])
