"""Tables: marks, escapes, and what is missing."""

from __future__ import annotations

import csv
import io
import re

import pytest
from rich.console import Console

from labelrace.report import print_report, summarize, write_report
from labelrace.report.tables import Cell, Column, Group, Row, Table, print_table, text_table

HOSTILE = "a_b & 100% $x$ #1 {z} ~^ \\end|<b>[red]`*\n\x1b[31m"


@pytest.fixture
def summary(make):
    manifest = make.manifest(["race", HOSTILE, "failed", "absent"], ["micro_f1", "hamming_loss"], runs=2)
    records = []
    for name, values in (("race", (0.5, 0.1)), (HOSTILE, (0.5, 0.3))):
        for run in (0, 1):
            measures = dict(zip(manifest["measures"], values, strict=True))
            records += [make.batch(name, 1, measures, run), make.done(name, run)]
    records.append(make.batch("failed", 1, {"micro_f1": 0.25, "hamming_loss": None}))
    records.append({"kind": "failed", "model": "failed", "run": 0, "error": "ValueError: <x> & _y_\n"})
    return summarize(manifest, records)


def printed(summary, width=200, color=False):
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None)
    print_report(summary, console)
    return console.file.getvalue()


def written(summary, folder, form):
    return write_report(summary, folder, formats=[form])[f"report.{form}"].read_text(encoding="utf-8")


def test_terminal(summary):
    text = printed(summary)
    race = next(line for line in text.splitlines() if line.strip().startswith("race   "))
    assert race.split() == ["race", "0.500", "±0.000", "(1)", "0.100", "±0.000", "(1)", "1.00", "0.900"]
    assert "failed †" in text
    assert "Not started: absent." in text
    assert "[red]" in text
    assert "\x1b" not in text


def test_terminal_marks_the_best(summary):
    lines = printed(summary, color=True).splitlines()
    race = next(line for line in lines if " race " in line)
    assert race.count("\x1b[1;32m") >= 3


@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_terminal_fits_any_width(make, width):
    summary = summarize(*make.race(batches=3, runs=2))
    lines = printed(summary, width).splitlines()
    assert max(map(len, lines)) <= width
    if width >= 60:
        headings = " ".join(lines)
        assert headings.count("Micro") == 5
        assert headings.count("Time") == 1


@pytest.fixture
def ranked():
    columns = [Column("Example accuracy", lower=False), Column("Average rank", lower=True)]
    return Table("ranked", "Two columns.", columns, [Group([Row("race", [Cell("0.706", "0.001", "1"), Cell("1.00")])])])


def shown(table, width):
    console = Console(file=io.StringIO(), width=width)
    print_table(table, console)
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def test_terminal_explains_the_arrows_that_it_shows_and_no_others(ranked):
    assert shown(ranked, 80)[1:3] == [["Example", "↑", "Average", "↓"], ["Model", "accuracy", "rank"]]
    assert "↑ higher, ↓ lower" in " ".join(map(" ".join, shown(ranked, 80)))
    assert "↑" not in str(shown(ranked, 27))


def test_narrow_terminal_cuts_only_words_that_are_wider_than_the_cells(ranked):
    # A value with its rank, 0.706 (1), is as wide as these words, and an average rank is not.
    assert shown(ranked, 27)[1:3] == [["Example", "Aver."], ["Model", "accuracy", "rank"]]
    assert shown(ranked, 20)[1:3] == [["Exam.", "Aver."], ["Model", "accu.", "rank"]]


def test_titles_of_one_word_take_one_line():
    table = text_table("drift", "Drifts.", ["None", "Sudden"], {"race": ["0.1", "0.2"]})
    assert shown(table, 80)[:2] == [["Drifts."], ["Model", "None", "Sudden"]]


def test_csv(summary, tmp_path):
    rows = list(csv.DictReader(io.StringIO(written(summary, tmp_path, "csv"))))
    assert [row["model"] for row in rows] == ["race", HOSTILE, "failed", "absent"]
    assert float(rows[0]["micro_f1"]) == 0.5
    assert rows[0]["micro_f1_rank"] == rows[1]["micro_f1_rank"] == "1"
    assert rows[1]["hamming_loss_rank"] == "2"
    assert rows[2]["hamming_loss"] == rows[3]["micro_f1"] == rows[3]["seconds_total"] == ""
    assert rows[0]["runs"] == "2"
    assert float(rows[0]["log10_time_ratio"]) == 0


def test_markdown(summary, tmp_path):
    text = written(summary, tmp_path, "md")
    table = [line for line in text.splitlines() if line.startswith("|")]
    # Every row has as many cells: no name breaks out of its own.
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}
    assert "| race | **0.500** ± 0.000 (1) | **0.100** ± 0.000 (1) | **1.00** | **0.900** |" in table
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "| absent | – | – | – | – |" in table
    assert "- Failed: failed, run 0, after 1 batch: ValueError: &lt;x&gt; &amp; \\_y\\_" in text


def test_latex(summary, tmp_path):
    text = written(summary, tmp_path, "tex")
    body = [line.strip() for line in text.splitlines() if line and not line.startswith("%")]
    assert body[:2] == [r"\begin{table}", r"\centering"]
    assert re.fullmatch(r"\\caption\{Results on enron\. Best values are bold\..*\}", body[2])
    assert body[3:6] == [r"\label{tab:results}", r"\begin{tabular}{lrrrr}", r"\toprule"]
    assert body[7] == r"\midrule"
    assert body[-3:] == [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    for line in (body[6], *body[8:-3]):
        assert len(re.findall(r"(?<!\\)&", line)) == 4
        assert line.replace(r"\{", "").replace(r"\}", "").count("{") == line.replace(r"\}", "").count("}")
    assert r"a\_b \& 100\% \$x\$ \#1 \{z\} \textasciitilde{}\textasciicircum{} \textbackslash{}end$|$$<$b$>$" in text
    assert r"\textbf{0.500 $\pm$ 0.000} (1)" in text
    assert r"failed $^\dagger$ & 0.250 & -- & -- & " in text
    assert not re.search(r"[^\x00-\x7f]", "\n".join(body))


def test_one_model_and_one_batch(make, tmp_path):
    manifest = make.manifest(["race"], ["coverage"])
    summary = summarize(manifest, [make.batch("race", 1, {"coverage": 143.633}), make.done("race")])
    text = written(summary, tmp_path, "md")
    assert "| race | 143.6 | – | 0.900 |" in text
    assert "bold" not in text
    assert "best" not in printed(summary)
