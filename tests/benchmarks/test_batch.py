"""One pass against batch, on tiny data and without the other systems, or with stubs in their place."""

from __future__ import annotations

import csv
import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from typer.testing import CliRunner

from benchmarks import batch, rivals
from benchmarks.__main__ import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command in this process and returns its output, and its records by method."""
    monkeypatch.setattr(batch, "apart", lambda call: call())
    monkeypatch.setattr(batch, "find_spec", lambda name: None)
    monkeypatch.setattr(batch, "_BATCH", 50)

    def records(*arguments):
        result = CliRunner().invoke(app, ["batch", *map(str, arguments), "--out", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output
        by_method = {}
        with (tmp_path / "out" / "batch.csv").open(newline="") as file:
            for record in csv.DictReader(file):
                by_method.setdefault(record["method"], []).append(record)
        return " ".join(result.output.split()), by_method

    return records


@pytest.fixture
def rows():
    """Return 60 sparse rows with three labels; the first has no feature, the second no label."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 5)) * (rng.random((60, 5)) < 0.6)
    X[:, 0] += 0.1
    Y = (X[:, :3] > 0.4).astype(float)
    Y[:, 2] = 0
    X[0], Y[0], Y[1] = 0, [1, 0, 0], 0
    return csr_array(X), csr_array(Y)


def test_one_pass_and_one_vs_rest_beat_the_most_frequent_labels(run, tiny):
    output, records = run("enron", "--data", tiny, "--budget", "1MB")
    assert list(records) == ["most frequent labels", "race", "race, 1MB", "LinearSVC", "logistic regression"]
    assert {len(records[name]) for name in ("LinearSVC", "logistic regression")} == {6}
    (floor,) = records.pop("most frequent labels")
    for name, tried in records.items():
        best = max(float(record["ndcg_at_5"]) for record in tried)
        assert best > float(floor["ndcg_at_5"]) + 0.05, name
    # Only what learns row after row is ranked on the way.
    assert float(records["race"][0]["before_ndcg_at_5"]) > float(floor["before_ndcg_at_5"])
    assert records["LinearSVC"][0]["before_ndcg_at_5"] == ""
    assert "best of 6" in output
    assert "Not compared: vowpalwabbit, omikuji, napkinxc" in output


def test_what_takes_too_long_is_left_out_with_a_note(run, tiny):
    output, records = run("enron", "--data", tiny, "--seconds", "0", "--methods", "race,LinearSVC")
    assert list(records) == ["race"]
    assert "LinearSVC is left out on enron: it would take" in output


def test_the_test_part_of_a_dataset_is_ranked(run, tmp_path):
    # Labels are what the one feature says; in the test part it lies.
    parts = {"train": "0 0:1\n1 1:1\n" * 60, "test": "1 0:1\n0 1:1\n" * 20}
    for part, lines in parts.items():
        (tmp_path / f"pair_{part}.txt").write_text(f"{lines.count(chr(10))} 2 2\n{lines}")
    _, records = run("--data", tmp_path, "--methods", "race,logistic")
    assert [record["stream"] for record in records["race"]] == ["pair"]
    assert float(records["race"][0]["before_precision_at_1"]) == 1.0
    assert float(records["race"][0]["precision_at_1"]) == 0.0
    assert {record["precision_at_1"] for record in records["logistic regression"]} == {"0.0"}


@pytest.mark.parametrize(("arguments", "precision"), [((), 1.0), (("--in-order",), 0.0)])
def test_rows_are_in_random_order_unless_asked(arguments, precision, run, tmp_path):
    (tmp_path / "sorted.txt").write_text("120 2 2\n" + "0 0:1\n" * 90 + "1 1:1\n" * 30)
    _, records = run("--data", tmp_path, "--methods", "race", *arguments)
    assert float(records["race"][0]["precision_at_1"]) == precision


def test_a_table_of_text(run, tmp_path):
    questions = [f"{word},<p>How to {word} well?</p>,{word}s" for word in ("bake", "grill", "boil") * 40]
    (tmp_path / "food.csv").write_text("\n".join(["title,content,tags", *questions]))
    _, records = run(tmp_path / "food.csv", "--methods", "race")
    assert records["race"][0]["stream"] == "food"
    assert float(records["race"][0]["precision_at_1"]) == 1.0


def test_one_vs_rest_is_that_of_scikit_learn(rows, tmp_path):
    X, Y = rows
    learned = batch.one_vs_rest(LogisticRegression, 60.0, X, Y, tmp_path)
    reference = OneVsRestClassifier(LogisticRegression()).fit(X, Y.toarray()[:, :2]).decision_function(X)
    top = learned.top(X)
    np.testing.assert_array_equal(top[:, :2], np.argsort(-reference, axis=1, kind="stable"))
    assert set(top[:, 2]) == {2}  # a label that no row has comes last
    assert learned.size() == 4 * (5 * 3 + 3)


def test_omikuji_gets_the_rows_that_it_can_read(rows, tmp_path, monkeypatch):
    files = []

    class Model:
        default_hyper_param = SimpleNamespace

        @classmethod
        def train_on_data(cls, path, given, n_threads):
            files.append((Path(path).read_text().splitlines(), vars(given), n_threads))
            return cls()

        def init_prediction_thread_pool(self, n_threads):
            assert n_threads == 1

        def predict(self, pairs, top_k):
            return [(len(pairs), 0.5)]

        def save(self, path):
            Path(path).mkdir()
            Path(path, "tree").write_bytes(b"12345")

    module = ModuleType("omikuji")
    module.Model = Model
    monkeypatch.setitem(sys.modules, "omikuji", module)
    X, Y = rows
    learned = batch.omikuji({"cluster_k": 100}, X, Y, tmp_path)
    ((lines, given, n_threads),) = files
    taken = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    assert lines[0] == f"{len(taken)} 5 3"
    assert not {0, 1} & set(taken)
    labels, *features = lines[1].split()
    assert labels == ",".join(map(str, Y[[taken[0]]].indices))
    assert [int(feature.split(":")[0]) for feature in features] == X[[taken[0]]].indices.tolist()
    assert (given, n_threads) == ({"cluster_k": 100}, 1)
    np.testing.assert_array_equal(learned.top(X)[:, :2], np.column_stack([np.diff(X.indptr), np.full(60, -1)]))
    assert learned.size() == 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_method_has_a_process_of_its_own(capfd):
    def loud():
        os.write(1, b"progress")
        return {"process": os.getpid()}

    assert batch.apart(loud)["process"] != os.getpid()
    assert batch.apart(lambda: os._exit(1)) == {"error": "its process failed"}
    assert capfd.readouterr() == ("", "")


def test_the_other_systems_are_found_after_all_else(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(rivals, "_ENVIRONMENT", tmp_path)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(tmp_path)}))
    for name in ("a_rival_of_tests", "numpy"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
    rivals.use_rivals()
    assert find_spec("a_rival_of_tests")
    assert packages not in Path(find_spec("numpy").origin).parents


def test_the_versions_of_other_systems_are_given():
    text = Path(rivals.__file__).with_name("data").joinpath("rivals.txt").read_text()
    versions = dict(line.split("==") for line in text.splitlines() if not line.startswith("#"))
    assert set(versions) == set(batch._PACKAGES)
