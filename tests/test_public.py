"""The public names, and that importing them costs nothing before they are used."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import labelrace
from labelrace import exceptions


def run(code):
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys; before = set(sys.modules); import labelrace; dir(labelrace); print(*set(sys.modules) - before)"
    loaded = run(code)
    assert "labelrace" in loaded
    heavy = {"numpy", "scipy", "sklearn", "pandas", "safetensors", "labelrace.models", "labelrace.streams"}
    assert not heavy & set(loaded)


def test_every_public_name_exists_and_is_listed():
    assert len(set(labelrace.__all__)) == len(labelrace.__all__)
    assert list(labelrace.__all__) == sorted(labelrace.__all__)
    for name in labelrace.__all__:
        assert getattr(labelrace, name) is not None
        assert name in dir(labelrace)
    assert {"RACEClassifier", "load", "load_dataset", "make_model", "model_names"} <= set(labelrace.__all__)


def test_everything_can_be_imported_at_once():
    space: dict[str, object] = {}
    exec("from labelrace import *", space)
    assert set(labelrace.__all__) <= set(space)


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", labelrace.__version__)


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError, match="module 'labelrace' has no attribute 'RaceClassifier'"):
        labelrace.RaceClassifier  # noqa: B018
    assert not hasattr(labelrace, "nothing")
    with pytest.raises(ImportError):
        exec("from labelrace import nothing")


def test_errors_are_of_the_kinds_that_users_catch_already():
    for name in exceptions.__all__:
        base = UserWarning if name.endswith("Warning") else exceptions.LabelraceError
        assert issubclass(getattr(exceptions, name), base)
    for name in ("DataFormatError", "GrowthError", "MergeError", "ModelFileError", "UnknownRowError"):
        assert issubclass(getattr(exceptions, name), ValueError)
    assert issubclass(exceptions.DivergenceError, ArithmeticError)
