"""Names from files are shown as text: they steer no terminal, no spreadsheet and no page."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from labelrace.report.tables import as_csv

HOSTILE = [
    "[/b]x",
    "[bold red]y",
    "\x1b[31mred\x1b[0m",
    "=cmd|'/c calc'!A1",
    "@sum",
    "\u202egnirts",
    "<script>1</script>",
]


@pytest.fixture
def data(tmp_path):
    """Write a file whose labels have hostile names."""
    path = tmp_path / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", *HOSTILE])
        for row in range(60):
            writer.writerow([row % 7, *(int((row + column) % 3 == 0) for column in range(len(HOSTILE)))])
    return path


def is_harmless(text):
    return not {"\x1b", "\u202e"} & set(text)


def test_what_is_in_a_file(works, data):
    out = works("data", "info", data, "--labels", len(HOSTILE))
    assert is_harmless(out)
    for part in ("[/b]x", "[bold red]y", "=cmd|'/c calc'!A1"):
        assert part in " ".join(out.split())


def test_a_run_and_its_page(works, data, tmp_path):
    settings = ("--labels", len(HOSTILE), "--jobs", 1, "--batch-size", 20, "-m", "[/b]=negative", "-m", "=cmd=obr")
    out = works("run", data, *settings, "--out", tmp_path / "[/b]")
    assert is_harmless(out)
    assert "[/b]" in out
    page = (tmp_path / "[/b]" / "report.html").read_text(encoding="utf-8")
    assert "<script>1</script>" not in page
    assert is_harmless(page)
    table = (tmp_path / "[/b]" / "report.csv").read_text(encoding="utf-8")
    assert "'=cmd," in table
    assert "\n=cmd," not in table


def test_a_tagger(works, tmp_path):
    """Names of columns, words and tags."""
    table, tagger, out = tmp_path / "table.jsonl", tmp_path / "tagger", tmp_path / "out.csv"
    column, tags = "\x1b[31m\u202ecolumn", "=tags"
    rows = [{column: " ".join(HOSTILE), "n": row % 5, tags: [HOSTILE[row % len(HOSTILE)]]} for row in range(60)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps(rows[0]) + "\n")
    said = works("train", table, "--tags", tags, "-o", tagger, "--batch-size", 20) + works("update", tagger, table)
    said += works("inspect", tagger) + works("explain", tagger, one)
    assert is_harmless(said)
    assert all(part in said for part in ("[/b]x", "=cmd|'/c calc'!A1", "column"))
    works("predict", tagger, table, "-o", out)
    with out.open(newline="", encoding="utf-8") as file:
        assert not any(cell.startswith(("=", "@")) for row in csv.reader(file) for cell in row)


def test_errors(refuses, tmp_path):
    assert is_harmless(refuses("data", "info", f"{tmp_path}/\x1b[31mred.csv"))


def test_predictions(works, data, tmp_path):
    works("train", data, "--labels", len(HOSTILE), "-m", "majority", "-o", tmp_path / "model")
    lines = works("predict", tmp_path / "model", data, "--labels", len(HOSTILE), "--top", 7).splitlines()
    assert set(json.loads(lines[0])["labels"]) == set(HOSTILE)
    works("predict", tmp_path / "model", data, "--labels", len(HOSTILE), "--top", 1, "-o", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["labels"] for row in csv.DictReader(file)}
    assert not any(label.startswith(("=", "+", "-", "@", "\t", "\r")) for label in labels)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'x", "x=1", "", "ä;ö"])
def test_cells_can_be_told_from_one_another(text):
    content = as_csv([{"name": text, "value": -1.5}])
    [row] = csv.DictReader(io.StringIO(content, newline=""))
    assert row["value"] == "-1.5"
    assert row["name"] == (text if text in ("x=1", "", "ä;ö") else f"'{text}")


def test_a_terminal_that_knows_only_ascii(data, tmp_path):
    code = "from labelrace.cli.main import main; main()"
    settings = ["--labels", str(len(HOSTILE)), "--jobs", "1", "--batch-size", "20", "-m", "negative", "--out", "run"]
    done = subprocess.run(
        [sys.executable, "-c", code, "run", str(data), *settings],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert (tmp_path / "run" / "report.html").exists()
