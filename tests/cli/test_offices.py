"""The files that offices have, through the command."""

from __future__ import annotations

import csv
import json
import zipfile
from datetime import datetime

import pytest

import labelrace
from labelrace.streams.demo import demo_tickets
from labelrace.tables import file_tables

openpyxl = pytest.importorskip("openpyxl")
# What the command says is looked at.
pytestmark = pytest.mark.filterwarnings("default")
ROWS = [
    {
        "ticket": row["ticket"],
        "subject": row["subject"] + " für Müller",
        "price": i % 90,
        "day": datetime(2024, 1 + i % 12, 3),
        "tags": ";".join(row["tags"]),
    }
    for i, row in enumerate(demo_tickets(160))
]


def german(price):
    return f"{price * 1000 + 0.5:,.2f} €".translate(str.maketrans(",.", ".,"))


def write_csv(path, rows=ROWS, encoding="utf-8", delimiter=",", name=lambda name: name, price=str):
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(map(name, rows[0]))
        writer.writerows([{**row, "price": price(row["price"])}[key] for key in row] for row in rows)


def write_excel(path, rows=ROWS, sheets=("Sheet",)):
    book = openpyxl.Workbook()
    book.active.title = sheets[0]
    for name in sheets[1:]:
        book.create_sheet(name)
    sheet = book[sheets[-1]]
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    sheet.append([None, " "])
    sheet.append([])
    book.save(path)


def learned(name="t.labelrace"):
    tagger = labelrace.load(name)
    return {column.name: column.kind for column in tagger.columns_}, tagger.predict_proba(ROWS[:20])


def train(command, source, *options):
    status, _, told = command("train", source, "--tags", "tags", "-o", "t.labelrace", "--force", *options)
    assert status == 0, told
    return told


@pytest.fixture
def expected(command):
    write_csv("plain.csv")
    assert train(command, "plain.csv") == ""
    return learned()


