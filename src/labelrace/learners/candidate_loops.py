"""Compiled loops that choose candidates, row by row.

For `labelrace.learners.candidates`, `labelrace.learners.label_search` and `labelrace.learners.postings`, whose forms in
NumPy do the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.core.compiled import kernel

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
def _none_above(scores: Any, least: Any) -> Any:
    """Tell that no score is above a positive one; False where that is not known."""
    if not least > 0:
        return False
    # Positive numbers are in the order of their bits, as whole numbers, of which the largest is found more quickly.
    bits, top = scores.view(np.int32), np.int32(0)
    for place in range(len(bits)):
        top = max(top, bits[place])
    return top <= np.float32(least).view(np.int32)


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
            stop = min(start + _STRIP, n_columns)
            if _none_above(scores[row, start:stop], least):
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
def insert_better(scores: Any, first: Any, places: Any, best: Any) -> None:
    """Let further scores, of places from ``first`` on, take the places of worse ones that `best_of` has found."""
    last = best.shape[1] - 1
    for row in range(len(scores)):
        for start in range(0, scores.shape[1], _STRIP):
            stop = min(start + _STRIP, scores.shape[1])
            if _none_above(scores[row, start:stop], best[row, last]):
                continue
            for column in range(start, stop):
                if scores[row, column] > best[row, last]:
                    _insert(places[row], best[row], first + column, scores[row, column])


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
def _rarest_of_row(features: Any, values: Any, gained: Any, n_lists: Any, least: Any, found: Any, sizes: Any) -> None:
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
        _rarest_of_row(features[here], values[here], gained[here], n_lists, least, found[row], sizes)
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
def _score(sums: Any, counts: Any, label: Any, weights: Any) -> Any:
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
def _put_offers_of_row(
    labels: Any, scores: Any, offers: Any, n_kept: Any, sums: Any, counts: Any, weights: Any
) -> None:
    """Put labels that features offer behind the first candidates of a row, and the others behind these."""
    others, of_others, n_known = labels[n_kept:].copy(), scores[n_kept:].copy(), n_kept
    for offer in offers:
        if n_known == len(labels):
            return
        if offer >= 0 and not _is_among(offer, labels[:n_known]):
            labels[n_known], scores[n_known] = offer, _score(sums, counts, offer, weights)
            n_known += 1
    for c in range(len(others)):
        if n_known == len(labels):
            return
        if not _is_among(others[c], labels[:n_known]):
            labels[n_known], scores[n_known] = others[c], of_others[c]
            n_known += 1


@kernel
def put_offers(sums: Any, counts: Any, weights: Any, labels: Any, scores: Any, offers: Any, n_kept: Any) -> None:
    """Put labels that features offer, (n, q), -1 for none, behind the first candidates, and the others behind these.

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
        _put_offers_of_row(labels[row], scores[row], offers[row], n_kept, sums, counts, weights[row])


@kernel
def _best_of_part(part: Any, weights: Any, reach: Any, labels: Any, scores: Any) -> None:
    """Find the best of some labels, by falling bound, looking at no more than can be among them."""
    n_best = len(labels)
    names, bounds, sums = part
    size = min(max(4 * n_best, _STRIP), len(names))
    found, at = np.dot(sums[:size], weights), np.arange(size)
    _keep_best(found, at, size, n_best)
    _sort(found, at, n_best)
    for c in range(n_best):
        labels[c], scores[c] = names[at[c]], found[c]
    for start in range(size, len(names), _STRIP):
        if reach * bounds[start] < scores[n_best - 1]:
            return
        some = np.dot(sums[start : start + _STRIP], weights)
        for i in range(len(some)):
            if some[i] > scores[n_best - 1]:
                _insert(labels, scores, names[start + i], some[i])


@kernel
def _search_rest(
    listed: Any, known: Any, sums: Any, counts: Any, weights: Any, reach: Any, found: Any, of_found: Any
) -> None:
    """Go on as `search` behind the head of a list, label by label; labels that are ``known``, if any, are left out."""
    last, n_labels = len(found) - 1, len(sums)
    for label in listed:
        if len(known) and known[label]:
            continue
        if reach * min(np.sqrt(counts[label, 0]), counts[label, 1]) < of_found[last]:
            return
        score = _score(sums, counts, label, weights)
        if score > of_found[last]:
            _insert(found, of_found, label + n_labels, score)


