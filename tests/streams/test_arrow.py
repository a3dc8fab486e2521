"""Parquet and Arrow files: what types become, label lists, row groups, and pyarrow as the judge."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream

nan = np.nan


@pytest.fixture
def parquet(tmp_path):
    def write(columns, name="test.parquet", **options):
        path = tmp_path / name
        pq.write_table(pa.table(columns), path, **options)
        return path

    return write


def test_types(parquet):
    columns = {
        "whole": pa.array([1, None, 2**60]),
        "half": pa.array([0.5, 1, nan], pa.float16()),
        "exact": pa.array([Decimal("1.25"), None, Decimal("-3.00")]),
        "truth": pa.array([True, False, None]),
        "nothing": pa.nulls(3),
        "hue": pa.array(["red", None, "blue"]),
        "kind": pa.array(["b", "a", "b"]).dictionary_encode(),
        "l": pa.array([True, False, True]),
        "m": pa.array([0.0, 1.0, 0.0]),
    }
    data = load_dataset(parquet(columns), ["l", "m"])
    expected = [[1, 0.5, 1.25, 1, nan, 1, 1], [nan, 1, nan, 0, nan, nan, 0], [2.0**60, nan, -3, nan, nan, 0, 1]]
    np.testing.assert_array_equal(data.X, expected)
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]
    assert data.nominal_values == {5: ("blue", "red"), 6: ("a", "b")}


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_label_lists(parquet, kind):
    lists = pa.array([["b", "a"], None, [], ["c", "c"]], kind)
    data = load_dataset(parquet({"x": [1.0, 2, 3, 4], "tags": lists}), "tags")
    assert data.label_names == ("a", "b", "c")
    assert data.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    numbers = parquet({"x": [1.0, 2], "tags": [[3, 4], [10]]})
    assert load_dataset(numbers, "tags").label_names == ("10", "3", "4")
    with pytest.raises(DataFormatError, match="row 2: label '10' is not among the 2 of label_names="):
        load_dataset(numbers, "tags", label_names=["3", "4"])


def test_row_groups_do_not_show(parquet):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    hue = np.where(X[:, 0] > 0, "warm", "cold")
    columns = {"a": X[:, 0], "b.c": X[:, 1], "d": X[:, 2], "hue": pa.array(hue).dictionary_encode(), "l": X[:, 1] > 0}
    path = parquet(columns, row_group_size=37)
    stream = open_stream(path, 1)
    batches = list(stream.batches(100))
    assert [X.shape[0] for X, _ in batches] == [100] * 10
    reference = pq.read_table(path)
    np.testing.assert_array_equal(np.vstack([X[:, :3] for X, _ in batches]), reference.select(range(3)).to_pandas())
    np.testing.assert_array_equal(np.concatenate([X[:, 3] for X, _ in batches]), hue == "warm")
    np.testing.assert_array_equal(np.vstack([Y.toarray() for _, Y in batches]).ravel(), X[:, 1] > 0)


def test_given_values_and_forced_ones(parquet):
    path = parquet({"zip": [12, 815, 12], "hue": ["red", "blue", "red"], "l": [0, 1, 0]})
    data = load_dataset(path, 1, nominal=["zip"])
    assert data.nominal_values == {0: ("12", "815"), 1: ("blue", "red")}
    assert data.X.tolist() == [[0, 1], [1, 0], [0, 1]]
    with pytest.raises(DataFormatError, match="row 2: 'blue' is not among the 1 values of column 'hue'"):
        load_dataset(path, 1, values={"hue": ["red"]})
    with pytest.raises(DataFormatError, match="column 'hue' holds string, which is no number"):
        load_dataset(path, 1, values={})


@pytest.mark.parametrize(
    ("columns", "labels", "message"),
    [
        ({"x": [1.0, 2], "l": [0, 2]}, 1, "row 2: label 'l' is 2, but a label must be 0 or 1"),
        ({"x": [1.0, 2], "l": [0, None]}, 1, "row 2: label 'l' is missing"),
        ({"x": [1.0, np.inf], "l": [0, 1]}, 1, "row 2: column 'x' holds an infinite number"),
        ({"x": [[1.0], [2.0]], "l": [0, 1]}, 1, "column 'x' holds list<.*>, which is no number"),
        ({"x": pa.array([1, 2], pa.timestamp("s")), "l": [0, 1]}, 1, "column 'x' holds timestamp"),
        ({"x": [1.0, 2], "l": [0, 1]}, "l", r"column 'l' holds int64, not label lists; .* give labels=\['l'\]"),
        ({"x": [1.0, 2], "l": ["a", "b"]}, ["l"], "column 'l' holds string, which is no number"),
        ({"x": [1.0, 2], "l": [0, 1]}, None, "cannot tell which columns are labels"),
    ],
)
def test_errors(parquet, columns, labels, message):
    with pytest.raises(DataFormatError, match=rf"test\.parquet.*{message}"):
        load_dataset(parquet(columns), labels)


def test_cut_file(parquet):
    path = parquet({"x": [1.0, 2], "l": [0, 1]})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFormatError, match=r"test\.parquet: not a readable Parquet file, or a damaged one"):
        load_dataset(path, 1)


def test_pyarrow_reads_what_we_write(parquet, tmp_path):
    from labelrace.streams import write_dataset

    columns = {"x": [1.5, None], "hue": ["red", None], "tags": [["b", "a"], []]}
    write_dataset(load_dataset(parquet(columns), "tags"), tmp_path / "new.parquet", label_column="tags")
    assert pq.read_table(tmp_path / "new.parquet").to_pydict() == columns | {"tags": [["a", "b"], []]}


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_arrow_files(tmp_path, suffix):
    path = tmp_path / f"test{suffix}"
    columns = {"x": [1.5, None, 3], "hue": ["red", "blue", None], "tags": [["b", "a"], [], None]}
    feather.write_feather(pa.table(columns), path, chunksize=2)
    data = load_dataset(path, "tags")
    np.testing.assert_array_equal(data.X, [[1.5, 1], [nan, 0], [3, nan]])
    assert data.Y.toarray().tolist() == [[1, 1], [0, 0], [0, 0]]
    assert [X.shape[0] for X, _ in open_stream(path, "tags").batches(1)] == [1, 1, 1]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFormatError, match="not a readable Arrow file, or a damaged one"):
        load_dataset(path, "tags")
