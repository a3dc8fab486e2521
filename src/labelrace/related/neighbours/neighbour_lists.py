"""The neighbours of every row of a window, kept while rows come and go.

Each row has a list of more rows than are asked for, the nearest first, with their distances, and a reach: rows that are
nearer than this are all in its list. A batch of n rows costs the distances between it and the window of w rows,
``n · w`` of them, which serve both ways: newcomers within a row's reach join its list, rows that leave the window leave
the lists, and only a row that is left with too few neighbours is compared with the whole window again. Reading takes
the first of each list, and no distances but where rounding leaves open which are the nearest.

Distances have the rounding errors of `neighbours.squared_distances`. A row that is not in a list is at least as far as
the reach but for these errors, so what comes first in a list comes first in the whole window if it is nearer than the
reach by more than the errors. Otherwise the whole window is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from labelrace.related.neighbours import neighbours
from labelrace.typing import AnyMatrix, FloatArray, IntArray


class Lists(NamedTuple):
    """What is known of the neighbours of a window's rows."""

    # Neighbours of each row, the nearest first, as places in the window; -1 where there is none.
    near: Annotated[IntArray, "_n @list_length", "-1<_n"]
    # Their squared distances; infinite where there is none.
    distance: Annotated[FloatArray, "_n @list_length", ">=0", "inf"]
    # Rows that are not in a list are at least so far, squared; infinite if there are no others.
    reach: Annotated[FloatArray, "_n", ">=0", "inf"]


class _Pairs(NamedTuple):
    """Rows, a neighbour of each and their distance; a row may occur often."""

    row: IntArray
    near: IntArray
    distance: FloatArray


