"""Which methods a critical-difference diagram joins."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["cliques"]


def cliques(places: Mapping[str, float], difference: float) -> list[tuple[float, float]]:
    """Return the spans of average ranks, each as long as can be, within which no two methods are told apart.

    Examples
    --------
    >>> cliques({"a": 1.2, "b": 2.0, "c": 2.9, "d": 3.9}, difference=1.0)
    [(1.2, 2.0), (2.0, 2.9)]
    """
    ranks = sorted(places.values())
    spans: list[tuple[float, float]] = []
    for start, low in enumerate(ranks):
        high = max(rank for rank in ranks[start:] if rank - low < difference)
        # A span inside the one before says nothing new, and one method alone is no clique.
        if high > low and (not spans or high > spans[-1][1]):
            spans.append((low, high))
    return spans
