"""How far a long call is: a bar in a terminal, and in a notebook, where it needs no widgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

Show: TypeAlias = Callable[[float, str], None]  # of how much is done, and what to say

# Seconds between two drawings in a notebook.
_PAUSE = 0.1


@contextmanager
def progress_bar(wanted: bool, total: float | None) -> Iterator[Show]:
    """Yield what draws the progress, if it is wanted; nothing is drawn where neither terminal nor notebook is.

    The total is None if it is not known. The bar goes when the call ends.
    """
    if wanted and _in_notebook():
        yield from _in_html(total)
    elif wanted:
        yield from _in_terminal(total)
    else:
        yield lambda done, text: None


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _in_terminal(total: float | None) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True, force_jupyter=False)
    columns = BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=text)


def _in_html(total: float | None) -> Iterator[Show]:
    from labelrace.base.notebook import escaped  # here, as only notebooks need it

    handle: Any = import_module("IPython.display").display({"text/html": ""}, raw=True, display_id=True)
    drawn = 0.0

    def show(done: float, text: str) -> None:
        nonlocal drawn
        if time.monotonic() >= drawn + _PAUSE:
            drawn = time.monotonic()
            value = "" if total is None else f" max={total:g} value={done:g}"
            handle.update({"text/html": f"<progress{value}></progress> {escaped(text)}"}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/html": ""}, raw=True)
