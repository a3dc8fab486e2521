"""Charts as data: described once, drawn by any page and any file.

A `Chart` is a name, a caption and a description, of one of two kinds. `Panels` are pairs of axes with lines and points.
A `Diagram` is rectangles, lines and texts without axes; `bars`, `heat_map` and `critical_differences` compose one. The
report's own charts are composed in `run_report`. The page (`page`) draws panels by uPlot and diagrams as SVG, files are
drawn by matplotlib (`matplotlib_figures`), and neither knows what the numbers mean.

One colour and one line pattern stand for a model, in pages as in figures. The colours stay distinct under the three
common kinds of colour blindness and contrast with their ground by 3 to 1 or more. Eight colours are the most that do:
the pattern of the line distinguishes the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from labelrace.report.text import as_signed

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

Color: TypeAlias = int | Literal["ink", "muted", "line", "warm", "cold"]
"""A number in the palette, which begins again after its end; or what a colour is for."""

# Pixels of a diagram: of a letter, of a bar or a cell with the gap below it.
_LETTER = 6.6
_BAR, _CELL = 28, 36
_LONGEST_NAME = 40


# --- panels: lines and points


@dataclass(frozen=True)
class Series:
    """Points of a panel, and the line through them."""

    name: str  # in the legend; empty for none
    x: Sequence[float]
    y: Sequence[float | None]  # None is a gap
    color: int | None = 0  # which also gives the line its pattern; None is muted
    spread: Sequence[float] | None = None  # half the height of a band around the line, or of error bars
    line: bool = True
    marker: str = ""  # none, or "." for small dots, "o" for dots, "s" for squares
    hollow: bool = False  # whether markers are rings
    tips: Sequence[str] = ()  # what a page says about each point


class Mark(NamedTuple):
    """Something that happened at a value of x.

    With a colour it hangs from the top of the panel, and is shown with the series of that colour; without one it stands
    at the bottom. A hollow one is lighter: something that may come to nothing. ``meaning`` is what the legend says of
    all such marks, ``text`` what a page says of this one.
    """

    x: float
    color: int | None = None
    meaning: str = ""
    text: str = ""
    hollow: bool = False

    @property
    def sign(self) -> str:
        """What the legend shows for such marks."""
        return "|" if self.color is None else "▽" if self.hollow else "▼"


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
    x_names: Sequence[str] = ()  # what is written for 0, 1, … instead of the number
    percent: bool = False  # whether shares below are written as percentages
    diagonal: bool = False  # whether to draw the line on which both values are equal
    decimals: int = 3  # of the values that a page shows


@dataclass(frozen=True)
class Panels:
    """Panels with one legend, `across` of them side by side.

    In a file a panel has the size given in inches, and the legend up to `columns`. A page makes them as wide as it is.
    With ``choose``, what the list of their titles is called, it shows one at a time, `chosen` first.

    There may be several ``views`` of the same panels with other values, by name; a page lets its reader switch, a file
    has the one called ``view``.
    """

    views: Mapping[str, Sequence[Panel]]
    view: str = ""
    across: int = 3
    size: tuple[float, float] = (3.3, 2.5)
    columns: int = 4
    marks: Sequence[Mark] = ()
    choose: str = ""
    chosen: int = 0
    position: str = "x = {}"  # what a page calls a value of x

    @property
    def shown(self) -> Sequence[Panel]:
        """The panels of the view that is shown first."""
        return self.views[self.view]

    def legend(self) -> dict[str, Series]:
        """Return the first series of each name, whose looks are those of the legend."""
        entries: dict[str, Series] = {}
        for series in (series for panel in self.shown for series in panel.series if series.name):
            entries.setdefault(series.name, series)
        return entries

    def meanings(self) -> dict[str, str]:
        """Return what the marks mean, and the sign of such marks."""
        return {mark.meaning: mark.sign for mark in self.marks if mark.meaning}


def panels(shown: Sequence[Panel], across: int = 3, size: tuple[float, float] = (3.3, 2.5), columns: int = 4) -> Panels:
    """Return panels that are all shown, side by side."""
    return Panels({"": shown}, across=across, size=size, columns=columns)


def dash(color: int | None) -> tuple[int, ...]:
    """Return the lengths of strokes and gaps of lines of this colour; none is a solid line."""
    return _DASHES[(color or 0) // 4 % len(_DASHES)]


# --- diagrams: rectangles, lines and texts


class Rectangle(NamedTuple):
    """A rectangle; with `outlined` a faint line shows where it is, however faint its colour."""

    x: float
    y: float
    width: float
    height: float
    color: Color
    opacity: float = 1.0
    outlined: bool = False


class Line(NamedTuple):
    """A straight line."""

    x0: float
    y0: float
    x1: float
    y1: float
    color: Color = "ink"
    width: float = 1.0


class Text(NamedTuple):
    """A text in the middle of y, `dx` pixels from x; `bold` for titles, `slanted` upwards for names below a column."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "middle"
    color: Color = "ink"
    dx: float = 0.0
    bold: bool = False
    slanted: bool = False


