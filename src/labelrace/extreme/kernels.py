"""Loops compiled by Numba: what compressed labels are searched and learned with.

A loop that reads scattered elements of arrays cannot be written as NumPy operations. Such a loop is a plain Python
function marked with `kernel`. It is compiled when it is first called, for the types it is called with, and cached on
disk for the next process, if a folder is writable. A kernel may call others, of its own module or imported ones.

Numba itself is imported at the first call: those who do not use compressed labels never wait for it.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compiled: Callable[..., Any] | None = None
        # Source files of the function and of the kernels that it calls, once it is compiled.
        self.files: set[str] = set()

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        try:
            return (self.compiled or self.compile())(*arguments)
        except SystemError as error:
            # Numba makes this of an interrupt (Ctrl-C) that comes while it unpacks arguments or packs results.
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            raise cause or error from None

    def compile(self) -> Callable[..., Any]:
        """Prepare the function, and the kernels that it calls; Numba compiles them for the first arguments."""
        known, code = self.function.__globals__, self.function.__code__
        names = [name for name in code.co_names if isinstance(known.get(name), Kernel)]
        called = {name: known[name].compiled or known[name].compile() for name in names}
        function = FunctionType(code, {**known, **called}, self.function.__name__)
        self.files = {code.co_filename}.union(*(known[name].files for name in names))
        self.compiled = _dispatcher(function, sorted(self.files - {code.co_filename}))
        return self.compiled


def _dispatcher(function: FunctionType, other_files: list[str]) -> Callable[..., Any]:
    """Make Numba's dispatcher of a function, which calls kernels of other files."""
    numba = importlib.import_module("numba")
    _announce_compiling()
    if other_files:
        # Numba notices if the file of a function has changed since it was compiled, but not if others have: what is in
        # these is part of the name under which it is kept.
        content = b"".join(Path(file).read_bytes() for file in other_files)
        function.__qualname__ += f"-{hashlib.blake2b(content, digest_size=8).hexdigest()}"
    options = {"nogil": True, "error_model": "numpy"}
    try:
        dispatcher: Callable[..., Any] = numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):
        # No folder is writable.
        dispatcher = numba.njit(**options)(function)
    return dispatcher


@cache
def _announce_compiling() -> None:
    """Print a line, once, when the first of our functions is compiled: not where it was found on disk."""
    event = importlib.import_module("numba.core.event")

    class Announcement(event.Listener):  # type: ignore[misc, name-defined]
        """Listens to Numba until one of our functions is compiled."""

        def on_start(self, started: Any) -> None:
            """Print the line, and listen no more."""
            if started.data["dispatcher"].py_func.__module__.startswith("labelrace."):
                event.unregister("numba:compile", self)
                print("Compiling loops for compressed labels, once: this takes some seconds.", file=sys.stderr)

        def on_end(self, ended: Any) -> None:
            """Do nothing."""

    event.register("numba:compile", Announcement())


def kernel(function: F) -> F:
    """Mark a function as a loop to be compiled."""
    return Kernel(function)  # type: ignore[return-value]
