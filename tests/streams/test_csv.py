"""CSV and TSV files: columns and their kinds, label columns and label lists, and pandas as the judge."""

import gc
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream
from labelrace.streams import table_files as tables

nan = np.nan


@pytest.fixture
def table(tmp_path):
    def write(*lines, name="test.csv"):
        path = tmp_path / name
        content = [line if isinstance(line, bytes) else line.encode() for line in lines]
        path.write_bytes(b"\n".join([*content, b""]))
        return path

    return write


def test_kinds_of_columns(table):
    path = table("size,hue,on,l,m", "1.5,red,1,0,1", '-2e3,"sky, blue",0,1.0,0', ",,,0,1", "nan,red,1,true,FALSE")
    data = load_dataset(path, labels=["l", "m"])
    np.testing.assert_array_equal(data.X, [[1.5, 0, 1], [-2000, 1, 0], [nan, nan, nan], [nan, 0, 1]])
    assert data.Y.toarray().tolist() == [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert data.Y.dtype == np.int8
    assert data.feature_names == ("size", "hue", "on")
    assert data.nominal_values == {1: ("red", "sky, blue")}
    assert data.categorical.n_values.tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["c", "a"], "ac"), (1, "d"), (np.int64(2), "cd"), (-1, "a"), ("c*", "c"), (("d",), "d"), (np.array(["b"]), "b")],
)
def test_label_columns(table, labels, expected):
    data = load_dataset(table("a,b,c,d", "0,1,0,1", "1,1,1,1"), labels)
    assert "".join(data.label_names) == expected
    assert "".join(data.feature_names) == "".join(sorted(set("abcd") - set(expected)))


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("b; a", {}),
        ("b;;a;", {}),
        ("b|a|b", {"separator": "|"}),
        ("b  a", {"separator": " "}),
        ("b, a", {"separator": ","}),
    ],
)
def test_label_lists(table, cell, options):
    data = load_dataset(table("x,tags", f'1,"{cell}"', "2,", "3,c"), "tags", **options)
    assert data.label_names == ("a", "b", "c")
    assert data.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_given_names_and_values_spare_the_scan(table):
    path = table("x,hue,tags", "1,red,b", "2,blue,zzz")
    stream = open_stream(path, "tags", label_names=["b", "a"], values={"hue": ["red", "blue"]})
    batches = stream.batches(1)
    X, Y = next(batches)
    assert X.tolist() == [[1, 0]]
    assert Y.toarray().tolist() == [[1, 0]]
    with pytest.raises(DataFormatError, match="line 3: label 'zzz' is not among the 2 of label_names="):
        next(batches)
    with pytest.raises(DataFormatError, match="line 3: 'blue' is not among the 1 values of column 'hue'"):
        load_dataset(path, "tags", values={"hue": ["red"]})
    with pytest.raises(DataFormatError, match="line 2: column 'hue' holds numbers, but 'red' here"):
        load_dataset(path, "tags", values={})


def test_numbers_as_text_and_missing_texts(table):
    path = table("zip,size,l", "0815,NA,1", "12,3,0", "?,4,1")
    with pytest.raises(
        DataFormatError, match=r"line 4: column 'zip' holds numbers, but '\?' here; .* nominal=\['zip'\]"
    ):
        load_dataset(path, 1, missing=["NA"])
    data = load_dataset(path, 1, missing=["NA", "?"], nominal=["zip"])
    np.testing.assert_array_equal(data.X, [[0, nan], [1, 3], [nan, 4]])
    assert data.nominal_values == {0: ("0815", "12")}


def test_a_text_that_says_nan(table):
    data = load_dataset(table("name,x,l", "Nan,nan,1", "Ann,2,0"), 1)
    np.testing.assert_array_equal(data.X, [[1, nan], [0, 2]])


@pytest.mark.parametrize("first", [1, 2000])
def test_a_column_that_changes_its_kind(table, first):
    numbers, texts = ["1.5,0"] * first, ["red,0"] * first
    with pytest.raises(DataFormatError, match=rf"line {first + 2}: column 'x' holds numbers, but 'red' here"):
        load_dataset(table("x,l", *numbers, "red,1"), 1)
    with pytest.raises(DataFormatError, match=rf"line {first + 2}: column 'x' holds text, but '1.5' here"):
        load_dataset(table("x,l", *texts, "1.5,1"), 1)


