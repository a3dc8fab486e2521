"""Records as they were written -> the runs of each model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from labelrace.evaluation import FORMAT
from labelrace.exceptions import DataFormatError
from labelrace.typing import FloatArray

__all__ = ["PHASES", "Run", "collect", "mean", "plain", "value_of"]

PHASES = ("predict", "learn", "measure")


@dataclass
class Run:
    """What the records say of one run of one model."""

    batches: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    labels: Mapping[str, Any] | None = None
    done: Mapping[str, Any] | None = None
    failed: Mapping[str, Any] | None = None

    # Asked for once per measure, after all records are in.
    @cached_property
    def tested(self) -> dict[int, Mapping[str, Any]]:
        """The batches with any value, by the row they end at; numbers differ where a model learns all at once."""
        return {batch["end"]: batch for _, batch in sorted(self.batches.items()) if _any_value(batch)}

    @cached_property
    def averaged(self) -> dict[int, Mapping[str, Any]]:
        """Those of the tested batches that count in means: the whole ones, or all where none is whole."""
        return {end: batch for end, batch in self.tested.items() if batch["whole"]} or self.tested

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, from the closing record or else from what the batches add up to."""
        parts = [self.done["seconds"]] if self.done else [batch["seconds"] for batch in self.batches.values()]
        return {phase: float(sum(part.get(phase) or 0.0 for part in parts)) for phase in PHASES}

    def rows(self) -> int:
        """Return how many rows those seconds were spent on."""
        if self.done:
            return int(self.done["rows"])
        return sum(int(batch["end"]) - int(batch["start"]) for batch in self.batches.values())

    def memory(self) -> float:
        """Return the most memory that was noted, in bytes; NaN where none was."""
        noted = [record.get("memory") for record in [*self.batches.values(), *([self.done] if self.done else [])]]
        return max((float(size) for size in noted if size is not None), default=np.nan)


def _any_value(batch: Mapping[str, Any]) -> bool:
    """Return whether the batch was tested: one that was only learned has no value."""
    return any(value is not None for value in (batch.get("measures") or {}).values())


def collect(manifest: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, Run]]:
    """Return the runs of every model, by the model's name and the run's number, models in the manifest's order.

    A record that comes again, as after a run was taken up once more, replaces the earlier one.
    """
    if manifest.get("format") != FORMAT:
        raise DataFormatError(
            f"The manifest is of format {manifest.get('format')!r}; this version reads format {FORMAT}."
        )
    runs: dict[str, dict[int, Run]] = {model["name"]: {} for model in manifest["models"]}
    for record in records:
        run = runs.setdefault(record["model"], {}).setdefault(record["run"], Run())
        match record["kind"]:
            case "batch":
                run.batches[record["batch"]] = record
            case "labels":
                run.labels = record
            case "done":
                run.done, run.failed = record, None
            case "failed":
                run.failed = record
            # Kinds that a later version may add are no concern of this report.
            case _:
                pass
    return runs


def value_of(batch: Mapping[str, Any], measure: str) -> float:
    """Return one value of a batch, NaN where there is none."""
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
