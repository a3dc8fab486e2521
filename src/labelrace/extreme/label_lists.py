"""Lists of labels by descending bound, and the best labels of a row by the decoder, found without scoring all labels.

The labels that have occurred are in three lists, each sorted by descending bound (`Lists`):

    pool       labels of recent occurrences             head: all of it
    unsorted   labels counted since the last sorting    head: the first ``n_head`` │ the rest, copied when needed
    order      all labels as they were sorted last      head: the first ``n_head`` │ the rest, copied when needed

A row's best labels are found list by list: labels are scored in the order of their bounds (see
`labelrace.extreme.decoder`), until no further one can be among the best. Costs: most labels that are scored are the
first of the pool or of a list, its *head*. The sums of heads are copied beforehand (`build_lists`), in blocks that are
stored code by code, so that the scores of a block are a sum of arrays. The rest is copied block by block while a row
needs it, once for all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelrace.extreme import decoder as code_decoder
from labelrace.extreme.kernels import kernel
from labelrace.extreme.ranking import insert, keep_best, none_above, sort_best
from labelrace.typing import Array, BoolArray, IntArray

N_HEAD = 4096
"""Labels in the head of each list."""

# Labels whose scores are computed together, and scores that are compared together: most such strips have none that is
# large enough.
_BLOCK_LABELS, _STRIP_LABELS = 128, 32

LISTS = (
    "Tuple((int64[::1], float32[::1], float32[:, :, ::1], UniTuple(int64, 3), int64[::1], int64[::1], int64,"
    "boolean[::1]))"
)
"""The type of `Lists`, as kernels declare it."""


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


@kernel()
def _padded(size: Any) -> Any:
    """Round a number of labels up to whole blocks."""
    return (size + _BLOCK_LABELS - 1) // _BLOCK_LABELS * _BLOCK_LABELS


@kernel()
def _add_codes(block: Any, weights: Any, first: Any, scores: Any) -> None:
    """Add the codes from ``first`` on to the scores of a block of labels, one after the other, as `_score` does."""
    for j in range(first, len(weights)):
        for i in range(_BLOCK_LABELS):
            scores[i] += weights[j] * block[j, i]


@kernel()
def _block_scores(block: Any, weights: Any, scores: Any) -> None:
    """Compute the scores of a block of labels, four codes at a time, so that scores are written less often."""
    scores[:] = 0.0
    n_by_four = len(weights) // 4 * 4
    for j in range(0, n_by_four, 4):
        for i in range(_BLOCK_LABELS):
            first = weights[j] * block[j, i] + weights[j + 1] * block[j + 1, i]
            scores[i] += first + (weights[j + 2] * block[j + 2, i] + weights[j + 3] * block[j + 3, i])
    _add_codes(block, weights, n_by_four, scores)


@kernel()
def _insert_better(block_labels: Any, block_scores: Any, labels: Any, scores: Any, offset: Any) -> None:
    """Replace labels by better ones of a block; ``offset`` is added to these."""
    end, size = len(labels) - 1, len(block_labels)
    for start in range(0, size, _STRIP_LABELS):
        if none_above(block_scores[start : start + _STRIP_LABELS], scores[end]):
            continue
        for i in range(start, min(start + _STRIP_LABELS, size)):
            if block_scores[i] > scores[end]:
                insert(labels, scores, block_labels[i] + offset, block_scores[i])


@kernel()
def _search(
    lists: Any, first: Any, last: Any, weights: Any, bound_factor: Any, labels: Any, scores: Any, offset: Any
) -> Any:
    """Replace labels by better ones of a head, until no other can be; return whether the head was too short.

    ``offset`` is added to labels that are inserted.
    """
    head_labels, bounds, blocks = lists[0], lists[1], lists[2]
    block_scores = np.empty(_BLOCK_LABELS, np.float32)
    for start in range(first, last, _BLOCK_LABELS):
        if bound_factor * bounds[start] < scores[-1]:
            return False
        _block_scores(blocks[start // _BLOCK_LABELS], weights, block_scores)
        _insert_better(head_labels[start : min(start + _BLOCK_LABELS, last)], block_scores, labels, scores, offset)
    return True


@kernel()
def _search_rest(
    rest: Any, is_listed: Any, sums: Any, weights: Any, bound_factors: Any, is_active: Any, labels: Any, scores: Any
) -> None:
    """Search a list after its head for the rows that are active, until none is.

    The sums of a block are copied once for all rows. ``is_listed`` are labels to leave out, if not empty.
    """
    # Wider than a block: columns of rows whose length is a power of 2 would be in the same few places of the cache.
    block = np.zeros((weights.shape[1], _BLOCK_LABELS + 16), np.float32)
    block_labels = np.empty(_BLOCK_LABELS, np.int64)
    block_scores, start, bound = np.empty(_BLOCK_LABELS, np.float32), 0, np.float32(np.inf)
    while start < len(rest) and is_active.any():
        size, least = 0, (scores[:, -1] / bound_factors)[is_active].min()
        while start < len(rest) and size < _BLOCK_LABELS and bound >= least:
            label, start = rest[start], start + 1
            if len(is_listed) and is_listed[label]:
                continue
            bound = min(np.sqrt(sums[label, -2]), sums[label, -1])
            block_labels[size], block[:, size] = label, sums[label, :-1]
            size += bound >= least
        for row in np.flatnonzero(is_active):
            block_scores[:] = 0.0
            _add_codes(block, weights[row], 0, block_scores)
            _insert_better(block_labels[:size], block_scores, labels[row], scores[row], len(sums))
            is_active[row] = bound_factors[row] * bound >= scores[row, -1]


@kernel()
def best_of_pool(lists: Any, weights: Any, bound_factor: Any, labels: Any, scores: Any) -> None:
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
    keep_best(some, order, min(size, n_first), n_best)
    sort_best(some, order, n_best)
    for c in range(n_best):
        labels[c], scores[c] = head_labels[order[c]], some[c]
    _search(lists, n_first, size, weights, bound_factor, labels[:n_best], scores[:n_best], np.int64(0))


@kernel()
def _search_list(
    lists: Any,
    first: Any,
    size: Any,
    rest: Any,
    is_listed: Any,
    sums: Any,
    weights: Any,
    bound_factors: Any,
    labels: Any,
    scores: Any,
) -> None:
    """Replace labels of rows by better ones of a list: of its head, from ``first`` on, and of the rest."""
    is_active = np.empty(len(labels), np.bool_)
    for row in range(len(labels)):
        of_row = weights[row], bound_factors[row], labels[row], scores[row]
        is_active[row] = _search(lists, first, first + size, *of_row, len(sums))
    _search_rest(rest, is_listed, sums, weights, bound_factors, is_active, labels, scores)


@kernel()
def put_best_of_all(
    sums: Any, lists: Any, weights: Any, bound_factors: Any, n_exact: Any, labels: Any, scores: Any
) -> None:
    """Insert the best of all labels among those of the pool; meanwhile, those that are new have ``n_labels`` added."""
    _, _, _, sizes, unsorted, order, n_head, is_listed = lists
    n_labels, second = len(sums), _padded(sizes[0])
    third = second + _padded(sizes[1])
    exact_labels, exact_scores = labels[:, :n_exact].copy(), scores[:, :n_exact].copy()
    of_rows = sums, weights, bound_factors, exact_labels, exact_scores
    _search_list(lists, second, sizes[1], unsorted[n_head:], is_listed[:0], *of_rows)
    _search_list(lists, third, sizes[2], order[n_head:], is_listed, *of_rows)
    for row in range(len(labels)):
        for j in range(n_exact):
            if exact_labels[row, j] >= n_labels and exact_scores[row, j] > scores[row, -1]:
                insert(labels[row], scores[row], exact_labels[row, j] - n_labels, exact_scores[row, j])


@kernel()
def unseen_labels(lists: Any, n: Any) -> Any:
    """List the first ``n`` labels that have not occurred."""
    order, is_listed, unseen, n_found = lists[5], lists[7], np.empty(n, np.int64), 0
    if not n:
        return unseen
    is_known = is_listed.copy()
    for label in order:
        is_known[label] = True
    for label in range(len(is_known)):
        if n_found == n:
            break
        if not is_known[label]:
            unseen[n_found], n_found = label, n_found + 1
    return unseen[:n_found]
