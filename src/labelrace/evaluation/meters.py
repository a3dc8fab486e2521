"""Time and memory of an evaluation."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import resource

__all__ = ["PARTS", "Stopwatch", "memory_meter", "peak_resident"]

PARTS = ("predict", "learn", "measure")


class Stopwatch:
    """Seconds spent on each part of a batch.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> with watch.timing("learn"):
    ...     total = sum(range(1000))
    >>> watch.seconds["learn"] > 0, watch.seconds["predict"]
    (True, 0.0)
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def timing(self, part: str) -> Iterator[None]:
        """Add the time that the block takes to a part."""
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


@contextmanager
def memory_meter(trace: bool = False) -> Iterator[Callable[[], int | None]]:
    """Provide a function that tells a peak of memory, in bytes.

    Parameters
    ----------
    trace : bool
        False: the largest resident memory of the process since it began, with interpreter, libraries and data. It
        costs nothing, and it never falls; None where the system does not tell. True: what Python and NumPy had
        allocated at most since the function was last called, counted from the meter's start. That is the method's
        own, but tracing slows it down.
    """
    if not trace:
        yield peak_resident
        return
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        yield _traced_peak
    finally:
        if not was_tracing:
            tracemalloc.stop()


def peak_resident() -> int | None:
    """Return the largest resident memory that the process had, in bytes."""
    if sys.platform == "win32":
        return None
    # The unit is the system's: bytes on macOS, KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _traced_peak() -> int:
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return peak
