"""The command in shares: one word for processes, files in, a model out."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import labelrace
from labelrace.cli.main import app
from labelrace.streams.texts import demo_tickets

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402


def test_train_and_predict_on_a_scheduler(client, tmp_path):
    rows = demo_tickets()[:1200]
    for place in range(2):
        table = pa.Table.from_pylist(rows[600 * place : 600 * (place + 1)])
        parquet.write_table(table, tmp_path / f"x-{place}.parquet", row_group_size=200)
    address, source, out = client.scheduler.address, str(tmp_path / "x-*.parquet"), tmp_path / "m.labelrace"
    settings = ("--tags", "tags", "-o", str(out), "--scheduler", address)
    result = CliRunner().invoke(app, ["train", source, *settings], catch_exceptions=False)
    assert "race learned 1200 rows in 1 round:" in result.output
    tagger = labelrace.load(out)
    assert tagger.n_rows_ == 1200
    predicted = tmp_path / "p.jsonl"
    given = ["predict", str(out), source, "-o", str(predicted), "--scheduler", address]
    assert CliRunner().invoke(app, given, catch_exceptions=False).exit_code == 0
    lines = [json.loads(line) for line in predicted.read_text().splitlines()]
    assert [set(line["tags"]) for line in lines] == tagger.predict(rows)


def test_workers_and_jobs_are_one_word():
    for command in ("run", "train", "predict"):
        help_text = CliRunner().invoke(app, [command, "--help"]).output
        assert "--workers" in help_text
        assert "--scheduler" in help_text
