"""Postings, as of an inverted index: for each feature the labels of the last rows that had it, as further candidates.

The decoder of compressed labels (`labelrace.extreme.decoder`) ranks labels by their codes, and a label that occurred a
few times only is rarely among its best. But such a label often comes with a rare feature: a word that names it. So a
row's labels are added to the postings of its rarest features, newest first, and are candidates of a later row that has
one of these among its rarest (`labelrace.extreme.search`). A feature is the rarer the less precision the learners have
gained for it.

On 20,000 rows of a stream of 34,764 labels, 32 candidates of which up to 12 come from postings are better (nDCG@5 .517)
than 64 by the decoder alone (.511), at about half of the cost.

Documents that have one in twenty of all features, as do those of 237 words out of 5,000, have no feature that names a
label: their rarest ones offer labels of any recent rows, instead of better ones by the decoder. So rows whose
features are common have no postings (`are_useful`).

State: lists of labels, (features, LABELS_PER_FEATURE), a `VersionedRows`. Labels are stored with 1 added, so that 0 is
an empty place. Costs: ``4 LABELS_PER_FEATURE`` bytes a feature; a row with ``z`` non-zeros takes ``O(z)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, IntArray

LABELS_PER_FEATURE = 8
"""Length of the postings of a feature."""

N_QUERIED_FEATURES = 4
"""Features of a row, the rarest, whose postings are read."""

N_INDEXED_FEATURES = 8
"""Features of a row, the rarest, whose postings its labels are added to."""

ROWS = "Tuple((int32[::1], int32[::1], float32[::1], int32[::1]))"
"""Type of rows, as kernels take them: CSR arrays, and the row of ``extra_precision`` of each non-zero."""

# Number of labels up to which the decoder alone finds good candidates, and there are no postings.
_MAX_LABELS_WITHOUT_POSTINGS = 2048
# Largest share of rows that have a feature, on average, for features to name labels; and rows that tell it. The stream
# that postings help most has .002, one that they harm has .047.
_MAX_FEATURE_SHARE, _MIN_ROWS = 0.02, 32


def enabled(n_labels: int) -> bool:
    """Return whether there are so many labels that postings are used."""
    return n_labels > _MAX_LABELS_WITHOUT_POSTINGS


def are_useful(X: AnyMatrix, kinds: FeatureKinds, n_labels: int) -> bool:
    """Return whether postings are to begin with these rows: labels are many, and features numeric and rare."""
    n_nonzero = X.nnz if scipy.sparse.issparse(X) else np.count_nonzero(X)
    is_rare = X.shape[0] >= _MIN_ROWS and n_nonzero <= _MAX_FEATURE_SHARE * X.shape[0] * X.shape[1]
    return enabled(n_labels) and kinds.all_numeric and is_rare


def init() -> Any:
    """Make postings of no features."""
    return VersionedRows.taking(np.zeros((0, LABELS_PER_FEATURE), np.int32))


def update(
    table: Any, Z: AnyMatrix, kinds: FeatureKinds, extra_precision: Any, Y: AnyMatrix, columns: IntArray | None = None
) -> Any:
    """Add the labels of rows to the postings of their rarest features, if there are postings or they are useful.

    Later rows are newer. ``extra_precision`` is that of the learners before they learn the rows, (m, 2); or only that
    of the columns that occur, where ``columns`` has the index of each non-zero in it.
    """
    if not (scipy.sparse.issparse(Z) and (len(table) or are_useful(Z, kinds, Y.shape[1]))):
        return table
    table = VersionedRows.of(table)
    table = table.grown(Z.shape[1]) if len(table) < Z.shape[1] else table
    rows = Z.indptr, Z.indices, Z.data, Z.indices if columns is None else columns
    features = read_all((extra_precision,), _rarest, rows)
    touched = features[features >= 0]
    return table.changed(
        touched, table.rows(touched), lambda array: _insert_labels(array, features, Y.indptr, Y.indices, Y.data)
    )


def reset(table: Any, features: IntArray) -> Any:
    """Empty the postings of features whose columns were given to others."""
    features = np.unique(features[features < len(table)])
    if not len(features):
        return table
    return VersionedRows.of(table).replaced(features, np.zeros((len(features), LABELS_PER_FEATURE), np.int32))


def renumbered(table: Any, labels: IntArray | None) -> Any:
    """Renumber the labels in the postings: label ``i`` is the former ``labels[i]``, or new where that is -1."""
    if labels is None or not len(table):
        return table
    known = labels >= 0
    numbers = np.zeros(int(labels.max(initial=-1)) + 2, np.int32)
    numbers[labels[known] + 1] = np.flatnonzero(known) + 1
    return VersionedRows.taking(numbers[np.asarray(table)])


def merged(one: Any, other: Any) -> Any:
    """Join the postings of two models with the same labels and features: those of both alternate."""
    lists = np.zeros((max(len(one), len(other)), LABELS_PER_FEATURE, 2), np.int32)
    for which, table in enumerate((one, other)):
        lists[: len(table), :, which] = np.asarray(table)
    joint = lists.reshape(len(lists), 2 * LABELS_PER_FEATURE)
    filled_first = np.argsort(joint == 0, axis=1, kind="stable")[:, :LABELS_PER_FEATURE]
    return VersionedRows.taking(np.take_along_axis(joint, filled_first, axis=1))


@kernel()
def _rarest_of_row(extra_precision: Any, rows: Any, row: Any, n_features: Any, least: Any, rarest: Any) -> None:
    """Find the features of a row with the least extra precision, but more than ``least``; -1 where there are fewer.

    Parameters
    ----------
    extra_precision : (m, 2) array
        Of the learners.
    rows : tuple
        CSR arrays: indptr, features, values; and the row of ``extra_precision`` of each non-zero.
    row : int
    n_features : int
        Number of features that have postings; others are left out.
    least : float
    rarest : array of int
        The result, which is written to.
    """
    indptr, features, values, columns = rows
    count, n_found, lowest = len(rarest), 0, np.empty(len(rarest))
    rarest[:] = -1
    for z in range(indptr[row], indptr[row + 1]):
        feature, precision = features[z], extra_precision[columns[z], 0]
        if values[z] == 0 or feature >= n_features or not precision > least:
            continue
        j = min(n_found, count - 1)
        if n_found == count and (precision > lowest[j] or (precision == lowest[j] and feature > rarest[j])):
            continue
        while j and (lowest[j - 1] > precision or (lowest[j - 1] == precision and rarest[j - 1] > feature)):
            rarest[j], lowest[j], j = rarest[j - 1], lowest[j - 1], j - 1
        rarest[j], lowest[j] = feature, precision
        n_found = min(n_found + 1, count)


@kernel()
def labels_from_postings(lists: Any, extra_precision: Any, rows: Any, row: Any) -> Any:
    """List the labels in the postings of a row's rarest features, the newest of each first; -1 for none."""
    queried = np.empty(N_QUERIED_FEATURES, np.int64)
    _rarest_of_row(extra_precision, rows, row, len(lists), 0.0, queried)
    offered = np.full((LABELS_PER_FEATURE, N_QUERIED_FEATURES), -1)
    for i in range(N_QUERIED_FEATURES):
        if queried[i] >= 0:
            for d in range(LABELS_PER_FEATURE):
                offered[d, i] = lists[queried[i], d] - 1
    return offered.ravel()