def test_tabs_quotes_bom_and_newlines(table):
    path = table(b"\xef\xbb\xbfx\thue\tl\r", '1\t"two\nlines, ""quoted"""\t1\r', "", "2\tred\t0", name="test.tsv")
    data = load_dataset(path, 1)
    assert data.feature_names == ("x", "hue")
    assert data.nominal_values == {1: ("red", 'two\nlines, "quoted"')}
    with pytest.raises(DataFormatError, match="line 6: label 'l' is 2"):
        load_dataset(table("x\thue\tl", '1\t"two\nlines"\t1', "", "2\tred\t0", "3\tred\t2", name="b.tsv"), 1)
    assert load_dataset(table("x;l", "1;1"), 1, delimiter=";").X.tolist() == [[1]]


def test_a_byte_order_mark_is_one_in_the_first_line_only(table):
    path = table("hue,l", "\ufeffred,0", "red,1")
    assert load_dataset(path, 1).nominal_values == {0: ("red", "\ufeffred")}


ERRORS = {
    "short": (
        "1,red",
        "line 3: the row has 2 cells, but the header has 3 columns; correct the row, or the file is cut",
    ),
    "long": ("1,red,1,1", "line 3: the row has 4 cells"),
    "label": ("1,red,2", "line 3: label 'l' is 2, but a label must be 0 or 1"),
    "no label": ("1,red,", "line 3: label 'l' is missing, but"),
    "text label": ("1,red,x", "line 3: 'x' is not a finite number, as column 'l' needs"),
    "text": ("one,red,1", "line 3: column 'size' holds numbers, but 'one' here"),
    "infinite": ("inf,red,1", "line 3: column 'size' holds numbers, but 'inf' here"),
    "underscore": ("1_0,red,1", "line 3: column 'size' holds numbers, but '1_0' here"),
    "open quote": (
        '1,"red,1',
        "line 3: not a valid row (unexpected end of data); correct the quotes, or the file is cut",
    ),
    "text after quote": ('1,"red"x,1', "line 3: not a valid row"),
    "as many quotes as cells need": ('1,"a,"b",1\n2,c",1', "line 3: not a valid row"),
    "carriage return": ("1,red\rx,1", "line 3: not a valid row"),
    "not UTF-8": (
        "1,röd".encode() + b"\xff,1",
        "line 3: not UTF-8 text (invalid start byte); save the file as UTF-8, or give its encoding",
    ),
}


@pytest.mark.parametrize(("row", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(table, row, message):
    path = table("size,hue,l", "1,red,0", row)
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_dataset(path, 1)
    assert str(caught.value).startswith(f"{path}, line 3")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, r"cannot tell which columns are labels, as there is no test\.csv\.schema\.json .*give labels="),
        (["x", "q"], "1 of the labels are not among the columns: 'q'; the columns are 'x', 'y'"),
        ("q", "1 of the labels are not among the columns: 'q'"),
        ("q*", r"labels='q\*' does not fit the 2 columns 'x', 'y'"),
        (3, "labels=3 does not fit"),
        (0, "labels=0 does not fit"),
        (["x", "y"], "all columns are labels"),
    ],
)
def test_wrong_labels(table, labels, message):
    with pytest.raises(DataFormatError, match=rf"test\.csv: {message}"):
        load_dataset(table("x,y", "1,0"), labels)


def test_other_mistakes(table):
    with pytest.raises(DataFormatError, match="columns have the same name: 'x'"):
        load_dataset(table("x,x,y", "1,0,0"), 1)
    with pytest.raises(DataFormatError, match="line 1: the file is empty"):
        load_dataset(table(name="empty.csv"), 1)
    with pytest.raises(DataFormatError, match="no features are called 'q'"):
        load_dataset(table("x,y", "1,0"), 1, nominal=["q"])
    with pytest.raises(DataFormatError, match="no row has a label in column 'y'; give label_names="):
        load_dataset(table("x,y", "1,"), "y")
    with pytest.raises(ValueError, match="separator= must not be empty"):
        load_dataset(table("x,y", "1,"), "y", separator="")


