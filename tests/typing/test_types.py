"""A user's type checker knows what `load` returns and what predictions are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import labelrace
from labelrace import RACEClassifier, Tagger
from labelrace.exceptions import ModelFileError

SOURCE = Path(labelrace.__file__).parents[1]


def test_mypy_agrees(tmp_path):
    pytest.importorskip("mypy")
    code = Path(__file__).with_name("user_code.py")
    settings = ("--strict", "--warn-unused-ignores", "--config-file", os.devnull, "--follow-imports", "silent")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "--cache-dir", str(tmp_path), str(code)],
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_kind_is_checked(tmp_path):
    path = tmp_path / "model.safetensors"
    RACEClassifier(random_state=0).fit(np.eye(4), np.eye(4)).save(path)
    assert type(labelrace.load(path, RACEClassifier)) is RACEClassifier
    with pytest.raises(ModelFileError, match=r"must hold a Tagger, got a RACEClassifier: name another file"):
        labelrace.load(path, Tagger)
