"""Time and memory of the models, how both grow with the data, and how other libraries compare."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace import __version__
from labelrace.evaluation import ModelSpec, memory_meter
from labelrace.experiments.baselines import row_dicts
from labelrace.experiments.plan import OnProgress, Step
from labelrace.models.registry import model_names
from labelrace.report.figures import Chart, Panel, Series, panels
from labelrace.report.page import Document, Section
from labelrace.report.tables import text_table
from labelrace.report.text import as_bytes, as_significant, listing
from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import AnyMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH_SIZE = 250
_CARDINALITY = 3.0
# Libraries that take one row at a time get this many rows: enough to time them within acceptable time.
_ROWS_OF_RIVALS = 40
# What rivals are compared with, besides the model that is most like them.
_REFERENCE = "race-cls-fixed"


class Shape(NamedTuple):
    """Rows, features and labels of a stream, and the share of non-zeros of its binary features."""

    rows: int
    features: int
    labels: int
    density: float

    def __str__(self) -> str:
        return f"{self.rows:,} rows, {self.features} features ({self.density:.0%} non-zero), {self.labels} labels"


BASE = Shape(rows=1500, features=300, labels=100, density=0.05)
# What each size is varied over, one at a time; the base's own value is among them.
AXES: dict[str, tuple[Any, ...]] = {
    "rows": (750, 1500, 3000),
    "features": (100, 300, 900),
    "labels": (25, 100, 400),
    "density": (0.02, 0.05, 0.125, 0.3),
}


class Measurement(NamedTuple):
    """One model on one shape.

    ``first`` are the seconds to learn the first batch, which is where models set themselves up; ``predict`` and
    ``learn`` milliseconds per row of each later batch; ``memory`` the peak of what it allocated meanwhile, in bytes.
    """

    model: str
    shape: Shape
    first: float
    predict: float
    learn: float
    memory: int | None

    @property
    def total(self) -> float:
        """Milliseconds per row to predict and then to learn it."""
        return self.predict + self.learn


class Rival(NamedTuple):
    """A name, a maker that is told the number of labels, whether it takes each row by itself, and the same by us."""

    name: str
    make: Callable[[int], Any]
    by_row: bool
    like: str


@dataclass(frozen=True)
class SpeedSummary:
    """All measurements."""

    axes: dict[str, dict[str, list[Measurement]]]  # by axis and model, in the axis' order
    rivals: list[tuple[Rival, Measurement]]  # other libraries, on the shapes of the axis of labels
    absent: list[str]  # libraries that are not installed

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
    on_progress: OnProgress | None = None,
) -> SpeedSummary:
    """Measure online models, and other libraries that are installed, on a grid of shapes, on one thread.

    Parameters
    ----------
    models : iterable of str or None, default=None
        Names for `labelrace.make_model`; None for all that are online.
    rows : sequence of int, default=()
        Numbers of rows; the usual ones if empty.
    on_progress : callable, default=None
        Called with a `Step` before each measurement.
    """
    names = list(models) if models is not None else model_names(online=True)
    names = list(dict.fromkeys([*names, "obr", "occ", _REFERENCE]))
    shapes = grid(rows)
    found, absent = rivals()
    distinct = list(dict.fromkeys(shape for line in shapes.values() for shape in line))
    total = len(distinct) * len(names) + len(shapes["labels"]) * len(found)
    done: dict[tuple[str, Shape], Measurement] = {}
    others: list[tuple[Rival, Measurement]] = []

    def tell(name: str, shape: Shape) -> None:
        if on_progress is not None:
            on_progress(Step(f"{name}, {shape}", len(done) + len(others), total))

    with threadpool_limits(limits=1):
        for shape in distinct:
            batches, categorical = make_batches(shape)
            for name in names:
                tell(name, shape)
                done[name, shape] = measure(name, shape, batches, categorical)
            for rival in found if shape in shapes["labels"] else ():
                tell(rival.name, shape)
                size = _ROWS_OF_RIVALS if rival.by_row else BATCH_SIZE
                some = [(X[:size], Y[:size]) for X, Y in batches[:2]]
                times = _go_through(rival.make(shape.labels), some)
                others.append((rival, Measurement(rival.name, shape, *times, memory=None)))
    axes = {axis: {name: [done[name, shape] for shape in line] for name in names} for axis, line in shapes.items()}
    return SpeedSummary(axes, sorted(others, key=lambda pair: pair[1].shape.labels), absent)


def grid(rows: Sequence[int] = ()) -> dict[str, list[Shape]]:
    """Return the shapes of each axis, the base's value among them.

    `rows` are what rows are varied over, if not as usual. The other axes have the first of them.
    """
    axes = AXES | ({"rows": tuple(sorted(set(rows)))} if rows else {})
    base = BASE._replace(rows=min(rows, default=BASE.rows))
    return {axis: [Shape(**base._asdict() | {axis: value}) for value in values] for axis, values in axes.items()}


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


def measure(
    name: str, shape: Shape, batches: Sequence[tuple[AnyMatrix, AnyMatrix]], categorical: AnyMatrix
) -> Measurement:
    """Time a model, then let it go through some of the batches again to trace its memory, which slows it down.

    The first batch is learned; each further one is predicted and learned.
    """
    spec = ModelSpec(name)
    times = _go_through(spec.make(0, categorical), batches)
    return Measurement(name, shape, *times, traced_memory(spec, batches, categorical))


def traced_memory(
    spec: ModelSpec, batches: Sequence[tuple[AnyMatrix, AnyMatrix]], categorical: AnyMatrix
) -> int | None:
    """Return what a model allocates at most, in bytes, to learn a batch, and to predict and learn another."""
    with memory_meter(trace=True) as peak:
        _go_through(spec.make(0, categorical), batches[:2])
        return peak()


def slope(measurements: Sequence[Measurement], axis: str) -> float:
    """Return the exponent with which the time of a row grows along an axis: 0 does not grow, 1 is proportional."""
    sizes = np.log([getattr(m.shape, axis) for m in measurements])
    times = np.log([max(m.total, 1e-12) for m in measurements])
    return float(np.polyfit(sizes, times, 1)[0])


def _go_through(model: Any, batches: Sequence[tuple[AnyMatrix, AnyMatrix]]) -> tuple[float, float, float]:
    """Return the seconds to learn the first batch, and the milliseconds per row to predict and to learn others.

    These are medians over batches: a batch during which the machine did something else does not count.
    """
    first = seconds_of(time.perf_counter, model.partial_fit, *batches[0])
    predict, learn = [], []
    for X, Y in batches[1:]:
        predict.append(1000 * seconds_of(time.perf_counter, model.predict, X) / X.shape[0])
        learn.append(1000 * seconds_of(time.perf_counter, model.partial_fit, X, Y) / X.shape[0])
    return first, float(np.median(predict or [np.nan])), float(np.median(learn or [np.nan]))


def seconds_of(clock: Callable[[], float], call: Callable[..., object], *arguments: Any) -> float:
    """Return how long a call takes by a clock."""
    start = clock()
    call(*arguments)
    return clock() - start


def rivals() -> tuple[list[Rival], list[str]]:
    """Return those that can be measured here, and the packages of those that cannot."""
    found = [Rival("scikit-learn, binary relevance", _SklearnRelevance, by_row=False, like="obr")]
    optional = {
        "river": Rival("River, classifier chain", _RiverChain, by_row=True, like="occ"),
        "vowpalwabbit": Rival("Vowpal Wabbit, one against all", _VowpalWabbit, by_row=True, like="obr"),
    }
    absent = [package for package in optional if find_spec(package) is None]
    return [*found, *(rival for package, rival in optional.items() if package not in absent)], absent


class _SklearnRelevance:
    """MultiOutputClassifier: one Bernoulli naive Bayes for each label."""

    def __init__(self, n_labels: int) -> None:
        self._classes = [np.arange(2)] * n_labels
        self._model = MultiOutputClassifier(BernoulliNB())

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        self._model.partial_fit(X, Y.toarray(), classes=self._classes)

    def predict(self, X: AnyMatrix) -> Any:
        return self._model.predict(X)


class _RiverChain:
    """ClassifierChain of Bernoulli naive Bayes, which learns row by row from dicts."""

    def __init__(self, n_labels: int) -> None:
        from river.multioutput import ClassifierChain
        from river.naive_bayes import BernoulliNB as RiverBernoulliNB

        self._labels = range(n_labels)
        self._model = ClassifierChain(RiverBernoulliNB(), order=list(self._labels))

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, present in zip(row_dicts(X), row_dicts(Y), strict=True):
            self._model.learn_one(dict.fromkeys(row, 1), {label: label in present for label in self._labels})

    def predict(self, X: AnyMatrix) -> list[Any]:
        return [self._model.predict_one(dict.fromkeys(row, 1)) for row in row_dicts(X)]


class _VowpalWabbit:
    """multilabel_oaa, on hashed features."""

    def __init__(self, n_labels: int) -> None:
        workspace = importlib.import_module("vowpalwabbit").Workspace
        self._model = workspace(f"--multilabel_oaa {n_labels} --quiet")

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, present in zip(row_dicts(X), row_dicts(Y), strict=True):
            self._model.learn(f"{','.join(map(str, sorted(present)))} | {' '.join(map(str, row))}")

    def predict(self, X: AnyMatrix) -> list[Any]:
        return [self._model.predict(f" | {' '.join(map(str, row))}") for row in row_dicts(X)]


def speed_document(summary: SpeedSummary) -> Document:
    """Return times on the base shape, how they grow, and how other libraries compare, as tables and a chart."""
    base = summary.at_base()
    shape = next(iter(base.values())).shape
    shapes = list(dict.fromkeys(m.shape for _, m in summary.rivals))
    times = {
        name: [*map(as_significant, (m.predict, m.learn, m.first)), as_bytes(m.memory)] for name, m in base.items()
    }
    growth = {
        name: [f"{slope(of[name], axis):.2f}".replace("-", "−") for axis, of in summary.axes.items()] for name in base
    }
    others = {
        f"{name} / {model}": [f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×" for ratio in by_shape.values()]
        for name, model, by_shape in summary.ratios()
    }
    columns = ("Predict (ms/row)", "Learn (ms/row)", "First batch (s)", "Peak memory")
    compared = "Time per row of other libraries, as a ratio to that of a model of labelrace."
    tables = [
        text_table("times", f"Time and memory: {shape}.", columns, times),
        text_table("growth", "Exponents of the growth of time per row.", [f"By {a}" for a in summary.axes], growth),
        text_table("libraries", compared, [f"{shape.labels} labels" for shape in shapes], others, "Library / model"),
    ]
    measured = [(axis, m) for axis, of in summary.axes.items() for line in of.values() for m in line]
    measured += [("labels", m) for _, m in summary.rivals]
    names = ("first_seconds", "predict_ms", "learn_ms", "memory")
    records = [
        {"axis": axis, "model": m.model, **m.shape._asdict(), **dict(zip(names, m[2:], strict=True))}
        for axis, m in measured
    ]
    chart = Chart("speed", "Time and memory, one size varied at a time", lambda: _figure(summary))
    hint = "On one thread. An exponent of 0 means that the time does not grow, 1 that it is proportional."
    return Document(
        name="speed",
        title="Speed of the online models",
        lead=f"{len(base)} online models on synthetic streams, on one thread.",
        footer=f"Made by labelrace {__version__}.",
        sections=[Section("Time and memory", hint, tables, [chart])],
        records={"speed": records},
        notes=[f"Not installed, and so not compared: {listing(summary.absent)}."] if summary.absent else [],
    )


def _figure(summary: SpeedSummary) -> Figure:
    """Draw time and memory along every axis, on logarithmic scales."""
    values: dict[str, Callable[[Measurement], float]] = {
        "ms per row": lambda m: m.total,
        "peak memory, MB": lambda m: (m.memory or 0) / 1e6,
    }
    shown = []
    for label, value in values.items():
        for axis, of in summary.axes.items():
            sizes = [getattr(m.shape, axis) for m in next(iter(of.values()))]
            series = [
                Series(name, sizes, [value(m) for m in line], place, marker="o")
                for place, (name, line) in enumerate(of.items())
            ]
            shown.append(Panel("", series, axis, "" if axis != "rows" else label, "xy", x_ticks=sizes))
    return panels(shown, across=len(summary.axes), size=(2.5, 2.3))
