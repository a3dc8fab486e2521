"""How far a run is, for those who watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.evaluation.curves import RunningMeans
from labelrace.evaluation.records import Record

__all__ = ["Progress", "Watcher"]


@dataclass(frozen=True)
class Progress:
    """What `run` tells those who watch.

    Parameters
    ----------
    kind : {"started", "batch", "done", "failed"}
    model : str
    run : int
    rows : int
        Rows of the stream that this model has got through in this run.
    total_rows : int or None
        Rows of the stream, if it is known. Those of a held-out test set are among them.
    measures : dict
        Means so far, weighted by rows.
    error : str or None
        Why it failed.
    finished, total : int
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


class Watcher:
    """Turns records into the progress of a run."""

    def __init__(self, on_progress: Callable[[Progress], object] | None, total_rows: int | None, total: int) -> None:
        self._on_progress = on_progress
        self._total_rows = total_rows
        self._total = total
        self._finished = 0
        self._means: dict[tuple[str, int], RunningMeans] = {}
        self._rows: dict[tuple[str, int], int] = {}

    def tell(self, record: Record) -> None:
        """Tell of a record."""
        kind, pair = record["kind"], (record["model"], record["run"])
        if self._on_progress is None or kind in ("labels", "calibration"):
            return
        means = self._means.setdefault(pair, RunningMeans())
        if kind == "batch":
            checkpoint = Checkpoint.from_record(record)
            means.add(checkpoint.measures, checkpoint.rows)
            self._rows[pair] = checkpoint.end
        self._finished += kind in ("done", "failed")
        progress = Progress(
            kind,
            *pair,
            rows=self._rows.get(pair, 0),
            total_rows=self._total_rows,
            measures=means.values(),
            error=record.get("error"),
            finished=self._finished,
            total=self._total,
        )
        self._on_progress(progress)
