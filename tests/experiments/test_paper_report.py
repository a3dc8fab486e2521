"""Page, tables and figures of a comparison."""

import csv
import io
import re
from io import StringIO

import pytest
from rich.console import Console

from labelrace.experiments import paper_document
from labelrace.report.charts import cliques
from labelrace.report.document import print_document, write_document
from labelrace.report.page import render_page
from labelrace.report.tables import as_csv
from labelrace.streams.synthetic import like


@pytest.fixture
def summary(make_up, source):
    stream = like("delicious", n_rows=600)
    return make_up([source("CAL500"), source("delicious", stream), source("enron")], shift=0.012)


def render_paper(summary):
    return render_page(paper_document(summary))


def write_paper(summary, folder):
    return write_document(paper_document(summary), folder)


def test_page_needs_nothing_else(summary):
    page = render_paper(summary)
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    # But for a comment that tells where the library comes from.
    assert not re.findall(
        r"(?:https?:)?//[a-z0-9-]+\.[a-z]", re.sub(r"/\*! https://github.com/leeoniya/uPlot .*\*/", "", page)
    )
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_page_says_what_is_synthetic_and_what_is_missing(summary):
    page = render_paper(summary)
    assert "mediamill, NUS-WIDE and rcv1v2" in page
    groups = re.findall(r'scope="rowgroup".*?</th>', page)
    datasets = [group for group in groups if "Ours" not in group and "The paper" not in group]
    assert len(datasets) == 9
    for group in datasets:
        assert ("delicious" in group) == ('class="tag">synthetic<' in group)


def test_page_escapes_what_it_is_given(make_up, source):
    failure = {"model": "obr", "run": 0, "error": "<script>alert(1)</script>"}
    page = render_paper(make_up([source("CAL500")], failures=(failure,)))
    assert "<script>alert" not in page


def test_page_without_anything_to_compare(make_up, source):
    page = render_paper(make_up([source("enron", like("enron", n_rows=300))]))
    assert "Nothing here can be compared" in page


def test_csv_has_a_row_for_every_cell(summary):
    files = {f"{name}.csv": as_csv(records) for name, records in paper_document(summary).records.items()}
    cells = list(csv.DictReader(io.StringIO(files["cells.csv"])))
    assert len(cells) == 3 * (4 * 19 + 6 * 19 + 4 * 2)
    cell = next(c for c in cells if (c["dataset"], c["method"], c["measure"]) == ("CAL500", "obr", "hamming_loss"))
    assert (cell["paper"], cell["verdict"], cell["rerun"], cell["synthetic"]) == ("0.27", "agrees", "0.273", "False")
    assert {c["verdict"] for c in cells if c["synthetic"] == "True"} == {""}
    assert {row["found"] for row in csv.DictReader(io.StringIO(files["datasets.csv"]))} == {"yes", "synthetic", "no"}
    for text in files.values():
        assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1


def test_files(summary, tmp_path):
    pytest.importorskip("matplotlib")
    written = write_paper(summary, tmp_path / "new")
    assert {"paper.html", "paper.md", "paper.tex", "cells.csv", "sweep.csv"} <= written.keys()
    figures = [path for name, path in written.items() if name.endswith(".png")]
    assert sorted(path.name for path in figures) == [
        *("agreement.png", "ranks-table-2.png", "ranks-table-3.png", "scatter.png", "sweep.png", "time.png")
    ]
    for path in figures:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_are_no_figures_but_the_page_is_whole(summary, tmp_path, monkeypatch):
    monkeypatch.setattr("labelrace.report.document.can_draw", lambda: False)
    written = write_paper(summary, tmp_path)
    assert not [name for name in written if name.endswith(".png")]
    page = written["paper.html"].read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert page.count('class="panels') == 2
    assert 'id="table-2"' in page


def test_latex_tables_are_whole_and_rows_have_as_many_cells_as_columns(summary, tmp_path):
    text = write_paper(summary, tmp_path)["paper.tex"].read_text(encoding="utf-8")
    tables = re.findall(r"\\begin\{table\}(.*?)\\end\{table\}", text, re.S)
    labels = [re.search(r"\\label\{tab:(.*)\}", table)[1] for table in tables]
    assert labels == ["agreement", "datasets", "table-2", "ranks-2", "table-3", "ranks-3", "table-4"]
    for table in tables:
        assert re.search(r"\\caption\{.+\}", table)
        columns, body = re.search(r"\\begin\{tabular\}\{(lr+)\}(.*?)\\end\{tabular\}", table, re.S).groups()
        rows = re.findall(r"^(.*)\\\\$", body, re.M)
        cells = {row.count("&") for row in rows if "multicolumn" not in row}
        assert cells == {len(columns) - 1}
        assert r"\toprule" in body
        assert r"\bottomrule" in body


def test_markdown_puts_ours_beside_the_papers_and_marks_what_differs(make_up, source, tmp_path):
    text = write_paper(make_up([source("CAL500")], shift=0.2), tmp_path)["paper.md"].read_text(encoding="utf-8")
    assert "| obr | 0.420\\* ± 0.010 (1) / 0.22 / 0.220 |" in text


def test_terminal_of_eighty_columns_shows_everything(summary):
    text = StringIO()
    print_document(paper_document(summary), Console(file=text, width=80))
    shown = text.getvalue()
    assert "…" not in shown
    assert "synthetic like delicious" in shown
    assert "! Not available" in shown
    assert "Values that agree with the paper" in shown


def test_cliques():
    assert cliques({"a": 1.0, "b": 1.5, "c": 4.0}, 1.0) == [(1.0, 1.5)]
    assert cliques({"a": 1.0, "b": 3.0}, 1.0) == []
    assert cliques({"a": 1.0, "b": 2.0, "c": 3.0}, 5.0) == [(1.0, 3.0)]
