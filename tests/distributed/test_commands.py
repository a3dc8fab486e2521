"""The command in shares: one word for processes, files in, a model out."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import parquet
from typer.testing import CliRunner

import labelrace
from labelrace.cli.main import app
from labelrace.distributed import fitting
from labelrace.streams.demo import demo_tickets


def test_train_and_predict_on_a_scheduler(client, tmp_path):
    rows = demo_tickets()[:1200]
    for index in range(2):
        table = pa.Table.from_pylist(rows[600 * index : 600 * (index + 1)])
        parquet.write_table(table, tmp_path / f"x-{index}.parquet", row_group_size=200)
    address, source, out = client.scheduler.address, str(tmp_path / "x-*.parquet"), tmp_path / "m.labelrace"
    settings = ("--tags", "tags", "-o", str(out), "--scheduler", address)
    result = CliRunner().invoke(app, ["train", source, *settings], catch_exceptions=False)
    assert re.search(r"race learned 1200 rows in \d rounds:", result.output)
    tagger = labelrace.load(out)
    assert tagger.n_rows_ == 1200
    predicted = tmp_path / "p.jsonl"
    given = ["predict", str(out), source, "-o", str(predicted), "--scheduler", address]
    assert CliRunner().invoke(app, given, catch_exceptions=False).exit_code == 0
    lines = [json.loads(line) for line in predicted.read_text().splitlines()]
    assert [set(line["tags"]) for line in lines] == tagger.predict(rows)


def test_ctrl_c_writes_what_was_merged(client, tmp_path, monkeypatch):
    rows = demo_tickets()[:3000]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=25)

    wait_for, merged = fitting.wait_for, []

    @contextmanager
    def counting(on_progress):
        yield merged.append

    def pressed(*given):
        """Press Ctrl-C while the second round is learned."""
        if len(merged) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return wait_for(*given)

    monkeypatch.setattr(fitting, "progress_reporter", counting)
    monkeypatch.setattr(fitting, "wait_for", pressed)
    given = ["train", str(tmp_path / "x.parquet"), "--tags", "tags", "-o", str(tmp_path / "m.labelrace")]
    result = CliRunner().invoke(app, [*given, "--scheduler", client.scheduler.address])
    assert result.exit_code != 0
    tagger = labelrace.load(tmp_path / "m.labelrace")
    assert len(merged) == 1
    assert 0 < tagger.n_rows_ < 3000
    tagger.predict(rows[:3])


def test_run_on_a_scheduler(client, tmp_path):
    stream = (
        "@relation x\n@attribute a numeric\n@attribute b {0,1}\n@attribute c {0,1}\n@data\n" + "1,0,1\n2,1,0\n" * 60
    )
    (tmp_path / "x.arff").write_text(stream)
    given = ["run", str(tmp_path / "x.arff"), "--labels", "2", "-m", "majority", "--batch-size", "40", "--json"]
    out = ["--out", str(tmp_path / "records"), "--scheduler", client.scheduler.address]
    result = CliRunner().invoke(app, [*given, *out], catch_exceptions=False)
    assert result.exit_code == 0
    assert "majority" in result.output


def test_workers_and_jobs_are_one_word():
    for command in ("run", "train", "predict"):
        help_text = CliRunner().invoke(app, [command, "--help"]).output
        assert "--workers" in help_text
        assert "--scheduler" in help_text
