"""Candidates: the few labels of a row that are looked at, where there are too many to look at all.

They are the best ones by the decoder (`labelrace.learners.code_decoder`), some of them the best of all labels exactly,
the others of those that occurred recently; and those that the features of a row offer (`labelrace.learners.postings`),
which take the places of the last ones by the decoder. The table (`labelrace.learners.residual_table`) corrects their
scores. When it learns, the true labels of a row that are not among them take the places of the last ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.core import compiled, thresholds
from labelrace.learners import (
    candidate_loops,
    code_decoder,
    columns,
    label_search,
    postings,
    residual_table,
    rls,
    scaling,
)
from labelrace.learners.table import Table
from labelrace.learners.table import rows_of as rows_of_table
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = [
    "EXACT",
    "Candidates",
    "LinearForm",
    "count",
    "linear_form",
    "rows_of",
    "scored",
    "scored_row",
    "targets",
    "to_learn",
]

EXACT = 16
"""Labels of each row that are the best of all labels, exactly."""

# Candidates of a row; where its features offer some, of which at most so many are taken; and of few labels, where codes
# are short, and rank worse.
_CANDIDATES, _WITH_OFFERS, _OFFERED, _OF_FEW_LABELS = 64, 32, 12, 256


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), and their scores, adjusted for thresholds."""

    labels: IntArray
    scores: FloatArray


def count(n_labels: int, *, are_offered: bool) -> int:
    """Return how many candidates a row has; ``are_offered`` where its features offer some."""
    if not postings.are_kept(n_labels):
        return min(n_labels, _OF_FEW_LABELS)
    return _WITH_OFFERS if are_offered else _CANDIDATES


def scored(
    decoder: code_decoder.Derived,
    table: Table,
    asked: code_decoder.Queries,
    Z: AnyMatrix | None,
    offers: IntArray | None = None,
    n_exact: int = EXACT,
) -> Candidates:
    """Find the candidates of rows and their scores; without ``Z``, as if the table were empty.

    ``offers`` are labels that features offer, (n, q), -1 for none.
    """
    n_best, n_exact = _wanted(decoder, offers, n_exact)
    labels, scores = label_search.best(decoder, asked, n_best, n_exact)
    labels, scores = _with_offers(decoder, asked, labels, scores, offers)
    if Z is not None:
        scores = scores + residual_table.scores(table, Z, labels)
    return Candidates(labels, thresholds.adjusted(scores))


def scored_row(
    decoder: code_decoder.Derived,
    table: Table,
    learners: rls.Derived,
    X: AnyMatrix,
    offers: IntArray | None = None,
    n_exact: int = EXACT,
) -> Candidates | None:
    """Do as `scored` for one sparse row of numbers, by compiled loops, without making matrices of it.

    None where it cannot be done so.
    """
    scaled = learners.scaling
    is_sparse = not scaled.length and scipy.sparse.issparse(X) and columns.all_numeric(scaled.n_values)
    if not (is_sparse and compiled.is_available()):
        return None
    values, _ = scaling.transform_row(scaled, X)
    places = X.indices
    weights = rows_of_table(learners.weights, places)
    wanted = _wanted(decoder, offers, n_exact)
    found = label_search.best_of_row(decoder, values, weights, learners.intercepts, *wanted)
    if found is None:
        return None
    labels, scores = found
    if offers is not None:
        codes = (values @ weights + learners.intercepts).astype(float)
        asked = code_decoder.queries(decoder, codes[None])
        labels, scores = _with_offers(decoder, asked, labels, scores, offers)
    scores = scores + residual_table.scores_of_row(table, places, values, labels)
    return Candidates(labels, thresholds.adjusted(scores))


def _wanted(decoder: code_decoder.Derived, offers: IntArray | None, n_exact: int) -> tuple[int, int]:
    """Return how many candidates are looked for, and how many of them are to be the best of all."""
    n_labels = decoder.sums.shape[0]
    n_offered = 0 if offers is None else _OFFERED
    n_best = min(n_labels, max(count(n_labels, are_offered=offers is not None), n_exact + n_offered))
    return n_best, min(n_exact, n_best)


