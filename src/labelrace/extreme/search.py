"""Candidates: the few labels of a row that are looked at, found without looking at all.

*By the decoder.* The best of the labels that occurred recently, the pool, are candidates. Some of a row's candidates
are to be the best of all labels, exactly: the other labels are looked at in the order of their bounds
(`labelrace.extreme.decoder`), until no other can be among the best.

*By features.* Where labels are many, the rarest features of a row offer some (`labelrace.extreme.postings`), which
replace the last ones by the decoder.

The table (`labelrace.extreme.residual_table`) corrects the scores of candidates. When it learns, the true labels of a
row that are not among them replace the last ones.

The labels that have occurred are in three lists, each by falling bound (`Lists`):

    pool       labels of recent occurrences             head: all of it
    unsorted   labels counted since the last sorting    head: the first ``n_head`` │ the rest, label by label
    order      all labels as they were sorted last      head: the first ``n_head`` │ the rest, label by label

One kernel, `_find`, goes through rows, of any number, one after the other. Costs: most labels that are looked at are
the first of the pool or of a list. Their sums are collected beforehand (`arrange`), in blocks that are stored code by
code, so that the scores of a block are a sum of arrays. What lies behind is looked up label by label.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows
from labelrace.decisions import rules
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import postings
from labelrace.extreme.decoder import Queries
from labelrace.extreme.kernels import kernel
from labelrace.extreme.postings import offers_of_row
from labelrace.extreme.residual_table import add_weights
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

N_EXACT = 16
"""Candidates of a row that are the best of all labels, exactly."""

MAX_FROM_POSTINGS = 12
"""Candidates of a row that its features offer, at most."""

N_HEAD = 4096
"""Labels of each list whose sums are collected beforehand."""

# Candidates of a row; where its features offer some; and of few labels, where codes are short, and rank worse.
_CANDIDATES, _WITH_OFFERS, _OF_FEW_LABELS = 64, 32, 256
# Scores by the decoder below which the table learns nothing of absent labels, most of which features have offered.
_UNLIKELY = 0.01
# What bounds are multiplied by, for the rounding of single precision.
_ROUNDING = 1.0001
# Labels whose scores are computed together, and scores that are looked at together: most such strips have none that is
# large enough.
_BLOCK, _STRIP = 128, 32


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), best first, and their scores, adjusted for thresholds."""

    labels: IntArray
    scores: FloatArray


class Lists(NamedTuple):
    """The labels that have occurred, in three lists: the pool, and the two of the decoder's state that are not in it.

    Each is sorted by falling bound.
    """

    # The heads of the lists, one behind the other, each from the beginning of a block on: labels, their bounds, but for
    # the root of the scale, their sums and counts by block, (k + 1, _BLOCK) each, and how many labels each list has.
    labels: IntArray
    bounds: Array
    blocks: Array
    sizes: tuple[int, int, int]
    # The second and the third list, and how many of each are in its head.
    unsorted: IntArray
    order: IntArray
    n_head: int
    # (l,) of bool: labels of the first two lists, which are in the third one, too, where their bound is another one.
    is_listed: BoolArray


class Searched(NamedTuple):
    """What candidates are found in."""

    decoder: code_decoder.Derived
    lists: Lists
    postings: VersionedRows
    table: VersionedRows


class Rows(NamedTuple):
    """Rows that candidates are found for."""

    queries: Queries  # what the decoder is asked
    Z: AnyMatrix  # what the learners make of them
    # Precision that the learners have gained, by feature, (m, 2), or of the features that occur: then ``columns`` tells
    # which of these each non-zero has.
    extra_precision: Any
    columns: IntArray | None = None


def arrange(decoder: code_decoder.Derived, state: code_decoder.State, n_head: int = N_HEAD) -> Lists:
    """Sort the labels that are not in the order, and collect the sums of the first labels of each list."""
    pool, is_listed = code_decoder.distinct(state.recent), np.zeros(decoder.sums.shape[0], bool)
    is_listed[pool] = True
    unsorted = state.unsorted[~is_listed[state.unsorted]]
    is_listed[unsorted] = True
    pool, unsorted = (
        labels[np.argsort(-code_decoder.bounds(decoder.sums.rows(labels)), kind="stable")]
        for labels in (pool, unsorted)
    )
    head = state.order[:n_head]
    heads = pool, unsorted[:n_head], head[~is_listed[head]]
    # Where there is no label, -1 stands for any: nobody looks at it.
    names = np.concatenate([np.pad(labels, (0, -len(labels) % _BLOCK), constant_values=-1) for labels in heads])
    sums = decoder.sums.rows(names)
    blocks = sums[:, :-1].reshape(-1, _BLOCK, sums.shape[1] - 1).transpose(0, 2, 1)
    sizes = len(heads[0]), len(heads[1]), len(heads[2])
    bounds = code_decoder.bounds(sums)
    return Lists(names, bounds, np.ascontiguousarray(blocks), sizes, unsorted, state.order, n_head, is_listed)


