"""svmlight files: what they may contain, how numbers become columns, and scikit-learn as the judge."""

import io
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream, svmlight, write_dataset
from labelrace.streams.files import Location


@pytest.fixture
def svm(tmp_path):
    def write(text, name="test.svm"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_rows(svm):
    data = load_dataset(svm("3,1 1:0.5 9:-2e3 # note\n# only a note\n\n 2:1\n2:7\n0\n\t3\t4:1\r\n"))
    assert isinstance(data.X, csr_array)
    assert data.X.has_canonical_format
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert data.feature_names == tuple(f"x{i}" for i in range(1, 10))
    assert data.label_names == ("y0", "y1", "y2", "y3")
    assert data.X.toarray()[:, [0, 1, 3, 8]].tolist() == [
        [0.5, 0, 0, -2000],
        [0, 1, 0, 0],
        [0, 7, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
    ]
    assert data.Y.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert data.Y.dtype == np.int8
    assert not data.categorical.any()


def test_odd_but_right(svm):
    data = load_dataset(svm("2,1,2 5:1 3:+.5 1:nan 4:0\n"))
    np.testing.assert_array_equal(data.X.toarray(), [[np.nan, 0, 0.5, 0, 1]])
    assert data.X.nnz == 3
    assert data.Y.toarray().tolist() == [[1, 1]]
    assert data.label_names == ("y1", "y2")


@pytest.mark.parametrize(
    ("text", "options", "features", "labels"),
    [
        ("1 1:1 3:1", {}, ("x1", "x2", "x3"), ("y1",)),
        ("1 0:1 3:1", {}, ("x0", "x1", "x2", "x3"), ("y1",)),
        ("0 1:1", {"zero_based": True}, ("x0", "x1"), ("y0",)),
        ("2 1:1", {"zero_based_labels": True}, ("x1",), ("y0", "y1", "y2")),
        ("1 2:1", {"n_features": 3}, ("x1", "x2", "x3"), ("y1",)),
        ("1 2:1", {"n_labels": 2}, ("x1", "x2"), ("y0", "y1")),
        ("1 2:1", {"labels": 2}, ("x1", "x2"), ("y0", "y1")),
        ("1 2:1", {"labels": ["a", "b"]}, ("x1", "x2"), ("a", "b")),
        ("1 2:1", {"n_features": 3, "n_labels": 2, "zero_based": True}, ("x0", "x1", "x2"), ("y0", "y1")),
        ("1 2:1", {"n_features": 2, "n_labels": 1, "zero_based_labels": False}, ("x1", "x2"), ("y1",)),
    ],
)
def test_numbers_of_columns(svm, text, options, features, labels):
    data = load_dataset(svm(text), **options)
    assert data.feature_names == features
    assert data.label_names == labels
    assert data.X.sum() > 0
    assert data.Y.sum() == 1


def test_no_scan_if_both_numbers_are_given(svm):
    stream = open_stream(svm("1 1:1\nnonsense\n"), n_features=3, n_labels=2)
    batches = stream.batches(1)
    assert next(batches)[0].toarray().tolist() == [[1, 0, 0]]
    with pytest.raises(DataFormatError, match="line 2: 'nonsense' is not a label id"):
        next(batches)


ERRORS = {
    "text label": ("a 1:1", "'a' is not a label id"),
    "negative label": ("-1 1:1", "'-1' is not a label id"),
    "fraction label": ("1.0 1:1", "'1.0' is not a label id"),
    "trailing comma": ("1, 1:1", "'' is not a label id"),
    "space in labels": ("1, 2 1:1", "'' is not a label id"),
    "no colon": ("1 2", "expected INDEX:VALUE, found '2'"),
    "labels behind": ("1 1:1 2,3", "expected INDEX:VALUE, found '2,3'"),
    "text index": ("1 a:1", "'a' is not a feature index"),
    "qid": ("1 qid:3 1:1", "'qid' is not a feature index"),
    "negative index": ("1 -1:1", "'-1' is not a feature index"),
    "no value": ("1 1:1 2:", "index 2 has no value; write INDEX:VALUE, or the file is cut here"),
    "text value": ("1 1:x", "'x' is not a finite number, as index 1 needs"),
    "infinite": ("1 1:inf", "'inf' is not a finite number"),
    "overflow": ("1 1:1e999", "'1e999' is not a finite number"),
    "underscore": ("1 1:1_0", "'1_0' is not a finite number"),
    "two colons": ("1 1:1:1", "'1:1' is not a finite number"),
    "twice": ("1 2:1 2:2", "index 2 appears twice"),
    "overflowing index": ("1 99999999999999999999:1", "is too large"),
    "overflowing label": ("4294967296 1:1", "label id '4294967296' is too large"),
    "not UTF-8": (b"1 \xff:1", "'\ufffd' is not a feature index"),
    "NUL": (b"1 1\x00:1", "is not a feature index"),
}


@pytest.mark.parametrize(("row", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(svm, row, message):
    row = row if isinstance(row, bytes) else row.encode()
    path = svm(b"1 1:1\n# note\n\n" + row + b"\n2 1:1\n")
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(f"{path}, line 4: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 2, "n_labels": 3}, "line 2: feature 3 is out of range; there are 2 features, numbered from 1"),
        ({"n_features": 3, "n_labels": 2}, "line 2: label 2 is out of range; there are 2 labels, numbered from 0"),
        ({"n_features": 3, "n_labels": 3, "zero_based": True}, "feature 3 is out of range"),
    ],
)
def test_out_of_range(svm, options, message):
    with pytest.raises(DataFormatError, match=message):
        load_dataset(svm("1 1:1\n2 2:1 3:1"), **options)


def test_index_zero_in_a_file_said_to_begin_with_one(svm):
    with pytest.raises(
        DataFormatError, match="line 1: feature 0 is out of range; there are 1 features, numbered from 1"
    ):
        load_dataset(svm("1 0:1 1:1"), zero_based=False)


@pytest.mark.parametrize(("text", "what"), [("", "features"), ("1\n2", "features"), (" 1:1", "labels")])
def test_nothing_there(svm, text, what):
    with pytest.raises(DataFormatError, match=f"no row has any {what}; if that is meant, give n_{what}="):
        load_dataset(svm(text))


def test_wrong_label_names(svm):
    with pytest.raises(ValueError, match="must be a list of names"):
        load_dataset(svm("1 1:1"), "labels.xml")


def test_stale_schema(svm):
    path = svm("1 1:1")
    path.with_name("test.svm.schema.json").write_text("{}")
    with pytest.raises(DataFormatError, match=r"test\.svm\.schema\.json: not a schema written by labelrace"):
        load_dataset(path)


@pytest.mark.parametrize("zero_based", [True, False])
def test_as_scikit_learn(tmp_path, zero_based):
    random = np.random.default_rng(0)
    X = np.where(random.random((300, 40)) < 0.2, random.normal(size=(300, 40)), 0)
    X[0, 0] = X[0, 39] = 1 / 3
    Y = (random.random((300, 12)) < 0.2).astype(int)
    path = tmp_path / "random.svm"
    dump_svmlight_file(X, csr_array(Y), str(path), multilabel=True, zero_based=zero_based, comment="made up")
    reference, labels = load_svmlight_file(str(path), multilabel=True)
    data = load_dataset(path, labels=12)
    np.testing.assert_array_equal(data.X.toarray(), reference.toarray())
    # A row without labels and without features is no row to either of us.
    np.testing.assert_array_equal(data.Y.toarray(), MultiLabelBinarizer(classes=range(12)).fit_transform(labels))


def test_scikit_learn_reads_what_we_write(tmp_path, real_data):
    write_dataset(open_stream(real_data("emotions")), tmp_path / "emotions.svm")
    reference, labels = load_svmlight_file(str(tmp_path / "emotions.svm"), multilabel=True)
    data = load_dataset(real_data("emotions"))
    np.testing.assert_array_equal(reference.toarray(), data.X)
    np.testing.assert_array_equal(MultiLabelBinarizer(classes=range(6)).fit_transform(labels), data.Y.toarray())


NUMBER = st.one_of(
    st.floats(allow_infinity=False).map(repr),
    st.integers(0, 30).map(str),
    st.sampled_from(["", "x", "1_0", "-.5", "1e400"]),
)
ID = st.integers(0, 12).map(str) | st.sampled_from(["", "-1", "007", "9999999999", "1.0", "a"])
PAIR = st.tuples(ID, NUMBER).map(":".join)
PLAIN_PAIR = st.tuples(st.integers(0, 12).map(str), st.floats(-9, 9).map(repr)).map(":".join)
LINE = st.tuples(st.lists(ID, max_size=3).map(",".join), st.lists(PAIR, max_size=4).map(" ".join)).map(" ".join)
PLAIN = st.tuples(
    st.lists(st.integers(0, 9).map(str), max_size=3).map(",".join), st.lists(PLAIN_PAIR, max_size=4).map("  ".join)
).map(" ".join)


@given(st.lists(PLAIN | LINE | st.text("0123456789:, .e-\t", max_size=12), min_size=1, max_size=5))
@example(["1,2 3:4", "", "5", "6:7"])
@example(["1 2", "3"])
@settings(max_examples=300, deadline=None)
def test_both_parsers_agree(lines):
    encoded = [line.strip().encode() for line in lines]
    fast = svmlight.parse_bulk(b"\n".join([*encoded, b""]))
    try:
        slow = svmlight.join_rows([svmlight.parse_row(line, Location("test.svm", i)) for i, line in enumerate(encoded)])
    except DataFormatError:
        assert fast is None
        return
    for one, other in zip(fast or slow, slow, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_plain_rows_are_read_in_bulk():
    assert svmlight.parse_bulk(b"1,2 3:4.5 6:7\n\n1\n 2:1e5\n3\t4:nan \r\n") is not None


def test_scan_needs_no_values(svm, monkeypatch):
    monkeypatch.setattr(svmlight, "floats", lambda pieces: pytest.fail("a value was parsed"))
    assert open_stream(svm("1 1:1\n")).n_features == 1


def test_comments_do_not_hide_a_cut(svm):
    with pytest.raises(DataFormatError, match="index 2 has no value"):
        load_dataset(svm("1 1:1 2:#3\n"))


def test_memory_file_of_scikit_learn_with_one_label(tmp_path):
    buffer = io.BytesIO()
    dump_svmlight_file(np.eye(3), [2, 0, 1], buffer, zero_based=False)
    (tmp_path / "one.libsvm").write_bytes(buffer.getvalue())
    data = load_dataset(tmp_path / "one.libsvm")
    assert data.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
