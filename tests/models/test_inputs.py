"""Kinds of input that mean the same give the same model, and none of them is changed or kept hold of."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Perceptron

from labelrace import RACEClassifier
from labelrace.core.categorical import CategoricalMask
from labelrace.learners.columns import dense

LABELS = list("abcdef")
FEATURES = list("vwxyz")


def with_duplicates(dense):
    """Return compressed rows from right to left, in which each cell, zeros too, is stored as two parts."""
    n, m = dense.shape
    half = dense / 2 if dense.dtype.kind == "f" else 0 * dense
    parts = np.stack([dense - half, half], axis=2)[:, ::-1]
    columns = np.tile(np.repeat(np.arange(m)[::-1], 2), n)
    return sparse.csr_array((parts.ravel(), columns, 2 * m * np.arange(n + 1)), shape=dense.shape)


def explicit_zeros(dense):
    made = sparse.csr_matrix(np.ones(dense.shape))
    made.data = dense.ravel().copy()
    return made


KINDS = {
    "dense": np.array,
    "column-wise": np.asfortranarray,
    "strided": lambda dense: np.repeat(dense, 2, axis=1)[:, ::2],
    "list": np.ndarray.tolist,
    "frame": pd.DataFrame,
    "objects": lambda dense: pd.DataFrame(dense).astype(object),
    "csr array": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "lil": sparse.lil_array,
    "duplicates": with_duplicates,
    "explicit zeros": explicit_zeros,
}


def learned(bank, X, Y, **parameters):
    model = RACEClassifier(random_state=0, **bank, **parameters)
    return model.partial_fit(X[:25], Y[:25]).partial_fit(X[25:40], Y[25:40])


def learn_kind(model, X, Y, kind_x, kind_y):
    for batch in (slice(0, 25), slice(25, 40)):
        model.partial_fit(KINDS[kind_x](X[batch]), KINDS[kind_y](Y[batch]))
    return model


def assert_same(one, other, X, what=""):
    scores = one.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(*scores, rtol=1e-7, atol=1e-9, err_msg=what)
    np.testing.assert_array_equal(dense(one.predict(X)), dense(other.predict(X)), err_msg=what)


def test_the_kinds_are_what_they_say(data):
    X, Y = data
    for dense in (X, Y):
        for kind, make in KINDS.items():
            made = make(dense)
            array = made.toarray() if sparse.issparse(made) else np.asarray(made, dtype=float)
            np.testing.assert_array_equal(array, dense, err_msg=kind)
        assert not with_duplicates(dense).has_canonical_format
        assert with_duplicates(dense).nnz == 2 * dense.size
        assert explicit_zeros(dense).nnz == dense.size


@pytest.mark.parametrize("kind_x", KINDS)
def test_all_kinds_of_x_and_y(data, kind_x):
    X, Y = data
    reference = learned({}, X, Y, categorical_features=[0])
    for kind_y in KINDS:
        model = learn_kind(RACEClassifier(categorical_features=[0], random_state=0), X, Y, kind_x, kind_y)
        assert_same(model, reference, X, kind_y)
    np.testing.assert_array_equal(dense(model.predict(KINDS[kind_x](X))), reference.predict(X))


@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_all_kinds_with_all_learners(data, bank, encoding):
    X, Y = data
    reference = learned(bank, X, Y, encoding=encoding)
    # scikit-learn's linear learners take other steps on sparse rows than on dense ones.
    on_sparse = learned(bank, sparse.csr_array(X), Y, encoding=encoding)
    if not isinstance(bank.get("learner"), Perceptron):
        assert_same(on_sparse, reference, X)
    for kind, make in KINDS.items():
        model = learn_kind(RACEClassifier(encoding=encoding, random_state=0, **bank), X, Y, kind, kind)
        assert_same(model, on_sparse if sparse.issparse(make(X)) else reference, X, kind)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, float])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, pd.DataFrame])
def test_all_types_of_numbers(data, dtype, convert):
    X, Y = np.abs(data[0]).round(), data[1]
    X = np.minimum(X, 1) if dtype is bool else X
    model = RACEClassifier(random_state=0).fit(convert(X.astype(dtype)), convert(Y.astype(dtype)))
    assert_same(model, RACEClassifier(random_state=0).fit(X, Y), X)
    np.testing.assert_array_equal(dense(model.predict(convert(X.astype(dtype)))), dense(model.predict(X)))


def test_data_frames_name_features_and_labels(data):
    X, Y = data
    frame, labels = pd.DataFrame(X, columns=FEATURES), pd.DataFrame(Y, columns=LABELS)
    model = RACEClassifier(categorical_features=["v"], random_state=0).fit(frame, labels)
    assert list(model.feature_names_in_) == FEATURES
    assert list(model.label_names_) == LABELS
    assert_names_kept = model.partial_fit(frame, Y)
    assert list(assert_names_kept.label_names_) == LABELS
    plain = RACEClassifier(categorical_features=[0], random_state=0).fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))
    assert plain.label_names_ is None
    assert not hasattr(plain, "feature_names_in_")


def test_label_names_given_as_a_parameter(data):
    X, Y = data
    assert list(RACEClassifier(label_names=tuple(LABELS)).fit(X, Y).label_names_) == LABELS
    assert list(RACEClassifier(label_names=range(6)).fit(X, Y).label_names_) == list("012345")
    model = RACEClassifier(label_names=np.array(LABELS)).fit(X, pd.DataFrame(Y))
    assert list(model.label_names_) == LABELS
    assert list(model.partial_fit(X, pd.DataFrame(Y, columns=list("uvwxyz"))).label_names_) == [*LABELS, *"uvwxyz"]


@pytest.mark.parametrize(
    "chosen",
    [
        [0, 2],
        (2, 0, 0),
        [-5, -3],
        np.array([True, False, True, False, False]),
        [True, False, True, False, False],
        CategoricalMask([2, 0, 2, 0, 0]),
        ["v", "x"],
        pd.Index(["x", "v"]),
        range(0, 3, 2),
    ],
)
def test_ways_to_choose_nominal_features(data, chosen):
    X, Y = data
    frame = pd.DataFrame(X, columns=FEATURES)
    frame["x"] = (frame["x"] > 0).astype(int)
    model = RACEClassifier(categorical_features=chosen, random_state=0).fit(frame, Y)
    reference = RACEClassifier(categorical_features=[0, 2], random_state=0).fit(frame, Y)
    np.testing.assert_array_equal(model.decision_function(frame), reference.decision_function(frame))
    for nothing in ([], np.zeros(5, dtype=bool), None):
        model = RACEClassifier(categorical_features=nothing, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(
            model.decision_function(X), RACEClassifier(random_state=0).fit(X, Y).decision_function(X)
        )


def test_declared_values_count_although_they_never_occur(data):
    X, Y = data
    declared = RACEClassifier(categorical_features=CategoricalMask([7, 0, 0, 0, 0]), random_state=0).fit(X, Y)
    occurring = RACEClassifier(categorical_features=[0], random_state=0).fit(X, Y)
    assert not np.array_equal(declared.decision_function(X), occurring.decision_function(X))


@pytest.mark.parametrize("kind", ["dense", "csr array", "csr matrix", "duplicates", "explicit zeros", "coo", "frame"])
def test_the_callers_data_is_neither_changed_nor_kept(data, bank, kind):
    X, Y = (KINDS[kind](part) for part in data)
    before = copy.deepcopy((X, Y))
    model = RACEClassifier(random_state=0, **bank).partial_fit(X, Y).partial_fit(X, Y)
    scores, hard = model.decision_function(X), dense(model.predict(X))
    for now, then in zip((X, Y), before, strict=True):
        parts = ("data", "indices", "indptr", "row", "col") if sparse.issparse(now) else ("__array__",)
        for part in (part for part in parts if hasattr(now, part)):
            one, other = (
                np.asarray(getattr(a, part)() if part == "__array__" else getattr(a, part)) for a in (now, then)
            )
            np.testing.assert_array_equal(one, other)
    for part in (X, Y):
        if sparse.issparse(part):
            part.data[:] = 1 - part.data
        else:
            part[:] = 1 - part
    np.testing.assert_array_equal(model.decision_function(before[0]), scores)
    twin = RACEClassifier(random_state=0, **bank).partial_fit(*before).partial_fit(*before).partial_fit(*before)
    model.partial_fit(*before)
    np.testing.assert_array_equal(model.decision_function(before[0]), twin.decision_function(before[0]))
    hard[:] = 1 - hard
    np.testing.assert_array_equal(dense(model.predict(before[0])), dense(twin.predict(before[0])))


def test_read_only_data_will_do(data, bank):
    X, Y = (part.copy() for part in data)
    X.setflags(write=False)
    Y.setflags(write=False)
    model = RACEClassifier(categorical_features=[0], random_state=0, **bank).partial_fit(X, Y).partial_fit(X, Y)
    assert model.predict(X).shape == Y.shape


def test_parameters_are_neither_changed_nor_kept(data):
    X, Y = data
    A, b, names, mask = np.linspace(-1, 1, 12).reshape(6, 2), np.array([0.1, -0.1]), LABELS.copy(), np.eye(5)[0] > 0
    model = RACEClassifier(projection=(A, b), label_names=names, categorical_features=mask).partial_fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(A, np.linspace(-1, 1, 12).reshape(6, 2))
    twin = copy.deepcopy(model)
    A[:], b[:], mask[:] = 0, 9, True
    names[0] = "changed"
    np.testing.assert_array_equal(model.decision_function(X), scores)
    assert list(model.label_names_) == LABELS
    np.testing.assert_array_equal(
        model.partial_fit(X, Y).decision_function(X), twin.partial_fit(X, Y).decision_function(X)
    )
