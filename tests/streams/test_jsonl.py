"""JSONL files: keys and their kinds, dense and sparse rows, label lists."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from helpers.memory import peak_of
from scipy.sparse import csr_array

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream

nan = np.nan


@pytest.fixture
def jsonl(tmp_path):
    def write(*rows, name="test.jsonl"):
        path = tmp_path / name
        lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
        path.write_bytes(b"\n".join([*lines, b""]))
        return path

    return write


def test_dense_rows(jsonl):
    path = jsonl(
        {"size": 1.5, "hue": "red", "tags": ["b", "a"]},
        b"",
        {"hue": "blau \u2028", "size": 10**18, "new": True},
        {"size": None, "tags": None, "new": False},
        {"tags": ["b", "b", 7], "new": -1e-3},
    )
    data = load_dataset(path, "tags")
    assert data.feature_names == ("size", "hue", "new")
    assert data.label_names == ("7", "a", "b")
    np.testing.assert_array_equal(data.X, [[1.5, 1, nan], [1e18, 0, 1], [nan, nan, 0], [nan, nan, -1e-3]])
    assert data.Y.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert data.nominal_values == {1: ("blau \u2028", "red")}


def test_sparse_rows(jsonl):
    rows = {"a": 2, "l": 1}, {"b": 3, "hue": "red", "c": 0}, {"hue": "blue", "m": True, "a": None}, {}
    data = load_dataset(jsonl(*rows), ["l", "m"], sparse=True)
    assert isinstance(data.X, csr_array)
    assert data.X.has_canonical_format
    assert data.feature_names == ("a", "b", "hue", "c")
    # A text that is not there is the empty text, the first of the sorted values.
    np.testing.assert_array_equal(data.X.toarray(), [[2, 0, 0, 0], [0, 3, 2, 0], [nan, 0, 1, 0], [0, 0, 0, 0]])
    assert data.nominal_values == {2: ("", "blue", "red")}
    assert data.X.nnz == 5
    assert data.Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]


def test_given_names_spare_the_scan(jsonl):
    path = jsonl({"a": 1, "tags": ["x"]}, b"nonsense")
    stream = open_stream(path, "tags", feature_names=["b", "a"], values={}, label_names=["x", "y"])
    batches = stream.batches(1)
    X, Y = next(batches)
    np.testing.assert_array_equal(X, [[nan, 1]])
    assert Y.toarray().tolist() == [[1, 0]]
    with pytest.raises(DataFormatError, match="line 2: not a JSON object"):
        next(batches)
    with pytest.raises(ValueError, match="with feature_names=, give labels= a list of names"):
        open_stream(path, 1, feature_names=["a"])


def test_unknown_key(jsonl):
    path = jsonl({"a": 1, "l": 1}, {"a": 1, "l": 1, "c": 2})
    with pytest.raises(DataFormatError, match="line 2: unknown keys 'c'; correct them, or add them to feature_names="):
        load_dataset(path, ["l"], feature_names=["a"], values={})


def test_numbers_as_text(jsonl):
    data = load_dataset(jsonl({"zip": 815, "l": 1}, {"zip": "x", "l": 0}, {"zip": 12, "l": 0}), ["l"], nominal=["zip"])
    assert data.nominal_values == {0: ("12", "815", "x")}
    assert data.X.ravel().tolist() == [1, 2, 0]


ERRORS = {
    "cut": (b'{"a": 1, "l"', "not a JSON object (Expecting ':' delimiter"),
    "two objects": (b'{"a": 1} {"a": 2}', "not a JSON object (Extra data"),
    "array": (b"[1, 2]", "expected a JSON object, found [1, 2]"),
    "number": (b"7", "expected a JSON object, found 7"),
    "NaN": (b'{"a": NaN, "l": [], "h": ""}', "not a JSON object (NaN is not JSON; write null for a missing value)"),
    "too large": (b'{"a": 1e999, "l": []}', "inf is too large a number for key 'a'"),
    "huge integer": (b'{"a": 1' + b"0" * 400 + b', "l": []}', "is too large a number for key 'a'"),
    "thousands of digits": (b'{"a": ' + b"9" * 5000 + b', "l": []}', "not a JSON object"),
    "deep": (b'{"a": ' + b"[" * 100_000 + b"}", "not a JSON object"),
    "nested": (b'{"a": {"b": 1}, "l": []}', "key 'a' holds {'b': 1}, which is neither a number nor a text"),
    "list": (b'{"a": [1], "l": []}', "key 'a' holds [1], which is neither"),
    "text": (b'{"a": "1", "l": []}', "key 'a' holds numbers, but '1' here"),
    "number in text": (b'{"h": 1, "l": []}', "key 'h' holds texts, but 1 here"),
    "label text": (b'{"a": 1, "l": "x"}', "key 'l' must hold a list of label names, not 'x'"),
    "label number": (b'{"a": 1, "l": 1}', "not 1; if it holds 0 and 1, give labels=['l']"),
    "label nested": (b'{"a": 1, "l": [["x"]]}', "key 'l' must hold a list of label names"),
    "not UTF-8": (b'{"a": "\xff"}', "not a JSON object ('utf-8' codec can't decode"),
    "half a pair": (b'{"h": "\\ud800", "l": []}', "not a JSON object ('utf-8' codec can't encode"),
    "UTF-16": ('{"a": 1}'.encode("utf-16-le"), "not a JSON object"),
}


@pytest.mark.parametrize(("row", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(jsonl, row, message):
    path = jsonl({"a": 1, "h": "x", "l": ["p"]}, b"", row)
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_dataset(path, "l")
    assert str(caught.value).startswith(f"{path}, line 3: ")


def test_label_columns_must_be_there(jsonl):
    with pytest.raises(DataFormatError, match="line 2: label 'l' is missing, but a label must be 0 or 1"):
        load_dataset(jsonl({"a": 1, "l": 1}, {"a": 2}), ["l"])
    with pytest.raises(DataFormatError, match="line 1: 'x' is not a number, as key 'l' needs"):
        load_dataset(jsonl({"a": 1, "l": "x"}), ["l"])
    with pytest.raises(DataFormatError, match="cannot tell which columns are labels"):
        load_dataset(jsonl({"a": 1, "l": 1}))


def test_as_pandas(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(2000, 3)), columns=list("abc"))
    frame.loc[::5, "b"] = nan
    frame["hue"] = random.choice(["red", "blue"], 2000)
    frame["tags"] = [list(random.choice(list("xyz"), 2)) for _ in range(2000)]
    frame.to_json(tmp_path / "random.jsonl", orient="records", lines=True, double_precision=15)
    again = pd.read_json(tmp_path / "random.jsonl", lines=True, precise_float=True)
    data = load_dataset(tmp_path / "random.jsonl", "tags")
    np.testing.assert_allclose(data.X[:, :3], again[list("abc")].to_numpy(), rtol=1e-15)
    np.testing.assert_array_equal(data.X[:, 3], frame["hue"] == "red")
    expected = [[name in tags for name in "xyz"] for tags in again["tags"]]
    np.testing.assert_array_equal(data.Y.toarray(), expected)
    stream = open_stream(tmp_path / "random.jsonl", "tags")
    np.testing.assert_array_equal(np.vstack([X for X, _ in stream.batches(300)]), data.X)


def test_a_key_that_comes_twice_is_an_error(jsonl):
    path = jsonl({"size": 1.5, "tags": ["a"]}, b'{"size": 2, "size": 3, "tags": ["b"]}')
    with pytest.raises(DataFormatError, match=r"line 2: the key 'size' is there twice in an object; keep one of them"):
        load_dataset(path, labels="tags")


@pytest.mark.parametrize("wrong", [{"a": 1, "l": 2}, {"h": "z", "l": 1}, {"q": 1}])
def test_sparse_rows_above_an_error_are_delivered(jsonl, wrong):
    path = jsonl({"a": 1, "l": 1}, {"h": "x"}, wrong)
    options = {"feature_names": ["a", "h"], "values": {"h": ["", "x"]}, "sparse": True}
    batches = open_stream(path, ["l"], **options).batches(10)
    X, Y = next(batches)
    assert (X.toarray().tolist(), Y.toarray().tolist()) == ([[1, 0], [0, 1]], [[1], [0]])
    with pytest.raises(DataFormatError, match="line 3: "):
        next(batches)


@pytest.mark.parametrize("text", ["y", "y {"], ids=["in bulk", "line by line"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_key_appears_where_it_is_null(jsonl, text, sparse):
    path = jsonl({"a": 1, "b": None, "hue": "x", "l": 1}, {"a": 2, "b": 3, "hue": text, "l": 0})
    data = load_dataset(path, 1, sparse=sparse)
    assert (data.feature_names, data.label_names) == (("a", "b", "hue"), ("l",))


def test_rows_with_few_of_many_keys_are_sparse(jsonl):
    """Memory grows with what rows have, not with rows times keys: as a table these would take 512 MB."""
    rows = [{f"k{i}_{j}": 1 for j in range(100)} | {"hue": "red", "tags": ["a"]} for i in range(800)]
    rows[7]["hue"] = "blue"
    rows[9]["k0_0"] = None
    path, found = jsonl(*rows), []
    assert peak_of(lambda: found.append(load_dataset(path, "tags"))) < 60e6
    [data] = found
    assert data.X.shape == (800, 80_001)
    assert data.X.nnz == 80_000 + 1 + 799  # the code of "blue" is 0
    assert np.isnan(data.X[9, 0])
    assert (data.X[0, 0], data.X[0, 100], data.X[7, 100]) == (1, 1, 0)
    # Few keys, or rows that have a good part of them, are a table, in which an absent key is missing.
    assert np.isnan(load_dataset(jsonl(*({f"k{i % 200}": 1, "l": ["a"]} for i in range(400))), "l").X).any()
    half_full = [{f"k{(i + j) % 500}": 1 for j in range(99)} | {"l": ["a"]} for i in range(500)]
    assert np.isnan(load_dataset(jsonl(*half_full), "l").X).any()


def test_a_table_that_becomes_sparse_far_down(jsonl):
    rows = [{"a": 1, "b": 2, "l": ["x"]}] * 5000 + [{f"k{i}": 1, "l": ["x"]} for i in range(2000)]
    data = load_dataset(jsonl(*rows), "l")
    assert data.X.shape == (7000, 2002)
    assert data.X.nnz == 12_000


def test_rows_above_an_error_are_delivered(jsonl):
    """The scan for keys does not raise it, as it is an error when it is reached."""
    rows = [{"a": i, "h": "x", "l": ["p"]} for i in range(3000)]
    for wrong in (b'{"a": ', {"a": "text", "l": []}, {"h": 1, "l": ["q"]}):
        batches = open_stream(jsonl(*rows, wrong, *rows), "l").batches(2000)
        assert [next(batches)[0].shape[0] for _ in range(2)] == [2000, 1000]
        with pytest.raises(DataFormatError, match="line 3001: "):
            next(batches)