def _with_offers(
    decoder: code_decoder.Derived, asked: code_decoder.Queries, labels: IntArray, scores: Array, offers: IntArray | None
) -> tuple[IntArray, Array]:
    """Put labels that features offer in the places of the last ones; there are as many candidates as before."""
    if offers is None:
        return labels, scores
    n_best, n_offers = labels.shape[1], offers.shape[1]
    n_kept = n_best - _OFFERED
    joined = np.hstack([labels[:, :n_kept], offers, labels[:, n_kept:]])
    of_joined = np.hstack([scores[:, :n_kept], np.zeros(offers.shape, scores.dtype), scores[:, n_kept:]])
    places = postings.first_distinct(joined, n_best)
    labels, scores = np.take_along_axis(joined, places, axis=1), np.take_along_axis(of_joined, places, axis=1)
    rows, columns = np.nonzero((places >= n_kept) & (places < n_kept + n_offers))
    scores[rows, columns] = code_decoder.pair_scores(decoder, asked, rows, labels[rows, columns])
    return labels, scores


class LinearForm(NamedTuple):
    """The scores of some labels as ``û β + c + z W``: β, (k, L), c, (L,), and W, (F, L), of some columns of ``z``."""

    beta: FloatArray
    constants: FloatArray
    weights: FloatArray


def linear_form(decoder: code_decoder.Derived, table: Table, columns: IntArray, labels: IntArray) -> LinearForm:
    """Write the scores of some labels as linear functions of codes and columns."""
    beta, constants = code_decoder.coefficients(decoder, labels)
    return LinearForm(beta, constants, residual_table.weights_of(table, columns, labels).astype(float))


def rows_of(Y: AnyMatrix) -> IntArray:
    """Return the row of each entry of a sparse matrix."""
    return np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))


def targets(labels: IntArray, Y: AnyMatrix) -> FloatArray:
    """Look candidates up in the labels of their rows: 1, 0, or NaN where it is not known."""
    n, n_labels = Y.shape
    keys: Any = rows_of(Y) * n_labels + Y.indices
    asked = np.arange(n)[:, None] * n_labels + labels
    if not len(keys):
        return np.zeros(labels.shape)
    values = Y.data
    if not Y.has_sorted_indices:
        order = np.argsort(keys)
        keys, values = keys[order], values[order]
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[place] == asked, values[place], 0.0)


def to_learn(
    decoder: code_decoder.Derived, asked: code_decoder.Queries, Y: AnyMatrix, offers: IntArray | None = None
) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns of rows: candidates, the true labels among them, their scores and targets."""
    labels, base = label_search.best(decoder, asked, count(Y.shape[1], are_offered=offers is not None), 0)
    labels, base = _with_offers(decoder, asked, labels, base, offers)
    if compiled.is_available():
        known, rows, places = candidate_loops.put_true_labels(labels, Y.indptr, Y.indices, Y.data)
        base[rows, places] = code_decoder.pair_scores(decoder, asked, rows, labels[rows, places])
        return labels, base, known
    known, rows = targets(labels, Y), rows_of(Y)
    present = np.flatnonzero(Y.data == 1)
    keys = rows[present] * Y.shape[1] + Y.indices[present]
    found = (np.arange(len(labels))[:, None] * Y.shape[1] + labels)[known == 1]
    missed = present[~np.isin(keys, found)]
    rows, new = rows[missed], Y.indices[missed].astype(np.intp)
    # The first missed label of a row goes last, the second before it, and so on, over labels that are absent.
    rank, n_free = np.arange(len(rows)) - np.searchsorted(rows, rows), (known != 1).sum(axis=1)
    fits = rank < n_free[rows]
    rows, new, rank = rows[fits], new[fits], rank[fits]
    places = np.argsort(known == 1, axis=1, kind="stable")[rows, n_free[rows] - 1 - rank]
    labels[rows, places], known[rows, places] = new, 1.0
    base[rows, places] = code_decoder.pair_scores(decoder, asked, rows, new)
    return labels, base, known
