"""The one way to draw a chart: matplotlib, saved as a file or inlined into a page as SVG.

Lines and points (`panels`), stacked bars (`bars`), a heat map (`heat_map`) and critical differences
(`critical_differences`). Each takes plain data and returns a figure. They need the extra ``plots``.

One colour and one line pattern stand for a model, in pages as in figures. The colours keep apart under the three common
kinds of colour blindness and contrast with their ground by 3 to 1 or more. Eight colours are the most that do: the
pattern of the line tells the rest apart.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar
from xml.etree import ElementTree

from markupsafe import Markup

from labelrace.report.text import as_signed, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of each colour, the one on light ground and the one on dark ground.
PALETTE = (
    ("#1858a9", "#66acfd"),
    ("#c24a0a", "#f0792c"),
    ("#37a48b", "#a1f8df"),
    ("#7d1650", "#c7699a"),
    ("#b08a12", "#f1cd38"),
    ("#9c85e5", "#9f75ea"),
    ("#1b839b", "#73d4f0"),
    ("#62240d", "#eea09a"),
)
# The neighbours in hue are four apart, so that within the first eight they differ in pattern too.
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 3), (9, 3, 2, 3))
_INK, MUTED, _LINE = "#1b1f24", "#5a636e", "#dfe3e8"
_FAST, _SLOW = "#4c93d9", "#e07b39"
# What a page calls these colours, so that inlined figures follow its theme.
_NAMED = {_INK: "ink", MUTED: "muted", _LINE: "line", _FAST: "fast", _SLOW: "slow"}
_VARIABLES = {shade: f"var(--{name})" for shade, name in _NAMED.items()} | {
    light: f"var(--color-{place})" for place, (light, _) in enumerate(PALETTE)
}
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
_DOTS_PER_INCH = 160
# Ratio of the ends of a logarithmic axis below which there are ticks between powers of ten.
_FEW_DECADES = 100.0
_STEPS = [1, 2, 2.5, 5, 10]
# What the id of points with tips begins with.
_TIPS = "tips:"
_TITLE_HEIGHT = 0.35
_LONGEST_NAME = 40
_INCHES_PER_LETTER = 0.075

_Arguments = ParamSpec("_Arguments")
_Drawn = TypeVar("_Drawn")


class Chart(NamedTuple):
    """A figure that is drawn on demand: the name of its file, what it shows, and how it is drawn."""

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Series:
    """Points of a panel, and the line through them."""

    name: str  # in the legend; empty for none
    x: Sequence[float]
    y: Sequence[float | None]  # None is a gap
    place: int | None = 0  # of its colour and line pattern; None is muted
    spread: Sequence[float] | None = None  # half the height of a band around the line, or of error bars
    line: bool = True
    marker: str = ""  # as matplotlib has them
    hollow: bool = False  # whether markers are rings
    tips: Sequence[str] = ()  # what a page shows when the pointer is over a point


class Mark(NamedTuple):
    """Something that happened at a value of x: a drift found by the model at a place, or, without one, new labels."""

    x: float
    place: int | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes, its series, and what is special about the axes."""

    title: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    log: Literal["", "x", "xy"] = ""  # the axes with a logarithmic scale
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float | None] | None = None
    x_ticks: Sequence[float] = ()  # where to write numbers below, if not at round ones
    percent: bool = False  # whether shares below, on a logarithmic scale, are written as percentages
    diagonal: bool = False  # whether to draw the line on which both values are equal
    marks: Sequence[Mark] = ()
    end_names: bool = False  # whether names stand at the ends of lines, instead of a legend


class Ranks(NamedTuple):
    """Average ranks of methods, for a critical-difference diagram: methods closer than `difference` are joined."""

    title: str
    places: Mapping[str, float]
    difference: float


def color(place: int | None) -> str:
    """Return the colour of the model at this place, on light ground."""
    return MUTED if place is None else PALETTE[place % len(PALETTE)][0]


