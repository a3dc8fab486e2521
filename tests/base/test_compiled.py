"""Compiled loops are a convenience: whatever is wrong with Numba, everything works without it."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from labelrace.base import compiled


@pytest.fixture(autouse=True)
def forgotten():
    compiled.is_available.cache_clear()
    yield
    compiled.is_available.cache_clear()


def test_a_numba_that_cannot_be_imported_is_not_there(monkeypatch):
    def fail(name):
        raise ImportError(f"{name} needs NumPy 1.0 or less")

    monkeypatch.setattr(compiled, "find_spec", lambda name: object())
    monkeypatch.setattr(compiled.importlib, "import_module", fail)
    assert not compiled.is_available()


def test_the_environment_turns_it_off(monkeypatch):
    monkeypatch.setenv("LABELRACE_COMPILED", "0")
    assert not compiled.is_available()


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not there")
@pytest.mark.parametrize("has_folder", [True, False])
def test_a_loop_is_compiled_also_where_it_cannot_be_kept(has_folder, monkeypatch):
    from numba.core import caching

    if not has_folder:
        for name in ("_CacheImpl", "CacheImpl"):
            if hasattr(caching, name):
                monkeypatch.setattr(getattr(caching, name), "_locator_classes", [])

    @compiled.kernel
    def total(values):
        found = 0.0
        for i in range(len(values)):
            found += values[i]
        return found

    assert compiled.is_available()
    assert total(np.arange(4.0)) == 6.0
    assert hasattr(total.compiled, "py_func")


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not there")
def test_a_loop_that_was_kept_is_compiled_anew_when_one_of_another_file_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    begin = "from labelrace.base.compiled import kernel\n"
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

    loop = compiled.kernel(lambda x: x)
    loop.compiled = interrupted
    with pytest.raises(KeyboardInterrupt):
        loop(1)
    loop.compiled = failing
    with pytest.raises(SystemError, match="an error of its own"):
        loop(1)
