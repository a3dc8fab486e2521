"""The common shape of streams, compressed files, and the suffixes by which formats are told."""

import bz2
import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.base.sparse import dense
from labelrace.exceptions import DataFormatError
from labelrace.streams import Dataset, Stream, load_dataset, open_stream
from labelrace.streams.dataset import collect
from labelrace.streams.schema import NumberedNames

HEADER = "@relation t\n@attribute size numeric\n@attribute hue {red,blue}\n@attribute l {0,1}\n@data\n"
ARFF = HEADER + "1,red,1\n2,blue,0\n3,?,1\n"
SMALL = {
    ".arff": (ARFF, 1),
    ".svm": ("0 1:1\n1 2:1\n0 1:3\n", None),
    ".txt": ("3 2 2\n0 0:1\n1 1:1\n0 0:3\n", None),
    ".csv": ("x,l\n1,0\n2,1\n3,1\n", 1),
    ".TSV": ("x\tl\n1\t0\n2\t1\n3\t1\n", 1),
    ".jsonl": ('{"x": 1, "l": 0}\n{"x": 2, "l": 1}\n{"x": 3, "l": 1}\n', ["l"]),
}
PACKED = {"": bytes, ".gz": gzip.compress, ".BZ2": bz2.compress}


@pytest.fixture(params=SMALL)
def small(request):
    return request.param


@pytest.mark.parametrize("packing", PACKED)
def test_every_format_packed_or_not(tmp_path, small, packing):
    text, labels = SMALL[small]
    path = tmp_path / f"toy.v1{small}{packing}"
    path.write_bytes(PACKED[packing](text.encode()))
    stream = open_stream(path, labels)
    assert isinstance(stream, Stream)
    assert stream.name == "toy.v1"
    assert (stream.n_features, stream.n_labels) == (len(stream.feature_names), len(stream.label_names))
    assert len(stream.categorical) == stream.n_features
    once, twice = list(stream.batches(2)), list(stream.batches(2))
    assert [X.shape for X, _ in once] == [(2, stream.n_features), (1, stream.n_features)]
    assert [Y.shape for _, Y in once] == [(2, stream.n_labels), (1, stream.n_labels)]
    for (X, Y), (again, labels_again) in zip(once, twice, strict=True):
        np.testing.assert_array_equal(dense(X), dense(again))
        np.testing.assert_array_equal(dense(Y), dense(labels_again))
    data = load_dataset(path, labels)
    np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in once]), dense(data.X))
    assert repr(stream).startswith(f"FileStream('toy.v1': {stream.n_features} features")


def test_two_iterations_at_once(tmp_path, small):
    text, labels = SMALL[small]
    path = tmp_path / f"toy{small}"
    path.write_text(text)
    stream = open_stream(path, labels)
    for (one, _), (other, _) in zip(stream.batches(1), stream.batches(1), strict=True):
        np.testing.assert_array_equal(dense(one), dense(other))


def test_batch_size_is_checked_at_once(tmp_path, small):
    text, labels = SMALL[small]
    path = tmp_path / f"toy{small}"
    path.write_text(text)
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        open_stream(path, labels).batches(0)


@pytest.mark.parametrize("packing", [".gz", ".BZ2"])
def test_cut_compressed_file(tmp_path, small, packing):
    text, labels = SMALL[small]
    path = tmp_path / f"toy{small}{packing}"
    whole = PACKED[packing](text.encode())
    path.write_bytes(whole[:-6])
    with pytest.raises(DataFormatError, match=r"toy.*: the compressed file is damaged or cut .*; fetch it again"):
        load_dataset(path, labels)
    path.write_bytes(b"no such thing")
    with pytest.raises(DataFormatError, match="the compressed file is damaged or cut"):
        load_dataset(path, labels)


def test_labels_beside_a_compressed_arff_file(tmp_path):
    (tmp_path / "toy.arff.gz").write_bytes(gzip.compress(ARFF.encode()))
    (tmp_path / "toy.xml").write_text('<labels><label name="l"/></labels>')
    assert load_dataset(tmp_path / "toy.arff.gz").label_names == ("l",)


def test_dataset_is_a_stream():
    data = Dataset(
        np.eye(2), csr_array(np.eye(2, 1, dtype=np.int8)), ("a", "b"), ("l",), np.zeros(2, dtype=bool), "two"
    )
    assert isinstance(data, Stream)
    assert (data.n_features, data.n_labels) == (2, 1)
    assert collect(data) is data


def test_unknown_option(tmp_path):
    (tmp_path / "toy.csv").write_text("x,l\n1,0\n")
    with pytest.raises(TypeError, match="zero_based"):
        open_stream(tmp_path / "toy.csv", 1, zero_based=True)


def test_numbered_names():
    names = NumberedNames("x", 1, 10**8)
    assert (len(names), names[0], names[-1], names[1:3]) == (10**8, "x1", "x100000000", ("x2", "x3"))
    assert list(NumberedNames("y", 0, 2)) == ["y0", "y1"]
    assert NumberedNames("y", 0, 2) == ("y0", "y1")
    assert NumberedNames("y", 0, 2) != ("y0", "y2")
    assert hash(NumberedNames("y", 0, 2)) == hash(NumberedNames("y", 0, 2))
    assert "x7" in NumberedNames("x", 0, 9)
    with pytest.raises(IndexError):
        names[10**8]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sparse.arff", "@relation t\n@attribute x numeric\n@attribute y {0,1}\n@data\n{0 1,1 1}\n{0 2}\n{0 z}\n"),
        ("dense.arff", "@relation t\n@attribute x numeric\n@attribute y {0,1}\n@data\n1,1\n2,0\nz,0\n"),
        ("rows.svm", "0 1:1\n1:2\n1:z\n"),
        ("rows.xc", "3 1 1\n0 0:1\n0:2\n0:z\n"),
        ("rows.csv", "x,y\n1,1\n2,0\nz,0\n"),
    ],
)
def test_rows_above_an_error_are_delivered(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    options = {"n_features": 1, "n_labels": 1} if name.endswith(".svm") else {}
    labels = 1 if name.endswith(".arff") else ["y"]
    kinds = {"values": {}} if name.endswith(".csv") else {}
    batches = open_stream(path, labels, **options, **kinds).batches(1)
    read = [next(batches) for _ in range(2)]
    assert [(float(X.sum()), int(Y.sum())) for X, Y in read] == [(1, 1), (2, 0)]
    with pytest.raises(DataFormatError, match="'z'"):
        next(batches)
