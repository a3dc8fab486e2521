"""Datasets and their batches."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.streams import Dataset


@pytest.fixture(params=["dense", "sparse"])
def data(request):
    X = np.arange(15.0).reshape(5, 3)
    Y = csr_array(np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], dtype=np.int8))
    features = X if request.param == "dense" else csr_array(X)
    return Dataset(features, Y, ("a", "b", "c"), ("l", "m"), np.array([True, False, False]), "five")


def test_repr_and_length(data):
    assert repr(data) == "Dataset('five': 5 rows, 3 features (1 categorical), 2 labels, cardinality 1.00)"
    assert len(data) == 5


def test_batches_cover_the_rows_in_order(data):
    batches = list(data.batches(2))
    assert [X.shape for X, _ in batches] == [(2, 3), (2, 3), (1, 3)]
    dense = [X if isinstance(X, np.ndarray) else X.toarray() for X, _ in batches]
    np.testing.assert_array_equal(np.vstack(dense), np.arange(15.0).reshape(5, 3))
    np.testing.assert_array_equal(np.vstack([Y.toarray() for _, Y in batches]), data.Y.toarray())


@pytest.mark.parametrize("size", [0, -3])
def test_batch_size_is_checked_at_once(data, size):
    with pytest.raises(ValueError, match=f"size must be a whole number of at least 1, got {size}"):
        data.batches(size)


def test_is_frozen(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize("change", [{"label_names": ("l",)}, {"feature_names": ()}, {"categorical": [True]}])
def test_parts_must_fit(data, change):
    with pytest.raises(ValueError, match="do not fit together"):
        dataclasses.replace(data, **change)


def test_rows_must_fit(data):
    with pytest.raises(ValueError, match="do not fit together"):
        dataclasses.replace(data, Y=data.Y[:3])
