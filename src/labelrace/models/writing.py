"""One writer at a time.

Whoever changes a model makes a new value and assigns it; readers take whichever value there is, without waiting. Two
writers must not start from the same value, or what one of them learned would be gone.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["Writable"]

# Beside the objects, not in them: copies, clones and pickles have a lock of their own, and attributes stay as they are.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class Writable:
    """An object with a lock for those who change it."""

    @property
    def _writers(self) -> Any:
        """The lock; of two threads that make one, the first counts. The thread that holds it may take it again."""
        return _LOCKS.setdefault(self, threading.RLock())
