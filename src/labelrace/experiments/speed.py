"""How fast the models are, how much memory they take, and how both grow with the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.evaluation import ModelSpec, memory_meter
from labelrace.experiments.rivals import Rival, rivals
from labelrace.experiments.shapes import Shape, grid, make_batches
from labelrace.models.registry import model_names
from labelrace.typing import AnyMatrix

__all__ = ["Measurement", "SpeedSummary", "measure", "run_speed", "slope"]

# Rivals that take each row by itself are given so many: enough to time them, and no more than one can wait for.
_ROWS_OF_RIVALS = 40
# What rivals are compared with, besides the model that is most like them.
_REFERENCE = "race-cls-fixed"


@dataclass(frozen=True)
class Measurement:
    """One model on one shape.

    Parameters
    ----------
    model : str
    shape : Shape
    first : float
        Seconds to learn the first batch, which is where models set themselves up.
    predict, learn : float
        Milliseconds a row to predict and to learn each later batch.
    memory : int or None
        Peak of what it allocated while it learned and predicted, in bytes.
    """

    model: str
    shape: Shape
    first: float
    predict: float
    learn: float
    memory: int | None

    @property
    def total(self) -> float:
        """Milliseconds a row to predict and then to learn it."""
        return self.predict + self.learn


@dataclass(frozen=True)
class SpeedSummary:
    """All measurements: by axis and model, in the axis' order, and those of other libraries on the shapes of `labels`.

    Parameters
    ----------
    axes : dict
        Axis -> model -> measurements.
    rivals : list of (Rival, Measurement)
    absent : list of str
        Libraries that are not installed.
    """

    axes: dict[str, dict[str, list[Measurement]]]
    rivals: list[tuple[Rival, Measurement]]
    absent: list[str]

    def at_base(self) -> dict[str, Measurement]:
        """Return each model's measurement on the shape that all axes share."""
        shared = set.intersection(*({m.shape for m in of[_REFERENCE]} for of in self.axes.values()))
        return {m.model: m for of in self.axes["labels"].values() for m in of if m.shape in shared}

    def ratios(self) -> list[tuple[str, str, dict[Shape, float]]]:
        """Return, by rival and model, how many times longer than the model the rival takes for a row of a shape."""
        compared: dict[tuple[str, str], dict[Shape, float]] = {}
        for rival, theirs in self.rivals:
            for model in (rival.like, _REFERENCE):
                ours = next(m for m in self.axes["labels"][model] if m.shape == theirs.shape)
                compared.setdefault((rival.name, model), {})[theirs.shape] = theirs.total / ours.total
        return [(*key, by_shape) for key, by_shape in compared.items()]


def run_speed(
    models: Iterable[str] | None = None,
    *,
    rows: Sequence[int] = (),
    on_progress: Callable[[str, int, int], object] | None = None,
) -> SpeedSummary:
    """Measure online models, and other libraries that are installed, on a grid of shapes, on one thread.

    Parameters
    ----------
    models : iterable of str or None
        Names for `labelrace.make_model`; by default all that are online.
    rows : sequence of int
        Numbers of rows, if not the usual ones.
    on_progress : callable, optional
        Called with what is measured, how many measurements are done, and how many there are.
    """
    names = list(models) if models is not None else model_names(online=True)
    names = list(dict.fromkeys([*names, "obr", "occ", _REFERENCE]))
    shapes = grid(rows)
    found, absent = rivals()
    distinct = list(dict.fromkeys(shape for line in shapes.values() for shape in line))
    total = len(distinct) * len(names) + len(shapes["labels"]) * len(found)
    done: dict[tuple[str, Shape], Measurement] = {}
    others: list[tuple[Rival, Measurement]] = []
    with threadpool_limits(limits=1):
        for shape in distinct:
            batches, categorical = make_batches(shape)
            for name in names:
                _tell(on_progress, f"{name}, {_text(shape)}", len(done) + len(others), total)
                done[name, shape] = measure(name, shape, batches, categorical)
            for rival in found if shape in shapes["labels"] else ():
                _tell(on_progress, f"{rival.name}, {_text(shape)}", len(done) + len(others), total)
                others.append((rival, _measure_rival(rival, shape, batches)))
    axes = {axis: {name: [done[name, shape] for shape in line] for name in names} for axis, line in shapes.items()}
    return SpeedSummary(axes, sorted(others, key=lambda pair: pair[1].shape.labels), absent)


def measure(
    name: str, shape: Shape, batches: Sequence[tuple[AnyMatrix, AnyMatrix]], categorical: AnyMatrix
) -> Measurement:
    """Time a model, then let it go through some of the batches again to trace its memory, which slows it down.

    Parameters
    ----------
    name : str
        For `labelrace.make_model`.
    shape : Shape
    batches : sequence of (X, Y)
        The first is learned; each further one is predicted and learned.
    categorical : mask
        The nominal features.
    """
    spec = ModelSpec(name)
    first, predict, learn = _go_through(spec.make(0, categorical), batches)
    with memory_meter(trace=True) as peak:
        _go_through(spec.make(0, categorical), batches[:2])
        memory = peak()
    return Measurement(name, shape, first, predict, learn, memory)


def slope(measurements: Sequence[Measurement], axis: str, value: Callable[[Measurement], float]) -> float:
    """Return the exponent with which a value grows along an axis: 0 does not grow, 1 is proportional.

    Examples
    --------
    >>> shapes = [Shape(100, 10, labels, 0.1) for labels in (10, 100, 1000)]
    >>> made = [Measurement("obr", shape, 0.0, shape.labels / 10, 0.0, None) for shape in shapes]
    >>> round(slope(made, "labels", lambda m: m.predict), 6)
    1.0
    """
    sizes = np.log([getattr(m.shape, axis) for m in measurements])
    values = np.log([max(value(m), 1e-12) for m in measurements])
    return float(np.polyfit(sizes, values, 1)[0])


def _go_through(model: Any, batches: Sequence[tuple[AnyMatrix, AnyMatrix]]) -> tuple[float, float, float]:
    """Return the seconds to learn the first batch, and the milliseconds a row to predict and to learn others.

    These are medians over batches: a batch during which the machine did something else does not count.
    """
    first = _seconds(model.partial_fit, *batches[0])
    predict, learn = [], []
    for X, Y in batches[1:]:
        predict.append(1000 * _seconds(model.predict, X) / X.shape[0])
        learn.append(1000 * _seconds(model.partial_fit, X, Y) / X.shape[0])
    return first, float(np.median(predict)), float(np.median(learn))


def _measure_rival(rival: Rival, shape: Shape, batches: Sequence[tuple[AnyMatrix, AnyMatrix]]) -> Measurement:
    size = _ROWS_OF_RIVALS if rival.by_row else batches[0][0].shape[0]
    some = [(X[:size], Y[:size]) for X, Y in batches[:2]]
    return Measurement(rival.name, shape, *_go_through(rival.make(shape.labels), some), memory=None)


def _seconds(call: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def _tell(on_progress: Callable[[str, int, int], object] | None, text: str, done: int, total: int) -> None:
    if on_progress is not None:
        on_progress(text, done, total)


def _text(shape: Shape) -> str:
    return f"{shape.rows} × {shape.features}, {shape.labels} labels"
