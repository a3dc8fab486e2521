"""The comparison as CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelrace.experiments.quality.models import REFERENCE
from labelrace.experiments.quality.rows import MEASURES, QualityBlock, QualityRow
from labelrace.experiments.quality.summary import QualitySummary, places
from labelrace.experiments.tables import as_csv

__all__ = ["csv_files"]

_ABOUT = ("dataset", "synthetic", "drift", "rows", "features", "labels", "cardinality", "batch_size")
_TIMES = ("seconds", "time_ratio", "example_f1_before", "example_f1_after")


def csv_files(summary: QualitySummary) -> dict[str, str]:
    """Return the files by name, with all digits, for programs to read."""
    return {"quality.csv": _values(summary), "ranks.csv": _ranks(summary), "reliability.csv": _bins(summary)}


def _values(summary: QualitySummary) -> str:
    columns = [f"{measure}{part}" for measure in MEASURES for part in ("", "_sd", "_rank")]
    rows: list[Sequence[Any]] = [[*_ABOUT, "model", "reference", "runs", *columns, *_TIMES, "error"]]
    for block in summary.blocks:
        ranks = {measure: places(block, summary.models, measure) for measure in MEASURES}
        rows += [_row(block, row, ranks) for row in block.rows.values()]
    return as_csv(rows)


def _row(block: QualityBlock, row: QualityRow, ranks: dict[str, dict[str, float]]) -> list[Any]:
    source = block.source
    line: list[Any] = []
    for measure in MEASURES:
        value = row.values[measure]
        line += [None, None] if value is None else [value.mean, value.sd]
        line.append(ranks[measure].get(row.model))
    about = [source.name, source.synthetic, source.drift, source.rows, source.features, source.n_labels]
    runs = max((value.runs for value in row.values.values() if value is not None), default=0)
    start = [*about, source.cardinality, source.batch_size, row.model, row.model == REFERENCE, runs]
    return [*start, *line, row.seconds, row.ratio, row.before, row.after, row.failed or None]


def _ranks(summary: QualitySummary) -> str:
    rows: list[Sequence[Any]] = [["over", "datasets", "model", "measure", "average_rank"]]
    for ranks in summary.ranks:
        about = [ranks.kind, "; ".join(ranks.datasets)]
        rows += [[*about, model, measure, value] for (model, measure), value in ranks.averages.items()]
    return as_csv(rows)


def _bins(summary: QualitySummary) -> str:
    rows: list[Sequence[Any]] = [
        ["dataset", "synthetic", "model", "low", "high", "entries", "mean_probability", "share_present"]
    ]
    for block in summary.blocks:
        for row in block.rows.values():
            bins = row.reliability
            if bins is None:
                continue
            parts = (bins.edges[:-1], bins.edges[1:], bins.entries, bins.mean_probability, bins.share_present)
            about = [block.source.name, block.source.synthetic, row.model]
            for low, high, count, mean, share in zip(*(part.tolist() for part in parts), strict=True):
                rows.append([*about, low, high, count, *((mean, share) if count else (None, None))])
    return as_csv(rows)
