"""Loops compiled by Numba: what compressed labels are searched and learned with.

A loop that reads scattered elements of arrays cannot be written as NumPy operations. Such a loop is a plain Python
function marked with `kernel`. Those that learning and predicting call have a signature, for which they are compiled
when their module is imported, so that no batch waits for it; others, and for other types, which are rare, are compiled
when they are called. What is compiled is cached on disk for the next process, if a folder is writable. A kernel may
call others that are defined above it, or imported.

A kernel returns nothing, a number or one array; further results are written to arrays that it is given. An interrupt
(Ctrl-C) that comes while Numba packs several arrays into a result would be a SystemError.

Only modules of compressed labels import this one: who does not use these never waits for Numba.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])


def kernel(signature: str = "") -> Callable[[F], F]:
    """Mark a function as a loop to be compiled; with a signature, as Numba writes it, it is compiled at once."""

    def marked(function: Any) -> Any:
        dispatcher = _dispatcher(function)
        if signature:
            dispatcher.compile(signature)
        return dispatcher

    return marked


def _dispatcher(function: FunctionType) -> Any:
    """Make Numba's dispatcher of a function, which may call kernels of other files."""
    other_files = sorted(_files(function) - {function.__code__.co_filename})
    if other_files:
        # Numba notices if the file of a function has changed since it was compiled, but not if others have: what is in
        # these is part of the name under which it is kept.
        content = b"".join(Path(file).read_bytes() for file in other_files)
        function.__qualname__ += f"-{hashlib.blake2b(content, digest_size=8).hexdigest()}"
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):
        # No folder is writable.
        return numba.njit(**options)(function)


def _files(function: FunctionType) -> set[str]:
    """List the files of a function and of the kernels that it calls."""
    code = function.__code__
    called = (function.__globals__.get(name) for name in code.co_names)
    of_called = (_files(kernel.py_func) for kernel in called if isinstance(kernel, CPUDispatcher))
    return {code.co_filename}.union(*of_called)


class _Announcement(event.Listener):  # type: ignore[misc]
    """Prints a line when the first of our functions is compiled: not where it was found on disk."""

    def on_start(self, started: Any) -> None:
        """Print the line, and listen no more."""
        if started.data["dispatcher"].py_func.__module__.startswith("labelrace."):
            event.unregister("numba:compile", self)
            print("Compiling loops for compressed labels, once: this takes some seconds.", file=sys.stderr)

    def on_end(self, ended: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Announcement())
