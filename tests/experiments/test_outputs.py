"""Page, tables and figures of a comparison."""

import csv
import io
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from labelrace.experiments import print_paper, write_paper
from labelrace.experiments.cliques import cliques
from labelrace.experiments.latex import latex_tables
from labelrace.experiments.page import render_paper
from labelrace.experiments.sources import BenchSource
from labelrace.experiments.svg import nice_ticks
from labelrace.experiments.tables import csv_files
from labelrace.streams.synthetic import like


@pytest.fixture
def summary(make_up):
    return make_up(
        [
            BenchSource("CAL500", Path("cal500.arff")),
            BenchSource("delicious", like("delicious", n_rows=600)),
            BenchSource("enron", Path("enron.arff")),
        ],
        shift=0.012,
    )


def test_page_needs_nothing_else(summary):
    page = render_paper(summary)
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert not re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", page)
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_page_says_what_is_synthetic_and_what_is_missing(summary):
    page = render_paper(summary)
    assert "mediamill, NUS-WIDE and rcv1v2" in page
    groups = re.findall(r'scope="rowgroup".*?</th>', page)
    assert len(groups) == 9
    for group in groups:
        assert ("delicious" in group) == ("synthetic" in group)


def test_page_escapes_what_it_is_given(make_up):
    failure = {"model": "obr", "run": 0, "error": "<script>alert(1)</script>"}
    page = render_paper(make_up([BenchSource("CAL500", Path("c.arff"))], failures=(failure,)))
    assert "<script>alert" not in page


def test_page_without_anything_to_compare(make_up):
    page = render_paper(make_up([BenchSource("enron", like("enron", n_rows=300))]))
    assert "Nothing here can be compared" in page


def test_csv_has_a_row_for_every_cell(summary):
    files = csv_files(summary)
    cells = list(csv.DictReader(io.StringIO(files["cells.csv"])))
    assert len(cells) == 3 * (4 * 19 + 6 * 19 + 4 * 2)
    cell = next(c for c in cells if (c["dataset"], c["method"], c["measure"]) == ("CAL500", "obr", "hamming_loss"))
    assert (cell["paper"], cell["verdict"], cell["rerun"], cell["synthetic"]) == ("0.27", "agrees", "0.273", "False")
    assert {c["verdict"] for c in cells if c["synthetic"] == "True"} == {""}
    assert {row["found"] for row in csv.DictReader(io.StringIO(files["datasets.csv"]))} == {"yes", "synthetic", "no"}
    for text in files.values():
        assert len({len(row) for row in csv.reader(io.StringIO(text)) if len(row) != 2}) == 1


def test_files(summary, tmp_path):
    pytest.importorskip("matplotlib")
    written = write_paper(summary, tmp_path / "new")
    assert {"paper.html", "tables.tex", "cells.csv", "sweep.csv"} <= written.keys()
    figures = [path for name, path in written.items() if name.endswith(".png")]
    assert sorted(path.name for path in figures) == [
        *("ranks-table-2.png", "ranks-table-3.png", "scatter.png", "sweep.png", "time.png")
    ]
    for path in figures:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_are_no_figures(summary, tmp_path, monkeypatch):
    monkeypatch.setattr("labelrace.experiments.write.can_draw", lambda: False)
    assert not [name for name in write_paper(summary, tmp_path) if name.endswith(".png")]


def test_latex_rows_have_as_many_cells_as_columns(summary):
    text = latex_tables(summary)
    tables = re.findall(r"\\begin\{tabular\}\{([lcr|]+)\}(.*?)\\end\{tabular\}", text, re.S)
    assert len(tables) == 4
    for columns, body in tables:
        for row in re.findall(r"^(.*)\\\\", body, re.M):
            assert row.count("&") == len(columns.replace("|", "")) - 1


def test_terminal_of_eighty_columns_shows_everything(summary):
    text = StringIO()
    print_paper(summary, Console(file=text, width=80))
    shown = text.getvalue()
    assert "…" not in shown
    assert "synthetic like delicious" in shown
    assert "! Not at hand" in shown
    assert "values agree with the paper" in shown


def test_cliques():
    assert cliques({"a": 1.0, "b": 1.5, "c": 4.0}, 1.0) == [(1.0, 1.5)]
    assert cliques({"a": 1.0, "b": 3.0}, 1.0) == []
    assert cliques({"a": 1.0, "b": 2.0, "c": 3.0}, 5.0) == [(1.0, 3.0)]


def test_ticks_are_round():
    assert nice_ticks(0, 0.65) == [0.0, 0.2, 0.4, 0.6]
    assert nice_ticks(8, 64) == [20, 40, 60]
