"""Buffers of rows are values: whoever appends leaves the others as they are."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from labelrace.core.row_buffer import RowBuffer


def test_two_ways_part():
    start = RowBuffer(np.zeros((0, 2)), np.array([[1.0, 2.0]]))
    one, other = RowBuffer(start, np.array([[3.0, 4.0]])), RowBuffer(start, np.array([[5.0, 6.0]], np.float32))
    assert np.asarray(one).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(other).tolist() == [[1, 2], [5, 6]]
    assert np.asarray(other).dtype == float
    assert np.asarray(start).tolist() == [[1, 2]]
    assert (len(one), one.shape, len(start)) == (2, (2, 2), 1)


def test_rows_behind_an_array():
    buffer = RowBuffer(np.ones((2, 3)), np.zeros((0, 3)))
    np.testing.assert_array_equal(np.asarray(buffer), np.ones((2, 3)))
    assert buffer.shape == (2, 3)


def test_copies():
    buffer = RowBuffer(np.array([[1.0, np.nan]]), np.zeros((2, 2)))
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        np.testing.assert_array_equal(np.asarray(other), np.asarray(buffer))
