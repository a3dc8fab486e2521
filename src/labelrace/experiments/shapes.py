"""The shapes of data that speed is measured on: a base, and one size at a time varied from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import AnyMatrix

__all__ = ["AXES", "BASE", "BATCH_SIZE", "Shape", "grid", "make_batches"]

BATCH_SIZE = 250
_CARDINALITY = 3.0


class Shape(NamedTuple):
    """Rows, features and labels of a stream, and the share of non-zeros of its binary features."""

    rows: int
    features: int
    labels: int
    density: float


BASE = Shape(rows=1500, features=300, labels=100, density=0.05)

# What each size is varied over; the base's own value is among them.
AXES: dict[str, tuple[float, ...]] = {
    "rows": (750, 1500, 3000),
    "features": (100, 300, 900),
    "labels": (25, 100, 400),
    "density": (0.02, 0.05, 0.125, 0.3),
}


def grid(rows: Sequence[int] = ()) -> dict[str, list[Shape]]:
    """Return the shapes of each axis, the base's value among them.

    Parameters
    ----------
    rows : sequence of int
        What rows are varied over, if not as usual. The other axes have the first of them.

    Examples
    --------
    >>> [shape.labels for shape in grid()["labels"]]
    [25, 100, 400]
    """
    axes = {**AXES, "rows": tuple(sorted(set(rows)))} if rows else AXES
    base = BASE._replace(rows=int(axes["rows"][0])) if rows else BASE
    return {axis: [_varied(base, axis, value) for value in values] for axis, values in axes.items()}


def _varied(base: Shape, axis: str, value: float) -> Shape:
    changed: dict[str, Any] = {axis: value if axis == "density" else int(value)}
    return base._replace(**changed)


def make_batches(shape: Shape) -> tuple[list[tuple[AnyMatrix, AnyMatrix]], AnyMatrix]:
    """Return batches of synthetic rows of a shape, and the mask of their nominal features: all of them are."""
    stream = SyntheticStream(
        n_rows=shape.rows,
        n_features=shape.features,
        n_labels=shape.labels,
        cardinality=min(_CARDINALITY, shape.labels / 4),
        density=shape.density,
    )
    return list(stream.batches(BATCH_SIZE)), stream.categorical
