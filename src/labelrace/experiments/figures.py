"""The paper's figures, and two of ours, for papers and slides. They need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labelrace.experiments.charts import compared_cells
from labelrace.experiments.cliques import cliques
from labelrace.experiments.ranking import Comparison, RankTable
from labelrace.experiments.summary import HeatRow, PaperSummary, PaperTable, Sweep
from labelrace.measures import PAPER_MEASURES
from labelrace.report import palette
from labelrace.report.canvas import FAST, INK, LINE, MIDDLE, MUTED, SLOW, add_title, as_file, new_figure
from labelrace.report.text import as_signed, measure_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_paper"]

# The original's Majority predicts arbitrary labels, as many as a row has, instead of the most frequent ones.
_MISTAKEN, _MISTAKEN_MARK = ("majority",), "s"


def draw_paper(summary: PaperSummary) -> dict[str, bytes]:
    """Return every figure there is data for, as PNG files by name."""
    figures = {}
    if compared_cells(summary):
        figures["scatter.png"] = _scatter(summary)
    if summary.heat:
        figures["time.png"] = _heat(summary.heat)
    for table in summary.tables:
        shown = [ranks for ranks in table.ranks if ranks.comparison is not None]
        if shown:
            figures[f"ranks-table-{table.number}.png"] = _critical_differences(table, shown)
    if summary.sweeps:
        figures["sweep.png"] = _sweeps(summary.sweeps)
    return {name: as_file(figure) for name, figure in figures.items()}


def _scatter(summary: PaperSummary) -> Figure:
    from matplotlib.lines import Line2D

    cells = compared_cells(summary)
    datasets = list(dict.fromkeys(cell.source.name for cell in cells))
    agree = sum(cell.verdict.agrees for cell in cells if cell.verdict)
    figure, (panel,) = new_figure(1, 1, (5.4, 5.2))
    top = 0.0
    for cell in cells:
        if cell.ours is None or cell.paper is None or cell.verdict is None:
            continue
        color = palette.color(datasets.index(cell.source.name))
        top = max(top, cell.ours.mean, cell.paper.value)
        error = 2 * (cell.ours.sd or 0.0) / cell.ours.runs**0.5
        face = color if cell.verdict.agrees else "white"
        panel.errorbar(cell.paper.value, cell.ours.mean, yerr=error, color=color, lw=0.8, alpha=0.6, zorder=2)
        mark = _MISTAKEN_MARK if cell.method in _MISTAKEN else "o"
        panel.plot(cell.paper.value, cell.ours.mean, mark, ms=5.5, color=color, mfc=face, mew=1.3, zorder=3)
    span = (-0.02 * top, 1.06 * top)
    panel.plot(span, span, color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
    panel.set(
        xlim=span,
        ylim=span,
        xlabel="printed in the paper",
        ylabel="measured by labelrace, ± two standard errors",
        aspect="equal",
    )
    handles = [
        Line2D([], [], ls="", marker="o", color=palette.color(place), label=name) for place, name in enumerate(datasets)
    ]
    handles.append(Line2D([], [], ls="", marker="o", color=MUTED, mfc="white", label="differs"))
    if any(cell.method in _MISTAKEN for cell in cells):
        label = "Majority, which the original gets wrong"
        handles.append(Line2D([], [], ls="", marker=_MISTAKEN_MARK, color=MUTED, mfc="white", label=label))
    panel.legend(handles=handles, frameon=False, loc="lower right", labelcolor=INK)
    add_title(figure, f"{agree} of {len(cells)} printed values agree")
    return figure


def _heat(rows: Sequence[HeatRow]) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap

    names = list(dict.fromkeys(name for row in rows for name in row.ratios))
    table = [[row.ratios.get(name) for name in names] for row in rows]
    numbers = [[float("nan") if ratio is None else ratio for ratio in line] for line in table]
    span = max(1.0, *(abs(ratio) for line in table for ratio in line if ratio is not None))
    figure, (panel,) = new_figure(1, 1, (2.4 + 0.95 * len(names), 1.3 + 0.42 * len(rows)))
    colors = LinearSegmentedColormap.from_list("time", [FAST, MIDDLE, SLOW])
    panel.pcolormesh(numbers, cmap=colors, vmin=-span, vmax=span, edgecolors="white", linewidth=2)
    panel.invert_yaxis()
    panel.grid(False)
    panel.spines[:].set_visible(False)
    panel.tick_params(labelcolor=INK)
    panel.set_xticks(
        [place + 0.5 for place in range(len(names))], names, rotation=30, ha="right", rotation_mode="anchor"
    )
    panel.set_yticks([place + 0.5 for place in range(len(rows))], [f"{row.source.title}, {row.whose}" for row in rows])
    for down, line in enumerate(table):
        for across, ratio in enumerate(line):
            panel.text(across + 0.5, down + 0.5, as_signed(ratio), ha="center", va="center", color=INK)
    add_title(figure, "log10 of running time against race-cls-adaptive")
    return figure


def _critical_differences(table: PaperTable, shown: Sequence[RankTable]) -> Figure:
    figure, panels = new_figure(len(shown), 1, (6.8, 2.2 * len(shown) + 0.3))
    for panel, ranks in zip(panels, shown, strict=True):
        if ranks.comparison is not None:
            _draw_ranks(panel, ranks.comparison)
            title = f"{ranks.title}: {len(ranks.datasets)} datasets, Friedman p = {ranks.comparison.p_value:.2g}"
            panel.set_title(title, loc="left", fontsize=9.5, color=INK)
    add_title(figure, f"Average ranks and critical differences, Table {table.number}")
    return figure


def _draw_ranks(panel: Axes, comparison: Comparison) -> None:
    """Draw methods on an axis of ranks, names on both sides, bars over those that are not told apart."""
    places, count = comparison.places, len(comparison.places)
    ordered = sorted(places, key=lambda method: places[method])
    half = (count + 1) // 2
    bars = cliques(places, comparison.difference)
    top = -0.6 - 0.35 * len(bars)
    panel.axis("off")
    panel.set(xlim=(1 - 0.42 * count, count + 0.42 * count), ylim=(top - 0.62 * half, 1.7))
    panel.plot([1, count], [0, 0], color=INK, lw=1)
    for place in range(1, count + 1):
        panel.plot([place, place], [0, 0.15], color=INK, lw=1)
        panel.text(place, 0.25, str(place), ha="center", va="bottom", color=MUTED)
    panel.plot([1, min(1 + comparison.difference, count)], [1.25, 1.25], color=palette.color(0), lw=3)
    panel.text(0.9, 1.25, f"critical difference {comparison.difference:.2f}", ha="right", va="center", color=MUTED)
    for row, (low, high) in enumerate(bars):
        panel.plot([low, high], [-0.4 - 0.35 * row] * 2, color=palette.color(0), lw=3, solid_capstyle="round")
    for number, method in enumerate(ordered):
        left = number < half
        down = top - 0.55 * (number if left else count - 1 - number)
        edge = 0.9 if left else count + 0.1
        panel.plot([places[method], places[method], edge], [0, down, down], color=MUTED, lw=0.8)
        text = f"{method}  {places[method]:.2f}" if left else f"{places[method]:.2f}  {method}"
        panel.text(edge + (-0.06 if left else 0.06), down, text, ha="right" if left else "left", va="center")


def _sweeps(sweeps: Sequence[Sweep]) -> Figure:
    across = 2
    figure, panels = new_figure(-(-len(sweeps) // across), across, (7.4, 0.8 + 2.5 * -(-len(sweeps) // across)))
    for panel, sweep in zip(panels, sweeps, strict=False):
        for place, (measure, means) in enumerate(sweep.means.items()):
            color = palette.color(place)
            low, high = (
                [m + sign * s for m, s in zip(means, sweep.deviations[measure], strict=True)] for sign in (-1, 1)
            )
            panel.fill_between(sweep.counts, low, high, color=color, alpha=0.12, lw=0)
            panel.plot(sweep.counts, means, color=color, marker="o", ms=3.5, lw=1.5)
        panel.set_title(f"{sweep.source.title}: {sweep.method}", loc="left", fontsize=9.5, color=INK)
        panel.set_xlabel("pseudo labels")
        panel.set_ylim(bottom=0)
        panel.set_xticks(sweep.counts)
        panel.spines["left"].set_color(LINE)
    for panel in panels[len(sweeps) :]:
        panel.remove()
    _measure_legend(figure)
    add_title(figure, "The number of pseudo labels: means and deviations over runs")
    return figure


def _measure_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=palette.color(place), marker="o", ms=3.5, label=measure_label(measure))
        for place, measure in enumerate(PAPER_MEASURES)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, labelcolor=INK)
