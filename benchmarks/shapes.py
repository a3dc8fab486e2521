"""The shapes of public datasets, for synthetic streams that look like them."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """What a dataset looks like; ``density`` is the share of non-zeros of binary features, None for dense numbers."""

    n_rows: int
    n_features: int
    n_labels: int
    cardinality: float
    density: float | None = None


# From the datasets' descriptions in Mulan's collection; densities are rounded.
SHAPES = {
    "emotions": Shape(593, 72, 6, 1.9),
    "CAL500": Shape(502, 68, 174, 26.0),
    "enron": Shape(1702, 1001, 53, 3.4, 0.08),
    "yeast": Shape(2417, 103, 14, 4.2),
    "scene": Shape(2407, 294, 6, 1.1),
    "mediamill": Shape(43907, 120, 101, 4.4),
    "NUS-WIDE": Shape(269648, 500, 81, 1.9),
    "genbase": Shape(662, 1186, 27, 1.3, 0.02),
    "medical": Shape(978, 1449, 45, 1.2, 0.01),
    "corel5k": Shape(5000, 499, 374, 3.5, 0.017),
    "bibtex": Shape(7395, 1836, 159, 2.4, 0.037),
    "bookmarks": Shape(87856, 2150, 208, 2.0, 0.058),
    "tmc2007": Shape(28596, 49060, 22, 2.2, 0.0007),
    "rcv1v2": Shape(6000, 47236, 101, 2.9, 0.0015),
    "EUR-Lex": Shape(19348, 5000, 3993, 5.3, 0.047),
}
