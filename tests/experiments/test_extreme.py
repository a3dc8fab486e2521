"""Very many labels are measured, with what is installed and what is at hand."""

import csv
import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from labelrace.cli.bench import app
from labelrace.experiments import extreme, run_extreme
from labelrace.experiments.extreme import zipf_stream
from labelrace.streams import Dataset, write_dataset


@pytest.fixture
def words(monkeypatch):
    """Have fewer features, and no label tree."""
    monkeypatch.setattr(extreme, "_N_FEATURES", 2000)
    monkeypatch.setattr(extreme, "_TIMED", 2)
    monkeypatch.setattr(extreme, "find_spec", lambda name: None)


def test_labels_follow_zipfs_law():
    stream = zipf_stream(1000, n_rows=400, seed=1)
    counts = np.asarray(stream.Y.sum(axis=0))
    assert set(np.unique(stream.Y.data)) == {1.0}
    assert counts[0] > counts[9] > counts[100:].mean()
    assert np.diff(stream.X.indptr).max() <= 50


def test_command(words, tmp_path):
    arguments = ["extreme", "--labels", "1000", "--rows", "1500", "--budget", "2MB", "--datasets", "", "--out"]
    result = CliRunner().invoke(app, [*arguments, str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "1,000 labels" in result.output
    with (tmp_path / "extreme.csv").open(newline="") as file:
        floor, model = csv.DictReader(file)
    assert (floor["method"], model["method"]) == ("most frequent labels", "race-hashed, 2MB")
    assert float(model["precision_at_1"]) > float(floor["precision_at_1"]) + 0.2
    assert float(model["ndcg_at_5"]) > float(floor["ndcg_at_5"]) + 0.1
    assert float(model["rows_a_second"]) > 0
    assert float(model["bytes"]) < 3e6
    assert floor["latency_ms"] == ""
    page = (tmp_path / "extreme.html").read_text()
    assert "vowpalwabbit" in page
    assert "rows/s learned" in page


def test_the_label_tree_gets_lines_in_its_format(words, monkeypatch):
    lines = []

    class Workspace:
        def __init__(self, arguments):
            lines.append(arguments)

        def learn(self, line):
            lines.append(line)

        def predict(self, line):
            return [999, 4, 3, 2, 1, 0]  # begins with what was predicted before

    module = ModuleType("vowpalwabbit")
    module.Workspace = Workspace
    monkeypatch.setitem(sys.modules, "vowpalwabbit", module)
    monkeypatch.setattr(extreme, "find_spec", lambda name: object())
    monkeypatch.setattr(extreme, "_BITS", (18,))
    told = []
    summary = run_extreme([1000], budgets=(), rows=1000, datasets=(), on_progress=told.append)
    tree = summary.records[-1]
    assert lines[0] == "--plt 1000 --loss_function logistic -b 18 --top_k 5 --quiet"
    stream = zipf_stream(1000, 1000)
    labels, _, features = lines[1].partition(" | ")
    assert labels == ",".join(map(str, stream.Y[[0]].indices))
    assert features.split() == [f"{column}:1" for column in stream.X[[0]].indices]
    assert tree["bytes"] == 16 * 2**18
    assert tree["example_f1"] is None
    hits = stream.Y[500:600][:, [4, 3, 2, 1, 0]]
    assert tree["precision_at_5"] == pytest.approx(hits.sum() / 500)
    assert told[-1][1:3] == (1, 2)


def test_refused():
    with pytest.raises(ValueError, match="rows must be at least 1000"):
        run_extreme(rows=10)
    with pytest.raises(ValueError, match="labels must be at least 5"):
        run_extreme([2])
    with pytest.raises(ValueError, match="got no stream"):
        run_extreme([], datasets=())
    result = CliRunner().invoke(app, ["extreme", "--no-synthetic", "--labels", "1000"])
    assert result.exit_code == 2
    assert "synthetic streams" in result.output


def test_datasets_alone(words, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    labels = scipy.sparse.csr_array(np.eye(1100, dtype=np.int8)[np.arange(1000) % 40])
    names = [f"y{label}" for label in range(1100)]
    X = np.eye(40)[np.arange(1000) % 40]
    data = Dataset(X, labels, [f"x{i}" for i in range(40)], names, np.zeros(40, dtype=bool), "tiny")
    write_dataset(data, tmp_path / "data" / "tiny.npz")
    monkeypatch.setenv("LABELRACE_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = [
        "--no-synthetic",
        "--budget",
        "1MB",
        "--json",
        "--out",
        str(tmp_path),
        "--data",
        str(tmp_path / "data"),
    ]
    result = CliRunner().invoke(app, ["extreme", *arguments])
    assert result.exit_code == 0, result.output
    assert "tiny" in result.output
    assert "synthetic" not in result.output
