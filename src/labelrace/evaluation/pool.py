"""Tasks in parallel, each in a process of its own.

A process for each task, rather than a pool of them: a task that brings its process down (out of memory, say) takes no
other with it, and the peak of memory is the task's own. A pipe for each process, rather than a common queue: no lock is
left behind by a process that dies.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from labelrace.evaluation.records import Record
from labelrace.evaluation.worker import Task, failure, records_of

__all__ = ["default_jobs", "perform", "process_context"]

_LAST = ("done", "failed")


def default_jobs() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def perform(tasks: Iterable[Task], jobs: int) -> Generator[Record, None, None]:
    """Do tasks and yield their records as they come.

    Parameters
    ----------
    tasks : iterable of Task
    jobs : int
        How many at a time. A single one is done in this process.
    """
    if jobs == 1:
        return (record for task in tasks for record in records_of(task))
    return _in_processes(tasks, jobs)


def _in_processes(tasks: Iterable[Task], jobs: int) -> Generator[Record, None, None]:
    context = process_context()
    waiting = deque(tasks)
    running: dict[Connection, _Worker] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                worker = _Worker(context, waiting.popleft())
                running[worker.pipe] = worker
            for pipe in wait(list(running)):
                worker = running[cast(Connection, pipe)]
                record = worker.receive()
                if record is not None:
                    yield record
                if worker.ended:
                    del running[worker.pipe]
    finally:
        for worker in running.values():
            worker.stop()


class _Worker:
    """A process that does a task, as the parent sees it."""

    def __init__(self, context: Any, task: Task) -> None:
        self._task = task
        self.ended = False
        self._finished = False
        self.pipe, theirs = context.Pipe(duplex=False)
        self._process: BaseProcess = context.Process(target=_work, args=(task, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def receive(self) -> Record | None:
        """Return the next record; None when the process has ended after its last."""
        try:
            record: Record = self.pipe.recv()
        except (EOFError, OSError):
            return self._bury()
        self._finished = record["kind"] in _LAST
        return record

    def stop(self) -> None:
        """End the process now."""
        self._process.terminate()
        self._bury()

    def _bury(self) -> Record | None:
        self.ended = True
        self.pipe.close()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        if self._finished:
            return None
        return failure(self._task, f"the process ended before its time, with exit code {code}")


def process_context() -> Any:
    """Return the way to start processes: not as copies of this one, whose threads and locks they would lack."""
    methods = multiprocessing.get_all_start_methods()
    if "forkserver" not in methods:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Imported once, by the server, rather than by each process. "__main__" is what it imports anyway.
    context.set_forkserver_preload(["__main__", __name__])
    _start_server()
    return context


def _start_server() -> None:
    """Start the fork server deaf to Ctrl-C, which a terminal sends to it as well and which it would complain about."""
    if threading.current_thread() is not threading.main_thread():
        return
    from multiprocessing import forkserver

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def _work(task: Task, pipe: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal, but it is the parent that ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.showwarning = _show_in_a_line
    # The pipe is broken when the parent is gone: there is nobody to tell, and nothing left to do.
    with pipe, suppress(BrokenPipeError):
        for record in records_of(task):
            pipe.send(record)


def _show_in_a_line(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
