"""Measurements of speed as tables, a CSV file and a figure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelrace.experiments.shapes import Shape
from labelrace.experiments.speed import Measurement, SpeedSummary, slope
from labelrace.experiments.tables import as_csv
from labelrace.experiments.write import write_files
from labelrace.report import palette
from labelrace.report.canvas import INK, add_title, as_file, can_draw, line_style, new_figure
from labelrace.report.text import as_bytes, as_significant, listing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["print_speed", "write_speed"]

_HEADER = ("axis", "model", *Shape._fields, "first_seconds", "predict_ms", "learn_ms", "memory")


def print_speed(summary: SpeedSummary, console: Console | None = None) -> None:
    """Print times on the base shape, how they grow, and how other libraries compare."""
    console = console or Console()
    base = summary.at_base()
    shape = next(iter(base.values())).shape
    console.print(
        Text(
            f"{shape.rows} rows, {shape.features} features ({shape.density:.0%} non-zero), {shape.labels} labels, one "
            "thread"
        )
    )
    console.print(_time_table(base))
    console.print(Text("How the time of a row grows: exponents (0 does not grow, 1 is proportional)", style="bold"))
    console.print(_growth_table(summary))
    console.print(Text("How many times longer other libraries take for a row", style="bold"))
    console.print(_rival_table(summary))
    if summary.absent:
        console.print(Text(f"! Not installed, and so not compared: {listing(summary.absent)}.", style="yellow"))


def write_speed(summary: SpeedSummary, out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write ``speed.csv`` and, where matplotlib is installed, ``speed.png``; return their paths by name."""
    rows: list[Sequence[Any]] = [_HEADER]
    for axis, of_axis in summary.axes.items():
        rows += [_row(axis, m) for line in of_axis.values() for m in line]
    rows += [_row("labels", m) for _, m in summary.rivals]
    contents = {"speed.csv": as_csv(rows).encode()}
    if can_draw():
        contents["speed.png"] = as_file(_figure(summary))
    return write_files(contents, out)


def _row(axis: str, m: Measurement) -> list[Any]:
    return [axis, m.model, *m.shape, m.first, m.predict, m.learn, m.memory]


def _time_table(base: dict[str, Measurement]) -> Table:
    table = _table("Model", "predict\nms / row", "learn\nms / row", "first\nbatch, s", "peak\nmemory")
    for name, m in base.items():
        times = [as_significant(value) for value in (m.predict, m.learn, m.first)]
        table.add_row(name, *times, as_bytes(m.memory))
    return table


def _growth_table(summary: SpeedSummary) -> Table:
    table = _table("Model", *(f"by {axis}" for axis in summary.axes))
    for name in next(iter(summary.axes.values())):
        slopes = [slope(of[name], axis, lambda m: m.total) for axis, of in summary.axes.items()]
        table.add_row(name, *(f"{exponent:.2f}".replace("-", "−") for exponent in slopes))
    return table


def _rival_table(summary: SpeedSummary) -> Table:
    shapes = list(dict.fromkeys(m.shape for _, m in summary.rivals))
    table = _table("Library", "than", *(f"{shape.labels}\nlabels" for shape in shapes))
    for name, model, ratios in summary.ratios():
        texts = [f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×" for ratio in ratios.values()]
        table.add_row(name, model, *texts)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(Text(title, justify="right"), justify="right", no_wrap=True)
    return table


def _figure(summary: SpeedSummary) -> Figure:
    """Draw time and memory along every axis, on logarithmic scales."""
    values: list[tuple[str, Callable[[Measurement], float]]] = [
        ("ms a row, predict and learn", lambda m: m.total),
        ("peak memory, MB", lambda m: (m.memory or 0) / 1e6),
    ]
    names = list(next(iter(summary.axes.values())))
    figure, panels = new_figure(len(values), len(summary.axes), (2.6 * len(summary.axes), 2.5 * len(values) + 0.9))
    for place, panel in enumerate(panels):
        (title, value), axis = values[place // len(summary.axes)], list(summary.axes)[place % len(summary.axes)]
        for number, line in enumerate(summary.axes[axis].values()):
            panel.plot(
                [getattr(m.shape, axis) for m in line],
                [value(m) for m in line],
                color=palette.color(number),
                ls=line_style(number),
                marker="o",
                ms=3,
                lw=1.4,
            )
        panel.set(xscale="log", yscale="log")
        panel.set_xticks([getattr(m.shape, axis) for m in line], [f"{getattr(m.shape, axis):g}" for m in line])
        panel.minorticks_off()
        if place % len(summary.axes) == 0:
            panel.set_ylabel(title)
        if place >= len(panels) - len(summary.axes):
            panel.set_xlabel(axis)
    figure.legend(
        handles=panels[0].get_lines(), labels=names, loc="outside lower center", ncols=4, frameon=False, labelcolor=INK
    )
    add_title(figure, "Time and memory of a row, one size varied at a time")
    return figure
