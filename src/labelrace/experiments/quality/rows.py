"""What came out on one dataset: a row for each model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from labelrace.evaluation import as_reliability
from labelrace.experiments.quality.models import REFERENCE
from labelrace.experiments.quality.sources import QualitySource
from labelrace.experiments.verdict import Estimate
from labelrace.measures import PAPER_MEASURES
from labelrace.measures.calibration import Reliability, merge
from labelrace.report import summarize
from labelrace.report.collect import Run, collect, value_of

__all__ = ["CALIBRATION", "MEASURES", "QualityBlock", "QualityRow", "read_block"]

CALIBRATION = "calibration_error"
MEASURES = (*PAPER_MEASURES, CALIBRATION)


@dataclass(frozen=True)
class QualityRow:
    """One model on one dataset: means over the runs that were finished.

    Parameters
    ----------
    model : str
    values : dict
        Estimate of each of `MEASURES`, None where there is none.
    reliability : Reliability or None
        Over all runs; None for a model that gives no probabilities.
    seconds : float or None
        Of a run, to predict label sets and to learn.
    ratio : float or None
        To the seconds of the fast form of race-cls-fixed: the median over runs, each compared with the same run of it.
    before, after : float or None
        Example F just before the drift of a synthetic stream, and just after it.
    failed : str
        Why the first of its runs that failed did.
    """

    model: str
    values: dict[str, Estimate | None]
    reliability: Reliability | None
    seconds: float | None
    ratio: float | None
    before: float | None
    after: float | None
    failed: str


@dataclass(frozen=True)
class QualityBlock:
    """One dataset, and its rows by model; the reference's, which is not ranked, is the last."""

    source: QualitySource
    rows: dict[str, QualityRow]


def read_block(
    source: QualitySource, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> QualityBlock:
    """Read what `labelrace.evaluation.run` gave on a dataset."""
    runs = collect(manifest, records)
    told = {model["name"]: model for model in summarize(manifest, records)["models"]}
    bins = _reliabilities(runs, records)
    names = [*(name for name in told if name != REFERENCE), REFERENCE]
    rows = {name: _row(source, told[name], runs[name], runs[REFERENCE], bins.get(name, [])) for name in names}
    return QualityBlock(source, rows)


def _row(
    source: QualitySource,
    told: Mapping[str, Any],
    runs: Mapping[int, Run],
    reference: Mapping[int, Run],
    bins: Sequence[Reliability],
) -> QualityRow:
    finished = {number: run for number, run in runs.items() if run.done}
    cells = {name: told["measures"][name] for name in PAPER_MEASURES if finished}
    values = {name: _estimate(cell["mean"], cell["sd"], cell["runs"]) for name, cell in cells.items()}
    errors = np.array([one.error for one in bins if not np.isnan(one.error)])
    if len(errors):
        values[CALIBRATION] = _estimate(errors.mean(), errors.std(ddof=1) if len(errors) > 1 else None, len(errors))
    before, after = (_window(finished.values(), span) for span in source.windows or (None, None))
    return QualityRow(
        told["name"],
        {name: values.get(name) for name in MEASURES},
        reduce(merge, bins) if bins else None,
        told["seconds"]["total"] if finished else None,
        _ratio(finished, reference),
        before,
        after,
        next((str(run.failed["error"]) for run in runs.values() if run.failed), ""),
    )


def _reliabilities(
    runs: Mapping[str, Mapping[int, Run]], records: Iterable[Mapping[str, Any]]
) -> dict[str, list[Reliability]]:
    """Return the bins of each finished run, by model."""
    bins: dict[str, list[Reliability]] = {}
    for record in records:
        if record["kind"] == "calibration" and runs[record["model"]][record["run"]].done:
            bins.setdefault(record["model"], []).append(as_reliability(record))
    return bins


def _estimate(mean: float | None, sd: float | None, runs: int) -> Estimate | None:
    return None if mean is None else Estimate(float(mean), None if sd is None else float(sd), runs)


def _ratio(runs: Mapping[int, Run], reference: Mapping[int, Run]) -> float | None:
    """Compare times run by run, so that what slows the machine down for a while slows both."""
    ratios = [
        _model_seconds(run) / _model_seconds(reference[number])
        for number, run in runs.items()
        if number in reference and reference[number].done
    ]
    return float(np.median(ratios)) if ratios else None


def _model_seconds(run: Run) -> float:
    seconds = run.seconds()
    return seconds["predict"] + seconds["learn"]


def _window(runs: Iterable[Run], span: tuple[float, float] | None) -> float | None:
    """Return the mean example F of the batches that lie in a span of rows, over runs."""
    if span is None:
        return None
    low, high = span
    values = [
        value_of(batch, "example_f1")
        for run in runs
        for batch in run.tested.values()
        if batch["start"] >= low and batch["end"] <= high
    ]
    return float(np.mean(values)) if values else None