Shape: TypeAlias = Rectangle | Line | Text


@dataclass(frozen=True)
class Diagram:
    """Shapes on a plane: x in percent of its width, y in pixels from the top.

    In a file the plane is `width` pixels wide; a page fits it to the screen. There is room for texts on its `left` and
    `right`.
    The legend gives the meaning of colours.
    """

    shapes: Sequence[Shape]
    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    legend: Mapping[str, Color] = field(default_factory=dict)


def bars(names: Sequence[str], parts: Mapping[str, Sequence[float]], texts: Sequence[str]) -> Diagram:
    """Return a stacked bar for each name, with a text behind it; the parts are distinguished by a legend."""
    totals = [sum(values) for values in zip(*parts.values(), strict=True)]
    scale = 100 / max([*totals, 1e-12])
    shapes: list[Shape] = []
    for row, (name, text) in enumerate(zip(names, texts, strict=True)):
        middle, end = _BAR * (row + 0.5), 0.0
        shapes.append(Text(0, middle, shorten(name), "end", dx=-8))
        for color, values in enumerate(parts.values()):
            shapes.append(Rectangle(end, middle - 9, scale * values[row], 18, color))
            end += scale * values[row]
        shapes.append(Text(end, middle, text, "start", dx=6))
    left, right = (12 + _widest(labels) for labels in (names, texts))
    return Diagram(shapes, 420, _BAR * len(names), left, right, {name: color for color, name in enumerate(parts)})


def heat_map(columns: Sequence[str], rows: Sequence[str], values: Sequence[Sequence[float | None]]) -> Diagram:
    """Return log ratios as cells: warm colours above 0, cold ones below, strongest for the largest ratio, or for 1."""
    span = max([1.0, *(abs(value) for line in values for value in line if value is not None)])
    width, shapes = 100 / len(columns), list[Shape]()
    for row, (name, line) in enumerate(zip(rows, values, strict=True)):
        middle = _CELL * (row + 0.5)
        shapes.append(Text(0, middle, shorten(name), "end", dx=-8))
        for column, value in enumerate(line):
            color: Color = "warm" if (value or 0) > 0 else "cold"
            x, opacity = column * width, abs(value or 0) / span
            shapes.append(Rectangle(x, _CELL * row, 0.96 * width, 0.92 * _CELL, color, opacity, outlined=True))
            shapes.append(Text(x + 0.48 * width, middle, as_signed(value)))
    bottom, longest = _CELL * len(rows), _widest(columns)
    # Names of columns are slanted, so that long ones do not overlap.
    shapes += [
        Text((column + 0.6) * width, bottom + 8, shorten(name), "end", slanted=True)
        for column, name in enumerate(columns)
    ]
    left = 12 + max(_widest(rows), 0.9 * longest - 40)
    return Diagram(shapes, 76 * len(columns), bottom + 24 + longest / 2, left)


class Ranks(NamedTuple):
    """Average ranks of methods, for a critical-difference diagram: methods closer than `difference` are joined."""

    title: str
    average_ranks: Mapping[str, float]
    difference: float


