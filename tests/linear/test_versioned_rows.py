"""Rows as values: every version stays what it was, whatever is made of it, also after failures and interrupts."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.linear import versioned_rows
from labelrace.linear.versioned_rows import VersionedRows, read_all


def assert_is(one, array):
    np.testing.assert_array_equal(np.asarray(one), array)
    indices = np.array([len(array) - 1, 0, 1])
    np.testing.assert_array_equal(one.rows(indices), array[indices])
    Z = scipy.sparse.csr_array(np.arange(2.0 * len(array)).reshape(2, -1) % 3)
    np.testing.assert_allclose(one.times(Z), Z @ array)
    np.testing.assert_array_equal(one[1:, 0], array[1:, 0])
    assert one.shape == array.shape
    assert len(one) == len(array)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_every_version_stays_what_it_was(seed, n_steps):
    """Rows are replaced and added, from the newest version or from any."""
    rng = np.random.default_rng(seed)
    versions = [(VersionedRows.of(np.zeros((4, 2))), np.zeros((4, 2)))]
    for _ in range(n_steps):
        one, array = versions[-1 if rng.random() < 0.7 else rng.integers(len(versions))]
        if rng.random() < 0.3:
            n_rows = len(array) + int(rng.integers(1, 6))
            versions.append((one.grown(n_rows), np.pad(array, ((0, n_rows - len(array)), (0, 0)))))
            continue
        indices = np.flatnonzero(rng.random(len(array)) < 0.4)
        rows, changed = rng.normal(size=(len(indices), 2)), array.copy()
        changed[indices] = rows
        versions.append((one.replaced(indices, rows), changed))
    for one, array in versions:
        assert_is(one, array)


def test_nothing_is_copied_that_does_not_change():
    one = VersionedRows.of(np.zeros((1000, 3)))
    other = one.replaced(np.array([7]), np.ones((1, 3)))
    assert other._store is one._store
    assert one.grown(1500)._store is not one._store
    grown = other.grown(1100)
    assert grown.grown(2000)._store is grown._store


def test_a_version_that_stays_in_use_keeps_no_more_than_the_table_is_large():
    """Nor does it take longer and longer to read."""
    rng, n = np.random.default_rng(0), 2000
    first = newest = VersionedRows.of(np.zeros((n, 4)))
    tracemalloc.start()
    try:
        for _ in range(1000):
            indices = np.sort(rng.choice(n, size=20, replace=False))
            newest = newest.replaced(indices, rng.normal(size=(20, 4)))
        assert tracemalloc.get_traced_memory()[0] < 5 * newest.nbytes
    finally:
        tracemalloc.stop()
    assert len(first._older_versions()) < 20
    assert_is(first, np.zeros((n, 4)))
    # Where no older version is in use, nothing is copied.
    store, last = newest._store, newest.rows(np.arange(n))
    for _ in range(1000):
        newest = newest.replaced(np.arange(20), np.ones((20, 4)))
    last[:20] = 1.0
    assert newest._store is store
    assert_is(newest, last)


def test_the_array_given_is_not_kept():
    array = np.zeros((3, 2))
    one = VersionedRows.of(array)
    one.replaced(np.array([1]), np.ones((1, 2)))
    array[:] = 5.0
    assert_is(one, np.zeros((3, 2)))
    assert VersionedRows.of(one) is one


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies(twin_of):
    old = VersionedRows.of(np.zeros((3, 2)))
    new = old.replaced(np.array([1]), np.ones((1, 2)))
    for one in (old, new):
        twin, before = twin_of(one), np.asarray(one)
        assert_is(twin, before)
        twin.replaced(np.array([0]), np.ones((1, 2)))
        assert_is(one, before)


class Interrupted(BaseException):
    """What is thrown in."""


def interrupted_at(index, function):
    """Call a function and throw at the given line event within the module; tell whether it came so far."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename != versioned_rows.__file__:
            return None
        if event == "line":
            count += 1
            if count == index:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_line_changes_nothing():
    index = 0
    while True:
        index += 1
        first = VersionedRows.of(np.arange(8.0).reshape(4, 2))
        second = first.replaced(np.array([0, 2]), np.full((2, 2), 7.0))
        arrays = np.asarray(first), np.asarray(second)
        if not interrupted_at(index, lambda one=second: one.replaced(np.array([1, 2]), np.full((2, 2), 9.0))):
            break
        for one, array in zip((first, second), arrays, strict=True):
            assert_is(one, array)
        third, expected = second.replaced(np.array([3]), np.full((1, 2), 5.0)), arrays[1].copy()
        expected[3] = 5.0
        assert_is(third, expected)
        assert_is(second, arrays[1])
    assert index > 10


def test_a_write_that_fails_half_way_is_undone():
    one = VersionedRows.of(np.arange(8.0).reshape(4, 2))
    array = np.asarray(one)
    with pytest.raises(ValueError, match="shape"):
        one.replaced(np.array([1, 2]), np.ones((2, 3)))
    assert_is(one, array)
    # As an interrupt leaves it that comes while another is dealt with.
    old = one._version
    old.indices, old.rows = np.array([1]), array[[1]]
    one._store.held = versioned_rows._Unfinished(old, old.indices, old.rows)
    one._store.array[1] = 100.0
    assert_is(one, array)


