"""Models on disk: what is read is what was written, to the bit; any other file is refused with a clear error."""

from __future__ import annotations

import dataclasses
import pickle
import re
import sys
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from helpers.model_files import header_of, load_bytes, rewritten
from helpers.models import MODELS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import RACEClassifier
from labelrace.base import model_file
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.sparse import dense
from labelrace.exceptions import LabelraceError, LimitError, ModelFileError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

BANKS = {
    "naive_bayes": {},
    "binned": {"learner": NaiveBayes(numeric="binned", smoothing=0.5)},
    "sgd": {"method": "regression"},
    "weka": {"method": "regression", "learner": dataclasses.replace(SGD.weka(), first_epochs=5)},
    "ridge": {"method": "regression", "learner": Ridge(alpha=0.3)},
}
RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 5)).round(2)
X[:, 0] = RNG.integers(0, 3, 60)
# Enough labels that the decoder's sums of sparse batches wait to be folded.
Y = (RNG.random((60, 50)) < 0.08).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def reloaded(model, path):
    model.save(path)
    return labelrace.load(path)


@pytest.mark.parametrize("bank", BANKS.values(), ids=BANKS)
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
@pytest.mark.parametrize("start", ["full", "first_batch"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_what_is_read_goes_on_like_what_was_written(path, bank, encoding, start, convert):
    model = RACEClassifier(
        encoding=encoding, start=start, categorical_features=[0], forgetting=0.9, ridge=0.01, random_state=0, **bank
    )
    model.partial_fit(convert(X[:20]), convert(Y[:20])).partial_fit(convert(X[20:30]), convert(Y[20:30]))
    scores = model.decision_function(X)
    twin = reloaded(model, path)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    for batch in (slice(30, 40), slice(40, 60)):
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(dense(twin.predict(X)), dense(model.predict(X)))
        one_row = convert(X[:1])
        np.testing.assert_array_equal(twin.decision_function(one_row), model.decision_function(one_row))
        np.testing.assert_array_equal(twin.encoder_, model.encoder_)
        for one in (model, twin):
            one.partial_fit(convert(X[batch]), convert(Y[batch]))
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
    assert twin.get_params() == model.get_params()


def test_missing_values_grown_labels_and_new_nominal_values(path):
    holes = X.copy()
    holes[3:9, 0], holes[5:12, 1], holes[20, 0] = np.nan, np.nan, 7
    for numeric in ("density", "binned"):
        model = RACEClassifier(learner=NaiveBayes(numeric=numeric), categorical_features=[0], random_state=0)
        model.partial_fit(holes[:15], Y[:15, :8]).partial_fit(holes[15:], Y[15:, :8]).add_labels(2)
        twin = reloaded(model, path)
        for one in (model, twin):
            one.partial_fit(holes, Y[:, :10])
        np.testing.assert_array_equal(twin.decision_function(holes), model.decision_function(holes))


def test_names_and_parameters_survive(path):
    A, b = RNG.normal(size=(4, 2)), RNG.normal(size=2)
    model = RACEClassifier(
        n_components=np.int64(2),
        projection=(A, b),
        categorical_features=CategoricalMask([4, 0, 0, 0, 0]),
        learner=NaiveBayes(numeric="binned", smoothing=0.25),
        label_names=np.array(["ä", "b", '"c"', "d"]),
        random_state=np.int32(5),
    )
    model.fit(pd.DataFrame(X, columns=["v", "wé", "x", "y", "z"]), Y[:, :4])
    twin = reloaded(model, path)
    given, found = model.get_params(), twin.get_params()
    assert list(given) == list(found)
    assert isinstance(found["categorical_features"], CategoricalMask)
    assert found["categorical_features"].n_values.tolist() == [4, 0, 0, 0, 0]
    for one, other in zip(given["projection"], found["projection"], strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(given["label_names"]) == list(found["label_names"])
    plain = set(given) - {"categorical_features", "projection", "label_names"}
    assert {name: given[name] for name in plain} == {name: found[name] for name in plain}
    assert type(found["learner"]) is NaiveBayes
    assert list(twin.label_names_) == list(model.label_names_) == ["ä", "b", '"c"', "d"]
    assert list(twin.feature_names_in_) == ["v", "wé", "x", "y", "z"]
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(pd.DataFrame(X, columns=list("abcde")))
    again = twin.fit(X, Y[:, :4])
    np.testing.assert_array_equal(again.decision_function(X), model.fit(X, Y[:, :4]).decision_function(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"label_names": pd.Index(list("abcd"))},
        {"label_names": ("a", "b", "c", "d")},
        {"categorical_features": range(1)},
        {"categorical_features": np.array([True, False, False, False, False])},
        {"categorical_features": [True, False, False, False, False]},
        {"categorical_features": np.array([0])},
        {"projection": (pd.DataFrame(np.eye(4)[:, :2]), pd.Series([0.0, 0.1]))},
        {"projection": [[[1, 0], [0, 1], [1, 1], [0, 0]], [0, 0]]},
        {"random_state": np.random.default_rng(0)},
        {"random_state": np.random.RandomState(0)},
        {"random_state": None},
        {"ridge": np.float32(0.5), "forgetting": 1},
    ],
)
def test_parameters_of_all_kinds_can_be_saved(path, parameters):
    model = RACEClassifier(**{"random_state": 0, **parameters}).fit(X, Y[:, :4])
    twin = reloaded(model, path)
    for one in (model, twin):
        one.partial_fit(X, Y[:, :4])
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_the_file_can_be_replaced_under_a_loaded_model(path):
    twin = reloaded(RACEClassifier(random_state=0).fit(X, Y), path)
    with path.open("r+b") as file:
        file.truncate(10)
    np.testing.assert_array_equal(twin.predict(X), RACEClassifier(random_state=0).fit(X, Y).predict(X))


def test_models_of_foreign_learners_are_not_saved(path):
    model = RACEClassifier(learner=Perceptron(), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="Perceptron cannot be saved: only arrays are written, never pickles"):
        model.save(path)
    assert not path.exists()
    with pytest.raises(ValueError, match=r"(?s)random_state=.*cannot be saved"):
        RACEClassifier(random_state=np.random.SeedSequence(1)).fit(X, Y).save(path)


def test_nothing_is_ever_unpickled(path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("unpickled")

    RACEClassifier(random_state=0).fit(X, Y).save(path)
    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    labelrace.load(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFileError):
        labelrace.load(path)


def test_a_class_without_a_name_is_not_saved(tmp_path):
    class Mine(labelrace.RACEClassifier):
        pass

    X = np.eye(4)
    with pytest.raises(
        ValueError, match=r"could not be loaded again: register it first, labelrace\.register_model\(name, Mine\)"
    ):
        Mine().fit(X, X).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


DAMAGED_RNG = np.random.default_rng(11)
FRAME = (
    pd.DataFrame(DAMAGED_RNG.integers(0, 4, size=(30, 3)), columns=list("xyz"))
    .astype(float)
    .mask(DAMAGED_RNG.random((30, 3)) < 0.1)
)
TARGETS = (DAMAGED_RNG.random((30, 3)) < 0.4).astype(int)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    model = RACEClassifier.paper(categorical_features=[0], label_names=list("abc"), random_state=0)
    model.fit(FRAME, TARGETS).save(path)
    return path.read_bytes()


def test_no_file(tmp_path):
    for missing in (tmp_path / "none", tmp_path, str(tmp_path / "none")):
        with pytest.raises(FileNotFoundError, match=f"There is no model file {re.escape(str(missing))}"):
            labelrace.load(missing)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is not a labelrace model, or it is cut short"),
        (b"\0", "is not a labelrace model"),
        (b"@relation enron\n" * 100, "is not a labelrace model"),
        (bytes(1000), "not a labelrace model"),
        (safetensors.numpy.save({"weights": np.eye(3)}), "is a safetensors file, but not a labelrace model"),
        (safetensors.numpy.save({}, {"labelrace": "[" * 100_000}), "damaged"),
        (safetensors.numpy.save({}, {"labelrace": "{}"}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": "[]"}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": '{"format": "1"}'}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": '{"format": 1}'}), "damaged: .*checksum"),
        (safetensors.numpy.save({}, {"labelrace": f'{{"format": {"9" * 5000}}}'}), "damaged"),
    ],
)
def test_foreign_files(tmp_path, content, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(tmp_path, content)
    assert isinstance(caught.value, (LabelraceError, ValueError))


def test_files_cut_short(tmp_path, content):
    for length in [*range(0, len(content), 37), len(content) - 1]:
        with pytest.raises(ModelFileError):
            load_bytes(tmp_path, content[:length])


def test_files_of_newer_versions(tmp_path, content):
    newer = rewritten(content, lambda header, _: header.update(format=model_file.FORMAT + 1, version="9.9"))
    with pytest.raises(ModelFileError, match=r"written by labelrace 9\.9, in a newer format.*upgrade labelrace"):
        load_bytes(tmp_path, newer)


def test_a_single_bit_that_flipped(tmp_path, content):
    for i in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[i] ^= 1 << (i % 8)
        with pytest.raises(ModelFileError):
            load_bytes(tmp_path, bytes(damaged))


TENSORS = ("state.encoder.A", "state.encoder.bias", "state.decoder.gram", "state.learners.rows", "n_values")


@pytest.mark.parametrize(
    "change",
    [
        *(lambda h, t, name=name: t.pop(name) for name in TENSORS),
        *(lambda h, t, name=name: t.update({name: t[name][:-1]}) for name in TENSORS if name != "n_values"),
        lambda h, t: t.update({"state.decoder.cross": t["state.decoder.cross"].astype(np.float32)}),
        lambda h, t: t.update({"state.decoder.rows": np.zeros(2)}),
        lambda h, t: t.update({"state.encoder.A": np.zeros(3)}),
        lambda h, t: h["parameters"].update(method="regression"),
        lambda h, t: h["parameters"].update(method="magic"),
        lambda h, t: h["parameters"].update(colour="red"),
        lambda h, t: h["parameters"].update(learner={"bank": "Adapter", "settings": {}}),
        lambda h, t: h["parameters"].update(learner={"bank": "SGD", "settings": {"speed": 1}}),
        lambda h, t: h["parameters"].update(projection={"array": "nowhere"}),
        lambda h, t: h.pop("parameters"),
        lambda h, t: h.update(n_labels=4),
        lambda h, t: h.update(n_labels=None),
        lambda h, t: h.update(n_labels=1e400),
        lambda h, t: h["parts"].update({"state.decoder.pending": 10**12}),
        lambda h, t: h["parts"].clear(),
        lambda h, t: h.update(absent=None),
        lambda h, t: h.update(label_names=["a", "b"]),
        lambda h, t: h.update(label_names=[1, 2, 3]),
        lambda h, t: h.update(feature_names=list("uvwxyz")),
        lambda h, t: h.update(label_dtype="no type"),
        lambda h, t: h.pop("sparse_labels"),
        lambda h, t: h.update(seed="dice"),
        lambda h, t: t.update({"n_values": t["n_values"][:-1]}),
        lambda h, t: t.update({"n_values": t["n_values"] + 0.5}),
        lambda h, t: t.update({"state.learners.kinds": t["state.learners.kinds"][:-1]}),
    ],
)
def test_contents_that_do_not_fit_the_header(tmp_path, content, change):
    assert load_bytes(tmp_path, rewritten(content, lambda *_: None)).predict(FRAME).shape == (30, 3)
    with pytest.raises(ModelFileError, match="damaged: its contents do not fit its header"):
        load_bytes(tmp_path, rewritten(content, change))


@pytest.mark.parametrize("name", ["load_dataset", "os.system", "os:system", "collections:Counter", "antigravity:Model"])
def test_a_file_gets_no_module_imported(tmp_path, content, name):
    before = set(sys.modules)
    with pytest.raises(ModelFileError, match=r"which is not known here.*A file imports nothing by itself"):
        load_bytes(tmp_path, rewritten(content, lambda h, t: h.update({"class": name})))
    assert "antigravity" not in set(sys.modules) - before


def test_limits_hold_for_files(tmp_path, content):
    for change, variable in (
        (lambda header, _: header.update(n_labels=2 * 10**9), "LABELRACE_MAX_LABELS"),
        (lambda _, tensors: tensors.update(n_values=np.array([2**40, 0, 0])), "LABELRACE_MAX_VALUES"),
    ):
        with pytest.raises(LimitError, match=variable):
            load_bytes(tmp_path, rewritten(content, change))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 9) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["list", "array", "bank"]), inner),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_bytes_there_is_a_model_or_a_clear_error(tmp_path, content, data):
    def change(header, _):
        inside = header["parameters"] if data.draw(st.booleans()) else header
        inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(ANYTHING)

    if data.draw(st.booleans()):
        made = rewritten(content, change)
    else:
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 20, len(content))))
        made = content[:start] + data.draw(st.binary(max_size=20)) + content[stop:]
    try:
        model = load_bytes(tmp_path, made)
    except ModelFileError as error:
        message = str(error)
    else:
        message = f"{tmp_path} has a {type(model).__name__}"
    assert str(tmp_path) in message


