"""The pictures of docs/in-depth/default.md: curves through drift, the threshold at work, and calibration.

Everything is drawn from synthetic streams with fixed seeds, so that anyone can draw them again.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.bounds import DRIFTS
from labelrace import LabelRaceClassifier
from labelrace.base.files import write_atomic
from labelrace.evaluation import ModelSpec, averages, prequential, windowed
from labelrace.evaluation.checkpoint import CalibrationCounts
from labelrace.report.charts import Chart, Panel, Series
from labelrace.report.charts import panels as side_by_side
from labelrace.report.matplotlib_figures import as_file, draw
from labelrace.streams.synthetic import SyntheticStream

_BATCH = 200


def pictures(folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path("docs/images")) -> None:
    """Draw the pictures of docs/in-depth/default.md."""
    made = {
        "default-drift": ("Example F1 before each batch is learned, mean of three batches, synthetic streams", drift()),
        "default-threshold": ("The threshold follows the label cardinality", threshold()),
        "default-calibration": ("Calibration on a synthetic stream, before each batch is learned", reliability()),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, panels) in made.items():
        content = side_by_side(panels, across=2 if len(panels) == 4 else len(panels), size=(3.6, 2.4))
        write_atomic(folder / f"{name}.png", as_file(draw(Chart(name, title, content)), "png", title))
        print(folder / f"{name}.png")


def drift() -> list[Panel]:
    """Show the default and a model that never forgets through four kinds of drift."""
    panels = []
    for kind in DRIFTS:
        stream = SyntheticStream(n_rows=20_000, n_features=50, n_labels=40, drift=kind, seed=1)
        models = {
            "race": LabelRaceClassifier(random_state=0),
            "race without forgetting": LabelRaceClassifier(half_life=None, detect_drift=False, random_state=0),
        }
        series, means = [], []
        for color, (name, model) in enumerate(models.items()):
            points = list(prequential(model, stream, _BATCH, "example_f1"))
            values = windowed(points, 3)["example_f1"].tolist()
            series.append(Series(name, _rows(values), values, color))
            means.append(f"{averages(points)['example_f1']:.3f}")
        panels.append(
            Panel(f"{kind} drift, means {' and '.join(means)}", series, "rows of the stream", y_range=(0.3, 0.8))
        )
    return panels


def threshold() -> list[Panel]:
    """Show the predicted beside the true number of labels where the latter changes, and the threshold."""
    streams = [SyntheticStream(n_rows=6000, n_features=50, n_labels=40, cardinality=c, seed=3) for c in (2.0, 5.0)]
    model = LabelRaceClassifier(random_state=0)
    true, predicted, thresholds = list[float](), list[float](), list[float]()
    for number, (X, Y) in enumerate(chain.from_iterable(stream.batches(_BATCH) for stream in streams)):
        if number:
            true.append(float(Y.sum() / Y.shape[0]))
            predicted.append(float(model.predict(X).sum() / Y.shape[0]))
            thresholds.append(model.threshold_)
        model.partial_fit(X, Y)
    series = [Series("true", _rows(true), true, None), Series("predicted", _rows(true), predicted, 0)]
    return [
        Panel("labels a row", series, "rows of the stream", y_range=(0, None)),
        Panel("the threshold", [Series("threshold", _rows(true), thresholds, 1)], "rows of the stream"),
    ]


def reliability() -> list[Panel]:
    """Show how often labels were present beside how likely they were said to be."""
    stream = SyntheticStream(n_rows=10_000, n_features=50, n_labels=40, seed=5)
    panels = []
    for color, name in enumerate(("race", "obr", "race-cls-fixed")):
        counts = CalibrationCounts()
        list(prequential(ModelSpec(name).make(seed=0), stream, _BATCH, probability_observer=counts))
        known = counts.reliability
        series = [Series(name, known.mean_probability.tolist(), known.share_present.tolist(), color, marker="o")]
        title = f"{name}: error {known.error:.3f}"
        panels.append(Panel(title, series, "probability", "share present", "", (0, 1), (0, 1), diagonal=True))
    return panels


def _rows(values: list[float]) -> list[float]:
    return [float(_BATCH * number) for number in range(1, len(values) + 1)]