def test_excel(command, expected):
    write_excel("t.xlsx")
    assert train(command, "t.xlsx") == ""
    assert learned() == expected
    assert expected[0] == {"ticket": "identifier", "subject": "text", "price": "number", "day": "date"}
    write_excel("two.xlsx", sheets=("Notes", "Data"))
    assert train(command, "two.xlsx", "--sheet", "Data") == ""
    assert learned() == expected
    told = command("train", "two.xlsx", "--tags", "tags", "-o", "x").err
    assert "row 1: the sheet is empty" in told
    told = command("train", "two.xlsx", "--tags", "tags", "-o", "x", "--sheet", "Dat").err
    assert "there is no sheet 'Dat'; there are 'Notes', 'Data'" in told
    assert command("predict", "t.labelrace", "t.xlsx").out.count("\n") == len(ROWS)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.xls", b"", "save it as .xlsx"),
        ("t.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 100, "without a password"),
        ("t.xlsx", b"PK\x03\x04 nothing", "not a readable Excel file, or a damaged one"),
        ("t.zip", b"PK\x03\x04 nothing", "not a zip file, or a damaged one"),
    ],
)
def test_files_that_cannot_be_read(refuses, tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    assert told in refuses("train", name, "--tags", "tags", "-o", "x")


def test_excel_without_its_extra(refuses, monkeypatch):
    write_excel("t.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    assert "with the extra 'excel'" in refuses("train", "t.xlsx", "--tags", "tags", "-o", "x")


@pytest.mark.parametrize(
    ("encoding", "delimiter", "told"),
    [
        ("cp1252", ";", ["is read as cp1252", "';' between cells"]),
        ("utf-16", "\t", ["is read as utf-16", "'\\t' between cells"]),
        ("utf-16-be", ",", []),
        ("utf-8-sig", ";", ["';' between cells"]),
        ("cp437", ",", []),
    ],
)
def test_encodings_and_delimiters(command, expected, encoding, delimiter, told):
    rows = ROWS if delimiter == "," else [{**row, "tags": row["tags"].replace(";", "|")} for row in ROWS]
    write_csv("t.csv", rows, encoding, delimiter, name=lambda name: name)
    options = ["--encoding", encoding] if not told else []
    said = train(command, "t.csv", *options)
    assert [line for line in said.splitlines() if not any(text in line for text in told)] == []
    assert all(said.count(text) == 1 for text in told)
    assert learned() == expected


def test_an_encoding_that_is_none(refuses):
    write_csv("t.csv")
    assert "encoding must be the name of an encoding" in refuses(
        "train", "t.csv", "--tags", "tags", "-o", "x", "--encoding", "klingon"
    )


def test_zip(command, refuses, expected, tmp_path):
    write_csv("t.csv")
    with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write("t.csv", "export/t.csv")
        archive.writestr("__MACOSX/t.csv", "?")
    assert train(command, "t.zip") == ""
    assert learned() == expected
    with zipfile.ZipFile("t.zip", "a") as archive:
        archive.write("t.csv", "more.csv")
    assert "must hold one data file, got 2 ('export/t.csv', 'more.csv')" in refuses(
        "train", "t.zip", "--tags", "tags", "-o", "x"
    )


@pytest.mark.parametrize("write", [german, lambda price: f"{price * 1000 + 0.5:,.2f}"], ids=["German", "English"])
def test_prices(command, write):
    write_csv("t.csv", price=write)
    assert train(command, "t.csv") == ""
    tagger = labelrace.load("t.labelrace")
    assert learned()[0]["price"] == "number"
    moments = tagger.state.features.moments["price"]
    prices = [row["price"] * 1000 + 0.5 for row in ROWS]
    assert moments.mean == pytest.approx(sum(prices) / len(prices))
    # A cell that does not tell is read as the others are.
    known = tagger.predict_proba([{"price": write(44).replace(" €", "")}])
    assert tagger.predict_proba([{"price": "44.000" if write is german else "44,000"}]) == [
        pytest.approx(known[0], rel=1e-3)
    ]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_columns_without_a_name(command, suffix):
    rows = [{"": i, **row, " ": None, "  ": None} for i, row in enumerate(ROWS)]
    (write_excel if suffix == ".xlsx" else write_csv)(f"t{suffix}", rows)
    said = train(command, f"t{suffix}").splitlines()
    assert len(said) == (2 if suffix == ".csv" else 1)
    assert "named by their position: 'column 1'" in said[0]
    assert suffix == ".xlsx" or "left out: 'column 7', 'column 8'" in said[1]
    assert list(learned()[0]) == ["column 1", "ticket", "subject", "price", "day"]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_header_alone_is_a_table_without_rows(refuses, suffix):
    if suffix == ".csv":
        write_csv("t.csv", ROWS[:1])
        with open("t.csv") as file:
            header = file.readline()
        with open("t.csv", "w") as file:
            file.write(header)
    else:
        book = openpyxl.Workbook()
        book.active.append(list(ROWS[0]))
        book.save("t.xlsx")
    [table] = file_tables(f"t{suffix}", 10)
    assert (list(table.columns), table.n_rows) == (list(ROWS[0]), 0)
    assert "no rows with tags" in refuses("train", f"t{suffix}", "--tags", "tags", "-o", "x")
    tagger = labelrace.Tagger("tags").fit(ROWS)
    assert tagger.partial_fit(f"t{suffix}").n_rows_ == len(ROWS)
    assert tagger.predict(f"t{suffix}") == tagger.suggest(f"t{suffix}") == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_bad_rows_are_skipped(command, works, suffix):
    rows = [{name: cell for name, cell in row.items() if name != "day"} for row in ROWS]
    lines = [json.dumps(row) for row in rows]
    if suffix == ".csv":
        write_csv("all.csv", rows)
        with open("all.csv") as file:
            header, *lines = file.read().splitlines()
        lines = [header, *lines]
    good = "\n".join(lines) + "\n"
    for at in range(100, 20, -3):
        lines.insert(at, "bad row" if suffix == ".csv" else '{"bad": ')
    for name, content in (("good", good), ("bad", "\n".join(lines) + "\n")):
        with open(name + suffix, "w") as file:
            file.write(content)
    works("train", f"good{suffix}", "--tags", "tags", "-o", "good")
    status, out, told = command("train", f"bad{suffix}", "--tags", "tags", "-o", "bad", "--skip-bad-rows")
    assert status == 0
    assert f"learned {len(ROWS)} rows" in out
    with open("good", "rb") as one, open("bad", "rb") as two:
        assert one.read() == two.read()
    told = told.splitlines()
    assert told[0] == "Skipped 27 bad rows:"
    assert f"bad{suffix}, line 23: " in told[1]
    assert len(told) == 22
    assert told[-1] == "  and 7 more."
    for arguments in (["update", "bad"], ["predict", "bad"]):
        assert command(*arguments, f"bad{suffix}").status == 1
        assert "Skipped 27 bad rows" in command(*arguments, f"bad{suffix}", "--skip-bad-rows").err
    text = "\n".join(lines) + "\n"
    told = command("predict", "good", "-", "--skip-bad-rows", stdin=text)
    assert told.out.count("\n") == len(ROWS)
    assert "standard input, line 23: " in told.err


def test_rows_with_wrong_quotes_are_skipped(command):
    with open("t.csv", "w") as file:
        file.write("body,tags\n" + "the oven,oven\n" * 30 + 'the "oven" is,"x" y\n' + "a bill,bill\n" * 30)
    status, out, told = command("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force", "--skip-bad-rows")
    assert (status, told.partition(" (")[0]) == (0, "Skipped 1 bad row:\n  t.csv, line 32: not a valid row")
    assert "learned 60 rows" in out
    with open("t.csv", "a") as file:
        file.write('a bill,"bill\n' + "a bill,bill\n" * 30)
    # Not skipped, as it may be many rows.
    status, out, told = command("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force", "--skip-bad-rows")
    assert status == 1
    assert "line 93: not a valid row (unexpected end of data)" in told
    assert "60 rows were learned and saved to" in told


def test_rows_of_excel_with_cells_beyond_the_header_are_skipped(command, refuses):
    book = openpyxl.Workbook()
    for row in (["body", "tags"], *[["the oven", "oven"]] * 20, ["the", "oven", "oven"], ["a bill", "bill"]):
        book.active.append(row)
    book.save("t.xlsx")
    status, out, told = command("train", "t.xlsx", "--tags", "tags", "-o", "t.labelrace", "--force")
    assert status == 1
    assert "t.xlsx, row 22: the row has 3 cells, but the header has 2 columns; name them" in told
    status, out, told = command("train", "t.xlsx", "--tags", "tags", "-o", "t.labelrace", "--force", "--skip-bad-rows")
    assert "learned 21 rows" in out
    assert "Skipped 1 bad row:\n  t.xlsx, row 22: " in told


def test_rows_that_the_learner_refuses_are_skipped(command, works):
    lines = ["a,x,y", *(f"{i % 7},1,{i % 2}" for i in range(700))]
    for name, at in (("good", ()), ("bad", (5, 300, 650))):
        with open(f"{name}.csv", "w") as file:
            for i, line in enumerate(lines):
                file.write(line + "\n" + ("1,2,0\n" if i in at else ""))
    works("train", "good.csv", "--tags", "x,y", "-o", "good")
    status, out, told = command("train", "bad.csv", "--tags", "x,y", "-o", "bad", "--skip-bad-rows")
    assert status == 0
    assert "learned 700 rows" in out
    assert [line.partition(":")[0] for line in told.splitlines()] == [
        "Skipped 3 bad rows",
        "  Row 6",
        "  Row 302",
        "  Row 653",
    ]
    assert labelrace.load("bad").n_rows_ == 700
    with open("all.csv", "w") as file:
        file.write("a,x,y\n" + "1,1,0\n" * 20 + "1,2,0\n" * 100)
    assert "must hold 0 and 1" in command("train", "all.csv", "--tags", "x,y", "-o", "x", "--skip-bad-rows").err


# --- Tags -------------------------------------------------------------------------------------------------------------


def write_tags(path, tags, name="tags"):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["body", name])
        words = (cell.replace(";", " ") for cell in tags)
        # Rows that are the same would be known.
        writer.writerows([f"{word} {i} about the {word} of them", tags[i]] for i, word in enumerate(words))


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        (["oven / door", "door", "oven / bread"], "Many tags hold ' / '"),
        (["Oven", "oven", "bread;oven"], "such as 'Oven' and 'oven'"),
        (["log in;bread", "login", "bread"], "such as 'log in' and 'login'"),
        (["oven;bread", "N/A", "bread"], "The tag 'N/A' looks like a missing value"),
        (["1", "0", "1"], "The tags are 0 and 1"),
        # Of a few words, which spaces would separate.
        (["oven / door", "door / bread", "bread / oven", "oven / bread", "door", "oven / door / bread"], "' / '"),
        (["oven - door", "door - bread", "bread - oven", "oven - bread"], "hold ' - '"),
        (["oven#door", "door#bread", "bread#oven", "oven#bread"], "hold '#'"),
        (["oven&door", "door&bread", "bread&oven", "oven", "oven&bread"], "hold '&'"),
    ],
)
def test_suspicious_tags_are_said_once(command, tags, told):
    write_tags("t.csv", tags * 100)
    said = train(command, "t.csv", "--batch-size", 60)
    assert said.startswith("Warning: ")
    assert told in said
    assert said.count("\n") == 1