def test_no_rows(table):
    data = load_dataset(table("x,y"), 1)
    assert (data.X.shape, data.Y.shape) == ((0, 1), (0, 1))


def test_schema_of_another_table(table, tmp_path):
    from labelrace.streams import write_dataset

    write_dataset(load_dataset(table("x,l", "1,0"), 1), tmp_path / "new.csv")
    table("x,m", "1,0", name="new.csv")
    with pytest.raises(DataFormatError, match=r"new\.csv: 1 of the labels are not among the columns: 'l'"):
        load_dataset(tmp_path / "new.csv")


def test_as_pandas(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(3000, 4)), columns=list("abcd"))
    frame.loc[::7, "b"] = nan
    frame["hue"] = random.choice(["red", "blue", "grün, hell"], 3000)
    frame[["l", "m"]] = random.random((3000, 2)) < 0.3
    frame.to_csv(tmp_path / "random.csv", index=False)
    again = pd.read_csv(tmp_path / "random.csv")
    data = load_dataset(tmp_path / "random.csv", 2)
    np.testing.assert_array_equal(data.X[:, :4], frame[list("abcd")].to_numpy())
    np.testing.assert_allclose(data.X[:, :4], again[list("abcd")].to_numpy(), rtol=1e-15)
    np.testing.assert_array_equal(data.X[:, 4], again["hue"].astype("category").cat.codes)
    np.testing.assert_array_equal(data.Y.toarray(), again[["l", "m"]].to_numpy())
    stream = open_stream(tmp_path / "random.csv", 2)
    assert [X.shape[0] for X, _ in stream.batches(1000)] == [1000, 1000, 1000]
    np.testing.assert_array_equal(np.vstack([X for X, _ in stream.batches(700)]), data.X)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


CELL = st.one_of(
    st.floats(allow_infinity=False).map(repr),
    st.sampled_from(["", "1", "-2.5", " 3", "nan", "inf", "red", "1_0", "é", "\x1c4", "\r", "0"]),
)


@given(
    rows=st.lists(st.lists(CELL, min_size=3, max_size=3) | st.lists(CELL, max_size=4), max_size=5),
    ending=st.sampled_from(["\n", "\r\n", "\n\n"]),
    quoted=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_pyarrow_and_the_csv_module_agree(folder, rows, ending, quoted):
    path = folder / "any.csv"
    cells = [[f'"{cell}"' if quoted else cell for cell in row] for row in rows]
    path.write_bytes((ending.join(["a,b,c", *map(",".join, cells)]) + ending).encode())
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            try:
                data = load_dataset(path, [])
            except DataFormatError as error:
                outcomes.append(str(error))
            else:
                outcomes.append((data.X.tolist(), data.nominal_values))
            patch.setattr(tables.CsvFile, "_bulk", lambda *_: None)
    assert repr(outcomes[0]) == repr(outcomes[1])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed by Linux only")
def test_a_row_that_cannot_be_read_leaves_no_file_open(table):
    path = table("a,b,c", "1,red,1", "2,blue,2", "3,red")
    gc.disable()  # what a traceback keeps in a cycle stays open until some collection, at any later time
    try:
        with pytest.raises(DataFormatError, match="has 2 cells"):
            load_dataset(path, [])
        assert str(path) not in [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    finally:
        gc.enable()


def test_plain_rows_are_read_by_pyarrow(table, monkeypatch):
    monkeypatch.setattr(tables.CsvFile, "_by_rows", lambda *_: pytest.fail("a row was parsed alone"))
    path = table("a,b,l", '1.5,"sky, blue",True', "", ",red,False", "nan,red,1.0\r")
    data = load_dataset(path, 1)
    np.testing.assert_array_equal(data.X, [[1.5, 1], [nan, 0], [nan, 0]])
    assert data.Y.toarray().ravel().tolist() == [1, 0, 1]
