"""Round trips through every format, conversion, and files that are written whole or not at all."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

from labelrace.base.sparse import dense
from labelrace.exceptions import DataFormatError
from labelrace.streams import CategoricalMask, Dataset, load_dataset, open_stream, write_dataset
from labelrace.streams.formats import FORMATS

WRITTEN = [suffix for suffix, form in FORMATS.items() if form.write]
NAMED = [".arff", ".csv", ".tsv", ".jsonl", ".parquet", ".feather"]
SPARSE_ONLY = [".svm", ".libsvm", ".svmlight", ".txt", ".xc"]

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("'\",;{}%\\ \t|?#"), max_size=6
)
NUMBERS = st.floats(allow_nan=True, allow_infinity=False) | st.sampled_from([0.0, 1.0, -3.0, 0.1, 1e300, 5e-324])


@st.composite
def datasets(draw):
    """Draw a dataset with any names, numbers, nominal values, and labels, dense or sparse."""
    n_features, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    names = draw(
        st.lists(TEXT.filter(str.strip), min_size=n_features + n_labels, max_size=n_features + n_labels, unique=True)
    )
    nominal = {}
    for column in range(n_features):
        if draw(st.booleans()):
            nominal[column] = tuple(draw(st.lists(TEXT.filter(bool), min_size=1, max_size=3, unique=True)))
    rows = draw(st.integers(0, 5))
    X, Y = np.zeros((rows, n_features)), np.zeros((rows, n_labels), dtype=np.int8)
    for i in range(rows):
        for j in range(n_features):
            codes = st.integers(0, len(nominal[j]) - 1).map(float) | st.just(np.nan) if j in nominal else NUMBERS
            X[i, j] = draw(codes)
        Y[i] = draw(st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels))
    mask = CategoricalMask([len(nominal.get(j, ())) for j in range(n_features)])
    features = csr_array(X) if rows and draw(st.booleans()) else X
    return Dataset(features, csr_array(Y), tuple(names[:n_features]), tuple(names[n_features:]), mask, "any", nominal)


def check_same(data, again):
    X, other = dense(data.X), dense(again.X)
    np.testing.assert_array_equal(other, X)
    np.testing.assert_array_equal(again.Y.toarray(), data.Y.toarray())
    assert again.Y.dtype == np.int8
    assert list(again.feature_names) == list(data.feature_names)
    assert list(again.label_names) == list(data.label_names)
    np.testing.assert_array_equal(again.categorical, data.categorical)
    if data.categorical.any():
        np.testing.assert_array_equal(again.categorical.n_values, data.categorical.n_values)
    assert dict(again.nominal_values) == dict(data.nominal_values)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("write")


@pytest.mark.parametrize("suffix", sorted(set(WRITTEN) - {".libsvm", ".svmlight", ".txt", ".ndjson"}))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=datasets())
def test_round_trip(folder, suffix, data):
    path = folder / f"any{suffix}"
    assert write_dataset(data, path, batch_size=2) == len(data)
    again = load_dataset(path)
    check_same(data, again)
    if len(data) and suffix in (".arff", ".jsonl", ".npz"):
        assert issparse(again.X) == issparse(data.X)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=datasets())
def test_round_trip_by_label_lists_or_columns(folder, suffix, data):
    path = folder / f"other{suffix}"
    options = {"label_column": None if suffix == ".jsonl" else "all my labels"}
    if suffix in (".csv", ".tsv"):
        options["separator"] = "\x1f"
        if any(name != name.strip() for name in data.label_names):
            with pytest.raises(ValueError, match="cannot be told from others"):
                write_dataset(data, path, **options)
            return
    write_dataset(data, path, **options)
    check_same(data, load_dataset(path))


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("suffix", WRITTEN)
def test_every_suffix_and_packing(tmp_path, toy, suffix, packing):
    path = tmp_path / f"toy{suffix}{packing}"
    write_dataset(toy, path)
    again = load_dataset(path)
    check_same(toy, again)
    assert again.name == "toy"
    assert write_dataset(open_stream(path), path) == len(toy)
    check_same(toy, load_dataset(path))


@pytest.fixture
def toy():
    X = np.array([[0.1, 1, 0], [-2.25, 0, 3], [np.nan, 2, 1e-7], [0, 0, 0]])
    Y = csr_array(np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.int8))
    mask = CategoricalMask([0, 3, 0])
    return Dataset(X, Y, ("size", "hue", "weight"), ("new", "hot"), mask, "toy", {1: ("red", "blue", "green")})


def test_the_same_data_make_the_same_file(tmp_path, toy):
    for suffix in (".npz", ".csv.gz"):
        one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
        write_dataset(toy, one)
        write_dataset(toy, two)
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("mask", [CategoricalMask([0, 4, 0]), np.array([False, True, False])])
def test_nominal_values_without_texts_are_numbered(tmp_path, toy, mask):
    data = Dataset(toy.X, toy.Y, toy.feature_names, toy.label_names, mask, "toy")
    write_dataset(data, tmp_path / "toy.arff")
    again = load_dataset(tmp_path / "toy.arff")
    np.testing.assert_array_equal(again.X, toy.X)
    count = 4 if isinstance(mask, CategoricalMask) else 3
    assert again.nominal_values == {1: tuple("0123"[:count])}


@pytest.mark.parametrize("code", [3, -1, 0.5])
def test_wrong_codes_are_refused(tmp_path, toy, code):
    toy.X[0, 1] = code
    with pytest.raises(ValueError, match=f"'hue' has the code {code}, but its 3 values"):
        write_dataset(toy, tmp_path / "toy.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", WRITTEN)
def test_infinite_numbers_are_refused(tmp_path, toy, suffix):
    toy.X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        write_dataset(toy, tmp_path / f"toy{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", NAMED)
def test_names_must_differ(tmp_path, toy, suffix):
    data = Dataset(toy.X, toy.Y, toy.feature_names, ("hue", "hot"), toy.categorical, "toy", toy.nominal_values)
    with pytest.raises(ValueError, match="two columns are called 'hue'"):
        write_dataset(data, tmp_path / f"toy{suffix}")
    write_dataset(data, tmp_path / "toy.svm")
    assert load_dataset(tmp_path / "toy.svm").label_names == ("hue", "hot")


@pytest.mark.parametrize("name", ["hue", "", "tags*"])
def test_label_column_must_be_readable(tmp_path, toy, name):
    with pytest.raises(ValueError, match="give another"):
        write_dataset(toy, tmp_path / "toy.csv", label_column=name)


def test_mat_files_are_not_written(tmp_path, toy):
    with pytest.raises(DataFormatError, match=r"toy\.mat: .* can be read only"):
        write_dataset(toy, tmp_path / "toy.mat")


@pytest.mark.parametrize("suffix", [".arff", ".svm", ".xc", ".csv", ".jsonl", ".parquet", ".arrow", ".npz"])
def test_an_error_midway_leaves_the_old_file(tmp_path, toy, suffix):
    path = tmp_path / f"toy{suffix}"
    write_dataset(toy, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    class Failing(Dataset):
        def batches(self, size):
            yield from super().batches(size)
            raise RuntimeError("the source broke off")

    failing = Failing(toy.X * 0, toy.Y, toy.feature_names, toy.label_names, toy.categorical, "toy", toy.nominal_values)
    with pytest.raises(RuntimeError, match="broke off"):
        write_dataset(failing, path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_cut_source_leaves_nothing(tmp_path, toy):
    source, target = tmp_path / "toy.svm.gz", tmp_path / "new.csv"
    write_dataset(toy, source)
    source.write_bytes(gzip.compress(gzip.decompress(source.read_bytes()) * 500)[:-20])
    with pytest.raises(DataFormatError, match=r"toy\.svm\.gz: the compressed file is damaged or cut"):
        write_dataset(open_stream(source), target)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["toy.svm.gz", "toy.svm.schema.json"]


def test_convert(tmp_path, toy):
    write_dataset(toy, tmp_path / "toy.csv")
    rows = write_dataset(open_stream(tmp_path / "toy.csv"), tmp_path / "toy.jsonl.gz", label_column="tags")
    assert rows == 4
    assert "tags" in gzip.decompress((tmp_path / "toy.jsonl.gz").read_bytes()).decode()
    write_dataset(open_stream(tmp_path / "toy.csv", ["hot"], nominal=["hue"]), tmp_path / "two.arff")
    assert load_dataset(tmp_path / "two.arff").label_names == ("hot",)


@pytest.mark.parametrize("name", ["cal500", "enron"])
def test_real_data_through_all_formats(real_data, tmp_path, name):
    data = load_dataset(real_data(name))
    source = real_data(name)
    for suffix in (".svm", ".xc", ".npz", ".jsonl", ".arff.gz"):
        target = tmp_path / f"{name}{suffix}"
        assert write_dataset(open_stream(source), target) == len(data)
        check_same(data, load_dataset(target))
        source = target
