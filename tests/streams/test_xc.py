"""Files of the Extreme Classification repository."""

import numpy as np
import pytest
from helpers.memory import peak_of

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream


@pytest.fixture
def xc(tmp_path):
    def write(text, name="test.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", ["test.txt", "test.xc"])
def test_rows(xc, name):
    data = load_dataset(xc("4 3 5\n0,4 0:0.5 2:2\n 1:1\n\n3 \n", name))
    assert data.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert data.Y.toarray().tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0] * 5, [0, 0, 0, 1, 0]]
    assert data.feature_names == ("x0", "x1", "x2")
    assert data.label_names == ("y0", "y1", "y2", "y3", "y4")


def test_blank_lines_at_the_end(xc):
    assert len(load_dataset(xc("1 2 2\n0 0:1\n\n\n"))) == 1
    assert [X.shape[0] for X, _ in open_stream(xc("3 2 2\n0 0:1\n\n \n\n\n")).batches(1)] == [1, 1, 1]


def test_text_files_without_such_a_header_are_svmlight(xc):
    assert load_dataset(xc("1 1:1\n")).feature_names == ("x1",)


def test_names(xc):
    assert load_dataset(xc("1 2 2\n0 0:1\n"), ["a", "b"]).label_names == ("a", "b")
    assert load_dataset(xc("1 2 2\n0 0:1\n"), np.array(["a", "b"])).label_names == ("a", "b")
    assert load_dataset(xc("1 2 2\n0 0:1\n"), 2).label_names == ("y0", "y1")
    for labels in (["a"], 1):
        with pytest.raises(ValueError, match="labels= tells 1 labels, but there are 2"):
            load_dataset(xc("1 2 2\n0 0:1\n"), labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3 2 2\n0 0:1\n1 1:1\n", "the header says 3 rows, but there are 2; the file is cut"),
        ("1 2 2\n0 0:1\n1 1:1\n", "more rows than the 1 that the header says"),
        ("2 2 2\n0 0:1\n1 2:1\n", "line 3: feature 2 is out of range; there are 2 features, numbered from 0"),
        ("2 2 2\n0 0:1\n2 1:1\n", "line 3: label 2 is out of range; there are 2 labels"),
        ("2 2 2\n0 0:1\n1 1:1 # note", "line 3: expected INDEX:VALUE, found '#'"),
        ("2 2\n0 0:1\n", "line 1: expected the numbers of rows, features and labels"),
        ("", "line 1: expected the numbers of rows, features and labels"),
        (f"1 2 {10**9}\n", "line 1: 2 features and 1000000000 labels; more than"),
        (f"1 {'9' * 500} 2\n", "line 1: .* cannot be so large"),
    ],
)
def test_errors(xc, text, message):
    with pytest.raises(DataFormatError, match=message):
        load_dataset(xc(text, "test.xc"))


def test_schema_of_other_data(xc, tmp_path):
    from labelrace.streams import write_dataset

    write_dataset(load_dataset(xc("1 2 2\n0 0:1\n")), tmp_path / "new.xc")
    xc("1 3 2\n0 0:1\n", "new.xc")
    with pytest.raises(DataFormatError, match=r"3 features and 2 labels, but new\.xc\.schema\.json .* about 2 and 2"):
        load_dataset(tmp_path / "new.xc")


@pytest.mark.parametrize("header", ["{0} {0} {0}", "{0} 5 5", "5 100000000 100000000"])
def test_huge_sizes_take_no_memory(xc, header):
    path = xc(header.format(10**18) + "\n0 0:1\n")

    def refused():
        with pytest.raises(DataFormatError):
            load_dataset(path)

    # The mask of features is zeros that no one touches.
    assert peak_of(refused) < 2 * 10**8
