"""The loop of a team, through the command: train, predict, a person edits the file, update, test."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

import labelrace
from labelrace.base.formulas import escape_formula, unescape_formula
from labelrace.tables import file_tables

TOPICS = {"oven": "oven hot door bake", "toaster": "toaster bread slice crumb", "bill": "invoice price pay money"}


def tickets(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        tags = rng.choice(list(TOPICS), rng.integers(1, 3), replace=False)
        words = [word for tag in tags for word in rng.choice([*TOPICS[tag].split(), "please", "help"], 4)]
        row = {"nr": f"T-{i + 1000 * seed}", "code": f"{i:03}", "by": "@pid", "cost": "-5.50", "body": " ".join(words)}
        rows.append({**row, "tags": ";".join(tags)})
    return rows


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def untagged(rows):
    return [{name: cell for name, cell in row.items() if name != "tags"} for row in rows]


@pytest.fixture
def trained(works):
    write("old.csv", tickets(600))
    return works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace", "--batch-size", 100)


def excel_rows(path):
    openpyxl = pytest.importorskip("openpyxl")
    header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def can_read_excel(path):
    try:
        next(file_tables(path, 1))
    except labelrace.exceptions.DataFormatError:
        return False
    return True


def edit_excel(path, tags):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    column = next(cell.column for cell in book.active[1] if cell.value == "tags")
    for number, text in enumerate(tags, start=2):
        book.active.cell(number, column).value = text
    book.save(path)


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_loop(works, suffix):
    out, new = f"out{suffix}", tickets(100, seed=1)
    write("new.csv", untagged(new))
    works("predict", "t.labelrace", "new.csv", "-o", out)
    tags = [f"{row['tags']};lamp" if number % 2 else "kettle" for number, row in enumerate(new)]
    if suffix == ".csv":
        write(out, [{**row, "tags": text} for row, text in zip(read(out), tags, strict=True)])
    else:
        edit_excel(out, tags)
        if not can_read_excel(out):
            pytest.skip("Excel files cannot be read yet")
    said = works("update", "t.labelrace", out)
    assert "Learned 100 more rows, 700 in all, with 5 tags: t.labelrace" in said
    tagger = labelrace.load("t.labelrace")
    assert tagger.tags_["kettle"].rows == 50
    assert not {"predicted", "probabilities", "review"} & {column.name for column in tagger.columns_}
    write("later.csv", tickets(100, seed=2))
    assert json.loads(works("test", "t.labelrace", "later.csv", "--json"))["rows"] == 100


@pytest.mark.usefixtures("trained")
def test_what_is_written_is_the_table_with_tags(works):
    new = untagged(tickets(30, seed=1))
    write("new.csv", new)
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        works("predict", "t.labelrace", "new.csv", "-o", f"out{suffix}", "--batch-size", 7)
        [table] = file_tables(f"out{suffix}", 100)
        assert list(table.columns) == [*new[0], "tags", "predicted", "probabilities", "review"]
        for name in new[0]:
            assert list(table.columns[name]) == [row[name] for row in new], suffix
    assert read("out.csv")[0]["by"] == "'@pid"
    assert read("out.csv")[0]["cost"] == "-5.50"
    works("predict", "t.labelrace", "new.csv", "-o", "out.xlsx")
    assert [{name: row[name] for name in new[0]} for row in excel_rows("out.xlsx")] == new
    works("predict", "t.labelrace", "out.csv", "-o", "again.csv")
    assert read("again.csv") == read("out.csv")


@pytest.mark.usefixtures("trained")
def test_types_of_parquet_stay(works):
    works("predict", "t.labelrace", write("rows.csv", untagged(tickets(3))), "-o", "rows.parquet")
    table = parquet.read_table("rows.parquet").drop_columns(["tags", "predicted", "probabilities", "review"])
    cost = pa.array([1, None, 3], pa.int32())
    parquet.write_table(table.set_column(3, "cost", cost), "new.parquet")
    works("predict", "t.labelrace", "new.parquet", "-o", "out.parquet", "--batch-size", 2)
    out = parquet.read_table("out.parquet")
    assert out.column("cost").type == pa.int32()
    assert out.column("cost").to_pylist() == [1, None, 3]
    assert out.column("tags").to_pylist() == parquet.read_table("rows.parquet").column("tags").to_pylist()


@pytest.mark.usefixtures("trained")
def test_a_byte_order_mark_and_a_header_alone(works, refuses):
    write("new.csv", untagged(tickets(3)))
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--bom")
    with open("out.csv", "rb") as file:
        assert file.read(3) == b"\xef\xbb\xbf"
    assert "--bom is for files" in refuses("predict", "t.labelrace", "new.csv", "--bom")
    with open("none.csv", "w") as file:
        file.write("nr,code,by,cost,body\n")
    works("predict", "t.labelrace", "none.csv", "-o", "out.csv")
    with open("out.csv") as file:
        assert file.read().strip() == "nr,code,by,cost,body,tags,predicted,probabilities,review"


@pytest.mark.parametrize("text", ["=1+1", "@pid", "'tis", "''", "-x", "plain", "", "'=x", "+49 30", "\tx"])
def test_what_guards_against_formulas_is_taken_off(text):
    assert unescape_formula(escape_formula(text)) == text


def test_rows_unlike_any_are_left_alone(works):
    write("old.csv", [{name: row[name] for name in ("nr", "body", "tags")} for row in tickets(300)])
    works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace")
    out = works("predict", "t.labelrace", "-", stdin='{"body": "asdf qwer"}\n{"body": "oven hot door"}\n')
    strange, known = map(json.loads, out.splitlines())
    assert (strange["tags"], strange["review"]) == ([], True)
    assert (known["tags"], known["review"]) == (["oven"], False)


@pytest.mark.usefixtures("trained")
def test_only_sure_tags_are_given(works, command, refuses):
    write("new.csv", untagged(tickets(60, seed=1)))
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--precision", 0.9)
    suggested = labelrace.load("t.labelrace").set_params(precision=0.9).suggest(untagged(tickets(60, seed=1)))
    assert [row["tags"] for row in read("out.csv")] == [";".join(one.tags) for one in suggested]
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--min-probability", 0.95)
    told = [float(p) for row in read("out.csv") for p in row["probabilities"].split(";") if p]
    assert told
    assert min(told) >= 0.95
    ended = command("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--precision", 1)
    assert ended.status == 0
    assert ended.err.startswith("No tags are given: ")
    assert ended.err.endswith("60 rows: 0 with tags, 60 for review.\n")
    assert {(row["tags"], row["review"]) for row in read("out.csv")} == {("", "true")}
    assert "--precision must be" in refuses("predict", "t.labelrace", "new.csv", "--precision", 2)


def test_rows_that_wait_for_review_are_not_learned(works):
    """The tagger learns from what people said, never from what it said itself."""
    write("old.csv", tickets(300))
    works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace", "--untagged", "none", "--separator", ";")
    write("new.csv", untagged(tickets(50, seed=1)))
    with open("t.labelrace", "rb") as file:
        before = file.read()
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--min-probability", 1)
    with open("t.labelrace", "rb") as file:
        assert file.read() == before
    rows = read("out.csv")
    assert {row["review"] for row in rows} == {"true"}
    rows[0]["tags"], rows[1]["review"] = "oven", "false"
    works("update", "t.labelrace", write("edited.csv", rows))
    # The one that got a tag, and the one of which somebody said that none applies.
    assert labelrace.load("t.labelrace").n_rows_ == 302


@pytest.mark.usefixtures("trained")
def test_test_measures_as_scikit_learn_does_and_learns_nothing(works, refuses, tmp_path):
    rows = tickets(80, seed=3)
    rows[5]["tags"] = "never-seen"
    write("later.csv", rows)
    with open("t.labelrace", "rb") as file:
        before = file.read()
    told = json.loads(works("test", "t.labelrace", "later.csv", "--json"))
    printed = works("test", "t.labelrace", "later.csv", "--page", "page.html")
    with open("t.labelrace", "rb") as file:
        assert file.read() == before
    true, found = [set(row["tags"].split(";")) for row in rows], labelrace.load("t.labelrace").predict(rows)
    binarizer = MultiLabelBinarizer().fit([*true, *found])
    Y, P = binarizer.transform(true), binarizer.transform(found)
    for name, average in (("example_f1", "samples"), ("micro_f1", "micro"), ("macro_f1", "macro")):
        assert told[name] == pytest.approx(f1_score(Y, P, average=average, zero_division=0))
    assert told["precision"] == pytest.approx(precision_score(Y, P, average="micro"))
    recalls = recall_score(Y, P, average=None, zero_division=0)
    assert [told["tags"][tag]["recall"] for tag in binarizer.classes_] == pytest.approx(recalls.tolist())
    assert f"{told['macro_f1']:.3f}" in printed
    assert "scikit-learn" in printed
    assert "f1_with_parents" not in told
    page = (tmp_path / "page.html").read_text()
    assert "precision" in page
    assert "calibration" in page
    assert "must have rows with tags" in refuses("test", "t.labelrace", write("none.csv", [{**rows[0], "tags": ""}]))


@pytest.mark.usefixtures("trained")
def test_tags_are_renamed_merged_dropped_and_added(works, refuses):
    assert "oven" in works("tags", "t.labelrace")
    works("tags", "rename", "t.labelrace", "oven", "stove")
    works("tags", "merge", "t.labelrace", "stove", "toaster", "--into", "kitchen", "-o", "merged.labelrace")
    assert set(labelrace.load("t.labelrace").tags_) == {"stove", "toaster", "bill"}
    assert set(labelrace.load("merged.labelrace").tags_) == {"kitchen", "bill"}
    works("tags", "drop", "merged.labelrace", "bill")
    assert set(labelrace.load("merged.labelrace").tags_) == {"kitchen"}
    write("tags.csv", [{"tag": "kettle", "synonyms": "boiler", "description": "", "parent": "kitchen"}])
    works("tags", "add", "merged.labelrace", "tags.csv")
    works("tags", "add", "merged.labelrace", "lamp", "fridge")
    listed = json.loads(works("tags", "list", "merged.labelrace", "--json"))
    assert listed["kettle"] | {"tested": 0} == {
        "rows": 0, "tested": 0, "precision": None, "recall": None, "parent": "kitchen"
    }  # fmt: skip
    assert {"lamp", "fridge"} <= listed.keys()
    with open("t.labelrace", "rb") as file:
        before = file.read()
    assert "got 'soap'" in refuses("tags", "rename", "t.labelrace", "soap", "x")
    with open("t.labelrace", "rb") as file:
        assert file.read() == before


@pytest.mark.usefixtures("trained")
def test_a_row_is_explained_by_its_id(works, refuses):
    write("new.csv", rows := untagged(tickets(700, seed=1)))
    told = json.loads(works("explain", "t.labelrace", "new.csv", "--id", "T-1650", "--json"))
    with open("row.json", "w") as file:
        json.dump(rows[650], file)
    assert told == json.loads(works("explain", "t.labelrace", "row.json", "--json"))
    assert "'T-9'" in refuses("explain", "t.labelrace", "new.csv", "--id", "T-9")


@pytest.mark.usefixtures("trained")
def test_two_taggers_are_compared(works):
    write("few.csv", tickets(20))
    works("train", "few.csv", "--tags", "tags", "-o", "few.labelrace")
    rows = tickets(200, seed=4)
    write("later.csv", rows)
    told = json.loads(works("compare", "few.labelrace", "t.labelrace", "later.csv", "--json"))
    true = [set(row["tags"].split(";")) for row in rows]
    scores = []
    for name in ("few.labelrace", "t.labelrace"):
        found = labelrace.load(name).predict(rows)
        scores.append([2 * len(a & b) / (len(a) + len(b)) for a, b in zip(true, found, strict=True)])
    differences = np.subtract(scores[1], scores[0])
    measured = told["measures"]["example_f1"]
    assert measured["difference"] == pytest.approx(differences.mean())
    assert measured["standard_error"] == pytest.approx(differences.std(ddof=1) / np.sqrt(200))
    same = json.loads(works("compare", "t.labelrace", "t.labelrace", "later.csv", "--json"))
    assert (same["tags"], same["differing_rows"]) == ([], [])
    assert same["measures"]["micro_f1"]["standard_error"] == 0
    printed = works("compare", "few.labelrace", "t.labelrace", "later.csv")
    assert "of the paired difference" in " ".join(printed.split())


@pytest.mark.usefixtures("trained")
def test_inspect_shows_what_precision_costs(works):
    curve = json.loads(works("inspect", "t.labelrace", "--json"))["precision_curve"]
    assert [one["precision"] for one in curve] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    handled = [one["handled"] for one in curve]
    assert handled == sorted(handled, reverse=True)
    assert "Target precision" in works("inspect", "t.labelrace")


def test_columns_of_0_and_1_are_written_as_such(works):
    rows = [{"nr": row["nr"], "body": row["body"], "tags": row["tags"]} for row in tickets(300)]
    write("old.csv", untagged([{**row, **{tag: int(tag in row["tags"]) for tag in TOPICS}} for row in rows]))
    works("train", "old.csv", "--tags", "oven,toaster,bill", "-o", "t.labelrace")
    write("new.csv", [{"nr": "T-7", "body": "oven hot door"}, {"nr": "T-8", "body": "asdf"}])
    works("predict", "t.labelrace", "new.csv", "-o", "out.jsonl")
    with open("out.jsonl") as file:
        known, strange = map(json.loads, file)
    assert [known[tag] for tag in TOPICS] == [1, 0, 0]
    assert [strange[tag] for tag in TOPICS] == [None, None, None]


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
@pytest.mark.parametrize("option", [(), ("--precision", 0.8), ("--top", 2)])
def test_a_file_that_nobody_has_edited_is_not_learned(command, works, suffix, option):
    write("new.csv", untagged(tickets(60, seed=1)))
    works("predict", "t.labelrace", "new.csv", "-o", f"out{suffix}", *option)
    with open("t.labelrace", "rb") as file:
        before = file.read()
    ended = command("update", "t.labelrace", f"out{suffix}")
    assert ended.status == 0
    assert "rows had their predicted tags unchanged and were skipped" in ended.err
    assert ended.err.endswith("t.labelrace is as it was.\n")
    with open("t.labelrace", "rb") as file:
        assert file.read() == before


@pytest.mark.usefixtures("trained")
def test_rows_that_nobody_has_changed_are_skipped_and_counted(works):
    """Neither a tagger that has changed since, nor its new names, nor where the rows come from, make them learned."""
    write("new.csv", untagged(tickets(60, seed=1)))
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--top", 2)
    rows = read("out.csv")
    rows[3]["tags"] = "kettle"
    write("out.csv", rows)
    works("update", "t.labelrace", write("between.csv", tickets(100, seed=7)))
    works("tags", "rename", "t.labelrace", "oven", "stove")
    tested = labelrace.load("t.labelrace").state.n_tested
    skipped = "59 rows had their predicted tags unchanged and were skipped; --confirmed learns them."
    with open("out.csv") as file:
        text = file.read()
    for source, stdin in (("out.csv", ""), ("-", text)):
        said = works("update", "t.labelrace", source, "-o", f"{len(stdin)}.labelrace", stdin=stdin)
        assert skipped in said
        assert "Learned 1 more row, 701 in all" in said
    # Rows that were chosen by the tagger's errors are no test of it.
    assert labelrace.load(f"{len(text)}.labelrace").state.n_tested == tested
    with pytest.warns(UserWarning, match="Left out 59 rows with just the tags that were predicted"):
        tagger = labelrace.load("t.labelrace").partial_fit("out.csv")
    assert tagger.n_rows_ == 701
    assert skipped in works("train", "old.csv", "out.csv", "--tags", "tags", "-o", "u.labelrace")
    assert labelrace.load("u.labelrace").n_rows_ == 601
    assert "Learned 60 more rows" in works("update", "t.labelrace", "out.csv", "--confirmed", "-o", "c.labelrace")
    assert labelrace.load("c.labelrace").state.n_tested == tested
    assert labelrace.load("t.labelrace").partial_fit("out.csv", confirmed=True).n_rows_ == 760
    # Without the column, it is a file that somebody has tagged.
    for row in rows:
        del row["predicted"]
    assert "unchanged" not in works("update", "t.labelrace", write("plain.csv", rows))


@pytest.mark.usefixtures("trained")
def test_a_row_that_somebody_has_looked_at_says_true_or_false(works, refuses):
    works("predict", "t.labelrace", write("new.csv", untagged(tickets(5, seed=1))), "-o", "out.csv")
    rows = read("out.csv")
    rows[2]["review"] = "seen"
    said = refuses("update", "t.labelrace", write("out.csv", rows))
    assert "The column 'review' must hold true or false" in said
    assert "got 'seen'" in said


def test_columns_that_are_called_like_those_that_are_written(works):
    """A table of reviews: the column is learned, and what predict writes beside it is not."""
    rows = [{"review": row["body"], "tags": row["tags"]} for row in tickets(200)]
    works("train", write("old.csv", rows), "--tags", "tags", "-o", "t.labelrace", "--untagged", "none")
    works(
        "predict",
        "t.labelrace",
        write("new.csv", untagged([*rows[:20], {"review": "asdf", "tags": ""}])),
        "-o",
        "o.csv",
    )
    names = ["review", "tags", "predicted_tags", "predicted_probabilities", "predicted_review"]
    out = read("o.csv")
    assert list(out[0]) == names
    out[0]["tags"] = "kettle"
    said = works("update", "t.labelrace", write("edited.csv", out))
    assert "19 rows had their predicted tags unchanged" in said
    tagger = labelrace.load("t.labelrace")
    assert [column.name for column in tagger.columns_] == ["review"]
    assert tagger.n_rows_ + tagger.n_known_ == 201


@pytest.mark.usefixtures("trained")
def test_a_row_that_cannot_be_read_in_a_file_that_was_predicted(works, command):
    works("predict", "t.labelrace", write("new.csv", untagged(tickets(60, seed=1))), "-o", "out.csv")
    write("out.csv", [{**row, "tags": "kettle"} for row in read("out.csv")])
    with open("out.csv", "a") as file:
        file.write("T-5,too,few\n")
    ended = command("update", "t.labelrace", "out.csv")
    assert ended.status == 1
    assert "out.csv, line 62" in ended.err
    assert labelrace.load("t.labelrace").n_rows_ == 660


@pytest.mark.usefixtures("trained")
def test_rows_that_were_learned_are_no_test_of_quality(command):
    write("mixed.csv", tickets(10) + tickets(30, seed=5))
    told = command("test", "t.labelrace", "mixed.csv")
    assert told.err.startswith("Warning: 10 rows of these had been learned")
    assert json.loads(command("test", "t.labelrace", "mixed.csv", "--json").out)["rows_learned_before"] == 10
    assert "10 rows of these had been learned" in command("compare", "t.labelrace", "t.labelrace", "mixed.csv").err
    write("later.csv", tickets(30, seed=5))
    assert command("test", "t.labelrace", "later.csv").err == ""


def test_no_tag_applies_is_said_and_learned(works):
    rows = [{"nr": row["nr"], "body": row["body"], "tags": row["tags"]} for row in tickets(300)]
    nothing = [{"nr": f"N-{i}", "body": f"holiday greetings season {i}", "tags": ""} for i in range(200)]
    mixed = [row for pair in zip(rows, nothing, strict=False) for row in pair]
    columns = [{**row, **{tag: int(tag in row["tags"]) for tag in TOPICS}} for row in mixed]
    write("old.csv", untagged(columns))
    works("train", "old.csv", "--tags", "oven,toaster,bill", "-o", "t.labelrace")
    bodies = ["oven hot door", "holiday greetings season", "asdf"]
    write("new.csv", [{"nr": f"T-{i}", "body": body} for i, body in enumerate(bodies, 7)])
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv")
    known, none, strange = out = read("out.csv")
    assert [known[tag] for tag in TOPICS] == ["1", "0", "0"]
    assert ([none[tag] for tag in TOPICS], none["review"], none["predicted"]) == (["0", "0", "0"], "false", "[]")
    assert ([strange[tag] for tag in TOPICS], strange["review"], strange["predicted"]) == (["", "", ""], "true", "")
    strange |= dict.fromkeys(TOPICS, "0")
    known["oven"] = "0"
    said = works("update", "t.labelrace", write("edited.csv", out))
    assert "Learned 2 more rows" in said
    assert "1 row had its predicted tags unchanged and was skipped; --confirmed learns it." in said
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--min-probability", 1)
    assert [row["review"] for row in read("out.csv")] == ["true", "false", "false"]


def test_the_example_f1_of_nothing_is_1_everywhere(works):
    rows = [row | {"tags": ""} if number % 2 else row for number, row in enumerate(tickets(300))]
    settings = ("--untagged", "none", "--separator", ";", "--drop", "code,by,cost")
    given = works("train", write("old.csv", rows), "--tags", "tags", *settings, "-o", "t.labelrace")
    nothing = write("nothing.csv", [{"nr": "X", "body": "asdf", "tags": ""}])
    told = works("test", "t.labelrace", nothing)
    assert json.loads(works("test", "t.labelrace", nothing, "--json"))["example_f1"] == 1
    convention = "The example F1 of a row without tags for which none is predicted is 1."
    for text in (given, told, works("update", "t.labelrace", write("more.csv", tickets(50, seed=4)))):
        assert convention in " ".join(text.split())


@pytest.mark.usefixtures("trained")
def test_a_training_that_fails_does_not_replace_a_good_tagger(works, command):
    with open("t.labelrace", "rb") as file:
        before = file.read()
    write("bad.csv", tickets(60))
    with open("bad.csv", "a") as file:
        file.write("T-5,too,few\n")
    ended = command("train", "bad.csv", "--tags", "tags", "-o", "t.labelrace", "--force")
    assert ended.status == 1
    assert "60 rows were learned and saved to t.labelrace.partial. t.labelrace is as it was." in ended.err
    with open("t.labelrace", "rb") as file:
        assert file.read() == before
    assert labelrace.load("t.labelrace.partial").n_rows_ == 60
    works("train", write("good.csv", tickets(60)), "--tags", "tags", "-o", "t.labelrace", "--force")
    assert labelrace.load("t.labelrace").n_rows_ == 60


@pytest.mark.usefixtures("trained")
def test_options_for_reading_are_followed_or_refused(works, refuses, model_file, files):
    new = write("new.csv", untagged(tickets(3)))
    for options, named in (
        (("--skip-bad-rows",), "--skip-bad-rows"),
        (("--encoding", "cp1252", "--delimiter", ";"), "--delimiter and --encoding"),
        (("--sheet", "May"), "--sheet"),
    ):
        assert f"got {named}: leave" in refuses("predict", "t.labelrace", new, "--workers", 2, *options)
        assert f"{named} must be for a tagger" in refuses("predict", model_file, files(".csv"), *options)
        said = refuses("train", "old.csv", "--tags", "tags", "-o", "u.labelrace", "--workers", 2, *options)
        assert f"got {named}: leave" in said
    for delimiter in (";;", "", '"', "\n"):
        assert "--delimiter must be one character" in refuses("predict", "t.labelrace", new, "--delimiter", delimiter)
        assert "--delimiter must be one character" in refuses("update", "t.labelrace", "-", "--delimiter", delimiter)
    with open("new.tsv", "w") as file:
        file.write("nr\tcode\tby\tcost\tbody\nT-7\t7\tx\t5\tmy oven door\n")
    for delimiter in ("tab", "\\t", "\t"):
        assert json.loads(works("predict", "t.labelrace", "new.tsv", "--delimiter", delimiter))["nr"] == "T-7"


@pytest.mark.usefixtures("trained")
def test_no_other_file_is_replaced_without_asking(works, refuses):
    write("more.csv", tickets(20, seed=1))
    write("other.labelrace", tickets(2))
    before = open_bytes("other.labelrace")
    for words in (
        ("update", "t.labelrace", "more.csv"),
        ("tags", "rename", "t.labelrace", "oven", "stove"),
        ("tags", "merge", "t.labelrace", "oven", "--into", "bill"),
        ("tags", "drop", "t.labelrace", "oven"),
        ("tags", "add", "t.labelrace", "lamp"),
    ):
        said = refuses(*words, "-o", "other.labelrace")
        assert said == "other.labelrace exists: name another file, add --force to replace it."
        assert open_bytes("other.labelrace") == before
    assert works(*words, "-o", "other.labelrace", "--force") == "Added or described 1 tag; saved to other.labelrace.\n"
    assert works(*words, "-o", "t.labelrace") == "Added or described 1 tag; saved to t.labelrace.\n"


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(("sign", "name"), [(",", ","), (" | ", "|"), (" ", "space")])
def test_another_separator_is_noticed_before_anything_is_learned(works, refuses, sign, name):
    before = open_bytes("t.labelrace")
    write("more.csv", [{**row, "tags": row["tags"].replace(";", sign)} for row in tickets(30, seed=2)])
    said = refuses("update", "t.labelrace", "more.csv")
    assert "The tags must be separated by ';', as those learned before" in said
    assert f"got '{name}': give --separator '{name}'" in said
    assert open_bytes("t.labelrace") == before
    works("update", "t.labelrace", "more.csv", "--separator", name)
    assert labelrace.load("t.labelrace").tags_.keys() == TOPICS.keys()


def test_a_tagger_with_rows_that_wait_is_tested_updated_and_renamed(works):
    write("old.csv", tickets(300))
    tagger = labelrace.Tagger("tags", id=["nr"], drop=["code"], random_state=0).partial_fit("old.csv")
    delayed = labelrace.DelayedLabels(tagger)
    delayed.predict(untagged(tickets(3, seed=9)))
    delayed.save("d.labelrace")
    write("later.csv", tickets(50, seed=2))
    assert json.loads(works("test", "d.labelrace", "later.csv", "--json"))["rows"] == 50
    works("update", "d.labelrace", "later.csv")
    works("tags", "rename", "d.labelrace", "oven", "stove")
    found = labelrace.load("d.labelrace")
    assert (len(found.pending_ids), found.model.n_rows_, set(found.model.tags_)) == (
        3,
        350,
        {"stove", "toaster", "bill"},
    )


def test_what_is_listed_and_said(works, refuses):
    rows = [{**row, "tags": f"{row['tags']};t{number % 30}"} for number, row in enumerate(tickets(300))]
    works("train", write("old.csv", rows), "--tags", "tags", "-o", "t.labelrace")
    assert "  and 13 more, see --all" in works("inspect", "t.labelrace")
    assert "more, see" not in works("inspect", "t.labelrace", "--all")
    assert "add --tags COLUMN" in refuses("train", "old.csv", "-o", "x.labelrace")
    with pytest.raises(ValueError, match="must have rows, with the column 'tags', got none"):
        labelrace.Tagger("tags").partial_fit([])
    with open("long.csv", "w") as file:
        file.write("nr,body,tags\nT-1,a,b,c,d\n")
    assert "but the header has 3 columns; correct the row. " in refuses("update", "t.labelrace", "long.csv")


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("delimiter", "encoding", "has_mark"),
    [(";", "utf-8", False), (";", "utf-8-sig", True), (",", "cp1252", True), ("\t", "utf-16", True)],
)
def test_csv_is_written_as_it_was_read(command, delimiter, encoding, has_mark):
    with open("new.csv", "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([["nr", "code", "by", "cost", "body"], ["T-7", "1", "Zoë", "5", "oven hot door"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is no UTF-8 with commas
        assert command("predict", "t.labelrace", "new.csv", "-o", "out.csv").status == 0
    text = open_bytes("out.csv")
    assert text.startswith(b"\xef\xbb\xbf") == has_mark
    header, row = csv.reader(text.decode("utf-8-sig").splitlines(), delimiter=delimiter)
    assert dict(zip(header, row, strict=True))["by"] == "Zoë"


@pytest.mark.usefixtures("trained")
def test_all_rows_of_a_corrected_file_are_a_test(works):
    """Those that somebody has corrected alone would be those that the tagger got wrong."""
    write("new.csv", untagged(tickets(60, seed=1)))
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv")
    rows = read("out.csv")
    rows[3]["tags"] = "kettle"
    write("out.csv", rows)
    assert "60 rows" in works("test", "t.labelrace", "out.csv")
