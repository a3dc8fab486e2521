"""One model on one run: the part of the work that a process does by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.evaluation.holdout import holdout
from labelrace.evaluation.models import ModelSpec
from labelrace.evaluation.prequential import prequential
from labelrace.evaluation.records import Record
from labelrace.evaluation.tally import CalibrationTally, LabelTally

__all__ = ["PROTOCOLS", "Task", "failure", "records_of"]

PROTOCOLS: dict[str, Callable[..., Iterator[Checkpoint]]] = {"prequential": prequential, "holdout": holdout}


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
    """Do a task and yield its records: batches, then labels, calibration if asked for, and done; or failed.

    A first record of kind "started" is for those who watch; it is not for the file. BLAS is held to one thread, so that
    a running time is the method's own and does not depend on what runs beside it.
    """
    yield {"kind": "started", **task.key}
    try:
        with threadpool_limits(limits=1):
            yield from _evaluate(task)
    except Exception as error:
        yield failure(task, f"{type(error).__name__}: {error}")


def failure(task: Task, error: str) -> Record:
    """Return the record of a task that went wrong."""
    return {"kind": "failed", **task.key, "error": error}


def _evaluate(task: Task) -> Iterator[Record]:
    model = task.model.make(task.seed, getattr(task.data, "categorical", None))
    tally, totals, rows = LabelTally(), Counter[str](), 0
    memory: int | None = None
    evaluation = PROTOCOLS[task.protocol]
    # Batches that are not tested count in the totals.
    options = {"untested": True, **task.options} if task.protocol == "prequential" else dict(task.options)
    calibration = CalibrationTally() if task.calibration and hasattr(model, "predict_proba") else None
    if calibration is not None:
        options["probability_observer"] = calibration
    for checkpoint in evaluation(
        model, task.data, task.batch_size, task.measures, seed=task.seed, observer=tally, **options
    ):
        totals.update(checkpoint.seconds)
        rows = checkpoint.end
        memory = max(filter(None, (memory, checkpoint.memory)), default=None)
        if checkpoint.tested:
            yield {"kind": "batch", **task.key, "seed": task.seed, **checkpoint.to_record()}
    yield {"kind": "labels", **task.key, **tally.to_record()}
    if calibration is not None:
        yield {"kind": "calibration", **task.key, **calibration.to_record()}
    yield {"kind": "done", **task.key, "rows": rows, "seconds": dict(totals), "memory": memory}
