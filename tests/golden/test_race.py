"""The paper's four variants against runs of the authors' program that were given the same encoder.

A file holds the encoder, the pseudo labels, the decoder after every batch, predictions, scores and measures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from labelrace import RACEClassifier
from labelrace.base.sparse import dense

SYNTHETIC = sorted(path.stem for path in Path(__file__).with_name("synthetic").glob("*_seed*.npz"))
OTHERS = [
    "CAL500_w50_cls-fixed_seed1",
    "CAL500_w50_cls-adap_seed1",
    "CAL500_w50_cls-fixed_seed5",
    "CAL500_w50_cls-adap_seed5",
    "CAL500_w50_reg-fixed_seed1",
    "CAL500_w50_reg-adap_seed1",
    "emotions_w100_cls-fixed_seed1",
    "emotions_w100_cls-adap_seed1",
    "enron_w100_cls-fixed_seed1",
    "enron_w100_cls-adap_seed1",
    "enron_w100_reg-fixed_seed1",
    "enron_w100_reg-adap_seed1",
]
RUNS = pytest.mark.parametrize("name", [*SYNTHETIC, *OTHERS])


class Run(NamedTuple):
    """What the program recorded and what the library did, batch by batch."""

    golden: dict[str, Any]
    pseudo_labels: np.ndarray
    betas: np.ndarray
    predictions: np.ndarray
    scores: np.ndarray
    hard_scores: np.ndarray


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], tuple[dict[str, Any], Any]]) -> Callable[[str], Run]:
    """Repeat a recorded run: predict each batch, then learn it."""

    @cache
    def repeat(name: str) -> Run:
        golden, data = recorded(name)
        Y = np.asarray(dense(data.Y))
        np.testing.assert_array_equal(Y, golden["Y"])
        model = RACEClassifier.paper(
            method="regression" if "_reg" in name else "classification",
            encoding="adaptive" if "-adap" in name else "fixed",
            projection=(golden["A"].T, golden["bias"]),
            categorical_features=data.categorical,
        )
        pseudo_labels, betas, predictions, scores = [], [], [], []
        for start, stop in golden["batches"]:
            if start:
                predictions.append(dense(model.predict(data.X[start:stop])))
                scores.append(model.decision_function(data.X[start:stop]))
            model.partial_fit(data.X[start:stop], data.Y[start:stop])
            H = (2.0 * Y[start:stop] - 1) @ model.encoder_ + model.encoder_bias_
            pseudo_labels.append(H >= 0 if "_cls" in name else H)
            betas.append(model.decoder_)
        first = golden["batches"][0][1]
        hard_scores = [
            golden["hid_pred"][start - first : stop - first] @ beta
            for (start, stop), beta in zip(golden["batches"][1:], golden["beta"], strict=False)
        ]
        return Run(
            golden, *map(np.concatenate, (pseudo_labels, [betas], predictions, scores)), np.concatenate(hard_scores)
        )

    return repeat


def test_no_run_is_left_out(golden_folder):
    assert {path.stem for path in golden_folder.glob("*_seed*.npz")} == set(OTHERS)
    assert {path.stem for path in golden_folder.glob("synthetic/*_seed*.npz")} == set(SYNTHETIC)


def test_synthetic_runs():
    """Two encoders by classification and one by regression, fixed and adaptive, on three datasets."""
    assert len(SYNTHETIC) == 18


def tolerance(name: str, usual: float) -> float:
    """Allow for the program's own round-off on the datasets of the paper.

    With adaptive encoding of real pseudo labels, its recursion subtracts nearly equal matrices and loses seven digits
    in the second batch: its decoder is 5e-9 from least squares on its own pseudo labels, ours 1e-13. The next batches
    are encoded by that decoder.
    """
    return 3e-7 if "_reg-adap" in name and name in OTHERS else usual


def decided(result: Run, name: str) -> np.ndarray:
    """Return the cells in which more than round-off decides; a row without pseudo labels is zero in any program."""
    least = 1e-6 if "_reg" in name and name in OTHERS else 1e-9
    nothing = ~result.golden["hid_pred"].any(axis=1, keepdims=True)
    return (np.abs(result.hard_scores) > least) | nothing


@RUNS
def test_pseudo_labels(run, name):
    result = run(name)
    if "_cls" in name:
        np.testing.assert_array_equal(result.pseudo_labels, result.golden["H"])
    else:
        np.testing.assert_allclose(result.pseudo_labels, result.golden["H"], rtol=0, atol=tolerance(name, 1e-11))


@RUNS
def test_decoder_after_every_batch(run, name):
    result = run(name)
    assert len(result.betas) == len(result.golden["batches"])
    np.testing.assert_allclose(result.betas, result.golden["beta"], rtol=0, atol=tolerance(name, 1e-11))


@RUNS
def test_predictions(run, name):
    result = run(name)
    cells = decided(result, name)
    assert cells.mean() > 0.95
    np.testing.assert_array_equal(result.predictions[cells], result.golden["bip"][cells])


@RUNS
def test_scores(run, name):
    result = run(name)
    np.testing.assert_allclose(result.scores, result.golden["conf"], rtol=0, atol=tolerance(name, 1e-9))


@RUNS
def test_measures(run, assert_measures, name):
    """On the datasets of the paper without those of the ranking, where round-off of saturated scores decides."""
    result = run(name)
    predictions = np.where(decided(result, name), result.predictions, result.golden["bip"])
    scores = result.scores if name in SYNTHETIC else None
    assert_measures(result.golden, result.golden["Y"], predictions, scores)
