"""Every subcommand has a help that shows what to type."""

import shlex
import subprocess
import sys

import pytest
import typer

import labelrace
from labelrace.cli.main import app


def commands(group, path=()):
    """Return all subcommands by their words; one that is hidden is what its group does by itself."""
    found = {}
    for name, one in group.commands.items():
        words = path if one.hidden else (*path, name)
        found |= commands(one, words) if hasattr(one, "commands") else {words: one}
    return found


ROOT = typer.main.get_command(app)
COMMANDS = commands(ROOT)
EXPECTED = {("run",), ("train",), ("predict",), ("models",), ("report",)} | {
    *(("data", name) for name in ("list", "info", "fetch", "convert", "make")),
    *(("serve", *name) for name in ((), ("export",), ("import",), ("backup",), ("compact",))),
}


def examples(command):
    return [line.partition("labelrace ")[2] for line in command.help.splitlines() if "labelrace " in line]


def test_subcommands():
    assert COMMANDS.keys() >= EXPECTED


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help(works, words):
    out = works(*words, "--help")
    assert "Usage: labelrace " + " ".join(words) in out
    assert "Example" in out
    assert works(*words, "-h") == out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_examples_can_be_typed(words):
    command = COMMANDS[words]
    assert examples(command)
    for example in examples(command):
        typed = shlex.split(example)
        assert typed[: len(words)] == list(words)
        command.make_context(words[-1], typed[len(words) :])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_all_parameters_are_explained(words):
    for parameter in COMMANDS[words].params:
        assert parameter.help, parameter.name


@pytest.mark.parametrize("words", [(), ("data",)])
def test_help_without_a_subcommand(command, words):
    out = "".join(command(*words)[1:])
    assert "Usage: labelrace" in out
    assert ("convert" if words else "predict") in out


def test_without_the_script():
    ended = subprocess.run([sys.executable, "-m", "labelrace", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == labelrace.__version__
