"""Postings: for each feature the labels of the last rows that had it, as a second source of candidates.

The decoder of compressed labels (`labelrace.extreme.decoder`) ranks labels by their codes, and a label that has
occurred a few times is rarely among its best. But such a label often comes with a rare feature: a word that names it.
So the rarest features of a row keep its labels, the newest first, and the rarest features of a later row offer them as
candidates (`labelrace.extreme.search`). How rare a feature is, is read off the precision that the learners have gained
on it.

On 20,000 rows of a stream of 34,764 labels, 32 candidates of which up to 12 come from postings are better (nDCG@5 .517)
than 64 by the decoder alone (.511), at about half of the cost.

State: lists of labels, (features, DEPTH), a `VersionedRows`. Labels are stored with 1 added, so that 0 is an empty
slot. Costs: ``4 DEPTH`` bytes a feature; a row with ``z`` non-zeros takes ``O(z)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, IntArray

DEPTH = 8
"""Labels that a feature keeps."""

N_QUERIED_FEATURES = 4
"""Features of a row whose labels are offered as candidates: the rarest."""

N_INDEXED_FEATURES = 8
"""Features of a row that keep its labels: the rarest."""

# Labels up to which the decoder finds all that matter.
_FEW_LABELS = 2048


def enabled(n_labels: int) -> bool:
    """Return whether labels are so many that features keep some of them."""
    return n_labels > _FEW_LABELS


def init() -> Any:
    """Make postings of no features."""
    return VersionedRows.taking(np.zeros((0, DEPTH), np.int32))


def update(
    table: Any, Z: AnyMatrix, kinds: FeatureKinds, extra_precision: Any, Y: AnyMatrix, columns: IntArray | None = None
) -> Any:
    """Let the rarest features of rows keep the labels that the rows have, if labels are many and rows sparse numbers.

    Later rows are newer. ``extra_precision`` is that of the learners, (m, 2), before they learn the rows; or of the
    columns that occur, and ``columns`` tells which of these each non-zero has.
    """
    if not (scipy.sparse.issparse(Z) and enabled(Y.shape[1]) and kinds.all_numeric):
        return table
    table = VersionedRows.of(table)
    table = table.grown(Z.shape[1]) if len(table) < Z.shape[1] else table
    rows = Z.indptr, Z.indices, Z.data, Z.indices if columns is None else columns
    features = read_all((extra_precision,), _rarest, rows)
    touched = features[features >= 0]
    return table.changed(
        touched, table.rows(touched), lambda array: _keep_labels(array, features, Y.indptr, Y.indices, Y.data)
    )


def reset(table: Any, features: IntArray) -> Any:
    """Empty the lists of features whose columns stand for others now."""
    features = np.unique(features[features < len(table)])
    if not len(features):
        return table
    return VersionedRows.of(table).replaced(features, np.zeros((len(features), DEPTH), np.int32))


def renumbered(table: Any, labels: IntArray | None) -> Any:
    """Let the labels of lists follow where labels move; the new first one is the old ``labels[0]``, -1 for new ones."""
    if labels is None or not len(table):
        return table
    known = labels >= 0
    numbers = np.zeros(int(labels.max(initial=-1)) + 2, np.int32)
    numbers[labels[known] + 1] = np.flatnonzero(known) + 1
    return VersionedRows.taking(numbers[np.asarray(table)])


def merged(one: Any, other: Any) -> Any:
    """Join the postings of two models with the same labels and features: of each feature, labels of both by turns."""
    lists = np.zeros((max(len(one), len(other)), DEPTH, 2), np.int32)
    for turn, table in enumerate((one, other)):
        lists[: len(table), :, turn] = np.asarray(table)
    joint = lists.reshape(len(lists), 2 * DEPTH)
    filled_first = np.argsort(joint == 0, axis=1, kind="stable")[:, :DEPTH]
    return VersionedRows.taking(np.take_along_axis(joint, filled_first, axis=1))


@kernel
def _rarest_of_row(extra_precision: Any, rows: Any, row: Any, n_lists: Any, least: Any, rarest: Any) -> None:
    """Find the features of a row with the least precision gained, but more than ``least``; -1 where there are fewer.

    Parameters
    ----------
    extra_precision : (m, 2) array
        Of the learners.
    rows : tuple
        Rows in compressed form: starts, features, values, and which row of ``extra_precision`` each non-zero has.
    row : int
    n_lists : int
        Features from this one on are left out.
    least : float
    rarest : array of int
        Is written.
    """
    starts, features, values, columns = rows
    count, n_found, sizes = len(rarest), 0, np.empty(len(rarest))
    rarest[:] = -1
    for z in range(starts[row], starts[row + 1]):
        feature, size = features[z], extra_precision[columns[z], 0]
        if values[z] == 0 or feature >= n_lists or not size > least:
            continue
        j = min(n_found, count - 1)
        if n_found == count and (size > sizes[j] or (size == sizes[j] and feature > rarest[j])):
            continue
        while j and (sizes[j - 1] > size or (sizes[j - 1] == size and rarest[j - 1] > feature)):
            rarest[j], sizes[j], j = rarest[j - 1], sizes[j - 1], j - 1
        rarest[j], sizes[j] = feature, size
        n_found = min(n_found + 1, count)


@kernel
def offers_of_row(lists: Any, extra_precision: Any, rows: Any, row: Any) -> Any:
    """List the labels that the rarest features of a row offer: the newest of each first; -1 for none."""
    queried = np.empty(N_QUERIED_FEATURES, np.int64)
    _rarest_of_row(extra_precision, rows, row, len(lists), 0.0, queried)
    offers = np.full((DEPTH, N_QUERIED_FEATURES), -1)
    for i in range(N_QUERIED_FEATURES):
        if queried[i] >= 0:
            for d in range(DEPTH):
                offers[d, i] = lists[queried[i], d] - 1
    return offers.ravel()


@kernel
def _rarest(extra_precision: Any, rows: Any) -> Any:
    """Find the features of each row that keep its labels, (n, N_INDEXED_FEATURES); -1 where there are fewer."""
    rarest = np.empty((len(rows[0]) - 1, N_INDEXED_FEATURES), np.int64)
    for row in range(len(rarest)):
        _rarest_of_row(extra_precision, rows, row, np.iinfo(np.int64).max, -np.inf, rarest[row])
    return rarest


@kernel
def _keep_labels(lists: Any, rarest: Any, starts: Any, labels: Any, values: Any) -> None:
    """Put the labels that are present in rows, in their order, at the head of the lists of the rows' features.

    What is there moves back. ``starts``, ``labels`` and ``values`` are the labels of rows in compressed form.
    """
    present = np.empty(DEPTH, lists.dtype)
    for row in range(len(rarest)):
        n_new = 0
        for entry in range(starts[row], starts[row + 1]):
            if values[entry] == 1 and n_new < DEPTH:
                present[n_new] = labels[entry] + 1
                n_new += 1
        for feature in rarest[row]:
            if feature < 0:
                continue
            for d in range(DEPTH - 1, n_new - 1, -1):
                lists[feature, d] = lists[feature, d - n_new]
            for d in range(n_new):
                lists[feature, d] = present[d]
