"""Postings: for each feature the labels of the last rows that had it, as a second source of candidates.

The decoder of compressed labels (`labelrace.extreme.decoder`) ranks labels by their codes, and a label that has
occurred a few times is rarely among its best. But such a label often comes with a rare feature: a word that names it.
So the rarest features of a row keep its labels, the newest first, and the rarest features of a later row offer them as
candidates. How rare a feature is, is read off what the learners have gained on it.

On 20,000 rows of a stream of 34,764 labels, 32 candidates of which up to 12 come from postings are better (nDCG@5 .517)
than 64 by the decoder alone (.511), at about half of the cost.

Labels are stored with 1 added, so that 0 is an empty place. Costs: ``4 DEPTH`` bytes a feature; a row with ``z``
non-zeros takes ``O(z log z)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.sparse import entry_rows
from labelrace.extreme import candidate_loops
from labelrace.learners import design as columns
from labelrace.linear import blocks as products
from labelrace.linear.versioned import VersionedRows, rows_of
from labelrace.typing import AnyMatrix, Array, IntArray

DEPTH = 8
"""Labels that a feature keeps."""

OFFERING = 4
"""Features of a row that offer their labels."""

# Features of a row that keep its labels.
_KEEPING = 8
# Labels up to which the decoder finds all that matter.
_FEW_LABELS = 2048


def are_kept(n_labels: int) -> bool:
    """Tell whether there are so many labels that features keep some of them."""
    return n_labels > _FEW_LABELS


def init() -> Any:
    """Make postings of no features."""
    return VersionedRows.taking(np.zeros((0, DEPTH), np.int32))


def gained_by_entry(gained: Any, Z: AnyMatrix) -> Array | None:
    """Look up what the learners have gained on the feature of each non-zero; None where rows are dense."""
    return rows_of(gained, Z.indices)[:, 0] if scipy.sparse.issparse(Z) else None


def _rarest(Z: AnyMatrix, gained: Array, count: int, n_lists: int, least: float, *, compiled: bool) -> IntArray:
    """Find the features of each row on which least has been gained, (n, count); -1 where there are fewer.

    Features from ``n_lists`` on, and those on which no more than ``least`` has been gained, are left out.
    """
    if compiled:
        found: IntArray = candidate_loops.rarest(Z.indptr, Z.indices, Z.data, gained, n_lists, least, count)
        return found
    is_eligible = (gained > least) & (Z.data != 0) & (Z.indices < n_lists)
    rows = entry_rows(Z)[is_eligible]
    features, gained = Z.indices[is_eligible], gained[is_eligible]
    order = np.lexsort((features, gained, rows))
    rows = rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    first = np.flatnonzero(rank < count)
    rarest = np.full((Z.shape[0], count), -1, np.intp)
    rarest[rows[first], rank[first]] = features[order[first]]
    return rarest


def offered(table: VersionedRows, Z: AnyMatrix, gained: Array | None, *, compiled: bool = False) -> IntArray | None:
    """List the labels that the rarest features of each row offer, (n, q): the newest of each first; -1 for none.

    ``gained`` is `gained_by_entry`. None where features keep no labels.
    """
    if gained is None or not len(table):
        return None
    features = _rarest(Z, gained, OFFERING, len(table), 0.0, compiled=compiled)
    lists = table.rows(np.maximum(features, 0).ravel()).reshape(*features.shape, DEPTH)
    lists[features < 0] = 0
    return lists.transpose(0, 2, 1).reshape(Z.shape[0], -1).astype(np.intp) - 1


def first_distinct(labels: IntArray, count: int) -> IntArray:
    """Find the places of the first ``count`` different labels of each row, (n, count); -1 is no label.

    Examples
    --------
    >>> import numpy as np
    >>> first_distinct(np.array([[7, -1, 7, 5, 9]]), 2).tolist()
    [[0, 3]]
    """
    is_before = np.tri(labels.shape[1], k=-1, dtype=bool)
    is_again = ((labels[:, :, None] == labels[:, None, :]) & is_before).any(axis=2)
    return np.argsort((labels < 0) | is_again, axis=1, kind="stable")[:, :count]


def update(
    table: Any, Z: AnyMatrix, n_values: IntArray, gained: Array | None, Y: AnyMatrix, *, compiled: bool = False
) -> Any:
    """Let the rarest features of rows keep the labels that the rows have, if labels are many and rows sparse numbers.

    Later rows are newer. ``gained`` is `gained_by_entry`.
    """
    if gained is None or not (are_kept(Y.shape[1]) and columns.all_numeric(n_values)):
        return table
    table = VersionedRows.of(table)
    table = table.grown(Z.shape[1]) if len(table) < Z.shape[1] else table
    kept = _rarest(Z, gained, _KEEPING, Z.shape[1], -np.inf, compiled=compiled)
    is_kept, places = kept >= 0, np.full(kept.shape, -1)
    touched, places[is_kept] = products.in_order_of_use(kept[is_kept], Z.shape[1])
    before = table.rows(touched)
    lists = before.copy()
    if compiled:
        candidate_loops.keep_labels(lists, places, Y.indptr, Y.indices, Y.data)
    else:
        _keep_labels(lists, places, Y)
    return table.replaced(touched, lists, before)


def _keep_labels(lists: Array, places: IntArray, Y: AnyMatrix) -> None:
    """Put the labels of rows at the head of lists; ``places``, (n, q), tells which are those of a row, -1 for none."""
    is_present = Y.data == 1
    ends_of_rows = np.concatenate([[0], np.cumsum(is_present)])[Y.indptr]
    sizes, present = np.diff(ends_of_rows), Y.indices[is_present]
    rows, cells = np.nonzero(places >= 0)
    # By list, and of each list the newest row first.
    order = np.lexsort((-rows, places[rows, cells]))
    rows, of_lists = rows[order], places[rows, cells][order]
    n_labels = sizes[rows]
    ends = np.cumsum(n_labels)
    entries = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(ends_of_rows[rows] - ends + n_labels, n_labels)
    of_lists = np.repeat(of_lists, n_labels)
    rank = np.arange(len(of_lists)) - np.searchsorted(of_lists, of_lists)
    newest = np.flatnonzero(rank < DEPTH)
    of_lists, rank, labels = of_lists[newest], rank[newest], present[entries[newest]]
    # What was there moves back by as many places as there are new labels.
    source = np.arange(DEPTH) - np.bincount(of_lists, minlength=len(lists))[:, None]
    lists[:] = np.where(source >= 0, np.take_along_axis(lists, np.maximum(source, 0), axis=1), 0)
    lists[of_lists, rank] = labels + 1


def reset(table: Any, features: IntArray) -> Any:
    """Empty the lists of features that stand for others now."""
    features = np.unique(features[features < len(table)])
    return (
        VersionedRows.of(table).replaced(features, np.zeros((len(features), DEPTH), np.int32))
        if len(features)
        else table
    )


def reordered(table: Any, labels: IntArray, features: IntArray) -> Any:
    """Put labels and features in another order; the new first label is the old ``labels[0]``."""
    if not len(table):
        return table
    numbers = np.concatenate([[0], np.argsort(labels) + 1]).astype(np.int32)
    lists = np.zeros((len(features), DEPTH), np.int32)
    is_known = features < len(table)
    lists[is_known] = np.asarray(table)[features[is_known]]
    return VersionedRows.taking(numbers[lists])


def merged(one: Any, other: Any) -> Any:
    """Join the postings of two models with the same labels and features: of each feature, labels of both by turns."""
    lists = np.zeros((max(len(one), len(other)), DEPTH, 2), np.int32)
    for place, table in enumerate((one, other)):
        lists[: len(table), :, place] = np.asarray(table)
    joined = lists.reshape(len(lists), 2 * DEPTH)
    filled_first = np.argsort(joined == 0, axis=1, kind="stable")[:, :DEPTH]
    return VersionedRows.taking(np.take_along_axis(joined, filled_first, axis=1))
