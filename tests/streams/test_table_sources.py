"""Rows of standard input: JSON lines or CSV, as they arrive, with their lines."""

import pytest

from labelrace.exceptions import DataFormatError
from labelrace.streams.table_sources import read_text


def rows_of(text, **options):
    is_json, rows = read_text(text.splitlines(keepends=True), **options)
    return is_json, [(location.line, row) for location, row in rows]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_line_shows_the_format(mark):
    assert rows_of(f'\n{mark}{{"a": 1}}\n\n[1, null]\n') == (True, [(2, {"a": 1}), (4, [1, None])])
    assert rows_of(f"{mark}a,b\n1,\n") == (False, [(1, ["a", "b"]), (2, ["1", ""])])
    assert rows_of(f"{mark}a;b\n", delimiter=";") == (False, [(1, ["a", "b"])])


def test_nothing():
    assert rows_of("") == rows_of("\n \n") == (False, [])


def test_cells_of_several_lines_keep_their_blank_lines():
    assert rows_of('a,b\n\n"one\n\ntwo",2\n') == (False, [(1, ["a", "b"]), (5, ["one\n\ntwo", "2"])])


def test_rows_come_as_soon_as_their_lines():
    lines = iter(["1,2\n", "3,4\n", "5,6\n"])
    _, rows = read_text(lines)
    assert next(rows)[1] == ["1", "2"]
    assert next(lines) == "3,4\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1]\n\n{"a": }\n', r"standard input, line 3: not a JSON object \("),
        ('{"a": 1, "a": 2}\n', "standard input, line 1: the key 'a' is there twice"),
        ("[1]\n[NaN]\n", "standard input, line 2: .*NaN is not JSON"),
        ('{"a": "\udce9"}\n', "standard input, line 1: "),
        ('a,b\n1,"2" 3\n', "standard input, line 2: not valid CSV"),
        ('a,b\n1,"2\n', "standard input, line 2: not valid CSV"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(DataFormatError, match=message):
        rows_of(text)
