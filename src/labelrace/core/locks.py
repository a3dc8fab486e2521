"""Locks that an interrupt cannot leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["one_at_a_time"]

T = TypeVar("T")


def one_at_a_time(lock: Any, change: Callable[..., T], *arguments: Any) -> T:
    """Call a function while no other thread does so with this lock.

    On one line: an interrupt comes before the lock is taken, or inside the function, from where it is always released.
    A line of its own for the end of the block could be interrupted before the lock is free again.
    """
    with lock: return change(*arguments)  # noqa: E701  # fmt: skip
