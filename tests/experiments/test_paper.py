"""The whole benchmark, on tiny data: run, cut off, resumed, by function and by command."""

import csv
import json
import signal

import pytest
from typer.testing import CliRunner

import labelrace
from labelrace.base.estimator import OnlineClassifier
from labelrace.cli.bench import app
from labelrace.experiments import run_paper
from labelrace.experiments.datasets import counted
from labelrace.experiments.paper import HOLDOUT, compare, make_plan
from labelrace.experiments.plan import run_plan
from labelrace.report import summarize
from labelrace.streams.synthetic import like


def test_command_from_data_to_page_and_on(tiny, tmp_path):
    out = tmp_path / "out"
    arguments = ["paper", "--data", str(tiny), "--runs", "2", "--jobs", "1", "--out", str(out), "--table"]
    result = CliRunner().invoke(app, [*arguments, "2,4"])
    assert result.exit_code == 0, result.output
    assert "not the paper's" in result.output.replace("\n", " ")
    assert "CAL500" in result.output
    assert (out / "paper.html").is_file()
    cells = _cells(out)
    assert len(cells) == 4 * 19 + 4 * 2
    assert not [cell for cell in cells.values() if cell["verdict"]]
    assert cells["2", "race-cls-fixed", "micro_f1"]["runs"] == "2"

    again = CliRunner().invoke(app, [*arguments, "2"])
    assert isinstance(again.exception, FileExistsError)

    records = out / "runs" / "enron" / "variants" / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:20])
    more = CliRunner().invoke(app, [*arguments, "2,3,4", "--resume"])
    assert more.exit_code == 0, more.output
    resumed = _cells(out)
    assert all(resumed[key]["ours"] == cell["ours"] for key, cell in cells.items())
    # What has no randomness ran once.
    assert resumed["3", "obr", "micro_f1"]["runs"] == "1"
    assert resumed["3", "oecc", "micro_f1"]["runs"] == "2"


def test_json_is_all_of_standard_output(tiny, tmp_path):
    arguments = ["paper", "--data", str(tiny), "--runs", "1", "--jobs", "1", "--out", str(tmp_path), "--table", "4"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [cell["method"] for cell in told["cells"][:4]] == list(HOLDOUT)
    assert all(0 <= cell["ours"] <= 1 for cell in told["cells"])
    assert any("not the paper's" in note for note in told["notes"])


@pytest.mark.parametrize(("at", "kept"), [(1, False), (7, True)])
def test_after_ctrl_c_only_what_was_kept_is_claimed(tiny, tmp_path, monkeypatch, at, kept):
    # The first four predictions are those of warming up, which records nothing.
    calls, original = [], OnlineClassifier.predict

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(OnlineClassifier, "predict", interrupted)
    out = tmp_path / "out"
    arguments = ["quality", "--models", "obr", "--data", str(tiny), "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert result.stdout == ""
    assert any(file.stat().st_size for file in out.glob("runs/*/records.jsonl")) == kept
    assert ("What was finished is in" in str(result.exception)) == kept


def test_another_number_of_runs_cannot_be_resumed(tiny, tmp_path):
    run_paper(tmp_path / "out", data=[tiny], tables=["4"], runs=1, jobs=1)
    with pytest.raises(ValueError, match="runs is 1 there and 2 now"):
        run_paper(tmp_path / "out", data=[tiny], tables=["4"], runs=2, jobs=1, resume=True)


def test_progress_tells_what_runs_and_what_failed(tiny, tmp_path, monkeypatch):
    def broken(self, X, *_):
        raise ValueError("a defect")

    monkeypatch.setattr(labelrace.PLSTClassifier, "predict", broken, raising=False)
    steps = []
    run_paper(tmp_path / "out", data=[tiny], tables=["4"], runs=1, jobs=1, on_progress=steps.append)
    assert list(dict.fromkeys(step.what for step in steps)) == [f"enron, holdout: {name}, run 1" for name in HOLDOUT]
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1].total > 0
    assert {(step.what, step.error) for step in steps if step.error} == {
        ("enron, holdout: plst-meka, run 1", "ValueError: a defect")
    }


def test_synthetic_stream_is_run_and_marked(tmp_path, source):
    stream = counted(source("CAL500", like("CAL500", n_rows=160)))
    [part] = make_plan([stream], ["2"])
    [(_, manifest, records)] = run_plan([part], tmp_path, runs=1, jobs=1)
    assert (tmp_path / "runs" / "synthetic-like-CAL500" / "variants").is_dir()
    assert manifest["source"]["kind"] == "synthetic"
    summary = compare([(part, summarize(manifest, records))], [stream], ["CAL500"], ["2"])
    assert all(cell["ours"] is not None and cell["verdict"] is None for cell in summary.records["cells"])


def test_no_dataset_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match="CAL500, delicious, enron"):
        run_paper(tmp_path)


def test_sweep_without_its_datasets(tmp_path):
    (tmp_path / "mediamill.arff").touch()
    with pytest.raises(FileNotFoundError, match="CAL500 and enron"):
        run_paper(tmp_path / "out", data=[tmp_path], tables=["sweep"])


def _cells(out):
    with (out / "cells.csv").open(newline="") as file:
        return {(row["table"], row["method"], row["measure"]): row for row in csv.DictReader(file)}
