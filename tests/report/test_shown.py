"""Summaries and documents in a notebook: the tables of the report and its charts, in one piece of HTML."""

from __future__ import annotations

import base64
import copy
import json
import pickle

import pytest
from helpers.shown import Shown

from labelrace.evaluation import read_run, run
from labelrace.report import document, print_report, summarize
from labelrace.report.run_report import report_document
from labelrace.streams.synthetic import SyntheticStream

HOSTILE = "</b><script>alert(1)</script><img src=http://x.invalid onerror=alert(2)>"


def shown(summary):
    found = Shown(summary._repr_html_())
    found.check_harmless()
    return found


def test_a_summary_shows_what_the_report_says(race):
    summary = summarize(*race)
    found = shown(summary)
    assert summary["headline"] in found.texts
    assert summary["verdict"] in found.texts
    cells = {row[0]: row[1:] for row in found.rows}
    results = next(report_document(summary).tables())
    assert [row.name for row in results.groups[0].rows] == [model["name"] for model in summary["models"]]
    for row in results.groups[0].rows:
        assert [text.split(" ")[0] for text in cells[row.name]] == [cell.value for cell in row.cells]
    pictures = [value for name, value in found.attributes if name == "src"]
    assert len(pictures) == 2
    assert all(base64.b64decode(one.partition(",")[2]).startswith(b"\x89PNG") for one in pictures)
    captions = [chart.title for chart in report_document(summary).charts()]
    assert [value for name, value in found.attributes if name == "alt"] == captions[:2]


def test_without_matplotlib_there_are_tables(race, monkeypatch):
    monkeypatch.setattr(document, "can_draw", lambda: False)
    found = shown(summarize(*race))
    assert "img" not in found.tags
    assert "table" in found.tags


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_text(make):
    manifest, records = make.race(batches=4, runs=1, measures=("micro_f1",), models={HOSTILE: (0.4, 0.1, 0.1)})
    manifest["source"]["name"] = HOSTILE
    manifest["source"]["label_names"] = [HOSTILE] * manifest["source"]["labels"]
    records.append({"kind": "failed", "model": HOSTILE, "run": 1, "error": HOSTILE})
    found = shown(summarize(manifest, records))
    assert HOSTILE in {row[0] for row in found.rows}
    assert HOSTILE in found.texts


def test_a_summary_is_still_a_dict(race, capsys):
    summary = summarize(*race)
    plain = dict(summary)
    assert isinstance(summary, dict)
    assert repr(summary) == repr(plain)
    assert json.loads(json.dumps(summary)) == json.loads(json.dumps(plain))
    assert pickle.loads(pickle.dumps(summary)) == copy.deepcopy(summary) == plain
    print_report(plain)
    assert summary["headline"].split(",")[0] in capsys.readouterr().out


def test_the_results_of_a_run_show_their_report_and_unpack_into_two(tmp_path):
    stream = SyntheticStream(n_rows=300, n_features=5, n_labels=4, seed=0)
    results = run(stream, ["majority", "negative"], out=tmp_path, batch_size=100, jobs=1)
    manifest, records = results
    assert results == (manifest, records) == read_run(tmp_path)
    assert isinstance(manifest, dict)
    assert isinstance(records, list)
    found, summary = shown(results), summarize(manifest, records)
    assert summary["verdict"] in found.texts
    assert "img" in found.tags
    said = " ".join(repr(results).split())
    assert said.startswith(summary["verdict"])
    assert summary["headline"] in said
    assert pickle.loads(pickle.dumps(results)) == results
