"""Charts as files: matplotlib draws any description of `labelrace.report.charts`. It needs the extra ``plots``."""

from __future__ import annotations

import functools
import importlib.util
import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from labelrace.base.printing import printable
from labelrace.report.charts import (
    PALETTE,
    Chart,
    Color,
    Diagram,
    Line,
    Mark,
    Panel,
    Panels,
    Rectangle,
    Series,
    Text,
    dash,
    shorten,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MUTED = "#5a636e"
_INK, _LINE = "#1b1f24", "#dfe3e8"
_COLORS = {"ink": _INK, "muted": MUTED, "line": _LINE, "cold": "#4c93d9", "warm": "#e07b39"}
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": _INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": _INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
    "text.color": _INK,
    # Text stays text, and the same data give the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "labelrace",
}
# What a file says of itself, without the time it was made at.
_METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_DOTS_PER_INCH = 160
# Pixels of a diagram in an inch, and in a point.
_PIXELS_PER_INCH, _PIXELS_PER_POINT = 96, 96 / 72
# Ratio of the ends of a logarithmic axis below which there are ticks between powers of ten.
_FEW_DECADES = 100.0
_STEPS = [1, 2, 2.5, 5, 10]
_TITLE_HEIGHT = 0.35

_Arguments = ParamSpec("_Arguments")
_Drawn = TypeVar("_Drawn")


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def styled(draw: Callable[_Arguments, _Drawn]) -> Callable[_Arguments, _Drawn]:
    """Let a function draw in the style of the reports; without matplotlib it raises ImportError."""

    @functools.wraps(draw)
    def drawing(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Drawn:
        try:
            import matplotlib
        except ImportError as error:
            raise ImportError("Figures need matplotlib: pip install 'labelrace[plots]'.") from error
        with matplotlib.rc_context(_STYLE):
            return draw(*arguments, **named)

    return drawing


def new_figure(down: int, across: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; it belongs to no window and to no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(down, across, squeeze=False).flat)


@styled
def draw(chart: Chart) -> Figure:
    """Draw a chart, without its caption."""
    return _draw_panels(chart.content) if isinstance(chart.content, Panels) else _draw_diagram(chart.content)


@styled
def as_file(figure: Figure, form: str = "png", title: str = "") -> bytes:
    """Return a figure, with a title above it, as the content of a file: ``png``, ``svg`` or ``pdf``."""
    if title:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + _TITLE_HEIGHT)
        figure.suptitle(_escape(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    content = io.BytesIO()
    figure.savefig(content, format=form, dpi=_DOTS_PER_INCH, metadata=_METADATA.get(form))
    return content.getvalue()


def color(index: Color | None) -> str:
    """Return a colour on light ground: of this number in the palette, or of this name."""
    if isinstance(index, int):
        return PALETTE[index % len(PALETTE)][0]
    return _COLORS[index or "muted"]


# --- panels


def _draw_panels(content: Panels) -> Figure:
    shown, (width, height) = content.shown, content.size
    across = min(content.across, len(shown))
    down = -(-len(shown) // across)
    handles = _handles(content)
    columns = _legend_columns([handle.get_label() for handle in handles], content.columns, width * across)
    figure, axes = new_figure(down, across, (width * across, height * down + 0.2 * -(-len(handles) // columns)))
    for index, (panel, on) in enumerate(zip(shown, axes, strict=False)):
        _draw_panel(on, panel, content.marks)
        on.set_title(_escape(panel.title))
        on.set_ylabel(panel.y_label)
        if index + across >= len(shown):
            on.set_xlabel(panel.x_label)
    for on in axes[len(shown) :]:
        on.remove()
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return figure


def _legend_columns(labels: Sequence[str], most: int, width: float) -> int:
    """Return how many columns a legend has in a figure of this width, in inches: as many as there is room for.

    A column is as wide as its longest label; matplotlib fills columns evenly, one after the other.

    Examples
    --------
    >>> _legend_columns(["Example accuracy", "Example F1", "Hamming loss", "Macro F1", "Micro F1"], 5, 7.4)
    5
    """
    for columns in range(min(most, len(labels)), 1, -1):
        rows, more = divmod(len(labels), columns)
        starts = [column * rows + min(column, more) for column in range(columns + 1)]
        longest = [max(map(len, labels[start:end])) for start, end in pairwise(starts)]
        if sum(0.5 + 0.07 * letters for letters in longest) <= width:
            return columns
    return 1


def _handles(content: Panels) -> list[Any]:
    """Return the entries of the legend: series, if there are several, and what marks mean."""
    from matplotlib.lines import Line2D

    entries, handles = content.legend(), []
    if len(entries) > 1:
        looks = [(name, {"color": color(s.color), "lw": 1.5, **_line_style(s)}) for name, s in entries.items()]
        handles = [Line2D([], [], label=_escape(shorten(name)), **look) for name, look in looks]
    for meaning, sign in content.meanings().items():
        look = _mark_style(sign, MUTED)
        handles.append(Line2D([], [], ls="", label=_escape(meaning), **look))
    return handles


def _draw_panel(on: Axes, panel: Panel, marks: Sequence[Mark]) -> None:
    if "x" in panel.log:
        on.set_xscale("log")
    if "y" in panel.log:
        on.set_yscale("log")
    for series in panel.series:
        _draw_series(on, series)
    if panel.diagonal and panel.x_range:
        on.plot(panel.x_range, panel.x_range, color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
        on.set_aspect("equal")
    on.set_xlim(panel.x_range)
    if panel.y_range:
        on.set_ylim(*panel.y_range)
    _set_ticks(on, panel)
    for mark in marks:
        if mark.color is not None and not mark.hollow:
            on.axvline(mark.x, color=color(mark.color), lw=0.7, ls=(0, (2, 2)), alpha=0.6, zorder=1)
        level, look = 0.02 if mark.color is None else 0.98, _mark_style(mark.sign, color(mark.color))
        on.plot([mark.x], [level], ls="", ms=5, zorder=4, transform=on.get_xaxis_transform(), **look)


def _mark_style(sign: str, shade: str) -> dict[str, Any]:
    """Return how a mark is drawn: a stroke, or a triangle, which may be hollow."""
    style: dict[str, Any] = {"marker": "|" if sign == "|" else "v", "color": shade}
    return style | ({"fillstyle": "none"} if sign == "▽" else {})


def _set_ticks(on: Axes, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    as_text = FuncFormatter(lambda value, _: f"{100 * value:,g} %" if panel.percent else f"{value:,g}")
    if "y" not in panel.log:
        on.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    if panel.x_ticks:
        on.set_xticks(panel.x_ticks, [panel.x_names[int(x)] if panel.x_names else f"{x:,g}" for x in panel.x_ticks])
        on.xaxis.set_minor_locator(NullLocator())
    elif "x" not in panel.log:
        on.xaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
        on.xaxis.set_major_formatter(as_text)
    elif panel.percent or on.get_xlim()[1] < _FEW_DECADES * on.get_xlim()[0]:
        on.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        on.xaxis.set_minor_locator(NullLocator())
        on.xaxis.set_major_formatter(as_text)


def _draw_series(on: Axes, series: Series) -> None:
    y = [float("nan") if value is None else value for value in series.y]
    shade, style = color(series.color), _line_style(series)
    # A line needs two ends; one point alone is a dot.
    if series.line and not series.marker and sum(value is not None for value in series.y) == 1:
        style["marker"] = "o"
    on.plot(series.x, y, color=shade, lw=1.5, zorder=3, **style)
    if series.spread is None:
        return
    if series.line:
        low, high = ([v + sign * s for v, s in zip(y, series.spread, strict=True)] for sign in (-1, 1))
        on.fill_between(series.x, low, high, color=shade, alpha=0.12, lw=0)
    else:
        on.errorbar(series.x, y, yerr=series.spread, color=shade, ls="", lw=0.8, alpha=0.6, zorder=2)


def _line_style(series: Series) -> dict[str, Any]:
    """Return line pattern and markers, as matplotlib takes them."""
    pattern = dash(series.color)
    return {
        "ls": "" if not series.line else (0, [length / 2 for length in pattern]) if pattern else "-",
        "marker": series.marker,
        "markersize": 4 if series.line else 5,
        "markeredgewidth": 1.2,
        "markerfacecolor": "none" if series.hollow else color(series.color),
    }


# --- diagrams


def _draw_diagram(content: Diagram) -> Figure:
    from matplotlib.patches import Patch

    width, rows = content.left + content.width + content.right, 1 if content.legend else 0
    figure, (on,) = new_figure(1, 1, (width / _PIXELS_PER_INCH, (content.height + 24 * rows) / _PIXELS_PER_INCH))
    on.axis("off")
    on.set(xlim=(0, 100), ylim=(content.height, 0))
    for shape in content.shapes:
        _draw_shape(on, shape)
    if content.legend:
        handles = [Patch(color=color(index), label=_escape(name)) for name, index in content.legend.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_shape(on: Axes, shape: Rectangle | Line | Text) -> None:
    from matplotlib import patches

    if isinstance(shape, Line):
        style: dict[str, Any] = {"color": color(shape.color), "lw": shape.width / _PIXELS_PER_POINT}
        on.plot([shape.x0, shape.x1], [shape.y0, shape.y1], solid_capstyle="butt", clip_on=False, **style)
    elif isinstance(shape, Rectangle):
        box: tuple[Any, ...] = ((shape.x, shape.y), shape.width, shape.height)
        on.add_patch(patches.Rectangle(*box, fc=color(shape.color), alpha=shape.opacity, lw=0))
        if shape.outlined:
            on.add_patch(patches.Rectangle(*box, fc="none", ec=_LINE, lw=0.6))
    else:
        style = {"color": color(shape.color), "va": "center", "annotation_clip": False}
        style["ha"] = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
        style["fontweight"] = "bold" if shape.bold else "normal"
        if shape.slanted:
            style |= {"rotation": 30, "rotation_mode": "anchor"}
        offset = (shape.dx / _PIXELS_PER_POINT, 0)
        on.annotate(_escape(shape.text), (shape.x, shape.y), offset, textcoords="offset points", **style)


def _escape(text: str) -> str:
    """Return a text without matplotlib's formulas, which stand between dollar signs."""
    return printable(text).replace("$", r"\$")