@dataclass(frozen=True)
class NeighbourLists:
    """Keeps the lists from which the ``k`` nearest rows of each row are read.

    Examples
    --------
    >>> import numpy as np
    >>> keeper, P = NeighbourLists(1), np.array([[0.0], [1.0], [1.5], [0.4]])
    >>> lists = keeper.update(keeper.empty(), P[:3], 3)
    >>> keeper.nearest(lists, P[:3]).ravel().tolist()
    [1, 2, 1]
    >>> lists = keeper.update(lists, P[1:], 1, leaving=1)
    >>> keeper.nearest(lists, P[1:]).ravel().tolist()
    [1, 0, 0]
    """

    k: int  # number of neighbours that are read
    newest_first: bool = True  # whether of rows at the same distance the newest is nearer, or the oldest
    most: int = 2**62  # the largest number of rows of the window

    @property
    def length(self) -> int:
        """Neighbours in a list: enough that few batches leave it with less than ``k``, or as many as there can be."""
        return min(2 * self.k + 4, self.most)

    def empty(self) -> Lists:
        """Make the lists of a window without rows."""
        return Lists(np.zeros((0, self.length), np.intp), np.zeros((0, self.length)), np.zeros(0))

    def update(self, lists: Lists, P: AnyMatrix, entering: int, leaving: int = 0) -> Lists:
        """Let others enter behind the rest, and the oldest leave for them; ``P`` has the points of the window then."""
        if not entering:
            return lists
        w, lengths = P.shape[0], neighbours.norms(P)
        kept = w - entering
        reach, new, joining = lists.reach[leaving:], [], []
        for block in neighbours.blocks(entering, w):
            places = np.arange(kept + block.start, kept + block.stop)
            D = self._distances(P, lengths, places)
            new.append(self._begun(D))
            if kept:
                # A newcomer as far as the reach counts: it comes before the rows that the list does not have.
                newcomer, row = np.divmod(np.flatnonzero(D[:, :kept] <= reach), kept)
                joining.append(_Pairs(row, places[newcomer], D[newcomer, row]))
        if kept:
            pairs = joining[0] if len(joining) == 1 else _Pairs(*map(np.concatenate, zip(*joining, strict=True)))
            new.insert(0, self._joined(_without(lists, leaving), pairs))
        result = Lists(*map(np.concatenate, zip(*new, strict=True)))
        # Those that are left with too few begin anew.
        wanted = min(self.k, w - 1)
        short = np.flatnonzero(np.isinf(result.distance[:, wanted - 1]) & (wanted > 0))
        for block in neighbours.blocks(len(short), w):
            begun = self._begun(self._distances(P, lengths, short[block]))
            for part, other in zip(result, begun, strict=True):
                part[short[block]] = other
        return result

    def nearest(self, lists: Lists, P: AnyMatrix) -> IntArray:
        """Return the ``k`` nearest rows of each row without itself, (w, k); `neighbours.nearest` finds the same."""
        w = P.shape[0]
        k = min(self.k, w - 1)
        if k <= 0:
            return np.empty((w, 0), dtype=np.intp)
        found, last, errors = lists.near[:, :k].copy(), lists.distance[:, k - 1], 2.0 * neighbours.slack(P, P)
        is_exact = not errors.any()
        # Of rows exactly as far as the reach a list has the newest, which leave last: those that it has not have left.
        is_known = np.isfinite(last) if is_exact and self.newest_first else last + errors < lists.reach
        if not is_exact and lists.distance.shape[1] > k:
            unclear = np.flatnonzero(is_known & (lists.distance[:, k] <= last + errors))
            row, place = np.nonzero(lists.distance[unclear] <= (last + errors)[unclear, None])
            near = lists.near[unclear][row, place]
            found[unclear] = neighbours.settled(P, P[unclear], k, row, near, self.newest_first, None)
        unknown = np.flatnonzero(~is_known)
        if len(unknown):
            found[unknown] = neighbours.nearest(P, P[unknown], k, newest_first=self.newest_first, itself=unknown)
        return found

    def _distances(self, P: AnyMatrix, lengths: FloatArray, places: IntArray) -> FloatArray:
        """Compute the distances of some of the window's rows to all others."""
        D = neighbours.squared_distances(P, P[places], lengths, lengths[places])
        D[np.arange(len(places)), places] = np.inf
        return D

    def _begun(self, D: FloatArray) -> Lists:
        """Make the lists of rows whose distances to all others are known."""
        n, w = D.shape
        nothing = np.zeros((n, self.length))
        lists = Lists(nothing.astype(np.intp) - 1, nothing + np.inf, np.full(n, np.inf))
        if w == 1:
            return lists
        row, near = neighbours.candidates(D, min(self.length, w - 1), np.zeros(n))
        lists = self._joined(lists, _Pairs(row, near, D[row, near]))
        if w - 1 > self.length:
            lists.reach[:] = lists.distance[:, -1]
        return lists

    def _joined(self, lists: Lists, pairs: _Pairs) -> Lists:
        """Put newer neighbours into lists, the oldest first of each row; they keep the nearest."""
        order = np.argsort(pairs.row, kind="stable")
        row, counts = pairs.row[order], np.bincount(pairs.row, minlength=len(lists.reach))
        place, width = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts), max(1, counts.max())
        if self.newest_first:
            place = width - 1 - place
        near, distance = np.full((len(counts), width), -1, np.intp), np.full((len(counts), width), np.inf)
        near[row, place], distance[row, place] = pairs.near[order], pairs.distance[order]
        # A stable sort leaves equal distances in their order.
        first, second = ((near, distance), lists[:2]) if self.newest_first else (lists[:2], (near, distance))
        near, distance = (np.hstack(both) for both in zip(first, second, strict=True))
        order = np.argsort(distance, axis=1, kind="stable")[:, : self.length + 1]
        near, distance = np.take_along_axis(near, order, 1), np.take_along_axis(distance, order, 1)
        return Lists(near[:, :-1], distance[:, :-1], np.minimum(lists.reach, distance[:, -1]))


def _without(lists: Lists, leaving: int) -> Lists:
    """Return lists without the oldest rows, whose places in them are empty."""
    if not leaving:
        return lists
    near = lists.near[leaving:] - leaving
    is_gone = near < 0
    near[is_gone] = -1
    return Lists(near, np.where(is_gone, np.inf, lists.distance[leaving:]), lists.reach[leaving:])
