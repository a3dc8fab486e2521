"""Tables of which a batch changes few rows, as values: no version is ever changed, and none is copied whole.

All versions of a table share one array, which holds the newest of them. Whoever replaces rows keeps the old ones with
the version before (Baker, "Shallow binding makes functional arrays fast", 1991): it reads the array, and those rows
from where they were kept. So a state that holds a table is a value like any other, at the cost of the rows that change.
Once more rows are kept for a version that is in use still than the table has, the newest gets an array of its own.

The rows are exchanged under a lock that readers share: they see one version or the other, never something between. An
exchange that is interrupted is undone, at the latest by whoever takes the lock next: until it is whole, the old rows
are noted beside the array.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from labelrace.base.locks import one_at_a_time
from labelrace.typing import AnyMatrix, Array, BoolArray, IntArray

T = TypeVar("T")

# Rows that are filled at a time.
_FILLED = 4096
# Bytes of rows that are copied at a time.
_PART_BYTES = 1 << 20
# Rows that a version counts for, beside those that it keeps: whoever reads an older one looks at all that followed.
_EACH_VERSION = 256
# For changes whose old rows are known beforehand.
_BEGUN = np.ones(1, bool)


class _Version:
    """A version: the newest one has its rows in the array; the others know which rows differ in the next one."""

    next: _Version | None = None
    places: IntArray | None = None
    rows: Array | None = None


class _Store:
    """The array, which version it holds, and the old rows of an exchange that is not whole.

    Rows of a table that is filled on demand are in the array once `fill` has been called for them.
    """

    def __init__(self, array: Array, fill: Callable[[IntArray], Array] | None = None, n_rows: int = 0) -> None:
        self.array = array
        self.fills = fill
        self._is_open = np.full(n_rows, fill is not None)
        # Re-entrant: a thread that an interrupt has thrown out of a `with` may still hold it.
        self.lock = threading.RLock()
        # One attribute, so that all changes at once: of a change that is not whole, the places, their old rows, and
        # whether any of them has been overwritten.
        self.status: tuple[_Version, tuple[IntArray, Array, BoolArray] | None] = (_Version(), None)
        # The oldest version that is in use, which keeps all that followed, and how many rows were kept since then.
        self._oldest: weakref.ref[_Version] | None = None
        self._n_kept = 0

    def count_kept(self, version: _Version, n_rows: int) -> None:
        """Count rows that are kept for a version."""
        if self._oldest is None or self._oldest() is None:
            self._oldest, self._n_kept = weakref.ref(version), 0
        self._n_kept += n_rows + _EACH_VERSION

    def is_crowded(self) -> bool:
        """Tell whether more rows than there are in the array are kept for a version that is in use."""
        return self._n_kept > len(self.array) and self._oldest is not None and self._oldest() is not None

    def newest(self) -> _Version:
        """Return the version that the array holds, after an exchange that was interrupted is undone."""
        newest, unfinished = self.status
        if unfinished:
            places, rows, has_begun = unfinished
            if has_begun[0]:
                self.array[places] = rows
            self.status = (newest, None)
        return newest

    def fill(self, places: IntArray | None = None) -> None:
        """Fill in rows that nobody has asked for so far, all of them without places."""
        if self.fills is None:
            return
        wanted = np.zeros(len(self._is_open), dtype=bool)
        wanted[slice(None) if places is None else places[places < len(wanted)]] = True
        open_rows = np.flatnonzero(wanted & self._is_open)
        for start in range(0, len(open_rows), _FILLED):
            some = open_rows[start : start + _FILLED]
            self.array[some] = self.fills(some)
            self._is_open[some] = False
        if places is None:
            self.fills = None


class VersionedRows:
    """A two-dimensional array as a value, of which some rows can be replaced at little cost.

    Examples
    --------
    >>> import numpy as np
    >>> before = VersionedRows.of(np.zeros((3, 2)))
    >>> after = before.replaced(np.array([1]), np.array([[5.0, 6.0]]))
    >>> np.asarray(after).tolist(), np.asarray(before).tolist()
    ([[0.0, 0.0], [5.0, 6.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    """

    __slots__ = ("_store", "_version", "shape")

    def __init__(self, store: _Store, version: _Version, n_rows: int) -> None:
        self._store = store
        self._version = version
        self.shape = (n_rows, store.array.shape[1])

    @classmethod
    def of(cls, array: Array | VersionedRows) -> VersionedRows:
        """Make a table of an array, which is copied; a table is returned as it is."""
        if isinstance(array, VersionedRows):
            return array
        return cls.taking(np.array(array, order="C"))

    @classmethod
    def taking(cls, array: Array) -> VersionedRows:
        """Make a table of an array that nobody else has, which is copied if its rows are not in one piece each."""
        store = _Store(np.ascontiguousarray(array))
        return cls(store, store.status[0], len(array))

    @classmethod
    def filled_by(cls, fill: Callable[[IntArray], Array], shape: tuple[int, int], dtype: Any) -> VersionedRows:
        """Make a table whose rows a function returns by their places, each when it is first asked for."""
        # The system gives memory to rows that are written; there is room to grow.
        store = _Store(np.zeros((2 * shape[0], shape[1]), dtype), fill, shape[0])
        return cls(store, store.status[0], shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self._store.array.dtype

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def nbytes(self) -> int:
        """The bytes of all entries."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def parts(self) -> Iterator[Array]:
        """Copy all rows, some at a time: whoever writes them needs no second array of that size."""
        size = max(1, _PART_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        for start in range(0, self.shape[0], size):
            yield self.rows(np.arange(start, min(start + size, self.shape[0])))

    def rows(self, places: IntArray) -> Array:
        """Copy some rows."""
        return one_at_a_time(self._store.lock, self._taken, places)

    def _taken(self, places: IntArray) -> Array:
        newest = self._store.newest()
        self._store.fill(places)
        # Twice as fast as indexing.
        taken = self._store.array.take(places, axis=0)
        for version in reversed(self._since(newest)):
            _restore(taken, places, version)
        return taken

    def times(self, Z: AnyMatrix) -> Array:
        """Compute the product of sparse rows with the table."""
        product = one_at_a_time(self._store.lock, self._product, Z)
        if product is not None:
            return product
        touched, compact = np.unique(Z.indices, return_inverse=True)
        shape = (Z.shape[0], len(touched))
        return np.asarray(scipy.sparse.csr_array((Z.data, compact, Z.indptr), shape=shape) @ self.rows(touched))

    def _product(self, Z: AnyMatrix) -> Array | None:
        """Compute the product if this is the newest version, whose rows are in the array."""
        store = self._store
        if store.newest() is not self._version:
            return None
        store.fill(Z.indices)
        return np.asarray(Z @ store.array[: self.shape[0]])

    def replaced(self, places: IntArray, rows: Array, kept: Array | None = None) -> VersionedRows:
        """Make a table with other rows at some places, which are in order; ``kept`` are the `rows` there, if known."""
        changed = one_at_a_time(self._store.lock, self._exchanged, places, rows, kept)
        # Where another table has been made of this version, or too much is kept for older ones, the ways part.
        return VersionedRows.taking(np.asarray(self)).replaced(places, rows) if changed is None else changed

    def _exchanged(self, places: IntArray, rows: Array, kept: Array | None) -> VersionedRows | None:
        """Exchange rows of the array, if it holds this version."""
        if kept is None:
            self._store.newest()
            self._store.fill(places)
            kept = self._store.array.take(places, axis=0)

        def exchange(array: Array) -> None:
            _put(array, places, rows)

        # A copy, as the places may be those of a row, the caller's.
        return self._changed(places.copy(), kept, exchange)

    def changed(self, places: IntArray, kept: Array, change: Callable[[Array], None]) -> VersionedRows:
        """Make a table whose array a function has changed at some places, in any order; ``kept`` are the `rows` there.

        For changes that are quicker made in the array than computed beforehand. Readers wait meanwhile. Places and rows
        belong to the table from then on.
        """
        changed = one_at_a_time(self._store.lock, self._changed, places, kept, change)
        return VersionedRows.taking(np.asarray(self)).changed(places, kept, change) if changed is None else changed

    def _changed(self, places: IntArray, kept: Array, change: Callable[[Array], None]) -> VersionedRows | None:
        """Change the array, if it holds this version and not too much is kept for older ones."""
        store = self._store
        if store.newest() is not self._version or store.is_crowded():
            return None
        changed = self._next(places, kept)
        try:
            change(store.array)
            store.status = (changed._version, None)
        finally:
            store.newest()
        return changed

    def _next(self, places: IntArray, kept: Array, has_begun: BoolArray = _BEGUN) -> VersionedRows:
        """Begin a change of the array: make the version that it will hold, and note the old rows."""
        store, old, new = self._store, self._version, _Version()
        if store.fills:
            store.fill(places)
        # While the array holds the old version, nobody looks at these.
        old.places, old.rows, old.next = places, kept, new
        store.count_kept(old, len(places))
        changed = VersionedRows(store, new, self.shape[0])
        store.status = (old, (places, kept, has_begun))
        return changed

    def grown(self, n_rows: int) -> VersionedRows:
        """Make a table with further rows of zeros; room for as many more is made beforehand."""
        if n_rows <= len(self._store.array) and one_at_a_time(self._store.lock, self._store.newest) is self._version:
            return VersionedRows(self._store, self._version, n_rows)
        room = np.zeros((2 * n_rows, self.shape[1]), self.dtype)
        room[: self.shape[0]] = np.asarray(self)
        larger = VersionedRows.taking(room)
        return VersionedRows(larger._store, larger._version, n_rows)

    def _since(self, newest: _Version) -> list[_Version]:
        """List the versions from this one on, but for the newest."""
        found, version = [], self._version
        while version is not newest:
            found.append(version)
            assert version.next is not None
            version = version.next
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = one_at_a_time(self._store.lock, self._whole)
        return whole if dtype is None else whole.astype(dtype)

    def _whole(self) -> Array:
        newest = self._store.newest()
        self._store.fill()
        whole = self._store.array[: self.shape[0]].copy()
        for version in reversed(self._since(newest)):
            assert version.places is not None
            inside = version.places < self.shape[0]
            whole[version.places[inside]] = version.rows[inside]  # type: ignore[index]
        return whole

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionedRows.of, (np.asarray(self),)


def _put(array: Array, places: IntArray, rows: Array) -> None:
    """Put rows at their places, each as one piece of memory: several times as fast as indexing where they are many."""
    if rows.shape != (len(places), array.shape[1]):
        raise ValueError(f"rows must have the shape {(len(places), array.shape[1])}, got {rows.shape}.")
    if not rows.size:
        return
    piece = np.dtype((np.void, array.shape[1] * array.itemsize))
    whole = np.ascontiguousarray(rows, array.dtype)
    np.put(array.view(piece)[:, 0], places, whole.view(piece)[:, 0])


def read_all(tables: Sequence[Any], read: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the arrays of tables while nobody changes them; None if one holds another version.

    The function must neither change the arrays nor keep them. For those who look at many places and need little of
    each. What is an array already is passed on. Whoever takes the locks of two tables must take them in the same order.
    """
    return Reader(tables).read(read, *arguments)


class Reader:
    """Some tables, six at the most, that are read together again and again: what that needs is found once."""

    def __init__(self, tables: Sequence[Any]) -> None:
        held = [table for table in tables if isinstance(table, VersionedRows)]
        self._versions = [(table._store, table._version) for table in held]
        self._arrays = [
            table._store.array[: table.shape[0]] if isinstance(table, VersionedRows) else table for table in tables
        ]
        # A lock may be taken twice by the same thread: the first stands in for those that there are fewer than six.
        locks = [table._store.lock for table in held] or [threading.RLock()]
        self._locks = locks + locks[:1] * (6 - len(locks))

    def read(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function with the arrays while nobody changes them; None if one holds another version."""
        first, second, third, fourth, fifth, sixth = self._locks
        # On one line, as in `one_at_a_time`.
        with first, second, third, fourth, fifth, sixth: return self._read(read, arguments)  # noqa: E701  # fmt: skip

    def _read(self, read: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        for store, version in self._versions:
            if store.status != (version, None) and store.newest() is not version:
                return None
            if store.fills is not None:
                store.fill()
        return read(*self._arrays, *arguments)


def changed_both(
    one: VersionedRows, other: VersionedRows, places: IntArray, change: Callable[..., T], arguments: tuple[Any, ...]
) -> tuple[VersionedRows, VersionedRows, T]:
    """Make tables whose arrays a function has changed at the same places; return them with what it returned.

    The function, a compiled loop that cannot be interrupted, is called with both arrays, two arrays for their rows at
    the places, an array of one truth, and the arguments. It copies the rows, then sets the truth, and then changes the
    arrays; or it does nothing of it, and the tables are returned as they were.
    """
    # On one line, as in `one_at_a_time`.
    with one._store.lock, other._store.lock: changed = _change_both(one, other, places, change, arguments)  # noqa: E701  # fmt: skip
    if changed is None:
        return changed_both(
            VersionedRows.taking(np.asarray(one)), VersionedRows.taking(np.asarray(other)), places, change, arguments
        )
    return changed


def _change_both(
    one: VersionedRows, other: VersionedRows, places: IntArray, change: Callable[..., T], arguments: tuple[Any, ...]
) -> tuple[VersionedRows, VersionedRows, T] | None:
    """Change the arrays of two tables, if they hold these versions."""
    first, second, n = one._store, other._store, len(places)
    if first.newest() is not one._version or second.newest() is not other._version:
        return None
    if first.is_crowded() or second.is_crowded():
        return None
    has_begun, kept = np.zeros(1, bool), np.empty((n, one.shape[1]), first.array.dtype)
    other_kept = np.empty((n, other.shape[1]), second.array.dtype)
    # A copy, as the places may be those of a row, the caller's.
    places = places.copy()
    changed, other_changed = one._next(places, kept, has_begun), other._next(places, other_kept, has_begun)
    # Should this be interrupted, whoever takes the lock next undoes it.
    answer = change(first.array, second.array, kept, other_kept, has_begun, *arguments)
    if not has_begun[0]:
        return one, other, answer
    first.status = (changed._version, None)
    second.status = (other_changed._version, None)
    return changed, other_changed, answer


def _restore(taken: Array, places: IntArray, version: _Version) -> None:
    """Put the rows of a version where they were taken from one that came later."""
    assert version.places is not None
    assert version.rows is not None
    if not len(version.places):
        return
    # Not by differences, as places may be of a type without negative numbers.
    if (version.places[1:] < version.places[:-1]).any():
        # Places that are there twice have the same row, both times.
        order = np.argsort(version.places)
        version.places, version.rows = version.places[order], version.rows[order]
    found = np.minimum(np.searchsorted(version.places, places), len(version.places) - 1)
    same = version.places[found] == places
    taken[same] = version.rows[found[same]]


def rows_of(array: Any, places: IntArray | slice) -> Array:
    """Take some rows of a table, or all of an array."""
    if isinstance(array, VersionedRows) and not isinstance(places, slice):
        return array.rows(places)
    return np.asarray(np.asarray(array)[places])


def replaced_rows(array: Any, places: IntArray | slice, rows: Array, kept: Array) -> Any:
    """Make a table with other rows at some places, where ``kept`` are now; at all places it is an array."""
    return rows if isinstance(places, slice) else VersionedRows.of(array).replaced(places, rows, kept)


def with_rows(array: Any, places: IntArray, rows: Array) -> Any:
    """Put other rows at some places of a table, or of an array, which is copied."""
    if isinstance(array, VersionedRows):
        return array.replaced(places, rows)
    changed = np.array(array)
    changed[places] = rows
    return changed


def product_of(Z: AnyMatrix, array: Any) -> Array:
    """Compute the product of some rows with a table or an array."""
    return array.times(Z) if isinstance(array, VersionedRows) else np.asarray(Z @ array)
