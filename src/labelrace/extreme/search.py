"""The best labels of rows, exactly, without looking at all of them: by the bounds of `labelrace.extreme.decoder`.

Labels that occurred recently, the pool, are all scored. The others are looked at in the order of their bounds, until no
other can be among the best: by products of many labels with all rows or, where loops can be compiled
(`labelrace.extreme.candidate_loops`), row by row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelrace.extreme import candidate_loops
from labelrace.extreme.decoder import Derived, Part, Queries, some_scores
from labelrace.typing import Array, FloatArray, IntArray

# Labels of the first block that is searched, and of the largest.
_FIRST_BLOCK, _LARGEST_BLOCK = 512, 8192
ROUNDING = 1.0001
"""What bounds are multiplied by, for the rounding of single precision."""

# Rows whose scores of the pool are computed at once.
_POOL_ROWS = 128
# Labels of the pool that are scored in any case.
_FIRST_OF_POOL = 384


def best(
    derived: Derived, asked: Queries, n_best: int, n_exact: int, recent: tuple[IntArray, Array] | None = None
) -> tuple[IntArray, Array]:
    """Find good labels of each row and their scores, (n, n_best) each, best first.

    They are the best of the labels that occurred recently, and among them are the ``n_exact`` best of all labels. Where
    fewer than ``n_best`` have occurred, others follow, with a score of 0. ``recent`` is what was found for the same
    rows without exact ones, if they have been looked for; it is not changed.
    """
    n, n_labels = len(asked.weights), derived.sums.shape[0]
    if n_labels <= n_best:
        scores = some_scores(derived, asked, np.arange(n_labels))
        return _sorted(np.tile(np.arange(n_labels), (n, 1)), scores, n_best)
    if recent is not None:
        labels, scores = (part.copy() for part in recent)
    else:
        labels, scores = _best_of_pool(derived, asked, n_best)
        if labels.shape[1] < n_best:
            labels, scores = _filled(derived, labels, scores, n_best)
    if (labels < 0).any():
        n_exact = n_best
    return _with_exact(derived, asked, labels, scores, min(n_exact, n_best)) if n_exact else (labels, scores)


def _best_of_pool(derived: Derived, asked: Queries, n_best: int) -> tuple[IntArray, Array]:
    """Find the best of the labels that occurred recently."""
    parts, weights, reach = [], asked.with_shifts(), ROUNDING * np.sqrt(derived.scale) * asked.lengths
    # Few rows at a time, whose scores stay in the cache.
    for first in range(0, len(weights), _POOL_ROWS):
        here = slice(first, first + _POOL_ROWS)
        if derived.compiled and len(derived.pool.labels):
            parts.append(_compiled_best_of_pool(derived.pool, weights[here], reach[here], n_best))
            continue
        scores = weights[here] @ derived.pool.sums.T
        names = np.broadcast_to(derived.pool.labels, scores.shape)
        parts.append(_sorted(names, scores, min(n_best, scores.shape[1])))
    return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[return-value]


def _compiled_best_of_pool(pool: Part, weights: Array, reach: FloatArray, n_best: int) -> tuple[IntArray, Array]:
    """Find the best by compiled loops, leaving out labels at the end of the pool that can be no row's best."""
    n_best = min(n_best, len(pool.labels))
    scores = weights @ pool.sums[: max(n_best, _FIRST_OF_POOL)].T
    places, best = candidate_loops.best_of(scores, n_best)
    least = float((best[:, -1] / reach).min())
    n_needed = int(np.searchsorted(-pool.bounds, -least, side="right"))
    if n_needed > scores.shape[1]:
        candidate_loops.insert_better(weights @ pool.sums[scores.shape[1] : n_needed].T, scores.shape[1], places, best)
    return pool.labels[places], best


def _sorted(labels: IntArray, scores: Array, n_best: int) -> tuple[IntArray, Array]:
    """Keep the best labels of each row, best first."""
    if n_best < scores.shape[1]:
        chosen = np.argpartition(scores, scores.shape[1] - n_best, axis=1)[:, -n_best:]
        labels, scores = np.take_along_axis(labels, chosen, axis=1), np.take_along_axis(scores, chosen, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _filled(derived: Derived, labels: IntArray, scores: Array, n_best: int) -> tuple[IntArray, Array]:
    """Append labels that are in no list, which have a score of 0, and those that are, to be found, with less."""
    n_more = n_best - labels.shape[1]
    is_known = derived.is_listed_before.copy()
    is_known[derived.lists[1]] = True
    others = np.flatnonzero(~is_known)[:n_more]
    # Where there are not enough of them, listed labels take the places for now: they are searched in any case.
    others = np.concatenate([others, np.full(n_more - len(others), -1, np.intp)])
    more = np.where(others < 0, -np.inf, 0.0).astype(np.float32)
    rows = (len(labels), 1)
    return _sorted(np.hstack([labels, np.tile(others, rows)]), np.hstack([scores, np.tile(more, rows)]), n_best)


def _with_exact(
    derived: Derived, asked: Queries, labels: IntArray, scores: Array, n_exact: int
) -> tuple[IntArray, Array]:
    """Put the ``n_exact`` best of all labels among those of the pool."""
    n_labels = derived.sums.shape[0]
    found = labels[:, :n_exact].copy(), scores[:, :n_exact].copy()
    rows = asked.with_shifts(), ROUNDING * np.sqrt(derived.scale) * asked.lengths
    for parts in (_parts(derived, place) for place in range(len(derived.lists))):
        if derived.compiled:
            all(candidate_loops.search(*part, *rows, *found, n_labels) for part in parts)
        else:
            _search(parts, *rows, *found, n_labels)
    # What a search has found has the number of all labels added.
    if derived.compiled:
        candidate_loops.insert_found(labels, scores, *found, n_labels)
        return labels, scores
    is_found = found[0] >= n_labels
    joined = np.hstack([labels, found[0] - n_labels]), np.hstack([scores, np.where(is_found, found[1], -np.inf)])
    return _sorted(*joined, labels.shape[1])


def _parts(derived: Derived, place: int) -> Iterator[Part]:
    """Cut a list of labels into parts: the first is known, the others are collected when they are asked for."""
    yield derived.heads[place]
    listed, start, size = derived.lists[place], derived.n_head, _FIRST_BLOCK
    while start < len(listed):
        yield derived.part_of(place, slice(start, start + size))
        start, size = start + size, min(2 * size, _LARGEST_BLOCK)


def _search(
    parts: Iterator[Part], weights: Array, reach: FloatArray, labels: IntArray, scores: Array, n_labels: int
) -> None:
    """Let labels of parts, by falling bound, take the places of worse ones, as far as they can; in the arrays given."""
    active = np.arange(len(labels))
    for part in parts:
        if not len(part.labels):
            continue
        worst = scores[active, -1]
        can_be = reach[active] * part.bounds[0] >= worst
        active, worst = active[can_be], worst[can_be]
        if not len(active):
            return
        some = part.bounds >= float((worst / reach[active]).min())
        found = weights[active] @ part.sums[some].T
        better = np.flatnonzero((found > worst[:, None]).any(axis=0))
        more = np.tile(part.labels[some][better] + n_labels, (len(active), 1))
        joined = np.hstack([labels[active], more]), np.hstack([scores[active], found[:, better]])
        labels[active], scores[active] = _sorted(*joined, labels.shape[1])
