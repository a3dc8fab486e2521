"""Arrays of model files: those that do not fit one another are refused before any code uses them."""

from __future__ import annotations

import json
import struct
from typing import get_type_hints

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse

import labelrace
from labelrace import RACEClassifier
from labelrace.base import model_file
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.base.shapes import Shapes
from labelrace.exceptions import ModelFileError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.integers(0, 4, 60), RNG.normal(size=(60, 3))])
X[5, 1] = X[7, 0] = np.nan
Y = sparse.csr_array(RNG.random((60, 40)) < 0.1).astype(float)
NOMINAL = {"categorical_features": [0]}
MODELS = {
    "density": RACEClassifier(random_state=0, **NOMINAL),
    "binned": RACEClassifier.paper(random_state=0, **NOMINAL),
    "weka": RACEClassifier(method="regression", learner=SGD.weka(), random_state=0, **NOMINAL),
    "ridge": RACEClassifier(method="regression", learner=Ridge(), random_state=0),
    "relevance": labelrace.make_model("obr", **NOMINAL),
    "chains": labelrace.ClassifierChainsClassifier(n_chains=2, learner=NaiveBayes(), random_state=0, **NOMINAL),
    "constant": labelrace.make_model("majority"),
}


@pytest.fixture(scope="module", params=MODELS)
def content(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    model, rows = MODELS[request.param], np.nan_to_num(X) if request.param == "ridge" else X
    if model.is_online:
        model.partial_fit(rows, Y)
        model.partial_fit(rows[:2], Y[:2])
    else:
        model.fit(rows, Y)
    model.save(path)
    return path.read_bytes()


def load_with(tmp_path, content, **changed):
    length = struct.unpack("<Q", content[:8])[0]
    text = json.loads(content[8 : 8 + length])["__metadata__"]["labelrace"]
    tensors = {**safetensors.numpy.load(content), **changed}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    checksum = model_file.checksum(text, tensors)
    (tmp_path / "file").write_bytes(safetensors.numpy.save(tensors, {"labelrace": text, "checksum": checksum}))
    return labelrace.load(tmp_path / "file")


def state_of(content):
    return {name: array for name, array in safetensors.numpy.load(content).items() if name.startswith("state.")}


def test_arrays_that_are_missing_or_too_many(tmp_path, content):
    for name, array in state_of(content).items():
        with pytest.raises(ModelFileError, match=rf"{name} is missing"):
            load_with(tmp_path, content, **{name: None})
        with pytest.raises(ModelFileError, match=r"belongs to no part of the model"):
            load_with(tmp_path, content, **{f"{name}.more": array})


def test_other_shapes(tmp_path, content):
    for name, array in state_of(content).items():
        wrong = [array[None], np.concatenate([np.atleast_1d(array)] * 2)]
        wrong += [array[(slice(None),) * axis + (slice(1, None),)] for axis in range(array.ndim) if array.shape[axis]]
        for changed in wrong:
            is_basis = name.endswith(".basis") and changed.shape[0] == array.shape[0]
            is_more_or_fewer_chains = name.endswith(".orders") and changed.shape[-1] == array.shape[-1]
            if changed.ndim == 2 and (is_basis or is_more_or_fewer_chains):
                continue  # any number of directions, and of chains, is one
            if changed.shape == array.shape:
                continue  # twice nothing is nothing
            with pytest.raises(ModelFileError, match="its contents do not fit its header"):
                load_with(tmp_path, content, **{name: np.ascontiguousarray(changed)})


def test_numbers_out_of_range(tmp_path, content):
    for name, array in state_of(content).items():
        if array.dtype.kind == "i" and array.size:
            for added in (10**9, -(10**9)):
                with pytest.raises(ModelFileError, match="its contents do not fit its header"):
                    load_with(tmp_path, content, **{name: array + added})


def test_numbers_that_are_not_finite(tmp_path, content):
    for name, array in state_of(content).items():
        if array.dtype.kind == "f" and array.size:
            for value in (np.nan, np.inf, -np.inf):
                changed = array.copy()
                changed.flat[0] = value
                with pytest.raises(ModelFileError, match="not finite"):
                    load_with(tmp_path, content, **{name: changed})


def shapes(n_values=(0, 3)):
    return Shapes(Schema(FeatureKinds.of(n_values), None, 4, None))


@pytest.mark.parametrize(
    ("array", "marks"),
    [
        (np.array([0, 4]), ["_n", "<l"]),
        (np.array([-1, 0]), ["_n", "<l"]),
        (np.array([5]), ["_n", "<l+1"]),
        (np.array([0, 2, 1, 5]), ["_n", "starts l"]),
        (np.array([1, 2, 4]), ["_n", "starts l"]),
        (np.array([0, 3]), ["_n", "starts l"]),
        (np.array([[0, 1, 3], [0, 1, 2]]), ["_e _n", "orders"]),
        (np.array(0.0), ["", ">0"]),
        (np.array([-0.1]), ["_n", ">=0"]),
        (np.array([np.nan]), ["_n", "inf"]),
        (np.array([np.inf]), ["_n"]),
    ],
)
def test_entries_that_do_not_fit(array, marks):
    known = shapes()
    known.add("state", "part", array, *marks)
    with pytest.raises(ValueError, match=r"state\.part"):
        known.check()


def test_entries_that_fit():
    known = shapes()
    known.add("state", "places", np.array([0, 3]), "_n", "<l")
    known.add("state", "starts", np.array([0, 0, 4]), "_m", "starts l")
    known.add("state", "orders", np.array([[2, 0, 1], [0, 1, 2]]), "_e _k", "orders")
    known.add("state", "bound", np.array([np.inf]), "_b", "inf")
    known.add("state", "gaps", np.array([np.nan]), "_b", "nan")
    known.add("other", "places", np.array([1]), "_n")
    known.check()


def test_numbers_of_values_may_have_grown_and_nothing_else():
    shapes().add("state", "n_values", np.array([0, 5]), "m", "values")
    for wrong in ([0, 2], [2, 3], [0, 0]):
        with pytest.raises(ValueError, match="does not fit the model's features"):
            shapes().add("state", "n_values", np.array(wrong), "m", "values")
    known = shapes()
    known.add("state", "n_values", np.array([0, 5]), "m", "values")
    with pytest.raises(ValueError, match="other parts know"):
        known.add("twin", "n_values", np.array([0, 4]), "m", "values")
    known.add("state", "weights", np.zeros((5, 2)), "M t")
    with pytest.raises(ValueError, match="where M is 5"):
        known.add("state", "more", np.zeros((4, 2)), "M t")


def test_annotations_are_read_with_their_marks():
    hints = get_type_hints(type(MODELS["density"].fit(X, Y)._fitted.state.decoder), include_extras=True)
    assert hints["gram"].__metadata__ == ("k k", "sum")
