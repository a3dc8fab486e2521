"""Models, measures and formats of one's own, through the command and in Python."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from documents import ROOT, read_blocks
from sklearn.metrics import f1_score

import labelrace
from labelrace.base import model_file, plugins, registry
from labelrace.evaluation import prequential
from labelrace.exceptions import DataFormatError, ModelFileError
from labelrace.measures import evaluate, is_loss, needs_scores, register_measure
from labelrace.streams import Dataset, formats, load_dataset, register_format

CLASS = "my_centroids:CentroidsClassifier"


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch):
    table = sys.modules["labelrace.measures.evaluate"]
    for module, name in (
        (registry, "_REGISTERED"),
        (registry, "_NAMED"),
        (table, "_REGISTERED"),
        (formats, "_REGISTERED"),
    ):
        monkeypatch.setattr(module, name, {})
    yield
    sys.modules.pop("my_centroids", None)


@pytest.fixture
def module(tmp_path):
    """Write CONTRIBUTING's method into the current folder."""
    (block,) = (one for one in read_blocks(ROOT / "CONTRIBUTING.md", "python") if "class Centroids" in one.code)
    (tmp_path / "my_centroids.py").write_text(block.code)


@pytest.fixture
def offered(monkeypatch):
    """Offer something as an installed package does."""

    def offer(group, name, value):
        points = {name: EntryPoint(name, value, group)}
        monkeypatch.setattr(plugins, "entry_points", lambda one: points if one == group else {})

    return offer


class TestModels:
    """Models: saved, and loaded where the user has named their class."""

    def test_train_predict_and_inspect(self, module, works, refuses):
        works("data", "make", "rows.arff", "--rows", 60, "--labels", 4)
        works("train", "rows.arff", "-m", CLASS, "-o", "own.safetensors")
        expected = [
            sorted(labels) for labels in labelrace.load("own.safetensors").predict_labels(load_dataset("rows.arff").X)
        ]
        # In another process the class is not known before the user names it.
        registry._NAMED.clear()
        message = refuses("predict", "own.safetensors", "rows.arff", "-o", "out.jsonl")
        assert f"class '{CLASS}', which is not known here" in message
        assert "labelrace --model module:Class" in message
        works("--model", CLASS, "predict", "own.safetensors", "rows.arff", "-o", "out.jsonl")
        with open("out.jsonl") as file:
            assert [sorted(json.loads(line)["labels"]) for line in file] == expected

    def test_a_tagger_with_a_model_of_ones_own(self, module, works, refuses, tmp_path):
        rows = "".join(f"{word},{word}\n" for word in ("oven", "toaster", "grill") * 8)
        (tmp_path / "tickets.csv").write_text(f"title,tags\n{rows}")
        works("train", "tickets.csv", "--tags", "tags", "-m", CLASS, "-o", "tagger.labelrace")
        registry._NAMED.clear()
        assert "not known here" in refuses("update", "tagger.labelrace", "tickets.csv")
        works("--model", CLASS, "update", "tagger.labelrace", "tickets.csv")
        assert labelrace.load("tagger.labelrace").n_rows_ == 48

    def test_a_tagger_that_starts_over_imports_nothing(self, tmp_path):
        tagger = labelrace.Tagger("tags", model="obr").partial_fit([{"t": "a", "tags": "x"}, {"t": "b", "tags": "y"}])
        header, tensors = tagger.pack()
        header["parameters"]["model"] = "antigravity:Model"
        model_file.write(tmp_path / "tagger", header, tensors)
        with pytest.raises(ModelFileError, match="is not known here"):
            labelrace.load(tmp_path / "tagger")

    def test_registered_or_offered_by_a_package(self, module, tmp_path, monkeypatch, offered):
        monkeypatch.syspath_prepend(tmp_path)
        from my_centroids import CentroidsClassifier  # type: ignore[import-not-found]

        X = np.random.default_rng(0).random((40, 4))
        model = CentroidsClassifier(prior=2.0).fit(X, X > 0.5)
        with pytest.raises(ValueError, match="register it first"):
            model.save(tmp_path / "model")
        labelrace.register_model("centroids", CentroidsClassifier)
        model.save(tmp_path / "model")
        loaded = labelrace.load(tmp_path / "model")
        assert type(loaded) is CentroidsClassifier
        assert loaded.prior == 2.0
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        loaded.partial_fit(X, X > 0.5)
        registry._REGISTERED.clear()
        with pytest.raises(ModelFileError, match="class 'centroids', which is not known here"):
            labelrace.load(tmp_path / "model")
        offered(registry.ENTRY_POINTS, "centroids", CLASS)
        assert type(labelrace.load(tmp_path / "model")) is CentroidsClassifier
        model.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()

    def test_what_cannot_be_saved_is_not_trained(self, works, refuses):
        works("data", "make", "rows.arff", "--rows", 20)
        message = refuses("train", "rows.arff", "-m", "sklearn.neighbors:KNeighborsClassifier", "-o", "own.safetensors")
        assert "must be a model that can be saved" in message
        assert "without predict" in refuses("run", "rows.arff", "-m", "collections:Counter")
        assert "must be given as module:Class" in refuses("--model", "centroids", "models")


