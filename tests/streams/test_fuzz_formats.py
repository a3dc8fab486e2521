"""Any bytes, and damaged files of every format, give data or our own error, never anything else."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.sparse import csr_array

from labelrace.base.sparse import dense
from labelrace.exceptions import DataFormatError
from labelrace.streams import CategoricalMask, Dataset, load_dataset, open_stream, write_dataset

# That a file is read as cp1252, or with another delimiter, is said.
pytestmark = pytest.mark.filterwarnings("ignore:.* is read (as|with) ")

SUFFIXES = [".arff", ".svm", ".xc", ".txt", ".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".npz", ".mat"]
# How to read a file that has lost what lies beside it.
LABELS = {".arff": 2, ".csv": 2, ".tsv": "label_*", ".jsonl": "labels", ".parquet": ["label_a", "label_b"], ".arrow": 2}

# What tends to break parsers: far too large numbers, NUL, text that is not UTF-8, deep nesting, odd numbers.
NASTY = [
    b"99999999999999999999",
    b"1000000000000000000",
    b"2147483648",
    b"-1",
    b"nan",
    b"inf",
    b"1e999",
    b"1_0",
    b"9" * 5000,
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc2\x85",
    b"'",
    b'"',
    b"\\ud800",
    b"\\",
    b"{",
    b"[" * 3000,
    b'{"a":' * 3000,
    b",",
    b":",
    b";",
    b"\t",
    b"\r",
    b"\n",
    b"\n\n",
    b"#",
    b"%",
    b"null",
    b"{} null {}",
    b"true",
    b"5 5 5\n",
    b"1000000000000000000 1000000000000000000 1000000000000000000\n",
    b"@attribute x {a,b}\n",
    b"@data\n",
]


def example_data():
    X = np.array([[0.5, 1, 0], [-2.25, 0, 3], [np.nan, 1, 1e-7], [0, 0, 0], [7, np.nan, 2]])
    Y = csr_array(np.array([[1, 0], [1, 1], [0, 0], [0, 1], [1, 0]], dtype=np.int8))
    mask = CategoricalMask([0, 2, 0])
    return Dataset(X, Y, ("size", "hue", "weight"), ("label_a", "label_b"), mask, "toy", {1: ("red", "sky blue")})


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Return the bytes of a valid file of each format."""
    folder = tmp_path_factory.mktemp("samples")
    contents = {}
    for suffix in SUFFIXES:
        path = folder / f"toy{suffix}"
        if suffix == ".mat":
            sparse = csr_array(np.nan_to_num(example_data().X))
            savemat(path, {"data": sparse, "target": example_data().Y.toarray().T, "name": "toy"}, do_compression=False)
        else:
            write_dataset(example_data(), path)
        contents[suffix] = path.read_bytes()
    return contents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def read_or_refuse(path, labels):
    """Return the data, or None if it was refused; a stream must do as the whole load does."""
    try:
        data = load_dataset(path, labels)
    except DataFormatError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sums of any floats may overflow
        repr(data)
    batches = list(open_stream(path, labels).batches(2))
    assert sum(X.shape[0] for X, _ in batches) == len(data)
    for start, (X, Y) in enumerate(batches):
        rows = slice(2 * start, 2 * start + 2)
        if data.X.shape[1] + data.Y.shape[1] < 10**4:
            np.testing.assert_array_equal(dense(X), dense(data.X[rows]))
            np.testing.assert_array_equal(dense(Y), dense(data.Y[rows]))
    return data


@st.composite
def damages(draw):
    """Draw what is done to a file: pieces cut out, put in, overwritten; and where, as a fraction of its length."""
    piece = st.sampled_from(NASTY) | st.binary(min_size=1, max_size=4)
    kind = st.sampled_from(["cut", "insert", "overwrite", "truncate", "double"])
    return draw(st.lists(st.tuples(kind, st.floats(0, 1), st.integers(1, 8), piece), min_size=1, max_size=4))


def damaged(content, steps):
    for kind, where, length, piece in steps:
        at = int(where * len(content))
        match kind:
            case "cut":
                content = content[:at] + content[at + length :]
            case "insert":
                content = content[:at] + piece + content[at:]
            case "overwrite":
                content = content[:at] + piece + content[at + len(piece) :]
            case "truncate":
                content = content[:at]
            case _:
                content = content[:at] + content[at : at + 8 * length] + content[at:]
    return content


def fuzz(examples):
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("suffix", SUFFIXES)
@fuzz(80)
@given(content=st.binary(max_size=60) | st.lists(st.sampled_from(NASTY), max_size=6).map(b" ".join))
def test_any_bytes(folder, suffix, content):
    path = folder / f"any{suffix}"
    path.write_bytes(content)
    read_or_refuse(path, LABELS.get(suffix))


@pytest.mark.parametrize("suffix", SUFFIXES)
@fuzz(120)
@given(steps=damages())
def test_damaged_files(folder, samples, suffix, steps):
    path = folder / f"damaged{suffix}"
    path.write_bytes(damaged(samples[suffix], steps))
    read_or_refuse(path, LABELS.get(suffix))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_undamaged_files(folder, samples, suffix):
    path = folder / f"sound{suffix}"
    path.write_bytes(samples[suffix])
    assert len(read_or_refuse(path, LABELS.get(suffix))) == 5


@pytest.mark.parametrize("packing", [".gz", ".bz2"])
@fuzz(80)
@given(content=st.binary(max_size=40))
def test_any_bytes_unpacked(folder, packing, content):
    path = folder / f"any.svm{packing}"
    path.write_bytes(content)
    read_or_refuse(path, None)


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """Return data files with what lies beside them, and the bytes of the latter."""
    folder = tmp_path_factory.mktemp("beside")
    for suffix in (".arff", ".csv", ".svm", ".jsonl"):
        write_dataset(example_data(), folder / f"toy{suffix}")
    names = {".arff": "toy.xml"} | {suffix: f"toy{suffix}.schema.json" for suffix in (".csv", ".svm", ".jsonl")}
    return folder, {suffix: (folder / name, (folder / name).read_bytes()) for suffix, name in names.items()}


@pytest.mark.parametrize("suffix", [".arff", ".csv", ".svm", ".jsonl"])
@fuzz(80)
@given(steps=damages())
def test_damaged_files_beside(beside, suffix, steps):
    folder, files = beside
    path, content = files[suffix]
    path.write_bytes(damaged(content, steps))
    read_or_refuse(folder / f"toy{suffix}", None)
