"""The comparison as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from labelrace.experiments.cells import Cell
from labelrace.experiments.published import Facts
from labelrace.experiments.summary import PaperSummary
from labelrace.experiments.verdict import Verdict

__all__ = ["as_csv", "csv_files"]

_CELL_HEADER = (
    *("table", "dataset", "synthetic", "method", "measure", "printed", "ours", "ours_sd", "runs", "rank"),
    *("paper", "paper_sd", "paper_rank", "difference", "verdict", "reason"),
    *("rerun", "rerun_sd", "rerun_difference", "rerun_verdict", "rerun_reason"),
)


def csv_files(summary: PaperSummary) -> dict[str, str]:
    """Return the files by name, with all digits, for programs to read."""
    files = {
        "cells.csv": _cells(summary),
        "datasets.csv": _datasets(summary),
        "ranks.csv": _ranks(summary),
        "times.csv": _times(summary),
    }
    return {**files, "sweep.csv": _sweeps(summary)} if summary.sweeps else files


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as the text of a file; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _cells(summary: PaperSummary) -> str:
    rows: list[Sequence[Any]] = [_CELL_HEADER]
    for table in summary.tables:
        for block in table.blocks:
            rows += [_cell_row(cell, cell.measure in table.measures) for cell in block.cells.values()]
    return as_csv(rows)


def _cell_row(cell: Cell, printed: bool) -> list[Any]:
    start = [cell.table, cell.source.name, cell.source.synthetic, cell.method, cell.measure, printed]
    ours = [None] * 3 if cell.ours is None else list(cell.ours)
    paper = [None] * 3 if cell.paper is None else [cell.paper.text, cell.paper.sd, cell.paper.rank]
    rerun = [None] * 2 if cell.rerun is None else [cell.rerun.text, cell.rerun.sd]
    return [*start, *ours, cell.rank, *paper, *_verdict(cell.verdict), *rerun, *_verdict(cell.rerun_verdict)]


def _verdict(verdict: Verdict | None) -> list[Any]:
    return [None] * 3 if verdict is None else [verdict.difference, verdict.word, verdict.reason]


def _datasets(summary: PaperSummary) -> str:
    header = ["dataset", "found", *Facts._fields, *(f"paper_{name}" for name in Facts._fields)]
    rows: list[Sequence[Any]] = [header]
    for fact in summary.facts:
        found = "synthetic" if fact.source.synthetic else "yes" if fact.same else "another"
        rows.append([fact.source.name, found, *fact.measured, *fact.published])
    shown = {fact.source.name for fact in summary.facts}
    rows += [[name, "no"] for name in summary.missing if name not in shown]
    return as_csv(rows)


def _ranks(summary: PaperSummary) -> str:
    rows: list[Sequence[Any]] = [["table", "whose", "datasets", "method", "measure", "average_rank"]]
    for table in summary.tables:
        for ranks in table.ranks:
            about = [table.number, ranks.title, " ".join(ranks.datasets)]
            rows += [[*about, method, measure, value] for (method, measure), value in ranks.averages.items()]
    return as_csv(rows)


def _times(summary: PaperSummary) -> str:
    rows: list[Sequence[Any]] = [["table", "dataset", "synthetic", "method", "seconds", "paper_seconds"]]
    for table in summary.tables:
        for block in table.blocks:
            about = [table.number, block.source.name, block.source.synthetic]
            rows += [[*about, m, block.seconds[m], block.paper_seconds[m]] for m in table.methods]
    return as_csv(rows)


def _sweeps(summary: PaperSummary) -> str:
    rows: list[Sequence[Any]] = [["dataset", "synthetic", "method", "pseudo_labels", "measure", "mean", "sd"]]
    for sweep in summary.sweeps:
        about = [sweep.source.name, sweep.source.synthetic, sweep.method]
        for measure, means in sweep.means.items():
            values = zip(sweep.counts, means, sweep.deviations[measure], strict=True)
            rows += [[*about, count, measure, mean, sd] for count, mean, sd in values]
    return as_csv(rows)
