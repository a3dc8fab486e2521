"""Options of update and of tags add, through the command."""

import csv

import labelrace


def write(path, separator, n=60, first=0):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body", "tags"])
        for i in range(first, first + n):
            writer.writerow([f"T-{i}", f"the oven is hot {i}", separator.join(["oven", "heat"][: 1 + i % 2])])


def test_another_separator_in_a_later_file(works, command):
    write("old.csv", ";")
    write("new.csv", ", ", first=100)
    works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace")
    works("update", "t.labelrace", "new.csv", "--separator", ",")
    tagger = labelrace.load("t.labelrace")
    assert tagger.tags_.keys() == {"oven", "heat"}
    assert tagger.separator_ == ";"


def test_a_table_of_tags_that_is_not_there_is_no_tag(works, command):
    write("old.csv", ";")
    works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace")
    for names in (["none.csv"], ["none.csv", "fuse"]):
        status, _, told = command("tags", "add", "t.labelrace", *names)
        assert status == 1
        assert "none.csv" in told
    works("tags", "add", "t.labelrace", "fuse")
    with open("row.jsonl", "w") as file:
        file.write('{"id": "X", "body": "the oven"}')
    assert "fuse (probability 0.00)" in works("explain", "t.labelrace", "row.jsonl", "--tag", "fuse")


def test_one_batch_is_not_tested(works, command):
    write("old.csv", ";")
    assert "No row was tested" in works("train", "old.csv", "--tags", "tags", "-o", "t.labelrace")
    _, _, told = command("predict", "t.labelrace", "old.csv", "-o", "out.csv", "--precision", "0.9")
    assert "was never tested" in told
