"""MATLAB files: real ones, and what can be wrong with them."""

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array, csr_array, issparse

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream


@pytest.mark.parametrize(("name", "shape", "labels"), [("CAL500", (502, 68), 174), ("rcv1s1", (6000, 944), 101)])
def test_real_files(real_data, name, shape, labels):
    path = real_data(name, ".mat")
    data, content = load_dataset(path), loadmat(path)
    assert data.X.shape == shape
    assert data.Y.shape == (shape[0], labels)
    np.testing.assert_array_equal(data.X, content["data"])
    np.testing.assert_array_equal(data.Y.toarray(), content["target"].T)
    assert (data.feature_names[0], data.label_names[-1]) == ("x1", f"y{labels}")


def test_cal500_is_the_one_of_the_arff_file(real_data):
    ours, arff = load_dataset(real_data("CAL500", ".mat")), load_dataset(real_data("cal500"))
    np.testing.assert_array_equal(ours.Y.toarray(), arff.Y.toarray())
    np.testing.assert_allclose(ours.X, arff.X, rtol=1e-6)


@pytest.mark.parametrize("absent", [0, -1])
@pytest.mark.parametrize("kind", [np.asarray, csc_array])
def test_values(tmp_path, absent, kind):
    path = tmp_path / "toy.mat"
    target = np.array([[1, absent, 1], [absent, absent, 1]])
    savemat(path, {"data": kind(np.array([[0.5, 0], [0, 2], [0, np.nan]])), "target": kind(target)})
    data = load_dataset(path, ["a", "b"])
    np.testing.assert_array_equal(data.X.toarray() if issparse(data.X) else data.X, [[0.5, 0], [0, 2], [0, np.nan]])
    assert issparse(data.X) == (kind is csc_array)
    assert isinstance(data.Y, csr_array)
    assert data.Y.toarray().tolist() == [[1, 0], [0, 0], [1, 1]]
    assert data.label_names == ("a", "b")
    assert [X.shape[0] for X, _ in open_stream(path).batches(2)] == [2, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"data": np.eye(3)}, "no array 'target'"),
        ({"target": np.eye(3)}, "no array 'data'"),
        ({"data": np.eye(3), "target": np.ones((3, 2))}, "data is 3 × 3 and target 3 × 2; .* transpose it"),
        ({"data": np.eye(2), "target": np.array([[2, 1]])}, "target holds 2, but must be 0 or 1"),
        ({"data": np.eye(2), "target": np.array([[0.5, 1]])}, "target holds 0.5"),
        ({"data": np.eye(2) * 1j, "target": np.ones((1, 2))}, "'data' is not a matrix of real numbers"),
        ({"data": "text", "target": np.ones((1, 2))}, "'data' is not a matrix of real numbers"),
        ({"data": np.full((2, 2), np.inf), "target": np.ones((1, 2))}, "infinite"),
    ],
)
def test_errors(tmp_path, arrays, message):
    savemat(tmp_path / "toy.mat", arrays)
    with pytest.raises(DataFormatError, match=rf"toy\.mat: .*{message}"):
        load_dataset(tmp_path / "toy.mat")


def test_version_7_3(tmp_path):
    (tmp_path / "new.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataFormatError, match=r"new\.mat: .*version 7\.3.*save it again by save\(\.\.\., '-v7'\)"):
        load_dataset(tmp_path / "new.mat")


def test_cut_file(real_data, tmp_path):
    (tmp_path / "cut.mat").write_bytes(real_data("CAL500", ".mat").read_bytes()[:100_000])
    with pytest.raises(DataFormatError, match=r"cut\.mat: not a readable MATLAB file, or a damaged one"):
        load_dataset(tmp_path / "cut.mat")


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8"])
def test_as_scipy_reads_it(tmp_path, compressed, dtype):
    random = np.random.default_rng(0)
    data = (random.random((30, 7)) * 300).astype(dtype) if dtype != "?" else random.random((30, 7)) < 0.5
    target = csc_array((random.random((4, 30)) < 0.3).astype(float))
    others = {"name": "text", "cells": np.array([1, "a"], dtype=object), "record": {"data": 1}, "a": 1}
    savemat(tmp_path / "toy.mat", others | {"data": data, "target": target}, do_compression=compressed)
    content, ours = loadmat(tmp_path / "toy.mat", spmatrix=False), load_dataset(tmp_path / "toy.mat")
    np.testing.assert_array_equal(ours.X, content["data"].astype(float))
    np.testing.assert_array_equal(ours.Y.toarray(), content["target"].toarray().T)


def test_version_4(tmp_path):
    savemat(tmp_path / "old.mat", {"data": np.eye(2), "target": np.ones((1, 2))}, format="4")
    with pytest.raises(DataFormatError, match=r"old\.mat: not a readable MATLAB file.*not of version 5, 6 or 7"):
        load_dataset(tmp_path / "old.mat")
