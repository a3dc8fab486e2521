"""The pictures of docs/default.md: curves through drift, the threshold at work, and calibration.

Everything is drawn from synthetic streams with fixed seeds, so that anyone can draw them again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import labelrace
from labelrace import LabelRaceClassifier
from labelrace.base.files import write_atomic
from labelrace.measures import calibration, evaluate
from labelrace.report.charts import Chart, Panel, Series
from labelrace.report.charts import panels as side_by_side
from labelrace.report.matplotlib_figures import as_file, draw
from labelrace.streams.synthetic import SyntheticStream

_BATCH = 200
_KINDS: tuple[Any, ...] = ("sudden", "gradual", "incremental", "recurring")


def pictures(folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path("docs/images")) -> None:
    """Draw the pictures of docs/default.md."""
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
    models: dict[str, dict[str, Any]] = {
        "race": {},
        "race without forgetting": {"half_life": None, "detect_drift": False},
    }
    panels = []
    for kind in _KINDS:
        stream = SyntheticStream(n_rows=20_000, n_features=50, n_labels=40, drift=kind, seed=1)
        series = []
        for color, (name, changed) in enumerate(models.items()):
            model, values = LabelRaceClassifier(random_state=0, **changed), list[float]()
            for number, (X, Y) in enumerate(stream.batches(_BATCH)):
                if number:
                    values.append(evaluate(Y, model.predict(X), None, measures=["example_f1"])["example_f1"])
                model.partial_fit(X, Y)
            smooth = [float(np.mean(values[max(0, end - 3) : end])) for end in range(1, len(values) + 1)]
            series.append(Series(name, _rows(smooth), smooth, color))
        panels.append(Panel(f"{kind} drift", series, "rows of the stream", y_range=(0.3, 0.8)))
    return panels


def threshold() -> list[Panel]:
    """Show the predicted beside the true number of labels where the latter changes, and the threshold."""
    streams = [
        SyntheticStream(n_rows=6000, n_features=50, n_labels=40, cardinality=cardinality, seed=3)
        for cardinality in (2.0, 5.0)
    ]
    model = LabelRaceClassifier(random_state=0)
    true, predicted, thresholds = list[float](), list[float](), list[float]()
    for number, (X, Y) in enumerate(batch for stream in streams for batch in stream.batches(_BATCH)):
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
        model, known = labelrace.make_model(name), calibration.empty()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        for number, (X, Y) in enumerate(stream.batches(_BATCH)):
            if number:
                known = calibration.add(known, Y, model.predict_proba(X))
            model.partial_fit(X, Y)
        x, y = known.mean_probability.tolist(), known.share_present.tolist()
        title = f"{name}: error {known.error:.3f}"
        series = [Series(name, x, y, color, marker="o")]
        panels.append(Panel(title, series, "probability", "share present", "", (0, 1), (0, 1), diagonal=True))
    return panels


def _rows(values: list[float]) -> list[float]:
    return [float(_BATCH * number) for number in range(1, len(values) + 1)]
