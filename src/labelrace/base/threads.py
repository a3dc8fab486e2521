"""Threads: one writer of a model at a time, and one BLAS thread for our products.

*One writer.* A thread that changes a model makes a new value and assigns it; readers take whichever value there is,
without waiting. Two writers must not start from the same value, or what one of them learned would be gone. An interrupt
cannot leave a lock behind.

*One BLAS thread*, by default. Blocks are small: a second thread makes them hardly faster, and takes several times the
processor's time. The environment variable ``LABELRACE_THREADS`` allows more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# Beside the objects, not in them: copies, clones and pickles have a lock of their own, and attributes stay as they are.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# Rows from which products are large enough for BLAS to use several threads; fewer are not worth the limit's own time.
_FEWEST_ROWS = 32

_lock = threading.RLock()
_inside = 0
_limit: Any = None
_controller: ThreadpoolController | None = None


# --- One writer -------------------------------------------------------------------------------------------------------


def one_at_a_time(lock: Any, change: Callable[..., T], *arguments: Any) -> T:
    """Call a function while no other thread does so with this lock.

    On one line: an interrupt comes before the lock is taken, or inside the function, from where it is always released.
    A line of its own for the end of the block could be interrupted before the lock is free again.
    """
    with lock: return change(*arguments)  # noqa: E701  # fmt: skip


def one_writer(method: F) -> F:
    """Let one thread at a time call a method that changes a `Writable`."""

    @wraps(method)
    def locked(self: Writable, *arguments: Any, **named: Any) -> Any:
        # On one line, as above.
        with self._writers: return method(self, *arguments, **named)  # noqa: E701  # fmt: skip

    return locked  # type: ignore[return-value]


class Writable:
    """An object with a lock for those who change it."""

    @property
    def _writers(self) -> Any:
        """The lock; of two threads that make one, the first counts. The thread that holds it may take it again."""
        return _LOCKS.get(self) or _LOCKS.setdefault(self, threading.RLock())


# --- One BLAS thread --------------------------------------------------------------------------------------------------


@contextmanager
def limited(n_rows: int) -> Iterator[None]:
    """Limit BLAS to one thread, or ``LABELRACE_THREADS``, while some rows are multiplied.

    The number of threads is one for the whole process: who comes first sets it, who leaves last sets it back.
    """
    if n_rows < _FEWEST_ROWS:
        yield
        return
    # On one line each, as in `one_at_a_time`.
    with _lock: _enter()  # noqa: E701  # fmt: skip
    try:
        yield
    finally:
        with _lock: _leave()  # noqa: E701  # fmt: skip


def _enter() -> None:
    global _inside, _limit, _controller
    if _inside == 0:
        if _controller is None:
            _controller = ThreadpoolController().select(user_api="blas")
        wanted = max(1, int(os.environ.get("LABELRACE_THREADS") or 1))
        for library in _controller.lib_controllers:
            if library.num_threads > wanted:
                _limit = _controller.limit(limits=wanted)
                break
    _inside += 1


def _leave() -> None:
    global _inside, _limit
    _inside -= 1
    if _inside == 0 and _limit is not None:
        _limit.restore_original_limits()
        _limit = None
