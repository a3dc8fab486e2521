"""Figures for papers and slides: curves, the heat map of times, the labels. They need matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from labelrace.report import palette
from labelrace.report.canvas import FAST, INK, MIDDLE, MUTED, SLOW, add_title, as_file, line_style, literal, new_figure
from labelrace.report.summary import Summary
from labelrace.report.text import as_signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["curves_figure", "draw_figures", "heat_figure", "labels_figure"]

_STEPS = [1, 2, 2.5, 5, 10]
_KINDS = {"batch": "per batch", "windowed": "windowed mean", "cumulative": "cumulative mean"}


def draw_figures(summary: Summary, formats: Sequence[str] = ("png",)) -> dict[str, bytes]:
    """Return every figure there is data for, as files by name: ``curves.png``, ``time.png``, ``labels.png``."""
    drawers: dict[str, tuple[Callable[[Summary], Figure], bool]] = {
        "curves": (curves_figure, bool(summary["curves"]["rows"] and summary["measures"])),
        "time": (heat_figure, summary["reference"] is not None),
        "labels": (labels_figure, summary["labels"] is not None),
    }
    return {
        f"{name}.{form}": as_file(draw(summary), form)
        for name, (draw, has_data) in drawers.items()
        if has_data
        for form in formats
    }


def curves_figure(
    summary: Summary,
    measures: Sequence[str] | None = None,
    kind: Literal["batch", "windowed", "cumulative"] = "windowed",
) -> Figure:
    """Return the curves over the stream, one panel per measure."""
    shown = [measure for measure in summary["measures"] if measures is None or measure["name"] in measures]
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    figure, panels = new_figure(down, across, (1.0 + 3.3 * across, 0.9 + 2.2 * down))
    for panel, measure in zip(panels, shown, strict=False):
        lines = summary["curves"]["values"][measure["name"]][kind]
        _draw_curves(panel, summary["curves"]["rows"], lines)
        arrow = "↓" if measure["lower"] else "↑"
        panel.set_title(f"{measure['label']} {arrow}", loc="left", fontsize=9.5, color=INK)
    for panel in panels[len(shown) :]:
        panel.remove()
    for panel in panels[max(0, len(shown) - across) : len(shown)]:
        panel.set_xlabel("rows of the stream")
    _legend(figure, summary["models"], line=True)
    add_title(figure, f"{summary['title']}: {_KINDS[kind]}")
    return figure


def _draw_curves(panel: Axes, rows: Sequence[int], lines: Sequence[Sequence[float | None]]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for place, line in enumerate(lines):
        values = [float("nan") if value is None else value for value in line]
        style = line_style(place)
        panel.plot(rows, values, color=palette.color(place), ls=style, lw=1.5, marker="o" if len(rows) == 1 else "")
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=_STEPS))
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def heat_figure(summary: Summary) -> Figure:
    """Return the heat map of log10 time ratios: models across, a row per source and phase."""
    heat = summary["heat"]
    table = [[float("nan") if value is None else value for value in row["values"]] for row in heat["rows"]]
    sizes = [abs(value) for row in heat["rows"] for value in row["values"] if value is not None]
    span = max([1.0, *sizes])
    width = 2.2 + 0.95 * len(heat["columns"])
    figure, (panel,) = new_figure(1, 1, (width, 1.5 + 0.5 * len(table)))
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("time", [FAST, MIDDLE, SLOW])
    image = panel.pcolormesh(table, cmap=colors, vmin=-span, vmax=span, edgecolors="white", linewidth=2)
    panel.invert_yaxis()
    panel.grid(False)
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0, labelcolor=INK)
    panel.set_xticks([place + 0.5 for place in range(len(heat["columns"]))], map(literal, heat["columns"]))
    panel.set_yticks(
        [place + 0.5 for place in range(len(table))],
        [literal(f"{row['source']}, {row['phase']}") for row in heat["rows"]],
    )
    panel.tick_params(axis="x", labelrotation=30)
    for label in panel.get_xticklabels():
        label.set(ha="right", rotation_mode="anchor")
    for down, row in enumerate(heat["rows"]):
        for across, value in enumerate(row["values"]):
            panel.text(across + 0.5, down + 0.5, as_signed(value), ha="center", va="center", color=INK)
    bar = figure.colorbar(image, ax=panel, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, colors=MUTED, labelsize=9)
    add_title(figure, f"log10 of time against {summary['reference']}")
    return figure


def labels_figure(summary: Summary) -> Figure:
    """Return F1 of each label against how often it occurs."""
    labels = summary["labels"]
    figure, (panel,) = new_figure(1, 1, (6.4, 4.2))
    from matplotlib.ticker import FuncFormatter

    for place, (line, trend) in enumerate(zip(labels["f1"], labels["trend"], strict=True)):
        color = palette.color(place)
        panel.scatter(*_occurring(labels["frequency"], line), s=16, color=color, alpha=0.45, linewidths=0)
        panel.plot(*_occurring(labels["frequency"], trend), color=color, ls=line_style(place), lw=1.5)
    panel.set_xscale("log")
    panel.set_ylim(-0.03, 1.03)
    panel.set_ylabel("F1 of the label")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:,g} %"))
    panel.set_xlabel("share of rows with the label")
    _legend(figure, summary["models"], line=False)
    add_title(figure, f"{summary['title']}: rare and frequent labels")
    return figure


def _occurring(frequency: Sequence[float | None], line: Sequence[float | None]) -> tuple[list[float], list[float]]:
    """Return the labels that a logarithmic scale has a place for, rare ones first, and their values."""
    pairs = [(often, value) for often, value in zip(frequency, line, strict=True) if often and value is not None]
    pairs.sort()
    return [often for often, _ in pairs], [value for _, value in pairs]


def _legend(figure: Figure, models: Sequence[Mapping[str, Any]], line: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=palette.color(place),
            ls=line_style(place) if line else "",
            lw=1.5,
            marker="" if line else "o",
        )
        for place in range(len(models))
    ]
    names = [literal(model["name"]) for model in models]
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=min(3, len(models)),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )
