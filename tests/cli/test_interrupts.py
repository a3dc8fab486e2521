"""Ctrl-C at the edges of the command: while it is loaded, and again while the first one is dealt with."""

from __future__ import annotations

import builtins
import sys

import pytest

from labelrace import cli
from labelrace.cli import main as cli_main


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
