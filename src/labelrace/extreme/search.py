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
    unsorted   labels counted since the last sorting    head: the first ``n_head`` │ the rest, copied when needed
    order      all labels as they were sorted last      head: the first ``n_head`` │ the rest, copied when needed

Two kernels do this for the rows of a batch: `_find_in_pool`, whose result monitoring and learning share, and `_find`,
which does the rest; where rows are predicted, another one computes their codes and calls both. Costs: most labels that
are scored are the first of the pool or of a list, its *head*. The sums of heads are copied beforehand (`build_lists`),
in blocks that are stored code by code, so that the scores of a block are a sum of arrays. The rest is copied block by
block while a row needs it, once for all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelrace.base.sparse import as_rows
from labelrace.decisions import rules
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import postings
from labelrace.extreme.codes import predicted_codes
from labelrace.extreme.decoder import Queries, write_queries
from labelrace.extreme.kernels import kernel
from labelrace.extreme.postings import labels_from_postings
from labelrace.extreme.ranking import insert, is_among, keep_best, none_above, sort_best
from labelrace.extreme.residual_table import add_weights
from labelrace.linear import rls
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

N_EXACT = 16
"""Candidates of a row that are the best of all labels, exactly."""

MAX_FROM_POSTINGS = 12
"""Largest number of candidates of a row from postings."""

N_HEAD = 4096
"""Labels in the head of each list."""

# Candidates of a row: by the decoder alone, with postings, and where labels are few, as codes are short and rank worse.
_CANDIDATES, _CANDIDATES_WITH_POSTINGS, _CANDIDATES_OF_FEW_LABELS = 128, 32, 256
# Smallest score by the decoder of an absent label that the table learns, where there are postings: most others are
# offered by features.
_MIN_ABSENT_SCORE = 0.01
# Factor of bounds, for rounding errors of single precision.
_ROUNDING_FACTOR = 1.0001
# Labels whose scores are computed together, and scores that are compared together: most such strips have none that is
# large enough.
_BLOCK_LABELS, _STRIP_LABELS = 128, 32
_NO_TABLE = VersionedRows.taking(np.zeros((0, 1), np.float32))

# Types of kernels' arguments: `Lists`; sums, postings, extra precision and the table; candidates and their scores.
_LISTS = (
    "Tuple((int64[::1], float32[::1], float32[:, :, ::1], UniTuple(int64, 3), int64[::1], int64[::1], int64,"
    "boolean[::1]))"
)
_TABLES = "float32[:, ::1], int32[:, ::1], float64[:, ::1], float32[:, ::1]"
_FOUND = "int64[:, ::1], float32[:, ::1]"


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


@kernel()
def _padded(size: Any) -> Any:
    """Round a number of labels up to whole blocks."""
    return (size + _BLOCK_LABELS - 1) // _BLOCK_LABELS * _BLOCK_LABELS


