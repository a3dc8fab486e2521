"""Candidates: the few labels of a row that are scored by decoder and table, found without scoring all labels.

*By the decoder.* The best of the labels that occurred recently, the *pool*, are candidates. Some of a row's candidates
are exactly the best of all labels: the other labels are scored in the order of their bounds
(`labelrace.extreme.decoder`), until no further one can be among the best.

*By features.* Where labels are many, those in the postings of a row's rarest features (`labelrace.extreme.postings`)
replace the worst candidates by the decoder; the features *offer* them.

The table (`labelrace.extreme.residual_table`) corrects the scores of candidates. When it learns, the true labels of a
row that are not among them replace the last ones.

The labels that have occurred are in three lists, each sorted by descending bound (`Lists`):

    pool       labels of recent occurrences             head: all of it
    unsorted   labels counted since the last sorting    head: the first ``n_head`` │ the rest, label by label
    order      all labels as they were sorted last      head: the first ``n_head`` │ the rest, label by label

One kernel, `_find`, goes through the rows one after the other. Costs: most labels that are scored are the first of the
pool or of a list, its *head*. The sums of heads are copied beforehand (`build_lists`), in blocks that are stored code
by code, so that the scores of a block are a sum of arrays. The rest is read label by label.
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
from labelrace.extreme.postings import labels_from_postings
from labelrace.extreme.residual_table import add_weights
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

N_EXACT = 16
"""Candidates of a row that are the best of all labels, exactly."""

MAX_FROM_POSTINGS = 12
"""Largest number of candidates of a row from postings."""

N_HEAD = 4096
"""Labels in the head of each list."""

# Candidates of a row: by the decoder alone, with postings, and where labels are few, as codes are short and rank worse.
_CANDIDATES, _CANDIDATES_WITH_POSTINGS, _CANDIDATES_OF_FEW_LABELS = 64, 32, 256
# Smallest score by the decoder of an absent label that the table learns, where there are postings: most others are
# offered by features.
_MIN_ABSENT_SCORE = 0.01
# Factor of bounds, for rounding errors of single precision.
_ROUNDING_FACTOR = 1.0001
# Labels whose scores are computed together, and scores that are compared together: most such strips have none that is
# large enough.
_BLOCK_LABELS, _STRIP_LABELS = 128, 32


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), best first, and their scores, adjusted for thresholds."""

    labels: IntArray
    scores: FloatArray


class Lists(NamedTuple):
    """The labels that have occurred, in three lists: the pool, and the rest of the decoder's two lists.

    Each is sorted by descending bound.
    """

    # The heads of the lists, concatenated, each padded to whole blocks: labels; their bounds, to be multiplied by the
    # square root of the scale; their sums and counts by block, (k + 1, _BLOCK_LABELS) each; the length of each head.
    labels: IntArray
    bounds: Array
    blocks: Array
    sizes: tuple[int, int, int]
    # The second and the third list, whole, and the length of their heads in these.
    unsorted: IntArray
    order: IntArray
    n_head: int
    # (l,): whether a label is in one of the first two lists; it may be in the third, too, with an outdated bound.
    is_listed: BoolArray


class SearchIndex(NamedTuple):
    """What is searched for candidates."""

    decoder: code_decoder.Derived
    lists: Lists
    postings: VersionedRows
    table: VersionedRows


class Rows(NamedTuple):
    """Rows that candidates are found for."""

    queries: Queries  # their predicted codes, prepared for the decoder
    Z: AnyMatrix  # the transformed rows, as `RLS.transform` returns them
    # Precision that the learners have gained, by feature, (m, 2), or only of the features that occur: then ``columns``
    # has the index of each non-zero in it.
    extra_precision: Any
    columns: IntArray | None = None


def build_lists(decoder: code_decoder.Derived, state: code_decoder.State, n_head: int = N_HEAD) -> Lists:
    """Sort the labels that are not in the decoder's order, and copy the sums of the heads."""
    pool, is_listed = code_decoder.distinct(state.recent_labels), np.zeros(decoder.sums.shape[0], bool)
    is_listed[pool] = True
    unsorted = state.unsorted[~is_listed[state.unsorted]]
    is_listed[unsorted] = True
    pool, unsorted = (
        labels[np.argsort(-code_decoder.bounds(decoder.sums.rows(labels)), kind="stable")]
        for labels in (pool, unsorted)
    )
    head = state.order[:n_head]
    heads = pool, unsorted[:n_head], head[~is_listed[head]]
    # Padded with -1, which no loop reads.
    padded = (np.pad(labels, (0, -len(labels) % _BLOCK_LABELS), constant_values=-1) for labels in heads)
    head_labels = np.concatenate(list(padded))
    sums = decoder.sums.rows(head_labels)
    blocks = sums[:, :-1].reshape(-1, _BLOCK_LABELS, sums.shape[1] - 1).transpose(0, 2, 1)
    sizes = len(heads[0]), len(heads[1]), len(heads[2])
    bounds = code_decoder.bounds(sums)
    return Lists(head_labels, bounds, np.ascontiguousarray(blocks), sizes, unsorted, state.order, n_head, is_listed)


