"""What is logged while models learn: drifts, compression, columns; and nothing is printed by default."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import labelrace
from labelrace import LabelRaceClassifier, Tagger


def drifting(n_batches):
    """Yield batches whose labels turn around in the middle."""
    rng = np.random.default_rng(0)
    for number in range(n_batches):
        X = rng.normal(size=(200, 8))
        yield X, (X[:, :5] > 0) != (number >= n_batches // 2)


def test_drifts_are_logged_as_often_as_they_are_counted(caplog):
    model = LabelRaceClassifier(random_state=0)
    with caplog.at_level(logging.INFO, logger="labelrace"):
        for X, Y in drifting(40):
            model.partial_fit(X, Y)
    alarms = [record for record in caplog.records if "alarm" in record.getMessage()]
    drifts = [record for record in caplog.records if "drift was confirmed" in record.getMessage()]
    assert model.n_alarms_ == len(alarms) > 0
    assert model.n_drifts_ == len(drifts) > 0
    assert {record.levelno for record in drifts} == {logging.WARNING}
    assert {record.levelno for record in alarms} == {logging.INFO}
    assert {record.name for record in caplog.records} == {"labelrace"}


def test_compression(caplog):
    rng = np.random.default_rng(0)
    model = LabelRaceClassifier(max_memory="100kB", random_state=0)
    with caplog.at_level(logging.INFO, logger="labelrace"):
        model.partial_fit(rng.random((30, 50)), rng.random((30, 20)) < 0.2)
        assert "compresses" not in caplog.text
        model.partial_fit(rng.random((30, 50)), rng.random((30, 2000)) < 0.2)
        assert "LabelRaceClassifier compresses its labels from now on: 2000 labels and 50 features" in caplog.text


def test_columns(caplog):
    tagger = Tagger("tags", model="obr", random_state=0)
    with caplog.at_level(logging.INFO, logger="labelrace"):
        tagger.partial_fit([{"body": f"the oven is {i}", "late": None, "price": i, "tags": "oven"} for i in range(120)])
        assert "The column 'body' is taken for: text." in caplog.text
        assert "'late'" in caplog.text
        caplog.clear()
        with pytest.warns(UserWarning, match="new are ignored"):
            tagger.partial_fit(
                [{"body": f"the oven {i}", "late": i, "price": i, "new": 1, "tags": "oven"} for i in range(9)]
            )
        assert "The column 'late' is taken for: number." in caplog.text
        assert "'body' is taken" not in caplog.text
        warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert warned == ["Columns that are new are ignored: 'new'."]


def test_nothing_is_printed_by_default():
    code = (
        "import logging, labelrace.base.events as e; e.LOGGER.warning('heard'); logging.getLogger('x').warning('said')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "said\n")


def test_models_without_counts_log_nothing(caplog):
    with caplog.at_level(logging.DEBUG, logger="labelrace"):
        model = labelrace.make_model("obr")
        for X, Y in drifting(4):
            model.partial_fit(X, Y)
    assert not caplog.records
