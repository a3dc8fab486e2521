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
model = labelrace.make_model("race", max_memory="100MB", random_state=0)
for _ in range(2):
    model.partial_fit(X, Y).predict_top(X[:1], 2)
model.set_params(max_memory="100MB").save(sys.argv[1])
labelrace.load(sys.argv[1]).merge(model)
assert "numba" not in sys.modules
"""

COMPRESSED = """
import numpy as np
from labelrace.extreme import codes

codes.encode(np.eye(4), 2)
codes.encode(np.eye(5), 3)
"""

# Kernels that are called with types that they are not compiled for.
LEARNED = """
import sys
import numpy as np
import scipy.sparse
import labelrace

model = labelrace.make_model("race-hashed", random_state=0)
kernels = {
    f"{module}.{name}": value
    for module, content in sys.modules.items() if module.startswith("labelrace.extreme.")
    for name, value in vars(content).items() if hasattr(value, "py_func")
}
compiled = {name: len(kernel.signatures) for name, kernel in kernels.items()}
rng = np.random.default_rng(0)
for n_labels, convert in ((30, np.asarray), (30, scipy.sparse.csr_array), (3000, scipy.sparse.csr_array)):
    model = labelrace.make_model("race-hashed", random_state=0)
    for n in (600, 300, 1):
        X, Y = rng.normal(size=(n, 40)), rng.random((n, n_labels)) < 0.01
        X = convert(X if convert is np.asarray else X * (X > 1))
        model.partial_fit(X, convert(Y)).predict_top(X, 2)
        model.predict(X[:1]), model.predict_labels(X), model.predict_proba(X), model.decision_function(X)
assert len(kernels) > 10
print([name for name, kernel in kernels.items() if len(kernel.signatures) > compiled[name]])
"""


def run(program, *arguments, **environment):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)


def test_numba_is_imported_only_for_compressed_labels(tmp_path):
    run(NOT_COMPRESSED, str(tmp_path / "model"))


def test_no_batch_waits_for_a_loop_to_be_compiled():
    assert run(LEARNED).stdout == "[]\n"


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

    @kernel()
    def total(values):
        result = 0.0
        for i in range(len(values)):
            result += values[i]
        return result

    assert total(np.arange(4.0)) == 6.0
    assert hasattr(total, "py_func")


def test_a_loop_that_was_kept_is_compiled_again_when_one_of_another_file_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    begin = "from labelrace.extreme.kernels import kernel\n"
    (tmp_path / "calling.py").write_text(
        f"{begin}from called import one\n@kernel()\ndef total(n):\n    return n + one()\n"
    )
    for number in (1, 2):
        (tmp_path / "called.py").write_text(f"{begin}@kernel()\ndef one():\n    return {number}\n")
        importlib.invalidate_caches()
        for name in ("called", "calling"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        # What Python has kept of a file of the same size and second would be taken for it.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        assert importlib.import_module("calling").total(10) == 10 + number


def test_loops_return_at_most_one_array():
    """An interrupt while Numba makes several of them would be a SystemError."""
    from numba.core.types import Array, Boolean, Number
    from numba.core.types.misc import NoneType

    from labelrace.extreme import blocks, codes, decoder, label_lists, postings, residual_table, search

    modules = blocks, codes, decoder, label_lists, postings, residual_table, search
    kernels = [value for module in modules for value in vars(module).values() if hasattr(value, "py_func")]
    signatures = [signature for each in kernels for signature in each.nopython_signatures]
    assert len(signatures) > 10
    for signature in signatures:
        assert isinstance(signature.return_type, (Array, Boolean, Number, NoneType)), signature