class TestMeasures:
    """Measures: registered, or offered by a package."""

    def test_is_a_measure_like_the_others(self):
        rng = np.random.default_rng(0)
        Y, P, S = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, (30, 4)), rng.random((30, 4))

        def micro(Y_true, Y_pred):
            return f1_score(Y_true.toarray(), Y_pred.toarray(), average="micro")

        register_measure("sk_micro_f1", micro)
        register_measure("mean_score", lambda Y_true, scores: scores[Y_true.toarray() == 1].mean(), needs_scores=True)
        register_measure("misses", lambda Y_true, Y_pred: (Y_true > Y_pred).sum(), is_loss=True)
        found = evaluate(Y, P, S, measures=["sk_micro_f1", "micro_f1", "mean_score", "misses"])
        assert found["sk_micro_f1"] == pytest.approx(found["micro_f1"])
        assert found["mean_score"] == pytest.approx(S[Y == 1].mean())
        assert found["misses"] == ((Y == 1) & (P == 0)).sum()
        assert (needs_scores("sk_micro_f1"), needs_scores("mean_score")) == (False, True)
        assert (is_loss("misses"), is_loss("sk_micro_f1")) == (True, False)
        with pytest.raises(ValueError, match="scores must be given to compute mean_score"):
            evaluate(Y, P, measures="mean_score")
        data = Dataset.from_arrays(S, Y)
        last = list(
            prequential(labelrace.make_model("obr"), data, batch_size=10, measures=["sk_micro_f1", "mean_score"])
        )[-1]
        assert last.measures.keys() == {"sk_micro_f1", "mean_score"}

    @pytest.mark.parametrize("name", ["micro_f1", "all", "", "a:b", "gain_at_5", "a,b", None])
    def test_wrong_names(self, name):
        with pytest.raises(ValueError, match="name must"):
            register_measure(name, len)

    def test_names_that_are_taken(self):
        register_measure("mine", len)
        register_measure("mine", len)
        with pytest.raises(ValueError, match="name must be free, got 'mine'"):
            register_measure("mine", max)
        with pytest.raises(ValueError, match="must be a class or a function, got 3"):
            register_measure("other", 3)
        with pytest.raises(ValueError, match=r"measures must be some of .*, mine, got 'nine'"):
            evaluate([[1]], [[1]], measures="nine")

    def test_run(self, works, offered):
        offered("labelrace.measures", "loss", "sklearn.metrics:hamming_loss")
        works("data", "make", "rows.arff", "--rows", 60)
        arguments = ("--measures", "loss,hamming_loss", "--batch-size", 20, "--workers", 1, "--out", "run", "--json")
        out = works("run", "rows.arff", "-m", "obr", *arguments)
        assert '"loss"' in out


class TestFormats:
    """Formats: registered, or offered by a package."""

    def open_rows(self, path, labels=None):
        rows = np.loadtxt(path, ndmin=2)
        n_labels = 1 if labels is None else int(labels)
        return Dataset.from_arrays(rows[:, :-n_labels], rows[:, -n_labels:], name=path.stem)

    def test_is_a_format_like_the_others(self, works, tmp_path):
        rows = np.random.default_rng(0).integers(0, 2, (40, 4))
        np.savetxt(tmp_path / "toy.rows", rows, fmt="%d")
        with pytest.raises(DataFormatError, match=r"cannot read or write files of type '\.rows'"):
            load_dataset("toy.rows")
        register_format(".rows", self.open_rows)
        data = load_dataset("toy.rows", 2)
        np.testing.assert_array_equal(data.Y.toarray(), rows[:, 2:])
        assert "obr learned 40 rows with 2 labels" in works(
            "train", "toy.rows", "--labels", 2, "-m", "obr", "-o", "model"
        )  # fmt: skip

    def test_offered_by_a_package(self, tmp_path, offered):
        (tmp_path / "toy.other").write_text("")
        offered(formats.ENTRY_POINTS, "other", f"{__name__}:open_nothing")
        assert len(load_dataset("toy.other")) == 2

    @pytest.mark.parametrize("suffix", [".csv", "rows", ".Rows", ".gz", "", None, ".a.b"])
    def test_wrong_suffixes(self, suffix):
        with pytest.raises(ValueError, match="must"):
            register_format(suffix, self.open_rows)


def open_nothing(path, labels=None):
    return Dataset.from_arrays(np.eye(2), np.eye(2), name=path.stem)
