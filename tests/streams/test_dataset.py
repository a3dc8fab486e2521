"""Datasets and their batches."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import labelrace
from labelrace.evaluation import prequential
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


class TestFromArrays:
    """Arrays as a dataset."""

    def test_is_evaluated_as_the_arrays_are(self):
        rng = np.random.default_rng(0)
        X = rng.random((60, 3))
        Y = (X[:, :2] > 0.5).astype(int)
        data = Dataset.from_arrays(X, Y, name="mine")
        assert (data.name, data.feature_names, data.label_names) == ("mine", ("x0", "x1", "x2"), ("label0", "label1"))
        batches = [(X[start : start + 20], Y[start : start + 20]) for start in (0, 20, 40)]
        ours, plain = (
            [step.measures for step in prequential(labelrace.make_model("obr"), source, batch_size=20)]
            for source in (data, batches)
        )
        assert ours == plain
        assert len(ours) == 2

    def test_names_and_kinds(self):
        X = pd.DataFrame({"size": [1.0, 2.0], "hue": [0.0, 1.0]})
        Y = pd.DataFrame({"new": [0, 1], "hot": [1, 1]})
        for categorical in (["hue"], [1], [False, True]):
            data = Dataset.from_arrays(X, Y, categorical=categorical)
            assert data.feature_names == ("size", "hue")
            assert data.label_names == ("new", "hot")
            assert data.categorical.tolist() == [False, True]
        sparse_data = Dataset.from_arrays(csr_array(X.to_numpy()), csr_array(Y.to_numpy()), label_names=["a", "b"])
        assert sparse_data.label_names == ("a", "b")
        np.testing.assert_array_equal(sparse_data.X.toarray(), X.to_numpy())

    def test_missing_labels(self):
        data = Dataset.from_arrays([[1.0], [2.0]], [[1, np.nan], [0, 1]])
        np.testing.assert_array_equal(data.Y.toarray(), [[1, np.nan], [0, 1]])
        assert "cardinality 1.00" in repr(data)

    @pytest.mark.parametrize(
        ("X", "Y", "names", "message"),
        [
            ([[1.0]], [[1], [0]], {}, "the same number of rows, got 1 and 2"),
            ([1.0], [[1]], {}, "X must be a matrix"),
            ([[1.0]], [[2]], {}, "Y must hold 0 and 1"),
            ([[1.0]], [[1, 0]], {"label_names": ["a"]}, "label_names must be 2 distinct names"),
            ([[1.0]], [[1, 0]], {"label_names": ["a", "a"]}, "label_names must be 2 distinct names"),
            ([[1.0]], [[1]], {"categorical": ["hue"]}, "categorical must name columns"),
        ],
    )
    def test_refused(self, X, Y, names, message):
        with pytest.raises(ValueError, match=message):
            Dataset.from_arrays(X, Y, **names)
