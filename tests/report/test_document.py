"""Files of a report, and a report of a real run."""

from __future__ import annotations

import builtins
import sys

import pytest

from labelrace.evaluation import run
from labelrace.evaluation.records import rewrite_records, write_manifest
from labelrace.report import summarize, write_report
from labelrace.streams.synthetic import SyntheticStream


@pytest.mark.parametrize("protocol", ["prequential", "holdout"])
def test_report_of_a_real_run(tmp_path, protocol):
    stream = SyntheticStream(n_rows=400, n_features=10, n_labels=6, seed=0)
    models = ["race-cls-fixed", "negative"]
    run(stream, models, out=tmp_path, protocol=protocol, batch_size=100, measures="all", jobs=1, seed=1)
    paths = write_report(tmp_path)
    assert sorted(paths) == ["report.csv", "report.html", "report.md", "report.tex"]
    assert all(path.parent == tmp_path and path.stat().st_size > 100 for path in paths.values())
    assert "race-cls-fixed" in paths["report.html"].read_text(encoding="utf-8")


def test_report_of_a_folder_cut_off(tmp_path, race):
    manifest, records = race
    write_manifest(tmp_path, manifest)
    rewrite_records(tmp_path, records[:100])
    lines = (tmp_path / "records.jsonl").read_text()
    (tmp_path / "records.jsonl").write_text(lines[:-20])
    with pytest.warns(UserWarning, match="cut off"):
        paths = write_report(tmp_path, tmp_path / "new" / "folder", formats=["md"])
    assert "Not started" in paths["report.md"].read_text(encoding="utf-8")


def test_formats_and_folders_are_checked(tmp_path, race):
    with pytest.raises(ValueError, match="'docx'"):
        write_report(summarize(*race), tmp_path, formats=["docx"])
    with pytest.raises(ValueError, match="out"):
        write_report(summarize(*race))
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path)


@pytest.mark.filterwarnings("error:constrained_layout")
def test_figures(tmp_path, make):
    names = {"race $x$": (0.4, 0.1, 0.1), **make.models}
    race = make.race(batches=5, runs=1, measures=("micro_f1", "coverage"), models=names)
    for record in race[1]:
        if record["kind"] == "labels":
            record |= {"rows": 500, "first": [0, 250, *[None] * 51]}
        elif record["kind"] == "batch":
            record |= {"alarms": int(record["batch"] > 1), "drifts": int(record["batch"] > 2)}
    paths = write_report(summarize(*race), tmp_path, formats=["svg"])
    assert sorted(paths) == ["curves.svg", "labels.svg", "seconds.svg"]
    assert all("</svg>" in path.read_text(encoding="utf-8") for path in paths.values())
    assert "race $x$" in paths["curves.svg"].read_text(encoding="utf-8")
    assert "enron: measures over the stream, windowed" in paths["curves.svg"].read_text(encoding="utf-8")


def test_figures_of_little(make, tmp_path):
    manifest = make.manifest(["race"], ["micro_f1"])
    summary = summarize(manifest, [make.batch("race", 1, {"micro_f1": 0.3})])
    figures = write_report(summary, tmp_path, formats=["png"])
    assert sorted(figures) == ["curves.png", "seconds.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.values())
    papers = write_report(summary, tmp_path, formats=["pdf"])
    assert all(path.read_bytes().startswith(b"%PDF") for path in papers.values())
    again = write_report(summary, tmp_path / "again", formats=["pdf"])
    assert [path.read_bytes() for path in again.values()] == [path.read_bytes() for path in papers.values()]
    assert write_report(summarize(manifest, []), tmp_path, formats=["png"]) == {}


def test_missing_matplotlib_is_named(monkeypatch, race, tmp_path):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("no matplotlib")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"labelrace\[plots\]"):
        write_report(summarize(*race), tmp_path / "new", formats=["png"])
    assert not (tmp_path / "new").exists()
