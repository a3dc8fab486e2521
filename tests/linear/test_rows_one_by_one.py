"""The default model, row by row: refused and interrupted rows change nothing, and readers see whole models."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import scipy.sparse
from helpers import interrupts

import labelrace
from labelrace import LabelRaceClassifier
from labelrace.exceptions import DivergenceError

KINDS = pytest.mark.parametrize("sparse", [False, True])


def rows(seed, n, *, sparse, m=20, k=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    if sparse:
        X *= rng.random(X.shape) < 0.2
    Y = (X @ np.random.default_rng(0).normal(size=(m, k)) > 0.5).astype(float)
    Y[rng.random(Y.shape) < 0.05] = np.nan
    return (scipy.sparse.csr_array(X) if sparse else X), Y


def model_of(sparse, **parameters):
    model = LabelRaceClassifier(n_random_features=3, random_state=0, **parameters)
    return model.partial_fit(*rows(1, 520, sparse=sparse))


def learn_singly(model, X, Y):
    for i in range(X.shape[0]):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    return model


@KINDS
def test_a_loaded_model_goes_on_like_the_saved_one(sparse, tmp_path):
    """To the last digit, in the middle of the rows that wait to be counted, and with a label more."""
    X, Y = rows(2, 90, sparse=sparse)
    queries, _ = rows(3, 30, sparse=sparse)
    model = learn_singly(model_of(sparse), X[:45], Y[:45])
    model.save(tmp_path / "model")
    loaded = labelrace.load(tmp_path / "model")
    for one in (model, loaded):
        one.add_labels(1)
        learn_singly(one, X[45:], np.hstack([Y[45:], np.ones((45, 1))]))
    np.testing.assert_array_equal(loaded.decision_function(queries), model.decision_function(queries))
    loaded.save(tmp_path / "loaded")
    model.save(tmp_path / "again")
    assert (tmp_path / "loaded").read_bytes() == (tmp_path / "again").read_bytes()


@KINDS
@pytest.mark.parametrize("n_waiting", [3, 31])
def test_a_row_that_is_interrupted_changes_nothing(sparse, n_waiting):
    X, Y = rows(2, 40, sparse=sparse)
    queries, _ = rows(3, 30, sparse=sparse)

    def begun():
        return learn_singly(model_of(sparse), X[:n_waiting], Y[:n_waiting])

    x, y = X[n_waiting : n_waiting + 1], Y[n_waiting : n_waiting + 1]
    model = begun()
    before, expected = model.decision_function(queries), begun().partial_fit(x, y).decision_function(queries)
    index = 0
    while interrupts.interrupted_at(index := index + 1, lambda one=model: one.partial_fit(x, y)):
        if not np.array_equal(model.decision_function(queries), before):
            # The last line of all: nothing but the way back was left.
            np.testing.assert_array_equal(model.decision_function(queries), expected)
            model = begun()
    assert index > 60
    np.testing.assert_array_equal(model.decision_function(queries), expected)
    # A lock that was left behind lets its own thread in, but no other.
    other = threading.Thread(target=model.partial_fit, args=(x, y), daemon=True)
    other.start()
    other.join(timeout=60)
    assert not other.is_alive()


def test_values_that_come_before_and_after_a_refused_row_are_learned_alike():
    """Values of the model that are older stay as they were."""
    X, Y = rows(2, 24, sparse=True)
    queries, _ = rows(3, 30, sparse=True)
    model, expected = learn_singly(model_of(True), X[:5], Y[:5]), learn_singly(model_of(True), X, Y)
    other = copy.copy(model)
    with pytest.raises(ValueError, match="y must"):
        model.partial_fit(X[5:6], 3.0 * np.ones((1, 5)))
    for one in (model, other):
        learn_singly(one, X[5:], Y[5:])
        np.testing.assert_array_equal(one.decision_function(queries), expected.decision_function(queries))


def test_refused_rows_change_nothing():
    X, Y = rows(2, 10, sparse=True)
    queries, _ = rows(3, 30, sparse=True)
    model = learn_singly(model_of(True), X[:5], Y[:5])
    fitted, before = model._fitted, model.decision_function(queries)
    damaged = X[5:6]
    damaged.indices = damaged.indices + 100
    for x, y in ((damaged, Y[5:6]), (X[5:6] * np.inf, Y[5:6]), (X[5:6], Y[5:6] + 2), (X[5:6], Y[5:6, :3])):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"X|y"):
            model.partial_fit(x, y)
        assert model._fitted is fitted
    np.testing.assert_array_equal(model.decision_function(queries), before)


def in_another_order(x):
    return scipy.sparse.csr_array((x.data[::-1].copy(), x.indices[::-1].copy(), x.indptr), shape=x.shape)


def with_parts_twice(x):
    parts = np.concatenate([0.25 * x.data, 0.75 * x.data]), np.concatenate([x.indices, x.indices]), 2 * x.indptr
    return scipy.sparse.csr_array(parts, shape=x.shape)


def with_long_indices(x):
    wide = x.copy()
    wide.indices, wide.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return wide


@pytest.mark.parametrize(
    ("form_of_x", "form_of_y"),
    [
        (in_another_order, np.asarray),
        (with_parts_twice, np.asarray),
        (with_long_indices, np.asarray),
        (scipy.sparse.csr_matrix, np.asarray),
        (scipy.sparse.csr_array.toarray, np.asarray),
        (scipy.sparse.csr_array, lambda y: y.astype(np.int8)),
        (scipy.sparse.csr_array, lambda y: y.astype(bool)),
        (scipy.sparse.csr_array, np.ndarray.tolist),
        (scipy.sparse.csr_array, scipy.sparse.csr_array),
    ],
)
def test_rows_in_other_forms_teach_the_same(form_of_x, form_of_y):
    """A row that is not in order is brought into order."""
    X, Y = rows(2, 12, sparse=True)
    Y = np.nan_to_num(Y)
    model, twin = model_of(True), model_of(True)
    for i in range(12):
        x, y = X[i : i + 1], Y[i : i + 1]
        model.partial_fit(form_of_x(x), form_of_y(y))
        twin.partial_fit(x, y)
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X), rtol=1e-5, atol=1e-6)


def test_a_row_of_all_that_is_wrong_says_what():
    X, Y = rows(2, 10, sparse=True)
    model = learn_singly(model_of(True), X[:5], Y[:5])
    fitted = model._fitted

    def row_of(data, indices, starts):
        x = X[5:6].copy()
        x.data, x.indices, x.indptr = np.array(data), np.array(indices, np.int32), np.array(starts, np.int32)
        return x

    y = np.zeros((1, 5))
    for x, labels, message in (
        (row_of([1.0], [-1], [0, 1]), y, "its columns are not all from 0 to below 20"),
        (row_of([1.0], [20], [0, 1]), y, "its columns are not all from 0 to below 20"),
        (row_of([1.0], [1], [0, 2]), y, "shorter than its starts"),
        (row_of([1.0], [1], [1, 1]), y, "do not rise from 0"),
        (row_of([1e101], [1], [0, 1]), y, "numbers up to 1e.100"),
        (row_of([np.inf], [1], [0, 1]), y, "infinity"),
        (row_of([1.0], [1], [0, 1]), y + 0.5, "y must hold 0 and 1, got 0.5"),
        (row_of([1.0], [1], [0, 1]), y - 1.0, "y must hold 0 and 1, got -1"),
        (row_of([1.0], [1], [0, 1]), y.astype(np.int8) + 2, "y must hold 0 and 1, got 2"),
        (row_of([1.0], [1], [0, 1]), np.zeros((2, 5)), "the same number of rows"),
    ):
        with pytest.raises((ValueError, DivergenceError), match=message):
            model.partial_fit(x, labels)
        assert model._fitted is fitted


def test_threads_that_predict_see_whole_models():
    X, Y = rows(2, 60, sparse=True)
    queries, _ = rows(3, 30, sparse=True)
    model, twin = model_of(True), model_of(True)
    allowed = [twin.decision_function(queries)]
    allowed += [twin.partial_fit(X[i : i + 1], Y[i : i + 1]).decision_function(queries) for i in range(60)]
    seen, stop = [], threading.Event()

    def predict():
        while not stop.is_set():
            seen.append(model.decision_function(queries))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    learn_singly(model, X, Y)
    stop.set()
    for thread in threads:
        thread.join()
    for scores in seen:
        assert min(np.abs(scores - each).max() for each in allowed) < 1e-6


def test_room_behind_the_entries_of_a_row_is_not_read():
    """A sparse matrix may have longer arrays than it has entries."""
    X, Y = rows(2, 3, sparse=True)
    x = X[:1].copy()
    longer = x.copy()
    longer.data, longer.indices = np.append(x.data, 50.0), np.append(x.indices, np.int32(3))
    model, twin = model_of(True), model_of(True)
    model.partial_fit(longer, Y[:1])
    twin.partial_fit(x, Y[:1])
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
    np.testing.assert_array_equal(model.decision_function(longer), model.decision_function(x))


@KINDS
def test_rows_in_memory_of_all_kinds(sparse):
    """Read-only rows, and such as are not in one piece, are learned like others, and stay as they are."""
    X, Y = rows(2, 6, sparse=sparse)
    model, twin = model_of(sparse), model_of(sparse)
    for i in range(6):
        x, y = X[i : i + 1].copy(), np.asfortranarray(Y)[i : i + 1]
        y.setflags(write=False)
        if sparse:
            for part in (x.data, x.indices, x.indptr):
                part.setflags(write=False)
        else:
            x = np.asfortranarray(X)[i : i + 1]
            x.setflags(write=False)
        model.partial_fit(x, y)
        twin.partial_fit(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
