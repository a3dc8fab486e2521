"""Labels that come after the prediction: rows are kept until then, and learned as if they had come with them."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from helpers.models import MODELS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import SGDClassifier

import labelrace
from labelrace import DelayedLabels, OfflineRACEClassifier, RACEClassifier
from labelrace.base.pending import NumberRows, PendingRows
from labelrace.base.sparse import dense
from labelrace.exceptions import UnknownRowError

FEATURES = list("vwxyz")
ONLINE = [name for name in MODELS if labelrace.make_model(name).is_online]
KINDS = {
    "dense": np.asarray,
    "sparse": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=FEATURES),
    "dicts": lambda X: [dict(zip(FEATURES, row, strict=True)) for row in X.tolist()],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ONLINE)
def test_learning_later_is_learning(data, name, kind):
    X, Y = data
    make = KINDS[kind]
    model = labelrace.make_model(name).partial_fit(make(X[:20]), Y[:20])
    prompt, late = copy.deepcopy(model), DelayedLabels(model)
    predicted = late.predict(make(X[20:40]), ids=range(20, 40))
    np.testing.assert_array_equal(predicted, prompt.predict(make(X[20:40])))
    late.predict(make(X[40:]), ids=np.arange(40, 60))
    # Neither all of them, nor in their order.
    ids = [57, 21, 33, 40, 20]
    assert late.learn(ids, Y[ids]) is late
    prompt.partial_fit(make(X[ids]), Y[ids])
    scores = model.decision_function(make(X)), prompt.decision_function(make(X))
    np.testing.assert_allclose(*scores, rtol=1e-8, atol=1e-9)
    assert late.pending_ids == [i for i in range(20, 60) if i not in ids]
    with pytest.raises(UnknownRowError, match="no pending rows with the ids 57: "):
        late.learn([22, 57], Y[:2])
    late.learn([22], Y[22:23])


def test_masked_values_are_missing_while_rows_wait(data):
    X, Y = data
    hidden = np.random.default_rng(0).random(X.shape) < 0.3
    masked = np.ma.masked_array(np.where(hidden, 50.0, X), hidden)
    model = labelrace.make_model("obr").partial_fit(masked[:20], Y[:20])
    delayed = DelayedLabels(copy.deepcopy(model))
    delayed.predict(masked[20:60], ids=range(40))
    delayed.learn(range(40), Y[20:60])
    model.partial_fit(masked[20:60], Y[20:60])
    np.testing.assert_array_equal(delayed.model.decision_function(X), model.decision_function(X))


def test_what_was_given_is_not_kept_hold_of(data):
    X, Y = data
    for make in (np.array, sparse.csr_array):
        model = RACEClassifier(random_state=0).fit(X, Y)
        twin, given = copy.deepcopy(model), make(X)
        late = DelayedLabels(model)
        late.predict(given, ids=range(60))
        (given.data if sparse.issparse(given) else given)[...] = 1
        late.learn(range(60), Y)
        np.testing.assert_array_equal(model.decision_function(X), twin.partial_fit(make(X), Y).decision_function(X))


def test_rows_are_pending_while_labels_and_features_become_more(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).partial_fit(sparse.csr_array(X[:20, :3]), Y[:20, :4]) for _ in "ab")
    late = DelayedLabels(one)
    late.predict(X[20:30, :3], ids=range(20, 30))
    late.predict(sparse.csr_array(X[30:40, :3]), ids=range(30, 40))
    for model in (one, other):
        model.partial_fit(sparse.csr_array(X[40:]), Y[40:])
    ids = [25, 35, 20]
    late.learn(ids, Y[ids])
    other.partial_fit(sparse.csr_array(np.hstack([X[ids, :3], np.zeros((3, 2))])), Y[ids])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-9)


def test_names_unknown_when_asked_are_learned_later():
    one, other = (RACEClassifier(random_state=0).partial_fit([{"a": 1}, {"b": 1}], [{"x"}, {"y"}]) for _ in "ab")
    rows = [{"a": 1, "new": 2}, {"b": 3, "newer": 1}]
    late = DelayedLabels(one)
    late.predict(rows[:1], ids=["first"])
    late.predict(rows[1:], ids=["second"])
    late.learn(["second", "first"], [{"z"}, {"x"}])
    other.partial_fit(rows[::-1], [{"z"}, {"x"}])
    # In the order in which they were asked about.
    assert list(one.feature_names_in_) == ["a", "b", "new", "newer"]
    np.testing.assert_allclose(one.decision_function(rows), other.decision_function(rows), rtol=1e-12)


def test_the_oldest_rows_leave(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    late = DelayedLabels(model, max_rows=10)
    late.predict(X[:8], ids=range(8))
    late.predict(X[8:16], ids=range(8, 16))
    with pytest.raises(UnknownRowError, match=r"the ids 0, 1, 2, 3, 4, …: .*max_rows"):
        late.learn(range(7), Y[:7])
    late.learn([6, 15], Y[:2])
    late.predict(X[16:60], ids=range(16, 60))
    assert len(late) == 10
    assert late.pending_ids == list(range(50, 60))
    assert len(late.learn(range(50, 60), Y[50:])) == 0
    nothing = DelayedLabels(model, max_rows=0)
    nothing.predict(X, ids=range(60))
    assert len(nothing) == 0
    assert nothing.pending_ids == []
    assert DelayedLabels(model).max_rows == 10_000


def test_an_id_that_comes_again_replaces_its_row(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).fit(X, Y) for _ in "ab")
    late = DelayedLabels(one)
    late.predict(X[:3], ids=["a", "b", "a"])
    late.predict(X[5:6], ids=["b"])
    late.learn(["a", "b"], Y[:2])
    other.partial_fit(X[[2, 5]], Y[:2])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ("abc", "ids must be a list of ids, one for each row, got 'abc'"),
        (3, "ids must be a list of ids, one for each row, got 3"),
        ([1, 2], "X and ids must have the same number of rows, got 3 and 2"),
        ([1, 2, [3]], "cannot be an id"),
        (np.eye(3), "cannot be an id"),
    ],
)
def test_what_are_no_ids(data, ids, match):
    X, Y = data
    late = DelayedLabels(RACEClassifier(random_state=0).fit(X, Y))
    for predict in (late.predict, late.predict_labels, late.predict_top):
        with pytest.raises(ValueError, match=match):
            predict(X[:3], ids=ids)
    assert len(late) == 0


def test_a_failed_call_changes_nothing(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    late = DelayedLabels(model)
    with pytest.raises(UnknownRowError, match="1, 2: they were not predicted with ids"):
        late.learn([1, 2], Y[:2])
    late.predict(X, ids=range(60))
    before = dict(vars(model))
    for ids, labels, match in (
        ([], Y[:0], "ids must hold at least one id, got none"),
        ([1, 1], Y[:2], "an id twice"),
        ([1, 2], Y[:1], "X and y must have the same number of rows"),
        ([1, 2], 2 * Y[:2] + 1, "y must hold 0 and 1"),
        ([1, 2], Y[:2, :3], "y has 3 labels"),
        ([1, 99], Y[:2], "no pending rows with the ids 99"),
    ):
        with pytest.raises(ValueError, match=match):
            late.learn(ids, labels)
        assert all(vars(model)[name] is value for name, value in before.items())
        assert len(late) == 60
    for X_wrong in (X[:, :3], np.where(X > 1, np.inf, X)):
        with pytest.raises(ValueError, match="X "):
            late.predict(X_wrong, ids=range(60))
    assert len(late) == 60


@pytest.mark.parametrize("wrong", [-1, 2.5, None, True, "10"])
def test_wrong_numbers_of_rows(data, wrong):
    with pytest.raises(ValueError, match=f"max_rows must be a whole number of at least 0, got {wrong!r}"):
        DelayedLabels(RACEClassifier(), max_rows=wrong)


def test_what_is_no_model():
    with pytest.raises(ValueError, match="model must be a classifier that has partial_fit, got 'race'"):
        DelayedLabels("race")


def test_every_way_to_predict_keeps_the_rows(data):
    X, Y = data
    names = pd.DataFrame(Y, columns=list("abcdef"))
    model = RACEClassifier(random_state=0).fit(X, names)
    learned = copy.deepcopy(model).partial_fit(X[[7, 20, 40]], Y[[7, 20, 40]])
    late = DelayedLabels(model)
    np.testing.assert_array_equal(late.predict(X[:20], ids=range(20)), model.predict(X[:20]))
    assert late.predict_labels(X[20:40], ids=range(20, 40)) == model.predict_labels(X[20:40])
    assert late.predict_top(X[40:], ids=range(40, 60), k=2) == model.predict_top(X[40:], 2)
    assert late.predict_top(X[40:], ids=range(40, 60)) == model.predict_top(X[40:], 5)
    assert late.pending_ids == list(range(60))
    late.learn([7, 20, 40], names.iloc[[7, 20, 40]])
    np.testing.assert_array_equal(late.model.decision_function(X), learned.decision_function(X))
    assert len(late) == 57
    assert repr(late) == f"DelayedLabels({model!r}, max_rows=10000)"


def test_any_model_that_learns_on(data):
    """One of scikit-learn, which knows nothing of ids."""
    X, Y = data
    one, other = (SGDClassifier(random_state=0).partial_fit(X, Y[:, 0], classes=[0, 1]) for _ in "ab")
    late = DelayedLabels(one)
    np.testing.assert_array_equal(late.predict(X[:20], ids=range(20)), other.predict(X[:20]))
    late.learn(range(20), Y[:20, 0])
    np.testing.assert_array_equal(one.coef_, other.partial_fit(X[:20], Y[:20, 0]).coef_)


def test_sparse_labels_and_sets(data):
    X, Y = data
    for y in (sparse.csr_array(Y), [{"abcdef"[j] for j in np.flatnonzero(row)} for row in Y]):
        model = RACEClassifier(random_state=0).fit(X, y)
        late = DelayedLabels(model)
        predicted = late.predict(X, ids=range(60))
        assert sparse.issparse(predicted)
        np.testing.assert_array_equal(dense(predicted), dense(model.predict(X)))
        twin = copy.deepcopy(model).partial_fit(X[3:5], y[3:5])
        late.learn([3, 4], y[3:5])
        np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))


def test_offline_models_do_not_learn_later(data):
    with pytest.raises(ValueError, match="model must be a classifier that has partial_fit, got OfflineRACEClassifier"):
        DelayedLabels(OfflineRACEClassifier().fit(*data))


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 12), min_size=1, max_size=8)), max_size=25),
    size=st.integers(0, 9),
)
def test_pending_rows_are_the_newest(steps, size):
    """Against a plain dict, row by row."""
    pending, plain, value = PendingRows(), {}, 0.0
    for keeps, ids in steps:
        if keeps:
            rows = value + np.arange(len(ids), dtype=float)[:, None]
            value += len(ids)
            pending.keep(ids, NumberRows(rows), size)
            plain |= dict(zip(ids, rows[:, 0], strict=True))
            # As old as its batch, and in it as old as its first index there.
            for identity in dict.fromkeys(ids):
                plain[identity] = plain.pop(identity)
            plain = dict(list(plain.items())[max(0, len(plain) - size) :])
        else:
            pending.drop(ids)
            plain = {identity: row for identity, row in plain.items() if identity not in ids}
        assert len(pending) == len(plain)
        assert pending.ids == list(plain)
        if plain:
            parts, order = pending.find(list(plain))
            found = np.concatenate([part.matrix for part in parts])[order]
            np.testing.assert_array_equal(found[:, 0], list(plain.values()))
        # Batches without pending rows are gone, and others are at least half full.
        held = sum(len(batch.ids) for batch in {batch for batch, _ in pending._positions.values()})
        assert held <= 2 * len(plain)
