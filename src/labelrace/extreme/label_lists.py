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
    pool, unsorted = _by_bound(decoder, pool), _by_bound(decoder, unsorted)
    head = state.order[:n_head]
    heads = pool, unsorted[:n_head], head[~is_listed[head]]
    # Padded with -1, which no loop reads.
    padded = [np.pad(labels, (0, -len(labels) % _BLOCK_LABELS), constant_values=-1) for labels in heads]
    head_labels = np.concatenate(padded)
    sums = decoder.sums.rows(head_labels)
    blocks = sums[:, :-1].reshape(-1, _BLOCK_LABELS, sums.shape[1] - 1).transpose(0, 2, 1)
    sizes = len(heads[0]), len(heads[1]), len(heads[2])
    bounds = code_decoder.bounds(sums)
    return Lists(head_labels, bounds, np.ascontiguousarray(blocks), sizes, unsorted, state.order, n_head, is_listed)


def _by_bound(decoder: code_decoder.Derived, labels: IntArray) -> IntArray:
    """Sort labels by descending bound."""
    return labels[np.argsort(-code_decoder.bounds(decoder.sums.rows(labels)), kind="stable")]


@kernel()
def _padded(size: Any) -> Any:
    """Round a number of labels up to whole blocks."""
    return (size + _BLOCK_LABELS - 1) // _BLOCK_LABELS * _BLOCK_LABELS


@kernel()
def _block_scores(block: Any, one: Any, other: Any, scores: Any) -> None:
    """Compute the scores of a block of labels for two rows with these weights, (2, _BLOCK_LABELS).

    The block is read once for both, and scores are written once for four codes, as reading and writing take longer than
    computing. A row without another is scored twice.
    """
    scores[:], n_by_four = 0.0, len(one) // 4 * 4
    for j in range(0, n_by_four, 4):
        for i in range(_BLOCK_LABELS):
            a, b, c, d = block[j, i], block[j + 1, i], block[j + 2, i], block[j + 3, i]
            scores[0, i] += (one[j] * a + one[j + 1] * b) + (one[j + 2] * c + one[j + 3] * d)
            scores[1, i] += (other[j] * a + other[j + 1] * b) + (other[j + 2] * c + other[j + 3] * d)
    for j in range(n_by_four, len(one)):
        for i in range(_BLOCK_LABELS):
            scores[0, i] += one[j] * block[j, i]
            scores[1, i] += other[j] * block[j, i]


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
    lists: Any,
    first: Any,
    last: Any,
    weights: Any,
    bound_factors: Any,
    labels: Any,
    scores: Any,
    offset: Any,
    is_active: Any,
) -> None:
    """Replace labels of one or two rows by better ones of a head, until no other can be.

    ``offset`` is added to labels that are inserted. Whether the head was too short is written to ``is_active``.
    """
    head_labels, bounds, blocks = lists[0], lists[1], lists[2]
    block_scores = np.empty((2, _BLOCK_LABELS), np.float32)
    is_active[:] = True
    for start in range(first, last, _BLOCK_LABELS):
        for row in range(len(labels)):
            is_active[row] &= bound_factors[row] * bounds[start] >= scores[row, -1]
        if not is_active.any():
            return
        _block_scores(blocks[start // _BLOCK_LABELS], weights[0], weights[-1], block_scores)
        block_labels = head_labels[start : min(start + _BLOCK_LABELS, last)]
        for row in range(len(labels)):
            if is_active[row]:
                _insert_better(block_labels, block_scores[row], labels[row], scores[row], offset)


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
    block_scores, start, bound = np.empty((2, _BLOCK_LABELS), np.float32), 0, np.float32(np.inf)
    while start < len(rest) and is_active.any():
        size, least = 0, (scores[:, -1] / bound_factors)[is_active].min()
        while start < len(rest) and size < _BLOCK_LABELS and bound >= least:
            label, start = rest[start], start + 1
            if len(is_listed) and is_listed[label]:
                continue
            bound = min(np.sqrt(sums[label, -2]), sums[label, -1])
            block_labels[size], block[:, size] = label, sums[label, :-1]
            size += bound >= least
        active = np.flatnonzero(is_active)
        for first in range(0, len(active), 2):
            two = active[first : first + 2]
            _block_scores(block, weights[two[0]], weights[two[-1]], block_scores)
            for i in range(len(two)):
                row = two[i]
                _insert_better(block_labels[:size], block_scores[i], labels[row], scores[row], len(sums))
                is_active[row] = bound_factors[row] * bound >= scores[row, -1]


@kernel()
def best_of_pool(lists: Any, weights: Any, bound_factors: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool for one or two rows, best first; -1 for none.

    Labels whose bounds are too small are not scored.
    """
    head_labels, blocks, size = lists[0], lists[2], lists[3][0]
    n_best = min(labels.shape[1], size)
    labels[:, n_best:], scores[:, n_best:] = -1, -np.inf
    if not n_best:
        return
    n_first = min(_padded(4 * n_best), _padded(size))
    some, block_scores = np.empty((2, n_first), np.float32), np.empty((2, _BLOCK_LABELS), np.float32)
    for start in range(0, n_first, _BLOCK_LABELS):
        _block_scores(blocks[start // _BLOCK_LABELS], weights[0], weights[-1], block_scores)
        some[:, start : start + _BLOCK_LABELS] = block_scores
    for row in range(len(labels)):
        order = np.arange(n_first)
        keep_best(some[row], order, min(size, n_first), n_best)
        sort_best(some[row], order, n_best)
        for c in range(n_best):
            labels[row, c], scores[row, c] = head_labels[order[c]], some[row, c]
    # Where the pool is smaller than the room, all of it has been scored.
    is_active = np.empty(len(labels), np.bool_)
    _search(lists, n_first, size, weights, bound_factors, labels, scores, np.int64(0), is_active)


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
    for row in range(0, len(labels), 2):
        two = slice(row, row + 2)
        of_rows = weights[two], bound_factors[two], labels[two], scores[two]
        _search(lists, first, first + size, *of_rows, len(sums), is_active[two])
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
