"""Interrupts at chosen lines of the library."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import labelrace

HOME = str(Path(labelrace.__file__).parent)
# How far apart the lines are at which calls are interrupted: at every one with ``--all-models``, as in the gate.
STEP = 1 if os.environ.get("LABELRACE_ALL_MODELS") else 5


def interrupted_at(line: int, call: Callable[[], object], *, without: str | None = None) -> bool:
    """Call a function and raise a KeyboardInterrupt at the given line that is executed; tell whether it came so far.

    Lines of files with ``without`` in their name do not count.
    """
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        file = frame.f_code.co_filename
        if not file.startswith(HOME) or (without is not None and without in file):
            return None
        if event == "line":
            count += 1
            if count == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def each_line(make: Callable[[], object], call: Callable[[object], object], check: Callable[[object], None]) -> int:
    """Interrupt a call at one line after the other, each time with a new object, and check what is left.

    Return how many lines there are.
    """
    line = 1
    while True:
        made = make()
        was_interrupted = interrupted_at(line, lambda made=made: call(made))
        check(made)
        if not was_interrupted:
            return line - 1
        line += STEP