@kernel(f"int64[:, ::1](float64[:, ::1], {ROWS})")
def _rarest(extra_precision: Any, rows: Any) -> Any:
    """Find the rarest features of each row, for its labels, (n, N_INDEXED_FEATURES); -1 where there are fewer."""
    rarest = np.empty((len(rows[0]) - 1, N_INDEXED_FEATURES), np.int64)
    for row in range(len(rarest)):
        _rarest_of_row(extra_precision, rows, row, np.iinfo(np.int64).max, -np.inf, rarest[row])
    return rarest


@kernel("void(int32[:, ::1], int64[:, ::1], int32[::1], int32[::1], float64[::1])")
def _insert_labels(lists: Any, rarest: Any, indptr: Any, labels: Any, values: Any) -> None:
    """Insert the labels of rows, in their order, at the front of the postings of the rows' rarest features.

    The oldest drop out. ``indptr``, ``labels`` and ``values`` are the CSR arrays of the rows' labels.
    """
    present = np.empty(LABELS_PER_FEATURE, lists.dtype)
    for row in range(len(rarest)):
        n_new = 0
        for entry in range(indptr[row], indptr[row + 1]):
            if values[entry] == 1 and n_new < LABELS_PER_FEATURE:
                present[n_new] = labels[entry] + 1
                n_new += 1
        for feature in rarest[row]:
            if feature < 0:
                continue
            for d in range(LABELS_PER_FEATURE - 1, n_new - 1, -1):
                lists[feature, d] = lists[feature, d - n_new]
            for d in range(n_new):
                lists[feature, d] = present[d]
