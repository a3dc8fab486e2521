"""Very many labels, the walk, the search: that they run, on little, and count what they say."""

import csv
import sys
from types import ModuleType

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

from benchmarks import disturbance, extreme, search, speed, walk
from benchmarks.__main__ import app
from benchmarks.extreme import zipf_stream
from labelrace.streams.synthetic import SyntheticStream


@pytest.fixture
def few_words(monkeypatch):
    """Have fewer features, and no label tree."""
    monkeypatch.setattr(extreme, "_N_FEATURES", 2000)
    monkeypatch.setattr(extreme, "_TIMED", 2)
    monkeypatch.setattr(extreme, "find_spec", lambda name: None)


def test_the_commands_are_listed_with_a_line_each():
    result = CliRunner().invoke(app, [], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    listed = [line.strip("│ ") for line in result.output.partition("Commands")[2].splitlines() if line.startswith("│")]
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert [line.split()[0] for line in listed] == [*names, "scale"]
    assert all(line.endswith(".") for line in listed)


def test_databases_that_are_not_known_are_refused():
    result = CliRunner().invoke(app, ["durability", "--database", "mysql"])
    assert "must be sqlite or postgresql" in str(result.exception)


def test_labels_follow_zipfs_law():
    stream = zipf_stream(1000, n_rows=400, seed=1)
    counts = np.asarray(stream.Y.sum(axis=0))
    assert set(np.unique(stream.Y.data)) == {1.0}
    assert counts[0] > counts[9] > counts[100:].mean()
    assert np.diff(stream.X.indptr).max() <= 50


def extreme_records(out, *arguments):
    result = CliRunner().invoke(app, ["extreme", "--datasets", "", "--out", str(out), *arguments])
    assert result.exit_code == 0, result.output
    with (out / "extreme.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_compressed_labels_beat_the_most_frequent_ones(few_words, tmp_path):
    floor, model = extreme_records(tmp_path, "--labels", "1000", "--rows", "1500", "--budget", "2MB")
    assert (floor["method"], model["method"]) == ("most frequent labels", "race-hashed, 2MB")
    assert float(model["precision_at_1"]) > float(floor["precision_at_1"]) + 0.2
    assert float(model["ndcg_at_5"]) > float(floor["ndcg_at_5"]) + 0.1
    assert float(model["bytes"]) < 3e6


def test_the_label_tree_gets_lines_in_its_format(few_words, tmp_path, monkeypatch):
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
    tree = extreme_records(tmp_path, "--labels", "1000", "--rows", "1000", "--budget", "2MB")[-1]
    assert lines[0] == "--plt 1000 --loss_function logistic -b 18 --top_k 5 --quiet"
    stream = zipf_stream(1000, 1000)
    labels, _, features = lines[1].partition(" | ")
    assert labels == ",".join(map(str, stream.Y[[0]].indices))
    assert features.split() == [f"{column}:1" for column in stream.X[[0]].indices]
    assert float(tree["bytes"]) == 16 * 2**18
    assert tree["example_f1"] == ""
    hits = stream.Y[500:600][:, [4, 3, 2, 1, 0]]
    assert float(tree["precision_at_5"]) == pytest.approx(hits.sum() / 500)


@pytest.mark.parametrize("arguments", [("--rows", "10"), ("--labels", "2"), ("--no-synthetic", "--datasets", "")])
def test_extreme_refuses(arguments, tmp_path):
    result = CliRunner().invoke(app, ["extreme", *arguments, "--out", str(tmp_path)])
    assert isinstance(result.exception, ValueError)


def test_the_walk_counts_calls_of_our_functions_alone():
    X, Y = walk.batch(200, 50)
    model = walk.labelrace.RACEClassifier(random_state=0).partial_fit(X, Y)
    with walk.recorded() as steps:
        sorted([3, 1, 2], key=lambda value: -value)
        model.partial_fit(X, Y)
    assert "base/estimator:partial_fit" in map(str, steps[:4])  # the lock comes first
    calls, files, changes = walk.counts(steps)
    assert files <= changes + 1 < calls
    assert not any(step.file.startswith("..") or "numpy" in step.file for step in steps)


def test_every_part_that_the_search_takes_away_is_there():
    for variant in search.VARIANTS:
        if variant.change:
            where, name, _ = variant.change
            assert hasattr(where, name)


def test_an_unknown_part_of_speed_is_refused():
    with pytest.raises(ValueError, match="'nothing'"):
        speed.speed("nothing")


def test_odd_rows_are_of_their_kind():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 6)), csr_array((rng.random((400, 5)) < [0.5, 0.3, 0.2, 0.05, 0.1]).astype(float))
    rows = {kind: disturbance.odd_rows(kind, X, Y, 80, np.random.default_rng(1)) for kind in disturbance.KINDS}
    assert all(x.shape == (80, 6) and y.shape == (80, 5) for x, y in rows.values())
    mixed, other, none, topic = rows.values()
    # The same rows, with labels of one another, or with columns in another order.
    np.testing.assert_array_equal(mixed[0], none[0])
    assert not np.array_equal(mixed[0], other[0])
    np.testing.assert_array_equal(np.sort(mixed[0], axis=1), np.sort(other[0], axis=1))
    assert none[1].sum() == 0
    # The label that about as many rows have is in all of them.
    assert topic[1].toarray()[:, 2].all()


def test_disturbances_are_told_for_both_models():
    stream = SyntheticStream(n_rows=1700, n_features=8, n_labels=5, seed=1)
    [(X, Y)] = stream.batches(1700)
    records = list(disturbance.disturbed(disturbance.Disturbed("tiny", X, Y, 100)))
    assert [record["method"] for record in records[:4]] == [f"{kind}, race" for kind in disturbance.KINDS]
    assert len(records) == 8
    assert all(record["alarms"] == record["drifts"] == 0 for record in records[4:])
    # Without labels for a while, the first batch after them is predicted worst.
    lost = records[2]
    assert lost["lost_0"] > 0.2 > lost["lost_3"]
