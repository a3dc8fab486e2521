"""Charts of the page, as SVG in the page's own colours: they follow its theme, and need no script and no library."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from labelrace.experiments.cliques import cliques
from labelrace.experiments.ranking import Comparison

__all__ = ["Frame", "critical_difference_chart", "nice_ticks"]

_MOST_TICKS = 5


def nice_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two bounds.

    Examples
    --------
    >>> nice_ticks(0.03, 0.47)
    [0.1, 0.2, 0.3, 0.4]
    """
    rough = (high - low) / _MOST_TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [round(step * place, 10) for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


class Frame:
    """A panel with two linear axes; what is drawn is collected and given as SVG at the end.

    Parameters
    ----------
    size : (width, height)
        In pixels, of a screen that is wide enough.
    x_range, y_range : (low, high)
    label : str
        What it shows, for those who cannot see it.
    margins : (left, right, top, bottom)
    """

    def __init__(
        self,
        size: tuple[int, int],
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        label: str,
        margins: tuple[int, int, int, int] = (44, 12, 12, 40),
    ) -> None:
        self._size, self._x_range, self._y_range, self._label = size, x_range, y_range, label
        self._left, self._right, self._top, self._bottom = margins
        self._parts: list[Markup] = []

    def x(self, value: float) -> float:
        """Return where a value is, across."""
        low, high = self._x_range
        return self._left + (value - low) / (high - low) * (self._size[0] - self._left - self._right)

    def y(self, value: float) -> float:
        """Return where a value is, down."""
        low, high = self._y_range
        height = self._size[1] - self._top - self._bottom
        return self._top + (1 - (value - low) / (high - low)) * height

    def axes(self, x_ticks: Sequence[float], y_ticks: Sequence[float], x_title: str, y_title: str = "") -> None:
        """Draw the grid, its numbers and titles."""
        for tick in y_ticks:
            self.line(self._x_range[0], tick, self._x_range[1], tick, "grid")
            self.text(self._left - 6, self.y(tick) + 4, f"{tick:g}", "tick end")
        bottom = self._size[1] - self._bottom
        for tick in x_ticks:
            self.text(self.x(tick), bottom + 16, f"{tick:g}", "tick middle")
        self.text((self._left + self._size[0] - self._right) / 2, bottom + 34, x_title, "tick middle")
        if y_title:
            self._parts.append(
                Markup('<text class="tick middle" transform="translate(12 {:.1f}) rotate(-90)">{}</text>').format(
                    (self._top + bottom) / 2, y_title
                )
            )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line between two points of the axes."""
        self.stroke(self.x(x1), self.y(y1), self.x(x2), self.y(y2), kind)

    def stroke(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line between two pixels."""
        self._parts.append(
            Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)
        )

    def curve(self, xs: Sequence[float], ys: Sequence[float], kind: str, *, dots: bool = True) -> None:
        """Draw a line through points of the axes, with or without a dot at each."""
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(Markup('<polyline class="{}" points="{}"/>').format(kind, path))
        for x, y in points if dots else ():
            self.dot(x, y, kind, 2.5)

    def dot(self, x: float, y: float, kind: str, radius: float = 4, title: str = "") -> None:
        """Draw a dot, with a text that shows under the pointer."""
        told = Markup("<title>{}</title>").format(title) if title else ""
        self._parts.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>').format(
                kind, self.x(x), self.y(y), radius, told
            )
        )

    def text(self, x: float, y: float, text: str, kind: str) -> None:
        """Write at a pixel."""
        self._parts.append(Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, text))

    def render(self) -> Markup:
        """Return the whole as an element of a page."""
        width, height = self._size
        return Markup(
            '<svg class="plot" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">{parts}'
            "</svg>"
        ).format(w=width, h=height, label=escape(self._label), parts=Markup("").join(self._parts))


def critical_difference_chart(comparison: Comparison, label: str) -> Markup:
    """Draw methods on an axis of average ranks; a bar joins those that are not told apart."""
    ordered = sorted(comparison.places, key=lambda method: comparison.places[method])
    half = (len(ordered) + 1) // 2
    bars = cliques(comparison.places, comparison.difference)
    top, step = 70 + 9 * len(bars), 22
    width, height = 640, top + step * half + 6
    margins = (170, 170, 40, height - 40)
    frame = Frame((width, height), (1, len(ordered)), (0, 1), label, margins)
    axis = 40
    frame.stroke(frame.x(1), axis, frame.x(len(ordered)), axis, "axis")
    for place in range(1, len(ordered) + 1):
        frame.stroke(frame.x(place), axis - 5, frame.x(place), axis, "axis")
        frame.text(frame.x(place), axis - 10, str(place), "tick middle")
    span = frame.x(min(1 + comparison.difference, len(ordered))) - frame.x(1)
    frame.stroke(frame.x(1), 14, frame.x(1) + span, 14, "clique")
    wider = " (wider than the axis)" if comparison.difference > len(ordered) - 1 else ""
    frame.text(frame.x(1) - 8, 18, f"CD = {comparison.difference:.2f}{wider}", "tick end")
    for row, (low, high) in enumerate(bars):
        frame.stroke(frame.x(low) - 4, axis + 14 + 9 * row, frame.x(high) + 4, axis + 14 + 9 * row, "clique")
    for number, method in enumerate(ordered):
        left = number < half
        down = top + step * (number if left else len(ordered) - 1 - number)
        spot, edge = frame.x(comparison.places[method]), 165 if left else width - 165
        frame.stroke(spot, axis, spot, down - 4, "axis")
        frame.stroke(spot, down - 4, edge, down - 4, "axis")
        text = f"{method} {comparison.places[method]:.2f}" if left else f"{comparison.places[method]:.2f} {method}"
        frame.text(edge + (-5 if left else 5), down, text, "name end" if left else "name")
    return frame.render()
