"""The walk through the questions about cooking, where they are available."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path

import pytest

FOLDERS = os.environ.get("LABELRACE_DATA", "").split(os.pathsep)
FILES = [path for folder in FOLDERS if (path := Path(folder, "cooking.csv.gz")).is_file()]


@pytest.mark.skipif(not FILES, reason="cooking.csv.gz is not in LABELRACE_DATA")
def test_the_walk(capsys):
    path = Path(__file__).parents[2] / "examples" / "cooking.py"
    spec = importlib.util.spec_from_file_location("cooking_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger = module.walk(FILES[0], 3000)
    out = capsys.readouterr().out
    assert "content is read as: text (HTML, stripped)" in out
    assert "3000 questions" in out
    assert "Now: egg, storage" in out
    assert tagger.quality_["example_f1"] > 0.3
    assert not {"eggs", "storage-lifetime", "please-remove-this-tag"} & tagger.tags_.keys()
    # Questions about eggs are recognised by the word.
    assert "title: egg" in out
