"""Buffers of rows are values: whoever appends leaves the others as they are."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from labelrace.decisions.row_buffer import RowBuffer


def row(*values):
    return np.array([values], float)


@pytest.mark.parametrize("capacity", [0, 1, 8])
def test_two_ways_part(capacity):
    start = RowBuffer.of(np.zeros((2, 0, 2)), capacity).appended(row(1, 2), row(0, 1))
    one, other = start.appended(row(3, 4), row(1, 1)), start.appended(row(5, 6).astype(np.float32), row(0, 0))
    further = one.appended(row(7, 8), row(1, 0))
    assert np.asarray(one).tolist() == [[[1, 2], [3, 4]], [[0, 1], [1, 1]]]
    assert np.asarray(other).tolist() == [[[1, 2], [5, 6]], [[0, 1], [0, 0]]]
    assert np.asarray(further).tolist() == [[[1, 2], [3, 4], [7, 8]], [[0, 1], [1, 1], [1, 0]]]
    assert np.asarray(start).tolist() == [[[1, 2]], [[0, 1]]]
    assert np.asarray(other).dtype == float
    assert (one.shape, start.shape) == ((2, 2, 2), (2, 1, 2))


def test_rows_behind_an_array():
    buffer = RowBuffer.of(np.ones((1, 2, 3)), 4)
    np.testing.assert_array_equal(np.asarray(buffer), np.ones((1, 2, 3)))
    np.testing.assert_array_equal(np.asarray(buffer.appended(np.zeros((3, 3))))[0, 2:], np.zeros((3, 3)))


def test_what_was_given_may_change():
    given = row(1, 2)
    buffer = RowBuffer.of(np.zeros((1, 0, 2)), 4).appended(given)
    given[:] = 9.0
    assert np.asarray(buffer).tolist() == [[[1, 2]]]


def test_copies():
    buffer = RowBuffer.of(np.array([[[1.0, np.nan]]]), 4).appended(row(0, 0))
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        np.testing.assert_array_equal(np.asarray(other), np.asarray(buffer))
        other.appended(row(3, 4))
    np.testing.assert_array_equal(np.asarray(buffer.appended(row(5, 6)))[0, 2:], row(5, 6))


def test_threads_that_append_to_one_buffer_do_not_meet():
    start, found = RowBuffer.of(np.zeros((1, 0, 200)), 400), {}

    def append(number):
        buffer = start
        for _ in range(200):
            buffer = buffer.appended(np.full((1, 200), float(number)))
        found[number] = np.asarray(buffer)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, rows in found.items():
        np.testing.assert_array_equal(rows, np.full((1, 200, 200), float(number)))


def test_room_for_a_row_is_given_once_until_it_is_withdrawn():
    start = RowBuffer.of(np.zeros((2, 0, 3)), 2).appended(np.ones((1, 3)), np.zeros((1, 3)))
    longer, room = start.with_room()
    room[:, 1] = 5.0
    assert start.with_room() is None
    assert longer.with_room() is None, "there is no more room"
    assert np.asarray(longer)[0].tolist() == [[1, 1, 1], [5, 5, 5]]
    longer.withdraw()
    again, room = start.with_room()
    room[:, 1] = 6.0
    assert np.asarray(again)[1].tolist() == [[0, 0, 0], [6, 6, 6]]
