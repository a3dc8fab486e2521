"""Every error names the file, the line and what is wrong there."""

import re

import numpy as np
import pytest

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream

ATTRIBUTES = ["a numeric", "b {x,y}", "c {0,1}", "l {0,1}", "m numeric"]
FIRST_ROW = 8  # @relation, five attributes, @data

DENSE_ERRORS = {
    "too few": ("1,x,0", "has 3 values, but the header declares 5"),
    "cut": ("1,x,0,1", "file is cut"),
    "too many": ("1,x,0,1,0,1", "has 6 values"),
    "trailing comma": ("1,x,0,1,0,", "value 6 is empty"),
    "empty": ("1,,0,1,0", "value 2 is empty; write ?"),
    "unknown nominal": ("1,z,0,1,0", "'z' is not a declared value of attribute 'b', which has 'x', 'y'"),
    "unknown digit": ("1,x,2,1,0", "'2' is not a declared value of attribute 'c'"),
    "other spelling": ("1,x,01,1,0", "'01' is not a declared value of attribute 'c'"),
    "text": ("one,x,0,1,0", "'one' is not a finite number, as attribute 'a' needs"),
    "underscore": ("1_0,x,0,1,0", "'1_0' is not a finite number"),
    "infinite": ("inf,x,0,1,0", "'inf' is not a finite number"),
    "overflow": ("1e999,x,0,1,0", "'1e999' is not a finite number"),
    "two points": ("1.2.3,x,0,1,0", "'1.2.3' is not a finite number"),
    "only a sign": ("-,x,0,1,0", "'-' is not a finite number"),
    "only a point": ("-.,x,0,1,0", "'-.' is not a finite number"),
    "numeric label": ("1,x,0,1,2", "label 'm' is 2, but a label must be 0 or 1"),
    "label not a number": ("1,x,0,1,nan", "label 'm' is nan, but"),
    "open quote": ("1,'x,0,1,0", "the quote in column 3 is never closed"),
    "text after quote": ("1,'x'y,0,1,0", "text follows the quoted value 2"),
    "sparse row": ("{0 1}", "a sparse row in a file that began with dense rows"),
}
SPARSE_ERRORS = {
    "not closed": ("{0 1,2 1", "not closed by }; add it, or the file is cut"),
    "cut after comma": ("{0 1,", "not closed by }"),
    "cut after brace": ("{", "not closed by }"),
    "cut after index": ("{0 1,2", "not closed by }"),
    "no value": ("{0 1,2 }", "index 2 has no value"),
    "no value and no space": ("{0 1,2}", "expected INDEX VALUE, found '2}'"),
    "trailing comma": ("{0 1,}", "expected INDEX VALUE, found '}'"),
    "leading comma": ("{,0 1}", "expected INDEX VALUE"),
    "double comma": ("{0 1,,2 1}", "expected INDEX VALUE"),
    "out of range": ("{5 1}", "index 5 is out of range; the header declares 5 attributes"),
    "far out of range": ("{99999999999999999999 1}", "is out of range"),
    "negative": ("{-1 1}", "'-1' is not an attribute's index"),
    "fraction": ("{1.0 x}", "'1.0' is not an attribute's index"),
    "repeated": ("{0 1,0 2}", "index 0 appears twice"),
    "repeated later": ("{0 1,2 1,0 2}", "index 0 appears twice"),
    "unknown nominal": ("{1 z}", "'z' is not a declared value of attribute 'b'"),
    "text": ("{0 one}", "'one' is not a finite number"),
    "no comma": ("{0 1 2 1}", "'1 2 1' is not a finite number"),
    "quote, no comma": ("{1 'x' 2 1}", "expected a comma or } before '2 1}'"),
    "text behind": ("{0 1} 5", "unexpected text '5' after the row's }"),
    "weight": ("{0 1}, {2}", "unexpected text"),
    "brace within": ("{0 {1}", "index 0 has no value"),
    "numeric label": ("{4 2}", "label 'm' is 2"),
    "open quote": ("{1 'x}", "the quote in column 4 is never closed"),
    "dense row": ("1,x,0,1,0", "a dense row in a file that began with sparse rows"),
}
HEADER_ERRORS = {
    "string": (["a string"], 2, "attribute 'a' is of type 'string'"),
    "date": (["a numeric", "when DATE 'yyyy'"], 3, "attribute 'when' is of type 'DATE'"),
    "relational": (["bag relational"], 2, "attribute 'bag' is of type 'relational'"),
    "no type": (["a"], 2, "attribute 'a' has no type"),
    "no name": ([""], 2, "has no name"),
    "open quote": (["'a numeric"], 2, "the quote in column 1 is never closed"),
    "text after type": (["a numeric 5"], 2, "unexpected text '5' after the type of attribute 'a'"),
    "text after values": (["a {x} y"], 2, "unexpected text 'y'"),
    "values not closed": (["a {x,y"], 2, "closed by }"),
    "values not separated": (["a {'x' 'y'}"], 2, "separated by commas"),
    "brace in values": (["a {x{y}"], 2, "separated by commas"),
    "no values": (["a {}"], 2, "declares an empty value"),
    "empty value": (["a {x,,y}"], 2, "declares an empty value"),
    "value twice": (["a {x,y,x}"], 2, "declares the value 'x' twice"),
    "name twice": (["a real", "b real", "a real"], 4, "attribute 'a' is already declared in line 2"),
    "no attributes": ([], 2, "@data comes before any @attribute"),
}