def n_candidates(n_labels: int, *, are_offered: bool) -> int:
    """Return how many candidates a row has; ``are_offered`` where its features offer some."""
    if not postings.enabled(n_labels):
        return min(n_labels, _OF_FEW_LABELS)
    return _WITH_OFFERS if are_offered else _CANDIDATES


def find(
    searched: Searched, rows: Rows, n_exact: int = N_EXACT, some: IntArray | None = None, *, with_postings: bool = True
) -> Candidates:
    """Find the candidates of rows, or of some of them, and their scores.

    Among them are the ``n_exact`` best of all labels by the decoder. Where too few labels have occurred, others follow.
    """
    labels, scores = _candidates(searched, rows, n_exact, some, searched.table, with_postings=with_postings)
    return Candidates(labels, rules.adjusted(scores))


def to_learn(searched: Searched, rows: Rows, Y: AnyMatrix) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns of rows: candidates, the true labels among them, their scores and targets.

    Scores are those by the decoder. Targets are NaN where nothing is to be learned.
    """
    labels, scores = _candidates(searched, rows, 0, None, None)
    of_rows = rows.queries.weights, labels, scores, Y.indptr, Y.indices, Y.data
    of_labels: FloatArray = read_all((searched.decoder.sums,), _put_true_labels, *of_rows)
    if _are_offered(searched, rows):
        of_labels[(of_labels == 0) & (scores < _UNLIKELY)] = np.nan
    return labels, scores, of_labels


def _are_offered(searched: Searched, rows: Rows) -> bool:
    """Return whether the features of rows offer labels."""
    return len(searched.postings) > 0 and scipy.sparse.issparse(rows.Z)


def _candidates(
    searched: Searched,
    rows: Rows,
    n_exact: int,
    some: IntArray | None,
    table: VersionedRows | None,
    *,
    with_postings: bool = True,
) -> tuple[IntArray, Array]:
    """Find candidates and their scores, (n, c) each: by the decoder, or with a table's weights, and then best first."""
    n_labels, lists = len(searched.decoder.sums), searched.lists
    are_offered = with_postings and _are_offered(searched, rows)
    least = n_exact + MAX_FROM_POSTINGS if are_offered else n_exact
    n_best = min(n_labels, max(n_candidates(n_labels, are_offered=are_offered), least))
    n_missing = max(n_best - lists.sizes[0], 0)
    others = _in_no_list(lists, n_missing) if n_missing else np.zeros(0, np.int64)
    Z, queries = as_rows(rows.Z), rows.queries
    tables = (
        searched.decoder.sums,
        searched.postings if are_offered else np.zeros((0, postings.DEPTH), np.int32),
        rows.extra_precision,
        np.zeros((0, 1), np.float32) if table is None else table,
    )
    found: tuple[IntArray, Array] = read_all(
        tables,
        _find,
        (Z.indptr, Z.indices, Z.data, Z.indices if rows.columns is None else rows.columns),
        np.arange(len(queries.lengths)) if some is None else some,
        queries.weights,
        _ROUNDING * np.sqrt(searched.decoder.scale) * queries.lengths,
        tuple(lists),
        others,
        n_best,
        # Where too few labels have not occurred, all that have are looked at.
        n_best if len(others) < n_missing else min(n_exact, n_best),
    )
    return found


def _in_no_list(lists: Lists, n: int) -> IntArray:
    """List the first labels that have not occurred, up to a number of them."""
    is_known = lists.is_listed.copy()
    is_known[lists.order] = True
    return np.flatnonzero(~is_known)[:n]


@kernel
def targets(labels: Any, starts: Any, present: Any, values: Any) -> Any:
    """Look candidates, (n, c), up in the labels of rows, in compressed form: 1, 0, or NaN where it is not known."""
    known = np.zeros(labels.shape)
    for row in range(len(labels)):
        for entry in range(starts[row], starts[row + 1]):
            for c in range(labels.shape[1]):
                if labels[row, c] == present[entry]:
                    known[row, c] = values[entry]
    return known


@kernel
def _put_true_labels(sums: Any, weights: Any, labels: Any, scores: Any, starts: Any, present: Any, values: Any) -> Any:
    """Put the true labels that are no candidates in the last columns of others, with their scores; return the targets.

    Parameters
    ----------
    sums : (l, k + 2) array
        Of the decoder.
    weights : (n, k + 1) array
        Of the queries.
    labels, scores : (n, c) arrays
        Candidates; are changed.
    starts, present, values : arrays
        Labels of rows in compressed form: 1, 0, or NaN where it is not known.
    """
    known = targets(labels, starts, present, values)
    for row in range(len(labels)):
        last = labels.shape[1] - 1
        for entry in range(starts[row], starts[row + 1]):
            label = np.int64(present[entry])
            if values[entry] != 1 or _is_among(label, labels[row]):
                continue
            while last >= 0 and known[row, last] == 1:
                last -= 1
            if last < 0:
                break
            labels[row, last], known[row, last] = label, 1.0
            scores[row, last] = _score(sums, label, weights[row])
            last -= 1
    return known


