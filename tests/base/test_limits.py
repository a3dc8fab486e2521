"""What claims to be larger than there is memory for is refused before it gets any."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from scipy import sparse

import labelrace
from labelrace.base import limits
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.exceptions import DataFormatError, LimitError
from labelrace.streams import files, load_dataset, write_dataset
from labelrace.streams.synthetic import SyntheticStream

X = np.eye(4)


@pytest.fixture(autouse=True)
def little_memory():
    """No call may take more than 500 MB."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500e6


def test_labels():
    huge = sparse.csr_array((4, 2 * 10**9))
    for name in ("race", "obr", "majority", "race-cls-fixed"):
        with pytest.raises(
            LimitError, match=r"at most 10,000,000 labels, got 2,000,000,000: set .*LABELRACE_MAX_LABELS"
        ):
            labelrace.make_model(name).fit(X, huge)
        model = labelrace.make_model(name).fit(X, X)
        for call in (lambda model=model: model.partial_fit(X, huge), lambda model=model: model.add_labels(2 * 10**9)):
            with pytest.raises(LimitError, match="LABELRACE_MAX_LABELS"):
                call()


def test_features():
    with pytest.raises(LimitError, match=r"at most 100,000,000 features.*LABELRACE_MAX_FEATURES"):
        labelrace.make_model("obr").fit(sparse.csr_array((4, 2 * 10**9)), X)


@pytest.mark.parametrize("code", [16_777_215.0, 2.0**16, 1e300])
def test_codes(code):
    model = labelrace.make_model("obr", categorical_features=[0])
    with pytest.raises(LimitError, match=r"below 65,536 in a column.*LABELRACE_MAX_VALUES"):
        model.fit(np.where(X[:, :1] > 0, code, 0.0), X)
    model.fit(X, X)
    with pytest.raises(LimitError, match="LABELRACE_MAX_VALUES"):
        model.partial_fit(np.where(X > 0, code, 0.0), X)
    with pytest.raises(LimitError, match="LABELRACE_MAX_VALUES"):
        labelrace.make_model("obr", categorical_features=CategoricalMask([10**9, 0, 0, 0])).fit(X, X)


def test_the_environment_raises_a_limit(monkeypatch):
    monkeypatch.setenv("LABELRACE_MAX_VALUES", "100000")
    model = labelrace.make_model("obr", categorical_features=[0]).fit(np.where(X > 0, 70_000.0, 0.0), X)
    assert model.is_fitted
    monkeypatch.setenv("LABELRACE_MAX_VALUES", "many")
    with pytest.raises(ValueError, match="LABELRACE_MAX_VALUES must be a whole number, got 'many'"):
        model.predict(X)


def test_compressed_files(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n")
        file.write(b"0,0\n" * 2**18)
    monkeypatch.setattr(files, "_SMALL", 2**16)
    with pytest.raises(LimitError, match=r"at most 500 times its size when unpacked, got .*LABELRACE_MAX_RATIO"):
        load_dataset(path, labels=["b"])
    monkeypatch.setattr(
        limits.Limit, "value", property(lambda limit: 10**6 if limit.what.startswith("bytes that") else 9**9)
    )
    for name in ("bomb.npz.gz", "bomb.mat.gz", "bomb.parquet.gz"):
        path.rename(tmp_path / name)
        path = tmp_path / name
        with pytest.raises(LimitError, match="LABELRACE_MAX_BYTES"):
            load_dataset(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.arff", "a.svm", "a.csv.gz"])
def test_one_line(tmp_path, monkeypatch, name):
    monkeypatch.setenv("LABELRACE_MAX_LINE", "1000000")
    content = b"1 " * 2**20 if "arff" not in name else b"@relation " + b"r" * 2**21
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(LimitError, match=r"at most 1,000,000 bytes in a line, got .*LABELRACE_MAX_LINE"):
        load_dataset(tmp_path / name, labels=1 if "svm" not in name else None)


def npy(shape, content=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_2_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + content


@pytest.mark.parametrize("shape", [(10**9, 10**9), (10**10,), (3, 5)])
def test_arrays_of_npz_files(tmp_path, shape):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(shape))
        archive.writestr("schema.npy", npy((1,), bytes(8)))
    with pytest.raises(DataFormatError, match="does not hold as much as it says"):
        load_dataset(tmp_path / "a.npz")


def test_npz_files_that_unpack_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELRACE_MAX_BYTES", "10000000")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy((2 * 10**6,), bytes(16 * 10**6)))
    with pytest.raises(LimitError, match="LABELRACE_MAX_BYTES"):
        load_dataset(tmp_path / "a.npz")
    write_dataset(SyntheticStream(n_rows=50, n_features=5, n_labels=6, seed=0), tmp_path / "b.npz")
    assert len(load_dataset(tmp_path / "b.npz")) == 50


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matlab(*elements):
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def test_matlab_files(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    parts = (
        element(6, struct.pack("<II", 5, 0)), element(5, struct.pack("<ii", 2**31 - 1, 1)), element(1, b"data"),
        element(5, b""), element(5, struct.pack("<ii", 0, 0)), element(9, b""),
    )  # fmt: skip
    path.write_bytes(matlab(element(14, b"".join(parts))))
    with pytest.raises(LimitError, match="LABELRACE_MAX_BYTES"):
        load_dataset(path)
    monkeypatch.setenv("LABELRACE_MAX_BYTES", "10000000")
    packed = zlib.compress(bytes(2 * 10**7))
    path.write_bytes(matlab(struct.pack("<II", 15, len(packed)) + packed))
    with pytest.raises(LimitError, match="LABELRACE_MAX_BYTES"):
        load_dataset(path)
