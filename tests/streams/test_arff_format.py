"""What ARFF files may contain, and what becomes of it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.streams import load_dataset, open_stream

nan = np.nan


def test_dense_file(arff):
    path = arff(["size numeric", "hue {red, green ,blue}", "nice {0,1}"], ["1.5,green,1", "-2e3,blue,0"])
    data = load_dataset(path, labels=1)
    assert isinstance(data.X, np.ndarray)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, [[1.5, 1], [-2000, 2]])
    assert isinstance(data.Y, csr_array)
    assert data.Y.dtype == np.int8
    np.testing.assert_array_equal(data.Y.toarray(), [[1], [0]])
    assert data.feature_names == ("size", "hue")
    assert data.label_names == ("nice",)
    assert data.categorical.tolist() == [False, True]
    assert data.categorical.n_values.tolist() == [0, 3]
    assert data.name == "test"


def test_sparse_file(arff):
    rows = ["{0 1.5, 1 green,2 1}", "{}", "{ 2 1 }", "{1 0.0,\t0 7}"]
    data = load_dataset(arff(["size numeric", "hue {0.0,green}", "nice {0,1}"], rows), labels=1)
    assert isinstance(data.X, csr_array)
    assert data.X.dtype == np.float64
    assert data.X.has_canonical_format
    assert data.X.indices.dtype == data.X.indptr.dtype == data.Y.indices.dtype == np.int32
    assert data.X.nnz == 3  # a written zero is not stored
    np.testing.assert_array_equal(data.X.toarray(), [[1.5, 1], [0, 0], [0, 0], [7, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1], [0], [1], [0]])
    assert data.Y.dtype == np.int8


@pytest.mark.parametrize("rows", [["{1 0}", "{0 3}", "{0 2,1 1}"], ["0,0", "3,1", "2,1"]])
def test_label_declared_as_one_zero(arff, rows):
    # The sparse zero is the first declared value, here the positive one.
    data = load_dataset(arff(["a numeric", "y {1,0}"], rows), labels=1)
    assert data.Y.toarray().ravel().tolist() == [0, 1, 1]


def test_numeric_labels(arff):
    data = load_dataset(arff(["a numeric", "y real", "z INTEGER"], ["3,1.0,0", "4,0,1e0"]), labels=2)
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [0, 1]])


def test_missing_values(arff):
    attributes = ["a numeric", "b {x,y}", "y {0,1}"]
    dense = load_dataset(arff(attributes, ["?,y,1", "2, ?,0", "NaN,x,0"]), labels=1)
    np.testing.assert_array_equal(dense.X, [[nan, 1], [2, nan], [nan, 0]])
    sparse = load_dataset(arff(attributes, ["{0 ?,2 1}", "{1 ?}"]), labels=1)
    np.testing.assert_array_equal(sparse.X.toarray(), [[nan, 0], [0, nan]])


def test_quoted_question_mark_is_a_value(arff):
    data = load_dataset(arff(["a {x,'?'}", "y {0,1}"], ["'?',0", "?,1"]), labels=1)
    np.testing.assert_array_equal(data.X, [[1], [nan]])


def test_quotes_escapes_and_odd_names(arff):
    attributes = [
        r"'it\'s {a, b}' numeric",
        '"two\twords"\tREAL',
        r"TAG_m\'usica {0,1}",
        r"'tab\there' {'x, y', \"z}\" , plain word}".replace(r"\"", '"'),
        "tight{a,b}",
        "100% numeric % a comment",
    ]
    rows = [r"1,'2',1,'x, y',a,5", '3, 4 ,0,"z}",b,6', "'3',4,0, plain word ,b,6"]
    data = load_dataset(arff(attributes, rows), labels=["TAG_m\\'usica"])
    assert data.feature_names == ("it's {a, b}", "two\twords", "tab\there", "tight", "100%")
    assert data.label_names == ("TAG_m\\'usica",)
    assert data.categorical.n_values.tolist() == [0, 0, 3, 2, 0]
    np.testing.assert_array_equal(data.X, [[1, 2, 0, 0, 5], [3, 4, 1, 1, 6], [3, 4, 2, 1, 6]])


def test_quotes_in_sparse_rows(arff):
    rows = ["{0 'a, b', 1 1}", '{0 "}" }', r"{0 'it\'s'}"]
    data = load_dataset(arff([r"a {0,'a, b','}','it\'s'}", "y {0,1}"], rows), labels=1)
    assert data.X.toarray().ravel().tolist() == [1, 2, 3]


def test_case_comments_blank_lines_and_crlf(tmp_path):
    lines = ["% top", "", "@RELATION t", " @Attribute a Numeric", "% mid", "@attribute y {0,1}", "@DATA", "", "% x"]
    path = tmp_path / "t.arff"
    path.write_bytes("\r\n".join([*lines, "1,0", "", "% between", "  2,1  ", ""]).encode())
    data = load_dataset(path, labels=1)
    np.testing.assert_array_equal(data.X, [[1], [2]])
    np.testing.assert_array_equal(data.Y.toarray(), [[0], [1]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "t.arff"
    text = "@relation t\n@attribute größe {é,a}\n@attribute y {0,1}\n@data\na,1\né,0\n"
    path.write_bytes(text.encode(encoding))
    data = load_dataset(path, labels=1)
    assert data.feature_names == ("größe",)
    assert data.X.ravel().tolist() == [1, 0]


def test_file_without_rows(arff):
    path = arff(["a numeric", "y {0,1}"], [])
    assert load_dataset(path, labels=1).X.shape == (0, 1)
    assert load_dataset(path, labels=1).Y.shape == (0, 1)
    assert list(open_stream(path, 1).batches(10)) == []
