"""What train and update say of files: known rows, corrections, the quality of a file, drifts; several files."""

from __future__ import annotations

import csv
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import labelrace
from labelrace.streams.demo import demo_tickets

ROWS = [{**row, "tags": ";".join(row["tags"])} for row in demo_tickets(1500)]


def write(name, rows):
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return name


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def shown_f1(said):
    """Return each example F1 that is shown."""
    return [float(value) for value in re.findall(r"example F1 (\d\.\d+)", said)]


@pytest.mark.usefixtures("in_folder")
def test_the_same_file_three_times_does_not_raise_the_f1(works):
    [first] = shown_f1(works("train", write("old.csv", ROWS[:1000]), "--tags", "tags", "-o", "t"))
    before = labelrace.load("t").predict_proba(ROWS[1000:1010])
    for times in (1, 2):
        said = works("update", "t", "old.csv")
        assert "Learned 0 more rows, 1,000 in all" in said
        assert "1,000 rows were known, with the same tags, and skipped." in said
        assert shown_f1(said) == []
        tagger = labelrace.load("t")
        assert round(tagger.quality_["example_f1"], 3) == first
        assert tagger.n_known_ == 1000 * times
    assert tagger.predict_proba(ROWS[1000:1010]) == before


@pytest.mark.usefixtures("in_folder")
def test_corrections_are_counted_and_the_file_is_told_apart(works):
    works("train", write("old.csv", ROWS[:1000]), "--tags", "tags", "-o", "t")
    changed = [{**row, "tags": "mended"} for row in ROWS[:30]]
    # As the command writes predictions, they have columns beside the tags.
    rows = [{**row, "probabilities": "mended 0.4", "review": "True"} for row in changed + ROWS[100:200] + ROWS[1000:]]
    said = works("update", "t", write("edited.csv", rows))
    assert "Learned 530 more rows, 1,530 in all" in said
    assert "100 rows were known, with the same tags, and skipped." in said
    assert "30 rows were known with other tags: learned as corrections, not tested." in said
    assert "new are ignored" not in said
    tagger = labelrace.load("t")
    assert {"probabilities", "review"}.isdisjoint(column.name for column in tagger.columns_)
    alone = labelrace.Tagger("tags", random_state=0)
    alone.prequential_fit(ROWS[:1000])
    for batch in (rows[:500], rows[500:]):
        alone.prequential_fit([{name: row[name] for name in ROWS[0]} for row in batch])
    quality = tagger.quality_
    assert quality == pytest.approx(alone.quality_)
    assert quality["rows"] == 900 + 500
    [of_file, whole] = shown_f1(said)
    assert "This file: example F1" in said
    assert "(500 rows); since the beginning: example F1" in said
    assert "each row was predicted before it was learned" in said
    assert whole == round(quality["example_f1"], 3) != of_file
    # Precision and recall of tags are of the file, too.
    tag, f1, precision, recall = re.search(
        r"(\w+) \(F1 (\d\.\d+), precision (\d\.\d+), recall (\d\.\d+)\)", said
    ).groups()
    assert float(f1) == pytest.approx(2 / (1 / float(precision) + 1 / float(recall)), abs=0.01)
    assert f"  {tag}: " in works("inspect", "t")


@pytest.mark.usefixtures("in_folder")
def test_several_files_and_patterns_are_one_table(works, refuses):
    Path("months").mkdir()
    write("all.csv", ROWS[:1100])
    for number, start in enumerate((0, 300, 700)):
        write(f"months/{number}.csv", ROWS[start : (300, 700, 1100)[number]])
    options = ("--tags", "tags", "--batch-size", 100)
    said = works("train", "months/0.csv", "months/1.csv", "months/2.csv", *options, "-o", "listed")
    assert "race learned 1,100 rows with" in said
    works("train", "months/*.csv", *options, "-o", "matched")
    works("train", "all.csv", *options, "-o", "whole")
    assert Path("listed").read_bytes() == Path("matched").read_bytes() == Path("whole").read_bytes()
    said = works("update", "listed", "months/*.csv", write("new.csv", ROWS[1100:1200]))
    assert "1,100 rows were known" in said
    assert "These files: " in said
    assert "there is no file" in refuses("train", "all.csv", "no.csv", *options, "-o", "t").lower()
    assert "'no-*.csv' matches" in refuses("train", "no-*.csv", *options, "-o", "t")
    assert "only source" in refuses("update", "whole", "-", "all.csv")
    assert "--tags, or be learned by --workers, got 2" in refuses("train", "all.csv", "new.csv", "-o", "t")
    assert not Path("t").exists()


