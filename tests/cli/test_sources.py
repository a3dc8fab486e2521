"""A command does not replace what it reads."""

import os
import shutil
import subprocess
import sys

import pytest

TOLD = "The file to write must not be one that is read"

SPELLINGS = {
    "the same": ("t.csv", "t.csv"),
    "relative": ("t.csv", "./folder/../t.csv"),
    "absolute": ("t.csv", "{here}/t.csv"),
    "a link to it": ("t.csv", "link.csv"),
    "read through a link": ("link.csv", "t.csv"),
    "a second name": ("t.csv", "hard.csv"),
    "what tells its labels": ("t.csv", "t.csv.schema.json"),
}
COMMANDS = {
    "train": ("train", "{source}", "-o", "{out}"),
    "train on workers": ("train", "{source}", "-o", "{out}", "--workers", 2),
    "train a tagger": ("train", "{source}", "--tags", "new", "-o", "{out}"),
    "update": ("update", "tagger", "{source}", "-o", "{out}"),
    "predict": ("predict", "model", "{source}", "-o", "{out}"),
    "predict on workers": ("predict", "model", "{source}", "-o", "{out}", "--workers", 2),
    "convert": ("data", "convert", "{source}", "{out}"),
}


@pytest.fixture
def folder(files, model_file, works, tmp_path):
    """Make a folder with a table under several names, a model and a tagger."""
    for path in (files(".csv"), files(".csv").with_name("toy.csv.schema.json")):
        shutil.copy(path, path.name.replace("toy", "t"))
    shutil.copy(model_file, "model")
    works("train", "t.csv", "--tags", "new,", "-o", "tagger")
    (tmp_path / "folder").mkdir()
    os.symlink("t.csv", "link.csv")
    os.link("t.csv", "hard.csv")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("verb", COMMANDS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_source_is_not_replaced(refuses, folder, spelling, verb):
    source, out = SPELLINGS[spelling]
    if verb.startswith("predict") and not out.endswith(".csv"):
        pytest.skip("predictions are written to .csv and .jsonl only")
    before = contents(folder)
    arguments = (str(text).format(source=source, out=out.format(here=folder)) for text in COMMANDS[verb])
    assert TOLD in refuses(*arguments)
    assert contents(folder) == before


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_patterns_datasets_label_files_models_and_standard_input(refuses, folder, files, monkeypatch):
    shutil.copy(files(".arff"), "toy.arff")
    shutil.copy(files(".arff").with_suffix(".xml"), "toy.xml")
    shutil.copy("model", "model.csv")
    monkeypatch.setenv("LABELRACE_DATA", str(folder))
    before = contents(folder)
    for arguments in (
        ("train", "t*.csv", "-o", "t.csv", "--workers", 2),
        ("train", "toy", "-o", "toy.arff"),
        ("train", "toy", "-o", "toy.xml"),
        ("train", "toy.arff", "--labels", "toy.xml", "-o", "toy.xml"),
        ("predict", "model.csv", "t.csv", "-o", "model.csv"),
    ):
        assert TOLD in refuses(*arguments)
    program = [sys.executable, "-m", "labelrace", "predict", "model", "-", "-o", "t.csv"]
    with open("t.csv") as source:
        ended = subprocess.run(program, stdin=source, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert TOLD in ended.stderr
    assert contents(folder) == before


def test_a_tagger_may_be_replaced_by_itself(works, folder):
    works("update", "tagger", "t.csv", "-o", "tagger")
    works("update", "tagger", "t.csv")