def check(path, line, message):
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_dataset(path, 2)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(("row", "message"), DENSE_ERRORS.values(), ids=DENSE_ERRORS)
def test_dense_rows(arff, row, message):
    check(arff(ATTRIBUTES, ["1,x,0,1,0", "% note", "", row]), FIRST_ROW + 3, message)


@pytest.mark.parametrize(("row", "message"), SPARSE_ERRORS.values(), ids=SPARSE_ERRORS)
def test_sparse_rows(arff, row, message):
    check(arff(ATTRIBUTES, ["{0 1,3 1}", "% note", "", row]), FIRST_ROW + 3, message)


@pytest.mark.parametrize(("attributes", "line", "message"), HEADER_ERRORS.values(), ids=HEADER_ERRORS)
def test_header(arff, attributes, line, message):
    check(arff(attributes, []), line, message)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("@relation t\n\n@attribute a numeric\n@attri", 4, "expected @relation, @attribute or @data, found '@attri'"),
        ("@relation t\n1,2,3\n", 2, "found '1,2,3'"),
        ("@relation t\n@attribute a numeric\n", 2, "ends without an @data line"),
        ("", 0, "ends without an @data line"),
    ],
)
def test_cut_or_foreign_header(tmp_path, text, line, message):
    path = tmp_path / "test.arff"
    path.write_text(text)
    check(path, line, message)


def test_line_numbers_hold_in_later_batches(arff):
    path = arff(["a numeric", "l {0,1}"], ["1,0", "% note", "2,1", "3,1", "4,2"])
    batches = open_stream(path, 1).batches(2)
    assert next(batches)[0].tolist() == [[1], [2]]
    assert next(batches)[0].tolist() == [[3]]
    with pytest.raises(DataFormatError, match="line 9: '2' is not a declared value of attribute 'l'"):
        next(batches)


def test_rows_of_many_blocks_come_in_order_up_to_an_error(tmp_path):
    path = tmp_path / "long.arff"
    rows = [f"{number},{number % 2}" for number in range(30_000)]
    header = "@relation long\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
    path.write_text(header + "\n".join([*rows, "1,2", "0,0"]))
    batches, parts = open_stream(path, 1).batches(8192), []
    with pytest.raises(DataFormatError, match=r"line 30005: '2' is not a declared value"):
        parts.extend(X.ravel() for X, _ in batches)
    assert np.concatenate(parts).tolist() == list(range(30_000))