def test_what_the_header_tells(content):
    header = header_of(content)
    assert set(header) == {
        "format", "version", "class", "parameters", "n_labels", "label_names", "feature_names", "sparse_labels",
        "label_dtype", "seed", "is_successor", "absent", "parts",
    }  # fmt: skip
    assert (header["class"], header["n_labels"], header["seed"]) == ("RACEClassifier", 3, 0)
    assert (header["label_names"], header["feature_names"]) == ({"names": "label_names"}, {"names": "feature_names"})
    assert (header["sparse_labels"], header["label_dtype"]) == (False, "<i8")
    tensors = safetensors.numpy.load(content)
    assert tensors["n_values"].tolist() == [4, 0, 0]
    assert (tensors["label_names.utf8"].tobytes(), tensors["label_names.sizes"].tolist()) == (b"abc", [1, 1, 1])


def test_what_another_thread_learns_while_saving_is_kept(path):
    wide = sparse.random_array((20, 3000), density=0.01, rng=RNG, format="csr")
    model = RACEClassifier(random_state=0).fit(wide, Y[:20])
    done = threading.Event()

    def save():
        while not done.is_set():
            model.save(path)

    saver = threading.Thread(target=save)
    saver.start()
    for _ in range(60):
        model.partial_fit(wide, Y[:20])
    done.set()
    saver.join()
    assert model._fitted.state.learners.rows[-1] == 61 * 20


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_gives_the_same_bytes(tmp_path, name):
    model = labelrace.make_model(name, label_names=list("abcdefgh")).fit(X[:20], Y[:20, :8])
    model.save(tmp_path / "one")
    for _ in range(3):
        labelrace.load(tmp_path / "one").save(tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == (tmp_path / "one").read_bytes()


def test_names_of_all_kinds(path):
    names = ["", " ", "Населённые пункты", "\U0001f600", "a\0b", "\udc80", "\u202eabc", "x" * 10_000]
    model = labelrace.make_model("majority", label_names=names).fit(X, Y[:, :8])
    twin = reloaded(model, path)
    assert list(twin.label_names_) == twin.get_params()["label_names"] == names


def test_many_long_names(path):
    n = 320_000
    names = [f"Категория:Населённые пункты по алфавиту, страница {i}" for i in range(n)]
    Y = sparse.csr_array((np.ones(5), (np.arange(5), np.arange(5))), shape=(5, n))
    model = labelrace.make_model("majority", label_names=names).fit(np.ones((5, 2)), Y)
    twin = reloaded(model, path)
    assert list(twin.label_names_) == names


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_rows_that_are_kept_may_have_missing_values(path, make):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.7), (rng.random((60, 3)) < 0.4).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = labelrace.MBRChunksClassifier(weights="static").fit(make(X), Y)
    model.save(path)
    np.testing.assert_array_equal(labelrace.load(path).decision_function(make(X)), model.decision_function(make(X)))


