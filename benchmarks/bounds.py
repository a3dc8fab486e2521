"""What the default promises on synthetic streams: quality at each aim, through drift, with late and missing labels.

``python -m benchmarks quality --bounds`` prints each promise with its value and its bound, and fails if one is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import labelrace
from labelrace import LabelRaceClassifier
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import FloatArray

AIMS = ("example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss", "subset_accuracy")
DRIFTS: tuple[Any, ...] = ("sudden", "gradual", "incremental", "recurring")
_NOISY = SyntheticStream(n_rows=3000, n_features=20, n_labels=20, cardinality=2, noise=0.6, zipf=0.5, seed=3)


class Bound(NamedTuple):
    """A promise, its value, and what the value must be at least."""

    promise: str
    value: float
    least: float


def check() -> None:
    """Print all bounds; exit with status 1 if one is broken."""
    broken = 0
    print(f"{'':<78}{'value':>8}{'at least':>10}")
    for bounds in (aims, streams_without_drift, drifts, late_labels, missing_labels, spoilt_values):
        for promise, value, least in bounds():
            print(f"{promise:<78}{value:>8.3f}{least:>10.3f}{'' if value >= least else '  BROKEN'}", flush=True)
            broken += value < least
    if broken:
        raise SystemExit(1)


def tested(model: Any, stream: SyntheticStream, size: int, skip: int) -> tuple[FloatArray, FloatArray]:
    """Test, then learn; return the truth and all that was predicted after the first batches."""
    true, predicted = [], []
    for number, (X, Y) in enumerate(stream.batches(size)):
        if number >= skip:
            predicted.append(np.asarray(getattr(labels := model.predict(X), "toarray", lambda: labels)()))
            true.append(Y.toarray())
        model.partial_fit(X, Y)
    return np.vstack(true), np.vstack(predicted)


def example_f1(true: Any, predicted: Any) -> float:
    """Return the example F1 alone."""
    return evaluate(true, predicted, measures="example_f1")["example_f1"]


def aims() -> Iterator[Bound]:
    """Compare each aim with the default at the measure that it aims at."""
    for aim in AIMS:
        values = [
            evaluate(
                *tested(LabelRaceClassifier(optimise=o, n_random_features=10, random_state=0), _NOISY, 100, 5),
                measures=aim,
            )
            for o in (aim, "cardinality")
        ]
        gain = values[0][aim] - values[1][aim]
        yield Bound(f"optimise={aim!r}: gain at its measure", -gain if aim == "hamming_loss" else gain, 0.01)


def streams_without_drift() -> Iterator[Bound]:
    """Count labels, learn row by row, and compare with the paper's methods and the baselines."""
    stream = SyntheticStream(n_rows=4000, n_features=20, n_labels=50, cardinality=4, seed=1)
    true, predicted = tested(LabelRaceClassifier(random_state=0), stream, 100, 5)
    off = abs(predicted.sum() / true.sum() - 1.0)
    yield Bound("as many labels predicted as there are: 1 - relative error", 1.0 - off, 0.97)
    stream = SyntheticStream(n_rows=900, n_features=20, n_labels=15, seed=2)
    one, many = (example_f1(*tested(LabelRaceClassifier(random_state=0), stream, n, 300 // n)) for n in (1, 100))
    yield Bound("row by row / batches of 100, example F1", one / many, 0.97)
    for density in (None, 0.1):
        stream = SyntheticStream(n_rows=1500, n_features=60, n_labels=40, density=density, seed=2)
        names = ("race", "race-cls-fixed", "race-cls-adaptive", "obr", "majority")
        ours, *theirs = (example_f1(*tested(labelrace.make_model(name), stream, 300, 1)) for name in names)
        what = "dense" if density is None else "sparse"
        yield Bound(f"race / best of the paper's methods and baselines, {what}", ours / max(theirs), 1.0)


@cache
def through_drift(
    drift: str = "none", seed: int = 1, half_life: Any = "auto", max_memory: Any = "1GB", **sizes: Any
) -> tuple[FloatArray, Any]:
    """Return the example F1 of each batch of 200 but the first, and the model."""
    given = {"n_rows": 8000, "n_features": 30, "n_labels": 20, **sizes}
    forever: dict[str, Any] = {"half_life": None, "detect_drift": False} if half_life is None else {}
    model, values = LabelRaceClassifier(random_state=0, max_memory=max_memory, n_components=30, **forever), []
    for number, (X, Y) in enumerate(SyntheticStream(drift=drift, seed=seed, **given).batches(200)):  # type: ignore[arg-type]
        if number:
            values.append(example_f1(Y, model.predict(X)))
        model.partial_fit(X, Y)
    return np.array(values), model


def drifts() -> Iterator[Bound]:
    """Measure how fast the default is back after a drift, and what forgetting is worth and costs."""
    for seed in (1, 2):
        for sizes in ({}, {"n_features": 50, "n_labels": 40, "drift_at": 0.4}):
            f1, model = through_drift("sudden", seed, **sizes)
            at = int(sizes.get("drift_at", 0.5) * 40) - 1
            before, where = f1[at - 9 : at].mean(), f"sudden drift, seed {seed}, {len(model.classes_)} labels"
            yield Bound(f"{where}: best of 5 batches after / before", f1[at + 1 : at + 6].max() / before, 0.9)
            yield Bound(f"{where}: batches 5 to 13 after / before", f1[at + 5 : at + 14].mean() / before, 0.95)
            yield Bound(f"{where}: found exactly once", float(model.n_drifts_ == 1), 1.0)
    f1, _ = through_drift("sudden", max_memory=1, n_labels=80, n_rows=6000)
    yield Bound(
        "sudden drift, compressed labels: best of 6 batches after / before", f1[15:21].max() / f1[5:14].mean(), 0.9
    )
    for drift in DRIFTS:
        forgets, remembers = (through_drift(drift, half_life=h)[0].mean() for h in ("auto", None))
        yield Bound(f"{drift} drift: default / memory without end, example F1", forgets / remembers, 1.02)
    for seed in (1, 2, 3):
        forgets, remembers = (through_drift(seed=seed, half_life=h)[0].mean() for h in ("auto", None))
        yield Bound(f"no drift, seed {seed}: default / memory without end, example F1", forgets / remembers, 0.98)


def late_labels() -> Iterator[Bound]:
    """Let half of the labels come later: as they are, compressed, and compressed when they come."""
    stream = SyntheticStream(n_rows=8000, n_features=30, n_labels=40, new_labels=0.5, new_labels_at=0.1, seed=1)
    batches = list(stream.batches(200))
    early = np.vstack([Y.toarray() for _, Y in batches[:4]]).any(axis=0)
    order, n_early = np.argsort(~early, kind="stable"), int(early.sum())
    for memory in ("1GB", 1, 4 * 158 * 30):
        make = partial(LabelRaceClassifier, random_state=0, n_components=15, max_memory=memory)
        grown, told = make(), make()
        values = []
        for number, (X, Y) in enumerate(batches):
            wide = Y.toarray()[:, order]
            if number:
                predicted = np.zeros(wide.shape, dtype=int)
                predicted[:, : len(grown.classes_)] = grown.predict(X)
                values.append((example_f1(wide, predicted), example_f1(wide, told.predict(X))))
            told.partial_fit(X, wide)
            grown.partial_fit(X, wide[:, :n_early] if number < 4 else wide)
        late, known = np.mean(values, axis=0)
        yield Bound(f"half of the labels come later, max_memory={memory}: / known all along", late / known, 0.97)


def missing_labels() -> Iterator[Bound]:
    """Hide three tenths of the labels."""
    for n_labels, memory in ((20, "1GB"), (40, 1)):
        stream, rng = SyntheticStream(n_rows=8000, n_features=30, n_labels=n_labels, seed=1), np.random.default_rng(0)
        make = partial(LabelRaceClassifier, random_state=0, n_components=15, max_memory=memory)
        models, values = (make(), make()), []
        for number, (X, Y) in enumerate(stream.batches(200)):
            if number:
                values.append([example_f1(Y, model.predict(X)) for model in models])
            labels = Y.toarray().astype(float)
            models[0].partial_fit(X, labels)
            models[1].partial_fit(X, np.where(rng.random(labels.shape) < 0.3, np.nan, labels))
        complete, hidden = np.mean(values, axis=0)
        yield Bound(f"30 % of the labels not known, max_memory={memory}: / all known", hidden / complete, 0.9)


def spoilt_values() -> Iterator[Bound]:
    """Put in a row beyond belief, and change units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    Y = (X @ rng.normal(size=(10, 6)) / 3.2 + 0.3 * rng.normal(size=(4000, 6)) > 0.5).astype(float)
    outlier = X.copy()
    outlier[1000] = 1e6
    changes: dict[str, Callable[[], FloatArray]] = {
        "smaller unit": lambda: X / 1000,
        "larger unit": lambda: X * 1000,
        "moved": lambda: X + 1000,
    }
    spoilt = {"outlier": outlier, **{name: np.vstack([X[:1000], change()[1000:]]) for name, change in changes.items()}}
    clean = _last_quarter(X, Y)
    for name, rows in spoilt.items():
        yield Bound(f"{name} after 1,000 rows / clean, example F1", _last_quarter(rows, Y) / clean, 0.95)


def _last_quarter(X: FloatArray, Y: FloatArray) -> float:
    model = LabelRaceClassifier(random_state=0)
    for start in range(0, 3000, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    return example_f1(Y[3000:], model.predict(X[3000:]))
