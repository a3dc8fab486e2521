"""Without Dask, ``--workers`` and ``--scheduler`` end with one sentence that names what to install."""

from __future__ import annotations

import sys

import pytest

TICKETS = "id,title,tags\n1,hot oven,oven\n2,old toaster,toaster\n3,new oven,oven\n4,toaster off,toaster\n"


@pytest.fixture(autouse=True)
def _no_dask(monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("where", [("--workers", 2), ("--scheduler", "tcp://127.0.0.1:1")])
def test_one_sentence_names_the_extra(works, refuses, tmp_path, where):
    (tmp_path / "tickets.csv").write_text(TICKETS)
    works("data", "make", "rows.arff", "--rows", 40)
    works("train", "tickets.csv", "--tags", "tags", "-o", "tagger.labelrace")
    for call in (
        ("train", "tickets.csv", "--tags", "tags", "-o", "other.labelrace"),
        ("train", "rows.arff", "-o", "model.safetensors"),
        ("predict", "tagger.labelrace", "tickets.csv", "-o", "out.csv"),
    ):
        assert "pip install 'labelrace[dask]'" in refuses(*call, *where)
    assert sorted(path.name for path in tmp_path.glob("*.*")) == [
        "rows.arff", "rows.xml", "tagger.labelrace", "tickets.csv",
    ]  # fmt: skip


def test_run_needs_it_for_a_scheduler_only(command, works, tmp_path):
    works("data", "make", "rows.arff", "--rows", 40)
    status, _, err = command("run", "rows.arff", "-m", "obr", "--scheduler", "tcp://127.0.0.1:1", "--out", "run")
    assert status == 1
    assert "pip install 'labelrace[dask]'" in err
    assert "Traceback" not in err
    assert command("run", "rows.arff", "-m", "obr", "--workers", 2, "--out", "run").status == 0
