"""The page's charts: measured against published, the sweep of pseudo labels, critical differences."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from labelrace.experiments.cells import Cell
from labelrace.experiments.summary import PaperSummary, PaperTable, Sweep
from labelrace.experiments.svg import Frame, critical_difference_chart, nice_ticks
from labelrace.report.text import measure_label

__all__ = ["compared_cells", "rank_charts", "scatter_chart", "sweep_charts"]


def compared_cells(summary: PaperSummary) -> list[Cell]:
    """Return the printed cells that have a verdict; Table 3's repeats of Table 2 are left out."""
    cells: dict[tuple[str, ...], Cell] = {}
    for table in summary.tables:
        for cell in table.cells():
            if cell.verdict is not None:
                protocol = "holdout" if table.number == "4" else "prequential"
                cells.setdefault((protocol, cell.source.name, cell.method, cell.measure), cell)
    return list(cells.values())


def scatter_chart(summary: PaperSummary) -> tuple[Markup, list[str]] | None:
    """Draw every compared value against the paper's; return the chart and the datasets, by colour."""
    cells = compared_cells(summary)
    if not cells:
        return None
    datasets = list(dict.fromkeys(cell.source.name for cell in cells))
    top = 1.05 * max(max(cell.ours.mean, cell.paper.value) for cell in cells if cell.ours and cell.paper)
    frame = Frame((460, 440), (0, top), (0, top), "Measured values against published ones", (50, 12, 12, 44))
    ticks = nice_ticks(0, top)
    frame.axes(ticks, ticks, "published", "measured")
    frame.line(0, 0, top, top, "diagonal")
    for cell in cells:
        if cell.ours is None or cell.paper is None or cell.verdict is None:
            continue
        kind = f"model-{datasets.index(cell.source.name)} {'agrees' if cell.verdict.agrees else 'differs'}"
        about = f"{cell.source.name}, {cell.method}, {measure_label(cell.measure)}"
        frame.dot(
            cell.paper.value, cell.ours.mean, kind, 4.5, f"{about}: {cell.ours.mean:.3f}, paper {cell.paper.text}"
        )
    return frame.render(), datasets


def sweep_charts(sweeps: Sequence[Sweep]) -> list[tuple[str, Markup]]:
    """Draw the measures over the number of pseudo labels, one chart a dataset and method."""
    charts = []
    for sweep in sweeps:
        values = [value for means in sweep.means.values() for value in means if value == value]
        span = (sweep.counts[0], max(sweep.counts[-1], sweep.counts[0] + 1))
        title = f"{sweep.source.title}: {sweep.method}"
        frame = Frame((330, 250), span, (0, 1.08 * max([*values, 0.1])), title)
        frame.axes(nice_ticks(*span), nice_ticks(0, 1.08 * max([*values, 0.1])), "pseudo labels")
        for place, means in enumerate(sweep.means.values()):
            frame.curve(sweep.counts, means, f"curve model-{place}")
        charts.append((title, frame.render()))
    return charts


def rank_charts(table: PaperTable) -> list[tuple[str, Markup]]:
    """Draw the critical differences of a table: ours, and the paper's."""
    charts = []
    for ranks in table.ranks:
        if ranks.comparison is not None and ranks.title != "the paper's, on the same datasets":
            test = ranks.comparison
            title = (
                f"{ranks.title[0].upper()}{ranks.title[1:]} ({len(ranks.datasets)} datasets): Friedman's χ² "
                f"{test.statistic:.1f}, p = {test.p_value:.2g}"
            )
            charts.append((title, critical_difference_chart(test, f"Critical differences, {title}")))
    return charts