@kernel()
def _score(sums: Any, label: Any, weights: Any) -> Any:
    """Compute the score of a label."""
    score = np.float32(0.0)
    for j in range(len(weights)):
        score += weights[j] * sums[label, j]
    return score


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
def _put_best_of_all(
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
def _put_offered(labels: Any, scores: Any, offered: Any, sums: Any, weights: Any) -> None:
    """Put labels that features offer, -1 for none, after the first candidates of a row, then its other candidates."""
    n_kept = max(len(labels) - MAX_FROM_POSTINGS, 0)
    others, other_scores, n_known = labels[n_kept:].copy(), scores[n_kept:].copy(), n_kept
    for label in offered:
        if n_known == len(labels):
            break
        if label >= 0 and not is_among(label, labels[:n_known]):
            labels[n_known] = label
            n_known += 1
    # In a loop of its own, so that its reads, which miss the cache, overlap.
    for c in range(n_kept, n_known):
        scores[c] = _score(sums, labels[c], weights)
    for c in range(len(others)):
        if n_known == len(labels):
            return
        if not is_among(others[c], labels[:n_known]):
            labels[n_known], scores[n_known] = others[c], other_scores[c]
            n_known += 1


@kernel()
def _unseen_labels(lists: Any, n: Any) -> Any:
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


@kernel(f"void(float32[:, ::1], float64[::1], float64, {_LISTS}, {_FOUND})")
def _find_in_pool(weights: Any, norms: Any, scale: Any, lists: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool for all rows; where it is too small, labels that have not occurred follow, then -1.

    The arguments are as for `_find`; ``labels`` and ``scores``, (n, n_best), are written.
    """
    others = _unseen_labels(lists, max(labels.shape[1] - lists[3][0], 0))
    for row in range(len(labels)):
        bound_factor = _ROUNDING_FACTOR * np.sqrt(scale) * norms[row]
        _best_of_pool(lists, weights[row], bound_factor, labels[row], scores[row])
        for label in others:
            insert(labels[row], scores[row], label, np.float32(0.0))


@kernel(
    f"void({_TABLES}, {postings.ROWS}, int64[::1], float32[:, ::1], float64[::1], float64, {_LISTS}, float64, int64,"
    f"{_FOUND})"
)
def _find(
    sums: Any,
    postings_lists: Any,
    extra_precision: Any,
    table: Any,
    all_rows: Any,
    some: Any,
    weights: Any,
    norms: Any,
    scale: Any,
    lists: Any,
    of_best: Any,
    n_exact: Any,
    all_labels: Any,
    all_scores: Any,
) -> None:
    """Find the candidates of rows and their scores, beginning with those that `_find_in_pool` has found.

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
    weights, norms : (N, k + 1) and (N,) arrays
        The queries, of all rows.
    scale : float
        Of the decoder.
    lists : tuple
        As in `Lists`.
    of_best : float
        Share of the best score that is subtracted from all, if there is a table; see `labelrace.decisions.rules`.
    n_exact : int
        Number of candidates of a row that are exactly the best of all labels.
    all_labels, all_scores : (n, n_best) arrays
        The best of the pool and their scores; candidates and their scores are written in their place.
    """
    indptr, features, values, _ = all_rows
    n_best = all_labels.shape[1]
    # Where the pool and the labels that have not occurred are too few, all others are searched.
    n_exact = n_best if (all_labels < 0).any() else min(n_exact, n_best)
    weights, bound_factors = weights[some], _ROUNDING_FACTOR * np.sqrt(scale) * norms[some]
    if n_exact:
        _put_best_of_all(sums, lists, weights, bound_factors, n_exact, all_labels, all_scores)
    for i in range(len(some)):
        row, labels, scores = some[i], all_labels[i], all_scores[i]
        if len(postings_lists):
            offered = labels_from_postings(postings_lists, extra_precision, all_rows, row)
            _put_offered(labels, scores, offered, sums, weights[i])
        if len(table):
            here = slice(indptr[row], indptr[row + 1])
            add_weights(table, features[here], values[here], labels, scores)
            sort_best(scores, labels, n_best)
            scores -= np.float32(of_best) * max(scores[0], np.float32(0.0))


@kernel(
    f"void(float32[:, ::1], {_TABLES}, int32[::1], int32[::1], float32[::1], float32[::1],"
    f"float64[:, ::1], float64[::1], float64, float64, {_LISTS}, float64, int64, {_FOUND})"
)
def _predict_and_find(
    code_weights: Any,
    sums: Any,
    postings_lists: Any,
    extra_precision: Any,
    table: Any,
    indptr: Any,
    features: Any,
    values: Any,
    intercepts: Any,
    inverse: Any,
    mean: Any,
    n_rows: Any,
    scale: Any,
    lists: Any,
    of_best: Any,
    n_exact: Any,
    labels: Any,
    scores: Any,
) -> None:
    """Predict the codes of rows, by the learners' weights and intercepts, and find the candidates of all of them.

    ``inverse``, ``mean``, ``n_rows`` and ``scale`` are those of the decoder; the rest as for `_find`.
    """
    n = len(labels)
    weights, norms = np.empty((n, len(mean) + 1), np.float32), np.empty(n)
    U = predicted_codes(code_weights, indptr, features, values, intercepts)
    write_queries(U, inverse, mean, n_rows, scale, weights, norms)
    tables, rows = (sums, postings_lists, extra_precision, table), (indptr, features, values, features)
    _find_in_pool(weights, norms, scale, lists, labels, scores)
    _find(*tables, rows, np.arange(n), weights, norms, scale, lists, of_best, n_exact, labels, scores)


@kernel("float64[:, ::1](int64[:, ::1], int32[::1], int32[::1], float64[::1])")
def targets(labels: Any, indptr: Any, present: Any, values: Any) -> Any:
    """Look up candidates, (n, c), in the CSR arrays of the rows' labels: 1, 0, or NaN where a label is not known."""
    known = np.zeros(labels.shape)
    for row in range(len(labels)):
        for entry in range(indptr[row], indptr[row + 1]):
            for c in range(labels.shape[1]):
                if labels[row, c] == present[entry]:
                    known[row, c] = values[entry]
    return known


@kernel(f"float64[:, ::1](float32[:, ::1], float32[:, ::1], {_FOUND}, int32[::1], int32[::1], float64[::1])")
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
            if values[entry] != 1 or is_among(label, labels[row]):
                continue
            while last >= 0 and known[row, last] == 1:
                last -= 1
            if last < 0:
                break
            labels[row, last], known[row, last] = label, 1.0
            scores[row, last] = _score(sums, label, weights[row])
            last -= 1
    return known


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


def find_in_pool(index: SearchIndex, rows: Rows, n_exact: int = N_EXACT) -> Candidates:
    """Find the best of the pool for each row, and their scores by the decoder: what finding candidates begins with."""
    found = _room(index, len(rows.queries.norms), n_exact)
    _find_in_pool(*rows.queries, index.decoder.scale, tuple(index.lists), *found)
    return Candidates(*found)


def find(
    index: SearchIndex,
    rows: Rows,
    n_exact: int = N_EXACT,
    some: IntArray | None = None,
    in_pool: Candidates | None = None,
) -> Candidates:
    """Find the candidates of rows, or of some of them, and their scores.

    Among them are the ``n_exact`` best of all labels by the decoder. Where too few labels have occurred, others follow.
    ``in_pool`` is what `find_in_pool` has found for all rows, if it was called; it is not changed.
    """
    some = np.arange(len(rows.queries.norms)) if some is None else some
    in_pool = find_in_pool(index, rows, n_exact) if in_pool is None else in_pool
    return _completed(index, rows, n_exact, some, Candidates(in_pool.labels[some], in_pool.scores[some]))


def predict(
    index: SearchIndex, learners: rls.Derived, Z: AnyMatrix, extra_precision: Any, n_exact: int = N_EXACT
) -> Candidates:
    """Predict the codes of transformed rows, and find their candidates as `find` does: one call of a kernel."""
    Z, decoder, labels, scores = as_rows(Z), index.decoder, *_room(index, Z.shape[0], n_exact)
    tables = learners.weights, decoder.sums, index.postings, extra_precision, index.table
    rows = Z.indptr, Z.indices, Z.data, learners.intercepts, *decoder[:4]
    read_all(tables, _predict_and_find, *rows, tuple(index.lists), rules.OF_BEST, n_exact, labels, scores)
    return Candidates(labels, scores)


def candidates_to_learn(
    index: SearchIndex, rows: Rows, Y: AnyMatrix, in_pool: Candidates
) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns from: candidates, the true labels among them, with their scores and targets.

    Scores are those of the decoder. Targets are NaN where nothing is to be learned. ``in_pool`` is what `find_in_pool`
    has found; candidates are written in its place.
    """
    every = np.arange(len(rows.queries.norms))
    labels, scores = _completed(index._replace(table=_NO_TABLE), rows, 0, every, in_pool)
    of_rows = rows.queries.weights, labels, scores, Y.indptr, Y.indices, Y.data
    known: FloatArray = read_all((index.decoder.sums,), _put_true_labels, *of_rows)
    if index.postings.shape[0]:
        known[(known == 0) & (scores < _MIN_ABSENT_SCORE)] = np.nan
    return labels, scores, known


def _room(index: SearchIndex, n_rows: int, n_exact: int) -> tuple[IntArray, Array]:
    """Make arrays for the candidates of rows and their scores, (n, c) each."""
    n_labels, uses_postings = index.decoder.sums.shape[0], index.postings.shape[0] > 0
    least = n_exact + MAX_FROM_POSTINGS if uses_postings else n_exact
    shape = n_rows, min(n_labels, max(n_candidates(n_labels, uses_postings=uses_postings), least))
    return np.empty(shape, np.int64), np.empty(shape, np.float32)


def _completed(index: SearchIndex, rows: Rows, n_exact: int, some: IntArray, in_pool: Candidates) -> Candidates:
    """Find the candidates of some rows, written in the place of those of the pool.

    Without a table, their scores are those of the decoder, in no order.
    """
    Z, decoder = as_rows(rows.Z), index.decoder
    tables = decoder.sums, index.postings, rows.extra_precision, index.table
    all_rows = Z.indptr, Z.indices, Z.data, Z.indices if rows.columns is None else rows.columns
    how = decoder.scale, tuple(index.lists), rules.OF_BEST, n_exact
    read_all(tables, _find, all_rows, some, *rows.queries, *how, *in_pool)
    return in_pool
