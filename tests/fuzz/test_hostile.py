"""Model files with a fitting checksum whose header or arrays cannot be: each case has once gone wrong."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from helpers.model_files import load_changed

import labelrace
from labelrace.exceptions import DivergenceError, DivergenceWarning, LabelraceError, ModelFileError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), (RNG.random((40, 5)) < 0.3).astype(float)
ROWS = [
    {
        "text": f"word{i % 7} word{i % 5}",
        "when": f"2020-01-{i % 28 + 1:02d}",
        "num": i % 13 * 0.5,
        "tags": f"t{i % 5};u",
    }
    for i in range(40)
]


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return the bytes of models' files by name, each made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("hostile"), {}

    def content(name):
        if name not in made:
            if name == "Tagger":
                model = labelrace.Tagger(tags="tags", random_state=0).fit(ROWS)
            else:
                model = labelrace.make_model(name)
                if "random_state" in model.get_params():
                    model.set_params(random_state=0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DivergenceWarning)
                    model.fit(X, Y)
            model.source_ = {"feature_names": list("abcd"), "nominal_values": {}}
            model.save(folder / "model")
            made[name] = (folder / "model").read_bytes()
        return made[name]

    return content


def set_header(path, value):
    def change(header, tensors):
        *parents, last = path.split("/")
        for key in parents:
            header = header[int(key) if isinstance(header, list) else key]
        header[int(last) if isinstance(header, list) else last] = value

    return change


def set_array(name, new):
    def change(header, tensors):
        tensors[name] = new(tensors[name])

    return change


def resized(old, new):
    """Change a size wherever it occurs, so that the arrays still fit one another."""

    def change(header, tensors):
        for name, array in tensors.items():
            if old in array.shape:
                tensors[name] = np.resize(array, [new if size == old else size for size in array.shape])

    return change


def empty_monitor(header, tensors):
    tensors["state.monitor.counts.offsets"] = tensors["state.monitor.counts.present"] = np.zeros(0)


REFUSED = {
    "a seed below 0": ("race-cls-fixed", set_header("seed", -1)),
    "labels that are a text": ("obr", set_header("n_labels", "5")),
    "labels of a type that they cannot have": ("obr", set_header("label_dtype", "O")),
    "a source of other features": ("obr", set_header("source", {"dict": {"feature_names": {"list": []}}})),
    "no features": ("majority", set_array("n_values", lambda array: array[:0])),
    "other trees than the parameters say": ("eaht", set_header("parameters/n_trees", 3)),
    "other counts than the parameters say": ("mlht-moa", lambda header, tensors: header["parameters"].pop("entropy")),
    "the same in a forest": ("eaht", set_header("parameters/entropy", "occurrences")),
    "many roots of one tree": ("mlht", set_array("state.nodes.roots", lambda roots: np.repeat(roots, 8))),
    "no root": ("isoup", set_array("state.nodes.roots", lambda roots: roots[:0])),
    "layers that do not fit": ("maniac", set_array("state.layers.0.weights", lambda array: array[:, :1])),
    "offsets of no label": ("adagrad-squared", empty_monitor),
    "a table without slots": ("race-hashed", set_array("state.table", lambda table: table[:0])),
    "a label twice in a set": ("cl", set_array("state.sets.labels", np.zeros_like)),
    "compressed and not": ("race", set_header("is_successor", True)),
    "a successor of what has none": ("obr", set_header("is_successor", True)),
    "a successor that is no truth": ("race", set_header("is_successor", 1)),
    "a type of parameter": ("Tagger", set_header("parameters/separator", {"a": 1})),
    "no rows in a batch": ("Tagger", set_header("parameters/batch_size", 0)),
    "a column of no kind": ("Tagger", set_header("columns/0/1", 0.5)),
    "a column with a truth that is none": ("Tagger", set_header("columns/0/2", "x")),
    "a pattern of dates": ("Tagger", set_header("columns/1/3", "%d%d")),
    "an empty separator": ("Tagger", set_header("separator", "")),
    "labels of neighbours that are no labels": ("mlknn", set_array("state.Y.data", lambda array: array + 1e9)),
    "moments": ("Tagger", set_header("moments/num", ["many", 0.0, 1.0])),
    "aliases": ("Tagger", set_header("aliases", {"a": 1.5})),
    "counts of a tag": ("Tagger", set_header("tags/u", [1, 2, -3, 4])),
    "a sum that is not finite": ("Tagger", set_header("sum_f1", float("inf"))),
    "words out of order": ("Tagger", set_array("words.keys", lambda array: array[::-1])),
    "fewer counters": ("Tagger", set_array("words.counters", lambda array: array[:5])),
    "fewer counts of words": ("Tagger", set_array("words.rows", lambda array: array[:-1])),
    "texts of words": ("Tagger", set_array("words.sizes", lambda array: array + 1)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(tmp_path, contents, what):
    name, change = REFUSED[what]
    with pytest.raises(ModelFileError, match="damaged"):
        load_changed(tmp_path, contents(name), change)


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("race-cls-fixed", "state.decoder.basis", 1e200),
        ("moplms", "state.sums.sum_y", 1e200),
        ("occ", "state.learners.precision", 0.0),
        ("mbr", "state.together", 1e200),
    ],
)
def test_numbers_that_lead_to_none_are_an_error(tmp_path, contents, name, array, value):
    """What no rows can have taught may be within the bounds of each number: then predicting says so."""
    model = load_changed(tmp_path, contents(name), set_array(array, lambda old: np.full_like(old, value)))
    for predict in (model.decision_function, model.predict_top):
        with warnings.catch_warnings(action="error"), pytest.raises(DivergenceError, match="NaN or infinity"):
            predict(X)


ODD = {
    "no pseudo labels": ("race-reg-adaptive", resized(3, 0)),
    "part of a first label": ("plst", set_array("state.first_labels", lambda array: array * 0 + 0.5)),
    "counts below 0": ("race", set_array("state.monitor.counts.present", lambda array: array - 1e9)),
    "scores of labels that are not finite": (
        "race-hashed",
        set_array("state.decoder.sums", lambda array: array * np.nan),
    ),
    "precision below 0": ("race", set_array("state.learners.extra_precision", lambda array: array - 1e9)),
    "a scale of 0": ("race-hashed", set_array("state.decoder.scale", np.zeros_like)),
    "steps without a length": ("race-reg-fixed", set_array("state.learners.rate", lambda array: array * np.nan)),
    "steps without an end": ("race-reg-fixed", set_array("state.learners.rate", lambda array: array + np.inf)),
    "moments of some columns": ("race", set_array("state.learners.scaling.mean", lambda array: array[:0])),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_numbers_are_loaded_and_give_scores_or_a_clean_error(tmp_path, contents, what):
    """Ranges of values are not checked: they can make predictions wrong, and nothing else."""
    name, change = ODD[what]
    model = load_changed(tmp_path, contents(name), change)
    with warnings.catch_warnings(action="ignore"):
        for use in (model.predict, model.predict_top, lambda X: model.partial_fit(X, Y)):
            with contextlib.suppress(LabelraceError, ValueError):
                use(X)
        with contextlib.suppress(LabelraceError, ValueError):
            assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    "change", [set_header("moments/num", [1.0, 0.0, -1.0]), set_array("words.rows", lambda array: array * np.nan)]
)
def test_odd_numbers_of_a_tagger(tmp_path, contents, change):
    tagger = load_changed(tmp_path, contents("Tagger"), change)
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(LabelraceError, ValueError):
        assert len(tagger.predict(ROWS)) == len(ROWS)


def test_frequencies_above_one(tmp_path, contents):
    model = load_changed(tmp_path, contents("negative"), set_array("state.counts", lambda counts: counts + 1e9))
    assert model.predict_proba(X).max() == 1.0
