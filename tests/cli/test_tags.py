"""The command on tables with tags."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest

import labelrace
from labelrace.tables.column_kinds import KINDS_BY_PARAMETER

TOPICS = {"oven": "oven hot door bake", "toaster": "toaster bread slice crumb", "bill": "invoice price pay money"}


def tickets(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        tags = rng.choice(list(TOPICS), rng.integers(1, 3), replace=False)
        words = [word for tag in tags for word in rng.choice(TOPICS[tag].split(), 4)]
        rows.append({"nr": f"T-{i + 100 * seed}", "body": f"my {' '.join(words)} please", "tags": ";".join(tags)})
    return rows


def write(path, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def without_tags(rows):
    return [{name: row[name] for name in row if name != "tags"} for row in rows]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def trained(works):
    write("old.csv", tickets(800))
    return works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace", "--batch-size", 100)


def test_train_says_what_it_found_and_how_good_it_is(trained):
    lines = trained.splitlines()
    assert lines[:3] == ["nr    identifier, left out", "body  text", "tags  tags, separated by ';'"]
    assert lines[3] == "race learned 800 rows with 3 tags: t.labelrace"
    tagger = labelrace.load("t.labelrace")
    assert lines[4] == (
        "Prequential quality (each row was predicted before it was learned): "
        f"example F1 {tagger.quality_['example_f1']:.3f}, micro F1 {tagger.quality_['micro_f1']:.3f} (700 rows)."
    )
    assert lines[5].startswith("Predicted well: ")
    assert all(f"{tag} (F1 0.9" in lines[5] or f"{tag} (F1 1.0" in lines[5] for tag in TOPICS)


def test_the_command_learns_as_python_does(trained):
    tagger = labelrace.Tagger(tags="tags", batch_size=100, random_state=0).fit(tickets(800))
    new = tickets(50, seed=1)
    assert labelrace.load("t.labelrace").predict_top(new, 3) == tagger.predict_top(new, 3)


@pytest.mark.usefixtures("trained")
def test_predict_keeps_ids_and_gives_tags_and_probabilities(works):
    new = tickets(60, seed=1)
    write("new.csv", without_tags(new))
    works("predict", "t.labelrace", "new.csv", "-o", "out.csv", "--batch-size", 7)
    out = read("out.csv")
    assert list(out[0]) == ["nr", "body", "tags", "predicted", "probabilities", "review"]
    assert [row["nr"] for row in out] == [row["nr"] for row in new]
    tagger = labelrace.load("t.labelrace")
    assert [set(row["tags"].split(";")) for row in out] == tagger.predict(new)
    likely = tagger.predict_proba(new)
    for row, known in zip(out, likely, strict=True):
        told = dict(zip(row["tags"].split(";"), map(float, row["probabilities"].split(";")), strict=True))
        assert told == pytest.approx({tag: known[tag] for tag in told}, rel=1e-3)
    works("predict", "t.labelrace", "new.csv", "-o", "out.jsonl")
    with open("out.jsonl") as file:
        assert [set(json.loads(line)["tags"]) for line in file] == tagger.predict(new)
    top = [json.loads(line) for line in works("predict", "t.labelrace", "new.csv", "--top", 2).splitlines()]
    assert [set(row["tags"]) for row in top] == tagger.predict(new)
    assert [row["top"] for row in top] == [[tag for tag, _ in row] for row in tagger.predict_top(new, 2)]


@pytest.mark.usefixtures("trained")
def test_standard_input_by_the_names_of_columns(works, command):
    out = works("predict", "t.labelrace", "-", stdin='{"body": "my oven door", "nr": "T-7"}\n')
    assert json.loads(out)["tags"] == ["oven"]
    out = works("predict", "t.labelrace", "-", stdin="body,nr\nmy toaster bread,T-8\n")
    expected = {"body": "my toaster bread", "nr": "T-8", "tags": ["toaster"], "predicted": "toaster", "review": False}
    assert {name: cell for name, cell in json.loads(out).items() if name != "probabilities"} == expected
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = command("predict", "t.labelrace", "-", stdin='{"body": "my oven door", "seen": 1}\n')
    said = "Warning: Columns that are new are ignored: 'seen'.\n1 row: 1 with tags, 0 for review.\n"
    assert (ended.status, ended.err) == (0, said)
    assert json.loads(ended.out)["seen"] == 1


@pytest.mark.usefixtures("trained")
def test_update_replaces_the_file_whole_or_not_at_all(works, refuses):
    write("more.csv", [{**row, "tags": "kettle", "body": "my kettle boils water"} for row in tickets(50, seed=2)])
    out = works("update", "t.labelrace", "more.csv")
    assert out.splitlines()[0] == "Learned 50 more rows, 850 in all, with 4 tags: t.labelrace"
    tagger = labelrace.load("t.labelrace")
    assert tagger.predict_top([{"nr": "1", "body": "kettle boils"}], 1)[0][0][0] == "kettle"
    with open("t.labelrace", "rb") as file:
        before = file.read()
    write("new.csv", without_tags(tickets(5)))
    assert "must have the column 'tags'" in refuses("update", "t.labelrace", "new.csv")
    with open("broken.csv", "w") as file:
        file.write("nr,body,tags\nT-1,a cell too few\n")
    assert "Nothing was learned, and no file was written." in refuses("update", "t.labelrace", "broken.csv")
    write("untagged.csv", [{**row, "tags": ""} for row in tickets(5)])
    assert "no row of untagged.csv has tags" in refuses("update", "t.labelrace", "untagged.csv")
    with open("t.labelrace", "rb") as file:
        assert file.read() == before


@pytest.mark.usefixtures("trained")
def test_explain_and_inspect(works, refuses):
    with open("row.json", "w") as file:
        json.dump({"nr": "T-7", "body": "my oven door"}, file)
    out = works("explain", "t.labelrace", "row.json")
    assert out.startswith("oven (probability ")
    assert "body: oven" in out
    told = json.loads(works("explain", "t.labelrace", "row.json", "--json", "--tag", "bill"))
    assert list(told) == ["bill"]
    assert "must have one row, got more" in refuses("explain", "t.labelrace", write("two.csv", tickets(3)))
    out = works("inspect", "t.labelrace")
    assert "  body: text\n" in out
    assert "Rows learned: 800" in out
    told = json.loads(works("inspect", "t.labelrace", "--json"))
    assert {tag: one["rows"] for tag, one in told["tags"].items()} == {
        tag: sum(tag in row["tags"] for row in tickets(800)) for tag in TOPICS
    }


def test_columns_can_be_said(works, refuses):
    rows = [{**row, "code": i % 7, "on": row["tags"], "extra": "x y z"} for i, row in enumerate(tickets(200))]
    write("old.txt.csv", rows, delimiter=";")
    options = ("--category", "code", "--drop", "on,extra", "--separator", ";", "--delimiter", ";", "--text", "body")
    out = works("train", "old.txt.csv", "--tags", "tags", "-o", "t", *options)
    assert "code   category" in out
    assert "on     left out" in out
    assert "no column 'bdoy', which text= names" in refuses(
        "train", "old.txt.csv", "--tags", "tags", "-o", "u", "--text", "bdoy", "--delimiter", ";"
    )
    said = refuses("train", "old.txt.csv", "-o", "t", "--text", "body")
    assert "need --tags" in said
    assert all(f"--{name}" in said for name in KINDS_BY_PARAMETER)


def test_rows_without_tags_are_unknown_or_none(works, refuses):
    rows = tickets(300)
    write("some.csv", [{**row, "tags": row["tags"] if number % 3 else ""} for number, row in enumerate(rows)])
    settings = ("train", "some.csv", "--tags", "tags", "--separator", ";", "--batch-size", 100)
    said = works(*settings, "-o", "unknown.labelrace")
    assert "Skipped 100 rows without tags." in said
    assert "learned 200 rows" in said
    said = works(*settings, "-o", "none.labelrace", "--untagged", "none")
    assert "not learned" not in said
    assert "learned 300 rows" in said
    assert "untagged must be" in refuses(*settings, "-o", "x.labelrace", "--untagged", "perhaps")


def test_run_compares_models_on_a_table(command):
    write("old.csv", tickets(300))
    ended = command(
        "run", "old.csv", "--tags", "tags", "-m", "race", "-m", "majority", "--batch-size", 100, "--jobs", 1, "--json"
    )
    assert ended.status == 0
    assert "body: text" in ended.err
    summary = json.loads(ended.out)
    assert summary["manifest"]["source"]["rows"] == 300
    assert set(summary["manifest"]["source"]["label_names"]) == TOPICS.keys()


def test_what_is_no_tagger(works, refuses):
    write("old.csv", tickets(100))
    assert "must have the column 'labels'" in refuses("train", "old.csv", "--tags", "labels", "-o", "t")
    write("untagged.csv", [{**row, "tags": ""} for row in tickets(5)])
    assert "no rows with tags" in refuses("train", "untagged.csv", "--tags", "tags", "-o", "t")
    labelrace.BinaryRelevanceClassifier().fit(np.eye(3), np.eye(3)).save("m")
    assert "m must be a tagger" in refuses("update", "m", "old.csv")
    assert works("inspect", "m").startswith("BinaryRelevanceClassifier, ")


def test_standard_input_may_hold_cells_as_long_as_those_of_files(trained, works):
    cell = "please " * 20_000 + "invoice price pay money"
    out = works("predict", "t.labelrace", "-", stdin=f"nr,body\nT-1,{cell}\n")
    assert json.loads(out)["nr"] == "T-1"


def test_a_key_that_comes_twice_in_standard_input_is_an_error(trained, refuses):
    err = refuses("predict", "t.labelrace", "-", stdin='{"body": "oven", "body": "invoice"}\n')
    assert "standard input, line 1: the key 'body' is there twice in an object; keep one of them." in err


def test_tags_are_called_not_predicted_well_only_where_they_are_not(works):
    rng = np.random.default_rng(0)
    rows = [{**row, "tags": row["tags"] + ";luck" * int(rng.integers(4) == 0)} for row in tickets(400)]
    write("luck.csv", rows)
    out = works("train", "luck.csv", "--tags", "tags", "-o", "t.labelrace", "--batch-size", 100).splitlines()
    assert [line.partition(" (")[0] for line in out if line.startswith("Not predicted")] == ["Not predicted well: luck"]
    assert "luck" not in next(line for line in out if line.startswith("Predicted well"))


def test_a_json_file_of_one_object_or_a_list_is_a_table(trained, works, refuses):
    rows = without_tags(tickets(3, seed=5))
    for name, what in (("one.json", rows[0]), ("all.json", rows), ("lines.jsonl", rows[0])):
        with open(name, "w") as file:
            json.dump(what, file)
    assert works("predict", "t.labelrace", "one.json") == works("predict", "t.labelrace", "lines.jsonl")
    assert [json.loads(line)["nr"] for line in works("predict", "t.labelrace", "all.json").splitlines()] == [
        row["nr"] for row in rows
    ]
    with open("lines.json", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    assert "on each line is called .jsonl" in refuses("predict", "t.labelrace", "lines.json")


def test_it_is_said_where_rows_cannot_be_told_apart(works, trained):
    rows = [
        {"size": number % 9, "hue": "red" if number % 2 else "blue", "tags": "a;b" if number % 3 else "c"}
        for number in range(200)
    ]
    said = "No column tells rows apart, neither an identifier nor texts: a row that is learned again counts again."
    assert said in works("train", write("sizes.csv", rows), "--tags", "tags", "-o", "s.labelrace")
    assert said not in trained
