"""What the default promises on synthetic streams: quality at each aim, through drift, with late and missing labels.

``python -m benchmarks quality --bounds`` prints each promise with its value and its bound, and fails if one is broken.
Values are means of the example F1 of batches, each tested before it is learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import labelrace
from benchmarks.timing import batches
from labelrace import LabelRaceClassifier
from labelrace.evaluation import averages, prequential
from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import FloatArray

AIMS = ("example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss", "subset_accuracy")
DRIFTS: tuple[Any, ...] = ("sudden", "gradual", "incremental", "recurring")

_default = partial(LabelRaceClassifier, random_state=0)
_remembering = partial(_default, half_life=None, detect_drift=False)
_stream = partial(SyntheticStream, n_rows=8000, n_features=30, n_labels=20, seed=1)


class Bound(NamedTuple):
    """A promise, its value, and what the value must be at least."""

    promise: str
    value: float
    least: float


def check() -> None:
    """Print all bounds; exit with status 1 if one is broken."""
    broken = 0
    print(f"{'':<78}{'value':>8}{'at least':>10}")
    for bounds in (aims, streams_without_drift, drifts, forgetting, late_and_missing_labels, spoilt_values):
        for promise, value, least in bounds():
            print(f"{promise:<78}{value:>8.3f}{least:>10.3f}{'' if value >= least else '  BROKEN'}", flush=True)
            broken += value < least
    if broken:
        raise SystemExit(1)


def example_f1(model: Any, data: Any, size: int = 200, **given: Any) -> FloatArray:
    """Return the example F1 of each batch but the first."""
    return np.array([point.measures["example_f1"] for point in prequential(model, data, size, "example_f1", **given)])


def aims() -> Iterator[Bound]:
    """Compare each aim with the default at the measure that it aims at."""
    stream = _stream(n_rows=3000, n_features=20, cardinality=2, noise=0.6, zipf=0.5, seed=3)
    for aim in AIMS:
        models = (_default(optimise=optimise, n_random_features=10) for optimise in (aim, "cardinality"))
        aimed, usual = (averages(list(prequential(model, stream, 100, aim))[4:])[aim] for model in models)
        gain = usual - aimed if aim == "hamming_loss" else aimed - usual
        yield Bound(f"optimise={aim!r}: gain at its measure", gain, 0.01)


def streams_without_drift() -> Iterator[Bound]:
    """Count labels, learn row by row, and compare with the paper's methods and the baselines."""
    counts: list[tuple[float, float]] = []
    stream = _stream(n_rows=4000, n_features=20, n_labels=50, cardinality=4)
    list(prequential(_default(), stream, 100, observer=lambda Y, P: counts.append((P.sum(), Y.sum()))))
    predicted, true = np.sum(counts[4:], axis=0)
    yield Bound("as many labels predicted as there are: 1 - relative error", 1 - abs(predicted / true - 1), 0.97)
    stream = _stream(n_rows=900, n_features=20, n_labels=15, seed=2)
    one, many = (example_f1(_default(), stream, size)[300 // size - 1 :].mean() for size in (1, 100))
    yield Bound("row by row / batches of 100, example F1", one / many, 0.97)
    for density in (None, 0.1):
        stream = _stream(n_rows=1500, n_features=60, n_labels=40, density=density, seed=2)
        names = ("race", "race-cls-fixed", "race-cls-adaptive", "obr", "majority")
        ours, *theirs = (example_f1(labelrace.make_model(name), stream, 300).mean() for name in names)
        what = "dense" if density is None else "sparse"
        yield Bound(f"race / best of the paper's methods and baselines, {what}", ours / max(theirs), 1.0)


def drifts() -> Iterator[Bound]:
    """Measure how fast the default is back after a sudden drift."""
    for seed, (n_features, n_labels, drift_at) in (
        (s, size) for s in (1, 2) for size in ((30, 20, 0.5), (50, 40, 0.4))
    ):
        model = _default(n_components=30)
        stream = _stream(n_features=n_features, n_labels=n_labels, drift="sudden", drift_at=drift_at, seed=seed)
        f1, at = example_f1(model, stream), int(drift_at * 40) - 1
        before, where = f1[at - 9 : at].mean(), f"sudden drift, seed {seed}, {n_labels} labels"
        yield Bound(f"{where}: best of 5 batches after / before", f1[at + 1 : at + 6].max() / before, 0.9)
        yield Bound(f"{where}: batches 5 to 13 after / before", f1[at + 5 : at + 14].mean() / before, 0.95)
        yield Bound(f"{where}: found exactly once", float(model.n_drifts_ == 1), 1.0)
    f1 = example_f1(_default(max_memory=1, n_components=30), _stream(n_rows=6000, n_labels=80, drift="sudden"))
    after = f1[15:21].max() / f1[5:14].mean()
    yield Bound("sudden drift, compressed labels: best of 6 batches after / before", after, 0.9)


def forgetting() -> Iterator[Bound]:
    """Measure what forgetting is worth where there is drift, and what it costs where there is none."""
    streams = {f"{drift} drift": (_stream(drift=drift), 1.02) for drift in DRIFTS}
    streams |= {f"no drift, seed {seed}": (_stream(seed=seed), 0.98) for seed in (1, 2, 3)}
    for name, (stream, least) in streams.items():
        forgets, remembers = (example_f1(make(n_components=30), stream).mean() for make in (_default, _remembering))
        yield Bound(f"{name}: default / memory without end, example F1", forgets / remembers, least)


def late_and_missing_labels() -> Iterator[Bound]:
    """Let half of the labels come later, and hide three tenths; as they are, compressed, compressed on the way."""
    stream = _stream(n_labels=40, new_labels=0.5, new_labels_at=0.1)
    named = [(X, [{f"label {j}" for j in np.flatnonzero(row)} for row in Y.toarray()]) for X, Y in stream.batches(200)]
    for memory in ("1GB", 1, 4 * 158 * 30):
        make = partial(_default, n_components=15, max_memory=memory)
        late, known = (example_f1(make(), data).mean() for data in (named, stream))
        yield Bound(f"half of the labels come later, max_memory={memory}: / known all along", late / known, 0.97)
    for n_labels, memory in ((20, "1GB"), (40, 1)):
        make = partial(_default, n_components=15, max_memory=memory)
        stream = _stream(n_labels=n_labels)
        hidden, complete = (example_f1(make(), stream, missing=share, seed=0).mean() for share in (0.3, 0.0))
        yield Bound(f"30 % of the labels not known, max_memory={memory}: / all known", hidden / complete, 0.9)


def spoilt_values() -> Iterator[Bound]:
    """Put in a row beyond belief, and change units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    Y = (X @ rng.normal(size=(10, 6)) / 3.2 + 0.3 * rng.normal(size=(4000, 6)) > 0.5).astype(float)
    outlier = X.copy()
    outlier[1000] = 1e6
    changed = {"smaller unit": X / 1000, "larger unit": X * 1000, "moved": X + 1000}
    spoilt = {"outlier": outlier} | {name: np.vstack([X[:1000], later[1000:]]) for name, later in changed.items()}
    clean, *values = (example_f1(_default(), batches(rows, Y, 100))[-10:].mean() for rows in (X, *spoilt.values()))
    for name, value in zip(spoilt, values, strict=True):
        yield Bound(f"{name} after 1,000 rows / clean, example F1", value / clean, 0.95)
