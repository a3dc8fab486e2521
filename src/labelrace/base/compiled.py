"""Loops compiled by Numba, where it is installed (``pip install 'labelrace[compiled]'``).

NumPy is fast where arrays are large. Where the work on each row is small, or reads memory at random, most of the time
goes into the calls themselves, and a compiled loop is several times as fast. Such a loop is a plain Python function
marked with `kernel`. It is compiled when it is first called, and kept on disk for the next process. A kernel may call
others, of its module or of those that its module has imported.

Everything works without Numba: whoever calls a kernel asks `is_available` first, and has a form in NumPy beside it that
gives the same result up to round-off. ``LABELRACE_COMPILED=0`` in the environment turns compiled loops off.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@cache
def is_available() -> bool:
    """Tell whether loops can be compiled; where Numba is installed it is imported, which takes half a second."""
    if os.environ.get("LABELRACE_COMPILED", "1") == "0" or find_spec("numba") is None:
        return False
    try:
        importlib.import_module("numba")
    except Exception:  # whatever it is that Numba does not get on with, such as a NumPy that is newer than it
        return False
    return True


class Kernel:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compiled: Callable[..., Any] | None = None
        # Of the function and of those that it calls, once it is compiled.
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
        """Compile the function, and the kernels that it calls into it."""
        known = self.function.__globals__
        names = [name for name in self.function.__code__.co_names if isinstance(known.get(name), Kernel)]
        called = {name: known[name].compiled or known[name].compile() for name in names}
        code = self.function.__code__
        function = FunctionType(code, {**known, **called}, self.function.__name__)
        self.files = {code.co_filename}.union(*(known[name].files for name in names))
        self.compiled = _compiled(function, sorted(self.files - {code.co_filename}))
        return self.compiled


def _digest(files: list[str]) -> str:
    """Hash what is in some files."""
    whole = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.blake2b(whole, digest_size=8).hexdigest()


def _compiled(function: FunctionType, others: list[str]) -> Callable[..., Any]:
    """Compile a function that calls some of other files."""
    numba = importlib.import_module("numba")
    try:
        if others:
            # Numba notices if the file of a function has changed since it was compiled, but not if others have: what is
            # in these is part of the name under which it is kept.
            function.__qualname__ += f"-{_digest(others)}"
        made = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except (RuntimeError, OSError):
        # There is no folder to keep it in, or there are no files to look at.
        made = numba.njit(nogil=True, error_model="numpy")(function)
    return made


def kernel(function: F) -> F:
    """Mark a function as a loop to be compiled."""
    return Kernel(function)  # type: ignore[return-value]
