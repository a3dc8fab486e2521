"""Kinds of input that mean the same give the same model, none is changed or kept; rows that name their features."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.models import MODELS, ONLINE_MODELS
from scipy import sparse
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import BinaryRelevanceClassifier, RACEClassifier
from labelrace.base import validation
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.sparse import dense
from labelrace.exceptions import DivergenceWarning, GrowthError
from labelrace.learners.naive_bayes.bank import NaiveBayes

LABELS = list("abcdef")
FEATURES = list("vwxyz")


def with_duplicates(matrix):
    """Return compressed rows from right to left, in which each cell, zeros too, is stored as two parts."""
    n, m = matrix.shape
    half = matrix / 2 if matrix.dtype.kind == "f" else 0 * matrix
    parts = np.stack([matrix - half, half], axis=2)[:, ::-1]
    columns = np.tile(np.repeat(np.arange(m)[::-1], 2), n)
    return sparse.csr_array((parts.ravel(), columns, 2 * m * np.arange(n + 1)), shape=matrix.shape)


def explicit_zeros(matrix):
    made = sparse.csr_matrix(np.ones(matrix.shape))
    made.data = matrix.ravel().copy()
    return made


KINDS = {
    "dense": np.array,
    "column-wise": np.asfortranarray,
    "strided": lambda matrix: np.repeat(matrix, 2, axis=1)[:, ::2],
    "list": np.ndarray.tolist,
    "frame": pd.DataFrame,
    "objects": lambda matrix: pd.DataFrame(matrix).astype(object),
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
    for matrix in (X, Y):
        for kind, make in KINDS.items():
            made = make(matrix)
            array = made.toarray() if sparse.issparse(made) else np.asarray(made, dtype=float)
            np.testing.assert_array_equal(array, matrix, err_msg=kind)
        assert not with_duplicates(matrix).has_canonical_format
        assert with_duplicates(matrix).nnz == 2 * matrix.size
        assert explicit_zeros(matrix).nnz == matrix.size


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
    assert list(model.partial_fit(frame, Y).label_names_) == LABELS
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


ONLINE = ONLINE_MODELS
# The default's scaling divides dense rows by the root of the number of columns at the start, and has random features of
# them; when features become more, a model that scales so is not the one that knew them.
EXACT = [name for name in ONLINE if name not in ("race", "arow", "adagrad-logistic", "adagrad-squared")]


def dicts(X, names=FEATURES):
    return [{name: value for name, value in zip(names, row, strict=True) if value} for row in X.tolist()]


def seeded(name, **parameters):
    has_seed = "random_state" in labelrace.make_model(name).get_params()
    return labelrace.make_model(name, **({"random_state": 0} if has_seed else {}), **parameters)


def assert_same_scores(one, other, X, Z=None, **options):
    options = options or {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X if Z is None else Z), **options)


@pytest.mark.parametrize("name", ONLINE)
def test_wider_sparse_rows_add_features(data, name):
    X, Y = data
    Z = np.where((np.arange(60) < 30)[:, None] & (np.arange(5) >= 3), 0, X)
    grown, knew = seeded(name), seeded(name)
    grown.partial_fit(sparse.csr_array(Z[:30, :3]), Y[:30]).partial_fit(sparse.coo_matrix(Z[30:]), Y[30:])
    assert grown.n_features_in_ == 5
    assert np.isfinite(grown.decision_function(X)).all()
    if name in EXACT:
        knew.partial_fit(sparse.csr_array(Z[:30]), Y[:30]).partial_fit(sparse.csr_array(Z[30:]), Y[30:])
        assert_same_scores(grown, knew, X)


def test_every_bank_or_a_clear_refusal(data, bank):
    X, Y = data
    grown = RACEClassifier(random_state=0, **bank).partial_fit(X[:30, :3], Y[:30])
    before = dict(vars(grown))
    if isinstance(bank.get("learner"), Perceptron):
        with pytest.raises(GrowthError, match=r"X has 5 features, but RACEClassifier is expecting 3.*Perceptron"):
            grown.partial_fit(sparse.csr_array(X), Y)
        assert vars(grown) == before
        return
    knew = RACEClassifier(random_state=0, **bank)
    knew.partial_fit(np.hstack([X[:30, :3], np.zeros((30, 2))]), Y[:30]).partial_fit(X[30:], Y[30:])
    assert_same_scores(grown.partial_fit(sparse.csr_array(X[30:]), Y[30:]), knew, X)


def test_features_that_come_later_are_nominal_where_all_are(data):
    X, Y = np.abs(data[0]).round(), data[1]
    X[30:, 3] = 4
    model = (
        BinaryRelevanceClassifier(categorical_features=[0, 1, 2])
        .partial_fit(X[:30, :3], Y[:30])
        .partial_fit(sparse.csr_array(X), Y)
    )
    assert model._fitted.schema.kinds.n_values[3:].tolist() == [5, int(X[:, 4].max()) + 1]
    with pytest.raises(ValueError, match="in a column of categorical_features"):
        model.partial_fit(sparse.csr_array(np.hstack([X, X + 0.5])), Y)
    assert model.n_features_in_ == 5
    mixed = (
        BinaryRelevanceClassifier(categorical_features=[0])
        .partial_fit(X[:30, :3], Y[:30])
        .partial_fit(sparse.csr_array(X + 0.5 * (X > 9)), Y)
    )
    assert mixed._fitted.schema.kinds.n_values[1:].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", ONLINE)
def test_dicts_are_sparse_rows_with_names(data, name):
    X, Y = data
    by_name, by_place = seeded(name), seeded(name)
    rows = dicts(X)
    order = list(dict.fromkeys(key for row in rows for key in row))
    places = [FEATURES.index(key) for key in order]
    n_first = len({key for row in rows[:1] for key in row})
    assert 0 < n_first < 5
    by_name.partial_fit(rows[:1], Y[:1]).partial_fit(rows[1:], Y[1:])
    Z = sparse.csr_array(X[:, places])
    by_place.partial_fit(Z[:1, :n_first], Y[:1]).partial_fit(Z[1:], Y[1:])
    assert list(by_name.feature_names_in_) == order
    assert by_name.n_features_in_ == 5
    assert_same_scores(by_name, by_place, rows, Z)
    # What nobody has learned says nothing; what is not there is 0.
    assert_same_scores(by_name, by_name, [{**row, "unheard of": 1e9} for row in rows], rows)
    assert by_name.predict([{}]).shape == (1, 6)
    assert list(by_name.feature_names_in_) == order
    with pytest.raises(ValueError, match=r"X has 7 features"), pytest.warns(UserWarning, match="feature names"):
        by_name.predict(sparse.csr_array(np.ones((2, 7))))
    # So does a column behind those that are known, but only a sparse one: dense rows have all of theirs.
    wider = sparse.hstack([Z, 1e9 * np.ones((Z.shape[0], 2))], format="csr")
    assert_same_scores(by_place, by_place, wider, Z)
    with pytest.raises(ValueError, match=r"X has 7 features"):
        by_place.predict(wider.toarray())


def test_dicts_and_data_frames_go_together(data, tmp_path):
    X, Y = data
    frame = pd.DataFrame(X, columns=FEATURES)
    by_frame, by_dict, mixed = (RACEClassifier(categorical_features=["v"], random_state=0) for _ in range(3))
    by_frame.partial_fit(frame[:30], Y[:30]).partial_fit(frame[30:], Y[30:])
    mixed.partial_fit(frame[:30], Y[:30]).partial_fit(dicts(X[30:])[::-1], Y[30:][::-1])
    by_dict.partial_fit([dict.fromkeys(FEATURES, 0.0), *dicts(X)], np.vstack([0 * Y[:1], Y]))
    assert list(by_dict.feature_names_in_) == FEATURES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_scores(mixed, by_frame, dicts(X), frame)
        mixed.save(tmp_path / "model")
        loaded = labelrace.load(tmp_path / "model")
        for model in (mixed, loaded):
            model.partial_fit([{"new": 2, "v": 1}], Y[:1])
        np.testing.assert_array_equal(loaded.decision_function(dicts(X)), mixed.decision_function(dicts(X)))
    assert list(loaded.feature_names_in_) == [*FEATURES, "new"]
    with pytest.raises(ValueError, match=r"X has 7 features without names.*give rows as dicts"):
        loaded.partial_fit(sparse.csr_array(np.ones((1, 7))), Y[:1])


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([{"a": np.inf}], "X contains infinity"),
        ([{"a": np.nan}], "X contains NaN"),
        ([{"a": "red"}], "X holds 'red'"),
        ([{"b": -np.inf, "a": 1}], "X contains infinity"),
    ],
)
def test_dicts_that_are_refused(data, rows, match):
    _, Y = data
    model = RACEClassifier(method="regression", learner="ridge", random_state=0)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(rows, Y[:1])
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X must name at least one feature"):
        model.partial_fit([{}, {}], Y[:2])
    model.partial_fit([{"a": 1}, {"a": 2}], Y[:2])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.partial_fit(rows, Y[:1])
    assert all(vars(model)[name] is value for name, value in before.items())


def test_missing_values_and_codes_in_dicts(data):
    _, Y = data
    model = BinaryRelevanceClassifier(categorical_features=["a"], learner=NaiveBayes()).partial_fit(
        [{"a": 1, "b": 0.5}, {"b": np.nan}], Y[:2]
    )
    assert np.isfinite(model.decision_function([{"a": 0, "b": np.nan}])).all()
    for ask in (model.predict, lambda X: model.partial_fit(X, Y[:1])):
        with pytest.raises(ValueError, match="in a column of categorical_features"):
            ask([{"a": 0.5}])


def test_unnamed_features_stay_unnamed(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    for ask in (model.predict, lambda rows: model.partial_fit(rows, Y)):
        with pytest.raises(ValueError, match="features learned so far have no names"):
            ask(dicts(X))
    # Starting over, anything goes.
    assert list(model.fit([{"a": 1}, {"b": 1}], Y[:2]).feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_numbers_of_values_of_nominal_features():
    names = np.array(["x", "y", "z"], dtype=object)
    indices = [0, 2], (2, 0, 0), (-1, 0), range(0, 3, 2)
    masks = [True, False, True], np.array([True, False, True])
    for chosen in (*indices, *masks, ["z", "x"], np.array(["x", "z"]), pd.Index(["z", "x"])):
        assert validation.categorical_kinds(chosen, 3, names).n_values.tolist() == [2, 0, 2]
    for nothing in (None, [], np.zeros(3, dtype=bool)):
        assert validation.categorical_kinds(nothing, 3, names).n_values.tolist() == [0, 0, 0]
    assert validation.categorical_kinds(CategoricalMask([5, 0, 1]), 3, None).n_values.tolist() == [5, 0, 2]
    assert validation.categorical_kinds("y", 3, names).n_values.tolist() == [0, 2, 0]
    assert validation.categorical_kinds(1, 3, None).n_values.tolist() == [0, 2, 0]


def test_codes():
    kinds = FeatureKinds(np.array([2, 0, 2]))
    good = np.array([[0, -1.5, 3], [np.nan, np.nan, 2.0**16 - 1]])
    validation.check_codes(good, kinds)
    validation.check_codes(sparse.csr_array(good), kinds)
    validation.check_codes(-good, FeatureKinds.numbers(3))
    for code in (-1.0, 0.5, 2.0**16):
        for column in (0, 2):
            bad = good.copy()
            bad[0, column] = code
            for X in (bad, sparse.csr_array(bad)):
                with pytest.raises(ValueError, match="in a column of categorical_features"):
                    validation.check_codes(X, kinds)


def test_finite_numbers():
    good = np.array([[0.0, np.nan], [1.0, -2.0]])
    for X in (good, sparse.csr_array(good)):
        validation.check_finite(X, allow_missing=True)
        with pytest.raises(ValueError, match="X contains NaN"):
            validation.check_finite(X, allow_missing=False)
        with pytest.raises(ValueError, match="X contains infinity"):
            validation.check_finite(X * np.inf if sparse.issparse(X) else np.fmax(X, np.inf), allow_missing=True)


def test_data_frames_with_some_sparse_columns(data):
    """Without a warning."""
    X, Y = data
    frame = pd.DataFrame(np.array(X), columns=[f"f{i}" for i in range(X.shape[1])])
    some = frame.assign(f0=frame["f0"].astype(pd.SparseDtype(float, 0.0)))
    model = BinaryRelevanceClassifier().fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin = BinaryRelevanceClassifier().fit(some, Y)
        np.testing.assert_array_equal(twin.decision_function(some), model.decision_function(frame))


@pytest.mark.parametrize("name", MODELS)
def test_read_only_sparse_data_will_do(name):
    rng = np.random.default_rng(0)
    X, Y = sparse.csr_array(rng.random((12, 3))), sparse.csr_array((rng.random((12, 4)) < 0.5).astype(float))
    for array in (X.data, X.indices, X.indptr, Y.data, Y.indices, Y.indptr):
        array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        labelrace.make_model(name).fit(X, Y).predict(X)


def test_whole_numbers_as_names_of_features():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    frame = pd.DataFrame(X, columns=[7, 3, 1])
    named = labelrace.make_model("obr").partial_fit(frame, Y)
    assert named.feature_names_in_.tolist() == ["7", "3", "1"]
    np.testing.assert_array_equal(named.predict(frame), labelrace.make_model("obr").partial_fit(X, Y).predict(X))
    for call in (named.predict, lambda X: named.partial_fit(X, Y)):
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            call(frame[[3, 7, 1]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- 9"):
        named.predict(frame.rename(columns={3: 9}))


def test_columns_that_are_only_counted_are_refused_in_another_order():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    frame = pd.DataFrame(X)
    for first in (X, frame):
        model = labelrace.make_model("obr").partial_fit(first, Y)
        assert not hasattr(model, "feature_names_in_")
        np.testing.assert_array_equal(model.predict(frame), model.predict(X))
        for call in (model.predict, lambda X, model=model: model.partial_fit(X, Y)):
            with pytest.raises(ValueError, match=r"X must have its columns in the order 0, 1, 2, ….*got 2, 1, 0"):
                call(frame[[2, 1, 0]])
        with pytest.warns(UserWarning, match="X has feature names, but"):
            model.predict(frame.rename(columns={1: 9}))
