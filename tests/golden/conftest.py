"""Runs of the authors' program: those on three small synthetic datasets, which are part of the tests, and others.

The others, on datasets of the paper, are looked for in the folder that LABELRACE_GOLDEN names, their datasets by
LABELRACE_DATA; tests that need them are skipped elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelrace
from labelrace.measures import evaluate

SYNTHETIC = Path(__file__).with_name("synthetic")
MEASURES = {
    "Average Precision": "average_precision",
    "Coverage": "coverage",
    "Subset Accuracy": "subset_accuracy",
    "Hamming Loss": "hamming_loss",
    "Example-Based Accuracy": "example_accuracy",
    "Example-Based Specificity": "example_specificity",
    "Example-Based Precision": "example_precision",
    "Example-Based Recall": "example_recall",
    "Example-Based F Measure": "example_f1",
    "Micro-averaged AUC": "micro_auc",
    "Micro-averaged Specificity": "micro_specificity",
    "Micro-averaged Precision": "micro_precision",
    "Micro-averaged Recall": "micro_recall",
    "Micro-averaged F-Measure": "micro_f1",
    "Macro-averaged AUC": "macro_auc",
    "Macro-averaged Specificity": "macro_specificity",
    "Macro-averaged Precision": "macro_precision",
    "Macro-averaged Recall": "macro_recall",
    "Macro-averaged F-Measure": "macro_f1",
    "OneError": "one_error",
}
RANKING = ("average_precision", "coverage", "micro_auc", "macro_auc")


@pytest.fixture(scope="session")
def names() -> dict[str, str]:
    """Return the names of our measures by those of the original's measure library."""
    return MEASURES


@pytest.fixture(scope="session")
def golden_folder() -> Path:
    """Return the folder of the runs on datasets of the paper."""
    named = os.environ.get("LABELRACE_GOLDEN")
    if not named:
        pytest.skip("LABELRACE_GOLDEN does not name the folder of reference results")
    return Path(named)


@pytest.fixture(scope="session")
def rival() -> Callable[[str], tuple[dict[str, Any], Any]]:
    """Return the reference numbers of a related system on a dataset, and the dataset; features as they are."""

    @cache
    def load(run: str) -> tuple[dict[str, Any], Any]:
        named = os.environ.get("LABELRACE_RIVALS")
        if not named:
            pytest.skip("LABELRACE_RIVALS does not name the folder of the related systems' reference numbers")
        name = next(part for part in run.split("_") if part in ("emotions", "CAL500", "enron", "yeast"))
        try:
            data = labelrace.load_dataset(name.lower())
        except FileNotFoundError:
            pytest.skip(f"no {name} in the folders of LABELRACE_DATA")
        return dict(np.load(Path(named) / f"{run}.npz")), data

    return load


@pytest.fixture(scope="session")
def recorded(request: pytest.FixtureRequest) -> Callable[[str], tuple[dict[str, Any], Any]]:
    """Return what the program recorded in a run, and the dataset."""

    @cache
    def dataset(name: str) -> Any:
        if name.startswith("synthetic-"):
            return labelrace.load_dataset(str(SYNTHETIC / f"{name}.arff"), labels=str(SYNTHETIC / f"{name}.xml"))
        try:
            return labelrace.load_dataset(name.lower())
        except FileNotFoundError:
            pytest.skip(f"no {name} in the folders of LABELRACE_DATA")

    @cache
    def load(run: str) -> tuple[dict[str, Any], Any]:
        folder = SYNTHETIC if run.startswith("synthetic-") else request.getfixturevalue("golden_folder")
        return dict(np.load(folder / f"{run}.npz")), dataset(run.split("_")[0])

    return load


@pytest.fixture(scope="session")
def assert_measures() -> Callable[..., None]:
    """Compare the measures of every test batch, and their means over the whole batches, with the recorded ones."""

    def compare(golden: dict[str, Any], Y: Any, predictions: Any, scores: Any = None) -> None:
        names = [MEASURES[str(name)] for name in golden["measure_names"]]
        chosen = np.array([scores is not None or name not in RANKING for name in names])
        measures, first, rows = np.array(names)[chosen], golden["batches"][0][1], []
        for start, stop in golden["batches"][1:]:
            here = slice(start - first, stop - first)
            batch_scores = None if scores is None else scores[here]
            got = evaluate(
                Y[start:stop], predictions[here], batch_scores, measures=measures.tolist(), zero_division=1.0
            )
            rows.append([got[name] for name in measures])
        np.testing.assert_allclose(rows, golden["measures"][:, chosen], rtol=0, atol=1e-9)
        # A short last batch is tested and learned, but not averaged.
        whole = np.diff(golden["batches"][1:], axis=1)[:, 0] == golden["window"]
        assert whole.sum() == golden["n_avg_batches"]
        means = np.mean(np.array(rows)[whole], axis=0)
        np.testing.assert_allclose(means, golden["avg_main"][chosen], rtol=0, atol=1e-9)

    return compare