def test_very_many_labels_are_saved_and_loaded_without_a_second_copy(path):
    rng = np.random.default_rng(0)
    n_labels = 50_000
    names = [f"label {i}" for i in range(n_labels)]
    X = sparse.random_array((60, 400), density=0.05, rng=rng, format="csr")
    Y = sparse.csr_array((np.ones(60), (np.arange(60), rng.integers(0, n_labels, 60))), shape=(60, n_labels))
    model = labelrace.make_model("race-hashed", max_memory="12MB", label_names=names, random_state=0)
    for start in (0, 30):
        model.partial_fit(X[start : start + 30], Y[start : start + 30])
    tracemalloc.start()
    try:
        model.save(path)
        _, saving = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        twin = labelrace.load(path)
        held, loading = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = path.stat().st_size
    # The names are in the file once, not as a parameter, too.
    assert size < 12e6 + sum(map(len, names)) + 8 * n_labels + 400_000
    assert saving < 0.8 * size
    assert loading < held + 0.7 * size
    assert twin.get_params()["label_names"] == names
    assert twin.predict_top(X[:5]) == model.predict_top(X[:5])
    again = path.with_name("again")
    twin.save(again)
    assert again.read_bytes() == path.read_bytes()
    assert twin.partial_fit(X, Y).predict_top(X) == model.partial_fit(X, Y).predict_top(X)
