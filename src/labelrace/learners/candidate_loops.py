"""Compiled loops that choose candidates, row by row, for `labelrace.learners.candidates` and `label_search`."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.core.compiled import kernel

__all__ = ["best_of", "candidates_of_row", "insert_found", "put_true_labels", "search"]

# Scores that are looked at together: most such strips have none that is large enough.
_STRIP = 32


@kernel
def _keep_best(scores: Any, places: Any, count: Any, n_best: Any) -> None:
    """Bring the ``n_best`` largest of the first ``count`` scores to the front, with their places (quickselect)."""
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
                places[left], places[right] = places[right], places[left]
                left, right = left + 1, right - 1
        if n_best - 1 <= right:
            high = right
        elif n_best - 1 >= left:
            low = left
        else:
            return


@kernel
def _sort(scores: Any, places: Any, count: Any) -> None:
    """Sort the first scores, and their places, by falling score; equal ones by place."""
    for i in range(1, count):
        score, place, j = scores[i], places[i], i
        while j and (scores[j - 1] < score or (scores[j - 1] == score and places[j - 1] > place)):
            scores[j], places[j], j = scores[j - 1], places[j - 1], j - 1
        scores[j], places[j] = score, place


@kernel
def best_of(scores: Any, n_best: Any) -> Any:
    """Find the places of the largest scores of each row, (n, n_best), largest first, and these scores.

    Scores above the least of those kept are collected; when there are many, the best of them are kept, and the least
    rises. There must be no NaN.
    """
    n_rows, n_columns = scores.shape
    room = 3 * n_best
    found, at = np.empty(room + _STRIP, np.float32), np.empty(room + _STRIP, np.int64)
    values, places = np.empty((n_rows, n_best), np.float32), np.empty((n_rows, n_best), np.int64)
    for row in range(n_rows):
        least, count = np.float32(-np.inf), 0
        for start in range(0, n_columns, _STRIP):
            stop, n_above = min(start + _STRIP, n_columns), 0
            for column in range(start, stop):
                n_above += scores[row, column] > least
            if n_above == 0:
                continue
            for column in range(start, stop):
                found[count], at[count] = scores[row, column], column
                count += scores[row, column] > least
            if count >= room:
                _keep_best(found, at, count, n_best)
                count, least = n_best, found[:n_best].min()
        if count > n_best:
            _keep_best(found, at, count, n_best)
        _sort(found, at, n_best)
        values[row], places[row] = found[:n_best], at[:n_best]
    return places, values


@kernel
def search(
    names: Any, bounds: Any, sums: Any, weights: Any, reach: Any, labels: Any, scores: Any, n_labels: Any
) -> Any:
    """Let labels of a list take the places of worse ones, row by row, until no other can be among the best.

    Parameters
    ----------
    names, bounds, sums : arrays
        The list, by falling bound: labels, their bounds, and their sums with their counts beside them.
    weights : (n, k + 1) array
        Of the rows: what sums and counts are multiplied by.
    reach : (n,) array
        What the bound of a label is multiplied by to bound its score.
    labels, scores : (n, c) arrays
        The best found so far, best first; are changed. What is found has the number of all labels added.
    n_labels : int

    Returns
    -------
    n_active : int
        Rows for which the list was too short to tell.
    """
    n_best, n_active = labels.shape[1], 0
    for row in range(len(labels)):
        is_active = True
        for start in range(0, len(names), _STRIP):
            if reach[row] * bounds[start] < scores[row, n_best - 1]:
                is_active = False
                break
            some = np.dot(sums[start : start + _STRIP], weights[row])
            for i in range(len(some)):
                if some[i] > scores[row, n_best - 1]:
                    _insert(labels[row], scores[row], names[start + i] + n_labels, some[i])
        n_active += is_active
    return n_active


@kernel
def _insert(labels: Any, scores: Any, label: Any, score: Any) -> None:
    """Put a label among others, by falling score; the last one is gone."""
    j = len(labels) - 1
    while j and scores[j - 1] < score:
        labels[j], scores[j] = labels[j - 1], scores[j - 1]
        j -= 1
    labels[j], scores[j] = label, score


@kernel
def insert_found(labels: Any, scores: Any, found: Any, of_found: Any, n_labels: Any) -> None:
    """Put labels that `search` has found among the candidates, (n, c), by falling score; the last ones are gone."""
    for row in range(len(labels)):
        for f in range(found.shape[1]):
            if found[row, f] >= n_labels and of_found[row, f] > scores[row, labels.shape[1] - 1]:
                _insert(labels[row], scores[row], found[row, f] - n_labels, of_found[row, f])


@kernel
def put_true_labels(labels: Any, starts: Any, present: Any, values: Any) -> Any:
    """Look candidates up in the labels of their rows, and put those that are missing in the last places of others.

    Parameters
    ----------
    labels : (n, c) array
        Candidates; is changed.
    starts, present, values : arrays
        Labels in compressed form: 1, 0, or NaN where it is not known.

    Returns
    -------
    known : (n, c) array
        1, 0, or NaN.
    rows, places : arrays
        Where labels were put.
    """
    n_rows, width = labels.shape
    known = np.zeros((n_rows, width))
    rows, places = np.empty(len(present), np.int64), np.empty(len(present), np.int64)
    n_put = 0
    missed = np.empty(len(present), np.int64)
    for row in range(n_rows):
        n_missed = 0
        for entry in range(starts[row], starts[row + 1]):
            label, is_candidate = present[entry], False
            for c in range(width):
                if labels[row, c] == label:
                    known[row, c], is_candidate = values[entry], True
            if values[entry] == 1 and not is_candidate:
                missed[n_missed] = label
                n_missed += 1
        last = width - 1
        for m in range(n_missed):
            while last >= 0 and known[row, last] == 1:
                last -= 1
            if last < 0:
                break
            labels[row, last], known[row, last] = missed[m], 1.0
            rows[n_put], places[n_put] = row, last
            n_put, last = n_put + 1, last - 1
    return known, rows[:n_put], places[:n_put]


@kernel
def candidates_of_row(
    values: Any,
    weights: Any,
    intercepts: Any,
    inverse: Any,
    mean: Any,
    n_rows: Any,
    scale: Any,
    pool: Any,
    apart: Any,
    order: Any,
    goes_on: Any,
    n_best: Any,
    n_exact: Any,
    n_labels: Any,
    rounding: Any,
) -> Any:
    """Find the best labels of one row by the learners' weights: predict its codes, and ask the decoder.

    Parameters
    ----------
    values : (z,) array
        The non-zeros.
    weights : (z, k) array
        The learners' weights of their columns.
    intercepts : (k,) array
    inverse, mean, n_rows, scale
        The first of `labelrace.learners.code_decoder.Derived`.
    pool, apart, order : Part
        Its pool, and the heads of its lists.
    goes_on : tuple of bool
        Whether the lists are longer than their heads.
    n_best, n_exact, n_labels : int
        As for `labelrace.learners.label_search.best`.
    rounding : float
        What bounds are multiplied by.

    Returns
    -------
    labels, scores : (1, n_best) arrays
    is_sure : bool
        Whether no other label can be among the best.
    """
    k = len(mean)
    codes = intercepts.copy()
    for z in range(len(values)):
        for j in range(k):
            codes[j] += values[z] * weights[z, j]
    centred = codes.astype(np.float64) - mean
    asked, row = np.zeros(k), np.empty((1, k + 1), np.float32)
    for i in range(k):
        for j in range(k):
            asked[j] += centred[i] * inverse[i, j]
    length, shift = 0.0, 1.0 / n_rows
    for j in range(k):
        length += asked[j] * centred[j]
        shift -= asked[j] * mean[j]
        row[0, j] = scale * asked[j]
    row[0, k] = scale * shift
    reach = np.full(1, rounding * np.sqrt(scale) * np.sqrt(max(length, 0.0) + 1.0 / n_rows))
    places, scores = best_of(np.dot(row, pool[2].T), n_best)
    labels = pool[0][places[0]].reshape(1, n_best)
    found, of_found = labels[:, :n_exact].copy(), scores[:, :n_exact].copy()
    n_open = 0
    for part, is_cut in ((apart, goes_on[0]), (order, goes_on[1])):
        n_open += is_cut * search(part[0], part[1], part[2], row, reach, found, of_found, n_labels)
    insert_found(labels, scores, found, of_found, n_labels)
    return labels, scores, n_open == 0
