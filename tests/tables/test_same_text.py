"""Identifiers, categories and tags are the same texts whatever table they come in."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from labelrace import Tagger, load
from labelrace.cli.predict import tag_tables
from labelrace.tables.cells import as_name, as_numbers, as_texts, one_form
from labelrace.tables.read import Table, as_table, file_tables, stack_tables, table_batches, text_tables

AGENTS = [1300000000000000001, 1300000000000000002, 1300000000000000003]


def frame(n, seed):
    rng = np.random.default_rng(seed)
    agents = rng.integers(3, size=n)
    return pd.DataFrame(
        {
            "id": 7460000000000000000 + 10 * seed * n + np.arange(n),
            "agent_id": np.array(AGENTS)[agents],
            "level": pd.array([None if k == 2 else k for k in agents], dtype="Int64"),
            "size": agents * 2.5,
            "tags": [f"tag{k}" for k in agents],
        }
    )


def lines(table):
    return table.to_json(orient="records", lines=True).splitlines(keepends=True)


def written(table, path):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(lines(table)))
    else:
        table.to_feather(path)
    return path


DOORS = {
    "csv": lambda table, folder: file_tables(written(table, folder / "t.csv"), 100),
    "jsonl": lambda table, folder: file_tables(written(table, folder / "t.jsonl"), 100),
    "parquet": lambda table, folder: file_tables(written(table, folder / "t.parquet"), 100),
    "arrow": lambda table, folder: file_tables(written(table, folder / "t.feather"), 100),
    "standard input": lambda table, folder: text_tables(lines(table), 100),
    "frame": lambda table, folder: table_batches(table, 100),
    "frame of Arrow": lambda table, folder: table_batches(table.convert_dtypes(dtype_backend="pyarrow"), 100),
    "frame of objects": lambda table, folder: table_batches(table.astype(object), 100),
    "frame with floats": lambda table, folder: table_batches(table.astype({"level": "float64"}), 100),
    "CSV with floats": lambda table, folder: file_tables(
        written(table.astype({"level": "float64"}), folder / "f.csv"), 100
    ),
    "Arrow table": lambda table, folder: table_batches(pa.Table.from_pandas(table), 100),
    "dicts": lambda table, folder: table_batches([json.loads(line) for line in lines(table)], 100),
    "columns": lambda table, folder: table_batches({name: table[name].tolist() for name in table}, 100),
    "arrays": lambda table, folder: table_batches({name: table[name].to_numpy() for name in table}, 100),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Return the tagger of each door, and what it says."""
    folder = tmp_path_factory.mktemp("doors")
    made = {}
    for door, tables in DOORS.items():
        tagger = Tagger("tags", category=["level", "size"], random_state=0)
        for table in tables(frame(300, 0), folder):
            tagger.partial_fit(table)
        tagger.save(folder / "t.labelrace")
        made[door] = load(folder / "t.labelrace")
    return made


def test_one_model_through_every_door(learned):
    first = learned["csv"]
    assert {column.name: column.kind for column in first.columns_} == {
        "id": "identifier",
        "agent_id": "category",
        "level": "category",
        "size": "category",
    }
    for tagger in learned.values():
        assert tagger.columns_ == first.columns_
        assert tagger.state.features.vocabulary.names == first.state.features.vocabulary.names


@pytest.mark.parametrize("door", DOORS)
def test_whole_numbers_are_the_same_texts_through_every_door(learned, door, tmp_path):
    table = frame(200, 1)
    for tagger in (learned["csv"], learned["parquet"]):
        found = stack_tables(list(tag_tables(tagger, DOORS[door](table, tmp_path), top=None, suffix=".csv"))).columns
        assert list(map(as_name, as_texts(found["id"]))) == [str(i) for i in table["id"]]
        assert found["tags"] == table["tags"].tolist()


def test_one_text_for_a_value():
    for value in (5, 5.0, "5", "5.0", " 5.00", np.int8(5), np.float32(5), Decimal("5.00"), np.float64(5)):
        assert as_name(value) == "5"
    assert list(map(as_name, (-0.0, "1.10", "007", 2.5, np.float32(0.1), Decimal("2.50")))) == [
        *("0", "1.10", "007", "2.5", "0.1", "2.50")
    ]
    assert as_name(2.0**53) == as_name(2**53) == str(2**53)
    assert as_name(True) == as_name("True") == "true"
    assert one_form("1.0.0") == "1.0.0"
    days = np.array(["2024-01-05", "2024-01-05T10:30:00", "NaT"], dtype="datetime64[s]")
    assert as_texts(as_table({"day": days}).columns["day"]) == ["2024-01-05", "2024-01-05 10:30:00", ""]
    singles = pd.DataFrame({"x": np.array([0.1, 3, np.nan], dtype="float32")})
    for table in (singles, singles.astype("Float32"), pa.Table.from_pandas(singles)):
        assert as_texts(as_table(table).columns["x"]) == ["0.1", "3", ""]
    decimals = pa.table({"x": pa.array([Decimal("12345678901234567890"), Decimal(5), None])})
    assert as_texts(as_table(decimals).columns["x"]) == ["12345678901234567890", "5", ""]


def test_parts_of_a_column_that_are_floats_and_exact():
    parts = [Table({"id": np.array([1.0, np.nan])}, 2), as_table({"id": np.array([2**60 + 1])})]
    assert stack_tables(parts).columns["id"] == [1.0, None, 2**60 + 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_seconds_through_every_door(unit, tmp_path):
    durations = pd.Series(pd.to_timedelta([90.0, 3600.0, None, -1.0], unit="s")).astype(f"timedelta64[{unit}]")
    frame = pd.DataFrame({"wait": durations})
    frame.to_parquet(tmp_path / "t.parquet")
    arrow = pa.table({"wait": pa.array(durations, pa.duration(unit))})
    doors = [
        frame,
        frame.convert_dtypes(dtype_backend="pyarrow"),
        frame.astype(object),
        arrow,
        frame.to_dict("records"),
        arrow.to_pylist(),
        {"wait": durations.to_numpy()},
        {"wait": pd.TimedeltaIndex(durations)},
        {"wait": list(durations.to_numpy())},
        *file_tables(tmp_path / "t.parquet", 10),
    ]
    for door in doors:
        np.testing.assert_array_equal(as_numbers(as_table(door).columns["wait"])[0], [90.0, 3600.0, np.nan, -1.0])


def test_durations_of_excel_are_seconds(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for cell in ("wait", timedelta(hours=30), timedelta(seconds=90)):
        book.active.append([cell])
    book.save(tmp_path / "t.xlsx")
    [table] = file_tables(tmp_path / "t.xlsx", 10)
    assert as_numbers(table.columns["wait"])[0].tolist() == [108000.0, 90.0]


def test_empty_rows_of_excel_are_left_out_with_a_warning(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for cells in ([], ["a", "b"], ["x", 1], [], [" ", None], ["y", 2], [], ["z", 3], [], []):
        book.active.append(cells)
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(UserWarning, match="empty rows are left out, the first is row 4: results have no rows") as told:
        [table] = file_tables(tmp_path / "t.xlsx", 10)
    assert len(told) == 1
    assert table.columns["a"] == ["x", "y", "z"]
