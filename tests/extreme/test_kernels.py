"""Compiled loops: imported when they are first used, kept on disk where that can be, and interrupted like the rest."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

from labelrace.extreme.kernels import kernel

NOT_COMPRESSED = """
import sys
import numpy as np
import labelrace
from labelrace.cli.main import app
from typer.testing import CliRunner

assert CliRunner().invoke(app, ["--help"]).exit_code == 0
X, Y = np.random.default_rng(0).normal(size=(600, 5)), np.arange(1800).reshape(600, 3) % 2
model = labelrace.make_model("race", random_state=0)
for _ in range(2):
    model.partial_fit(X, Y).predict_top(X[:1], 2)
assert labelrace.HashedRACEClassifier() is not None
assert "numba" not in sys.modules
"""

COMPRESSED = """
import numpy as np
from labelrace.extreme import codes

codes.encode(np.eye(4), 2)
codes.encode(np.eye(5), 3)
"""


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )


def test_numba_is_imported_only_for_compressed_labels():
    run(NOT_COMPRESSED)


def test_compiling_is_announced_once_and_not_where_it_was_kept(tmp_path):
    first, second = (run(COMPRESSED, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == second.stdout == second.stderr == ""
    assert first.stderr == "Compiling loops for compressed labels, once: this takes some seconds.\n"
    assert list(tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_loop_is_compiled_also_where_it_cannot_be_kept(has_folder, monkeypatch):
    from numba.core import caching

    if not has_folder:
        for name in ("_CacheImpl", "CacheImpl"):
            if hasattr(caching, name):
                monkeypatch.setattr(getattr(caching, name), "_locator_classes", [])

    @kernel
    def total(values):
        result = 0.0
        for i in range(len(values)):
            result += values[i]
        return result

    assert total(np.arange(4.0)) == 6.0
    assert hasattr(total.compiled, "py_func")


def test_a_loop_that_was_kept_is_compiled_again_when_one_of_another_file_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    begin = "from labelrace.extreme.kernels import kernel\n"
    (tmp_path / "calling.py").write_text(
        f"{begin}from called import one\n@kernel\ndef total(n):\n    return n + one()\n"
    )
    for number in (1, 2):
        (tmp_path / "called.py").write_text(f"{begin}@kernel\ndef one():\n    return {number}\n")
        importlib.invalidate_caches()
        for name in ("called", "calling"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        # What Python has kept of a file of the same size and second would be taken for it.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        assert importlib.import_module("calling").total(10) == 10 + number


def test_an_interrupt_that_numba_makes_an_error_of_is_one():
    def interrupted(x):
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise SystemError("returned a result with an exception set") from error
        except SystemError as error:
            raise SystemError("returned a result with an exception set") from error

    def failing(x):
        raise SystemError("an error of its own")

    loop = kernel(lambda x: x)
    loop.compiled = interrupted
    with pytest.raises(KeyboardInterrupt):
        loop(1)
    loop.compiled = failing
    with pytest.raises(SystemError, match="an error of its own"):
        loop(1)
