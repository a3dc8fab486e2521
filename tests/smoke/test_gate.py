"""The parts of the gate that tests would not notice if they did nothing: the smoke set, and where it runs."""

from __future__ import annotations

import os
import re
import sys

import documents
import pytest
import run

sys.path.insert(0, str(documents.ROOT / ".ci"))
import pythons
import smoke as gate

THIS = "{}.{}".format(*sys.version_info[:2])


def write_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def failing_step(folder):
    raise ValueError("a step that fails")


@pytest.fixture
def only_path(monkeypatch, tmp_path):
    """Let nothing be found but what is in one folder."""
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize("failing", [False, True])
def test_the_smoke_set_counts_and_shows_what_fails(monkeypatch, capsys, failing):
    steps = [("one", lambda folder: None), ("two", failing_step if failing else lambda folder: None)]
    monkeypatch.setattr(run, "model_steps", lambda: steps)
    monkeypatch.setattr(run, "command_steps", lambda: [("three", lambda folder: (folder / "made").touch())])
    monkeypatch.setattr(run, "readme_steps", lambda: [])
    monkeypatch.setattr(run, "extras_steps", lambda: [])
    assert run.main() == failing
    out = capsys.readouterr().out
    assert out.endswith("\n2 passed, 1 failed\n" if failing else "\n3 passed, 0 failed\n")
    assert ("FAIL two" in out) == ("a step that fails" in out) == failing


def test_the_smoke_set_has_every_model_and_every_subcommand():
    names = [about.removeprefix("model ") for about, _ in run.model_steps()]
    assert names == run.labelrace.model_names()
    lines = [about for about, _ in run.command_steps()]
    for words in ("run", "train", "predict", "report", "models", "data make", "data convert", "data list"):
        assert f"labelrace {words} --help" in lines
        assert any(f"labelrace {words}" in line for line in run.COMMANDS)


def test_readme_blocks_after_a_failing_one_do_not_count_as_passed(monkeypatch, tmp_path):
    (tmp_path / "README.md").write_text("```python\nunknown\n```\n\n```python\npass\n```\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    (_, first), (_, second) = run.readme_steps()
    with pytest.raises(NameError, match="unknown"):
        first(tmp_path)
    with pytest.raises(RuntimeError, match="a block before it failed"):
        second(tmp_path)


def test_pythons_that_run_are_found(only_path):
    write_program(only_path / f"python{THIS}", f'exec {sys.executable} "$@"')
    write_program(only_path / "python3.97", "echo 'pyenv: python3.97: command not found' >&2; exit 127")
    write_program(only_path / "python3", "echo 3.9")
    assert pythons.find_pythons([THIS, "3.97", "3.98"]) == {THIS: only_path / f"python{THIS}"}


def test_pythons_of_pyenv_are_found(only_path, monkeypatch, tmp_path):
    folder = tmp_path / "pyenv" / "versions" / "3.77.1" / "bin"
    folder.mkdir(parents=True)
    write_program(folder / "python3", "echo 3.77")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert pythons.find_pythons(["3.77", "3.78"]) == {"3.77": folder / "python3"}


def test_all_tests_run_on_the_oldest_and_the_newest(monkeypatch, capsys):
    monkeypatch.setattr(pythons, "supported_versions", lambda: ["3.9", "3.10", "3.11", "3.12"])
    monkeypatch.setattr(pythons, "find_pythons", lambda versions: {"3.11": "new", "3.10": "middle", "3.9": "old"})
    pythons.main()
    assert capsys.readouterr().out == "old\nnew\n"
    monkeypatch.setattr(pythons, "find_pythons", lambda versions: {"3.11": "only"})
    pythons.main()
    assert capsys.readouterr().out == "only\n"


@pytest.fixture
def tried(monkeypatch):
    """Return what the wheel is tried on, as all of that works but Python 3.77."""
    calls = []
    monkeypatch.setattr(gate, "supported_versions", lambda: ["3.76", "3.77", "3.78", "3.79"])
    monkeypatch.setattr(gate, "build_wheel", lambda folder: folder / "a.whl")
    monkeypatch.setattr(
        gate, "smoke", lambda python, *rest: calls.append((str(python), *rest)) or python != "python3.77"
    )
    return calls


@pytest.mark.parametrize("versions", [[], ["3.76", "3.78"], ["3.76", "3.77", "3.78"]], ids=len)
def test_the_gate_tries_every_python_or_itself(monkeypatch, capsys, tried, versions):
    # In whichever order they are found.
    found = {version: f"python{version}" for version in reversed(versions)}
    monkeypatch.setattr(gate, "find_pythons", lambda supported: found)
    assert gate.main([]) == ("3.77" in versions)
    assert sorted(one[0] for one in tried) == ([f"python{version}" for version in versions] or [sys.executable])
    absent = ", ".join(version for version in gate.supported_versions() if version not in versions)
    assert f"Not found, so the wheel is not tried on them: Python {absent}.\n" in capsys.readouterr().out


@pytest.mark.parametrize("is_found", [False, True])
def test_the_gate_tries_the_lowest_versions_on_the_oldest(monkeypatch, capsys, tried, is_found):
    versions = ["3.76"] * is_found + ["3.77"]
    monkeypatch.setattr(gate, "find_pythons", lambda supported: {version: f"python{version}" for version in versions})
    assert gate.main(["--lowest"]) == 0
    assert [one[0] for one in tried] == ["python3.76"] * is_found
    assert all(
        str(wheel).endswith("a.whl[serve,plots,excel]") and lowest.name == "lowest.txt" for _, wheel, lowest, _ in tried
    )
    assert ("Not found, so the lowest versions are not tried: Python 3.76.\n" in capsys.readouterr().out) != is_found


def test_the_gate_runs_both_and_ends_as_they_do():
    text = (documents.ROOT / ".ci" / "run").read_text()
    assert "make smoke && make lowest" in text
    assert text.index('wait "$trying"') < text.index('exit "$tried"')


def test_constraints_are_the_locked_versions(tmp_path):
    gate.write_locked(tmp_path / "constraints.txt")
    lines = (tmp_path / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( ; [^\\]+)?", line) for line in lines)
    assert {"numpy", "scikit-learn", "pyarrow"} <= {line.partition("==")[0] for line in lines}


@pytest.mark.skipif(os.name == "nt", reason="make is not there")
def test_make_refuses_a_python_that_is_too_old(tmp_path):
    old = write_program(tmp_path / "python3", 'case "$2" in *exit*) exit 1;; *) echo 3.9;; esac')
    with pytest.raises(AssertionError) as refused:
        documents.run_shell(f"make -C {documents.ROOT} PYTHON3={old} VENV={tmp_path}/venv demo", tmp_path)
    assert f"labelrace needs Python 3.11 or later, got {old} 3.9: name another with make PYTHON3=" in str(refused.value)
    assert not (tmp_path / "venv").exists()
