"""Candidates: the few labels of a row that are looked at, where there are too many to look at all.

They are the best ones by the decoder (`labelrace.learners.code_decoder`), some of them the best of all labels exactly,
the others of those that occurred recently. The table (`labelrace.learners.residual_table`) corrects their scores. When
it learns, the true labels of a row that are not among them take the places of the last ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.core import compiled, thresholds
from labelrace.learners import candidate_loops, code_decoder, columns, label_search, residual_table, rls, scaling
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

# Candidates of a row, and of few labels: there codes are short, and rank worse.
_CANDIDATES, _MORE_CANDIDATES, _FEW_LABELS = 64, 256, 2048


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), and their scores, adjusted for thresholds."""

    labels: IntArray
    scores: FloatArray


def count(n_labels: int) -> int:
    """Return how many candidates a row has."""
    return min(n_labels, _MORE_CANDIDATES if n_labels <= _FEW_LABELS else _CANDIDATES)


def scored(
    decoder: code_decoder.Derived,
    table: Table,
    asked: code_decoder.Queries,
    Z: AnyMatrix | None,
    n_exact: int = EXACT,
) -> Candidates:
    """Find the candidates of rows and their scores; without ``Z``, as if the table were empty."""
    labels, scores = label_search.best(decoder, asked, *_wanted(decoder, n_exact))
    if Z is not None:
        scores = scores + residual_table.scores(table, Z, labels)
    return Candidates(labels, thresholds.adjusted(scores))


def scored_row(
    decoder: code_decoder.Derived, table: Table, learners: rls.Derived, X: AnyMatrix, n_exact: int = EXACT
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
    found = label_search.best_of_row(decoder, values, weights, learners.intercepts, *_wanted(decoder, n_exact))
    if found is None:
        return None
    labels, scores = found
    scores += residual_table.scores_of_row(table, places, values, labels)
    return Candidates(labels, thresholds.adjusted(scores))


def _wanted(decoder: code_decoder.Derived, n_exact: int) -> tuple[int, int]:
    """Return how many candidates are looked for, and how many of them are to be the best of all."""
    n_labels = decoder.sums.shape[0]
    n_best = min(n_labels, max(count(n_labels), n_exact))
    return n_best, min(n_exact, n_best)


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
    decoder: code_decoder.Derived, asked: code_decoder.Queries, Y: AnyMatrix
) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns of rows: candidates, the true labels among them, their scores and targets."""
    labels, base = label_search.best(decoder, asked, count(Y.shape[1]), 0)
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
