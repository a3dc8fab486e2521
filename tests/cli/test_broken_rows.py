"""What comes before a row that cannot be read or learned is learned and saved."""

import json

import pytest


def table(kind, n):
    """Return the lines of a table with n rows, and a line that cannot be read."""
    rows = [{"a": i % 7, "hue": ["red", "blue"][i % 2], "tags": ["x"] if i % 2 else ["x", "y"]} for i in range(n)]
    if kind == ".jsonl":
        return [json.dumps(row) for row in rows], '{"broken": '
    return ["a,hue,tags", *(f"{row['a']},{row['hue']},{';'.join(row['tags'])}" for row in rows)], "broken,row"


@pytest.mark.parametrize("options", [("--tags", "tags"), ("--labels", "tags")], ids=["tagger", "model"])
@pytest.mark.parametrize("kind", [".csv", ".jsonl"])
@pytest.mark.parametrize(("n", "n_good"), [(300, 289), (1200, 1149), (1200, 509), (9000, 8765)])
def test_all_rows_before_it_are_saved(works, command, tmp_path, options, kind, n, n_good):
    lines, broken = table(kind, n)
    end = n_good + (kind == ".csv")
    (tmp_path / f"good{kind}").write_text("\n".join(lines[:end]) + "\n")
    (tmp_path / f"bad{kind}").write_text("\n".join([*lines[:end], broken, *lines[end + 1 :]]) + "\n")
    works("train", f"good{kind}", *options, "-o", "good")
    status, _, told = command("train", f"bad{kind}", *options, "-o", "bad")
    assert status == 1
    assert f"bad{kind}, line {end + 1}: " in told
    assert f"{n_good:,} rows were learned and saved to" in told
    assert (tmp_path / "bad").read_bytes() == (tmp_path / "good").read_bytes()
    if "--tags" in options:
        assert f"{n_good:,} rows were learned and saved to" in command("update", "good", f"bad{kind}").err


@pytest.mark.parametrize("options", [("--tags", "tags"), ("--labels", "tags", "-m", "obr")], ids=["tagger", "model"])
def test_nothing_before_it(refuses, tmp_path, options):
    (tmp_path / "bad.csv").write_text("a,tags\nbroken\n1,x\n")
    (tmp_path / "model").write_text("old")
    told = refuses("train", "bad.csv", *options, "-o", "model", "--force")
    assert "bad.csv, line 2: the row has 1 cells" in told
    if "--tags" in options:
        assert told.endswith("Nothing was learned, and no file was written.")
    assert (tmp_path / "model").read_text() == "old"


@pytest.mark.parametrize(
    ("options", "refused"),
    [(("--tags", "x,y"), "1,2,0"), (("--labels", "x,y"), "1e300,1,0"), (("--labels", "x,y", "-m", "obr"), "1e300,1,0")],
    ids=["tagger", "race", "obr"],
)
@pytest.mark.parametrize("n_good", [1, 289, 500, 701])
def test_all_rows_before_one_that_is_refused_are_saved(works, command, tmp_path, options, refused, n_good):
    lines = ["a,x,y", *(f"{i % 7},1,{i % 2}" for i in range(1200))]
    good, rest = lines[: n_good + 1], lines[n_good + 2 :]
    (tmp_path / "good.csv").write_text("\n".join(good) + "\n")
    (tmp_path / "bad.csv").write_text("\n".join([*good, refused, *rest]) + "\n")
    works("train", "good.csv", *options, "-o", "good")
    status, _, told = command("train", "bad.csv", *options, "-o", "bad")
    assert status == 1
    assert f"Row {n_good + 1}: " in told
    rows = "1 row was" if n_good == 1 else f"{n_good:,} rows were"
    assert f"{rows} learned and saved to bad." in told
    assert (tmp_path / "bad").read_bytes() == (tmp_path / "good").read_bytes()
    if "--tags" in options:
        assert f"{rows} learned and saved to good." in command("update", "good", "bad.csv").err


def test_an_update_learns_no_row_twice_whatever_the_batches_of_its_tagger(works, command, tmp_path):
    """What is learned completely or not at all is no larger than the tagger's own batches."""
    lines = [f"{i % 7},1,{i % 2}" for i in range(300)]
    (tmp_path / "good.csv").write_text("\n".join(["a,x,y", *lines]) + "\n")
    (tmp_path / "bad.csv").write_text("\n".join(["a,x,y", *lines[:250], "1,2,0", *lines[251:]]) + "\n")
    works("train", "good.csv", "--tags", "x,y", "--batch-size", 50, "-o", "good")
    ended = command("update", "good", "bad.csv")
    assert "250 rows were learned and saved to good." in ended.err
    assert "Skipped" not in ended.out + ended.err