def dash(place: int | None) -> tuple[int, ...]:
    """Return the lengths of strokes and gaps of the line of the model at this place; none is a solid line."""
    return _DASHES[(place or 0) // 4 % len(_DASHES)]


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
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
def panels(shown: Sequence[Panel], across: int = 3, size: tuple[float, float] = (3.3, 2.5), columns: int = 4) -> Figure:
    """Draw panels of `size` inches, `across` of them side by side, and one legend in up to `columns` for all."""
    across = min(across, len(shown))
    down = -(-len(shown) // across)
    entries = {series.name: series for panel in shown for series in panel.series if series.name}
    # As many columns of the legend as the figure is wide enough for.
    inches = 0.5 + 0.07 * max(map(len, entries), default=0)
    columns = max(1, min(columns, int(size[0] * across / inches)))
    height = size[1] * down + 0.2 * -(-len(entries) // columns)
    figure, axes = new_figure(down, across, (size[0] * across, height))
    for place, (panel, on) in enumerate(zip(shown, axes, strict=False)):
        _draw_panel(on, panel, size[1])
        on.set_title(_literal(panel.title))
        on.set_ylabel(panel.y_label)
        if place + across >= len(shown):
            on.set_xlabel(panel.x_label)
    for on in axes[len(shown) :]:
        on.remove()
    if handles := _handles(shown, entries):
        _legend(figure, handles, columns)
    return figure


def _handles(shown: Sequence[Panel], entries: Mapping[str, Series]) -> list[Any]:
    """Return the entries of the legend: series, unless their names stand at their ends, and what marks mean."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    if len(entries) > 1 and not all(panel.end_names for panel in shown):
        looks = [(name, {"color": color(s.place), "lw": 1.5, **_line_style(s)}) for name, s in entries.items()]
        handles = [Line2D([], [], label=_name(name), **look) for name, look in looks]
    marks = [mark for panel in shown for mark in panel.marks]
    for sign, text, is_there in (
        ("v", "a model of this colour found a drift", any(mark.place is not None for mark in marks)),
        ("|", "labels appeared", any(mark.place is None for mark in marks)),
    ):
        if is_there:
            handles.append(Line2D([], [], ls="", marker=sign, color=MUTED, label=text))
    return handles


def _draw_panel(on: Axes, panel: Panel, height: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if "x" in panel.log:
        on.set_xscale("log")
    else:
        on.xaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
        on.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    if "y" in panel.log:
        on.set_yscale("log")
    else:
        on.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    for series in panel.series:
        _draw_series(on, series)
    if panel.diagonal and panel.x_range:
        on.plot(panel.x_range, panel.x_range, color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
        on.set_aspect("equal")
    on.set_xlim(panel.x_range)
    if panel.y_range:
        on.set_ylim(*panel.y_range)
    low, high = on.get_xlim()
    if panel.percent or ("x" in panel.log and high < _FEW_DECADES * low):
        on.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        on.xaxis.set_minor_locator(NullLocator())
        on.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{100 * value:,g} %" if panel.percent else f"{value:,g}")
        )
    if panel.x_ticks:
        on.set_xticks(panel.x_ticks, [f"{tick:,g}" for tick in panel.x_ticks])
        on.xaxis.set_minor_locator(NullLocator())
    for mark in panel.marks:
        # Drifts hang from the top, in the model's colour; labels stand at the bottom.
        if mark.place is not None:
            on.axvline(mark.x, color=color(mark.place), lw=0.7, ls=(0, (2, 2)), alpha=0.6, zorder=1)
        sign, level = ("|", 0.02) if mark.place is None else ("v", 0.98)
        place = on.get_xaxis_transform()
        on.plot([mark.x], [level], ls="", marker=sign, ms=5, color=color(mark.place), transform=place, zorder=4)
    if panel.end_names:
        _name_ends(on, panel, height)


def _name_ends(on: Axes, panel: Panel, inches: float) -> None:
    """Write the name of each line beside the panel, as near to the line's end as the others leave room."""
    ends = []
    for series in panel.series:
        known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
        if series.name and known:
            ends.append((series, known[-1]))
    low, high = on.get_ylim()
    heights = apart([(y - low) / ((high - low) or 1.0) for _, (_, y) in ends], 0.16 / inches)
    for (series, end), height in zip(ends, heights, strict=True):
        shade = color(series.place)
        line = {"arrowstyle": "-", "color": shade, "lw": 0.5, "shrinkA": 0, "shrinkB": 0}
        style: Any = {
            "textcoords": "axes fraction",
            "arrowprops": line,
            "color": shade,
            "va": "center",
            "fontsize": 7.5,
        }
        on.annotate(_name(series.name), end, (1.025, height), **style)


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return values as near to those wanted as can be with a gap between any two, from the top of 1 down.

    >>> apart([0.5, 0.5, 1.0], 0.25)
    [0.5, 0.75, 1.0]
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    moved = list(wanted)
    for before, place in pairwise(order):
        moved[place] = max(moved[place], moved[before] + gap)
    limit = 1.0
    for place in reversed(order):
        moved[place] = min(moved[place], limit)
        limit = moved[place] - gap
    return moved


def _draw_series(on: Axes, series: Series) -> None:
    y = [float("nan") if value is None else value for value in series.y]
    shade = color(series.place)
    style = _line_style(series)
    alone = series.line and not series.marker and len(y) == 1
    (drawn,) = on.plot(series.x, y, color=shade, lw=1.5, zorder=3, **style | ({"marker": "o"} if alone else {}))
    if series.tips:
        drawn.set_gid(_TIPS + "\n".join(map(printable, series.tips)))
    if series.spread is None:
        return
    if series.line:
        low, high = ([v + sign * s for v, s in zip(y, series.spread, strict=True)] for sign in (-1, 1))
        on.fill_between(series.x, low, high, color=shade, alpha=0.12, lw=0)
    else:
        on.errorbar(series.x, y, yerr=series.spread, color=shade, ls="", lw=0.8, alpha=0.6, zorder=2)


def _line_style(series: Series) -> dict[str, Any]:
    """Return line pattern and markers, as matplotlib takes them."""
    pattern = dash(series.place)
    return {
        "ls": "" if not series.line else (0, [length / 2 for length in pattern]) if pattern else "-",
        "marker": series.marker,
        "markersize": 4 if series.line else 5,
        "markeredgewidth": 1.2,
        "markerfacecolor": "none" if series.hollow else color(series.place),
    }


def _legend(figure: Figure, handles: Sequence[Any], columns: int) -> None:
    figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))


@styled
def bars(names: Sequence[str], parts: Mapping[str, Sequence[float]], texts: Sequence[str]) -> Figure:
    """Draw a stacked bar for each name, with a text behind it; the parts are told by a legend."""
    from matplotlib.patches import Patch

    figure, (on,) = new_figure(1, 1, (6.6, 0.5 + 0.3 * len(names)))
    ends = [0.0] * len(names)
    for place, values in enumerate(parts.values()):
        on.barh(range(len(names)), values, left=ends, height=0.62, color=color(place))
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    longest = max([*ends, 1e-12])
    for place, (end, text) in enumerate(zip(ends, texts, strict=True)):
        on.text(end + 0.01 * longest, place, text, va="center")
    on.set_yticks(range(len(names)), list(map(_name, names)), color=_INK)
    on.set_xlim(0, 1.18 * longest)
    on.invert_yaxis()
    on.grid(False)
    on.spines[:].set_visible(False)
    on.set_xticks([])
    _legend(figure, [Patch(color=color(place), label=name) for place, name in enumerate(parts)], len(parts))
    return figure


@styled
def heat_map(columns: Sequence[str], rows: Sequence[str], values: Sequence[Sequence[float | None]]) -> Figure:
    """Draw log ratios: warm colours above 0, cold ones below, strongest for the largest ratio, or for 1."""
    from matplotlib.patches import Rectangle

    span = max([1.0, *(abs(value) for line in values for value in line if value is not None)])
    left, below = (_INCHES_PER_LETTER * max(len(_name(name)) for name in names) for names in (rows, columns))
    figure, (on,) = new_figure(1, 1, (0.2 + max(left, below) + 0.8 * len(columns), 0.3 + 0.36 * len(rows) + below / 2))
    for down, line in enumerate(values):
        for across, value in enumerate(line):
            shade, strength = _SLOW if (value or 0) > 0 else _FAST, abs(value or 0) / span
            # A faint line keeps cells without a ratio visible.
            on.add_patch(Rectangle((across, down), 0.96, 0.92, fc=shade, alpha=strength, lw=0))
            on.add_patch(Rectangle((across, down), 0.96, 0.92, fc="none", ec=_LINE, lw=0.6))
            on.text(across + 0.48, down + 0.47, as_signed(value), ha="center", va="center")
    on.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    on.grid(False)
    on.spines[:].set_visible(False)
    # Column names are slanted, so that long ones do not overlap.
    slanted: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    on.set_xticks([place + 0.5 for place in range(len(columns))], list(map(_name, columns)), color=_INK, **slanted)
    on.set_yticks([place + 0.46 for place in range(len(rows))], list(map(_name, rows)), color=_INK)
    return figure


@styled
def critical_differences(shown: Sequence[Ranks]) -> Figure:
    """Draw methods on an axis of average ranks, one panel below the other; bars join those that are not told apart."""
    most = max(len(ranks.places) for ranks in shown)
    figure, axes = new_figure(len(shown), 1, (6.8, (1.25 + 0.13 * most) * len(shown)))
    for on, ranks in zip(axes, shown, strict=True):
        on.set_title(_literal(ranks.title))
        _draw_ranks(on, ranks.places, ranks.difference)
    return figure


def _draw_ranks(on: Axes, places: Mapping[str, float], difference: float) -> None:
    """Draw the axis, the names on both sides of it, and the bars."""
    count, shade = len(places), color(0)
    ordered = sorted(places, key=lambda method: places[method])
    half = (count + 1) // 2
    joined = cliques(places, difference)
    top = -0.6 - 0.35 * len(joined)
    on.axis("off")
    on.set(xlim=(1 - 0.55 * (count - 1), count + 0.55 * (count - 1)), ylim=(top - 0.62 * half, 1.7))
    on.plot([1, count], [0, 0], color=_INK, lw=1)
    for place in range(1, count + 1):
        on.plot([place, place], [0, 0.15], color=_INK, lw=1)
        on.text(place, 0.25, str(place), ha="center", va="bottom", color=MUTED)
    wider = ", wider than the axis" if difference > count - 1 else ""
    on.plot([1, min(1 + difference, count)], [1.25, 1.25], color=shade, lw=3)
    on.text(0.9, 1.25, f"CD = {difference:.2f}{wider}", ha="right", va="center", color=MUTED)
    for row, (low, high) in enumerate(joined):
        on.plot([low, high], [-0.4 - 0.35 * row] * 2, color=shade, lw=3, solid_capstyle="round")
    for number, method in enumerate(ordered):
        left = number < half
        down = top - 0.55 * (number if left else count - 1 - number)
        edge = 0.9 if left else count + 0.1
        on.plot([places[method], places[method], edge], [0, down, down], color=MUTED, lw=0.8)
        text = f"{method}  {places[method]:.2f}" if left else f"{places[method]:.2f}  {method}"
        on.text(edge + (-0.06 if left else 0.06), down, _literal(text), ha="right" if left else "left", va="center")


def cliques(places: Mapping[str, float], difference: float) -> list[tuple[float, float]]:
    """Return the spans of average ranks, each as long as possible, within which no two methods are told apart."""
    ranks = sorted(places.values())
    spans: list[tuple[float, float]] = []
    for start, low in enumerate(ranks):
        high = max(rank for rank in ranks[start:] if rank - low < difference)
        # A span inside the one before says nothing new, and one method alone is no clique.
        if high > low and (not spans or high > spans[-1][1]):
            spans.append((low, high))
    return spans


@styled
def as_file(figure: Figure, form: str = "png", title: str = "") -> bytes:
    """Return a figure, with a title above it, as the content of a file: ``png`` or ``svg``."""
    if title:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + _TITLE_HEIGHT)
        figure.suptitle(_literal(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    content = io.BytesIO()
    figure.savefig(content, format=form, dpi=_DOTS_PER_INCH, metadata={"Date": None} if form == "svg" else None)
    return content.getvalue()


def inline_svg(figure: Figure, label: str, prefix: str) -> Markup:
    """Return a figure as an element of a page: in the colours of its theme, without addresses or styles of its own.

    The label is read to those who cannot see it; ids begin with the prefix, so that no two in a page are equal.
    """
    figure.patch.set_visible(False)
    for on in figure.axes:
        on.patch.set_visible(False)
    root = ElementTree.fromstring(as_file(figure, "svg"))
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        for child in list(element):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                element.remove(child)
        _adopt(element, prefix)
    width, height = (float(root.attrib.pop(name).removesuffix("pt")) for name in ("width", "height"))
    root.attrib |= {"class": "plot", "role": "img", "aria-label": printable(label)}
    root.attrib |= {"width": f"{width * 4 / 3:.0f}", "height": f"{height * 4 / 3:.0f}"}
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _adopt(element: ElementTree.Element, prefix: str) -> None:
    """Give an element of a figure the page's colours, ids of its own, and the tips of its points."""
    tips = element.attrib.get("id", "").removeprefix(_TIPS).split("\n")
    if element.attrib.get("id", "").startswith(_TIPS):
        points = [child for child in element.iter() if child.tag.rpartition("}")[2] == "use"]
        for point, tip in zip(points, tips, strict=False):
            ElementTree.SubElement(point, "title").text = tip
        del element.attrib["id"]
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        value = re.sub(r"url\(#", f"url(#{prefix}-", value)
        if name.endswith("}href"):
            value = value.replace("#", f"#{prefix}-", 1)
        elif name == "id":
            value = f"{prefix}-{value}"
        elif name == "style":
            value = re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), value)
        element.attrib[name.rpartition("}")[2]] = value


def _literal(text: str) -> str:
    """Return a text without matplotlib's formulas, which stand between dollar signs."""
    return printable(text).replace("$", r"\$")


def _name(text: str) -> str:
    """Return a name that leaves room for what it names."""
    return _literal(text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…")
