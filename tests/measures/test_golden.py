"""The measures against values of the original's measure library."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from labelrace.measures import evaluate, measure_names

NAMES = {
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


@pytest.fixture(scope="module")
def golden() -> Path:
    folder = os.environ.get("LABELRACE_GOLDEN")
    if not folder:
        pytest.skip("LABELRACE_GOLDEN does not name the folder of reference results")
    return Path(folder)


def test_small_cases_agree(golden):
    cases = json.loads((golden / "measures.json").read_text())["cases"]
    assert len(cases) > 50
    for case in cases:
        got = evaluate(case["Y_true"], case["Y_pred"], case["confidences"], measures=NAMES.values())
        expected = {ours: case["measures"][theirs] for theirs, ours in NAMES.items()}
        expected = {name: math.nan if value is None else value for name, value in expected.items()}
        assert got == pytest.approx(expected, abs=1e-12, nan_ok=True), case["name"]


def test_recorded_runs_agree(golden):
    """Whole batches of a real stream, with the scores that the original's naive Bayes gave."""
    run = np.load(golden / "enron_w100_cls-fixed_seed1.npz")
    ours = [NAMES[str(name)] for name in run["measure_names"]]
    assert sorted(ours) == sorted(measure_names("all"))
    first = run["batches"][1][0]
    for (start, stop), expected in zip(run["batches"][1:], run["measures"], strict=True):
        rows = slice(start - first, stop - first)
        got = evaluate(run["Y"][start:stop], run["bip"][rows], run["conf"][rows], measures=ours)
        np.testing.assert_allclose(list(got.values()), expected, rtol=0, atol=1e-9)
