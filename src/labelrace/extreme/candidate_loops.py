"""Compiled loops that choose candidates, row by row.

For `labelrace.extreme.candidates`, `labelrace.extreme.search` and `labelrace.extreme.postings`, whose forms in
NumPy do the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.compiled import kernel

STRIP = 32
"""Scores that are looked at together: most such strips have none that is large enough."""

# Levels that scores are counted by.
_LEVELS = 256


@kernel
def keep_best(scores: Any, places: Any, count: Any, n_best: Any) -> None:
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
def sort_best(scores: Any, places: Any, count: Any) -> None:
    """Sort the first scores, and their places, by falling score; equal ones by place."""
    for i in range(1, count):
        score, place, j = scores[i], places[i], i
        while j and (scores[j - 1] < score or (scores[j - 1] == score and places[j - 1] > place)):
            scores[j], places[j], j = scores[j - 1], places[j - 1], j - 1
        scores[j], places[j] = score, place


@kernel
def none_above(scores: Any, least: Any) -> Any:
    """Tell that no score is above a positive one; False where that is not known."""
    if not least > 0:
        return False
    # Positive numbers are in the order of their bits, as whole numbers, of which the largest is found more quickly.
    bits, top = scores.view(np.int32), np.int32(0)
    for place in range(len(bits)):
        top = max(top, bits[place])
    return top <= np.float32(least).view(np.int32)


@kernel
def _level(bits: Any) -> Any:
    """Tell how large a score is, roughly: the larger of two scores has no lower level.

    The bits of a positive number begin with its exponent, and have eight levels for each: from 2⁻¹⁴ on, to below 2¹⁸.
    """
    return min(max((bits >> np.int32(20)) - np.int32(904), np.int32(0)), np.int32(_LEVELS - 1))


@kernel
def best_of(scores: Any, n_best: Any) -> Any:
    """Find the places of the largest scores of each row, (n, n_best), largest first, and these scores.

    Scores are counted by level first; those of the highest levels are as many as are wanted, or a few more. There must
    be no NaN.
    """
    n_rows, n_columns = scores.shape
    found, at = np.empty(n_columns, np.float32), np.empty(n_columns, np.int64)
    levels, sizes = np.empty(n_columns, np.uint32), np.empty(_LEVELS, np.int64)
    values, places = np.empty((n_rows, n_best), np.float32), np.empty((n_rows, n_best), np.int64)
    for row in range(n_rows):
        bits = scores[row].view(np.int32)
        sizes[:] = 0
        for column in range(n_columns):
            levels[column] = _level(bits[column])
        for column in range(n_columns):
            sizes[levels[column]] += 1
        least = np.uint32(_LEVELS - 1)
        n_above = sizes[least]
        while n_above < n_best:
            least -= np.uint32(1)
            n_above += sizes[least]
        count = 0
        for column in range(n_columns):
            found[count], at[count] = scores[row, column], column
            count += levels[column] >= least
        if count > n_best:
            keep_best(found, at, count, n_best)
        sort_best(found, at, n_best)
        values[row], places[row] = found[:n_best], at[:n_best]
    return places, values


@kernel
def insert_better(scores: Any, first: Any, places: Any, best: Any) -> None:
    """Let further scores, of places from ``first`` on, take the places of worse ones that `best_of` has found."""
    last = best.shape[1] - 1
    for row in range(len(scores)):
        for start in range(0, scores.shape[1], STRIP):
            stop = min(start + STRIP, scores.shape[1])
            if none_above(scores[row, start:stop], best[row, last]):
                continue
            for column in range(start, stop):
                if scores[row, column] > best[row, last]:
                    insert_into(places[row], best[row], first + column, scores[row, column])


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
        for start in range(0, len(names), STRIP):
            if reach[row] * bounds[start] < scores[row, n_best - 1]:
                is_active = False
                break
            some = np.dot(sums[start : start + STRIP], weights[row])
            for i in range(len(some)):
                if some[i] > scores[row, n_best - 1]:
                    insert_into(labels[row], scores[row], names[start + i] + n_labels, some[i])
        n_active += is_active
    return n_active


@kernel
def insert_into(labels: Any, scores: Any, label: Any, score: Any) -> None:
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
                insert_into(labels[row], scores[row], found[row, f] - n_labels, of_found[row, f])


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
def rarest_of_row(features: Any, values: Any, gained: Any, n_lists: Any, least: Any, found: Any, sizes: Any) -> None:
    """Find the features of a row on which least was gained, but more than ``least``; -1 where there are fewer."""
    count, n_found = len(found), 0
    found[:] = -1
    for z in range(len(features)):
        feature, size = features[z], gained[z]
        if values[z] == 0 or feature >= n_lists or not size > least:
            continue
        j = min(n_found, count - 1)
        if n_found == count and (size > sizes[j] or (size == sizes[j] and feature > found[j])):
            continue
        while j and (sizes[j - 1] > size or (sizes[j - 1] == size and found[j - 1] > feature)):
            found[j], sizes[j], j = found[j - 1], sizes[j - 1], j - 1
        found[j], sizes[j] = feature, size
        n_found = min(n_found + 1, count)


@kernel
def rarest(starts: Any, features: Any, values: Any, gained: Any, n_lists: Any, least: Any, count: Any) -> Any:
    """Find the features of each row on which least was gained, (n, count); -1 where there are fewer.

    Parameters
    ----------
    starts, features, values : arrays
        Rows in compressed form.
    gained : array
        What was gained on the feature of each of their non-zeros.
    n_lists : int
        Features from this one on are left out.
    least : float
        So are features on which no more than this was gained.
    count : int
    """
    found, sizes = np.empty((len(starts) - 1, count), np.int64), np.empty(count)
    for row in range(len(found)):
        here = slice(starts[row], starts[row + 1])
        rarest_of_row(features[here], values[here], gained[here], n_lists, least, found[row], sizes)
    return found


@kernel
def keep_labels(lists: Any, places: Any, starts: Any, present: Any, values: Any) -> None:
    """Put the labels that are present in rows, in their order, at the head of lists; what is there moves back.

    ``places``, (n, count), tells which lists are those of a row, -1 for none.
    """
    depth, labels = lists.shape[1], np.empty(lists.shape[1], lists.dtype)
    for row in range(len(places)):
        n_new = 0
        for entry in range(starts[row], starts[row + 1]):
            if values[entry] == 1 and n_new < depth:
                labels[n_new] = present[entry] + 1
                n_new += 1
        for place in places[row]:
            if place < 0:
                continue
            for d in range(depth - 1, n_new - 1, -1):
                lists[place, d] = lists[place, d - n_new]
            for d in range(n_new):
                lists[place, d] = labels[d]


@kernel
def score_of(sums: Any, counts: Any, label: Any, weights: Any) -> Any:
    """Compute the score of a label."""
    k = sums.shape[1]
    score = weights[k] * counts[label, 0]
    for j in range(k):
        score += weights[j] * sums[label, j]
    return score


@kernel
def _is_among(label: Any, labels: Any) -> Any:
    """Tell whether a label is there already."""
    n_same = 0
    for other in labels:
        n_same += other == label
    return n_same > 0


@kernel
def put_offers_of_row(labels: Any, scores: Any, offers: Any, n_kept: Any, sums: Any, counts: Any, weights: Any) -> None:
    """Put labels that features offer behind the first candidates of a row, and the others behind these."""
    others, of_others, n_known = labels[n_kept:].copy(), scores[n_kept:].copy(), n_kept
    for offer in offers:
        if n_known == len(labels):
            break
        if offer >= 0 and not _is_among(offer, labels[:n_known]):
            labels[n_known] = offer
            n_known += 1
    # By a loop of their own, so that its reads, of memory that is in no cache, overlap.
    for c in range(n_kept, n_known):
        scores[c] = score_of(sums, counts, labels[c], weights)
    for c in range(len(others)):
        if n_known == len(labels):
            return
        if not _is_among(others[c], labels[:n_known]):
            labels[n_known], scores[n_known] = others[c], of_others[c]
            n_known += 1


@kernel
def put_offers(sums: Any, counts: Any, weights: Any, labels: Any, scores: Any, offers: Any, n_kept: Any) -> bool:
    """Put labels that features offer, (n, q), -1 for none, behind the first candidates, and the others behind these.

    Returns True, which tells whoever reads tables that this was done.

    Parameters
    ----------
    sums, counts : arrays
        Of the decoder.
    weights : (n, k + 1) array
        Of the rows: what sums and counts are multiplied by.
    labels, scores : (n, c) arrays
        Candidates, best first; are changed.
    offers : (n, q) array
    n_kept : int
        Candidates that stay where they are.
    """
    for row in range(len(labels)):
        put_offers_of_row(labels[row], scores[row], offers[row], n_kept, sums, counts, weights[row])
    return True
