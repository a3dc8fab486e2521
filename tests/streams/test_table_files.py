"""Tables as record batches: types settled by the first block, lines of rows, errors further down."""

import gzip
import json
from itertools import islice

import pyarrow as pa
import pytest

from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, open_stream, write_dataset
from labelrace.streams.table_sources import open_table

MANY = 20_000  # rows, more than a block


def write(path, content):
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
def test_batches_of_a_csv_file(tmp_path, name):
    text = 'size,hue,note\n1.5,red,\n\n,"a, b","two\nlines"\n2,red,"say ""so"""\n'
    path = write(tmp_path / name, text.replace(",", "\t").replace("a\t b", "a, b") if "tsv" in name else text)
    table = open_table(path)
    assert table.types() == {"size": pa.float64(), "hue": pa.string(), "note": pa.string()}
    rows = [row for batch in table.batches(100) for row in zip(batch.lines, batch.rows.to_pylist(), strict=True)]
    assert rows == [
        (2, {"size": 1.5, "hue": "red", "note": None}),
        (5, {"size": None, "hue": "a, b", "note": "two\nlines"}),
        (6, {"size": 2.0, "hue": "red", "note": 'say "so"'}),
    ]


def test_batches_of_json_lines(tmp_path):
    objects = [{"a": 1, "tags": ["x", 2]}, {"b": "2020-01-01", "a": 2.5}, {"on": True, "a": None}]
    path = write(tmp_path / "t.jsonl", "\n\n".join(map(json.dumps, objects)))
    [batch] = open_table(path).batches(100)
    assert list(batch.lines) == [1, 3, 5]
    assert batch.rows.to_pylist() == [
        {"a": 1.0, "tags": ["x", "2"], "b": None, "on": None},
        {"a": 2.5, "tags": None, "b": "2020-01-01", "on": None},
        {"a": None, "tags": None, "b": None, "on": 1.0},
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t"])
def test_texts_are_read_as_csv(tmp_path, name):
    [batch] = open_table(write(tmp_path / name, "size,hue\n1,red\n")).batches(10)
    assert batch.rows.column_names == ["size", "hue"]


@pytest.mark.parametrize("name", ["t.ods", "t.json.gz"])
def test_other_suffixes_are_refused(tmp_path, name):
    path = write(tmp_path / name, "size,hue\n1,red\n")
    with pytest.raises(
        DataFormatError, match=r"t.*: cannot read files of type '.*' as tables; known types are \.csv, "
    ):
        open_table(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_lines_of_all_batches(tmp_path, suffix):
    source = write(tmp_path / "t.csv", "x,hue,l\n" + "".join(f"{i},{'ab'[i % 2]},{i % 2}\n" for i in range(MANY)))
    path = tmp_path / f"new{suffix}"
    write_dataset(load_dataset(source, 1), path, batch_size=1000)
    numbers, seen = [], []
    for batch in open_table(path).batches(100):
        numbers += batch.lines
        seen += batch.rows.column("x").to_pylist()
    first = 2 if suffix == ".csv" else 1
    assert numbers == list(range(first, first + MANY))
    assert seen == list(range(MANY))


def test_a_column_keeps_the_kind_of_its_first_block(tmp_path):
    rows = [f"{i / 8},red,0\n" for i in range(MANY)]
    rows[-1] = "blue,red,0\n"
    path = write(tmp_path / "t.csv", "x,hue,l\n" + "".join(rows))
    batches, done = open_stream(path, 1).batches(1), 0
    for X, _ in islice(batches, MANY - 1):  # every row above the error
        assert X.tolist() == [[done / 8, 0]]
        done += 1
    assert done == MANY - 1
    with pytest.raises(
        DataFormatError, match=rf"line {MANY + 1}: column 'x' holds numbers, but 'blue' here; .*nominal="
    ):
        next(batches)
    assert load_dataset(path, 1, nominal=["x"]).nominal_values[0][-1] == "blue"


def test_a_column_that_is_empty_at_first(tmp_path):
    rows = [",,0\n"] * MANY + ["1.5,red,1\n"]
    data = load_dataset(write(tmp_path / "t.csv", "x,hue,l\n" + "".join(rows)), 1)
    assert data.X[-1].tolist() == [1.5, 0]
    assert data.nominal_values == {1: ("red",)}
    assert data.X.shape == (MANY + 1, 2)


def test_a_key_that_changes_its_kind(tmp_path):
    rows = ['{"x": 1, "l": 0}\n'] * MANY
    path = write(tmp_path / "t.jsonl", "".join(rows) + '{"x": "blue", "l": 1}\n')
    with pytest.raises(DataFormatError, match=rf"line {MANY + 1}: key 'x' holds numbers, but 'blue' here"):
        load_dataset(path, ["l"])


def test_infinite_numbers_far_down(tmp_path):
    path = write(tmp_path / "t.csv", "x,l\n" + "1,0\n" * MANY + "inf,0\n")
    with pytest.raises(DataFormatError, match=rf"line {MANY + 2}: column 'x' holds an infinite number"):
        load_dataset(path, 1)
