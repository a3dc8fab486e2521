"""Cut points of features, and the labels of the rows on either side of each: what an iSOUP leaf splits by.

Osojnik et al. keep for every feature a binary search tree of cut points, each with the sums of the rows at most as
large that passed it. Cut points are the first values that occur, up to a number, so all rows at most as large as a cut
point have come with it or after it, and are in its sums. Hence a sorted list of cut points with the sums of the rows
between them holds the same, and a whole batch is added at once: a row is in one of a feature's bins, and sums by bin
are a sparse product.

Cost: n rows take ``n m c`` comparisons for c cut points of each of m features; state: ``m c l``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

MAX_CUTS = 51
# Comparisons done at once.
_CELLS = 2**23


class CutPoints(NamedTuple):
    """Cut points with the rows between them."""

    at: Annotated[FloatArray, "m _c", "new inf"]  # cut points of each feature, sorted; infinity where there are fewer
    # Rows above the cut point before, up to this one; in the last column those above all of them.
    rows: Annotated[FloatArray, "m _c+1"]
    sums: Annotated[FloatArray, "m _c+1 l"]  # of these, the rows with each label


def empty(n_features: int, n_labels: int, room: int = 1) -> CutPoints:
    """Make the cuts of no rows, with room for some cut points a feature."""
    shape = (n_features, room + 1)
    return CutPoints(np.full((n_features, room), np.inf), np.zeros(shape), np.zeros((*shape, n_labels)))


def with_room(cuts: CutPoints, room: int) -> CutPoints:
    """Make room for more cut points; nothing is above them before."""
    more = room - cuts.at.shape[1]
    if more <= 0:
        return cuts
    at = np.pad(cuts.at, ((0, 0), (0, more)), constant_values=np.inf)
    rows = np.insert(cuts.rows, [cuts.rows.shape[1] - 1] * more, 0.0, axis=1)
    return CutPoints(at, rows, np.insert(cuts.sums, [cuts.rows.shape[1] - 1] * more, 0.0, axis=1))


def update(cuts: CutPoints, X: FloatArray, Y: AnyMatrix) -> CutPoints:
    """Add rows, in their order; ``Y`` is sparse.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> cuts = update(empty(1, 1), np.array([[2.0], [1.0], [2.0]]), scipy.sparse.csr_array([[1.0], [0.0], [1.0]]))
    >>> cuts.at.tolist(), cuts.rows.tolist(), cuts.sums[0, :, 0].tolist()
    ([[1.0, 2.0]], [[1.0, 2.0, 0.0]], [0.0, 2.0, 0.0])
    """
    used = np.isfinite(cuts.at).sum(axis=1)
    if (used < MAX_CUTS).any():
        cuts = _with_new_values(cuts, X, MAX_CUTS - used)
    n_features, n_bins = cuts.rows.shape
    cells = _bins(cuts.at, X) + n_bins * np.arange(n_features)
    ones, starts = np.ones(cells.size), n_features * np.arange(len(X) + 1)
    chosen = scipy.sparse.csr_array((ones, cells.ravel(), starts), shape=(len(X), n_features * n_bins))
    added = (chosen.T @ Y).toarray().reshape(cuts.sums.shape)
    rows = np.bincount(cells.ravel(), minlength=n_features * n_bins).reshape(n_features, n_bins)
    return CutPoints(cuts.at, cuts.rows + rows, cuts.sums + added)


def _bins(at: FloatArray, X: FloatArray) -> IntArray:
    """Count the cut points below each value: the number of its bin."""
    n_features, n_cuts = at.shape
    bins = np.empty(X.shape, dtype=np.intp)
    size = max(1, _CELLS // max(1, n_features * n_cuts))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        bins[rows] = (at < X[rows, :, None]).sum(axis=2)
    return bins


def _with_new_values(cuts: CutPoints, X: FloatArray, room: IntArray) -> CutPoints:
    """Take values that are no cut points yet for new ones, the first to come, as long as a feature has room."""
    order = np.argsort(X, axis=0, kind="stable")
    ranked = np.take_along_axis(X, order, axis=0)
    is_first = np.ones(X.shape, dtype=bool)
    is_first[1:] = ranked[1:] != ranked[:-1]
    new = np.zeros(X.shape, dtype=bool)
    np.put_along_axis(new, order, is_first, axis=0)
    padded = np.column_stack([cuts.at, np.full(len(cuts.at), np.inf)])
    new &= padded[np.arange(X.shape[1]), _bins(cuts.at, X)] != X
    new &= np.cumsum(new, axis=0) <= room
    if not new.any():
        return cuts
    at = np.sort(np.column_stack([cuts.at, np.where(new, X, np.inf).T]), axis=1)
    needed = int(np.isfinite(at).sum(axis=1).max())
    # Room grows by doubling, so that this does not happen with every batch.
    room_now = cuts.at.shape[1]
    at = at[:, : room_now if needed <= room_now else min(MAX_CUTS, max(needed, 2 * room_now))]
    grown = empty(len(at), cuts.sums.shape[2], at.shape[1])
    feature, column = np.nonzero(np.isfinite(cuts.at))
    moved = (at[feature] < cuts.at[feature, column][:, None]).sum(axis=1)
    grown.rows[feature, moved], grown.sums[feature, moved] = cuts.rows[feature, column], cuts.sums[feature, column]
    grown.rows[:, -1], grown.sums[:, -1] = cuts.rows[:, -1], cuts.sums[:, -1]
    return CutPoints(at, grown.rows, grown.sums)


def with_zeros(cuts: CutPoints, is_new: BoolArray, rows: FloatArray, sums: FloatArray) -> CutPoints:
    """Let new features have been 0 in all rows, of which the number is given, and that of each label."""
    at, rows_between, sums_between = (part.copy() for part in cuts)
    at[is_new, 0] = np.where(rows > 0, 0.0, np.inf)
    rows_between[is_new, 0], sums_between[is_new, 0] = rows, sums
    return CutPoints(at, rows_between, sums_between)
