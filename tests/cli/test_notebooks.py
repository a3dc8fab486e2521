"""Progress in a notebook: where rich would need widgets for bars, nothing is drawn, and nothing warned of."""

from __future__ import annotations

import numpy as np
import pytest
import rich.console
import rich.jupyter

import labelrace
from labelrace.cli.progress import learn_batches, run_bars
from labelrace.distributed.fitting import progress_reporter
from labelrace.evaluation import run
from labelrace.streams.synthetic import SyntheticStream

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def drawn(monkeypatch):
    """Let rich believe that it is in a notebook; return what it shows there."""
    shown = []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(rich.jupyter, "display", lambda segments, text: shown.append(text))
    rich.console.Console().print("seen")
    assert "".join(shown).strip() == "seen"
    shown.clear()
    return shown


def test_bars_of_a_run_are_silent(drawn, tmp_path, capsys):
    stream = SyntheticStream(n_rows=300, n_features=5, n_labels=4, seed=0)
    with run_bars(rich.console.Console(stderr=True)) as show:
        run(stream, ["majority"], out=tmp_path, batch_size=100, jobs=1, on_progress=show)
    assert drawn == []
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_learning_is_silent(drawn, capsys):
    X = np.eye(4)
    model = labelrace.BinaryRelevanceClassifier()
    rows, stopped = learn_batches(model, [(X, X), (X, X)], type(model).partial_fit)
    assert (rows, stopped) == (8, None)
    assert drawn == []
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_shares_is_silent(drawn, capsys):
    with progress_reporter(True):
        pass
    assert drawn == []
    assert capsys.readouterr() == ("", "")
