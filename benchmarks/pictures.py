"""The pictures of docs/default.md: curves through drift, the threshold at work, and calibration.

Everything is drawn from synthetic streams with fixed seeds, so that anyone can draw them again. Usage:

    python benchmarks/pictures.py docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import labelrace
from labelrace import LabelRaceClassifier
from labelrace.base.files import write_whole
from labelrace.measures import calibration, evaluate
from labelrace.report.figures import MUTED, as_file, color, new_figure, styled
from labelrace.streams.synthetic import SyntheticStream

BATCH = 200
KINDS: tuple[Any, ...] = ("sudden", "gradual", "incremental", "recurring")


def batch_f(model: Any, stream: SyntheticStream) -> list[float]:
    """Compute example F on every batch but the first, before it is learned."""
    found = []
    for number, (X, Y) in enumerate(stream.batches(BATCH)):
        if number:
            found.append(evaluate(Y, model.predict(X), None, measures=["example_f1"])["example_f1"])
        model.partial_fit(X, Y)
    return found


def smooth(values: list[float], width: int = 3) -> Any:
    """Average each value with those before it."""
    return [float(np.mean(values[max(0, end - width) : end])) for end in range(1, len(values) + 1)]


@styled
def drift_figure() -> Any:
    """Draw the default and a model that never forgets through four kinds of drift."""
    figure, panels = new_figure(2, 2, (8.6, 5.0))
    models: dict[str, dict[str, Any]] = {
        "race": {},
        "race without forgetting": {"half_life": None, "detect_drift": False},
    }
    for panel, kind in zip(panels, KINDS, strict=True):
        stream = SyntheticStream(n_rows=20_000, n_features=50, n_labels=40, drift=kind, seed=1)
        for place, (name, changed) in enumerate(models.items()):
            curve = smooth(batch_f(LabelRaceClassifier(random_state=0, **changed), stream))
            rows = BATCH * np.arange(1, len(curve) + 1)
            panel.plot(rows, curve, color=color(place), ls="-" if place == 0 else "--", lw=1.5, label=name)
        for share in stream.drifts:
            half = stream.drift_takes / 2
            panel.axvspan((share - half) * 20_000, (share + half) * 20_000, color=MUTED, alpha=0.2, lw=0.8)
        panel.set_title(f"{kind} drift", loc="left", fontsize=9.5)
        panel.set_ylim(0.3, 0.8)
        panel.set_xlabel("rows of the stream")
    panels[0].legend(frameon=False, fontsize=8, loc="lower left")
    return figure


@styled
def threshold_figure() -> Any:
    """Draw the predicted beside the true number of labels where the latter changes."""
    figure, panels = new_figure(1, 2, (8.6, 2.9))
    few = SyntheticStream(n_rows=6000, n_features=50, n_labels=40, cardinality=2.0, seed=3)
    many = SyntheticStream(n_rows=6000, n_features=50, n_labels=40, cardinality=5.0, seed=3)
    model = LabelRaceClassifier(random_state=0)
    true, predicted, thresholds = [], [], []
    for number, (X, Y) in enumerate([*few.batches(BATCH), *many.batches(BATCH)]):
        if number:
            true.append(Y.sum() / Y.shape[0])
            predicted.append(model.predict(X).sum() / Y.shape[0])
            thresholds.append(model.threshold_)
        model.partial_fit(X, Y)
    rows = BATCH * np.arange(1, len(true) + 1)
    panels[0].plot(rows, true, color=MUTED, lw=3, alpha=0.6, label="labels a row, true")
    panels[0].plot(rows, predicted, color=color(0), lw=1.5, label="predicted")
    panels[0].set_ylim(0, None)
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    panels[1].plot(rows, thresholds, color=color(1), lw=1.5)
    panels[1].set_title("the threshold", loc="left", fontsize=9.5)
    for panel in panels:
        panel.set_xlabel("rows of the stream")
    return figure


@styled
def calibration_figure() -> Any:
    """Draw how often labels were present beside how likely they were said to be."""
    names = ("race", "obr", "race-cls-fixed")
    figure, panels = new_figure(1, len(names), (8.6, 3.2))
    stream = SyntheticStream(n_rows=10_000, n_features=50, n_labels=40, seed=5)
    for place, (panel, name) in enumerate(zip(panels, names, strict=True)):
        model = labelrace.make_model(name, random_state=0) if name != "obr" else labelrace.make_model(name)
        known = calibration.empty()
        for number, (X, Y) in enumerate(stream.batches(BATCH)):
            if number:
                known = calibration.add(known, Y, model.predict_proba(X))
            model.partial_fit(X, Y)
        panel.plot([0, 1], [0, 1], color=MUTED, lw=0.8)
        panel.plot(known.mean_probability, known.share_present, color=color(place), marker="o", ms=3, lw=1.2)
        panel.set_title(f"{name}: error {known.error:.3f}", loc="left", fontsize=9.5)
        panel.set_xlabel("probability said")
    panels[0].set_ylabel("share present")
    return figure


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw, title in (
        (
            "default-drift",
            drift_figure,
            "Example F before each batch is learned, mean of three batches, synthetic streams",
        ),
        ("default-threshold", threshold_figure, "The threshold follows the label cardinality"),
        ("default-calibration", calibration_figure, "Calibration on a synthetic stream, before each batch is learned"),
    ):
        write_whole(folder / f"{name}.png", as_file(draw(), "png", title))
        print(folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
