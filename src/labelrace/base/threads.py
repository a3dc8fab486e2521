"""One BLAS thread for our products, by default.

Blocks are small: a second thread makes them hardly faster, and takes several times the processor's time. The
environment variable ``LABELRACE_THREADS`` allows more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Rows from which products are large enough for BLAS to use several threads; fewer are not worth the limit's own time.
_FEWEST_ROWS = 32

_lock = threading.RLock()
_inside = 0
_limit: Any = None
_controller: ThreadpoolController | None = None


@contextmanager
def limited(n_rows: int) -> Iterator[None]:
    """Limit BLAS to one thread, or ``LABELRACE_THREADS``, while some rows are multiplied.

    The number of threads is one for the whole process: who comes first sets it, who leaves last sets it back.
    """
    if n_rows < _FEWEST_ROWS:
        yield
        return
    # On one line each, as in `labelrace.base.locks.one_at_a_time`.
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