def test_the_wrong_column(command):
    write_tags("t.csv", [f"word{i}" for i in range(200)])
    assert "is it the right column?" in train(command, "t.csv")


def test_good_tags_are_not_suspicious(works):
    write_tags("t.csv", ["c++", "and/or", "1", "bread;oven", "north-east", "home > oven", "home > lamp"] * 50)
    works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force")


def tag_rows():
    return {tag: counts.rows for tag, counts in labelrace.load("t.labelrace").tags_.items()}


def test_folded_tags(works):
    write_tags("t.csv", ["Oven", "oven", "oven", "BREAD ;oven"] * 30)
    works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force", "--fold-tags", "--batch-size", 50)
    assert {tag: counts.rows for tag, counts in labelrace.load("t.labelrace").tags_.items()} == {
        "oven": 120,
        "BREAD": 30,
    }
    write_tags("more.csv", ["OVEN", "bread", "new", "NEW", "new"])
    works("update", "t.labelrace", "more.csv")
    assert tag_rows() == {"oven": 121, "BREAD": 31, "new": 3}


def test_tags_in_angles(works):
    write_tags("t.csv", ["<oven><bread>", "<c++>", "<bread>"] * 40)
    works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force")
    assert labelrace.load("t.labelrace").tags_.keys() == {"oven", "bread", "c++"}


