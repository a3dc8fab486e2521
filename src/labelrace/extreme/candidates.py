"""Candidates: the few labels of a row that are looked at, where there are too many to look at all.

They are the best ones by the decoder (`labelrace.extreme.decoder`), some of them the best of all labels exactly,
the others of those that occurred recently; and those that the features of a row offer (`labelrace.extreme.postings`),
which take the places of the last ones by the decoder. The table (`labelrace.extreme.table`) corrects their
scores. When it learns, the true labels of a row that are not among them take the places of the last ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelrace.base.sparse import entry_rows
from labelrace.decisions import rules
from labelrace.extreme import candidate_loops, postings
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import search as label_search
from labelrace.extreme import table as residual_table
from labelrace.linear.versioned import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

EXACT = 16
"""Labels of each row that are the best of all labels, exactly."""

OFFERED = 12
"""Labels at the most that are taken of those which features offer."""

# Candidates of a row; where its features offer some; and of few labels, where codes are short, and rank worse.
_CANDIDATES, _WITH_OFFERS, _OF_FEW_LABELS = 64, 32, 256
# Scores by the decoder below which the table learns nothing of absent labels, most of which features have offered.
_UNLIKELY = 0.01


class Candidates(NamedTuple):
    """Candidates of rows, (n, c), their scores, adjusted for thresholds, and whether they are in order."""

    labels: IntArray
    scores: FloatArray
    are_ranked: bool = False

    def best(self, k: int) -> tuple[IntArray, FloatArray]:
        """Take the ``k`` best of each row, best first, and their scores."""
        if self.are_ranked:
            return self.labels[:, :k], self.scores[:, :k]
        # Labels that always came together have equal scores: of these, the first come first.
        places = np.lexsort((self.labels, -self.scores), axis=1)[:, :k]
        return np.take_along_axis(self.labels, places, axis=1), np.take_along_axis(self.scores, places, axis=1)


def joined(parts: list[Candidates]) -> Candidates:
    """Put candidates of some rows below one another."""
    if len(parts) == 1:
        return parts[0]
    return Candidates(np.concatenate([part.labels for part in parts]), np.concatenate([part.scores for part in parts]))


def count(n_labels: int, *, are_offered: bool) -> int:
    """Return how many candidates a row has; ``are_offered`` where its features offer some."""
    if not postings.are_kept(n_labels):
        return min(n_labels, _OF_FEW_LABELS)
    return _WITH_OFFERS if are_offered else _CANDIDATES


def scored(
    decoder: code_decoder.Derived,
    table: VersionedRows,
    asked: code_decoder.Queries,
    Z: AnyMatrix | None,
    offers: IntArray | None = None,
    n_exact: int = EXACT,
    recent: tuple[IntArray, Array] | None = None,
) -> Candidates:
    """Find the candidates of rows and their scores; without ``Z``, as if the table were empty.

    ``offers`` are labels that features offer, (n, q), -1 for none; ``recent`` is what `of_recent` has found.
    """
    n_best, n_exact = wanted(decoder.sums.shape[0], n_exact, are_offered=offers is not None)
    labels, scores = label_search.best(decoder, asked, n_best, n_exact, recent)
    labels, scores = _with_offers(decoder, asked, labels, scores, offers)
    if Z is not None:
        scores = scores + residual_table.scores(table, Z, labels, compiled=decoder.compiled)
    return Candidates(labels, rules.adjusted(scores))


def of_recent(
    decoder: code_decoder.Derived, asked: code_decoder.Queries, *, are_offered: bool
) -> tuple[IntArray, Array]:
    """Find the best of the labels that occurred recently, and their scores: what `scored` and `to_learn` begin with."""
    return label_search.best(decoder, asked, count(decoder.sums.shape[0], are_offered=are_offered), 0)


def wanted(n_labels: int, n_exact: int, *, are_offered: bool) -> tuple[int, int]:
    """Return how many candidates are looked for, and how many of them are to be the best of all."""
    n_offered = OFFERED if are_offered else 0
    n_best = min(n_labels, max(count(n_labels, are_offered=are_offered), n_exact + n_offered))
    return n_best, min(n_exact, n_best)


def _with_offers(
    decoder: code_decoder.Derived, asked: code_decoder.Queries, labels: IntArray, scores: Array, offers: IntArray | None
) -> tuple[IntArray, Array]:
    """Put labels that features offer in the places of the last ones; there are as many candidates as before."""
    if offers is None:
        return labels, scores
    if decoder.compiled:
        given = asked.with_shifts(), labels, scores, offers, labels.shape[1] - OFFERED
        if read_all((decoder.sums, decoder.counts), candidate_loops.put_offers, *given):
            return labels, scores
    n_best, n_offers = labels.shape[1], offers.shape[1]
    n_kept = n_best - OFFERED
    joined = np.hstack([labels[:, :n_kept], offers, labels[:, n_kept:]])
    of_joined = np.hstack([scores[:, :n_kept], np.zeros(offers.shape, scores.dtype), scores[:, n_kept:]])
    places = postings.first_distinct(joined, n_best)
    labels, scores = np.take_along_axis(joined, places, axis=1), np.take_along_axis(of_joined, places, axis=1)
    rows, columns = np.nonzero((places >= n_kept) & (places < n_kept + n_offers))
    scores[rows, columns] = code_decoder.pair_scores(decoder, asked, rows, labels[rows, columns])
    return labels, scores


def targets(labels: IntArray, Y: AnyMatrix) -> FloatArray:
    """Look candidates up in the labels of their rows: 1, 0, or NaN where it is not known."""
    n, n_labels = Y.shape
    keys: Any = entry_rows(Y) * n_labels + Y.indices
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
    decoder: code_decoder.Derived,
    asked: code_decoder.Queries,
    Y: AnyMatrix,
    recent: tuple[IntArray, Array],
    offers: IntArray | None = None,
) -> tuple[IntArray, Array, FloatArray]:
    """Find what the table learns of rows: candidates, the true labels among them, their scores and targets.

    ``recent`` is what `of_recent` has found, and is changed. Targets are NaN where nothing is to be learned.
    """
    labels, base, known = _with_true_labels(decoder, asked, Y, *_with_offers(decoder, asked, *recent, offers))
    if offers is not None:
        known[(known == 0) & (base < _UNLIKELY)] = np.nan
    return labels, base, known


def _with_true_labels(
    decoder: code_decoder.Derived, asked: code_decoder.Queries, Y: AnyMatrix, labels: IntArray, base: Array
) -> tuple[IntArray, Array, FloatArray]:
    """Put true labels in the last places, and look up the targets of all; in the arrays given."""
    if decoder.compiled:
        known, rows, places = candidate_loops.put_true_labels(labels, Y.indptr, Y.indices, Y.data)
        base[rows, places] = code_decoder.pair_scores(decoder, asked, rows, labels[rows, places])
        return labels, base, known
    known, rows = targets(labels, Y), entry_rows(Y)
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