@kernel
def _query(codes: Any, inverse: Any, mean: Any, n_rows: Any, scale: Any) -> Any:
    """Prepare a row by its codes, as `labelrace.learners.code_decoder.queries` does: weights, (k + 1,), and reach."""
    k = len(mean)
    centred = codes.astype(np.float64) - mean
    asked, weights = np.zeros(k), np.empty(k + 1, np.float32)
    for i in range(k):
        for j in range(k):
            asked[j] += centred[i] * inverse[i, j]
    length, shift = 0.0, 1.0 / n_rows
    for j in range(k):
        length += asked[j] * centred[j]
        shift -= asked[j] * mean[j]
        weights[j] = scale * asked[j]
    weights[k] = scale * shift
    return weights, np.sqrt(scale) * np.sqrt(max(length, 0.0) + 1.0 / n_rows)


@kernel
def _offers_of_row(features: Any, values: Any, gained: Any, lists: Any, n_offering: Any) -> Any:
    """List the labels that the rarest features of a row offer, as `labelrace.learners.postings.offered` does."""
    of_entries = np.empty(len(features))
    for z in range(len(features)):
        of_entries[z] = gained[features[z], 0]
    found, sizes = np.empty(n_offering, np.int64), np.empty(n_offering)
    _rarest_of_row(features, values, of_entries, len(lists), 0.0, found, sizes)
    offers = np.full((lists.shape[1], n_offering), -1)
    for place in range(n_offering):
        if found[place] >= 0:
            for d in range(lists.shape[1]):
                offers[d, place] = lists[found[place], d] - 1
    return offers.ravel()


@kernel
def candidates_of_row(
    weights: Any,
    gained: Any,
    lists: Any,
    sums: Any,
    counts: Any,
    features: Any,
    values: Any,
    intercepts: Any,
    decoder: Any,
    parts: Any,
    rests: Any,
    known: Any,
    n_offering: Any,
    rounding: Any,
    n_best: Any,
    n_exact: Any,
    n_kept: Any,
) -> Any:
    """Find the candidates of one row: predict its codes, ask the decoder, and add what its features offer.

    Parameters
    ----------
    weights, gained : (m, k) and (m, 2) arrays
        Of the learners.
    lists : (m, depth) array
        Labels that features offer, with 1 added.
    sums, counts : arrays
        Of the decoder.
    features, values : (z,) arrays
        The non-zeros of the row, scaled.
    intercepts : (k,) array
        Of the learners.
    decoder : tuple
        The first of `labelrace.learners.code_decoder.Derived`: inverse, mean, rows, scale.
    parts : tuple
        The pool, and the heads of its lists, each a `Part`.
    rests : tuple
        What is behind these heads.
    known : (l,) array of bool
        Labels of the pool or of the first list.
    n_offering : int
        Features that offer their labels.
    rounding : float
        What bounds are multiplied by.
    n_best, n_exact, n_kept : int
        Candidates, those of them that are the best of all, and those that stay where features offer some.

    Returns
    -------
    labels, scores : (n_best,) arrays
    """
    codes = intercepts.copy()
    for z in range(len(values)):
        feature = features[z]
        for j in range(len(codes)):
            codes[j] += values[z] * weights[feature, j]
    asked, length = _query(codes, *decoder)
    reach, n_labels = rounding * length, len(sums)
    labels, scores = np.empty((1, n_best), np.int64), np.empty((1, n_best), np.float32)
    _best_of_part(parts[0], asked, reach, labels[0], scores[0])
    found, of_found = labels[:, :n_exact].copy(), scores[:, :n_exact].copy()
    of_row, reach_of_row = asked.reshape(1, -1), np.full(1, reach)
    for part, rest, is_known in ((parts[1], rests[0], known[:0]), (parts[2], rests[1], known)):
        if search(part[0], part[1], part[2], of_row, reach_of_row, found, of_found, n_labels):
            _search_rest(rest, is_known, sums, counts, asked, reach, found[0], of_found[0])
    insert_found(labels, scores, found, of_found, n_labels)
    if len(lists):
        offers = _offers_of_row(features, values, gained, lists, n_offering)
        _put_offers_of_row(labels[0], scores[0], offers, n_kept, sums, counts, asked)
    return labels[0], scores[0]
