"""Persistent arrays: a batch that changes few rows makes a new version; older versions stay valid, without a full copy.

All versions of a table share one array, which holds the newest. Replacing rows keeps the old ones with the version
before (Baker, "Shallow binding makes functional arrays fast", 1991):

    oldest version ──next──▶ version ──next──▶ newest version
    indices, old rows        indices, old rows        │ held by
                                                      ▼
                                                    array

The newest version is read from the array; an older one, too, but for the rows that were kept with it and with those
after it. So a state that holds a table is effectively immutable, at the cost of the rows that change. Once more rows
are kept for a version in use than the table has, the newest gets an array of its own.

The array is read and changed under a lock: readers see one version or the other, never something between. A change that
is interrupted is undone, at the latest when the lock is taken next: until it is whole, the old rows are noted beside
the array.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, Array, BoolArray, IntArray

T = TypeVar("T")

# Rows that are filled in at once.
_FILL_ROWS = 4096
# Bytes of rows that are copied at once.
_PART_BYTES = 1 << 20
# Rows that a version counts for, in addition to those that it keeps: to read an older one, all later ones are read.
_ROWS_PER_VERSION = 256


class _Version:
    """A version: the newest one has its rows in the array; the others know which rows differ in the next one."""

    next: _Version | None = None
    indices: IntArray | None = None
    rows: Array | None = None


class _Unfinished(NamedTuple):
    """A version that the array does not hold whole: some rows must be restored, or are yet to be filled in."""

    version: _Version
    indices: IntArray | None = None
    rows: Array | None = None


class _Store:
    """The array, and which version it holds.

    Rows of a table that is filled on demand are in the array once `fill` has been called for them.
    """

    def __init__(
        self,
        array: Array,
        fill_function: Callable[[IntArray], Array] | None = None,
        n_rows: int = 0,
        source: Any = None,
    ) -> None:
        self.array = array
        self.fill_function = fill_function
        # What rows are filled from, and which of them have not been changed since, in no version.
        self.source = source
        self.is_as_filled = np.full(n_rows, source is not None)
        self._is_unfilled = np.full(n_rows, fill_function is not None)
        # Re-entrant: a thread that an interrupt has thrown out of a `with` may still hold it.
        self.lock = threading.RLock()
        # One attribute, so that all changes at once: the version, if all of its rows are in the array.
        version = _Version()
        self.held: _Version | _Unfinished = version if fill_function is None else _Unfinished(version)
        # The oldest version that is in use, which keeps all that followed, and how many rows were kept since then.
        self.oldest: Callable[[], _Version | None] = lambda: None
        self.n_kept = 0

    def newest(self) -> _Version:
        """Return the version that the array holds, after a change that was interrupted is undone."""
        held = self.held
        if isinstance(held, _Version):
            return held
        if held.rows is not None:
            self.array[held.indices] = held.rows
        self.held = held.version if self.fill_function is None else _Unfinished(held.version)
        return held.version

    def fill(self, indices: IntArray | None = None) -> None:
        """Fill in those of some rows that have not been yet; without indices, of all rows."""
        if self.fill_function is None:
            return
        wanted = np.zeros(len(self._is_unfilled), dtype=bool)
        wanted[slice(None) if indices is None else indices[indices < len(wanted)]] = True
        unfilled = np.flatnonzero(wanted & self._is_unfilled)
        for start in range(0, len(unfilled), _FILL_ROWS):
            some = unfilled[start : start + _FILL_ROWS]
            self.array[some] = self.fill_function(some)
            self._is_unfilled[some] = False
        if indices is None:
            self.fill_function = None


class VersionedRows:
    """A two-dimensional array that is never changed: replacing some rows returns a new one, at little cost.

    A ``with`` of the lock and its body are on one line, for the reason given in `labelrace.base.threads.one_at_a_time`.

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
        """Make a table that takes an array over, without a copy if it is C-contiguous: the caller must not use it."""
        store = _Store(np.ascontiguousarray(array))
        return cls(store, store.newest(), len(array))

    @classmethod
    def filled_by(
        cls, fill: Callable[[IntArray], Array], shape: tuple[int, int], dtype: Any, source: Any = None
    ) -> VersionedRows:
        """Make a table whose rows a function returns by their indices, each when it is first asked for.

        The function takes them from ``source``; see `unchanged`.
        """
        # Only rows that are written take memory; there is room to grow.
        store = _Store(np.zeros((2 * shape[0], shape[1]), dtype), fill, shape[0], source)
        return cls(store, store.newest(), shape[0])

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

    # --- Reading ------------------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[Array]:
        """Yield copies of all rows, some at a time: writing them to a file needs no second array of that size."""
        size = max(1, _PART_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        for start in range(0, self.shape[0], size):
            yield self.rows(np.arange(start, min(start + size, self.shape[0])))

    def unchanged(self) -> tuple[Any, BoolArray]:
        """Return what the table was filled from, None if from nothing, and which rows are still as they were there."""
        store = self._store
        with store.lock: as_filled = store.is_as_filled.copy()  # noqa: E701  # fmt: skip
        return store.source, np.pad(as_filled, (0, self.shape[0] - len(as_filled)))

    def rows(self, indices: IntArray) -> Array:
        """Copy some rows."""
        store = self._store
        # Twice as fast as indexing.
        with store.lock: return store.array.take(indices, 0) if store.held is self._version else self._older_rows(indices)  # noqa: E501, E701  # fmt: skip

    def _older_rows(self, indices: IntArray) -> Array:
        """Copy some rows of a version that the array may not hold whole."""
        older = self._older_versions()
        self._store.fill(indices)
        rows = self._store.array.take(indices, axis=0)
        for version in reversed(older):
            _restore_rows(rows, indices, version)
        return rows

    def times(self, Z: AnyMatrix) -> Array:
        """Compute the product of sparse rows with the table."""
        if Z.shape[0] == 1:
            return _row_times(Z, self.rows(Z.indices))
        with self._store.lock: product = self._newest_times(Z)  # noqa: E701  # fmt: skip
        if product is not None:
            return product
        touched, compact = np.unique(Z.indices, return_inverse=True)
        shape = (Z.shape[0], len(touched))
        return np.asarray(scipy.sparse.csr_array((Z.data, compact, Z.indptr), shape=shape) @ self.rows(touched))

    def _newest_times(self, Z: AnyMatrix) -> Array | None:
        """Compute the product if this is the newest version, whose rows are in the array."""
        if self._store.newest() is not self._version:
            return None
        self._store.fill(Z.indices)
        return np.asarray(Z @ self._store.array[: self.shape[0]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        with self._store.lock: whole = self._whole()  # noqa: E701  # fmt: skip
        return whole if dtype is None else whole.astype(dtype)

    def _whole(self) -> Array:
        """Copy all rows."""
        older = self._older_versions()
        self._store.fill()
        whole = self._store.array[: self.shape[0]].copy()
        for version in reversed(older):
            assert version.indices is not None
            inside = version.indices < self.shape[0]
            whole[version.indices[inside]] = version.rows[inside]  # type: ignore[index]
        return whole

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionedRows.of, (np.asarray(self),)

    def _older_versions(self) -> list[_Version]:
        """List the versions from this one on, but for the newest."""
        newest, versions, version = self._store.newest(), [], self._version
        while version is not newest:
            versions.append(version)
            assert version.next is not None
            version = version.next
        return versions

    # --- Changing -----------------------------------------------------------------------------------------------------

    def replaced(self, indices: IntArray, rows: Array, before: Array | None = None) -> VersionedRows:
        """Make a table with other rows at some indices; ``before`` are the `rows` there, if known."""
        before = self.rows(indices) if before is None else before
        # A copy, as the indices may belong to the caller's matrix.
        return self.changed(indices.copy(), before, _write_rows, indices, rows)

    def changed(self, indices: IntArray, before: Array, change: Callable[..., None], *arguments: Any) -> VersionedRows:
        """Make a table whose array a function has changed at some indices; ``before`` are the `rows` there.

        For changes that are quicker made in the array than computed beforehand: the function is called with the array
        and the arguments. Readers wait meanwhile. Indices and rows belong to the table from then on.
        """
        with self._store.lock: changed = self._changed(indices, before, change, arguments)  # noqa: E701  # fmt: skip
        if changed is None:
            # Another table was made of this version, or older ones keep too many rows: the new one gets its own array.
            return VersionedRows.taking(np.asarray(self)).changed(indices, before, change, *arguments)
        return changed

    def _changed(
        self, indices: IntArray, before: Array, change: Callable[..., None], arguments: tuple[Any, ...]
    ) -> VersionedRows | None:
        """Change the array, if it holds this version and not too much is kept for older ones."""
        store, old, new = self._store, self._version, _Version()
        if store.held is not old and store.newest() is not old:
            return None
        if store.oldest() is None:
            store.oldest, store.n_kept = weakref.ref(old), 0
        elif store.n_kept > len(store.array):
            return None
        store.n_kept += len(indices) + _ROWS_PER_VERSION
        if store.fill_function is not None:
            store.fill(indices)
        if store.source is not None:
            store.is_as_filled[indices[indices < len(store.is_as_filled)]] = False
        # These are not read while the array holds the old version.
        old.indices, old.rows, old.next = indices, before, new
        changed = VersionedRows(store, new, self.shape[0])
        store.held = _Unfinished(old, indices, before)
        try:
            change(store.array, *arguments)
        except BaseException:
            store.newest()
            raise
        store.held = new if store.fill_function is None else _Unfinished(new)
        return changed

    def grown(self, n_rows: int) -> VersionedRows:
        """Make a table with further rows of zeros; room for as many more is made beforehand."""
        with self._store.lock: return self._grown(n_rows)  # noqa: E701  # fmt: skip

    def _grown(self, n_rows: int) -> VersionedRows:
        if n_rows <= len(self._store.array) and self._store.newest() is self._version:
            return VersionedRows(self._store, self._version, n_rows)
        room = np.zeros((2 * n_rows, self.shape[1]), self.dtype)
        room[: self.shape[0]] = np.asarray(self)
        larger = VersionedRows.taking(room)
        return VersionedRows(larger._store, larger._version, n_rows)


def _write_rows(array: Array, indices: IntArray, rows: Array) -> None:
    """Write rows at their indices, each as one block of bytes: several times as fast as indexing for many rows."""
    if rows.shape != (len(indices), array.shape[1]):
        raise ValueError(f"rows must have the shape {(len(indices), array.shape[1])}, got {rows.shape}.")
    if not rows.size:
        return
    row_dtype = np.dtype((np.void, array.shape[1] * array.itemsize))
    whole = np.ascontiguousarray(rows, array.dtype)
    np.put(array.view(row_dtype)[:, 0], indices, whole.view(row_dtype)[:, 0])


def _restore_rows(rows: Array, indices: IntArray, version: _Version) -> None:
    """Replace rows that were read from a later version by those that this version keeps."""
    assert version.indices is not None
    assert version.rows is not None
    if not len(version.indices):
        return
    # Not by differences, as indices may be of a type without negative numbers.
    if (version.indices[1:] < version.indices[:-1]).any():
        # An index that occurs twice has the same row both times.
        order = np.argsort(version.indices)
        version.indices, version.rows = version.indices[order], version.rows[order]
    nearest = np.minimum(np.searchsorted(version.indices, indices), len(version.indices) - 1)
    same = version.indices[nearest] == indices
    rows[same] = version.rows[nearest[same]]


# --- Several tables ---------------------------------------------------------------------------------------------------


def read_all(tables: Sequence[Any], read: Callable[..., T], *arguments: Any) -> T:
    """Call a function with the arrays of tables while their locks are held, and return its result.

    For compiled loops, which look at many rows and need little of each. The function must neither change the arrays nor
    keep them. What is an array already is passed on.
    """
    # Always in the same order, so that no two threads wait for one another.
    stores = sorted({table._store for table in tables if isinstance(table, VersionedRows)}, key=id)
    return _holding(stores, _read, tables, read, arguments)


def _holding(stores: Sequence[_Store], call: Callable[..., T], *arguments: Any) -> T:
    """Call a function while the locks of stores are held."""
    if not stores:
        return call(*arguments)
    with stores[0].lock: return _holding(stores[1:], call, *arguments)  # noqa: E701  # fmt: skip


def _read(tables: Sequence[Any], read: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Call a function with the arrays of tables whose locks are held."""
    arrays, older = [], []
    try:
        for table in tables:
            if isinstance(table, VersionedRows):
                store = table._store
                if store.held is not table._version:
                    older.append(store)
                    _restore_in_array(table)
                arrays.append(store.array[: table.shape[0]])
            else:
                arrays.append(table)
        return read(*arrays, *arguments)
    finally:
        for store in older:
            store.newest()


def _restore_in_array(table: VersionedRows) -> None:
    """Restore a version in the array until `_Store.newest` is called, which brings back the newest rows."""
    store, older = table._store, table._older_versions()
    store.fill()
    newest = store.newest()
    if not older:
        return
    indices = np.concatenate([version.indices for version in older if version.indices is not None])
    store.held = _Unfinished(newest, indices, store.array.take(indices, axis=0))
    for version in reversed(older):
        store.array[version.indices] = version.rows


# --- Tables or arrays -------------------------------------------------------------------------------------------------


def rows_of(array: Any, indices: IntArray | slice) -> Array:
    """Take some rows of a table, or all of an array."""
    if isinstance(array, VersionedRows) and not isinstance(indices, slice):
        return array.rows(indices)
    return np.asarray(np.asarray(array)[indices])


def replaced_rows(array: Any, indices: IntArray | slice, rows: Array, before: Array) -> Any:
    """Make a table with other rows at some indices, where ``before`` are now; at all indices it is an array."""
    return rows if isinstance(indices, slice) else VersionedRows.of(array).replaced(indices, rows, before)


def with_rows(array: Any, indices: IntArray, rows: Array) -> Any:
    """Put other rows at some indices of a table, or of an array, which is copied."""
    if isinstance(array, VersionedRows):
        return array.replaced(indices, rows)
    changed = np.array(array)
    changed[indices] = rows
    return changed


def product_of(Z: AnyMatrix, array: Any) -> Array:
    """Compute the product of some rows with a table or an array, to the bit the same for both."""
    if isinstance(array, VersionedRows):
        return array.times(Z)
    if scipy.sparse.issparse(Z) and Z.shape[0] == 1:
        return _row_times(Z, array.take(Z.indices, 0))
    return np.asarray(Z @ array)


def _row_times(Z: AnyMatrix, rows: Array) -> Array:
    """Compute the product of one sparse row with a table, given the rows for its non-zeros."""
    return np.asarray(Z.data @ rows)[None]