@kernel
def _find(
    sums: Any,
    lists_of_features: Any,
    extra_precision: Any,
    table: Any,
    all_rows: Any,
    some: Any,
    weights: Any,
    reach: Any,
    lists: Any,
    others: Any,
    n_best: Any,
    n_exact: Any,
) -> Any:
    """Find the candidates of rows and their scores, (n, n_best) each.

    Parameters
    ----------
    sums : (l, k + 2) array
        Of the decoder.
    lists_of_features : (m, depth) array
        The postings; of no features where they are not used.
    extra_precision : (m, 2) array
        Of the learners.
    table : (slots, 1) array
        The residual table; without slots where it is not used, and candidates are not sorted by their final scores.
    all_rows : tuple
        Rows in compressed form: starts, features, values, and which row of ``extra_precision`` each non-zero has.
    some : (n,) array of int
        The rows that candidates are found for.
    weights, reach : (N, k + 1) and (N,) arrays
        Of all rows: the queries, and what the bound of a label is multiplied by to bound its score.
    lists : tuple
        As in `Lists`.
    others : array of int
        Labels that have not occurred, for where the pool is too small.
    n_best, n_exact : int
        Candidates of a row, and how many of them are the best of all.
    """
    starts, features, values, _ = all_rows
    all_labels, all_scores = np.empty((len(some), n_best), np.int64), np.empty((len(some), n_best), np.float32)
    for i in range(len(some)):
        row, labels, scores = some[i], all_labels[i], all_scores[i]
        here = slice(starts[row], starts[row + 1])
        _best_of_pool(lists, weights[row], reach[row], labels, scores)
        for label in others:
            _insert(labels, scores, label, np.float32(0.0))
        if n_exact:
            _put_best_of_all(sums, lists, weights[row], reach[row], n_exact, labels, scores)
        if len(lists_of_features):
            offers = offers_of_row(lists_of_features, extra_precision, all_rows, row)
            _put_offers(labels, scores, offers, sums, weights[row])
        if len(table):
            add_weights(table, features[here], values[here], labels, scores)
            _sort_best(scores, labels, n_best)
    return all_labels, all_scores


@kernel
def _padded(size: Any) -> Any:
    """Round a number of labels up to whole blocks."""
    return (size + _BLOCK - 1) // _BLOCK * _BLOCK


@kernel
def _score(sums: Any, label: Any, weights: Any) -> Any:
    """Compute the score of a label."""
    score = np.float32(0.0)
    for j in range(len(weights)):
        score += weights[j] * sums[label, j]
    return score


@kernel
def _block_scores(block: Any, weights: Any, scores: Any) -> None:
    """Compute the scores of a block of labels, four codes at a time, so that sums are written less often."""
    scores[:] = 0.0
    n_by_four = len(weights) // 4 * 4
    for j in range(0, n_by_four, 4):
        for i in range(_BLOCK):
            first = weights[j] * block[j, i] + weights[j + 1] * block[j + 1, i]
            scores[i] += first + (weights[j + 2] * block[j + 2, i] + weights[j + 3] * block[j + 3, i])
    for j in range(n_by_four, len(weights)):
        for i in range(_BLOCK):
            scores[i] += weights[j] * block[j, i]


