"""Bars of long calls: in a terminal, in a notebook without widgets, and nowhere else."""

from __future__ import annotations

import sys
import types

import pytest
import rich.console

import labelrace
from labelrace.base import progress
from labelrace.evaluation import run
from labelrace.streams.demo import demo_tickets
from labelrace.streams.synthetic import SyntheticStream
from labelrace.tables.read import as_table, count_rows


@pytest.fixture
def notebook(monkeypatch):
    """Let this process be the kernel of a notebook; return what it shows, one after the other."""
    shown = []

    def update(content, raw):
        assert raw
        shown.append(content["text/html"])

    def display(content, raw, display_id):
        assert display_id
        update(content, raw)
        return types.SimpleNamespace(update=update)

    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    return shown


def fit(folder, **options):
    tickets = demo_tickets(300)
    return labelrace.Tagger("tags", batch_size=100, random_state=0).prequential_fit(tickets, **options)


def evaluate(folder, **options):
    stream = SyntheticStream(n_rows=300, n_features=5, n_labels=4, seed=0)
    return run(stream, ["majority", "negative"], out=folder, batch_size=100, jobs=1, **options)


def test_a_notebook_gets_a_bar_that_goes_at_the_end(notebook, tmp_path):
    fit(tmp_path, progress=True)
    assert notebook[0] == notebook[-1] == ""
    assert notebook[1:-1] == [f"<progress max=300 value={n}></progress> {n} rows" for n in (100, 200, 300)]
    notebook.clear()
    evaluate(tmp_path, progress=True)
    shares = ["0", "0.666667", "1", "1", "1", "1.66667", "2", "2"]
    assert [text.partition("value=")[2].partition(">")[0] for text in notebook[1:-1]] == shares
    assert notebook[-2] == "<progress max=2 value=2></progress> negative, run 1: 300 rows"
    assert notebook[-1] == ""


def test_what_is_said_is_text_and_the_bar_goes_after_an_error_too(notebook):
    def fail():
        with progress.progress_bar(True, None) as show:
            show(1, "<script>")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert notebook == ["", "<progress></progress> &lt;script&gt;", ""]


def test_a_notebook_is_not_drawn_in_all_the_time(notebook, monkeypatch):
    monkeypatch.setattr(progress, "_PAUSE", 1000.0)
    with progress.progress_bar(True, 9) as show:
        for done in range(9):
            show(done, "")
    assert len(notebook) == 3


@pytest.mark.parametrize("call", [fit, evaluate])
def test_a_terminal_gets_a_bar(monkeypatch, tmp_path, capsys, call):
    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    call(tmp_path, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "300 rows" in err


@pytest.mark.parametrize("call", [fit, evaluate])
@pytest.mark.parametrize("wanted", [False, True])
def test_nothing_is_drawn_elsewhere(tmp_path, capsys, call, wanted):
    call(tmp_path, progress=wanted)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_drawn_in_a_notebook_that_did_not_ask(notebook, tmp_path):
    fit(tmp_path)
    assert notebook == []


def test_the_total_is_that_of_the_rows(tmp_path):
    rows = [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [count_rows(X) for X in (rows, as_table(rows), as_table(rows).columns, tmp_path, iter(rows))] == [
        3, 3, None, None, None,
    ]  # fmt: skip
