"""The data of the charts: measures over the stream, and F1 of each label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelrace.evaluation.curves import running_means
from labelrace.report.runs import Run, Runs, mean, plain, value_of
from labelrace.typing import BoolArray, FloatArray

# How the values of a curve are averaged, and what the page calls it.
KINDS = {"batch": "Per batch", "windowed": "Windowed", "cumulative": "Cumulative"}
_MOST_POINTS = 400


def curves(runs: Runs, measures: Sequence[str]) -> dict[str, Any]:
    """Return the curves of every measure and model, as means over the runs.

    ``batch`` is the value of each test batch; ``windowed`` the mean of the last ``window`` batches and ``cumulative``
    that of all batches so far, both over whole batches, so that the cumulative curve of finished runs ends at the
    value in the table. ``rows`` is where each point ends; ``values`` are by measure and kind, one list per model.
    """
    ends = sorted({end for of_model in runs.values() for run in of_model.values() for end in run.tested})
    window = max(2, round(math.sqrt(len(ends))))
    # The last places of even stretches.
    n_points = min(len(ends), _MOST_POINTS)
    last = [len(ends) * (point + 1) // n_points - 1 for point in range(n_points)]
    starts = [0, *(place + 1 for place in last)]
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
    return {"rows": [ends[place] for place in last], "batches": len(ends), "window": window, "values": values}


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
        "names": [str(names[place]) if place < len(names) else str(place) for place in range(width)],
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
    places = {end: place for place, end in enumerate(ends)}
    for row, run in enumerate(of_model.values()):
        for end, batch in run.tested.items():
            table[row, places[end]] = value_of(batch, measure)
        whole[row, [places[end] for end in run.averaged]] = True
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