@pytest.mark.usefixtures("in_folder")
def test_an_error_names_the_file_and_what_came_before_is_saved(command):
    write("one.csv", ROWS[:50])
    write("two.csv", [{**row, "labels": row["tags"]} for row in ROWS[50:60]])
    Path("two.csv").write_text(Path("two.csv").read_text().replace(",tags,", ",tagged,"))
    status, _, told = command("train", "one.csv", "two.csv", "--tags", "tags", "-o", "t")
    assert status == 1
    assert "two.csv: The table must have the column 'tags'" in told
    assert "50 rows were learned and saved to" in told
    assert labelrace.load("t").n_rows_ == 50


@pytest.mark.usefixtures("in_folder")
def test_train_asks_before_it_replaces_a_file(works, refuses):
    options = ("train", write("old.csv", ROWS[:50]), "--tags", "tags", "-o", "t")
    works(*options)
    before = Path("t").read_bytes()
    assert refuses(*options, "--seed", 1) == (
        "t exists: name another file, add --force to replace it, or use 'labelrace update'."
    )
    assert Path("t").read_bytes() == before
    works(*options, "--seed", 1, "--force")
    assert Path("t").read_bytes() != before


@pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX's")
@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("y", 0)])
@pytest.mark.usefixtures("in_folder")
def test_train_asks_on_a_terminal(works, answer, status):
    options = ("train", write("old.csv", ROWS[:50]), "--tags", "tags", "-o", "t")
    works(*options)
    before = Path("t").read_bytes()
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "labelrace", *options, "--seed", "1"]
    process = subprocess.Popen(program, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    told = b""
    while b"Replace it?" not in told:
        told += os.read(ours, 1000)
    os.write(ours, f"{answer}\n".encode())
    assert process.wait(60) == status
    os.close(ours)
    assert (Path("t").read_bytes() == before) == bool(status)


@pytest.mark.usefixtures("in_folder")
def test_tags_may_be_known_beforehand(works, refuses):
    Path("tags.csv").write_text("tag,synonyms\nwarranty,guarantee\nlogin,sign in\n")
    works("train", write("old.csv", ROWS[:50]), "--tags", "tags", "-o", "t", "--vocabulary", "tags.csv")
    assert labelrace.load("t").state.details["warranty"].synonyms == ("guarantee",)
    Path("more.csv").write_text("tag,description\nrefund,money back\n")
    works("update", "t", write("new.csv", ROWS[50:60]), "--vocabulary", "more.csv")
    assert labelrace.load("t").state.details.keys() == {"warranty", "login", "refund"}
    assert "--vocabulary needs --tags" in refuses("train", "old.csv", "-o", "u", "--vocabulary", "tags.csv")
    assert "no.csv" in refuses("train", "old.csv", "--tags", "tags", "-o", "u", "--vocabulary", "no.csv")
    Path("wrong.csv").write_text("name\nrefund\n")
    assert "'tag'" in refuses("update", "t", "new.csv", "--vocabulary", "wrong.csv")


@pytest.mark.usefixtures("in_folder")
def test_a_drift_is_said(works):
    words = [f"word{number}" for number in range(12)]

    def table(name, shift):
        rows = [
            {"nr": f"{name}-{row}", "text": f"{words[row % 12]} and {words[row * 5 % 12]} in {row}", "tags": ""}
            for row in range(3000)
        ]
        for number, row in enumerate(rows):
            row["tags"] = f"tag{(number + shift) % 12}"
        return write(f"{name}.csv", rows)

    said = works("train", table("before", 0), "--tags", "tags", "--separator", ";", "-o", "t")
    assert "drift" not in said.lower()
    said = works("update", "t", table("after", 5))
    assert ("A drift was found" in said) == (labelrace.load("t").model_.n_drifts_ > 0)
    assert re.search(r"A drift was found: rows have changed|Maybe a drift", said)
