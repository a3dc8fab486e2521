"""Ctrl-C at the edges of the command: while it is loaded, and again while the first one is dealt with."""

from __future__ import annotations

import builtins
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from labelrace import cli
from labelrace.cli import main as cli_main


@pytest.fixture(autouse=True)
def _ctrl_c_as_before():
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_while_it_is_loaded(monkeypatch, capsys):
    original = builtins.__import__
    monkeypatch.setattr(
        builtins,
        "__import__",
        lambda name, *others: interrupt() if name == "labelrace.cli.main" else original(name, *others),
    )
    with pytest.raises(SystemExit) as ended:
        cli.command()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


def test_a_second_one(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["labelrace", "models"])
    monkeypatch.setattr(cli_main, "app", interrupt)
    monkeypatch.setattr(cli_main, "_complain", interrupt)
    with pytest.raises(SystemExit) as ended:
        cli_main.main()
    assert ended.value.code == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_second_one_at_any_moment(tmp_path):
    """While the first one is dealt with, the model is saved, or the interpreter ends."""
    (tmp_path / "t.csv").write_text("text,tags\n" + "some words here,a;b\nother words there,b\n" * 30_000)
    draw, program = random.Random(0), "from labelrace.cli import command; command()"
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", program, "train", "t.csv", "--tags", "tags", "-o", "model", "--force"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # The kinds of the columns are printed with the first batch.
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            time.sleep(draw.uniform(0, 0.05))
            process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
        assert process.returncode == 130, told
        assert "Traceback" not in told
