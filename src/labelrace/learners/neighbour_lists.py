"""The neighbours of every row of a window, kept while rows come and go.

Each row has a list of more rows than are asked for, with their distances, and a reach: rows that are nearer than this
are all in its list. A batch of n rows costs the distances between it and the window of w rows, ``n · w`` of them, which
serve both ways: newcomers within a row's reach join its list, rows that leave the window leave the lists, and only a
row that is left with too few neighbours is compared with the whole window again. Reading takes the nearest of each
list, and no distances but where rounding leaves open which they are.

Distances have the rounding errors of `neighbours.squared_distances`. A row that is not in a list is at least as far as
the reach but for these errors, so what is chosen within a list is what would be chosen in the whole window if the last
one chosen is nearer than the reach by more than the errors. Otherwise the whole window is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from labelrace.learners import neighbours
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Lists", "NeighbourLists"]


class Lists(NamedTuple):
    """What is known of the neighbours of a window's rows.

    Attributes
    ----------
    near : (w, room) array
        Near rows of each row in no order, as places in the window; -1 where there is none.
    distance : (w, room) array
        Their squared distances; infinite where there is none.
    reach : (w,) array
        Rows that are not in a list are at least so far, squared; infinite if there are no others.
    """

    near: Annotated[IntArray, "_n @room", "-1<_n"]
    distance: Annotated[FloatArray, "_n @room", ">=0", "inf"]
    reach: Annotated[FloatArray, "_n", ">=0", "inf"]


class _Pairs(NamedTuple):
    """Neighbours of rows, one after the other: the row, its neighbour and their distance; sorted by row."""

    row: IntArray
    near: IntArray
    distance: FloatArray

    def of(self, chosen: BoolArray | IntArray) -> _Pairs:
        return _Pairs(self.row[chosen], self.near[chosen], self.distance[chosen])


@dataclass(frozen=True)
class NeighbourLists:
    """Keeps the lists from which the ``k`` nearest rows of each row are read.

    Parameters
    ----------
    k : int
        Number of neighbours that are read.
    newest_first : bool, default=True
        Whether of rows at the same distance the newest is nearer, or the oldest.
    most : int, default=2**62
        The largest number of rows of the window.

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

    k: int
    newest_first: bool = True
    most: int = 2**62

    @property
    def room(self) -> int:
        """Neighbours that a list can hold: as many as there are, or so many that few batches overfill it."""
        return min(4 * self.k + 8, self.most)

    @property
    def aim(self) -> int:
        """Neighbours that a list begins with: enough that few batches leave it with less than ``k``."""
        return min(2 * self.k + 4, self.room)

    def empty(self) -> Lists:
        """Make the lists of a window without rows."""
        return Lists(np.zeros((0, self.room), np.intp), np.zeros((0, self.room)), np.zeros(0))

    def update(self, lists: Lists, P: AnyMatrix, entering: int, leaving: int = 0) -> Lists:
        """Let the oldest rows leave, and others enter behind the rest; ``P`` has the points of the window then."""
        w, norms = P.shape[0], neighbours.norms(P)
        kept = w - entering
        old = _without(lists, leaving)
        new, joining = self._empty(entering), [_NONE]
        for block in neighbours.blocks(entering, w):
            places = np.arange(kept + block.start, kept + block.stop)
            D = self._distances(P, norms, places)
            _put(new, block, self._filled(D))
            if kept:
                # Of rows at the same distance as the reach, newcomers come before those that are not in the list.
                cells = np.flatnonzero(D[:, :kept] <= old.reach)
                newcomer, row = np.divmod(cells, kept)
                joining.append(_Pairs(row, places[newcomer], D[newcomer, row]))
        old = self._joined(old, _Pairs(*(np.concatenate(parts) for parts in zip(*joining, strict=True))))
        result = Lists(*(np.concatenate(parts) for parts in zip(old, new, strict=True)))
        short = np.flatnonzero((result.near >= 0).sum(axis=1) < min(self.k, w - 1))
        for block in neighbours.blocks(len(short), w):
            _put(result, short[block], self._filled(self._distances(P, norms, short[block])))
        return result

    def nearest(self, lists: Lists, P: AnyMatrix) -> IntArray:
        """Return the ``k`` nearest rows of each row without itself, (w, k), as `neighbours.nearest` would."""
        w = P.shape[0]
        k = min(self.k, w - 1)
        if k <= 0:
            return np.empty((w, 0), dtype=np.intp)
        errors = 2.0 * neighbours.slack(P, P)
        farthest = np.partition(lists.distance, k - 1, axis=1)[:, k - 1]
        is_clear = farthest + errors < lists.reach
        if self.newest_first and not errors.any():
            # Of rows exactly as far as the reach, a list has the newest.
            is_clear |= np.isfinite(farthest)
        limit = np.where(is_clear, farthest + errors, -1.0)
        row, slot = np.nonzero(lists.distance <= limit[:, None])
        near = lists.near[row, slot]
        exact = None if errors.any() else lists.distance[row, slot]
        if is_clear.all():
            return neighbours.settled(P, P, k, row, near, self.newest_first, exact)
        found = np.empty((w, k), dtype=np.intp)
        clear, unclear = np.flatnonzero(is_clear), np.flatnonzero(~is_clear)
        row = np.searchsorted(clear, row)
        found[clear] = neighbours.settled(P, P[clear], k, row, near, self.newest_first, exact)
        found[unclear] = neighbours.nearest(P, P[unclear], k, newest_first=self.newest_first, itself=unclear)
        return found

    def _empty(self, n_rows: int) -> Lists:
        near, distance = np.full((n_rows, self.room), -1, np.intp), np.full((n_rows, self.room), np.inf)
        return Lists(near, distance, np.full(n_rows, np.inf))

    def _distances(self, P: AnyMatrix, norms: FloatArray, places: IntArray) -> FloatArray:
        """Compute the distances of some of the window's rows to all others."""
        D = neighbours.squared_distances(P, P[places], norms, norms[places])
        D[np.arange(len(places)), places] = np.inf
        return D

    def _filled(self, D: FloatArray) -> Lists:
        """Make lists of rows whose distances to all others are known."""
        n, w = D.shape
        lists = self._empty(n)
        if w == 1:
            return lists
        row, near = neighbours.candidates(D, min(self.aim, w - 1), np.zeros(n))
        pairs = _Pairs(row, near, D[row, near])
        if w - 1 > self.aim:
            starts = np.searchsorted(row, np.arange(n))
            lists.reach[:] = np.nextafter(np.maximum.reduceat(pairs.distance, starts), np.inf)
        return self._joined(lists, pairs)

    def _joined(self, lists: Lists, pairs: _Pairs) -> Lists:
        """Put neighbours, in any order, into lists; those that have no room for all keep the nearest."""
        more = np.bincount(pairs.row, minlength=len(lists.reach))
        is_free = lists.near < 0
        is_full = more > is_free.sum(axis=1)
        if is_full.any():
            row, slot = np.nonzero(~is_free & is_full[:, None])
            before = _Pairs(row, lists.near[row, slot], lists.distance[row, slot])
            lists.near[is_full], lists.distance[is_full] = -1, np.inf
            coming = is_full[pairs.row]
            trimmed, reach = self._trimmed([before, pairs.of(coming)])
            lists.reach[is_full] = reach
            pairs = _Pairs(*(np.concatenate(parts) for parts in zip(pairs.of(~coming), trimmed, strict=True)))
            more, is_free = np.bincount(pairs.row, minlength=len(more)), lists.near < 0
        pairs = pairs.of(np.argsort(pairs.row, kind="stable"))
        taken = is_free & (np.cumsum(is_free, axis=1) <= more[:, None])
        lists.near[taken], lists.distance[taken] = pairs.near, pairs.distance
        return lists

    def _trimmed(self, parts: list[_Pairs]) -> tuple[_Pairs, FloatArray]:
        """Keep the nearest of lists that are too long; return the distance of the first left out of each, too."""
        pairs = _Pairs(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        order = np.lexsort((-pairs.near if self.newest_first else pairs.near, pairs.distance, pairs.row))
        pairs = pairs.of(order)
        is_first = np.append(True, np.diff(pairs.row) > 0)
        starts = np.flatnonzero(is_first)
        rank = np.arange(len(order)) - starts[np.cumsum(is_first) - 1]
        return pairs.of(rank < self.aim), pairs.distance[rank == self.aim]


_NONE = _Pairs(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))


def _without(lists: Lists, leaving: int) -> Lists:
    """Copy lists without the oldest rows."""
    near, distance = lists.near[leaving:] - leaving, lists.distance[leaving:].copy()
    is_gone = near < 0
    near[is_gone], distance[is_gone] = -1, np.inf
    return Lists(near, distance, lists.reach[leaving:].copy())


def _put(lists: Lists, places: slice | IntArray, others: Lists) -> None:
    """Write lists in the place of others."""
    for part, other in zip(lists, others, strict=True):
        part[places] = other
