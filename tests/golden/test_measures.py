"""The measures against values of the original's measure library."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from labelrace.measures import evaluate, measure_names


def test_small_cases_agree(golden_folder, names):
    cases = json.loads((golden_folder / "measures.json").read_text())["cases"]
    assert len(cases) > 50
    for case in cases:
        got = evaluate(case["Y_true"], case["Y_pred"], case["confidences"], measures=names.values(), zero_division=1.0)
        expected = {ours: case["measures"][theirs] for theirs, ours in names.items()}
        expected = {name: math.nan if value is None else value for name, value in expected.items()}
        assert got == pytest.approx(expected, abs=1e-12, nan_ok=True), case["name"]


def test_recorded_runs_agree(golden_folder, names):
    """Whole batches of a real stream, with the scores that the original's naive Bayes gave."""
    run = np.load(golden_folder / "enron_w100_cls-fixed_seed1.npz")
    ours = [names[str(name)] for name in run["measure_names"]]
    assert sorted(ours) == sorted(measure_names("all"))
    first = run["batches"][1][0]
    for (start, stop), expected in zip(run["batches"][1:], run["measures"], strict=True):
        rows = slice(start - first, stop - first)
        got = evaluate(run["Y"][start:stop], run["bip"][rows], run["conf"][rows], measures=ours, zero_division=1.0)
        np.testing.assert_allclose(list(got.values()), expected, rtol=0, atol=1e-9)
