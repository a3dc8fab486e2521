"""The work of a run: one model on one run is a task, done in this process or in one of its own; and its progress.

Each task has a process of its own, rather than one of a pool: a task that brings its process down (out of memory, say)
affects no other, and the peak of memory is the task's own. Each process has a pipe of its own, rather than a common
queue: a process that dies leaves no lock behind.
"""

from __future__ import annotations

import inspect
import math
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Literal, cast

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.evaluation.checkpoint import CalibrationCounts, Checkpoint, LabelCounts
from labelrace.evaluation.holdout import holdout
from labelrace.evaluation.prequential import prequential
from labelrace.evaluation.protocol import check_options
from labelrace.evaluation.records import Record

if TYPE_CHECKING:
    from labelrace.evaluation.experiment import ModelSpec

_LAST = ("done", "failed")

PROTOCOLS: dict[str, Callable[..., Iterator[Checkpoint]]] = {"prequential": prequential, "holdout": holdout}

# What can be chosen for a run, besides what `run` has parameters for.
_OPTIONS = {
    "prequential": ("delay", "missing", "memory"),
    "holdout": ("test_share", "iterations", "missing", "memory"),
}


def changed_options(protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of a protocol, and return those that differ from the defaults and may change a measure."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    for name in options:
        if name not in _OPTIONS[protocol]:
            raise TypeError(f"options of {protocol} must be some of {', '.join(_OPTIONS[protocol])}, got {name!r}")
    # Measuring memory changes no measure.
    relevant = {name: value for name, value in options.items() if name != "memory"}
    check_options(**relevant)
    defaults = inspect.signature(PROTOCOLS[protocol]).parameters
    return {name: value for name, value in relevant.items() if value != defaults[name].default}


@dataclass(frozen=True, eq=False)
class Task:
    """A model and a run, with all that it takes to do it in another process."""

    model: ModelSpec
    run: int
    seed: int
    data: Any
    protocol: str
    batch_size: int
    measures: tuple[str, ...]
    options: Mapping[str, Any]
    calibration: bool = False

    @property
    def key(self) -> dict[str, Any]:
        """What each of its records begins with, after the kind."""
        return {"model": self.model.label, "run": self.run}


def records_of(task: Task) -> Iterator[Record]:
    """Do a task and yield its records: batches, then labels, calibration if wanted, and done; or failed.

    A first record of kind "started" is for the progress only, not for the file. BLAS is held to one thread, so that
    a running time is the method's own and does not depend on what runs beside it.
    """
    yield {"kind": "started", **task.key}
    try:
        with threadpool_limits(limits=1):
            yield from _evaluate(task)
    except Exception as error:
        yield _failure(task, f"{type(error).__name__}: {error}")


def _failure(task: Task, error: str) -> Record:
    """Return the record of a task that went wrong."""
    return {"kind": "failed", **task.key, "error": error}


def _evaluate(task: Task) -> Iterator[Record]:
    model = task.model.make(task.seed, getattr(task.data, "categorical", None))
    labels, totals, rows = LabelCounts(), Counter[str](), 0
    memory: int | None = None
    evaluation, data, options = PROTOCOLS[task.protocol], task.data, dict(task.options)
    if task.protocol == "prequential":
        # Batches that are not tested count in the totals.
        options["untested"] = True
        data = labels.observe_stream(task.data.batches(task.batch_size))
    calibration = CalibrationCounts() if task.calibration and hasattr(model, "predict_proba") else None
    if calibration is not None:
        options["probability_observer"] = calibration
    for checkpoint in evaluation(
        model, data, task.batch_size, task.measures, seed=task.seed, observer=labels, **options
    ):
        totals.update(checkpoint.seconds)
        rows = checkpoint.end
        memory = max(filter(None, (memory, checkpoint.memory)), default=None)
        if checkpoint.tested:
            counts = {what: getattr(model, f"n_{what}_", None) for what in ("alarms", "drifts")}
            more = {what: count for what, count in counts.items() if count is not None}
            yield {"kind": "batch", **task.key, "seed": task.seed, **checkpoint.to_record(), **more}
    yield {"kind": "labels", **task.key, **labels.to_record()}
    if calibration is not None:
        yield {"kind": "calibration", **task.key, **calibration.to_record()}
    yield {"kind": "done", **task.key, "rows": rows, "seconds": dict(totals), "memory": memory}


def default_jobs() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def perform(tasks: Iterable[Task], jobs: int) -> Generator[Record, None, None]:
    """Do tasks, `jobs` at a time (in this process if 1), and yield their records in the order in which they arrive."""
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
                task = waiting.popleft()
                try:
                    worker = _Worker(context, task)
                except (PicklingError, AttributeError, TypeError) as error:
                    yield _failure(task, f"cannot be sent to another process ({error}); use jobs=1")
                except (OSError, EOFError) as error:
                    yield _failure(task, f"its process could not be started ({type(error).__name__}: {error})")
                else:
                    running[worker.pipe] = worker
            for pipe in wait(list(running)) if running else ():
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
        try:
            self._process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()

    def receive(self) -> Record | None:
        """Return the next record; None when the process has ended after its last."""
        try:
            record: Record = self.pipe.recv()
        except (EOFError, OSError):
            return self._close()
        self._finished = record["kind"] in _LAST
        return record

    def stop(self) -> None:
        """End the process now."""
        self._process.terminate()
        self._close()

    def _close(self) -> Record | None:
        self.ended = True
        self.pipe.close()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        if self._finished:
            return None
        return _failure(self._task, f"the process ended before the task was done, with exit code {code}")


def process_context() -> Any:
    """Return the way to start processes: not as copies of this one, whose threads and locks they would lack."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Imported once, by the server, rather than by each process. "__main__" is what it imports anyway.
    context.set_forkserver_preload(["__main__", __name__])
    if threading.current_thread() is threading.main_thread():
        from multiprocessing import forkserver

        # Started so that it ignores Ctrl-C, which a terminal sends to all processes.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            forkserver.ensure_running()
        finally:
            signal.signal(signal.SIGINT, before)
    return context


def _work(task: Task, pipe: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal, but it is the parent that ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.showwarning = lambda message, *_, **__: print(f"Warning: {message}", file=sys.stderr)
    # The pipe is broken when the parent has ended; then there is nothing left to do.
    with pipe, suppress(BrokenPipeError):
        for record in records_of(task):
            pipe.send(record)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass(frozen=True)
class Progress:
    """How far a run is, as `run` passes it to ``on_progress``.

    Parameters
    ----------
    kind : {"started", "batch", "done", "failed"}
    model : str
    run : int
    rows : int, default=0
        Rows of the stream that the model has processed in this run.
    total_rows : int or None, default=None
        Rows of the stream, if known. Those of a held-out test set are among them.
    measures : dict, default={}
        Means so far, weighted by rows.
    error : str or None, default=None
        Why it failed.
    finished, total : int, default=0
        How many pairs of model and run are finished, failed ones included, of how many to do in this call.
    """

    kind: Literal["started", "batch", "done", "failed"]
    model: str
    run: int
    rows: int = 0
    total_rows: int | None = None
    measures: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    finished: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """Share of this pair of model and run that is done, as far as the number of rows is known."""
        if self.kind in _LAST:
            return 1.0
        return min(self.rows / self.total_rows, 1.0) if self.total_rows else 0.0


def progress_of(records: Iterable[Record], total_rows: int | None, total: int) -> Iterator[tuple[Record, Progress]]:
    """Yield each record with the progress that it makes."""
    finished, rows = 0, Counter[tuple[str, int]]()
    # For each pair of model and run, and each measure: the weighted sum of values, and their rows.
    sums_of: dict[tuple[str, int], dict[str, tuple[float, int]]] = {}
    for record in records:
        kind, pair = record["kind"], (record["model"], record["run"])
        sums = sums_of.setdefault(pair, {})
        if kind == "batch":
            new, rows[pair] = record["end"] - record["start"], record["end"]
            for name, value in record["measures"].items():
                total_value, weight = sums.get(name, (0.0, 0))
                sums[name] = (total_value, weight) if value is None else (total_value + new * value, weight + new)
        finished += kind in _LAST
        means = {name: value / weight if weight else math.nan for name, (value, weight) in sums.items()}
        yield record, Progress(kind, *pair, rows[pair], total_rows, means, record.get("error"), finished, total)