def n_candidates(n_labels: int, *, uses_postings: bool) -> int:
    """Return how many candidates a row has; ``uses_postings`` where its features offer some."""
    if not postings.enabled(n_labels):
        return min(n_labels, _CANDIDATES_OF_FEW_LABELS)
    return _CANDIDATES_WITH_POSTINGS if uses_postings else _CANDIDATES


def find(
    index: SearchIndex, rows: Rows, n_exact: int = N_EXACT, some: IntArray | None = None, *, with_postings: bool = True
) -> Candidates:
    """Find the candidates of rows, or of some of them, and their scores.

    Among them are the ``n_exact`` best of all labels by the decoder. Where too few labels have occurred, others follow.
    """
    labels, scores = _candidates(index, rows, n_exact, some, index.table, with_postings=with_postings)
    return Candidates(labels, rules.adjusted(scores))


def candidates_to_learn(index: SearchIndex, rows: Rows, Y: AnyMatrix) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns from: candidates, the true labels among them, with their scores and targets.

    Scores are those of the decoder. Targets are NaN where nothing is to be learned.
    """
    labels, scores = _candidates(index, rows, 0, None, None)
    of_rows = rows.queries.weights, labels, scores, Y.indptr, Y.indices, Y.data
    known: FloatArray = read_all((index.decoder.sums,), _put_true_labels, *of_rows)
    if _uses_postings(index, rows):
        known[(known == 0) & (scores < _MIN_ABSENT_SCORE)] = np.nan
    return labels, scores, known


def _uses_postings(index: SearchIndex, rows: Rows) -> bool:
    """Return whether the features of rows offer labels."""
    return len(index.postings) > 0 and scipy.sparse.issparse(rows.Z)


def _candidates(
    index: SearchIndex,
    rows: Rows,
    n_exact: int,
    some: IntArray | None,
    table: VersionedRows | None,
    *,
    with_postings: bool = True,
) -> tuple[IntArray, Array]:
    """Find candidates and their scores, (n, c) each: by the decoder, or with a table's weights, and then best first."""
    n_labels, lists = len(index.decoder.sums), index.lists
    uses_postings = with_postings and _uses_postings(index, rows)
    least = n_exact + MAX_FROM_POSTINGS if uses_postings else n_exact
    n_best = min(n_labels, max(n_candidates(n_labels, uses_postings=uses_postings), least))
    n_missing = max(n_best - lists.sizes[0], 0)
    others = _unseen_labels(lists, n_missing) if n_missing else np.zeros(0, np.int64)
    Z, queries = as_rows(rows.Z), rows.queries
    tables = (
        index.decoder.sums,
        index.postings if uses_postings else np.zeros((0, postings.LABELS_PER_FEATURE), np.int32),
        rows.extra_precision,
        np.zeros((0, 1), np.float32) if table is None else table,
    )
    found: tuple[IntArray, Array] = read_all(
        tables,
        _find,
        (Z.indptr, Z.indices, Z.data, Z.indices if rows.columns is None else rows.columns),
        np.arange(len(queries.norms)) if some is None else some,
        queries.weights,
        _ROUNDING_FACTOR * np.sqrt(index.decoder.scale) * queries.norms,
        tuple(lists),
        others,
        n_best,
        # Where there are too few labels that have not occurred, all that have are searched.
        n_best if len(others) < n_missing else min(n_exact, n_best),
    )
    return found


def _unseen_labels(lists: Lists, n: int) -> IntArray:
    """List the first ``n`` labels that have not occurred."""
    is_known = lists.is_listed.copy()
    is_known[lists.order] = True
    return np.flatnonzero(~is_known)[:n]


@kernel
def targets(labels: Any, indptr: Any, present: Any, values: Any) -> Any:
    """Look up candidates, (n, c), in the CSR arrays of the rows' labels: 1, 0, or NaN where a label is not known."""
    known = np.zeros(labels.shape)
    for row in range(len(labels)):
        for entry in range(indptr[row], indptr[row + 1]):
            for c in range(labels.shape[1]):
                if labels[row, c] == present[entry]:
                    known[row, c] = values[entry]
    return known


