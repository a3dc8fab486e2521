"""The mask that remembers how many values a nominal feature declares."""

import copy
import pickle

import numpy as np
import pytest

from labelrace.streams import CategoricalMask


@pytest.fixture
def mask():
    return CategoricalMask([0, 2, 3])


def test_is_a_boolean_mask(mask):
    assert mask.dtype == bool
    assert mask.tolist() == [False, True, True]
    assert mask.sum() == 2
    assert mask.any()
    np.testing.assert_array_equal(np.arange(6).reshape(2, 3)[:, mask], [[1, 2], [4, 5]])
    np.testing.assert_array_equal(np.flatnonzero(mask), [1, 2])


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda mask: mask.copy(), lambda mask: pickle.loads(pickle.dumps(mask))],
)
def test_copies_keep_the_counts(mask, duplicate):
    twin = duplicate(mask)
    assert isinstance(twin, CategoricalMask)
    np.testing.assert_array_equal(twin, mask)
    np.testing.assert_array_equal(twin.n_values, [0, 2, 3])
    # There are none once the mask was changed.
    mask[0] = True
    twin = duplicate(mask)
    assert twin.tolist() == [True, True, True]
    assert twin.n_values is None


@pytest.mark.parametrize(
    "derive",
    [
        lambda mask: mask[1:],
        lambda mask: mask[::-1],
        lambda mask: mask[[2, 1, 0]],
        lambda mask: ~mask,
        lambda mask: mask & np.array([True, True, False]),
        lambda mask: np.copy(mask),
        lambda mask: np.asarray(mask),
        lambda mask: np.concatenate([mask, mask]),
        lambda mask: mask.reshape(3, 1),
        lambda mask: np.take(mask, [2, 1, 0]),
        lambda mask: mask.astype(int),
    ],
)
def test_derived_arrays_have_no_counts(mask, derive):
    assert getattr(derive(mask), "n_values", None) is None
    assert mask.n_values is not None


def test_slices_and_arithmetic_are_plain(mask):
    assert type(mask[1:]) is np.ndarray
    assert type(~mask) is np.ndarray
    assert isinstance(mask[0], np.bool_)


def test_changing_the_mask_drops_the_counts(mask):
    changed, combined = mask.copy(), mask.copy()
    changed[0] = True
    assert changed.n_values is None
    np.logical_not(mask, out=combined)
    assert combined.n_values is None
    assert combined.tolist() == [True, False, False]


def test_counts_are_not_the_callers_array():
    counts = np.array([0, 2])
    mask = CategoricalMask(counts)
    counts[0] = 5
    assert mask.n_values.tolist() == [0, 2]


@pytest.mark.parametrize("counts", [[-1, 2], [[0, 2]], 3])
def test_rejects_what_are_not_counts(counts):
    with pytest.raises(ValueError, match="one count"):
        CategoricalMask(counts)
