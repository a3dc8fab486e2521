"""Compiled loops that find the best labels of one sparse row, from its numbers to probabilities, in one call.

For `labelrace.extreme.row_search`. They do what `labelrace.extreme.classifier` does for many rows, by the same kernels
where these look at one row at a time. What a call of NumPy or of Python costs is more than most steps of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.compiled import kernel
from labelrace.extreme.candidate_loops import (
    STRIP,
    insert_found,
    insert_into,
    keep_best,
    none_above,
    put_offers_of_row,
    rarest_of_row,
    score_of,
    sort_best,
)
from labelrace.extreme.table_loops import add_up, read_slots
from labelrace.typing import Array, FloatArray, IntArray

BLOCK = 128
"""Labels whose scores are computed together: sums of a block are stored code by code, (k + 1, BLOCK)."""


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
def sparse_values(data: FloatArray, values: Array) -> int:
    """Damp a sparse row and scale it to length one; count what is not zero."""
    n, n_filled, squares = len(data), 0, 0.0
    damped = np.empty(n)
    for i in range(n):
        n_filled += int(data[i] != 0.0)
        # What is missing is zero.
        damped[i] = np.copysign(np.log1p(abs(data[i])), data[i]) if data[i] == data[i] else 0.0
        squares += damped[i] * damped[i]
    ratio = 1.0 / np.sqrt(squares) if squares > 0.0 else 1.0
    for i in range(n):
        values[i] = damped[i] * ratio
    return n_filled


@kernel
def interpolate(scores: FloatArray, steps: FloatArray, lowest: float, bins_per_unit: float) -> FloatArray:
    """Read probabilities off those at the centres of bins, ``steps``, for scores of any rows, (n, c); at most 1."""
    likely, last = np.empty(scores.shape), len(steps) - 1
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            place = min(max((float(scores[i, j]) - lowest) * bins_per_unit, 0.0), float(last))
            below = min(int(place), last - 1)
            likely[i, j] = min((place - below) * (steps[below + 1] - steps[below]) + steps[below], 1.0)
    return likely


@kernel
def _query(codes: Any, inverse: Any, mean: Any, n_rows: Any, scale: Any) -> Any:
    """Prepare a row by its codes, as `labelrace.extreme.decoder.queries` does: weights, (k + 1,), and reach."""
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
def _block_scores(block: Any, weights: Any, scores: Any) -> None:
    """Compute the scores of a block of labels."""
    scores[:] = 0.0
    for j in range(len(weights)):
        for i in range(BLOCK):
            scores[i] += weights[j] * block[j, i]


@kernel
def _best_of_pool(heads: Any, weights: Any, reach: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool, looking at no more labels than can be among them."""
    names, _, blocks, ends = heads
    n_best, n = len(labels), ends[0]
    n_first = min((4 * n_best + BLOCK - 1) // BLOCK, (n + BLOCK - 1) // BLOCK)
    found, at = np.empty(n_first * BLOCK, np.float32), np.arange(n_first * BLOCK)
    for block in range(n_first):
        _block_scores(blocks[block], weights, found[block * BLOCK : (block + 1) * BLOCK])
    keep_best(found, at, min(n, n_first * BLOCK), n_best)
    sort_best(found, at, n_best)
    for c in range(n_best):
        labels[c], scores[c] = names[at[c]], found[c]
    _search(heads, n_first * BLOCK, n, weights, reach, labels, scores, 0)


@kernel
def _search(heads: Any, first: Any, last: Any, weights: Any, reach: Any, labels: Any, scores: Any, added: Any) -> Any:
    """Let labels of a list take the places of worse ones, until no other can; tell whether the list was too short.

    What is found has a number added.
    """
    names, bounds, blocks, _ = heads
    some, end = np.empty(BLOCK, np.float32), len(labels) - 1
    for block in range(first, last, BLOCK):
        if reach * bounds[block] < scores[end]:
            return False
        _block_scores(blocks[block // BLOCK], weights, some)
        for start in range(0, min(BLOCK, last - block), STRIP):
            if none_above(some[start : start + STRIP], scores[end]):
                continue
            for i in range(start, min(start + STRIP, last - block)):
                if some[i] > scores[end]:
                    insert_into(labels, scores, names[block + i] + added, some[i])
    return True


@kernel
def _search_rest(
    listed: Any, known: Any, sums: Any, counts: Any, weights: Any, reach: Any, found: Any, of_found: Any
) -> None:
    """Go on behind the head of a list, label by label; labels that are ``known``, if any, are left out."""
    last, n_labels = len(found) - 1, len(sums)
    for label in listed:
        if len(known) and known[label]:
            continue
        if reach * min(np.sqrt(counts[label, 0]), counts[label, 1]) < of_found[last]:
            return
        score = score_of(sums, counts, label, weights)
        if score > of_found[last]:
            insert_into(found, of_found, label + n_labels, score)


@kernel
def _offers_of_row(features: Any, values: Any, gained: Any, lists: Any, n_offering: Any) -> Any:
    """List the labels that the rarest features of a row offer, as `labelrace.extreme.postings.offered` does."""
    of_entries = np.empty(len(features))
    for z in range(len(features)):
        of_entries[z] = gained[features[z], 0]
    found, sizes = np.empty(n_offering, np.int64), np.empty(n_offering)
    rarest_of_row(features, values, of_entries, len(lists), 0.0, found, sizes)
    offers = np.full((lists.shape[1], n_offering), -1)
    for place in range(n_offering):
        if found[place] >= 0:
            for d in range(lists.shape[1]):
                offers[d, place] = lists[found[place], d] - 1
    return offers.ravel()


@kernel
def _rank(table: Any, features: Any, values: Any, labels: Any, scores: Any, of_best: Any) -> None:
    """Add the weights of the candidates of one row, (c,), to their scores, and sort them: best first, then by label.

    The share ``of_best`` of the best score, if that is positive, is subtracted from all.
    """
    size, sums = len(features) * len(labels), np.zeros(len(labels), np.float32)
    places, tags, words = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    read_slots(table.reshape(-1).view(np.uint32), features, labels, places, tags, words)
    add_up(words, tags, values, sums)
    for c in range(len(labels)):
        label, score, j = labels[c], scores[c] + sums[c], c
        while j and (scores[j - 1] < score or (scores[j - 1] == score and labels[j - 1] > label)):
            labels[j], scores[j], j = labels[j - 1], scores[j - 1], j - 1
        labels[j], scores[j] = label, score
    scores -= np.float32(of_best * max(scores[0], np.float32(0.0)))


@kernel
def best_of_row(
    weights: Any,
    gained: Any,
    lists: Any,
    sums: Any,
    counts: Any,
    table: Any,
    data: Any,
    features: Any,
    starts: Any,
    learned: Any,
    heads: Any,
    rests: Any,
    limits: Any,
    calibration: Any,
    n_exact: Any,
    labels: Any,
    scores: Any,
    likely: Any,
) -> Any:
    """Find the candidates of one row, ranked: predict its codes, ask the decoder, and add what its features offer.

    Parameters
    ----------
    weights, gained : (m, k) and (m, 2) arrays
        Of the learners.
    lists : (m, depth) array
        Labels that features offer, with 1 added.
    sums, counts : arrays
        Of the decoder.
    table : (slots, 1) array
        The residual table.
    data, features, starts : arrays
        The row in compressed form, as it came.
    learned, heads, rests, limits, calibration : tuples
        As in `labelrace.extreme.row_search.RowForm`.
    n_exact : int
        Candidates that are the best of all.
    labels, scores : (c,) arrays
        What is written: candidates, best first, and their adjusted scores.
    likely : (t,) array
        What is written: the probabilities of the first of them.

    Returns
    -------
    is_found : bool
        False where the row is not in order or numbers are not finite: then there is nothing.
    """
    n_offering, n_offered, rounding, of_best, largest = limits
    if not is_in_order(data, features, starts, len(weights), largest):
        return False
    values, codes = np.empty(len(data), np.float32), learned[0].copy()
    sparse_values(data, values)
    for z in range(len(values)):
        feature = features[z]
        for j in range(len(codes)):
            codes[j] += values[z] * weights[feature, j]
    asked, length = _query(codes, learned[1], learned[2], learned[3], learned[4])
    reach, n_labels, ends = rounding * length, len(sums), heads[3]
    _best_of_pool(heads, asked, reach, labels, scores)
    found, of_found = labels[:n_exact].copy(), scores[:n_exact].copy()
    apart, order, known = rests
    first = (ends[0] + BLOCK - 1) // BLOCK * BLOCK
    second = first + (ends[1] + BLOCK - 1) // BLOCK * BLOCK
    if _search(heads, first, first + ends[1], asked, reach, found, of_found, n_labels):
        _search_rest(apart, known[:0], sums, counts, asked, reach, found, of_found)
    if _search(heads, second, second + ends[2], asked, reach, found, of_found, n_labels):
        _search_rest(order, known, sums, counts, asked, reach, found, of_found)
    insert_found(labels.reshape(1, -1), scores.reshape(1, -1), found.reshape(1, -1), of_found.reshape(1, -1), n_labels)
    if len(lists):
        offers = _offers_of_row(features, values, gained, lists, n_offering)
        put_offers_of_row(labels, scores, offers, len(labels) - n_offered, sums, counts, asked)
    _rank(table, features, values, labels, scores, of_best)
    steps, lowest, bins_per_unit = calibration
    likely[:] = interpolate(scores[: len(likely)].reshape(1, -1), steps, lowest, bins_per_unit)[0]
    return np.isfinite(scores).all()
