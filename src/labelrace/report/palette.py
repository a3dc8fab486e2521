"""One colour and one line pattern per model, the same in the page and in the figures.

The colours keep apart under the three common kinds of colour blindness, and contrast with their ground by 3 to 1
or more. As eight colours are the most that do, the pattern of the line tells the rest apart.
"""

from __future__ import annotations

__all__ = ["color", "dash"]

_ON_LIGHT = ("#1858A9", "#C24A0A", "#37A48B", "#7D1650", "#B08A12", "#9C85E5", "#1B839B", "#62240D")
_ON_DARK = ("#66ACFD", "#F0792C", "#A1F8DF", "#C7699A", "#F1CD38", "#9F75EA", "#73D4F0", "#EEA09A")

# The neighbours in hue are four apart, so that within the first eight they differ in pattern too.
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 3), (9, 3, 2, 3))


def color(index: int, dark: bool = False) -> str:
    """Return the colour of the model at this place of the manifest."""
    colors = _ON_DARK if dark else _ON_LIGHT
    return colors[index % len(colors)]


def dash(index: int) -> tuple[int, ...]:
    """Return the lengths of strokes and gaps of the model's line; none is a solid line."""
    return _DASHES[index // 4 % len(_DASHES)]
