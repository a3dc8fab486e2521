"""Records, as they were written, grouped by model and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from labelrace.evaluation import FORMAT
from labelrace.exceptions import DataFormatError
from labelrace.typing import FloatArray

# From text to numbers, where that was done, once for all models; then each model's own.
PHASES = ("features", "predict", "learn", "measure")


@dataclass
class Run:
    """The records of one run of one model."""

    batches: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    labels: Mapping[str, Any] | None = None
    calibration: Mapping[str, Any] | None = None
    done: Mapping[str, Any] | None = None
    failed: Mapping[str, Any] | None = None

    # These are read once per measure, after all records are in.
    @cached_property
    def tested(self) -> dict[int, Mapping[str, Any]]:
        """The batches with any value, by the row they end at; numbers differ where a model learns all at once."""
        return {
            batch["end"]: batch
            for _, batch in sorted(self.batches.items())
            if any(value is not None for value in (batch.get("measures") or {}).values())
        }

    @cached_property
    def averaged(self) -> dict[int, Mapping[str, Any]]:
        """The tested batches that count in means: the whole ones, or all if none is whole."""
        return {end: batch for end, batch in self.tested.items() if batch["whole"]} or self.tested

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, from the closing record, or else the sum over batches."""
        parts = [self.done["seconds"]] if self.done else [batch["seconds"] for batch in self.batches.values()]
        return {phase: float(sum(part.get(phase) or 0.0 for part in parts)) for phase in PHASES}

    def rows(self) -> int:
        """Return how many rows those seconds were spent on."""
        if self.done:
            return int(self.done["rows"])
        return sum(int(batch["end"]) - int(batch["start"]) for batch in self.batches.values())

    def memory(self) -> float:
        """Return the peak memory in bytes; NaN if none was recorded."""
        records = [*self.batches.values(), *([self.done] if self.done else [])]
        sizes = [record.get("memory") for record in records]
        return max((float(size) for size in sizes if size is not None), default=np.nan)


# By the model's name and the run's number.
Runs: TypeAlias = dict[str, dict[int, Run]]


def group_records(manifest: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> Runs:
    """Return the runs of every model, models in the manifest's order.

    A record that comes again, as after a run was resumed, replaces the earlier one. Kinds of records that a later
    version may add are ignored.
    """
    if manifest.get("format") != FORMAT:
        raise DataFormatError(
            f"The manifest must be of format {FORMAT}, got format {manifest.get('format')!r}; "
            "read it with the version of labelrace that wrote it."
        )
    runs: Runs = {model["name"]: {} for model in manifest["models"]}
    for record in records:
        run = runs.setdefault(record["model"], {}).setdefault(record["run"], Run())
        match record["kind"]:
            case "batch":
                run.batches[record["batch"]] = record
            case "labels":
                run.labels = record
            case "calibration":
                run.calibration = record
            case "done":
                run.done, run.failed = record, None
            case "failed":
                run.failed = record
    return runs


def value_of(batch: Mapping[str, Any], measure: str) -> float:
    """Return one value of a batch, NaN if there is none."""
    value = (batch.get("measures") or {}).get(measure)
    return np.nan if value is None or not np.isfinite(value) else float(value)


def mean(values: FloatArray, axis: int = 0) -> FloatArray:
    """Return the mean of what is not NaN; NaN, without a warning, where nothing is."""
    present = ~np.isnan(values)
    counts = present.sum(axis=axis)
    sums = np.where(present, values, 0.0).sum(axis=axis)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def plain(value: Any) -> float | None:
    """Return a number as JSON can hold it: no NaN, no infinity, no NumPy type."""
    return float(value) if np.isfinite(value) else None
