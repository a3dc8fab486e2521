"""What is known after one batch of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """One batch of an evaluation: what was measured, how long it took, how much memory it needed.

    Parameters
    ----------
    batch : int
        Number of the batch; 0 is the first.
    start, end : int
        Its rows, `end` excluded, counted from the start of the stream.
    measures : dict of str to float
        Measured on this batch alone; NaN where a measure is not defined on it.
    seconds : dict of str to float
        Time to "predict" (label sets, and scores if a measure needs them), to "learn" and to "measure".
    memory : int or None
        Peak memory in bytes, as `labelrace.evaluation.meters` tells it; None where the system does not say.
    whole : bool
        Whether the batch counts in `averages`. A last batch with fewer rows is tested and learned, but does not.
    tested : bool
        Whether the batch was tested. The first is only learned.

    Examples
    --------
    >>> seconds = {"predict": 0.1, "learn": 0.2, "measure": 0.0}
    >>> checkpoint = Checkpoint(1, 500, 1000, {"micro_f1": 0.5, "macro_auc": float("nan")}, seconds)
    >>> checkpoint.rows
    500
    >>> checkpoint.to_record()["measures"]
    {'micro_f1': 0.5, 'macro_auc': None}
    """

    batch: int
    start: int
    end: int
    measures: dict[str, float]
    seconds: dict[str, float]
    memory: int | None = None
    whole: bool = True
    tested: bool = True

    @property
    def rows(self) -> int:
        """Number of rows of the batch."""
        return self.end - self.start

    def to_record(self) -> dict[str, Any]:
        """Return what JSON can hold: NaN, which it cannot, becomes None."""
        record = {
            "kind": "batch",
            "batch": self.batch,
            "start": self.start,
            "end": self.end,
            "whole": self.whole,
            "measures": {name: None if math.isnan(value) else value for name, value in self.measures.items()},
            "seconds": dict(self.seconds),
            "memory": self.memory,
        }
        return record if self.tested else {**record, "tested": False}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Make a checkpoint from a record of kind "batch"; what else the record holds is left out."""
        measures = {name: math.nan if value is None else value for name, value in record["measures"].items()}
        return cls(
            batch=record["batch"],
            start=record["start"],
            end=record["end"],
            measures=measures,
            seconds=dict(record["seconds"]),
            memory=record["memory"],
            whole=record["whole"],
            tested=record.get("tested", True),
        )
