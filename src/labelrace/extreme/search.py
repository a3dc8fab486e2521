"""Candidates: the few labels of a row that are scored by decoder and table, found without scoring all labels.

*By the decoder.* The best of the labels that occurred recently, the *pool*, are candidates. Some of a row's candidates
are exactly the best of all labels: the other labels are scored in the order of their bounds
(`labelrace.extreme.decoder`), until no further one can be among the best.

*By features.* Where labels are many, those in the postings of a row's rarest features (`labelrace.extreme.postings`)
replace the worst candidates by the decoder; the features *offer* them.

The table (`labelrace.extreme.residual_table`) corrects the scores of candidates. When it learns, the true labels of a
row that are not among them replace the last ones.

Two kernels do this for the rows of a batch: `_find_in_pool`, whose result monitoring and learning share, and `_find`,
which does the rest; where rows are predicted, another one computes their codes and calls both. Which labels are scored,
and in which order, is in `labelrace.extreme.label_lists`.
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
from labelrace.extreme.label_lists import LISTS, Lists, best_of_pool, put_best_of_all, unseen_labels
from labelrace.extreme.postings import labels_from_postings
from labelrace.extreme.ranking import insert, is_among, sort_best
from labelrace.extreme.residual_table import add_weights
from labelrace.linear import rls
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

N_EXACT = 16
"""Candidates of a row that are the best of all labels, exactly."""

MAX_FROM_POSTINGS = 12
"""Largest number of candidates of a row from postings."""

# Candidates of a row: by the decoder alone, with postings, and where labels are few, as codes are short and rank worse.
_CANDIDATES, _CANDIDATES_WITH_POSTINGS, _CANDIDATES_OF_FEW_LABELS = 128, 32, 256
# Smallest score by the decoder of an absent label that the table learns, where there are postings: most others are
# offered by features.
_MIN_ABSENT_SCORE = 0.01
# Factor of bounds, for rounding errors of single precision.
_ROUNDING_FACTOR = 1.0001
NO_TABLE = VersionedRows.taking(np.zeros((0, 1), np.float32))

# Types of kernels' arguments: sums, postings, extra precision and the table; candidates and their scores.
_TABLES = "float32[:, ::1], int32[:, ::1], float64[:, ::1], float32[:, ::1]"
_FOUND = "int64[:, ::1], float32[:, ::1]"


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), best first, and their scores, adjusted for thresholds."""

    labels: IntArray
    scores: FloatArray


class SearchIndex(NamedTuple):
    """What is searched for candidates."""

    decoder: code_decoder.Derived
    lists: Lists
    postings: VersionedRows
    table: VersionedRows


class Rows(NamedTuple):
    """Rows that candidates are found for."""

    queries: Queries  # their predicted codes, prepared for the decoder
    Z: AnyMatrix  # the transformed rows, in compressed form
    # Precision that the learners have gained, by feature, (m, 2), or only of the features that occur: then ``columns``
    # has the index of each non-zero in it.
    extra_precision: Any
    columns: IntArray | None = None


@kernel()
def _score(sums: Any, label: Any, weights: Any) -> Any:
    """Compute the score of a label."""
    # In four sums, as each addition waits for the one before.
    a = b = c = d = np.float32(0.0)
    n_by_four = len(weights) // 4 * 4
    for j in range(0, n_by_four, 4):
        a += weights[j] * sums[label, j]
        b += weights[j + 1] * sums[label, j + 1]
        c += weights[j + 2] * sums[label, j + 2]
        d += weights[j + 3] * sums[label, j + 3]
    for j in range(n_by_four, len(weights)):
        a += weights[j] * sums[label, j]
    return (a + b) + (c + d)


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


@kernel(f"void(float32[:, ::1], float64[::1], float64, {LISTS}, {_FOUND})")
def _find_in_pool(weights: Any, norms: Any, scale: Any, lists: Any, labels: Any, scores: Any) -> None:
    """Find the best of the pool for all rows; where it is too small, labels that have not occurred follow, then -1.

    The arguments are as for `_find`; ``labels`` and ``scores``, (n, n_best), are written.
    """
    others = unseen_labels(lists, max(labels.shape[1] - lists[3][0], 0))
    bound_factors = _ROUNDING_FACTOR * np.sqrt(scale) * norms
    for row in range(0, len(labels), 2):
        two = slice(row, row + 2)
        best_of_pool(lists, weights[two], bound_factors[two], labels[two], scores[two])
    for label in others:
        for row in range(len(labels)):
            insert(labels[row], scores[row], label, np.float32(0.0))


@kernel(
    f"void({_TABLES}, {postings.ROWS}, int64[::1], float32[:, ::1], float64[::1], float64, {LISTS}, float64, int64,"
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
        put_best_of_all(sums, lists, weights, bound_factors, n_exact, all_labels, all_scores)
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
    f"float64[:, ::1], float64[::1], float64, float64, {LISTS}, float64, int64, {_FOUND})"
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
    labels, scores = _completed(index._replace(table=NO_TABLE), rows, 0, every, in_pool)
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
    """Find the candidates of some rows, written over those of the pool.

    Without a table, their scores are those of the decoder, in no order.
    """
    Z, decoder = rows.Z, index.decoder
    tables = decoder.sums, index.postings, rows.extra_precision, index.table
    all_rows = Z.indptr, Z.indices, Z.data, Z.indices if rows.columns is None else rows.columns
    how = decoder.scale, tuple(index.lists), rules.OF_BEST, n_exact
    read_all(tables, _find, all_rows, some, *rows.queries, *how, *in_pool)
    return in_pool
