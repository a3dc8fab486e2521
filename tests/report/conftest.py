"""Made-up runs: a manifest and records as the evaluation writes them."""

from __future__ import annotations

import copy
import math
import random
from types import SimpleNamespace

import pytest

_PARTS = ("specificity", "precision", "recall", "f1")
ALL_MEASURES = [
    *("average_precision", "coverage", "subset_accuracy", "hamming_loss", "example_accuracy", "micro_auc", "macro_auc"),
    *(f"{family}_{part}" for family in ("example", "micro", "macro") for part in _PARTS),
]

# Level of quality, seconds to predict and to learn a batch.
MODELS = {
    "race-cls-fixed": (0.44, 0.004, 0.006),
    "race-cls-adaptive": (0.47, 0.004, 0.007),
    "race-reg-fixed": (0.41, 0.002, 0.014),
    "obr": (0.49, 0.06, 0.03),
    "oecc": (0.50, 0.31, 0.09),
    "majority": (0.22, 0.0005, 0.0004),
}


def make_manifest(models=("a", "b"), measures=("micro_f1", "hamming_loss"), runs=1, **changes):
    """Return a manifest as a run writes it first."""
    manifest = {
        "format": 1,
        "version": "0.1.0",
        "created": "2024-05-06T07:08:09+00:00",
        "protocol": "prequential",
        "source": {
            "name": "enron",
            "kind": "file",
            "checksum": "sha256:0f1e2d",
            "rows": 1702,
            "features": 1001,
            "labels": 53,
            "cardinality": 3.378,
        },
        "models": [{"name": name, "parameters": {"n_components": "log2", "random_state": None}} for name in models],
        "runs": runs,
        "seed": 0,
        "batch_size": 100,
        "measures": list(measures),
        "machine": {"platform": "Linux", "python": "3.12", "numpy": "2", "scipy": "1", "scikit-learn": "1", "cpus": 2},
    }
    manifest["source"] |= changes.pop("source", {})
    return manifest | changes


def make_batch(model, batch, measures, run=0, whole=True, seconds=(0.1, 0.2, 0.05), rows=100):
    """Return the record of one batch."""
    return {
        "kind": "batch",
        "model": model,
        "run": run,
        "seed": run,
        "batch": batch,
        "start": batch * 100,
        "end": batch * 100 + rows,
        "whole": whole,
        "measures": dict(measures),
        "seconds": dict(zip(("predict", "learn", "measure"), seconds, strict=True)),
        "memory": 1_000_000,
    }


def make_done(model, run=0, rows=300, seconds=(0.3, 0.6, 0.15)):
    """Return the record that closes a run."""
    phases = dict(zip(("predict", "learn", "measure"), seconds, strict=True))
    return {"kind": "done", "model": model, "run": run, "rows": rows, "seconds": phases, "memory": 2_000_000}


def make_race(batches=60, runs=3, measures=ALL_MEASURES, label_count=53, seed=0, models=MODELS):
    """Return manifest and records of a believable comparison, with a drift two thirds through the stream."""
    rng = random.Random(seed)
    source = {"rows": (batches + 1) * 100 + 40, "labels": label_count}
    manifest = make_manifest(models, measures, runs, source=source)
    frequency = [0.45 / (1 + label) ** 1.3 for label in range(label_count)]
    records = []
    for name, (level, predict, learn) in models.items():
        for run in range(runs):
            shift = rng.gauss(0, 0.006)
            for batch in range(batches + 2):
                whole = batch <= batches
                quality = _quality(level + shift, batch, batches, rng)
                values = {m: _value(m, quality, rng) for m in measures} if batch else dict.fromkeys(measures)
                seconds = (predict * rng.uniform(0.9, 1.2), learn * rng.uniform(0.9, 1.2), 0.012)
                records.append(make_batch(name, batch, values, run, whole, seconds, 100 if whole else 40))
            f1 = [_label_f(level, share, rng) for share in frequency]
            records.append({"kind": "labels", "model": name, "run": run, "frequency": frequency, "f1": f1})
            total = (predict * batches, learn * batches, 0.012 * batches)
            records.append(make_done(name, run, manifest["source"]["rows"], total))
    return manifest, records


def _quality(level, batch, batches, rng):
    learned = level * (1 - 0.5 * math.exp(-batch / (batches / 8)))
    since = batch - batches * 0.65
    dip = 0.16 * math.exp(-since / (batches / 10)) if since >= 0 else 0.0
    return min(0.98, max(0.01, learned - dip + rng.gauss(0, 0.018)))


def _value(measure, quality, rng):
    if measure == "coverage":
        return 30 * (1 - quality) + rng.random()
    if measure == "hamming_loss":
        return 0.12 * (1 - quality)
    if "specificity" in measure:
        return 0.9 + 0.1 * quality
    offset = {"macro": -0.15, "example": -0.03}.get(measure.split("_")[0], 0.0)
    return max(0.0, quality + offset + (0.3 if "auc" in measure else 0.0))


def _label_f(level, share, rng):
    if share < 0.005 and rng.random() < 0.3:
        return None
    return max(0.0, min(1.0, level * (1.6 + 0.45 * math.log10(share)) + rng.gauss(0, 0.08)))


_RACE = make_race(measures=("micro_f1", "hamming_loss", "coverage"))


@pytest.fixture(scope="session")
def make():
    """Return what makes up runs: ``make.manifest``, ``make.batch``, ``make.done`` and ``make.race``."""
    return SimpleNamespace(
        manifest=make_manifest, batch=make_batch, done=make_done, race=make_race, measures=ALL_MEASURES, models=MODELS
    )


@pytest.fixture
def race():
    """Return a finished comparison of six models."""
    return copy.deepcopy(_RACE)
