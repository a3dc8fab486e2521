"""Empty figures in the report's look, and figures as files. They need matplotlib."""

from __future__ import annotations

import importlib.util
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["INK", "LINE", "MUTED", "add_title", "as_png", "can_draw", "new_figure"]

INK, MUTED, LINE = "#1b1f24", "#5a636e", "#dfe3e8"
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
}
_DOTS_PER_INCH = 160


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def new_figure(down: int, across: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; it belongs to no window and to no global state."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False)
    return figure, list(panels.flat)


def add_title(figure: Figure, text: str) -> None:
    """Write the title above a figure."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)


def as_png(figure: Figure) -> bytes:
    """Return a figure as a file."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    return content.getvalue()
