"""Buffers of rows are values: whoever appends leaves the others as they are."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from labelrace.core.row_buffer import RowBuffer


def test_two_ways_part():
    start = RowBuffer.of(np.array([[1.0, 2.0]]))
    one, other = start.appended(np.array([[3.0, 4.0]])), start.appended(np.array([[5.0, 6.0]], np.float32))
    assert np.asarray(one).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(other).tolist() == [[1, 2], [5, 6]]
    assert np.asarray(other).dtype == float
    assert np.asarray(start).tolist() == [[1, 2]]
    assert (len(one), one.shape, len(start)) == (2, (2, 2), 1)


def test_empty_buffers_have_columns():
    none = RowBuffer.of(np.zeros((0, 3)))
    assert np.asarray(none).shape == none.shape == (0, 3)
    assert RowBuffer.of(none) is none


def test_copies():
    buffer = RowBuffer.of(np.array([[1.0, np.nan]])).appended(np.zeros((2, 2)))
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        np.testing.assert_array_equal(np.asarray(other), np.asarray(buffer))
