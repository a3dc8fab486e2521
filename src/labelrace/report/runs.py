"""Records grouped by model and run, and the means over runs that curves and labels are drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from labelrace.evaluation import FORMAT
from labelrace.evaluation.checkpoint import running_means
from labelrace.exceptions import DataFormatError
from labelrace.typing import BoolArray, FloatArray

# From text to numbers, where that was done, once for all models; then each model's own.
PHASES = ("features", "predict", "learn", "measure")
# How the values of a curve are averaged, and what the page calls it.
KINDS = {"batch": "Per batch", "windowed": "Windowed", "cumulative": "Cumulative"}
_MOST_POINTS = 400
# What records must have, by kind.
_FIELDS = {
    "batch": ("batch", "start", "end", "whole", "measures", "seconds"),
    "labels": ("frequency", "f1"),
    "done": ("rows", "seconds"),
    "failed": ("error",),
}


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
        """Return the number of rows that those seconds were spent on."""
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
        if missing := [name for name in _FIELDS.get(record["kind"], ()) if name not in record]:
            raise DataFormatError(f"A record of kind {record['kind']!r} must have {', '.join(missing)}, got {record!r}")
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


def curves(runs: Runs, measures: Sequence[str]) -> dict[str, Any]:
    """Return the curves of every measure and model, as means over the runs.

    ``batch`` is the value of each test batch; ``windowed`` the mean of the last ``window`` batches and ``cumulative``
    that of all batches so far, both over whole batches, so that the cumulative curve of finished runs ends at the
    value in the table. ``rows`` is where each point ends; ``values`` are by measure and kind, one list per model.
    """
    ends = sorted({end for of_model in runs.values() for run in of_model.values() for end in run.tested})
    window = max(2, round(math.sqrt(len(ends))))
    # The last indices of even stretches.
    n_points = min(len(ends), _MOST_POINTS)
    last = [len(ends) * (point + 1) // n_points - 1 for point in range(n_points)]
    starts = [0, *(index + 1 for index in last)]
    values: dict[str, dict[str, list[list[float | None]]]] = {}
    for measure in measures:
        values[measure] = {kind: [] for kind in KINDS}
        for of_model in runs.values():
            table, whole = _table(of_model, ends, measure)
            # A partial batch leaves the means of whole batches as they were.
            counted, line = np.where(whole, table, np.nan), mean(table)
            lines: dict[str, Any] = {
                "batch": [mean(line[start : stop + 1]) for start, stop in zip(starts, last, strict=False)],
                "windowed": mean(_until_the_end(running_means(counted, window=window), table))[last],
                "cumulative": mean(_until_the_end(running_means(counted), table))[last],
            }
            for kind, points in lines.items():
                values[measure][kind].append([plain(value) for value in points])
    return {"rows": [ends[index] for index in last], "batches": len(ends), "window": window, "values": values}


def labels(runs: Runs, chosen: Mapping[str, Sequence[Run]], names: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return how often each label occurs and the F1 each model reached on it, as means over the runs.

    Frequencies are of the data, so all the models' records are averaged; F1 only over the chosen runs. ``trend`` is
    the mean F1 over labels of similar frequency; ``f1`` and ``trend`` have one list per model. A label without a name
    has its column number. None where no run has such a record.
    """
    recorded = [run.labels for of_model in runs.values() for run in of_model.values() if run.labels]
    width = max((len(record["frequency"]) for record in recorded), default=0)
    if not width:
        return None
    frequency = mean(_stack([record["frequency"] for record in recorded], width))
    f1 = [mean(_stack([run.labels["f1"] for run in of_model if run.labels], width)) for of_model in chosen.values()]
    return {
        "names": [str(names[label]) if label < len(names) else str(label) for label in range(width)],
        "frequency": [plain(value) for value in frequency],
        "f1": [[plain(value) for value in line] for line in f1],
        "trend": [[plain(value) for value in _trend(frequency, line)] for line in f1],
    }


def _trend(frequency: FloatArray, line: FloatArray) -> FloatArray:
    """Return for each label the mean over its neighbours in the order of frequency."""
    order = np.argsort(frequency, kind="stable")
    reach = max(1, round(0.75 * math.sqrt(line.size)))
    padded = np.pad(line[order], reach, constant_values=np.nan)
    smooth = np.empty_like(line)
    smooth[order] = mean(np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1), axis=1)
    return smooth


def _table(of_model: Mapping[int, Run], ends: Sequence[int], measure: str) -> tuple[FloatArray, BoolArray]:
    """Return the values, runs by batches, and which of them count in means."""
    table = np.full((len(of_model), len(ends)), np.nan)
    whole = np.zeros(table.shape, dtype=bool)
    columns = {end: column for column, end in enumerate(ends)}
    for row, run in enumerate(of_model.values()):
        for end, batch in run.tested.items():
            table[row, columns[end]] = value_of(batch, measure)
        whole[row, [columns[end] for end in run.averaged]] = True
    return table, whole


def _until_the_end(means: FloatArray, table: FloatArray) -> FloatArray:
    """Leave out the means beyond the last value of each run."""
    reached = np.cumsum(~np.isnan(table[:, ::-1]), axis=1)[:, ::-1] > 0
    return np.where(reached, means, np.nan)


def _stack(lines: Sequence[Sequence[float | None]], width: int) -> FloatArray:
    """Return lists of labels as rows of one table; a run that had fewer labels is padded with NaN."""
    table = np.full((len(lines), width), np.nan)
    for row, line in enumerate(lines):
        table[row, : len(line)] = [np.nan if value is None else value for value in line]
    return table