def test_readers_see_one_version_or_the_other():
    """All rows of a version hold its number; readers hold on to a version while others are made."""
    newest, wrong, stop = [VersionedRows.of(np.zeros((2000, 4)))], [], threading.Event()
    Z = scipy.sparse.csr_array(np.ones((1, 2000)))

    def read():
        while not stop.is_set():
            one = newest[0]
            seen = (one.rows(np.arange(2000)), one.times(Z) / 2000, np.asarray(one))
            wrong.extend(part for part in seen if np.ptp(part) != 0.0)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 150):
        newest[0] = newest[0].replaced(np.arange(2000), np.full((2000, 4), float(number)))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_parts_are_all_rows(monkeypatch):
    monkeypatch.setattr(versioned_rows, "_PART_BYTES", 48)
    array = np.arange(14.0).reshape(7, 2)
    one = VersionedRows.of(array)
    one.replaced(np.array([0, 5]), np.ones((2, 2)))
    parts = list(one.parts())
    assert len(parts) == 3
    np.testing.assert_array_equal(np.concatenate(parts), array)
    assert one.nbytes == array.nbytes


def test_columns_in_one_piece():
    """Rows are exchanged as pieces of memory, in whatever order an array came."""
    array = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    one = VersionedRows.taking(array.copy(order="F"))
    other = one.replaced(np.array([1, 3]), np.asfortranarray(np.arange(6.0).reshape(2, 3) - 9))
    expected = array.copy()
    expected[[1, 3]] = np.arange(6.0).reshape(2, 3) - 9
    assert_is(other, expected)
    assert_is(one, array)


def test_tables_and_arrays_are_read_together():
    arrays = [np.arange(6.0).reshape(3, 2), np.ones((4, 1)), np.zeros((2, 2))]
    tables = [VersionedRows.of(arrays[0]), arrays[1], VersionedRows.of(arrays[2])]

    def read(*given):
        return [np.array(part) for part in given[:-1]], given[-1]

    found, rest = read_all(tables, read, "rest")
    assert rest == "rest"
    for one, other in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(one, other)
    newer = tables[2].replaced(np.array([1]), np.array([[5.0, 6.0]]))
    newest = newer.replaced(np.array([0, 1]), np.array([[7.0, 8.0], [9.0, 9.0]]))
    for table, expected in (
        (tables[2], arrays[2]),
        (newer, [[0.0, 0.0], [5.0, 6.0]]),
        (newest, [[7.0, 8.0], [9.0, 9.0]]),
    ):
        found, _ = read_all([tables[0], table], read, "rest")
        np.testing.assert_array_equal(found[0], arrays[0])
        np.testing.assert_array_equal(found[1], expected)
    assert_is(newest.grown(3), np.array([[7.0, 8.0], [9.0, 9.0], [0.0, 0.0]]))


def test_an_older_version_that_is_read_together_is_followed_by_the_newest_also_after_a_failure():
    first = VersionedRows.of(np.arange(8.0).reshape(4, 2))
    second = first.replaced(np.array([3, 1]), np.ones((2, 2)))
    arrays = np.asarray(first), np.asarray(second)

    def fail(array):
        np.testing.assert_array_equal(array, arrays[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_all([first], fail)
    assert_is(second, arrays[1])
    assert_is(first, arrays[0])


def test_tables_that_are_read_together_in_any_order_do_not_wait_for_one_another():
    tables = [VersionedRows.of(np.zeros((200, 2))) for _ in range(4)]
    orders = [tables, tables[::-1], tables[2:] + tables[:2]]
    threads = [
        threading.Thread(target=lambda some=order: [read_all(some, lambda *_: None) for _ in range(300)], daemon=True)
        for order in orders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_who_reads_tables_together_leaves_no_lock_behind():
    tables = [VersionedRows.of(np.zeros((2, 2))), VersionedRows.of(np.zeros((2, 2)))]

    def fail(*arrays):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_all(tables, fail)
    found = []
    other = threading.Thread(target=lambda: found.append(read_all(tables, lambda *arrays: len(arrays))), daemon=True)
    other.start()
    other.join(10)
    assert found == [2]


@pytest.mark.parametrize("n_rows", [1, 3])
def test_products_are_those_of_the_array_to_the_bit(n_rows):
    """A model that was read from a file has arrays where the one that was written has tables."""
    rng = np.random.default_rng(0)
    array = rng.normal(size=(400, 9)).astype(np.float32)
    for _ in range(20):
        Z = scipy.sparse.random_array((n_rows, 400), density=0.2, format="csr", rng=rng, dtype=np.float32)
        table = VersionedRows.of(array)
        np.testing.assert_array_equal(versioned_rows.product_of(Z, table), versioned_rows.product_of(Z, array))