@kernel
def _best_of_pool(lists: Any, weights: Any, reach: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool, best first, looking at no more labels than can be among them; -1 for missing ones."""
    names, blocks, size = lists[0], lists[2], lists[3][0]
    n_best = min(len(labels), size)
    labels[n_best:], scores[n_best:] = -1, -np.inf
    if not n_best:
        return
    n_first = min(_padded(4 * n_best), _padded(size))
    some, order = np.empty(n_first, np.float32), np.arange(n_first)
    for block in range(0, n_first, _BLOCK):
        _block_scores(blocks[block // _BLOCK], weights, some[block : block + _BLOCK])
    _keep_best(some, order, min(size, n_first), n_best)
    _sort_best(some, order, n_best)
    for c in range(n_best):
        labels[c], scores[c] = names[order[c]], some[c]
    _search(lists, n_first, size, weights, reach, labels[:n_best], scores[:n_best], np.int64(0))


@kernel
def _put_best_of_all(sums: Any, lists: Any, weights: Any, reach: Any, n_exact: Any, labels: Any, scores: Any) -> None:
    """Put the best of all labels among those of the pool; they are known by having the number of labels added."""
    _, _, _, sizes, unsorted, order, n_head, is_listed = lists
    n_labels, second = len(sums), _padded(sizes[0])
    third = second + _padded(sizes[1])
    exact, of_exact = labels[:n_exact].copy(), scores[:n_exact].copy()
    if _search(lists, second, second + sizes[1], weights, reach, exact, of_exact, n_labels):
        _search_rest(unsorted[n_head:], is_listed[:0], sums, weights, reach, exact, of_exact)
    if _search(lists, third, third + sizes[2], weights, reach, exact, of_exact, n_labels):
        _search_rest(order[n_head:], is_listed, sums, weights, reach, exact, of_exact)
    for j in range(n_exact):
        if exact[j] >= n_labels and of_exact[j] > scores[-1]:
            _insert(labels, scores, exact[j] - n_labels, of_exact[j])


@kernel
def _search(lists: Any, first: Any, last: Any, weights: Any, reach: Any, labels: Any, scores: Any, added: Any) -> Any:
    """Let labels of a head replace worse ones, until no other can; return whether the head was too short.

    What is found has a number added.
    """
    names, bounds, blocks = lists[0], lists[1], lists[2]
    some, end = np.empty(_BLOCK, np.float32), len(labels) - 1
    for block in range(first, last, _BLOCK):
        if reach * bounds[block] < scores[end]:
            return False
        _block_scores(blocks[block // _BLOCK], weights, some)
        for start in range(0, min(_BLOCK, last - block), _STRIP):
            if _none_above(some[start : start + _STRIP], scores[end]):
                continue
            for i in range(start, min(start + _STRIP, last - block)):
                if some[i] > scores[end]:
                    _insert(labels, scores, names[block + i] + added, some[i])
    return True


@kernel
def _search_rest(names: Any, is_listed: Any, sums: Any, weights: Any, reach: Any, labels: Any, scores: Any) -> None:
    """Go on behind the head of a list, label by label; those that are listed elsewhere, if any, are left out."""
    last, n_labels = len(labels) - 1, len(sums)
    for label in names:
        if len(is_listed) and is_listed[label]:
            continue
        if reach * min(np.sqrt(sums[label, -2]), sums[label, -1]) < scores[last]:
            return
        score = _score(sums, label, weights)
        if score > scores[last]:
            _insert(labels, scores, label + n_labels, score)


@kernel
def _none_above(scores: Any, least: Any) -> Any:
    """Return that no score is above a positive one; False where that is not known."""
    if not least > 0:
        return False
    # Positive numbers are in the order of their bits, as whole numbers, of which the largest is found more quickly.
    bits, top = scores.view(np.int32), np.int32(0)
    for i in range(len(bits)):
        top = max(top, bits[i])
    return top <= np.float32(least).view(np.int32)


@kernel
def _insert(labels: Any, scores: Any, label: Any, score: Any) -> None:
    """Put a label among others, by falling score; the last one is gone."""
    j = len(labels) - 1
    while j and scores[j - 1] < score:
        labels[j], scores[j] = labels[j - 1], scores[j - 1]
        j -= 1
    labels[j], scores[j] = label, score


@kernel
def _keep_best(scores: Any, indices: Any, count: Any, n_best: Any) -> None:
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


@kernel
def _sort_best(scores: Any, indices: Any, count: Any) -> None:
    """Sort the first scores, and their indices, by falling score; equal ones by index."""
    for i in range(1, count):
        score, index, j = scores[i], indices[i], i
        while j and (scores[j - 1] < score or (scores[j - 1] == score and indices[j - 1] > index)):
            scores[j], indices[j], j = scores[j - 1], indices[j - 1], j - 1
        scores[j], indices[j] = score, index


@kernel
def _is_among(label: Any, labels: Any) -> Any:
    """Return whether a label is there already."""
    n_same = 0
    for other in labels:
        n_same += other == label
    return n_same > 0


@kernel
def _put_offers(labels: Any, scores: Any, offers: Any, sums: Any, weights: Any) -> None:
    """Put labels that features offer, -1 for none, behind the first candidates of a row, and others behind these."""
    n_kept = max(len(labels) - MAX_FROM_POSTINGS, 0)
    others, of_others, n_known = labels[n_kept:].copy(), scores[n_kept:].copy(), n_kept
    for offer in offers:
        if n_known == len(labels):
            break
        if offer >= 0 and not _is_among(offer, labels[:n_known]):
            labels[n_known] = offer
            n_known += 1
    # By a loop of their own, so that its reads, of memory that is in no cache, overlap.
    for c in range(n_kept, n_known):
        scores[c] = _score(sums, labels[c], weights)
    for c in range(len(others)):
        if n_known == len(labels):
            return
        if not _is_among(others[c], labels[:n_known]):
            labels[n_known], scores[n_known] = others[c], of_others[c]
            n_known += 1
