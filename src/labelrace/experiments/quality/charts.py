"""The page's charts: share present against probability, a panel a model and a line a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from labelrace.experiments.quality.rows import QualityBlock
from labelrace.experiments.svg import Frame
from labelrace.measures.calibration import Reliability

__all__ = ["FEWEST_ENTRIES", "reliability_panels"]

# A share of fewer entries is mostly chance, and is not drawn.
FEWEST_ENTRIES = 30
_SIZE, _MARGINS = (250, 226), (52, 10, 10, 40)
_TICKS = (0.0, 0.5, 1.0)


def reliability_panels(blocks: Sequence[QualityBlock], models: Sequence[str]) -> list[tuple[str, Markup]]:
    """Draw a diagram for each model that gave probabilities; the colour tells the dataset, by its place."""
    panels = []
    for model in models:
        lines = [(place, block) for place, block in enumerate(blocks) if block.rows[model].reliability is not None]
        if lines:
            panels.append((model, _panel(model, lines)))
    return panels


def _panel(model: str, lines: Sequence[tuple[int, QualityBlock]]) -> Markup:
    frame = Frame(_SIZE, (0, 1), (0, 1), f"Reliability diagram of {model}", _MARGINS)
    frame.axes(_TICKS, _TICKS, "probability", "share present")
    frame.line(0, 0, 1, 1, "diagonal")
    for place, block in lines:
        bins = block.rows[model].reliability
        if bins is not None:
            _draw(frame, bins, f"model-{place}", block.source.title)
    return frame.render()


def _draw(frame: Frame, bins: Reliability, kind: str, dataset: str) -> None:
    drawn = bins.entries >= FEWEST_ENTRIES
    xs, ys, counts = (part[drawn].tolist() for part in (bins.mean_probability, bins.share_present, bins.entries))
    frame.curve(xs, ys, f"curve {kind}", dots=False)
    for x, y, count in zip(xs, ys, counts, strict=True):
        frame.dot(x, y, kind, 2.5, f"{dataset}: probability {x:.3f}, present {y:.3f} of {count:,}")
