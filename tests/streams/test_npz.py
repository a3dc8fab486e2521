"""Our own compact form."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.exceptions import DataFormatError
from labelrace.streams import Dataset, load_dataset, write_dataset


@pytest.fixture
def path(tmp_path):
    X, Y = csr_array(np.eye(4, 3)), csr_array(np.eye(4, 2, dtype=np.int8))
    data = Dataset(X, Y, ("a", "b", "c\0"), ("l", "m"), np.zeros(3, dtype=bool), "toy")
    write_dataset(data, tmp_path / "toy.npz", batch_size=2)
    return tmp_path / "toy.npz"


def test_arrays(path):
    with np.load(path, allow_pickle=False) as content:
        assert sorted(content) == ["X_data", "X_indices", "X_indptr", "Y_indices", "Y_indptr", "schema"]
        assert content["X_indptr"].tolist() == [0, 1, 2, 3, 3]
        assert content["Y_indices"].tolist() == [0, 1]


def test_names_are_kept_exactly(path):
    assert load_dataset(path).feature_names == ("a", "b", "c\0")


def changed(path, **arrays):
    with np.load(path) as content:
        kept = dict(content)
    np.savez(path, **(kept | arrays))
    return path


@pytest.mark.parametrize(
    "arrays",
    [
        {"X_indices": np.array([0, 1, 7], dtype=np.int32)},
        {"X_indices": np.array([0, 1, -1], dtype=np.int32)},
        {"X_indptr": np.array([0, 2, 1, 3, 3])},
        {"X_indptr": np.array([1, 1, 2, 3, 3])},
        {"X_indptr": np.array([0, 3])},
        {"X_indptr": np.empty(0, dtype=np.int64)},
        {"X_data": np.ones(2)},
        {"X_data": np.array(["a", "b", "c"])},
        {"X": np.eye(4, 2)},
        {"X": np.ones(4)},
        {"Y_indices": np.array([0.0, 1.0])},
        {"schema": np.frombuffer(b"{}", dtype=np.uint8)},
        {"schema": np.array(["text"])},
        {"schema": np.frombuffer(b'{"labelrace_schema": 2}', dtype=np.uint8)},
    ],
)
def test_parts_that_do_not_fit(path, arrays):
    with pytest.raises(DataFormatError, match=r"toy\.npz"):
        load_dataset(changed(path, **arrays))


def test_pickles_are_refused(path):
    with pytest.raises(DataFormatError, match="allow_pickle=False"):
        load_dataset(changed(path, X_data=np.array([{}, 1, 2], dtype=object)))


def test_other_files(tmp_path):
    np.savez(tmp_path / "other.npz", X=np.eye(2))
    with pytest.raises(DataFormatError, match=r"other\.npz: not an \.npz file that labelrace wrote"):
        load_dataset(tmp_path / "other.npz")
    np.save(tmp_path / "array.npy", np.eye(2))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(DataFormatError, match=r"array\.npz: "):
        load_dataset(tmp_path / "array.npz")


def test_labels_are_in_the_file(path):
    with pytest.raises(ValueError, match="says itself what its labels are"):
        load_dataset(path, 2)
