"""Empty figures in the report's look, and figures as files. They need matplotlib.

Here for the report's figures and for the benchmarks'.
"""

from __future__ import annotations

import importlib.util
import io
from typing import TYPE_CHECKING, Any

from labelrace.report import palette
from labelrace.report.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAST",
    "INK",
    "LINE",
    "MIDDLE",
    "MUTED",
    "SLOW",
    "add_title",
    "as_file",
    "can_draw",
    "line_style",
    "literal",
    "new_figure",
]

INK, MUTED, LINE = "#1b1f24", "#5a636e", "#dfe3e8"
# Of heat maps of times.
FAST, MIDDLE, SLOW = "#4c93d9", "#f4f6f8", "#e07b39"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "text.color": INK,
    # Text stays text, and the same data give the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "labelrace",
}
_DOTS_PER_INCH = 160


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def new_figure(down: int, across: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; it belongs to no window and to no global state."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'labelrace[plots]'.") from error
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False)
    return figure, list(panels.flat)


def add_title(figure: Figure, text: str) -> None:
    """Write the title above a figure."""
    figure.suptitle(literal(text), x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)


def line_style(place: int) -> Any:
    """Return the pattern of the line of the model at this place, as matplotlib takes it."""
    dash = palette.dash(place)
    return (0, [length / 2 for length in dash]) if dash else "-"


def literal(text: str) -> str:
    """Return a name without matplotlib's formulas, which stand between dollar signs."""
    return printable(text).replace("$", r"\$")


def as_file(figure: Figure, form: str = "png") -> bytes:
    """Return a figure as a file."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format=form, dpi=_DOTS_PER_INCH, metadata={"Date": None} if form == "svg" else None)
    return content.getvalue()