@kernel
def _put_true_labels(sums: Any, weights: Any, labels: Any, scores: Any, indptr: Any, present: Any, values: Any) -> Any:
    """Replace the last candidates by true labels that are not among them; return the targets of all.

    Parameters
    ----------
    sums : (l, k + 2) array
        Of the decoder.
    weights : (n, k + 1) array
        Of the queries.
    labels, scores : (n, c) arrays
        Candidates, which are changed.
    indptr, present, values : arrays
        CSR arrays of the rows' labels: 1, 0, or NaN where a label is not known.
    """
    known = targets(labels, indptr, present, values)
    for row in range(len(labels)):
        last = labels.shape[1] - 1
        for entry in range(indptr[row], indptr[row + 1]):
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
    postings_lists: Any,
    extra_precision: Any,
    table: Any,
    all_rows: Any,
    some: Any,
    weights: Any,
    bound_factor: Any,
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
    postings_lists : (m, depth) array
        The postings; empty where they are not used.
    extra_precision : (m, 2) array
        Of the learners.
    table : (slots, 1) array
        The residual table; empty where it is not used, and candidates are not sorted by their final scores.
    all_rows : tuple
        CSR arrays: indptr, features, values; and the row of ``extra_precision`` of each non-zero.
    some : (n,) array of int
        The rows that candidates are found for.
    weights, bound_factor : (N, k + 1) and (N,) arrays
        Of all rows: the queries, and the factor by which a label's bound becomes a bound of its score.
    lists : tuple
        As in `Lists`.
    others : array of int
        Labels that have not occurred, for where the pool is too small.
    n_best, n_exact : int
        Number of candidates of a row, and of those that are exactly the best of all labels.
    """
    indptr, features, values, _ = all_rows
    all_labels, all_scores = np.empty((len(some), n_best), np.int64), np.empty((len(some), n_best), np.float32)
    for i in range(len(some)):
        row, labels, scores = some[i], all_labels[i], all_scores[i]
        here = slice(indptr[row], indptr[row + 1])
        _best_of_pool(lists, weights[row], bound_factor[row], labels, scores)
        for label in others:
            _insert(labels, scores, label, np.float32(0.0))
        if n_exact:
            _put_best_of_all(sums, lists, weights[row], bound_factor[row], n_exact, labels, scores)
        if len(postings_lists):
            offered = labels_from_postings(postings_lists, extra_precision, all_rows, row)
            _put_offered(labels, scores, offered, sums, weights[row])
        if len(table):
            add_weights(table, features[here], values[here], labels, scores)
            _sort_best(scores, labels, n_best)
    return all_labels, all_scores


@kernel
def _padded(size: Any) -> Any:
    """Round a number of labels up to whole blocks."""
    return (size + _BLOCK_LABELS - 1) // _BLOCK_LABELS * _BLOCK_LABELS


@kernel
def _score(sums: Any, label: Any, weights: Any) -> Any:
    """Compute the score of a label."""
    score = np.float32(0.0)
    for j in range(len(weights)):
        score += weights[j] * sums[label, j]
    return score


@kernel
def _block_scores(block: Any, weights: Any, scores: Any) -> None:
    """Compute the scores of a block of labels, four codes at a time, so that scores are written less often."""
    scores[:] = 0.0
    n_by_four = len(weights) // 4 * 4
    for j in range(0, n_by_four, 4):
        for i in range(_BLOCK_LABELS):
            first = weights[j] * block[j, i] + weights[j + 1] * block[j + 1, i]
            scores[i] += first + (weights[j + 2] * block[j + 2, i] + weights[j + 3] * block[j + 3, i])
    for j in range(n_by_four, len(weights)):
        for i in range(_BLOCK_LABELS):
            scores[i] += weights[j] * block[j, i]


@kernel
def _best_of_pool(lists: Any, weights: Any, bound_factor: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool, best first, without scoring labels whose bounds are too small; -1 for none."""
    head_labels, blocks, size = lists[0], lists[2], lists[3][0]
    n_best = min(len(labels), size)
    labels[n_best:], scores[n_best:] = -1, -np.inf
    if not n_best:
        return
    n_first = min(_padded(4 * n_best), _padded(size))
    some, order = np.empty(n_first, np.float32), np.arange(n_first)
    for block in range(0, n_first, _BLOCK_LABELS):
        _block_scores(blocks[block // _BLOCK_LABELS], weights, some[block : block + _BLOCK_LABELS])
    _keep_best(some, order, min(size, n_first), n_best)
    _sort_best(some, order, n_best)
    for c in range(n_best):
        labels[c], scores[c] = head_labels[order[c]], some[c]
    _search(lists, n_first, size, weights, bound_factor, labels[:n_best], scores[:n_best], np.int64(0))


@kernel
def _put_best_of_all(
    sums: Any, lists: Any, weights: Any, bound_factor: Any, n_exact: Any, labels: Any, scores: Any
) -> None:
    """Insert the best of all labels among those of the pool; meanwhile, those that are new have ``n_labels`` added."""
    _, _, _, sizes, unsorted, order, n_head, is_listed = lists
    n_labels, second = len(sums), _padded(sizes[0])
    third = second + _padded(sizes[1])
    exact_labels, exact_scores = labels[:n_exact].copy(), scores[:n_exact].copy()
    if _search(lists, second, second + sizes[1], weights, bound_factor, exact_labels, exact_scores, n_labels):
        _search_rest(unsorted[n_head:], is_listed[:0], sums, weights, bound_factor, exact_labels, exact_scores)
    if _search(lists, third, third + sizes[2], weights, bound_factor, exact_labels, exact_scores, n_labels):
        _search_rest(order[n_head:], is_listed, sums, weights, bound_factor, exact_labels, exact_scores)
    for j in range(n_exact):
        if exact_labels[j] >= n_labels and exact_scores[j] > scores[-1]:
            _insert(labels, scores, exact_labels[j] - n_labels, exact_scores[j])


@kernel
def _search(
    lists: Any, first: Any, last: Any, weights: Any, bound_factor: Any, labels: Any, scores: Any, offset: Any
) -> Any:
    """Replace labels by better ones of a head, until no other can be; return whether the head was too short.

    ``offset`` is added to labels that are inserted.
    """
    head_labels, bounds, blocks = lists[0], lists[1], lists[2]
    some, end = np.empty(_BLOCK_LABELS, np.float32), len(labels) - 1
    for block in range(first, last, _BLOCK_LABELS):
        if bound_factor * bounds[block] < scores[end]:
            return False
        _block_scores(blocks[block // _BLOCK_LABELS], weights, some)
        for start in range(0, min(_BLOCK_LABELS, last - block), _STRIP_LABELS):
            if _none_above(some[start : start + _STRIP_LABELS], scores[end]):
                continue
            for i in range(start, min(start + _STRIP_LABELS, last - block)):
                if some[i] > scores[end]:
                    _insert(labels, scores, head_labels[block + i] + offset, some[i])
    return True


@kernel
def _search_rest(
    rest: Any, is_listed: Any, sums: Any, weights: Any, bound_factor: Any, labels: Any, scores: Any
) -> None:
    """Search a list after its head, label by label; ``is_listed`` are labels to leave out, if not empty."""
    last, n_labels = len(labels) - 1, len(sums)
    for label in rest:
        if len(is_listed) and is_listed[label]:
            continue
        if bound_factor * min(np.sqrt(sums[label, -2]), sums[label, -1]) < scores[last]:
            return
        score = _score(sums, label, weights)
        if score > scores[last]:
            _insert(labels, scores, label + n_labels, score)


@kernel
def _none_above(scores: Any, least: Any) -> Any:
    """Return whether no score is above ``least``; False where ``least`` is not positive, as that is not checked."""
    if not least > 0:
        return False
    # The bits of positive floats are ordered as integers, of which the largest is found more quickly.
    bits, top = scores.view(np.int32), np.int32(0)
    for i in range(len(bits)):
        top = max(top, bits[i])
    return top <= np.float32(least).view(np.int32)


@kernel
def _insert(labels: Any, scores: Any, label: Any, score: Any) -> None:
    """Insert a label among others, by descending score; the last one drops out."""
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
    """Sort the first scores, and their indices, by descending score; equal ones by index."""
    for i in range(1, count):
        score, index, j = scores[i], indices[i], i
        while j and (scores[j - 1] < score or (scores[j - 1] == score and indices[j - 1] > index)):
            scores[j], indices[j], j = scores[j - 1], indices[j - 1], j - 1
        scores[j], indices[j] = score, index


@kernel
def _is_among(label: Any, labels: Any) -> Any:
    """Return whether a label is one of some labels."""
    n_same = 0
    for other in labels:
        n_same += other == label
    return n_same > 0


@kernel
def _put_offered(labels: Any, scores: Any, offered: Any, sums: Any, weights: Any) -> None:
    """Put labels that features offer, -1 for none, after the first candidates of a row, then its other candidates."""
    n_kept = max(len(labels) - MAX_FROM_POSTINGS, 0)
    others, other_scores, n_known = labels[n_kept:].copy(), scores[n_kept:].copy(), n_kept
    for label in offered:
        if n_known == len(labels):
            break
        if label >= 0 and not _is_among(label, labels[:n_known]):
            labels[n_known] = label
            n_known += 1
    # In a loop of its own, so that its reads, which miss the cache, overlap.
    for c in range(n_kept, n_known):
        scores[c] = _score(sums, labels[c], weights)
    for c in range(len(others)):
        if n_known == len(labels):
            return
        if not _is_among(others[c], labels[:n_known]):
            labels[n_known], scores[n_known] = others[c], other_scores[c]
            n_known += 1
