"""One writer at a time, and locks that an interrupt cannot leave behind.

Whoever changes a model makes a new value and assigns it; readers take whichever value there is, without waiting. Two
writers must not start from the same value, or what one of them learned would be gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# Beside the objects, not in them: copies, clones and pickles have a lock of their own, and attributes stay as they are.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


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
