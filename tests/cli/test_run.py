"""``labelrace run`` and ``labelrace report``."""

import json

import pytest
from helpers.records import lasting

from labelrace.evaluation import read_run, run

MODELS = ("-m", "race-cls-fixed", "-m", "negative")


def strict(text):
    """Read JSON as the standard has it: without NaN."""

    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def test_table_page_and_records(works, files, data, tmp_path):
    out = works("run", files(".arff"), *MODELS, "--batch-size", 30, "--runs", 2, "--jobs", 1, "--out", "out")
    assert "race-cls-fixed" in out
    assert "Hamming" in out
    assert out.endswith("Report: out/report.html\n")
    assert "race-cls-fixed" in (tmp_path / "out" / "report.html").read_text()
    manifest, records = read_run("out")
    assert manifest["source"]["rows"] == 120
    assert sum(one["kind"] == "done" for one in records) == 4
    _, expected = run(data, MODELS[1::2], batch_size=30, runs=2, out="python", jobs=1)
    assert lasting(records) == lasting(expected)


def test_json_is_all_there_is_on_standard_output(works, files):
    out = works("run", files(".csv"), *MODELS, "--batch-size", 30, "--jobs", 1, "--measures", "all", "--json")
    summary = strict(out)
    assert [model["name"] for model in summary["models"]] == ["race-cls-fixed", "negative"]


def test_a_model_that_fails_is_told_and_the_others_go_on(command, works, tmp_path):
    (tmp_path / "holes.csv").write_text("a,b,y\n" + "1,,0\n2,3,1\n" * 30)
    settings = ("run", "holes.csv", "--labels", 1, "--jobs", 1, "--batch-size", 20, "-m", "race-reg-fixed")
    settings += ("--set", "race-reg-fixed.learner=ridge")
    status, out, err = command(*settings, "-m", "obr", "--json", "--out", "out")
    assert status == 3
    assert err == "race-reg-fixed, run 1: ValueError: Input X contains NaN.\n"
    assert "race-reg-fixed" in " ".join(strict(out)["notes"])
    assert "Failed: race-reg-fixed" in works("report", "out")
    status, out, _ = command(*settings, "--out", "all failed")
    assert status == 3
    assert "Failed: race-reg-fixed" in out


@pytest.mark.parametrize("rows", [0, 1])
def test_a_stream_with_nothing_to_test(command, tmp_path, rows):
    (tmp_path / "short.csv").write_text("a,b,y\n" + "1,2,0\n" * rows)
    status, out, err = command("run", "short.csv", "--labels", 1, "-m", "negative", "--jobs", 1, "--json")
    assert "Traceback" not in err
    if status == 0:
        strict(out)
    else:
        assert (status, err.count("\n")) == (1, 1)


@pytest.mark.filterwarnings("always:.*cut off")
def test_resuming_a_run_that_was_cut_off(command, works, files, tmp_path):
    settings = ("run", files(".arff"), *MODELS, "--batch-size", 30, "--jobs", 1)
    works(*settings, "--out", "complete")
    complete = read_run("complete")[1]
    works(*settings, "--out", "cut")
    records = tmp_path / "cut" / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    for index in (1, 4, 7):
        records.write_bytes(b"".join(lines[:index]) + lines[index][:20])
        (tmp_path / "cut" / "report.html").unlink(missing_ok=True)
        status, _, err = command("report", "cut", "--out", "partial")
        assert (status, err.count("\n")) == (0, 1)
        assert "the last line was cut off while it was written" in err
        works(*settings, "--out", "cut", "--resume")
        assert lasting(read_run("cut")[1]) == lasting(complete)
        assert (tmp_path / "cut" / "report.html").exists()


def test_resuming_where_nothing_is(works, files):
    works("run", files(".arff"), "-m", "negative", "--batch-size", 30, "--jobs", 1, "--out", "new", "--resume")
    assert read_run("new")[1][-1]["kind"] == "done"


def test_folders_are_new_each_time(works, files, tmp_path):
    for number in (1, 2):
        out = works("run", files(".svm"), "-m", "negative", "--jobs", 1, "--batch-size", 50)
        assert f"labelrace-runs/toy-{number}/report.html" in out
    assert sorted(path.name for path in (tmp_path / "labelrace-runs").iterdir()) == ["toy-1", "toy-2"]


def test_holdout_has_all_models_unless_some_are_named(works, files):
    from labelrace import model_names

    out = works("run", files(".arff"), "--protocol", "holdout", "--batch-size", 40, "--jobs", 1, "--json", "--all")
    assert sorted(model["name"] for model in json.loads(out)["models"]) == sorted(model_names())


@pytest.mark.parametrize("labels", ["2", "y,z", "y_*", "toy.xml"])
def test_ways_to_tell_the_labels(works, tmp_path, labels):
    names = ("y_1", "y_2") if labels == "y_*" else ("y", "z")
    header = ["@relation toy", "@attribute a numeric", *(f"@attribute {name} {{0,1}}" for name in names), "@data"]
    rows = [f"{i},{i % 2},{i % 3 // 2}" for i in range(40)]
    (tmp_path / "toy.arff").write_text("\n".join(header + rows))
    (tmp_path / "toy.csv").write_text("\n".join([",".join(("a", *names)), *rows]))
    elements = "".join(f'<label name="{name}"></label>' for name in names)
    (tmp_path / "toy.xml").write_text(f"<labels>{elements}</labels>")
    suffix = ".csv" if labels == "y_*" else ".arff"
    works("run", f"toy{suffix}", "--labels", labels, "-m", "negative", "--batch-size", 20, "--jobs", 1, "--out", "out")
    assert read_run("out")[0]["source"]["labels"] == 2


def test_report(works, files, tmp_path):
    works("run", files(".arff"), *MODELS, "--batch-size", 30, "--jobs", 1, "--out", "out")
    out = works("report", "out", "-f", "md", "-f", "tex", "--out", "paper")
    assert sorted(path.name for path in (tmp_path / "paper").iterdir()) == ["report.md", "report.tex"]
    assert "negative" in out
    assert "paper/report.md\n" in out