def critical_differences(shown: Sequence[Ranks]) -> Diagram:
    """Return methods on an axis of average ranks, one below the other; bars join those that do not differ."""
    shapes, top = list[Shape](), 0.0
    sides = [f"{name}  0.00" for ranks in shown for name in ranks.average_ranks]
    left = right = 16 + max(_widest(sides), _widest([_difference_text(ranks) for ranks in shown]))
    for ranks in shown:
        shapes.append(Text(0, top + 12, ranks.title, "start", dx=-left, bold=True))
        shapes += _rank_axis(ranks, top + 40)
        top += _ranks_height(ranks)
    return Diagram(shapes, 380, top, left, right)


def _difference_text(ranks: Ranks) -> str:
    wider = ", wider than the axis" if ranks.difference > len(ranks.average_ranks) - 1 else ""
    return f"CD = {ranks.difference:.2f}{wider}"


def _ranks_height(ranks: Ranks) -> float:
    joined = cliques(ranks.average_ranks, ranks.difference)
    return 112 + 10 * len(joined) + 20 * ((len(ranks.average_ranks) + 1) // 2)


def _rank_axis(ranks: Ranks, top: float) -> Iterator[Shape]:
    """Yield the critical difference, the axis, bars below it, and the names on both sides."""
    count = len(ranks.average_ranks)
    axis = top + 36

    def across(rank: float) -> float:
        return 100 * (rank - 1) / max(count - 1, 1)

    yield Line(0, top, min(across(1 + ranks.difference), 100), top, 0, 3)
    yield Text(0, top, _difference_text(ranks), "end", "muted", -8)
    yield Line(0, axis, 100, axis)
    for tick in range(1, count + 1):
        yield Line(across(tick), axis - 5, across(tick), axis)
        yield Text(across(tick), axis - 14, str(tick), color="muted")
    joined = cliques(ranks.average_ranks, ranks.difference)
    for row, (low, high) in enumerate(joined):
        yield Line(across(low), axis + 10 + 10 * row, across(high), axis + 10 + 10 * row, 0, 3)
    half, start = (count + 1) // 2, axis + 20 + 10 * len(joined)
    for number, (name, rank) in enumerate(sorted(ranks.average_ranks.items(), key=lambda entry: entry[1])):
        is_left = number < half
        y, edge = start + 20 * (number if is_left else count - 1 - number), 0.0 if is_left else 100.0
        yield Line(across(rank), axis, across(rank), y, "muted")
        yield Line(across(rank), y, edge, y, "muted")
        text = f"{shorten(name)}  {rank:.2f}" if is_left else f"{rank:.2f}  {shorten(name)}"
        yield Text(edge, y, text, "end" if is_left else "start", dx=-6 if is_left else 6)


def cliques(average_ranks: Mapping[str, float], difference: float) -> list[tuple[float, float]]:
    """Return the spans of average ranks, each as long as possible, within which no two methods differ.

    >>> cliques({"a": 1.0, "b": 1.5, "c": 4.0}, difference=1.0)
    [(1.0, 1.5)]
    """
    ranks = sorted(average_ranks.values())
    spans: list[tuple[float, float]] = []
    for start, low in enumerate(ranks):
        high = max(rank for rank in ranks[start:] if rank - low < difference)
        # A span inside the one before says nothing new, and one method alone is no clique.
        if high > low and (not spans or high > spans[-1][1]):
            spans.append((low, high))
    return spans


# --- charts


class Chart(NamedTuple):
    """A chart: the name of its file, what it shows, its description, and a hint on how to read it."""

    name: str
    caption: str
    content: Panels | Diagram
    hint: str = ""

    @property
    def title(self) -> str:
        """The caption in a file, which has one view only: with that view's name."""
        view = self.content.view if isinstance(self.content, Panels) else ""
        return f"{self.caption}, {view.lower()}" if view else self.caption


def shorten(name: str) -> str:
    """Return a name that leaves room for what it names."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _widest(names: Sequence[str]) -> float:
    """Return about how many pixels the longest name takes."""
    return _LETTER * max((len(shorten(name)) for name in names), default=0)