def test_a_single_column_of_0_and_1(works):
    write_tags("t.csv", ["1", "0"] * 60, name="urgent")
    works("train", "t.csv", "--tags", "urgent,", "-o", "t.labelrace", "--force")
    assert tag_rows() == {"urgent": 60}


def predicted(works, *options):
    with open("new.csv", "w") as file:
        file.write("body\n" + "about the oven and the bread of them\nabout the them\n")
    out = works("predict", "t.labelrace", "new.csv", *options)
    return [json.loads(line)["tags"] for line in out.splitlines()]


def test_a_category_is_noticed_and_one_tag_is_predicted(works):
    write_tags("t.csv", ["oven", "bread", "bill"] * 60)
    assert "tags  tags, one a row" in works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force")
    assert list(map(len, predicted(works))) == [1, 1]
    works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force", "--no-single")
    assert not labelrace.load("t.labelrace").predicts_one_tag
    # One row with two tags, and it is none any more.
    works("train", "t.csv", "--tags", "tags", "-o", "t.labelrace", "--force")
    write_tags("more.csv", ["oven;bread"])
    works("update", "t.labelrace", "more.csv")
    assert not labelrace.load("t.labelrace").predicts_one_tag
    write_tags("two.csv", ["oven;bread", "bread;bill", "bill"] * 60)
    works("train", "two.csv", "--tags", "tags", "-o", "t.labelrace", "--force", "--single")
    assert list(map(len, predicted(works))) == [1, 1]
    tagger = labelrace.load("t.labelrace")
    rows = [{"body": "about the oven"}, {"body": "the bread"}]
    assert tagger.predict(rows) == [{top[0][0]} for top in tagger.predict_top(rows, 1)]
    tagger.set_params(precision=0.5)
    assert tagger.predicts_one_tag
